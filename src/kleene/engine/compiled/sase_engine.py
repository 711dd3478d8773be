"""The compiled engine for SASE and SASE+: events in, matches out, in pieces of any size.

`SaseProgram` is the query made into kernels; it is shared. `SaseProgress` is how far a stream has come: the open runs,
the match buffer, and the events that they refer to. Feeding it the events in any number of pieces gives the same
matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.blocks import Block, size_of, whole_events
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import ROW, arranged, chosen_matches, without_overlaps
from kleene.engine.compiled.batches import (
    EMPTY,
    EMPTY_FLOAT,
    Arguments,
    Grouped,
    arguments,
    group,
    grown,
    nullable_names,
    one_group,
    partition_codes,
    permuted_arguments,
    types_of,
)
from kleene.engine.compiled.buffer import ROOM, Buffer, Root, Time, Window, latest_of, loaded_buffer, wakes_at
from kleene.engine.compiled.columns import Array, Dictionary, MissingFrom, times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.negation_index import NegationIndex, negation_index
from kleene.engine.compiled.partitions import Partitions
from kleene.engine.compiled.programs import Kernel, Program
from kleene.engine.compiled.registers import forget_strings
from kleene.engine.compiled.sase import FIRST_REGISTER, Generated, generate
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.matches import FlatMatches, joined
from kleene.engine.saved_parts import SavedParts, require, require_runs, require_within
from kleene.errors import ExecutionError, LimitError, printable
from kleene.ir import expr as ir
from kleene.ir.options import Format, Strategy

ROWS_AT_ONCE = 1 << 22
"""How many rows of matches are written out at a time."""
NO_LIMIT = 1 << 62
WORK_AT_ONCE, JUDGED_AT_ONCE = 1 << 26, 1 << 14
"""How much a kernel does before it pauses, so that limits can be looked at; and how many matches are judged."""


class SaseProgram(Program[Generated]):
    """A query and an algorithm."""

    def __init__(
        self,
        query: AnalyzedQuery,
        algorithm: str,
        jit: bool = True,
        access: str = "index",
        ending: frozenset[str] | None = None,
    ) -> None:
        super().__init__(lambda nullable: generate(query, nullable, algorithm, access, ending), jit)
        self.query, self.algorithm = query, algorithm


@dataclass(slots=True)
class Feed:
    """One piece of the input together with the events kept from before, as the kernels see them."""

    table: pa.Table
    grouped: Grouped
    times: Array
    float_times: Array
    positions: Array
    kernel: Kernel[Generated]
    given: Arguments
    bits: Array
    groups: Array
    latest: Any  # the time that the stream has come to
    index: NegationIndex | None = None

    @property
    def any_times(self) -> Array:
        return self.float_times if len(self.float_times) else self.times


@dataclass(slots=True)
class Pending:
    """Matches that wait for the end of their window, because an event after them may forbid them."""

    matches: FlatMatches
    numbers: Array  # of their partitions


class SaseProgress:
    """How far a stream has come. Feed it events in order; it gives back matches.

    Matches come with the table that their positions refer to: the piece that was fed, behind the events kept.
    """

    def __init__(
        self,
        program: SaseProgram,
        run_limit: int,
        format_: Format,
        meter: Meter | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.program, self.run_limit, self.format = program, run_limit, format_
        self.meter = meter if meter is not None else Meter()
        self.budget = Budget() if budget is None else budget
        self.dictionary = Dictionary()
        self.window = Window.of(program.query)
        self.nullable: frozenset[str] = frozenset()
        self.buffer: Buffer | None = None
        self.kept_table: pa.Table | None = None
        self.kept_at = EMPTY  # where its events stood in the table of the piece
        self.kept_numbers, self.kept_positions = EMPTY, EMPTY
        self.partitions = Partitions(program.query.partition_by)
        self.next_positions, self.run_begins, self.run_counts = EMPTY, EMPTY, EMPTY
        self.ended = EMPTY  # for each partition, the position where the match given out last ended
        self.pending: Pending | None = None
        self._rows, self._rows_used = np.empty(0, ROW), 0
        self.keeps_buffer = False  # for compressed output, which is the buffer

    # --- feeding -------------------------------------------------------------------------------------------------

    def feed(
        self, table: pa.Table, is_last: bool = False, codes: Array | None = None, now: Time | None = None
    ) -> tuple[pa.Table, FlatMatches]:
        """The matches that these events complete, in output order, and the table they refer to.

        `codes` are the numbers of their partitions, if these are known for the whole input; `now` is the time that the
        stream has come to, if it is known to be later than the last event.
        """
        feed = self._read(table, is_last, codes, now)
        parts = list(self._parts(feed))
        self._go_on(feed, codes)
        return feed.table, self._arranged(feed, parts)

    def blocks(self, table: pa.Table, is_last: bool, codes: Array | None = None) -> Iterator[Block]:
        """The same in blocks, each given out before the next is made; positions are those in the table with all kept.

        Where partitions mix, or matches wait for the end of their windows, a block may be followed by matches that come
        before it.
        """
        feed = self._read(table, is_last, codes, None)
        held: list[FlatMatches] = []
        size = 0
        in_order = self._gives_in_order(feed)
        for part in self._parts(feed):
            held.append(part)
            size += size_of(part)
            if size > self.budget.at_once:
                yield Block(self._arranged(feed, held), in_order)
                held, size = [], 0
        self._go_on(feed, codes)
        yield Block(self._arranged(feed, held), is_last or not self.waits_for_the_end)

    def _gives_in_order(self, feed: Feed) -> bool:
        """Whether later matches end later."""
        order = feed.grouped.order
        ascends = feed.grouped.is_identity or bool((order[1:] > order[:-1]).all())
        return ascends and not self.waits_for_the_end and self.program.algorithm != "backtrack"

    def _read(self, table: pa.Table, is_last: bool, codes: Array | None, now: Time | None) -> Feed:
        started, fresh = perf_counter(), table.num_rows
        feed = self._prepare(table, is_last, codes, now)
        self.meter.add("read", fresh, fresh, perf_counter() - started)
        self.meter.add("RunScan", fresh, 0, 0.0)
        return feed

    def _parts(self, feed: Feed) -> Iterator[FlatMatches]:
        """All matches that can be given out now, by rows; those that end together are in one part."""
        started = perf_counter() - self.meter.seconds("Judge")
        for found, groups in self._matches(feed):
            if self.format is Format.NON_OVERLAPPING:
                places = feed.positions[found.first], feed.positions[found.last]
                found = without_overlaps(found, feed.grouped.numbers[groups], *places, self.ended, self.program.jit)
            self.budget.count(len(found))
            self.budget.add("its matches", 2 * size_of(found))  # they are held twice while they are put in order
            self._spent_since(started)
            yield found
            started = perf_counter() - self.meter.seconds("Judge")
        self._spent_since(started)

    def _spent_since(self, started: float) -> None:
        """Counts the time since then, of which judging has its own count."""
        self.meter.add("RunScan", 0, 0, perf_counter() - self.meter.seconds("Judge") - started)

    def _arranged(self, feed: Feed, parts: list[FlatMatches]) -> FlatMatches:
        """Matches by their positions in the table, in output order."""
        self.budget.check_time()
        found = arranged(parts, feed.grouped.order, len(self.program.query.components), self.program.jit)
        self.budget.hold("its matches", 0)
        return found

    def _go_on(self, feed: Feed, codes: Array | None) -> None:
        """Keeps what events to come may need, if there are any."""
        assert self.buffer is not None
        if self.buffer.counts[10]:
            self._retain(feed)
            if codes is None:
                self._forget_partitions()

    def completions(self, table: pa.Table) -> tuple[Feed, Array]:
        """For compressed output: the events as the kernels see them, and every completion; the buffer stays whole."""
        self.keeps_buffer = True
        feed = self._prepare(table, True)
        assert self.buffer is not None
        found = [self.buffer.done[:count].copy() for count in self._visits(feed)]
        return feed, np.concatenate([np.zeros((0, 4), np.int64), *found])

    def _prepare(self, table: pa.Table, is_last: bool, codes: Array | None = None, now: Time | None = None) -> Feed:
        query = self.program.query
        assert query.schema is not None
        if codes is None:
            codes = self._partition_numbers(table, whole=is_last and self.kept_table is None)
        fresh_from = 0
        if self.kept_table is not None:
            fresh_from = self.kept_table.num_rows
            table = pa.concat_tables([self.kept_table, table.select(self.kept_table.column_names)])
            codes = np.concatenate([self.kept_numbers, codes])
        count = max(len(self.next_positions), 1)
        self.nullable |= nullable_names(table)
        kernel = self.program.kernel(self.nullable, self.budget)
        as_given = one_group(table.num_rows)
        given = arguments(
            kernel.generated.layout, table, query.schema, types_of(query.schema), as_given, self.dictionary
        )
        bits = np.zeros(table.num_rows, np.int64)
        with np.errstate(all="ignore"):
            kernel.functions["classify"](bits, 0, len(bits), given.columns, given.integers, given.floats)
        if self._may_leave_out:
            codes = np.where(bits == 0, -1, codes)
        grouped = group(codes, count, self.program.jit)
        if not grouped.is_identity:
            given, bits = permuted_arguments(given, grouped), np.ascontiguousarray(bits[grouped.order])
        all_times = times_array(table, query.order_by[0], query.time_type)
        times = np.ascontiguousarray(grouped.permuted(all_times))
        if len(times) and times.dtype == np.int64 and int(times.max()) - int(times.min()) >= 2**62:
            raise GaveUpError(ir.Attribute(None, query.order_by[0]))
        groups = self._groups(grouped, fresh_from)
        feed = Feed(
            table,
            grouped,
            EMPTY if times.dtype == np.float64 else times,
            times if times.dtype == np.float64 else EMPTY_FLOAT,
            self._event_positions(grouped, groups, fresh_from),
            kernel,
            given,
            bits,
            groups,
            latest_of(all_times, now),
        )
        self._start(feed, fresh_from, is_last)
        return feed

    @property
    def _may_leave_out(self) -> bool:
        """Whether events that no component and no negation can use need not be looked at."""
        skips = self.program.query.strategy in (Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH)
        return skips and self.window.kind != 1

    def _partition_numbers(self, table: pa.Table, whole: bool) -> Array:
        """The partition of each event; numbers stay the same from one piece to the next."""
        if whole:
            codes, count = partition_codes(table, self.program.query.partition_by, null_is_a_key=False)
            self._more_partitions(count)
            return codes
        codes = self.partitions.numbers(table, null_is_a_key=False)
        self._more_partitions(len(self.partitions))
        return codes

    def _more_partitions(self, count: int) -> None:
        missing = count - len(self.next_positions)
        if missing > 0:
            zeros = np.zeros(missing, np.int64)
            self.next_positions = np.concatenate([self.next_positions, zeros])
            self.run_begins = np.concatenate([self.run_begins, zeros])
            self.run_counts = np.concatenate([self.run_counts, zeros])
            self.ended = np.concatenate([self.ended, zeros - 1])

    def _groups(self, grouped: Grouped, fresh_from: int) -> Array:
        """For each partition here: its fresh rows, its runs (where, how many), room for what is kept, all its rows."""
        groups = np.zeros((len(grouped.numbers), 7), np.int64)
        groups[:, 6] = grouped.begins[:-1]
        groups[:, 1] = grouped.begins[1:]
        fresh = np.concatenate([[0], np.cumsum(grouped.order >= fresh_from)])
        groups[:, 0] = groups[:, 1] - (fresh[grouped.begins[1:]] - fresh[grouped.begins[:-1]])
        groups[:, 2] = self.run_begins[grouped.numbers]
        groups[:, 3] = self.run_counts[grouped.numbers]
        return groups

    def _event_positions(self, grouped: Grouped, groups: Array, fresh_from: int) -> Array:
        """The place of each event in its partition, since the beginning of the stream."""
        rows = len(grouped)
        if not rows:
            return EMPTY
        sizes = groups[:, 1] - groups[:, 6]
        own = np.arange(rows) - np.repeat(groups[:, 0] - self.next_positions[grouped.numbers], sizes)
        if fresh_from:
            old = grouped.order < fresh_from
            own[old] = self.kept_positions[grouped.order[old]]
        self.next_positions[grouped.numbers] += groups[:, 1] - groups[:, 0]
        return np.ascontiguousarray(own)

    def _start(self, feed: Feed, fresh_from: int, is_last: bool) -> None:
        generated = feed.kernel.generated
        integers = FIRST_REGISTER + generated.registers.integers
        if self.buffer is None:
            self.buffer = Buffer(integers, generated.registers.floats)
            if len(feed.grouped) > 64 * ROOM:
                self.buffer.make_larger(16)  # so that matches are read out in fewer, larger pieces
        counts = self.buffer.counts
        if fresh_from:
            self._move_rows(feed, fresh_from)
        counts[0:3] = 0
        counts[6] = counts[8] = counts[11] = 0
        counts[9], counts[10], counts[12] = self.run_limit, 0 if is_last else 1, WORK_AT_ONCE
        if counts[7] > 2**30:
            counts[7] = 0
            self.buffer.slots[:] = 0

    def _move_rows(self, feed: Feed, fresh_from: int) -> None:
        """Events kept from before have new places now."""
        assert self.buffer is not None
        place = np.full(feed.table.num_rows, -1, np.int64)
        place[feed.grouped.order] = np.arange(len(feed.grouped))
        buffer, nodes = self.buffer, self.buffer.counts[3]
        for column in (0, 4, 5) if self.program.algorithm == "merge" else (0, 4):
            buffer.node[:nodes, column] = place[buffer.node[:nodes, column]]
        runs = int(self.run_counts.sum())
        buffer.stored_i[:runs, 4] = place[buffer.stored_i[:runs, 4]]
        # In a snapshot that was forged, events are kept that no component could have selected.
        require(bool((buffer.node[:nodes, 0] >= 0).all() and (buffer.stored_i[:runs, 4] >= 0).all()), "kept_table")
        if self.pending is not None:
            old = self.pending.matches
            self.pending.matches = FlatMatches(old.offsets, old.lengths, place[old.positions])
            require(bool((self.pending.matches.positions >= 0).all()), "kept_table")

    # --- waiting --------------------------------------------------------------------------------------------------

    @property
    def open_runs(self) -> int:
        return int(self.run_counts.sum())

    @property
    def kept_events(self) -> int:
        return 0 if self.kept_table is None else self.kept_table.num_rows

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held that the next event could depend on."""
        return not self.open_runs and not self.kept_events

    def wakes_at(self) -> Time | None:
        """When time alone, without an event, may have an effect; None if it never does."""
        since = EMPTY
        if self.pending is not None:
            waiting = self.pending.matches
            since = waiting.last if self.format is Format.NON_OVERLAPPING else waiting.first
        return wakes_at(self.window, self.program.query, self.kept_table, since)

    # --- saving ---------------------------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """All that the progress is, as the parts of a snapshot."""
        parts: dict[str, Any] = {
            "strings": self.dictionary.strings,
            "nullable": sorted(self.nullable),
            "keys": self.partitions.table,
            "kept_numbers": self.kept_numbers,
            "kept_positions": self.kept_positions,
            "next_positions": self.next_positions,
            "run_begins": self.run_begins,
            "run_counts": self.run_counts,
            "ended": self.ended,
        }
        if self.kept_table is not None:
            parts["kept_table"] = self.kept_table
        if self.pending is not None:
            matches = self.pending.matches
            parts["pending_offsets"], parts["pending_lengths"] = matches.offsets, matches.lengths
            parts["pending_positions"], parts["pending_numbers"] = matches.positions, self.pending.numbers
        if self.buffer is not None:
            counts, runs = self.buffer.counts, int(self.run_counts.sum())
            parts["node"], parts["edge"] = self.buffer.node[: counts[3]], self.buffer.edge[: counts[4]]
            parts["version"] = self.buffer.version[: counts[5]]
            parts["stored_i"], parts["stored_f"] = self.buffer.stored_i[:runs], self.buffer.stored_f[:runs]
        return {name: part for name, part in parts.items() if part is not None}

    def load(self, parts: SavedParts) -> None:
        """Goes on from where the parts were saved."""
        self.dictionary = Dictionary(parts.strings("strings"))
        self.nullable = parts.column_names("nullable")
        self.kept_table, kept = parts.table("kept_table"), parts.rows_of("kept_table")
        self.next_positions = parts.array("next_positions", None, low=0)
        count = len(self.next_positions)
        self.partitions.load(parts, "keys", count)
        self.kept_numbers = parts.array("kept_numbers", kept, low=-1, high=count)
        self.kept_positions = parts.array("kept_positions", kept, low=0)
        self.ended = parts.array("ended", count, low=-1)
        self.run_counts = parts.array("run_counts", count, low=0)
        self.run_begins = parts.array("run_begins", count, low=0)
        if "pending_offsets" in parts:
            self.pending = self._loaded_pending(parts, kept, count)
        if "node" in parts:
            registers = self.program.generated(self.nullable).registers
            is_merged = self.program.algorithm == "merge"
            kleene = [component.is_kleene for component in self.program.query.components]
            strings = len(self.dictionary.strings)
            self.buffer = loaded_buffer(parts, registers, kept, kleene, is_merged, strings)
        runs = 0 if self.buffer is None else len(parts.array("stored_i", None, None))
        require_runs(self.run_counts, self.run_begins, runs, "run_counts")

    def _loaded_pending(self, parts: SavedParts, kept: int, count: int) -> Pending:
        offsets = parts.array("pending_offsets", None, low=0)
        positions = parts.array("pending_positions", None, low=0, high=kept)
        lengths = parts.array("pending_lengths", len(offsets) - 1, len(self.program.query.components), low=1)
        require_within(lengths, 1, len(positions) + 1, "pending_lengths")
        require(bool((np.append(0, np.cumsum(lengths.sum(axis=1))) == offsets).all()), "pending_offsets")
        require(int(offsets[-1]) == len(positions), "pending_positions")
        numbers = parts.array("pending_numbers", len(offsets) - 1, low=0, high=max(count, 1))
        return Pending(FlatMatches(offsets, lengths, positions), numbers)

    # --- running -------------------------------------------------------------------------------------------------

    def _visits(self, feed: Feed) -> Iterator[int]:
        """Runs the kernel; gives back control with the number of completions whenever they must be read out."""
        assert self.buffer is not None
        advance = feed.kernel.functions["advance"]
        current = np.empty(len(self.program.query.components), np.int64)
        while True:
            buffer, counts = self.buffer, self.buffer.counts
            with np.errstate(all="ignore"):
                status = advance(
                    counts,
                    feed.groups,
                    feed.bits,
                    feed.any_times,
                    feed.positions,
                    buffer.stored_i,
                    buffer.stored_f,
                    buffer.kept_i,
                    buffer.kept_f,
                    buffer.ri,
                    buffer.rf,
                    buffer.ni,
                    buffer.nf,
                    buffer.node,
                    buffer.edge,
                    buffer.version,
                    buffer.done,
                    buffer.slots,
                    current,
                    feed.given.columns,
                    feed.given.integers,
                    feed.given.floats,
                )
            if status <= -1000:
                raise GaveUpError(feed.kernel.generated.layout.errors[-1000 - status])
            if status == 2:
                raise self._too_many_runs(feed)
            self.budget.reach(int(counts[1]))
            yield int(counts[6])
            counts[6] = 0
            if status == 0:
                return
            if status == 1:
                self._make_room(feed)

    def _make_room(self, feed: Feed) -> None:
        """Drops what no run can reach any more; what is still more than half full gets twice the room."""
        assert self.buffer is not None
        if not self.keeps_buffer:
            self._collect_garbage(feed)
        group = self.buffer.counts[0]
        self.budget.hold("the match buffer with the runs in it", 3 * self.buffer.bytes)  # when it grows, old and new
        self.buffer.grow(int(feed.groups[group, 3]) if group < len(feed.groups) else 0)

    def _roots(self, feed: Feed) -> list[Root]:
        """The arrays of runs, each with the rows of it that are in use."""
        assert self.buffer is not None
        buffer, counts = self.buffer, self.buffer.counts
        stored = np.ones(len(buffer.stored_i), np.bool_)
        stored[int(self.run_counts.sum()) :] = False
        # Those of the groups that are done, or loaded, are copies by now.
        done = feed.groups[: counts[0] + (1 if counts[11] else 0)]
        change = np.zeros(len(stored) + 1, np.int64)
        np.add.at(change, done[:, 2], 1)
        np.add.at(change, done[:, 2] + done[:, 3], -1)
        stored &= np.cumsum(change)[:-1] == 0
        return [
            (buffer.ri, np.arange(counts[2])),
            (buffer.kept_i, np.arange(counts[8])),
            (buffer.stored_i, np.flatnonzero(stored)),
        ]

    def _collect_garbage(self, feed: Feed) -> None:
        assert self.buffer is not None
        is_merged, window = self.program.algorithm == "merge", self.window_arguments(feed)
        self.buffer.collect_garbage(self._roots(feed), is_merged, window, shared_loops(self.program.jit))

    def window_arguments(self, feed: Feed) -> tuple[Any, ...]:
        window = self.window
        return window.kind, window.size, window.float_size, feed.times, feed.float_times, feed.positions

    # --- matches -------------------------------------------------------------------------------------------------

    def _matches(self, feed: Feed) -> Iterator[tuple[FlatMatches, Array]]:
        """All matches that can be given out now, by rows, and the number of each one's partition."""
        pieces, backtracks = self._pieces(feed), self.program.algorithm == "backtrack"
        assert self.buffer is not None
        must_wait = self.waits_for_the_end and (self.buffer.counts[10] or self.pending is not None)
        if must_wait or (backtracks and self.format is Format.NON_OVERLAPPING):
            parts: list[tuple[FlatMatches, Array]] = []
            for part in pieces:
                parts.append(part)
                self.budget.add("its matches", size_of(part[0]))
            found = joined([part for part, _ in parts], len(self.program.query.components))
            group_of = np.concatenate([EMPTY, *(groups for _, groups in parts)])
            yield self.judged(feed, *self._wait_for_the_end(feed, found, group_of))
            return
        for part in whole_events(pieces, by_first=backtracks):
            yield self.judged(feed, *part)

    def start_with(self, partitions: int, nullable: frozenset[str]) -> None:
        """What is known of the whole input before its first piece."""
        self._more_partitions(partitions)
        self.nullable = nullable

    def columns_read(self) -> list[str]:
        """The columns that the kernels, and the order and partitions of events, need."""
        query = self.program.query
        layout = self.program.generated(self.nullable).layout
        read = {
            node.name
            for column in layout.columns
            for node in ir.walk(column.expression)
            if isinstance(node, ir.Attribute)
        }
        missing = any(isinstance(column.expression, MissingFrom) for column in layout.columns)
        return sorted({*read, query.order_by[0], *query.partition_by, *([TYPE_OF_EVENT] if missing else [])})

    @property
    def waits_for_the_end(self) -> bool:
        query = self.program.query
        return any(negation.gap == len(query.components) for negation in query.negations)

    def _pieces(self, feed: Feed) -> Iterator[tuple[FlatMatches, Array]]:
        if self.program.algorithm == "backtrack":
            yield from self._backtracked(feed)
            return
        for done in self._visits(feed):
            yield from self.expanded(feed, done, most=self.run_limit)

    def _backtracked(self, feed: Feed) -> Iterator[tuple[FlatMatches, Array]]:
        """The matches by the backtrack algorithm, which needs the whole input."""
        assert self.buffer is not None
        integers, floats = self.buffer.ri.shape[1], self.buffer.rf.shape[1]
        components = len(self.program.query.components)
        ri, rf = np.zeros((ROOM, integers), np.int64), np.zeros((ROOM, floats), np.float64)
        ni, nf = np.zeros((2, integers), np.int64), np.zeros((2, floats), np.float64)
        resume, own = np.zeros(ROOM, np.int64), np.zeros((8 * ROOM, 2), np.int64)
        st, rows = np.zeros(8, np.int64), 8 * ROOM
        st[1], st[5], st[7] = -1, self.run_limit, WORK_AT_ONCE
        status = 2
        while status in (1, 2, 4):
            offsets, lengths = np.zeros(rows // 4, np.int64), np.zeros((rows // 4, components), np.int64)
            p, group_of = np.empty(rows, ROW), np.zeros(rows // 4, np.int64)
            with np.errstate(all="ignore"):
                status = feed.kernel.functions["backtrack"](
                    st,
                    feed.groups,
                    feed.bits,
                    feed.any_times,
                    feed.positions,
                    ri,
                    rf,
                    resume,
                    ni,
                    nf,
                    own,
                    offsets,
                    lengths,
                    p,
                    group_of,
                    self.buffer.node,
                    feed.given.columns,
                    feed.given.integers,
                    feed.given.floats,
                )
            if status < 0:
                raise GaveUpError(feed.kernel.generated.layout.errors[-1000 - status])
            if status == 3:
                self.buffer.counts[1] = max(int(st[1]), 0) + 1
                raise self._too_many_runs(feed)
            count = int(st[3])
            self.budget.reach(int(st[1]))
            yield FlatMatches(offsets[: count + 1], lengths[:count], p[: st[4]].copy()), group_of[:count].copy()
            st[3] = st[4] = 0
            if status == 1:
                self.budget.hold("the stack of runs", 3 * (ri.nbytes + rf.nbytes + own.nbytes))
                ri, rf, resume = (grown(array, 2 * len(ri)) for array in (ri, rf, resume))
                own = grown(own, 2 * len(own))
            if status == 2:
                rows = min(4 * rows, ROWS_AT_ONCE) if rows < ROWS_AT_ONCE else 2 * rows if not count else rows

    def expanded(
        self,
        feed: Feed,
        done: int,
        completions: Array | None = None,
        at_once: int = ROWS_AT_ONCE,
        most: int = NO_LIMIT,
    ) -> Iterator[tuple[FlatMatches, Array]]:
        """The matches of the completions, in pieces, each with the groups of its matches."""
        assert self.buffer is not None
        buffer, loops = self.buffer, shared_loops(self.program.jit)
        completions = buffer.done if completions is None else completions
        components = len(self.program.query.components)
        st, bounds = np.zeros(6, np.int64), np.zeros(components, np.int64)
        stack, trail = np.empty(256, np.int64), np.empty(256, np.int64)
        st[5] = most
        measured = -1  # the completion of which it is known how many matches it stands for
        while st[0] < done:
            room = min(at_once, 4 * done + 1024)
            offsets, lengths = np.zeros(room + 1, np.int64), np.zeros((room, components), np.int64)
            origin, p = np.empty(room, np.int64), self._free_rows(2 * len(stack))
            written = np.full(int(buffer.counts[3]) + 1, -1, np.int64)
            while True:
                way, outputs = (stack, trail, bounds), (offsets, lengths, p, origin)
                if self.program.algorithm == "merge":
                    window = self.window_arguments(feed)
                    status = loops["expand_merged"](
                        st, completions, done, buffer.node, *window, *way, written, *outputs
                    )
                else:
                    graph = (buffer.node, buffer.edge, buffer.version)
                    status = loops["expand_versions"](st, completions, done, *graph, *way, *outputs)
                if status != 1:
                    break
                stack, trail = grown(stack, 2 * len(stack)), grown(trail, 2 * len(trail))
            require(status != 4, "node" if self.program.algorithm == "merge" else "version")
            if status == 3:
                raise self._too_many_matches(feed, int(completions[st[0], 2]))
            if status == 2 and st[1] > 0 and st[0] != measured and most < NO_LIMIT:
                measured = int(st[0])
                self._check_size(feed, completions[measured], most)
            count, rows = int(st[2]), int(st[3])
            self._rows_used += rows
            if count:
                yield FlatMatches(offsets[: count + 1], lengths[:count], p[:rows]), completions[origin[:count], 3]
            st[2] = st[3] = 0

    def _check_size(self, feed: Feed, completion: Array, most: int) -> None:
        """An error if the matches of one completion are too many, or too large, to be made."""
        assert self.buffer is not None
        totals, row = np.zeros(2, np.int64), int(completion[2])
        status = shared_loops(self.program.jit)["measure_merged"](
            int(completion[0]),
            row,
            most,
            self.buffer.node,
            *self.window_arguments(feed),
            np.empty(len(feed.grouped) + 1, np.int64),
            totals,
        )
        require(status == 0, "node")
        if totals[0] > most:
            raise self._too_many_matches(feed, row)
        self.budget.hold("all matches that end at one event", 2 * int(totals[1]) * ROW().itemsize)
        self.budget.hold("all matches that end at one event", 0)

    def _free_rows(self, least: int) -> Array:
        """Room for rows of matches. It is given out from large pieces, since fresh memory is slow."""
        if len(self._rows) - self._rows_used < least:
            size = max(min(4 * len(self._rows), ROWS_AT_ONCE), 2 * least, 4 * ROOM)
            self._rows, self._rows_used = np.empty(size, ROW), 0
        return self._rows[self._rows_used :]

    def judged(self, feed: Feed, found: FlatMatches, group_of: Array) -> tuple[FlatMatches, Array]:
        generated = feed.kernel.generated
        self.meter.add("RunScan", 0, len(found), 0.0)
        if not generated.has_accept or not len(found):
            return found, group_of
        started = perf_counter()
        ok = np.concatenate(
            [
                self._accepted(feed, found[at : at + JUDGED_AT_ONCE], group_of[at : at + JUDGED_AT_ONCE])
                for at in range(0, len(found), JUDGED_AT_ONCE)
            ]
        )
        kept = chosen_matches(found, np.flatnonzero(ok))
        self.meter.add("Judge", len(found), len(kept), perf_counter() - started)
        return kept, group_of[ok == 1]

    def _accepted(self, feed: Feed, found: FlatMatches, group_of: Array) -> Array:
        """For each match, whether no negation and no HAVING forbids it."""
        self.budget.check_time()
        ok = np.zeros(len(found), np.int64)
        with np.errstate(all="ignore"):
            status = feed.kernel.functions["accept"](
                ok,
                found.offsets,
                np.ascontiguousarray(found.lengths),
                np.ascontiguousarray(found.positions, ROW),
                np.ascontiguousarray(group_of),
                *self._index(feed).arguments,
                feed.any_times,
                feed.given.columns,
                feed.given.integers,
                feed.given.floats,
            )
        if status < 0:
            raise GaveUpError(feed.kernel.generated.layout.errors[-1000 - status])
        return ok

    def _index(self, feed: Feed) -> NegationIndex:
        """The events that the judged negations may be about."""
        if feed.index is None:
            first_bit = 2 * len(self.program.query.components)
            rows = [np.flatnonzero((feed.bits >> (first_bit + n)) & 1) for n in feed.kernel.generated.judges]
            groups = np.repeat(np.arange(len(feed.groups)), feed.groups[:, 1] - feed.groups[:, 6])
            feed.index = negation_index(rows, [groups[own] for own in rows], feed.any_times, self.window.in_time)
        return feed.index

    def _wait_for_the_end(self, feed: Feed, found: FlatMatches, group_of: Array) -> tuple[FlatMatches, Array]:
        """Matches whose window has closed, or whose input has ended; the others wait."""
        assert self.buffer is not None
        if self.pending is not None:
            place = np.full(len(self.next_positions), 0, np.int64)
            place[feed.grouped.numbers] = np.arange(len(feed.grouped.numbers))
            found = joined([self.pending.matches, found], found.lengths.shape[1])
            group_of = np.concatenate([place[self.pending.numbers], group_of])
            self.pending = None
        if self.buffer.counts[10] == 0 or not len(found):
            return found, group_of
        times = feed.any_times
        since = found.last if self.format is Format.NON_OVERLAPPING else found.first
        is_closed = self.window.is_over(feed.latest, times[since])
        waiting = np.flatnonzero(~is_closed)
        if len(waiting):
            self.pending = Pending(chosen_matches(found, waiting), feed.grouped.numbers[group_of[waiting]])
            self.budget.hold("matches that wait for the end of their windows", size_of(self.pending.matches))
        return chosen_matches(found, np.flatnonzero(is_closed)), group_of[is_closed]

    def in_table(self, feed: Feed, found: FlatMatches) -> FlatMatches:
        if feed.grouped.is_identity:
            return found
        return FlatMatches(found.offsets, found.lengths, feed.grouped.order[found.positions])

    def _too_many_runs(self, feed: Feed) -> ExecutionError:
        assert self.buffer is not None
        row = min(int(self.buffer.counts[1]), len(feed.grouped)) - 1
        return LimitError(
            f"the partition {self._partition_of(feed, row)} has more than {self.run_limit:,} partial matches at once",
            hint="Narrow the query (a shorter WITHIN, a stricter strategy, more predicates), or raise run_limit.",
        )

    def _too_many_matches(self, feed: Feed, row: int) -> ExecutionError:
        return LimitError(
            f"one event of the partition {self._partition_of(feed, row)} completes more than "
            f"{self.run_limit:,} matches",
            hint="Narrow the query, raise run_limit, or use Query.compressed, which counts them without making them.",
        )

    def _partition_of(self, feed: Feed, row: int) -> str:
        names = self.program.query.partition_by
        values = [feed.table.column(name)[int(feed.grouped.order[row])].as_py() for name in names]
        where = ", ".join(f"{name} = {value!r}" for name, value in zip(names, values, strict=True))
        return printable(where, 200) if where else "of all events"

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, feed: Feed) -> None:
        """Keeps the runs, and of the events only those that a run, or a negation to come, may still look at."""
        assert self.buffer is not None
        buffer, counts = self.buffer, self.buffer.counts
        self._store_runs(feed)
        self._drop_expired(feed)
        self.dictionary = forget_strings(
            self.dictionary, feed.kernel.generated.registers, buffer.stored_i, int(self.run_counts.sum())
        )
        counts[0] = counts[2] = counts[8] = counts[11] = 0
        self._collect_garbage_of_stored(feed)
        needed = np.zeros(len(feed.grouped), np.bool_)
        nodes, runs = int(counts[3]), int(self.run_counts.sum())
        columns = (0, 4, 5) if self.program.algorithm == "merge" else (0, 4)
        for column in columns:
            needed[buffer.node[:nodes, column]] = True
        needed[buffer.stored_i[:runs, 4]] = True
        if self.pending is not None:
            needed[self.pending.matches.positions] = True
        needed |= self._may_be_negative(feed)
        rows = np.flatnonzero(needed)
        positions = feed.grouped.order[rows]
        in_table = np.argsort(positions, kind="stable")
        rows, positions = rows[in_table], positions[in_table]
        self.kept_table, self.kept_at = feed.table.take(pa.array(positions)).combine_chunks(), positions
        sizes = feed.groups[:, 1] - feed.groups[:, 6]
        self.kept_numbers = np.repeat(feed.grouped.numbers, sizes)[rows]
        self.kept_positions = feed.positions[rows]
        place = np.full(len(feed.grouped), -1, np.int64)
        place[rows] = np.arange(len(rows))
        for column in columns:
            buffer.node[:nodes, column] = place[buffer.node[:nodes, column]]
        buffer.stored_i[:runs, 4] = place[buffer.stored_i[:runs, 4]]
        if self.pending is not None:
            old = self.pending.matches
            self.pending.matches = FlatMatches(old.offsets, old.lengths, place[old.positions])

    def _forget_partitions(self) -> None:
        """Leaves out partitions of which nothing is kept; should events of one come again, it begins anew."""
        used = self.run_counts > 0
        used[self.kept_numbers] = True
        if self.pending is not None:
            used[self.pending.numbers] = True
        if used.all():
            return
        new = self.partitions.keep(used)
        for name in ("next_positions", "run_begins", "run_counts", "ended"):
            setattr(self, name, getattr(self, name)[used])
        self.kept_numbers = new[self.kept_numbers]
        if self.pending is not None:
            self.pending.numbers = new[self.pending.numbers]

    def _store_runs(self, feed: Feed) -> None:
        """The runs kept of the partitions seen here, and those of the others, one partition after the other."""
        assert self.buffer is not None
        buffer = self.buffer
        begins = self.run_begins.copy()
        seen = feed.grouped.numbers
        self.run_counts[seen] = feed.groups[:, 5]
        is_seen = np.zeros(len(self.run_counts), np.bool_)
        is_seen[seen] = True
        begins[seen] = feed.groups[:, 4]
        total = int(self.run_counts.sum())
        self.run_begins = np.concatenate([[0], np.cumsum(self.run_counts)])[:-1].astype(np.int64)
        within = np.arange(total) - np.repeat(self.run_begins, self.run_counts)
        source = np.repeat(begins, self.run_counts) + within
        from_kept = np.repeat(is_seen, self.run_counts)
        for kind in "if":
            kept, stored = getattr(buffer, f"kept_{kind}"), getattr(buffer, f"stored_{kind}")
            new = np.zeros((max(total, ROOM), stored.shape[1]), stored.dtype)
            new[:total][from_kept] = kept[source[from_kept]]
            new[:total][~from_kept] = stored[source[~from_kept]]
            setattr(buffer, f"stored_{kind}", new)

    def _drop_expired(self, feed: Feed) -> None:
        """Runs whose window has closed by now, also in partitions that have fallen silent."""
        assert self.buffer is not None
        runs = int(self.run_counts.sum())
        if self.window.kind < 2 or not runs:
            return
        times = feed.any_times
        size = self.window.float_size if self.window.kind == 3 else self.window.size
        with np.errstate(invalid="ignore"):  # times may be infinite
            is_open = feed.latest - times[self.buffer.stored_i[:runs, 4]] < size
        numbers = np.repeat(np.arange(len(self.run_counts)), self.run_counts)[is_open]
        self.run_counts = np.bincount(numbers, minlength=len(self.run_counts)).astype(np.int64)
        self.run_begins = np.concatenate([[0], np.cumsum(self.run_counts)])[:-1].astype(np.int64)
        for kind in "if":
            stored = getattr(self.buffer, f"stored_{kind}")
            stored[: len(numbers)] = stored[:runs][is_open]

    def _collect_garbage_of_stored(self, feed: Feed) -> None:
        groups = feed.groups
        feed.groups = np.zeros((0, 7), np.int64)
        self._collect_garbage(feed)
        feed.groups = groups

    def _may_be_negative(self, feed: Feed) -> Array:
        """Rows that a negation not yet judged may forbid something for."""
        index, needed = self._index(feed), np.zeros(len(feed.grouped), np.bool_)
        size = self.window.in_time
        # An event may be looked for until the window of a run that begins now has closed.
        kept = index.entries if size is None else index.kept(feed.latest.item() - 2 * size, feed.any_times)
        needed[kept] = True
        return needed


PIECE = 1 << 18
"""A table of more than twice as many events goes through in pieces, which stay in the machine's cache."""


def find_blocks(
    program: SaseProgram,
    table: pa.Table,
    format_: Format,
    run_limit: int,
    meter: Meter | None = None,
    budget: Budget | None = None,
) -> Iterator[Block]:
    """All matches in a whole table."""
    if not table.num_rows:
        return
    progress = SaseProgress(program, run_limit, format_, meter, budget)
    if table.num_rows <= 2 * PIECE or program.algorithm == "backtrack" or not _is_in_order_of_time(program, table):
        yield from progress.blocks(table, is_last=True)
    else:
        yield from _found_in_pieces(progress, table)


def _is_in_order_of_time(program: SaseProgram, table: pa.Table) -> bool:
    """Not so where keys come one after the other: what is late for one of them is not for the next."""
    times = times_array(table, program.query.order_by[0], program.query.time_type)
    return bool((times[1:] >= times[:-1]).all())


def _found_in_pieces(progress: SaseProgress, table: pa.Table) -> Iterator[Block]:
    query = progress.program.query
    codes, count = partition_codes(table, query.partition_by, null_is_a_key=False)
    progress.start_with(count, nullable_names(table))
    narrow = table.select(progress.columns_read())
    origin = EMPTY  # for each row of a piece, with what is kept before it, its place in the whole
    for begin in range(0, table.num_rows, PIECE):
        end = min(begin + PIECE, table.num_rows)
        origin = np.concatenate([origin, np.arange(begin, end)])
        for block in progress.blocks(narrow.slice(begin, PIECE), end == table.num_rows, codes[begin:end]):
            found = block.matches
            in_whole = FlatMatches(found.offsets, found.lengths, origin[found.positions].astype(ROW))
            yield Block(in_whole, block.is_settled)
        progress.budget.reach(end)
        if end < table.num_rows:
            origin = origin[progress.kept_at]
