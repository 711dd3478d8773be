"""What runs inside a Spark task: Arrow batches of events to Arrow batches of matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.events import check_order_key, decoded, null_order_key
from kleene.engine.output import as_schema
from kleene.engine.progress import Progress, ProgressQuery
from kleene.engine.ranges import Candidates, RangeMatcher, Ranges, Reach, is_choosing, one_range
from kleene.engine.results import ResultBatch
from kleene.engine.rows import with_computed_keys
from kleene.engine.run import Runner
from kleene.engine.sorting import sorted_table
from kleene.errors import ExecutionError, UnsupportedError, printable
from kleene.plan.plan import Plan
from kleene.spark.choosing import CHOICE, choice_columns, choice_fields
from kleene.spark.gathering import GROUP, GroupPart, Groups, TaskOrder, groups_of, sorted_tables
from kleene.spark.handover import Sorting
from kleene.spark.match_order import NO_EXTRA_COLUMNS, ExtraColumns
from kleene.spark.names import plain_names
from kleene.spark.ranges import FOREIGN, INFO, KEY_BITS, SIZE_BITS, SPARE_BITS


@dataclass(frozen=True, slots=True)
class KeyAdder:
    """A function from batches to batches that adds the keys that are expressions."""

    query: AnalyzedRowPattern
    columns: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            known = table.rename_columns(self.columns.names).cast(self.columns)
            keys = with_computed_keys(self.query, known).select([name for name, _ in self.query.computed])
            for name, column in zip(keys.column_names, keys.columns, strict=True):
                table = table.append_column(name, column)
            yield from table.rename_columns(plain_names(table.column_names)).to_batches()


def no_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads all, and gives out nothing."""
    for _ in batches:
        pass
    return iter(())


@dataclass(frozen=True, slots=True)
class Matcher:
    """A function from batches to batches, shipped to every task. A group of events is in one task only.

    What is held at a time is bounded: whole groups together, or the state of one group that is too large for that.
    """

    plan: Plan
    columns: pa.Schema
    sorting: Sorting
    order: TaskOrder
    strict: tuple[str, ...]
    result: pa.Schema
    with_times: bool = False
    mixed_by: tuple[str, ...] = ()  # the order to put the events of several keys in, if the query has no partitions
    reach: Reach | None = None  # of ranges, if the input is cut
    extra: ExtraColumns = NO_EXTRA_COLUMNS
    has_key: bool = True
    in_place: bool = False  # whether pieces of the input are matched where they lie

    @property
    def is_choosing(self) -> bool:
        """Whether candidates are given out, among which matches are chosen."""
        return self.reach is not None and is_choosing(self.plan)

    @property
    def output(self) -> pa.Schema:
        """What is given out: the result, and, for the pass that chooses, what that needs to know."""
        if not self.is_choosing:
            return self.result
        return pa.schema([*self.result, *choice_fields(self.in_place)])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.matched(batches, lambda tables: tables)

    def matched(
        self, batches: Iterator[pa.RecordBatch], seen: Callable[[Iterable[pa.Table]], Iterable[pa.Table]]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the output; the events in their order go through `seen`."""
        try:
            for found, keys in self._found(seen(self.in_order(batches))):
                yield from self.given_out(found, keys).to_batches()
        except GaveUpError as error:
            raise ExecutionError(error.message, hint=error.hint) from None

    def in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The events as the engine needs them."""
        tables = self._checked(batches)
        if self.sorting is Sorting.TASK:
            return sorted_tables(tables, self.order)
        return checked_order(tables, self.order) if self.sorting is Sorting.PRESORTED else tables

    def _found(self, tables: Iterable[pa.Table]) -> Iterator[tuple[ResultBatch | Candidates, pa.Array | None]]:
        """What is found, and where these are candidates, the key of each."""
        runner, large = Runner(self.plan), _LargeGroup(self.plan, self.columns, self.with_times)
        ranges = None if self.reach is None else RangeMatcher(self.plan, self.reach)
        for part in groups_of(tables):
            if ranges is not None:
                if isinstance(part, GroupPart) and self._is_cut(part.table):
                    part = Groups(large.hold(part.table, part.is_last))
                uncut, cut = self._split(part.table)
                for number, piece in cut:
                    for found in ranges.batches(piece, self.with_times):
                        yield found, pa.array(np.full(len(found.starts), number))
                part = replace(part, table=uncut)
            events = part.table.drop_columns([GROUP])
            if isinstance(part, Groups):
                flowing: Iterable[ResultBatch] | None = self._matches(runner, events)
            else:
                flowing = large.add(events, part.is_last)
            for batch in self._matches(runner, large.events()) if flowing is None else flowing:
                yield batch, None

    def _matches(self, runner: Runner, events: pa.Table) -> Iterator[ResultBatch]:
        if not events.num_rows:
            return iter(())
        if self.mixed_by:
            events = sorted_table(events, self.mixed_by)
        return runner.batches(events, self.with_times, in_order=False)

    def _is_cut(self, events: pa.Table) -> bool:
        """Whether a group's events are a range's. Without a key all are, but for group 0, which is all in one piece."""
        if self.has_key:
            return bool(events.num_rows and events.column(INFO)[0].is_valid)
        return bool(events.num_rows and events.column(GROUP)[0].as_py() != 0)

    def _split(self, events: pa.Table) -> tuple[pa.Table, Iterator[tuple[int, Ranges]]]:
        """The events that are not cut, and the ranges of the others, each with the number of its key."""
        names = [*self.columns.names, GROUP]
        by = decoded(events.column(INFO)) if self.has_key else events.column(GROUP)
        is_cut = by.is_valid() if self.has_key else pc.not_equal(by, 0)
        if not pc.any(is_cut).as_py():
            return events.select(names), iter(())
        cut, own = events.filter(is_cut), [name for name in names if name != GROUP]
        codes = by.filter(is_cut).combine_chunks().dictionary_encode().indices.to_numpy()
        count = int(codes.max()) + 1
        parts = (cut if count == 1 else cut.take(pa.array(np.flatnonzero(codes == code))) for code in range(count))
        return events.filter(pc.invert(is_cut)).select(names), (range_of(part, own) for part in parts)

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The batches with the columns that the plan knows."""
        schema = self.columns.append(pa.field(GROUP, pa.int64()))
        if self.reach is not None and self.has_key:
            schema = schema.append(pa.field(INFO, pa.string()))
        tables = (pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema) for batch in batches)
        for table in self.only_ordered(tables):
            yield table if self.reach is None else _with_own(table)

    def only_ordered(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The tables; in the end an error if any event has no place in the order."""
        unordered: list[pa.Table] = []
        for table in tables:
            missing = table.column(GROUP)
            if missing.null_count:
                unordered.append(table.filter(missing.is_null()))
            elif not unordered:
                yield table
        if unordered:
            table = pa.concat_tables(unordered)
            check_order_key(table, self.strict)
            raise null_order_key(self.strict[0], table.num_rows)

    def given_out(self, part: ResultBatch | Candidates, keys: pa.Array | None) -> pa.Table:
        """Rows of the output."""
        rows = self.extra.added(part, self.plan, self.result)
        if self.is_choosing:
            for name, values in zip(CHOICE, choice_columns(part, keys), strict=True):
                rows = rows.append_column(name, values)
        return as_schema(rows, self.output)


OWN = "__kleene_own"


def _with_own(table: pa.Table) -> pa.Table:
    """The group's number freed from the mark in it, which becomes a column: whether the event is the range's own."""
    numbers = table.column(GROUP).to_numpy()
    at = table.column_names.index(GROUP)
    table = table.set_column(at, GROUP, pa.array(numbers & ~FOREIGN))
    return table.append_column(OWN, pa.array(numbers & FOREIGN == 0))


def range_of(events: pa.Table, names: list[str]) -> tuple[int, Ranges]:
    """The range of which these are all events, and the number of its key."""
    own = np.flatnonzero(events.column(OWN).to_numpy())
    if INFO in events.column_names:
        number, base, size = map(int, str(events.column(INFO)[0]).split(":"))
        is_whole = len(own) == size
    else:
        told = int(events.column(GROUP)[0].as_py()) >> SPARE_BITS
        number, base = 0, told >> SIZE_BITS
        is_whole = (told - len(own)) % (1 << SIZE_BITS) == 0
    if not is_whole or not len(own):
        raise ExecutionError(
            f"the input changed between two readings: a range has {len(own):,} events, and had another number before",
            hint="Write the input to files, or cache it; or match it in one piece: SparkOptions('shuffled').",
        )
    begin = int(own[0])
    return number >> KEY_BITS, one_range(events.select(names), range(begin, begin + len(own)), base)


class _LargeGroup:
    """A group that comes in parts: it is matched as it comes where the engine can do that, else put together."""

    def __init__(self, plan: Plan, columns: pa.Schema, with_times: bool) -> None:
        self._plan, self._columns, self._with_times = plan, columns, with_times
        self._progress: Progress | None = None
        self._held: list[pa.Table] = []
        self._can_flow = plan.mode == "verbose" and not _needs_all(plan)

    def add(self, events: pa.Table, is_last: bool) -> Iterator[ResultBatch] | None:
        """The matches that the part completes; None where the group is whole now, and not matched yet."""
        if self._progress is None and self._can_flow and not self._held:
            try:
                self._progress = Progress(ProgressQuery(self._plan, self._columns))
            except UnsupportedError:
                self._can_flow = False
        if self._progress is None:
            self._held.append(events)
            return None if is_last else iter(())
        found = self._progress.batches(events, is_last, self._with_times)
        if is_last:
            self._progress = None
        return found

    def hold(self, events: pa.Table, is_last: bool) -> pa.Table:
        """All of the group, once its last part has come; until then no events."""
        self._held.append(events)
        return self.events() if is_last else events.slice(0, 0)

    def events(self) -> pa.Table:
        whole = pa.concat_tables(self._held)
        self._held = []
        return whole


def _needs_all(plan: Plan) -> bool:
    """Whether only the interpreter, which needs all events, may have an answer: where order keys may be NULL."""
    return isinstance(plan.query, AnalyzedRowPattern) and plan.query.order_by[0].nulls_first is not None


def checked_order(tables: Iterable[pa.Table], order: TaskOrder) -> Iterator[pa.Table]:
    """The tables as they are; an error where a group does not stand together, or its events are not in order."""
    done: set[int] = set()
    last: pa.Table | None = None
    for table in tables:
        if not table.num_rows:
            continue
        together = table if last is None else pa.concat_tables([last, table])
        numbers, times = order.keys(together)
        changes = numbers[1:] != numbers[:-1]
        here = [int(numbers[0]), *numbers[1:][changes].tolist()]
        name = printable(order.columns[0].name)
        if (~changes & (times[1:] < times[:-1])).any() or order.breaks_ties(together):
            raise ExecutionError(
                f"layout='presorted' was given, and events of one key are not in the order of '{name}'",
                hint="Leave the layout out, or sort first: df.repartition(key).sortWithinPartitions(key, order).",
            )
        if not done.isdisjoint(here) or len(set(here)) < len(here):
            raise ExecutionError(
                "layout='presorted' was given, and the events of a key do not stand together",
                hint="Leave the layout out, or sort by the key first: df.sortWithinPartitions(key, order).",
            )
        done.update(here[:-1])
        last = table.slice(table.num_rows - 1)
        yield table
