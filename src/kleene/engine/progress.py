"""A query on its way through a stream, in process: events go in piece by piece, matches come out as they complete.

Whatever the pieces, the matches are those of the whole. What is held between pieces is bounded by the window, or by the
matches that are open; it can be saved as bytes at any time, and restored.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.budget import Budget
from kleene.engine.choice import AnyProgram, choose
from kleene.engine.compiled.buffer import Time
from kleene.engine.compiled.measures import MeasureProgram
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.regex_engine import RegexProgram, RegexProgress
from kleene.engine.compiled.row_engine import RowProgram, RowProgress
from kleene.engine.compiled.sase_engine import SaseProgram, SaseProgress
from kleene.engine.compiled.sequence_engine import SequenceProgram, SequenceProgress
from kleene.engine.matches import FlatMatches, flat_matches
from kleene.engine.regex_columns import regex_table
from kleene.engine.results import MatchRows, ResultBatch, output_batches, table_batches
from kleene.engine.row_columns import one_row_table
from kleene.engine.rows import check_follows, rows_of_matches
from kleene.engine.run import result_schema
from kleene.engine.saved_parts import SavedParts, require
from kleene.engine.snapshot import pack, unpack
from kleene.errors import ExecutionError, SchemaError, SnapshotError, UnsupportedError, listed, printable
from kleene.ir.options import RowsPerMatch
from kleene.ir.row_text import row_query_text
from kleene.ir.text import query_text
from kleene.plan.plan import Plan


class NoProgress:
    """A stream in which no match can exist: nothing is kept of it."""

    def __init__(self, components: int) -> None:
        self._components = components

    open_runs = kept_events = 0
    is_idle = True
    budget = Budget()

    def feed(self, table: pa.Table, is_last: bool = False, now: Time | None = None) -> tuple[pa.Table, FlatMatches]:
        return table.slice(0, 0), flat_matches([], self._components)

    def wakes_at(self) -> Time | None:
        return None

    def saved(self) -> dict[str, Any]:
        return {}

    def load(self, parts: SavedParts) -> None:
        pass


class ProgressQuery:
    """A query made ready to go through streams: what all its streams share, which takes some time to make."""

    def __init__(self, plan: Plan, columns: pa.Schema, sort_columns: Sequence[str] = ()) -> None:
        self.plan, self.columns, self.sort_columns = plan, columns, tuple(sort_columns)
        self._program = _program(plan)
        self.measures: MeasureProgram | None = None
        if isinstance(plan.query, AnalyzedQuery) and self._program is not None:
            self.measures = MeasureProgram(plan.query, self._program.jit)
        self.fingerprint = self._fingerprint()

    def started(self) -> SaseProgress | SequenceProgress | NoProgress | RowProgress | RegexProgress:
        """What an engine holds of a stream of which it has seen nothing."""
        plan, program = self.plan, self._program
        match program:
            case None:
                assert isinstance(plan.query, AnalyzedQuery)
                return NoProgress(len(plan.query.components))
            case SequenceProgram():
                return SequenceProgress(program, plan.run_limit, plan.format)
            case SaseProgram():
                return SaseProgress(program, plan.run_limit, plan.format)
            case RegexProgram():
                return RegexProgress(program, plan.run_limit)
            case RowProgram():
                return RowProgress(program, plan.run_limit)

    def _fingerprint(self) -> str:
        """What a snapshot must have been made with."""
        query, plan = self.plan.query, self.plan
        is_sase = isinstance(query, AnalyzedQuery)
        text = query_text(query.definition) if is_sase else row_query_text(query.definition)
        order: Any = query.order_by
        operators = "" if plan.pipeline is None else str(plan.pipeline)
        said = [
            text,
            str(order),
            str(self.sort_columns),
            plan.format.value,
            operators,
            str(self.columns),
            str(query.schema),
        ]
        return hashlib.sha256("\x00".join(said).encode()).hexdigest()


class Progress:
    """Feed it tables of events, each in order and later than the one before; it gives back tables of matches."""

    def __init__(self, query: ProgressQuery) -> None:
        self._query, self._plan, self._columns = query, query.plan, query.columns
        self._engine = query.started()
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
                "the stream has ended: its last piece was fed, or a piece was an error",
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
            raise SchemaError(f"the piece has columns of other types: {printable(str(error), 200)}") from None
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
            last = {} if self._last is None else {"last_event": self._last}
            return pack({**self._engine.saved(), **last, "fingerprint": self._query.fingerprint})

    @classmethod
    def restore(cls, query: ProgressQuery, snapshot: bytes) -> Progress:
        """The progress that was saved; an error if it is damaged, or of another query."""
        progress = cls(query)
        parts = unpack(snapshot)
        if parts.pop("fingerprint", None) != query.fingerprint:
            raise SnapshotError(
                "the snapshot is of another query, of other columns, or of other options",
                hint="Restore it with what it was made with.",
            )
        saved = SavedParts(parts, query.columns)
        try:
            progress._last = saved.table("last_event")
            require(progress._last is None or progress._last.num_rows == 1, "last_event")
            progress._engine.load(saved)
        except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError, pa.ArrowException) as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(f"the snapshot cannot be read: {type(error).__name__}") from None
        return progress

    @property
    def open_runs(self) -> int:
        """How much is open: runs, instances on stacks, or partitions with a start that is not decided."""
        return self._engine.open_runs

    @property
    def kept_events(self) -> int:
        return self._engine.kept_events

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held that the next event could depend on."""
        return self._engine.is_idle

    def wakes_at(self) -> Time | None:
        """When time alone may complete a match or free what is kept, in the units of the order key, if ever."""
        return self._engine.wakes_at()

    def batches(
        self, table: pa.Table, is_last: bool, with_times: bool = False, now: Time | None = None
    ) -> Iterator[ResultBatch]:
        """The result so far in pieces of bounded size. The table is known to have its columns, and to follow.

        `now`: a time up to which all events are there.
        """
        query, engine = self._plan.query, self._engine
        engine.budget = Budget(self._plan.limits, table.num_rows)
        if isinstance(engine, (SaseProgress, SequenceProgress, NoProgress)):
            assert isinstance(query, AnalyzedQuery)
            whole, matches = engine.feed(table, is_last, now=now)
            return MatchRows(self._plan, whole, self._query.measures, Meter(), with_times).batches(matches)
        assert not isinstance(query, AnalyzedQuery)
        if isinstance(engine, RowProgress):
            found = engine.feed(table, is_last, now)
            if query.rows_per_match is RowsPerMatch.ONE:
                return table_batches(one_row_table(query, found, engine.program.jit))
            return output_batches(query, found.table, rows_of_matches(query, found.table, found))
        return table_batches(regex_table(query, engine.feed(table, is_last)))


def _program(plan: Plan) -> AnyProgram | None:
    choice = choose(plan)
    if choice.engine == "reference":
        raise UnsupportedError(
            f"only the compiled engine goes through a stream piece by piece; for this query there is {choice.reason}",
            hint="Match whole tables instead: Query.match.",
        )
    if isinstance(choice.program, SaseProgram) and choice.program.algorithm == "backtrack":
        raise UnsupportedError(
            "the backtrack algorithm needs the whole input", hint="Use algorithm='basic' or 'merge'."
        )
    return choice.program
