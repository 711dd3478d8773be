"""The windows of a query block: those that are named, and those behind OVER; which have a pattern, and who inherits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.errors import AnalysisError, QuerySyntaxError, did_you_mean, listed, printable
from kleene.ir.query import Measure, QueryDefinition
from kleene.lang import pattern_window
from kleene.source import SourceText, Span
from kleene.sqltext.blocks import Block
from kleene.sqltext.closing import end_of_clause
from kleene.sqltext.statement import Statement, blank, blanked
from kleene.sqltext.subqueries import WithoutSubqueries, without_subqueries
from kleene.sqltext.tokens import Token, closing

_PARTS = frozenset({"PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS", "DISTRIBUTE", "CLUSTER", "SORT"})
_OF_PATTERNS = frozenset({"MEASURES", "PATTERN", "SUBSET", "DEFINE", "INITIAL", "SEEK", "AFTER"})
_NO_END = frozenset({"BY", ",", "(", ".", "+", "-", "*", "/", "%", "=", "<", ">", "|", "AND", "OR", "NOT", "BETWEEN"})
_NO_BEGIN = frozenset({",", ")", ".", "+", "-", "*", "/", "%", "=", "<", ">", "|", "AND", "OR", "ASC", "DESC", "NULLS"})


@dataclass(frozen=True, slots=True)
class SortItem:
    expression: str
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True, slots=True)
class NamedWindow:
    """A window as written: the texts of its keys, and what else it says.

    `definition` is its pattern, if it has one; `frame_end` is then the text of how many rows follow, if it says so.
    """

    name: str | None  # folded
    span: Span
    base: str | None
    base_span: Span
    partition_by: tuple[str, ...]
    order_by: tuple[SortItem, ...]
    frame: str
    definition: QueryDefinition | None = None
    frame_end: str | None = None
    inside: WithoutSubqueries | None = None  # the pattern's own subqueries

    @property
    def text(self) -> str:
        """What stands between the parentheses of a plain window that inherits nothing."""
        order = ", ".join(map(_sort_text, self.order_by))
        parts = [f"PARTITION BY {', '.join(self.partition_by)}"] if self.partition_by else []
        parts += [f"ORDER BY {order}"] if order else []
        return " ".join([*parts, self.frame]).strip()


def folded_name(token: Token) -> str:
    """A name as SQL compares it: without quotes, in any case."""
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote) if quote in '`"' else token.text.upper()


def windows_of(block: Block, statement: Statement) -> dict[str, NamedWindow]:
    """The windows of the WINDOW clause, complete with what they inherit."""
    found: dict[str, NamedWindow] = {}
    original, number = statement.original, block.clause("WINDOW")
    while number is not None and number + 3 < block.last:
        name, opening = block.tokens[number + 1], number + 3
        window = read_window(block, opening, statement, folded_name(name))
        if window.name in found:
            place = original.locate(Span(name.start, name.end))
            raise AnalysisError(f"two windows are called '{printable(name.text)}'", place, "Rename one of them.")
        found[folded_name(name)] = inherited(window, found, original)
        number = after_window(block, opening, statement.text)
        if number is None or number >= block.last or block.tokens[number].text != ",":
            break
    return found


def after_window(block: Block, opening: int, text: str) -> int | None:
    """The number of the token behind the window that the parenthesis opens."""
    end = end_of_window(block, opening, text)
    return next((n for n in range(opening, len(block.tokens)) if block.tokens[n].start >= end), len(block.tokens))


def end_of_window(block: Block, opening: int, text: str) -> int:
    """The offset behind the parenthesis that closes the window; in a pattern, strings are those of clauses."""
    if is_pattern(block, opening):
        end = end_of_clause(text, block.tokens[opening].end)
    else:
        close = closing(block.tokens, opening)
        end = None if close is None else block.tokens[close].end
    return len(text) if end is None else end


def is_pattern(block: Block, opening: int) -> bool:
    """Whether the window has a pattern, or a clause that belongs to one."""
    tokens, depth = block.tokens, block.tokens[opening].depth + 1
    if tokens[opening].text != "(":
        return False
    for number in range(opening + 1, len(tokens) - 1):
        if tokens[number].depth < depth:
            return False
        if tokens[number].depth == depth and tokens[number].word in _OF_PATTERNS and _begins_clause(tokens, number):
            return True
    return False


def _begins_clause(tokens: list[Token], number: int) -> bool:
    """All these words may be columns, too: a clause begins where an expression has ended, and goes on."""
    word, before, after = tokens[number].word, tokens[number - 1].word, tokens[number + 1].word
    if word == "PATTERN":
        return after == "(" and before not in _NO_END - {"("}
    if word == "AFTER":
        return after == "MATCH"
    if word in ("INITIAL", "SEEK"):
        return before in ("FOLLOWING", "ROW") or (after == "PATTERN" and before not in _NO_END)
    if before == "(":
        return word == "MEASURES" and after not in _NO_BEGIN | _PARTS | {"MEASURES"}
    return before not in _NO_END and after not in _NO_BEGIN


def read_window(block: Block, opening: int, statement: Statement, name: str | None = None) -> NamedWindow:
    """The window that the parenthesis opens."""
    original, text = statement.original, statement.text
    tokens, end = block.tokens, end_of_window(block, opening, text)
    if text[end - 1] != ")":
        where = original.locate(Span(tokens[opening].start, tokens[opening].end))
        raise QuerySyntaxError("the parenthesis of the window is never closed", where, "Close it with ')'.")
    inner = [token for token in tokens[opening + 1 :] if token.end < end]
    depth = tokens[opening].depth + 1
    span = Span(tokens[opening].start, end)
    place = 0
    base: Token | None = None
    if inner and inner[0].word not in _PARTS and not (is_pattern(block, opening) and _is_clause(inner)):
        base, place = inner[0], 1
    partition, place = _list(inner, place, "PARTITION", depth, text)
    order, place = _list(inner, place, "ORDER", depth, text)
    rest_start = inner[place].start if place < len(inner) else end - 1
    keys = NamedWindow(
        name,
        span,
        None if base is None else folded_name(base),
        Span(0, 0) if base is None else Span(base.start, base.end),
        tuple(_text(item, text) for item in partition),
        tuple(_sort_item(item, text) for item in order),
        text[rest_start : end - 1].strip(),
    )
    if not is_pattern(block, opening):
        return keys
    _check_apart(inner, original)
    return _with_pattern(keys, inner[place:], statement, Span(rest_start, end - 1))


def _check_apart(inner: list[Token], original: SourceText) -> None:
    for token, after in itertools.pairwise(inner):
        if token.word == "OVER" and (after.text == "(" or after.text[0].isidentifier()):
            raise AnalysisError(
                "windows do not nest: nothing over a window can stand inside of another",
                original.locate(Span(token.start, token.end)),
                "Compute the inner one in a subquery.",
            )


def _is_clause(inner: list[Token]) -> bool:
    """Whether the first word of a window with a pattern begins one of its clauses, and is not another window."""
    if inner[0].word not in _OF_PATTERNS or len(inner) < 2:
        return inner[0].word == "MEASURES"
    return inner[1].word not in _PARTS | {"MEASURES"}


def _with_pattern(keys: NamedWindow, rest: list[Token], statement: Statement, span: Span) -> NamedWindow:
    """The window with its pattern, read by our own parser: keys and the frame's end are the database's to compute."""
    frame_end, original = _frame_end(rest), statement.original
    inside = without_subqueries(statement, span)
    own = blank(inside.text[: span.start]) + inside.text[span.start :]
    said = None
    if frame_end is not None:
        said = statement.text[frame_end.start : frame_end.end]
        own = blanked(own, [frame_end])
        own = own[: frame_end.start] + "0" + own[frame_end.start + 1 :]
    definition, _ = pattern_window.parse_within(original, own, inside.hidden, statement.functions)
    _check_measures(definition, original)
    measures = tuple(replace(one, name=f"m{number}") for number, one in enumerate(definition.measures or ()))
    analyze_row_pattern(replace(definition, measures=measures))
    return replace(keys, definition=definition, frame_end=said, inside=inside)


def measure_name(measure: Measure, original: SourceText) -> str:
    """The name as SQL compares it: what was written without quotes is the same in any case."""
    is_quoted = original.text[measure.span.start : measure.span.start + 1] in ('"', "`")
    return measure.name if is_quoted else measure.name.upper()


def _check_measures(definition: QueryDefinition, original: SourceText) -> None:
    names: set[str] = set()
    for measure in definition.measures or ():
        name = measure_name(measure, original)
        if name in names:
            place = original.locate(measure.span)
            raise AnalysisError(f"two measures are called '{printable(measure.name)}'", place, "Rename one of them.")
        names.add(name)


def _frame_end(tokens: list[Token]) -> Span | None:
    """Where how many rows follow is written, if that is not a literal number."""
    if not tokens:
        return None
    depth = tokens[0].depth
    words = [token.word if token.depth == depth else "" for token in tokens]
    for number, word in enumerate(words):
        if word == "ROWS" and words[number + 1 : number + 5] == ["BETWEEN", "CURRENT", "ROW", "AND"]:
            first = number + 5
            last = next((n for n in range(first, len(words)) if words[n] == "FOLLOWING"), None)
            if last is None or last == first or words[first] == "UNBOUNDED":
                return None
            if last == first + 1 and tokens[first].text.isdigit():
                return None
            return Span(tokens[first].start, tokens[last - 1].end)
    return None


def _list(tokens: list[Token], place: int, word: str, depth: int, text: str) -> tuple[list[list[Token]], int]:
    """The items of PARTITION BY or ORDER BY, if they stand here, and the place behind them."""
    if place >= len(tokens) or tokens[place].word != word:
        return [], place
    place += 2
    items: list[list[Token]] = [[]]
    while place < len(tokens):
        token = tokens[place]
        is_end = token.depth == depth and items[-1] and token.word in {"ORDER", "ROWS", "RANGE", "GROUPS"}
        if is_end or (token.depth == depth and items[-1] and _ends_list(tokens, place)):
            break
        if token.depth == depth and token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
        place += 1
    return items, place


def _ends_list(tokens: list[Token], place: int) -> bool:
    return tokens[place].word in _OF_PATTERNS and place + 1 < len(tokens) and _begins_clause(tokens, place)


def _text(tokens: list[Token], text: str) -> str:
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def _sort_item(tokens: list[Token], text: str) -> SortItem:
    nulls_first: bool | None = None
    if len(tokens) > 2 and tokens[-2].word == "NULLS" and tokens[-1].word in ("FIRST", "LAST"):
        nulls_first, tokens = tokens[-1].word == "FIRST", tokens[:-2]
    descending = len(tokens) > 1 and tokens[-1].word == "DESC"
    if len(tokens) > 1 and tokens[-1].word in ("ASC", "DESC"):
        tokens = tokens[:-1]
    return SortItem(_text(tokens, text), descending, nulls_first)


def _sort_text(item: SortItem) -> str:
    nulls = "" if item.nulls_first is None else " NULLS FIRST" if item.nulls_first else " NULLS LAST"
    return f"{item.expression}{' DESC' if item.descending else ''}{nulls}"


def inherited(window: NamedWindow, known: dict[str, NamedWindow], original: SourceText) -> NamedWindow:
    """The window with the keys of the one that it names, if it names one."""
    if window.base is None:
        return window
    place = original.locate(window.base_span)
    shown = printable(original.text[window.base_span.start : window.base_span.end])
    if window.base not in known:
        raise unknown_window(shown, known, original, window.base_span)
    base = known[window.base]
    if base.frame:
        raise AnalysisError(
            f"a window cannot inherit from '{shown}', which has a frame",
            place,
            f"Write OVER {shown} to use it as it is; keep PARTITION BY and ORDER BY in a window of their own.",
        )
    if window.partition_by:
        raise AnalysisError(
            f"a window that inherits from '{shown}' has its PARTITION BY from there", place, "Leave PARTITION BY out."
        )
    if window.order_by and base.order_by:
        raise AnalysisError(
            f"a window that inherits from '{shown}' has its ORDER BY from there", place, "Leave ORDER BY out."
        )
    return replace(window, partition_by=base.partition_by, order_by=window.order_by or base.order_by)


def unknown_window(shown: str, known: dict[str, NamedWindow], original: SourceText, span: Span) -> AnalysisError:
    names = sorted(known)
    has = f"Windows of this query: {listed(names)}." if names else "This query has no WINDOW clause."
    return AnalysisError(
        f"there is no window '{shown}'", original.locate(span), f"{has}{did_you_mean(shown.upper(), names)}"
    )
