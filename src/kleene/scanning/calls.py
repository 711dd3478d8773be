"""Calls on scans in this process: `match`, `match_batches` and `explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn, warn
from kleene.call import Call
from kleene.engine.budget import Budget
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.event_types import MissingTypes
from kleene.engine.needs import columns_read
from kleene.engine.row_output import NUMBER
from kleene.engine.run import Runner, result_schema
from kleene.engine.threads import run
from kleene.engine.ties import tie_notes
from kleene.plan.plan import Plan
from kleene.scanning.blocks import Block
from kleene.scanning.detours import MOST_BUCKETS, buckets_on_disk, numbered, only_ordered, sorted_on_disk
from kleene.scanning.matching import PieceMatcher
from kleene.scanning.opening import Opened, open_scan
from kleene.scanning.rows import batches_in_order, whole_in_order
from kleene.scanning.scan import Scan
from kleene.scanning.shares import KeyShares
from kleene.scanning.sweep import numbers_in_input, pieces
from kleene.scanning.text import way_text
from kleene.scanning.ways import (
    ByFolder,
    Choice,
    InOrder,
    Spilled,
    Whole,
    choose_way,
    memory,
    row_width,
    rows_at_once,
)
from kleene.watching import reporting


def _nobody(done: int, total: int, word: str) -> None:
    """Whom batches report to where no one asked."""


LOOKED_AT = 8
"""Blocks that are looked at for what types there are."""


def match_scan(call: Call, scan: Scan) -> pa.Table:
    """The rows of all matches, in output order."""
    made = ScanCall.of(call, scan)
    made.warn_before()
    with reporting("matching", scan.on_progress):
        if isinstance(made.choice.way, Whole):
            return made.whole()
        try:
            budget = made.budget(is_whole=True)
            matcher = made.matcher(budget)
            found = whole_in_order(made.rows(matcher), made.place_order, made.schema, budget)
        except GaveUpError:
            # The interpreter knows whether this is an error, and says which; it needs all events.
            return made.whole()
        made.look_at_skipped(matcher.types)
        warn(matcher.notes())
        return found


def match_scan_batches(call: Call, scan: Scan) -> pa.RecordBatchReader:
    """The same rows in batches; piece by piece, rows wait on disk until all events were read."""
    made = ScanCall.of(call, scan)
    made.warn_before()
    return pa.RecordBatchReader.from_batches(made.schema, made.batches())


def explained(call: Call, scan: Scan) -> tuple[Plan, str]:
    """The plan, and how files come to the engine."""
    made = ScanCall.of(call, scan)
    return made.plan, way_text(scan, made.choice, made.plan, made.columns)


@dataclass(frozen=True, slots=True)
class ScanCall:
    """A call on a scan with its plan, and the way that was chosen for it."""

    opened: Opened
    plan: Plan
    columns: pa.Schema
    choice: Choice

    @classmethod
    def of(cls, call: Call, scan: Scan) -> ScanCall:
        opened = open_scan(call, scan)
        columns = opened.table(()).schema
        plan = opened.plan()
        return cls(opened, plan, columns, choose_way(opened, plan, columns))

    @property
    def id_columns(self) -> list[str] | None:
        if not self.opened.call.match_id:
            return None
        assert isinstance(self.plan.query, AnalyzedQuery)
        return columns_read(self.plan.query, self.columns.names, self.opened.call.order.columns)

    @property
    def schema(self) -> pa.Schema:
        return result_schema(self.plan, self.columns, id_columns=self.id_columns)

    @property
    def has_tie_break(self) -> bool:
        return bool(self.opened.call.order.tie_break)

    def budget(self, is_whole: bool = False) -> Budget:
        return Budget(self.plan.limits, sum(block.rows for block in self.choice.skipped.read), is_whole)

    def matcher(self, budget: Budget) -> PieceMatcher:
        order = self.opened.order_columns
        return PieceMatcher(self.plan, self.columns, order, self.has_tie_break, self.id_columns, budget)

    @property
    def place_order(self) -> tuple[SortColumn, ...]:
        """How rows are put in order by what stands beside them."""
        by_number = SortColumn(NUMBER, False, None)
        match self.choice.way:
            case ByFolder() | Spilled(key=(_, *_)):
                return (*self.opened.order, by_number)
        return (by_number,)  # events are numbered in their order

    def warn_before(self) -> None:
        warn(self.opened.notes)
        warn(() if self.plan.pipeline is None else self.plan.pipeline.warnings)

    # --- all events as one table ---

    def whole(self) -> pa.Table:
        table = self._whole_table()
        found = run(self.plan, table, id_columns=self.id_columns)
        types = MissingTypes(self.plan)
        types.look_at(table)
        self.look_at_skipped(types)
        warn(types.notes(is_empty=not found.num_rows))
        return found

    def look_at_skipped(self, types: MissingTypes) -> None:
        """Looks at some blocks that were not read for the types that they have, if one is missing."""
        for block in self.choice.skipped.left_out[:LOOKED_AT]:
            if types.column is not None:
                types.look_at(self.opened.scan.table([block], [types.column]))

    def _whole_table(self) -> pa.Table:
        opened = self.opened
        table = opened.in_order(opened.table(None if opened.scan.is_text else self.choice.skipped.read))
        warn(tie_notes(self.plan, table, self.has_tie_break))
        return table

    def batches(self) -> Iterator[pa.RecordBatch]:
        # Whoever reads the batches may do so in another thread, so that only the budget knows whom to report to.
        with reporting("matching", self.opened.scan.on_progress or _nobody):
            budget = self.budget()
        if isinstance(self.choice.way, Whole):
            found = Runner(self.plan).batches(self._whole_table(), id_columns=self.id_columns, budget=budget)
            yield from (batch for part in found for batch in part.table.to_batches())
            return
        matcher = self.matcher(budget)
        try:
            yield from batches_in_order(self.rows(matcher), self.place_order, self.schema, budget)
        except GaveUpError:  # as in match; all events are read before the first batch is given out
            budget.restart()
            found = Runner(self.plan).batches(self._whole_table(), id_columns=self.id_columns, budget=budget)
            yield from (batch for part in found for batch in part.table.to_batches())
            return
        self.look_at_skipped(matcher.types)
        warn(matcher.notes())

    # --- piece by piece ---

    def rows(self, matcher: PieceMatcher) -> Iterator[pa.Table]:
        """The rows as they are found, each with the place of the event that completes its match."""
        match self.choice.way:
            case InOrder(steps=steps, reach=reach) if reach is not None:
                yield from matcher.reaching_back(pieces(steps, self.opened.reading), reach)
            case InOrder(steps=steps):
                yield from matcher.in_order(pieces(steps, self.opened.reading))
            case ByFolder(groups=groups):
                yield from matcher.by_groups([partial(self._of_folder, group) for group in groups])
            case Spilled(key=()):
                tables = sorted_on_disk(self._as_they_lie(), self.opened.order, self._bytes_at_once)
                yield from matcher.in_order(table.drop_columns([NUMBER]) for table in self._cut(tables))
            case Spilled(key=key):
                with buckets_on_disk(self._as_they_lie(), self._buckets(key)) as buckets:
                    yield from matcher.by_groups([partial(self._of_bucket, bucket) for bucket in buckets])
            case Whole():
                raise AssertionError("one table has no pieces")

    def _of_folder(self, blocks: Sequence[Block]) -> Iterator[pa.Table]:
        yield self.opened.in_order(self.opened.table(blocks).append_column(NUMBER, numbers_in_input(blocks)))

    def _of_bucket(self, bucket: Callable[[], Iterator[pa.Table]]) -> Iterator[pa.Table]:
        """The events of some keys; those of one that has more than fit are put in order on disk once more."""
        return self._cut(sorted_on_disk(bucket(), self.opened.order, self._bytes_at_once))

    def _cut(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Tables of any size as pieces that are neither tiny nor huge."""
        held: list[pa.Table] = []
        most, rows = rows_at_once(self.columns), 0
        for table in tables:
            held.append(table)
            rows += table.num_rows
            if rows >= most:
                yield pa.concat_tables(held)
                held, rows = [], 0
        if held:
            yield pa.concat_tables(held)

    @property
    def _bytes_at_once(self) -> int:
        return max(memory(self.plan) // 8 // self.plan.threads, 1 << 20)

    def _buckets(self, key: tuple[str, ...]) -> KeyShares:
        scan = self.opened.scan
        size = scan.rows * row_width(self.columns) if scan.rows else 4 * scan.bytes
        count = min(max(-(-2 * size // self._bytes_at_once), self.plan.threads), MOST_BUCKETS)
        return KeyShares(key, isinstance(self.plan.query, AnalyzedRowPattern), count)

    def _as_they_lie(self) -> Iterator[pa.Table]:
        """All events in the order of the input, with their numbers."""
        tables = self.opened.tables(self.choice.skipped.read, rows_at_once(self.columns))
        return numbered(only_ordered(tables, self.opened.strict))
