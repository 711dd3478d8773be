"""What a query block computes over its windows: calls of measures, `low OVER w`, and of functions, `sum(x) OVER w`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from kleene.errors import AnalysisError, listed, printable
from kleene.ir.pattern import variables_in
from kleene.ir.query import Measure
from kleene.source import SourceText, Span
from kleene.sqltext.blocks import CLAUSES, SET_OPERATIONS, Block
from kleene.sqltext.statement import Statement
from kleene.sqltext.tokens import Token
from kleene.sqltext.window_list import (
    NamedWindow,
    end_of_window,
    folded_name,
    inherited,
    measure_name,
    read_window,
    unknown_window,
)

_TOO_EARLY = frozenset({"FROM", "WHERE", "GROUP", "HAVING"})
_WITHOUT_FRAME = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"})


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """`name([DISTINCT] arguments [ORDER BY keys]) [WITHIN GROUP (ORDER BY keys)] [FILTER (WHERE condition)] …`."""

    name: str
    is_distinct: bool
    arguments: tuple[str, ...]
    order_by: str
    condition: str
    ignores_nulls: bool


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A call in the text, and its window. It calls a measure of the window, or a function."""

    span: Span
    window: NamedWindow
    called: Measure | FunctionCall
    name_span: Span
    text: str


def calls_of(block: Block, windows: dict[str, NamedWindow], statement: Statement) -> list[WindowCall]:
    """The calls over windows of the block, those over plain ones included: the latter as functions, as written."""
    found: list[WindowCall] = []
    for number in range(block.first, block.last):
        if block.tokens[number].word == "OVER" and block.owns(number) and _is_call(block, number):
            found.append(_call(block, number, windows, statement))
    _check_apart(found, statement.original)
    return found


def _is_call(block: Block, number: int) -> bool:
    """OVER is no reserved word: `SELECT c over FROM t` gives c another name."""
    tokens = block.tokens
    if number + 1 >= block.last or number == block.first:
        return False
    after = tokens[number + 1]
    if after.text == "(":
        return True
    is_name = after.text[0] in '`"' or after.text[0].isidentifier()
    return is_name and after.word not in CLAUSES | SET_OPERATIONS and tokens[number - 1].text not in (",", "AS", "(")


def is_measure_call(block: Block, number: int) -> bool:
    """Whether the token is the OVER of `low OVER w`."""
    if block.tokens[number].word != "OVER" or not block.owns(number) or not _is_call(block, number):
        return False
    before = block.tokens[number - 1]
    is_name = before.text[0] in '`"' or before.text[0].isidentifier()
    return is_name and before.word not in {"NULLS", "SELECT", "DISTINCT", "ALL", "AS", *CLAUSES}


def _call(block: Block, number: int, windows: dict[str, NamedWindow], statement: Statement) -> WindowCall:
    original, text = statement.original, statement.text
    tokens, after = block.tokens, block.tokens[number + 1]
    if after.text == "(":
        window = inherited(read_window(block, number + 1, statement), windows, original)
        end = end_of_window(block, number + 1, text)
    else:
        if folded_name(after) not in windows:
            raise unknown_window(printable(after.text), windows, original, Span(after.start, after.end))
        window, end = windows[folded_name(after)], after.end
    first, call = _called(block, number, text)
    name = tokens[first]
    span, name_span = Span(name.start, end), Span(name.start, name.end)
    if window.definition is None:
        if isinstance(call, FunctionCall):
            return WindowCall(span, window, call, name_span, text[name.start : tokens[number - 1].end])
        raise AnalysisError(
            f"'{printable(name.text)}' is called as a measure, but the window has no pattern",
            original.locate(name_span),
            "Call a function over it, such as count(*) OVER w; or give it MEASURES and a PATTERN.",
        )
    clause = block.clause_of(number)
    if clause in _TOO_EARLY:
        raise AnalysisError(
            f"a window is computed after {'JOIN' if clause == 'FROM' else clause}, so nothing over it can stand there",
            original.locate(name_span),
            "Compute it in a subquery, or use QUALIFY.",
        )
    called = call if isinstance(call, FunctionCall) else _measure(name, window, original)
    if isinstance(called, FunctionCall):
        _check_arguments(tokens[first + 1 : number], window, original)
    if isinstance(called, FunctionCall) and called.name in _WITHOUT_FRAME:
        raise AnalysisError(
            f"{called.name} takes no frame, so it cannot be computed over a match",
            original.locate(name_span),
            "Use it over a window without a PATTERN.",
        )
    return WindowCall(span, window, called, name_span, text[name.start : tokens[number - 1].end])


def _check_arguments(tokens: list[Token], window: NamedWindow, original: SourceText) -> None:
    """A function is computed of rows, which know nothing of the match."""
    assert window.definition is not None
    of_pattern = {variable.name for variable in variables_in(window.definition.pattern)}
    of_pattern |= {subset.name for subset in window.definition.subsets}
    for token, after in itertools.pairwise(tokens):
        is_variable = after.text == "." and token.text[0].isidentifier() and folded_name(token) in of_pattern
        is_of_match = after.text == "(" and token.word in ("CLASSIFIER", "MATCH_NUMBER", "PREV", "NEXT")
        if is_variable or is_of_match:
            raise AnalysisError(
                f"'{printable(token.text)}' is about the match, but a function over a window is about rows alone",
                original.locate(Span(token.start, token.end)),
                "Make it a measure of the window: MEASURES … AS m, and m OVER w.",
            )


def _measure(name: Token, window: NamedWindow, original: SourceText) -> Measure:
    assert window.definition is not None
    measures = window.definition.measures or ()
    for measure in measures:
        if measure_name(measure, original) == folded_name(name):
            return measure
    names = [measure.name for measure in measures]
    raise AnalysisError(
        f"the window has no measure '{printable(name.text)}'",
        original.locate(Span(name.start, name.end)),
        f"Its measures: {listed(names)}." if names else "It has no MEASURES.",
    )


def _called(block: Block, over: int, text: str) -> tuple[int, FunctionCall | None]:
    """The number of the token of the name that is called before OVER, and the call, if it is one of a function."""
    tokens, number = block.tokens, over - 1
    ignores_nulls, condition, order_by = False, "", ""
    if tokens[number].word == "NULLS" and tokens[number - 1].word in ("IGNORE", "RESPECT"):
        ignores_nulls = tokens[number - 1].word == "IGNORE"
        number -= 2
    if tokens[number].text != ")":
        return number, None
    while True:
        opening = _opening(tokens, number)
        before = tokens[opening - 1].word
        if before == "FILTER":
            condition = text[tokens[opening + 2].start : tokens[number - 1].end]
            number = opening - 2
        elif before == "GROUP" and tokens[opening - 2].word == "WITHIN":
            order_by = text[tokens[opening + 3].start : tokens[number - 1].end]
            number = opening - 3
        else:
            break
        if tokens[number].word == "NULLS" and tokens[number - 1].word in ("IGNORE", "RESPECT"):
            ignores_nulls = tokens[number - 1].word == "IGNORE"
            number -= 2
    name, arguments = tokens[opening - 1], tokens[opening + 1 : number]
    is_distinct = bool(arguments) and arguments[0].word == "DISTINCT"
    parts, own_order = _arguments(arguments[is_distinct:], text)
    call = FunctionCall(name.name, is_distinct, parts, order_by or own_order, condition, ignores_nulls)
    return opening - 1, call


def _opening(tokens: list[Token], number: int) -> int:
    depth = tokens[number].depth
    return next(n for n in range(number - 1, -1, -1) if tokens[n].text == "(" and tokens[n].depth == depth)


def _arguments(tokens: list[Token], text: str) -> tuple[tuple[str, ...], str]:
    """The texts of the arguments, and of the keys behind ORDER BY among them."""
    if not tokens:
        return (), ""
    depth = min(token.depth for token in tokens)
    items: list[list[Token]] = [[]]
    for number, token in enumerate(tokens):
        if token.depth == depth and token.word == "ORDER" and tokens[number + 1 : number + 2] and items[-1]:
            keys = tokens[number + 2 :]
            return _texts(items, text), text[keys[0].start : keys[-1].end] if keys else ""
        if token.depth == depth and token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
    return _texts(items, text), ""


def _texts(items: list[list[Token]], text: str) -> tuple[str, ...]:
    return tuple(text[item[0].start : item[-1].end] for item in items if item)


def _check_apart(calls: list[WindowCall], original: SourceText) -> None:
    """Windows do not nest."""
    for call in calls:
        if call.window.definition is None:
            continue
        for other in calls:
            if other is not call and other.span.start <= call.span.start and call.span.end <= other.span.end:
                raise AnalysisError(
                    "a window cannot be used inside of another's call, keys or frame",
                    original.locate(call.name_span),
                    "Compute the inner one in a subquery.",
                )
            if other is not call and call.span.start <= other.span.start and other.span.end <= call.span.end:
                raise AnalysisError(
                    "a window cannot be used inside of another's call, keys or frame",
                    original.locate(other.name_span),
                    "Compute the inner one in a subquery.",
                )
