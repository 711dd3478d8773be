"""Subqueries in MEASURES and DEFINE: each is computed once, as a column that is added to the rows of the pattern.

In the clause a short name takes the place of a subquery, and what is left is as long as it was, so that offsets stay
those of the user's text. What a name stands for is said by `HiddenColumn`; what the column is computed from, by
`Subquery.parts`, which is SQL in the dialect of all our texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kleene.errors import AnalysisError, ExecutionError, QuerySyntaxError
from kleene.lang.match_recognize import HiddenColumn
from kleene.source import Span
from kleene.sqltext.constructs import Backend
from kleene.sqltext.statement import Statement, blank
from kleene.sqltext.tokens import Token, closing, tokens_of

_MATCH_RECOGNIZE = "MATCH_RECOGNIZE"
# Inside a clause strings are SQL's: a quote is doubled, and a backslash is a backslash.
_WORDS = re.compile(
    r"""(?P<skipped>'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\s+)|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+|.""", re.DOTALL
)
_BEFORE_OPERAND = {"AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "AS", "MEASURES", "(", ","}
_HINT = "A subquery is computed once, before matching: it may name neither variables nor columns of the rows."


def too_many_rows() -> ExecutionError:
    """What is told where a subquery that stands for a value has several rows, which only running it shows."""
    return ExecutionError(
        "a subquery in the place of a value gives more than one row", hint="Aggregate its rows, or add LIMIT 1."
    )


@dataclass(frozen=True, slots=True)
class Subquery:
    """A SELECT in the statement, and the column that its value is in.

    `kind` is "value", "exists" or "list"; with an operand, the column says whether the operand is in the list.
    """

    select: Span
    kind: str
    column: str
    operand: str | None = None

    def parts(self, name: str) -> str:
        """The expression of the column; `name` is that of a common table with the rows of the subquery."""
        if self.kind == "value":
            return f"(SELECT * FROM {name})"
        if self.kind == "exists":
            return f"(SELECT count(*) > 0 FROM (SELECT 1 FROM {name} LIMIT 1))"
        # Aggregates drop NULLs, but a struct that holds one is none.
        rows = f"(SELECT DISTINCT v FROM {name} AS t(v))"
        values = f"(SELECT transform(collect_list(named_struct('v', v)), x -> x.v) FROM {rows})"
        if self.operand is None:
            return values
        quoted = self.operand.replace("`", "``")
        return f"CASE WHEN (SELECT count(*) FROM {name}) = 0 THEN false ELSE array_contains({values}, `{quoted}`) END"


@dataclass(frozen=True, slots=True)
class WithoutSubqueries:
    """A text up to the end of a clause, with short names for the subqueries of the clause, and what they stand for."""

    text: str
    hidden: dict[str, HiddenColumn] = field(default_factory=dict)
    subqueries: tuple[Subquery, ...] = ()

    def only_plain(self, statement: Statement, clause: Span) -> Statement:
        """The statement with all of a clause made blank that is not SQL: its subqueries stay."""
        inside = [subquery.select for subquery in self.subqueries]
        begins, ends = [clause.start, *(span.end for span in inside)], [*(span.start for span in inside), clause.end]
        return statement.without(Span(begin, end) for begin, end in zip(begins, ends, strict=True))

    def common_tables(self, secret: str) -> list[str | Span]:
        """WITH …: the rows of each subquery under a name; nothing if there are none."""
        parts: list[str | Span] = []
        for number, subquery in enumerate(self.subqueries):
            parts += [f"{', ' if number else 'WITH '}{_table(number, secret)} AS (", subquery.select, ")"]
        return [*parts, " "] if parts else []

    def tables(self, secret: str) -> list[tuple[str, Subquery]]:
        """Each subquery with the name of the common table that has its rows."""
        return [(_table(number, secret), subquery) for number, subquery in enumerate(self.subqueries)]

    def columns(self, secret: str) -> str:
        """What a SELECT list has besides: a column for each subquery."""
        found = enumerate(self.subqueries)
        return "".join(f", {one.parts(_table(number, secret))} AS `{one.column}`" for number, one in found)


def _table(number: int, secret: str) -> str:
    return f"`kleene_subquery{number}_{secret}`"


def without_subqueries(statement: Statement, clause: Span, columns: Sequence[str] = ()) -> WithoutSubqueries:
    """The clause with its subqueries taken out; `columns` are those of its rows, as far as they are known.

    Where the value before IN is one of these columns, the answer of IN is the column, and not the list.
    """
    text = statement.text[: clause.end]
    found = list(_found(statement, clause))
    if not found:
        return WithoutSubqueries(text)
    words = {word.text for word in _words(text, clause.start)}
    names = (name for number in range(len(words) + len(found)) if (name := f"_{number}") not in words)
    variables = _variables(_words(text, clause.start))
    known = {column.lower(): column for column in columns}
    hidden: dict[str, HiddenColumn] = {}
    subqueries: list[Subquery] = []
    for place in found:
        name = next(names)
        column = f"kleene_value{len(subqueries)}_{clause.start}_{statement.secret}"
        operand = place.operand(variables, known)
        subqueries.append(Subquery(place.select, place.kind, column, None if operand is None else operand.column))
        is_list = place.kind == "list" and operand is None
        hidden[name] = HiddenColumn(column, is_list, operand is not None, place.stretch)
        if operand is None:
            stretch, written = place.stretch, f"({name})" if place.kind != "exists" else name
        else:
            stretch = Span(operand.start, place.stretch.end)
            written = f"{operand.prefix}{name}"
            written = f"(NOT {written})" if place.is_negated else written
        text = text[: stretch.start] + _as_long(written, text[stretch.start : stretch.end]) + text[stretch.end :]
    return WithoutSubqueries(text, hidden, tuple(subqueries))


def check_subqueries(found: WithoutSubqueries, statement: Statement, backend: Backend, before: Sequence[Span]) -> None:
    """An error if a subquery may not be run, or not alone. `before` are the common tables that it may name."""
    only = found.only_plain(statement, Span(0, len(statement.text))).text
    backend.check(only, tokens_of(only), statement.original, None)
    for subquery in found.subqueries:
        parts: list[str | Span] = [subquery.select]
        for definitions in reversed(before):
            parts = [definitions, " SELECT * FROM (", *parts, ")"]
        location = statement.original.locate(subquery.select)
        count = backend.count_columns(statement.excerpt(*parts), location, _HINT)
        if count != 1 and subquery.kind != "exists":
            raise AnalysisError(
                f"a subquery gives one value, but this one has {count} columns",
                location,
                "Name one column in its SELECT list.",
            )


# --- where they stand


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        return self.text.upper()

    @property
    def is_name(self) -> bool:
        return self.text[0] in '"`' or bool(re.match(r"[^\W\d]", self.text))

    @property
    def name(self) -> str:
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote) if quote in '"`' else self.text

    @property
    def folded(self) -> str:
        return self.name if self.text[0] in '"`' else self.upper


@dataclass(frozen=True, slots=True)
class _Operand:
    """A column before IN: its name, where it begins, and the variable in front of it with its dot."""

    column: str
    start: int
    prefix: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A subquery: its SELECT, the stretch of the clause that it takes with its words, and the words before."""

    select: Span
    kind: str
    stretch: Span
    before: tuple[_Word, ...] = ()
    is_negated: bool = False

    def operand(self, variables: set[str], columns: dict[str, str]) -> _Operand | None:
        """The column before IN, where nothing else is."""
        if self.kind != "list" or not self.before:
            return None
        *earlier, last = self.before
        prefix = ""
        start = last.start
        if len(earlier) > 1 and earlier[-1].text == "." and earlier[-2].folded in variables:
            prefix, start = f"{earlier[-2].text}.", earlier[-2].start
            earlier = earlier[:-2]
        is_alone = bool(earlier) and earlier[-1].upper in _BEFORE_OPERAND
        column = columns.get(last.name.lower()) if last.is_name else None
        if not is_alone or column is None or (last.text[0] in '"`' and column != last.name):
            return None
        return _Operand(column, start, prefix)


def _words(text: str, position: int) -> list[_Word]:
    return [_Word(match[0], match.start()) for match in _WORDS.finditer(text, position) if match.lastgroup != "skipped"]


def _found(statement: Statement, clause: Span) -> Iterator[_Place]:
    text = statement.text[: clause.end]
    words, number = _words(text, clause.start), 0
    while number < len(words) - 1:
        if words[number].text != "(" or words[number + 1].upper not in ("SELECT", "WITH"):
            number += 1
            continue
        tokens = tokens_of(text[words[number].start :])
        close = closing(tokens, 0)
        begin = words[number].start
        if close is None:
            raise QuerySyntaxError(
                "the parenthesis of the subquery is never closed",
                statement.original.locate(Span(begin, begin + 1)),
                "Close it with ')'.",
            )
        end = begin + tokens[close].end
        select = Span(begin + 1, end - 1)
        _refuse_patterns(statement, tokens[1:close], begin)
        yield _place(words[:number], select, Span(begin, end))
        number = next((n for n in range(number, len(words)) if words[n].start >= end), len(words))


def _place(before: list[_Word], select: Span, stretch: Span) -> _Place:
    last = before[-1].upper if before else ""
    if last == "EXISTS":
        return _Place(select, "exists", Span(before[-1].start, stretch.end))
    if last != "IN":
        return _Place(select, "value", stretch)
    is_negated = len(before) > 1 and before[-2].upper == "NOT"
    return _Place(select, "list", stretch, tuple(before[: -2 if is_negated else -1][-4:]), is_negated)


def _refuse_patterns(statement: Statement, tokens: list[Token], begin: int) -> None:
    for number, token in enumerate(tokens):
        follows = tokens[number + 1].text if number + 1 < len(tokens) else ""
        is_clause = token.word == _MATCH_RECOGNIZE and follows == "("
        if is_clause or token.name in statement.frames:
            start = begin + token.start
            raise AnalysisError(
                "row patterns do not nest: a subquery of MEASURES or DEFINE has none of its own",
                statement.original.locate(Span(start, start + len(token.text))),
                "Find the inner matches first, and name them as a table.",
            )


def _variables(words: list[_Word]) -> set[str]:
    """The names that stand in PATTERN ( … )."""
    for number, word in enumerate(words[:-1]):
        if word.upper == "PATTERN" and words[number + 1].text == "(":
            depth, found = 0, set[str]()
            for inner in words[number + 1 :]:
                depth += (inner.text == "(") - (inner.text == ")")
                if not depth:
                    return found
                if inner.is_name:
                    found.add(inner.folded)
    return set()


def _as_long(text: str, replaced: str) -> str:
    return text + blank(replaced)[len(text) :]
