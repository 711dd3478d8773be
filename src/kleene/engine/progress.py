"""A query on its way through a stream, in process: events go in piece by piece, matches come out as they complete.

Whatever the pieces, the matches are those of the whole. What is held between pieces is bounded by the window, or by the
matches that are open; it can be saved as bytes at any time, and restored.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.budget import Budget
from kleene.engine.choice import Choice, choose
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.run_engine import RunEngine
from kleene.engine.interpreter import Interpreter
from kleene.engine.match_order import RowOrder
from kleene.engine.protocol import Held, Progress, Time
from kleene.engine.results import ResultBatch, RowWriter, in_output_order
from kleene.engine.row_timeouts import check_piece_by_piece
from kleene.engine.rows import check_follows
from kleene.engine.run import measures_of, result_schema, timeouts_of
from kleene.engine.saved_parts import SavedParts, require
from kleene.engine.snapshot import pack, unpack
from kleene.errors import ExecutionError, SchemaError, SnapshotError, UnsupportedError, listed, printable
from kleene.ir.options import Selection, Strategy, Timeouts
from kleene.ir.pattern import has_anchor, longest
from kleene.ir.row_text import row_query_text
from kleene.ir.steps_text import steps_text
from kleene.ir.text import query_text
from kleene.plan.plan import Plan


class PreparedQuery:
    """A query made ready to go through streams: what all its streams share, which takes some time to make."""

    def __init__(self, plan: Plan, columns: pa.Schema, sort_columns: Sequence[str] = ()) -> None:
        self.plan, self.columns, self.sort_columns = plan, columns, tuple(sort_columns)
        self.choice = _checked_choice(plan)
        self.measures = measures_of(plan, self.choice)
        self.fingerprint = self._fingerprint()

    def started(self) -> Progress:
        """An empty progress of the engine."""
        return self.choice.engine.start(Budget(), Meter())

    def _fingerprint(self) -> str:
        """What a snapshot must have been made with."""
        query, plan = self.plan.query, self.plan
        text = _text(query)
        order: Any = query.order_by
        operators = "" if plan.pipeline is None else str(plan.pipeline)
        said = [text, str(order), str(self.sort_columns), plan.format.value, operators]
        said += ["compressed"] if plan.mode == "compressed" else []
        said += [] if plan.timeouts is Timeouts.NONE else [plan.timeouts.value]
        said += [str(self.columns), str(query.schema)]
        said += [] if query.definition.grouping is None else [str(query.definition.grouping)]
        return hashlib.sha256("\x00".join(said).encode()).hexdigest()


def _text(query: AnalyzedQuery | AnalyzedRowPattern) -> str:
    if isinstance(query, AnalyzedSteps):
        return steps_text(query.definition)
    is_sase = isinstance(query, AnalyzedQuery)
    return query_text(query.definition) if is_sase else row_query_text(query.definition)


class CheckedProgress:
    """Feed it tables of events, each in order and later than the one before; it gives back tables of matches."""

    def __init__(self, query: PreparedQuery) -> None:
        self._query, self._plan, self._columns = query, query.plan, query.columns
        self._engine = query.started()
        self._timeouts = timeouts_of(query.plan)
        self._is_finished = False
        self._last: pa.Table | None = None  # the event that came last
        self._feeding = threading.Lock()

    def feed(self, table: pa.Table, is_last: bool = False) -> pa.Table:
        """The matches that can be given out now, in output order. After the last piece there is nothing to feed."""
        with self._alone():
            return self._fed(table, is_last)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time: were another to wait, the order of the events would be a matter of chance."""
        if not self._feeding.acquire(blocking=False):
            raise ExecutionError(
                "the stream is being fed by another thread",
                hint="Feed it from one thread, which gives the events their order, or open one stream for each thread.",
            )
        try:
            yield
        finally:
            self._feeding.release()

    def _fed(self, table: pa.Table, is_last: bool) -> pa.Table:
        if self._is_finished:
            raise UnsupportedError(
                "the stream has ended: its last piece was fed, or a piece failed",
                hint="Open a new one, or go on from a snapshot.",
            )
        table = self._checked(table)
        self._is_finished = True  # a piece that fails half-way leaves nothing that could go on
        parts = [part.table for part in self.batches(table, is_last)]
        self._is_finished = is_last
        return pa.concat_tables(parts) if parts else pa.Table.from_batches([], result_schema(self._plan, self._columns))

    def _checked(self, table: pa.Table) -> pa.Table:
        """The piece with the columns that were promised, none of its events before those of earlier pieces."""
        for name in self._columns.names:
            if name not in table.column_names:
                raise SchemaError(
                    f"the piece has no column '{printable(name)}'", hint=f"Columns: {listed(self._columns.names)}."
                )
        try:
            table = table.select(self._columns.names).cast(self._columns)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise SchemaError(f"the columns of the piece have other types: {printable(str(error), 200)}") from None
        if table.num_rows:
            if self._last is not None:
                check_follows(self._last, table.slice(0, 1), self._plan.query, self._query.sort_columns)
            self._last = table.slice(table.num_rows - 1).combine_chunks()
        return table

    def finish(self) -> pa.Table:
        """The matches that waited for the end of the input."""
        return self.feed(pa.Table.from_batches([], self._columns), is_last=True)

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, in this process or in another."""
        with self._alone():
            if self._is_finished:
                raise UnsupportedError("the stream has ended: there is nothing to go on with")
            parts = {**self.saved(), "last_event": self._last, "fingerprint": self._query.fingerprint}
            return pack({name: part for name, part in parts.items() if part is not None})

    def saved(self) -> dict[str, Any]:
        """What there is to save, besides what all progresses have."""
        return {**self._engine.saved(), **({} if self._timeouts is None else self._timeouts.saved())}

    def load(self, parts: SavedParts) -> None:
        self._engine.load(parts)
        if self._timeouts is not None:
            self._timeouts.load(parts)

    @classmethod
    def restore(cls, query: PreparedQuery, snapshot: bytes) -> Self:
        """The progress that was saved; an error if it is damaged, or of another query."""
        progress = cls(query)
        parts = unpack(snapshot)
        if parts.pop("fingerprint", None) != query.fingerprint:
            raise SnapshotError(
                "the snapshot belongs to another query, other columns, or other options",
                hint="Restore it with the query, columns and options that it was made with.",
            )
        saved = SavedParts(parts, query.columns)
        try:
            progress._last = saved.table("last_event")
            require(progress._last is None or progress._last.num_rows == 1, "last_event")
            progress.load(saved)
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError, pa.ArrowException) as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(f"the snapshot cannot be read: {type(error).__name__}") from None
        return progress

    def held(self) -> Held:
        held = self._engine.held()
        if self._timeouts is None:
            return held
        events, size, wakes_at = self._timeouts.held()
        wakes = [time for time in (held.wakes_at, wakes_at) if time is not None]
        return Held(
            held.runs, held.events + events, held.bytes + size, min(wakes, default=None), held.is_idle and not events
        )

    def batches(
        self,
        table: pa.Table,
        is_last: bool,
        with_times: bool = False,
        now: Time | None = None,
        row_order: RowOrder | None = None,
    ) -> Iterator[ResultBatch]:
        """The result so far in pieces of bounded size. The table is known to have its columns, and to follow.

        `now`: a time up to which all events are there.
        """
        writer = RowWriter(self._plan, self._query.measures, Meter(), with_times, row_order=row_order)
        return self.written(table, is_last, writer, Budget(self._plan.limits, table.num_rows), now)

    def written(
        self, table: pa.Table, is_last: bool, writer: RowWriter, budget: Budget, now: Time | None = None
    ) -> Iterator[ResultBatch]:
        """The same, with rows that are made so, and a budget that may be for more than this piece."""
        self._engine.budget = budget
        parts = writer.parts(self._engine.feed(table, now, is_last), budget)
        if self._timeouts is not None:
            parts = chain(parts, writer.parts(self._timeouts.closed(table, now, is_last, budget), budget))
        return in_output_order(parts, budget)


def refuse_window(plan: Plan) -> None:
    """An error for a window with a pattern: nothing says yet how a row of a stream waits for its frame."""
    if isinstance(plan.query, AnalyzedRowPattern) and plan.query.frame is not None:
        raise UnsupportedError(
            "a window with a pattern needs a whole table: on a stream, it is not defined how a row waits for its frame",
            hint="Match a table, or use MATCH_RECOGNIZE, which works on streams.",
        )


def _checked_choice(plan: Plan) -> Choice:
    """The engine; an error if it does not go through a stream piece by piece."""
    refuse_window(plan)
    if plan.timeouts is not Timeouts.NONE and isinstance(plan.query, AnalyzedRowPattern):
        check_piece_by_piece(plan.query)
    choice = choose(plan)
    if isinstance(choice.engine, Interpreter):
        raise UnsupportedError(
            f"only the compiled engine takes events piece by piece, but this query is run by {choice.reason}",
            hint="Match whole tables instead: Query.match.",
        )
    if isinstance(choice.engine, RunEngine) and choice.engine.algorithm == "backtrack":
        raise UnsupportedError(
            "the backtrack algorithm needs the whole input", hint="Use algorithm='basic' or 'merge'."
        )
    return choice


# --- what a query would hold on a stream without end, and why some are refused there ---------------------------------


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Why what is held may grow without end, a clause that fits after a colon; and what to do about it.

    More may follow the hint, so it has no period.
    """

    reason: str
    hint: str


def unbounded_state(plan: Plan) -> Unbounded | None:
    """Why a stream's state would have no bound; None if the query bounds what is held of a key."""
    query = plan.query
    return _of_rows(query) if isinstance(query, AnalyzedRowPattern) else _of_events(query)


def _of_events(query: AnalyzedQuery) -> Unbounded | None:
    if query.window is not None:
        return None
    if isinstance(query, AnalyzedSteps):
        return Unbounded(
            "no within says when a run is over, so every run that has begun is kept forever",
            "Add within, such as .within('12 hours'); until does not bound a pattern",
        )
    is_contiguous = query.strategy in (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)
    if is_contiguous and not any(component.is_kleene for component in query.components):
        return None
    return Unbounded(
        "no WITHIN says when a run is over, so every run that has begun is kept forever",
        "Add WITHIN, such as WITHIN 12 hours",
    )


def _of_rows(query: AnalyzedRowPattern) -> Unbounded | None:
    definition = query.definition
    if has_anchor(definition.pattern, at_start=False):
        return Unbounded(
            "`$` is the end of a partition, and on a stream a partition has none: every match would wait forever",
            "Leave `$` out",
        )
    if longest(definition.pattern) is not None:
        return None
    if definition.selection is Selection.FIRST_COMPLETED:
        return Unbounded(
            "the pattern repeats without end, and the regular-expression operator has no window: a partial match may "
            "stay open forever",
            "Bound its repetitions by other predicates, or write it as a row pattern with WITHIN or MAXLENGTH",
        )
    if definition.window is not None or definition.max_length is not None:
        return None
    return Unbounded(
        "neither WITHIN nor MAXLENGTH says when a match is over, so the rows of a match that goes on are kept forever",
        "Add WITHIN, such as WITHIN INTERVAL '1' HOUR, or MAXLENGTH 100",
    )
