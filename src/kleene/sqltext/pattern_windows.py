"""Row patterns in windows of a SQL text: a query block with such windows, replaced by its result.

The block is run in three steps. An inner query computes, for each row, every expression that is not over a pattern, in
a column of its own. Each window adds the measures that are called over it to these rows. An outer query puts the
columns together as the block says, and does what comes after windows: DISTINCT, QUALIFY, ORDER BY, LIMIT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kleene.errors import AnalysisError, UnsupportedError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.paths import mentions, path_of
from kleene.ir.query import Measure, QueryDefinition, SortKey
from kleene.lang.parameters import bind_clause
from kleene.source import Location, SourceText, Span
from kleene.sqltext.blocks import Block, block_around
from kleene.sqltext.common_tables import common_tables
from kleene.sqltext.constructs import Backend, Construct
from kleene.sqltext.mixed import Pieces, read_mixed, read_order, sql_name
from kleene.sqltext.statement import Excerpt, Statement
from kleene.sqltext.subqueries import WithoutSubqueries, check_subqueries
from kleene.sqltext.tokens import Token, tokens_of
from kleene.sqltext.window_calls import WindowCall, calls_of, is_measure_call
from kleene.sqltext.window_functions import as_measure, of_no_rows
from kleene.sqltext.window_list import NamedWindow, SortItem, end_of_window, is_pattern, windows_of

NAME = "a pattern in a window"


def first_pattern_window(statement: Statement, tokens: list[Token]) -> Construct | None:
    """The block with pattern windows that ends first."""
    blocks = {}
    for number in range(len(tokens) - 1):
        if _opens_window(tokens, number) or tokens[number].word == "OVER":
            block = block_around(tokens, number)
            if block is not None and (is_measure_call(block, number) or is_pattern(block, number)):
                blocks[block.first] = block
    if not blocks:
        return None
    block = min(blocks.values(), key=lambda one: one.span.end)
    own = tuple(Span(tokens[n].start, end_of_window(block, n, statement.text)) for n in _patterns_in(block))
    end = max([block.span.end, *(span.end for span in own)])
    return Construct(NAME, end, own, partial(_replaced, first=tokens[block.first].start))


def _opens_window(tokens: list[Token], number: int) -> bool:
    if tokens[number].text != "(" or number < 1:
        return False
    if tokens[number - 1].word == "OVER":
        return True
    return (
        tokens[number - 1].word == "AS"
        and number > 2
        and (tokens[number - 3].word == "WINDOW" or tokens[number - 3].text == ",")
    )


def _patterns_in(block: Block) -> Iterator[int]:
    for number in range(block.first, block.last):
        if _opens_window(block.tokens, number) and is_pattern(block, number):
            yield number


def _replaced(statement: Statement, backend: Backend, first: int) -> Statement:
    """The statement with a SELECT of the block's result in the place of the block."""
    tokens = tokens_of(statement.text)
    number = next(n for n, token in enumerate(tokens) if token.start == first)
    block = block_around(tokens, number)
    assert block is not None
    calls = calls_of(block, windows_of(block, statement), statement)
    frame = _Rewriting(statement, backend, block, calls).result()
    return statement.replaced(block.span, frame, "SELECT * FROM ")


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of the outer query: what it writes, and its name."""

    text: str
    name: str

    def __str__(self) -> str:
        return f"{self.text} AS {sql_name(self.name)}"


@dataclass(slots=True)
class _Rewriting:
    statement: Statement
    backend: Backend
    block: Block
    calls: list[WindowCall]
    pieces: Pieces = field(init=False)
    mentioned: list[str] = field(init=False)
    _stand_ins: dict[Span, str] = field(default_factory=dict)  # of calls, by where they stand

    def __post_init__(self) -> None:
        called = {call.window.span: call.window.definition for call in self.calls}
        self.mentioned = self._mentioned([definition for definition in called.values() if definition is not None])
        self.pieces = Pieces(self.statement.secret, {name.lower(): name for name in self.mentioned})

    def result(self) -> Any:
        before = list(common_tables(self.block.tokens, self.block.span.start))
        for inside, _ in self._subqueries():
            check_subqueries(inside, self.statement, self.backend, before)
        definitions = self._definitions()
        items = [item for span in self._item_spans() for item in self._items(span)]
        names = {item.name.lower(): sql_name(item.name) for item in items}
        text = f"SELECT {'DISTINCT ' * self._is_distinct}{', '.join(map(str, items))} FROM {sql_name(self._matched)}"
        if (qualify := self._clause("QUALIFY", 1)) is not None:
            condition = read_mixed(self._text(qualify), self._locate(qualify)).tree
            text += f" WHERE {self.pieces.outer(condition, {item.name.lower(): item.text for item in items})}"
        if (order := self._clause("ORDER", 2)) is not None:
            keys = [self.pieces.ordered(key, names) for key in read_order(self._text(order), self._locate(order))]
            text += f" ORDER BY {', '.join(keys)}"
        text += self._ending()
        frame = self._inner()
        for definition, location in definitions:
            frame = self.backend.matches(definition, frame, location)
        return self._run(text, frame)

    # --- the calls ---------------------------------------------------------------------------------------------------

    def _definitions(self) -> list[tuple[QueryDefinition, Location | None]]:
        """The patterns that are called, with the measures that are; each call gets a stand-in for its value."""
        found: dict[Span, tuple[NamedWindow, dict[str, Measure]]] = {}
        for call in self.calls:
            if call.window.definition is not None:
                _, measures = found.setdefault(call.window.span, (call.window, {}))
                self._add_measure(call, measures)
        return [self._definition(window, tuple(measures.values())) for window, measures in found.values()]

    def _add_measure(self, call: WindowCall, measures: dict[str, Measure]) -> None:
        location = self._locate(call.name_span)
        if isinstance(call.called, Measure):
            expression = call.called.expression
            key = f"measure {call.called.span.start}"
        else:
            expression = as_measure(call.called, self._column, location)
            key = f"function {call.text}"
        if key not in measures:
            name = f"kleene_measure{len(self.pieces.calls)}_{self.statement.secret}"
            measures[key] = Measure(name, expression, call.name_span)
        name = measures[key].name
        written = sql_name(name) if isinstance(call.called, Measure) else of_no_rows(call.called, name)
        self._stand_ins[call.span] = self.pieces.stand_in(written)

    def _definition(
        self, window: NamedWindow, measures: tuple[Measure, ...]
    ) -> tuple[QueryDefinition, Location | None]:
        definition = window.definition
        assert definition is not None
        assert definition.frame is not None
        frame = definition.frame
        if window.frame_end is not None:
            frame = replace(frame, end=self._attribute(window.frame_end, frame.span))
        changed = replace(
            definition,
            partition_by=tuple(self._attribute(text, window.span) for text in window.partition_by),
            order_by=tuple(
                SortKey(self._attribute(item.expression, window.span), item.descending, item.nulls_first)
                for item in window.order_by or self._usual_order()
            ),
            measures=measures,
            frame=frame,
        )
        return bind_clause(changed, self.statement.args), self._locate(window.span)

    def _usual_order(self) -> list[SortItem]:
        """The order of a window that says none: by all columns of the input, unless its rows have an order."""
        if self.block.clause("GROUP") is not None:
            return []
        columns = self.backend.order_of(self._run_plain(f"SELECT * {self._rows('WHERE')} LIMIT 0"))
        return [SortItem(sql_name(name), False, False) for name in columns if columns.count(name) == 1]

    def _attribute(self, text: str, span: Span) -> ir.Attribute:
        return ir.Attribute(None, self._column(text), span=span, name_span=span)

    def _column(self, text: str) -> str:
        return self.pieces.add(self._with_parameters(text))

    # --- texts -------------------------------------------------------------------------------------------------------

    def _locate(self, span: Span) -> Location | None:
        return self.statement.original.locate(span)

    def _text(self, span: Span) -> str:
        """A stretch of the block, with stand-ins for calls over patterns, and plain windows written out."""
        text, position, parts = self.statement.text, span.start, []
        for call in sorted(self.calls, key=lambda one: one.span.start):
            if span.start <= call.span.start and call.span.end <= span.end and call.span.start >= position:
                written = f"{call.text} OVER ({call.window.text})"
                if call.window.definition is not None:
                    written = sql_name(self._stand_ins[call.span])
                parts += [self._with_parameters(text[position : call.span.start]), written]
                position = call.span.end
        return "".join([*parts, self._with_parameters(text[position : span.end])])

    def _with_parameters(self, text: str) -> str:
        """The text with names for parameters that are written as ?, since parts of the block change places."""
        args = self.statement.args
        if not isinstance(args, list) or "?" not in text:
            return text
        raise UnsupportedError(
            "parameters written as ? cannot stand in a query with a pattern in a window",
            self._locate(self.block.span),
            "Name them: write :name, and give args as a dict.",
        )

    def _clause(self, word: str, words: int) -> Span | None:
        """What stands behind the words of a clause."""
        number = self.block.clause(word)
        return None if number is None else self._span(number + words, self._end_of(number))

    def _span(self, first: int, last: int) -> Span:
        tokens = self.block.tokens
        return Span(tokens[first].start, tokens[last - 1].end)

    def _end_of(self, number: int) -> int:
        """The number of the token behind the clause."""
        block = self.block
        return next((n for n in range(number + 1, block.last) if block.begins_clause(n)), block.last)

    # --- the SELECT list ---------------------------------------------------------------------------------------------

    @property
    def _is_distinct(self) -> bool:
        return self.block.tokens[self.block.first + 1].word == "DISTINCT"

    def _item_spans(self) -> list[Span]:
        block = self.block
        first = block.first + (2 if block.tokens[block.first + 1].word in ("DISTINCT", "ALL") else 1)
        last = self._end_of(block.first)
        commas = [n for n in range(first, last) if block.tokens[n].text == "," and block.tokens[n].depth == block.depth]
        return [self._span(a, b) for a, b in zip([first, *(n + 1 for n in commas)], [*commas, last], strict=True)]

    def _items(self, span: Span) -> list[_Item]:
        calls = [call for call in self.calls if span.start <= call.span.start < span.end]
        over_patterns = [call for call in calls if call.window.definition is not None]
        text = self._text(span)
        if over_patterns:
            mixed = read_mixed(text, self._locate(span))
            return [_Item(self.pieces.outer(mixed.tree, {}), mixed.alias or self._name(over_patterns, span))]
        names = self.backend.columns(self._run_plain(f"SELECT {text} {self._rows()} LIMIT 0"))
        columns = self.pieces.add_all(text, len(names))
        return [_Item(sql_name(column), name) for column, name in zip(columns, names, strict=True)]

    def _name(self, calls: list[WindowCall], span: Span) -> str:
        """The name of an item that was given none: that of the measure, or its text."""
        [call] = calls if len(calls) == 1 else [None]
        if call is not None and isinstance(call.called, Measure) and call.span == span:
            return call.called.name
        return " ".join(self.statement.text[span.start : span.end].split())

    # --- the inner and the outer query -----------------------------------------------------------------------------

    def _rows(self, until: str = "HAVING") -> str:
        """FROM and what follows it, up to the clause."""
        words = ["FROM", "WHERE", "GROUP", "HAVING"]
        numbers = [self.block.clause(word) for word in words[: words.index(until) + 1]]
        there = [number for number in numbers if number is not None]
        return " ".join(self._text(self._span(number, self._end_of(number))) for number in there)

    def _inner(self) -> Any:
        texts = [*self.pieces.texts(), *map(sql_name, self.mentioned)]
        names = [*self.pieces.columns(), *self.mentioned]
        tables = []
        for inside, secret in self._subqueries():
            tables += [
                (table, self.statement.text[one.select.start : one.select.end]) for table, one in inside.tables(secret)
            ]
            texts += [one.parts(table) for table, one in inside.tables(secret)]
            names += [one.column for one in inside.subqueries]
        if not texts:
            texts, names = ["1"], [f"kleene_nothing_{self.statement.secret}"]
        renamed = f"kleene_rows_{self.statement.secret} ({', '.join(map(sql_name, names))})"
        own = ", ".join(f"{table} AS ({self._with_parameters(select)})" for table, select in tables)
        query = f"SELECT * FROM (SELECT {', '.join(texts)} {self._rows()}) AS {renamed}"
        return self._run_plain(f"WITH {own} {query}" if own else query)

    def _subqueries(self) -> list[tuple[WithoutSubqueries, str]]:
        """The subqueries of each window that is called, and what makes the names of their tables its own."""
        windows = {call.window.span: call.window for call in self.calls}
        found = [(one.inside, f"{one.span.start}_{self.statement.secret}") for one in windows.values()]
        return [(inside, secret) for inside, secret in found if inside is not None and inside.subqueries]

    def _run_plain(self, text: str) -> Any:
        """A query in the place of the block: it may name the common tables before it."""
        for definitions in reversed(list(common_tables(self.block.tokens, self.block.span.start))):
            before = self._with_parameters(self.statement.text[definitions.start : definitions.end])
            text = f"{before} SELECT * FROM ({text})"
        return self._run(text)

    def _run(self, text: str, frame: Any = None) -> Any:
        statement = self.statement
        frames = statement.frames if frame is None else {**statement.frames, self._matched: frame}
        self.backend.check(text, tokens_of(text), SourceText(text), None)
        args = statement.args if isinstance(statement.args, dict) else None
        return self.backend.table(Excerpt(text, args, frames, statement.original, ((0, -1),)))

    @property
    def _matched(self) -> str:
        """The name of the rows with their measures."""
        return f"kleene_matched{len(self.statement.frames)}_{self.statement.secret}"

    def _ending(self) -> str:
        """What stands behind ORDER BY: it goes on as it is."""
        words = ("SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
        numbers = [number for word in words if (number := self.block.clause(word)) is not None]
        if not numbers:
            return ""
        return " " + self._text(self._span(min(numbers), self.block.last))

    # --- the columns that patterns name ----------------------------------------------------------------------------

    def _mentioned(self, definitions: list[QueryDefinition]) -> list[str]:
        """The columns of the input that conditions and measures name, each once."""
        named = [m for one in definitions for m in mentions(replace(one, frame=None)) if m.name not in one.hidden]
        if not named:
            return []
        columns = self.backend.columns(self._run_plain(f"SELECT * {self._rows('WHERE')} LIMIT 0"))
        grouped = self._grouped()
        found: dict[str, None] = {}
        for mention in named:
            path = path_of(mention.name)
            name = mention.name if path is None or mention.name in columns else path.column
            alike = [column for column in columns if column == name or (not mention.exact and _same(column, name))]
            self._check(name, path is not None, alike, columns, mention.span)
            if grouped is not None and alike[0].lower() not in grouped:
                raise AnalysisError(
                    f"'{printable(name)}' is not a grouping column: with GROUP BY, the rows of a window are the groups",
                    self._locate(mention.span),
                    "Put the GROUP BY into a subquery, and name what it computes.",
                )
            found[alike[0]] = None
        return list(found)

    def _check(self, name: str, has_path: bool, alike: list[str], columns: list[str], span: Span) -> None:
        if len(alike) > 1:
            raise AnalysisError(
                f"'{printable(name)}' is ambiguous: several tables of FROM have such a column",
                self._locate(span),
                "Rename one of them in a subquery.",
            )
        if not alike:
            only = " Only pattern variables stand before a column here, not tables." if has_path else ""
            raise AnalysisError(
                f"the input of the window has no column '{printable(name)}'",
                self._locate(span),
                f"Columns: {listed(columns)}.{did_you_mean(name, columns)}{only}",
            )

    def _grouped(self) -> set[str] | None:
        """The columns behind GROUP BY; None if there is none."""
        number = self.block.clause("GROUP")
        if number is None:
            return None
        tokens = self.block.tokens[number + 2 : self._end_of(number)]
        return {token.name for token in tokens}


def _same(column: str, name: str) -> bool:
    return column.lower() == name.lower()
