"""The plain interpreter as an engine, and the engine of queries that nothing can match.

The interpreter needs the whole input: it holds what it is fed, and answers when the last piece is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.automaton.compile import automaton_of
from kleene.automaton.model import Automaton
from kleene.engine import reference
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.compiled.meter import Meter
from kleene.engine.events import Events
from kleene.engine.matches import FoundMatches, flat_matches
from kleene.engine.protocol import Held, Time
from kleene.engine.row_output import OutputRow
from kleene.engine.rows import row_parts
from kleene.engine.saved_parts import SavedParts
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class FoundOutputRows:
    """Rows of the output of a row pattern, in its order."""

    table: pa.Table
    rows: Sequence[OutputRow]
    is_settled: bool


@dataclass(frozen=True, slots=True)
class Interpreter:
    plan: Plan

    @property
    def automaton(self) -> Automaton | None:
        """What the interpreter means; it runs without one."""
        return automaton_of(self.plan)

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> InterpreterProgress:
        return InterpreterProgress(self.plan, Budget() if budget is None else budget)


class InterpreterProgress:
    """The events so far."""

    def __init__(self, plan: Plan, budget: Budget) -> None:
        self.plan, self.budget = plan, budget
        self._events: list[pa.Table] = []

    def feed(
        self, events: pa.Table, now: Time | None = None, is_last: bool = False
    ) -> Iterator[FoundMatches | FoundOutputRows]:
        self._events.append(events)
        if is_last:
            yield from self._found(events if len(self._events) == 1 else pa.concat_tables(self._events))

    def _found(self, table: pa.Table) -> Iterator[FoundMatches | FoundOutputRows]:
        query, plan = self.plan.query, self.plan
        if isinstance(query, AnalyzedQuery):
            assert query.schema is not None
            events, components = Events(table, query.schema, query.order_by), len(query.components)
            for part in reference.match_parts(query, events, plan.format, plan.run_limit, self.budget):
                yield FoundMatches(table, flat_matches(part, components), is_settled=not query.partition_by)
            return
        held: Sequence[OutputRow] | None = None
        for rows in row_parts(query, table, plan.run_limit, self.budget):
            if held is not None:
                yield FoundOutputRows(table, held, query.frame is not None)
            held = rows
        if held is not None:
            yield FoundOutputRows(table, held, True)

    def held(self) -> Held:
        rows, size = sum(piece.num_rows for piece in self._events), sum(table_bytes(piece) for piece in self._events)
        return Held(0, rows, size, None, not rows)

    def saved(self) -> dict[str, Any]:
        return {"kept_table": pa.concat_tables(self._events).combine_chunks() if self._events else None}

    def load(self, parts: SavedParts) -> None:
        table = parts.table("kept_table")
        self._events = [] if table is None else [table]


class NoMatchEngine:
    """For a query without matches: nothing is kept of a stream."""

    automaton = None

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> NoMatchProgress:
        return NoMatchProgress()


class NoMatchProgress:
    budget = Budget()

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[FoundMatches]:
        return iter(())

    def held(self) -> Held:
        return Held(0, 0, 0, None, True)

    def saved(self) -> dict[str, Any]:
        return {}

    def load(self, parts: SavedParts) -> None:
        pass
