"""The compiled engine for runs, NFA^b: events in, matches out, in pieces of any size.

`RunEngine` is the query made into kernels. `RunProgress` is how far a stream has come: the open runs, the match buffer,
and the events that they refer to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.automaton.nfa import nfa_of
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import ROW, arranged, chosen_matches, without_overlaps
from kleene.engine.compiled.arrays.completions import COMPLETION_COLUMNS
from kleene.engine.compiled.arrays.groups import GROUP_END, GROUP_FRESH, GROUP_STORED, GROUP_STORED_COUNT
from kleene.engine.compiled.arrays.nodes import NODE_LIST_START, NODE_ROW, NODE_START
from kleene.engine.compiled.arrays.runs import RUN_START
from kleene.engine.compiled.arrays.statuses import DONE, NEEDS_ROOM, TOO_MANY_RUNS
from kleene.engine.compiled.arrays.windows import WINDOW_IN_EVENTS
from kleene.engine.compiled.batches import (
    EMPTY,
    Grouped,
    arguments,
    group,
    nullable_names,
    one_group,
    partition_codes,
    permuted_arguments,
)
from kleene.engine.compiled.buffer import ROOM, Buffer, Root, loaded_buffer
from kleene.engine.compiled.columns import Array, Dictionary, MissingFrom, times_array
from kleene.engine.compiled.failures import check_span
from kleene.engine.compiled.kept import KeepingProgress, Partitions, places_of
from kleene.engine.compiled.kernel_window import KernelWindow, latest_of, wakes_at
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.open_runs import groups_of, require_run_counts, stored_runs
from kleene.engine.compiled.programs import Compiled
from kleene.engine.compiled.registers import forget_strings
from kleene.engine.compiled.run_matches import WORK_AT_ONCE, Expansion, backtracked, judged
from kleene.engine.compiled.run_piece import RunPiece, too_many_runs
from kleene.engine.compiled.sase import Generated, generate
from kleene.engine.matches import FlatMatches, FoundMatches, joined, size_of, whole_events
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import SavedParts, require, require_within
from kleene.ir import expr as ir
from kleene.ir.options import Format, Strategy

PIECE = 1 << 18
"""A table of more than twice as many events goes through in pieces, which stay in the machine's cache."""


class RunEngine(Compiled[Generated]):
    """A query and an algorithm. `ending` are the negations that may end runs; None: all that one event decides."""

    def __init__(
        self,
        query: AnalyzedQuery,
        algorithm: str,
        jit: bool = True,
        access: str = "index",
        ending: frozenset[str] | None = None,
        format_: Format = Format.ALL,
        run_limit: int = 1_000_000,
    ) -> None:
        automaton = nfa_of(query)
        super().__init__(
            lambda nullable: generate(query, automaton, nullable, algorithm, access, ending, not jit),
            jit,
            automaton,
        )
        self.query, self.algorithm, self.format, self.run_limit = query, algorithm, format_, run_limit

    @property
    def is_merged(self) -> bool:
        return self.algorithm == "merge"

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> RunProgress:
        return RunProgress(self, budget, meter)


@dataclass(slots=True)
class Pending:
    """Matches that wait for the end of their window, because an event after them may forbid them."""

    matches: FlatMatches
    numbers: Array  # of their partitions

    def moved(self, places: Array) -> None:
        """Their events have new places now."""
        self.matches = FlatMatches(self.matches.offsets, self.matches.lengths, places[self.matches.positions])


class RunProgress(KeepingProgress):
    """How far a stream has come."""

    def __init__(self, engine: RunEngine, budget: Budget | None, meter: Meter | None) -> None:
        self.engine, query = engine, engine.query
        # Of each partition: how many events it had, how many runs are open, where its last match ended.
        super().__init__(Partitions(query.partition_by, False, next_positions=0, run_counts=0, ended=-1), budget, meter)
        self.dictionary = Dictionary()
        self.window = KernelWindow.of(query)
        self.buffer: Buffer | None = None
        self.kept_positions = EMPTY
        self.pending: Pending | None = None
        self.expansion = Expansion(engine.is_merged, len(query.components), engine.jit, engine.run_limit, self.budget)
        self.keeps_buffer = False  # for compressed output, which is the buffer

    # --- feeding -------------------------------------------------------------------------------------------------

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[FoundMatches]:
        """The matches that these events complete, in blocks of bounded size.

        Where partitions mix, or matches wait for the end of their windows, a block may be followed by matches that come
        before it.
        """
        if is_last and self.kept.table is None and self._is_better_in_pieces(events):
            yield from self._in_pieces(events)
        else:
            yield from self._fed(events, now, is_last, None)

    def _is_better_in_pieces(self, table: pa.Table) -> bool:
        """Not so where keys come one after the other: what is late for one of them is not for the next."""
        if table.num_rows <= 2 * PIECE or self.engine.algorithm == "backtrack":
            return False
        times = times_array(table, self.engine.query.order_by[0], self.engine.query.time_type)
        return bool((times[1:] >= times[:-1]).all())

    def _in_pieces(self, table: pa.Table) -> Iterator[FoundMatches]:
        """A whole table piece by piece; what is found refers to the whole."""
        codes, count = partition_codes(table, self.engine.query.partition_by, null_is_a_key=False)
        self.partitions.grow(count)
        self.nullable |= nullable_names(table)
        narrow = table.select(self._columns_read())
        origins = EMPTY  # for each row of a piece, with what is kept before it, its place in the whole
        for begin in range(0, table.num_rows, PIECE):
            end = min(begin + PIECE, table.num_rows)
            origins = np.concatenate([origins, np.arange(begin, end)])
            is_last = end == table.num_rows
            for found in self._fed(narrow.slice(begin, PIECE), None, is_last, codes[begin:end]):
                positions = origins[found.matches.positions].astype(ROW)
                matches = FlatMatches(found.matches.offsets, found.matches.lengths, positions)
                yield FoundMatches(table, matches, found.is_settled and (is_last or not self.waits_for_the_end))
            self.budget.reach(end)
            if not is_last:
                origins = origins[self.kept.origins]

    def _columns_read(self) -> list[str]:
        """The columns that the kernels, and the order and partitions of events, need."""
        query = self.engine.query
        columns = [column.expression for column in self.engine.generated(self.nullable).layout.columns]
        read = {node.name for item in columns for node in ir.walk(item) if isinstance(node, ir.Attribute)}
        if any(isinstance(item, MissingFrom) for item in columns):
            assert query.schema is not None
            assert query.schema.presence_column is not None
            read.add(query.schema.presence_column)
        return sorted({*read, query.order_by[0], *query.partition_by})

    def _fed(self, table: pa.Table, now: Time | None, is_last: bool, codes: Array | None) -> Iterator[FoundMatches]:
        """`codes` are the numbers of the events' partitions, if these are known for the whole input."""
        started, fresh = perf_counter(), table.num_rows
        piece = self.prepared(table, now, is_last, codes)
        self.meter.add("read", fresh, fresh, perf_counter() - started)
        self.meter.add("RunScan", fresh, 0, 0.0)
        held: list[FlatMatches] = []
        size, in_order = 0, self._gives_in_order(piece)
        for part in self._parts(piece, is_last):
            held.append(part)
            size += size_of(part)
            if size > self.budget.at_once:
                yield FoundMatches(piece.table, self._arranged(piece, held), in_order)
                held, size = [], 0
        if not is_last:
            self._retain(piece)
            if codes is None:
                self._forget_partitions()
        yield FoundMatches(piece.table, self._arranged(piece, held), True)

    def _gives_in_order(self, piece: RunPiece) -> bool:
        """Whether later matches end later."""
        is_possible = not self.waits_for_the_end and self.engine.algorithm != "backtrack"
        return is_possible and piece.grouped.is_in_order

    def _parts(self, piece: RunPiece, is_last: bool) -> Iterator[FlatMatches]:
        """All matches that can be given out now, by rows; those that end together are in one part."""
        started = perf_counter() - self.meter.seconds("Judge")
        for found, groups in self._matches(piece, is_last):
            if self.engine.format is Format.NON_OVERLAPPING:
                places = piece.positions[found.first], piece.positions[found.last]
                numbers, ended = piece.grouped.numbers[groups], self.partitions["ended"]
                found = without_overlaps(found, numbers, *places, ended, self.engine.jit)
            self.budget.count(len(found))
            self.budget.add("its matches", 2 * size_of(found))  # they are held twice while they are put in order
            self._spent_since(started)
            yield found
            started = perf_counter() - self.meter.seconds("Judge")
        self._spent_since(started)

    def _spent_since(self, started: float) -> None:
        """Counts the time since then, of which judging has its own count."""
        self.meter.add("RunScan", 0, 0, perf_counter() - self.meter.seconds("Judge") - started)

    def _arranged(self, piece: RunPiece, parts: list[FlatMatches]) -> FlatMatches:
        """Matches by their positions in the table, in output order."""
        self.budget.check_time()
        found = arranged(parts, piece.grouped.order, piece.components, self.engine.jit)
        self.budget.hold("its matches", 0)
        return found

    def completions(self, table: pa.Table, is_last: bool = True, now: Time | None = None) -> tuple[RunPiece, Array]:
        """For compressed output: the events as the kernels see them, and every completion; the buffer stays whole."""
        self.keeps_buffer = True
        piece = self.prepared(table, now, is_last)
        found = [completions.copy() for completions in self._visits(piece)]
        return piece, np.concatenate([np.zeros((0, COMPLETION_COLUMNS), np.int64), *found])

    def go_on(self, piece: RunPiece) -> None:
        """What is kept of a piece for the next, after its completions were looked at."""
        self._retain(piece)
        self._forget_partitions()

    # --- a piece as the kernels see it -----------------------------------------------------------------------------

    def prepared(self, table: pa.Table, now: Time | None, is_last: bool, codes: Array | None = None) -> RunPiece:
        query, old = self.engine.query, len(self.kept)
        table, codes = self.behind_kept(table, is_last, codes)
        kernel = self.engine.kernel(self.nullable, self.budget)
        as_given = one_group(table.num_rows)
        given = arguments(kernel.generated.layout, table, query.schema, as_given, self.dictionary)
        bits = np.zeros(table.num_rows, np.int64)
        kernel.run("classify", bits, 0, len(bits), *given)
        if self._may_leave_out:
            codes = np.where(bits == 0, -1, codes)
        grouped = group(codes, max(len(self.partitions), 1), self.engine.jit)
        if not grouped.is_identity:
            given, bits = permuted_arguments(given, grouped), np.ascontiguousarray(bits[grouped.order])
        all_times = times_array(table, query.order_by[0], query.time_type)
        times = np.ascontiguousarray(grouped.permuted(all_times))
        check_span(times, query.order_by[0])
        groups = groups_of(grouped, old, self.partitions["run_counts"])
        events = (times, self._event_positions(grouped, groups, old), kernel, given, bits, groups)
        known = (latest_of(all_times, now), self.window, len(query.components), query.partition_by)
        piece = RunPiece(table, grouped, *events, *known)
        self._begin(piece, old, is_last)
        return piece

    @property
    def _may_leave_out(self) -> bool:
        """Whether events that no component and no negation can use need not be looked at."""
        skips = self.engine.query.strategy in (Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH)
        return skips and self.window.kind != WINDOW_IN_EVENTS

    def _event_positions(self, grouped: Grouped, groups: Array, old: int) -> Array:
        """The place of each event in its partition, since the beginning of the stream."""
        if not len(grouped):
            return EMPTY
        next_positions = self.partitions["next_positions"]
        before = groups[:, GROUP_FRESH] - next_positions[grouped.numbers]
        own = np.arange(len(grouped)) - np.repeat(before, grouped.sizes)
        if old:
            is_old = grouped.order < old
            own[is_old] = self.kept_positions[grouped.order[is_old]]
        next_positions[grouped.numbers] += groups[:, GROUP_END] - groups[:, GROUP_FRESH]
        return np.ascontiguousarray(own)

    def _begin(self, piece: RunPiece, old: int, is_last: bool) -> None:
        if self.buffer is None:
            self.buffer = Buffer(piece.kernel.generated.registers)
            if len(piece.grouped) > 64 * ROOM:
                self.buffer.make_larger(64)  # so that matches are read out in fewer, larger pieces
        if old:
            self._move_rows(piece, self.buffer)
        st = self.buffer.st
        st.group = st.row = st.runs = st.loaded = st.completions = st.kept = 0
        st.run_limit, st.work, st.keeps = self.engine.run_limit, WORK_AT_ONCE, 0 if is_last else 1
        if st.stamp > 2**30:
            st.stamp = 0
            self.buffer.slots[:] = 0

    def _move_rows(self, piece: RunPiece, buffer: Buffer) -> None:
        """Events kept from before have new places now."""
        places = places_of(piece.grouped.order, piece.table.num_rows)
        nodes, starts = self._moved(buffer, places)
        # In a snapshot that was forged, events are kept that no component could have selected.
        require(bool((nodes[:, NODE_ROW] >= 0).all() and (starts >= 0).all()), "kept_table")
        if self.pending is not None:
            self.pending.moved(places)
            require(bool((self.pending.matches.positions >= 0).all()), "kept_table")

    def _moved(self, buffer: Buffer, places: Array) -> tuple[Array, Array]:
        """The nodes, and the starts of the stored runs, after their events have moved."""
        nodes, starts = buffer.node[: buffer.st.nodes], buffer.stored.i[: self.runs, RUN_START]
        for column in self._row_columns:
            nodes[:, column] = places[nodes[:, column]]
        starts[:] = places[starts]
        return nodes, starts

    @property
    def _row_columns(self) -> tuple[int, ...]:
        """The columns of a node that are rows of events."""
        return (NODE_ROW, NODE_START, NODE_LIST_START) if self.engine.is_merged else (NODE_ROW, NODE_START)

    @property
    def runs(self) -> int:
        """How many are open."""
        return int(self.partitions["run_counts"].sum())

    # --- running -------------------------------------------------------------------------------------------------

    def _visits(self, piece: RunPiece) -> Iterator[Array]:
        """Runs the kernel; gives back control with the completions whenever they must be read out."""
        buffer = self.buffer
        assert buffer is not None
        st, current = buffer.st, np.empty(piece.components, np.int64)
        while True:
            arrays = (piece.events, buffer.all_runs, buffer.graph, current)
            status = piece.kernel.run("advance", st.array, *arrays, *piece.arguments)
            if status == TOO_MANY_RUNS:
                row = min(st.row, len(piece.grouped)) - 1
                raise too_many_runs(piece, row, self.engine.run_limit)
            self.budget.reach(st.row)
            yield buffer.done[: st.completions]
            st.completions = 0
            if status == DONE:
                return
            if status == NEEDS_ROOM:
                self._make_room(piece, buffer)

    def _make_room(self, piece: RunPiece, buffer: Buffer) -> None:
        """Drops what no run can reach any more; what is still more than half full gets twice the room."""
        if not self.keeps_buffer:
            self._collect_garbage(piece, buffer, self._roots(piece, buffer))
        at = buffer.st.group
        self.budget.hold("the match buffer with the runs in it", 3 * buffer.bytes)  # when it grows, old and new
        buffer.grow(int(piece.groups[at, GROUP_STORED_COUNT]) if at < len(piece.groups) else 0)

    def _roots(self, piece: RunPiece, buffer: Buffer) -> list[Root]:
        """The arrays of runs, each with the rows of it that are in use."""
        st, is_stored = buffer.st, np.arange(len(buffer.stored.i)) < self.runs
        # Those of the groups that are done, or loaded, are copies by now.
        done = piece.groups[: st.group + (1 if st.loaded else 0)]
        change = np.zeros(len(is_stored) + 1, np.int64)
        np.add.at(change, done[:, GROUP_STORED], 1)
        np.add.at(change, done[:, GROUP_STORED] + done[:, GROUP_STORED_COUNT], -1)
        is_stored &= np.cumsum(change)[:-1] == 0
        return [
            (buffer.runs.i, np.arange(st.runs)),
            (buffer.kept.i, np.arange(st.kept)),
            (buffer.stored.i, np.flatnonzero(is_stored)),
        ]

    def _collect_garbage(self, piece: RunPiece, buffer: Buffer, roots: list[Root]) -> None:
        buffer.collect_garbage(roots, self.engine.is_merged, piece.window_arguments, shared_loops(self.engine.jit))

    # --- matches -------------------------------------------------------------------------------------------------

    def _matches(self, piece: RunPiece, is_last: bool) -> Iterator[tuple[FlatMatches, Array]]:
        """All matches that can be given out now, by rows, and the number of each one's group."""
        parts, backtracks = self._expanded(piece), self.engine.algorithm == "backtrack"
        must_wait = self.waits_for_the_end and (not is_last or self.pending is not None)
        if must_wait or (backtracks and self.engine.format is Format.NON_OVERLAPPING):
            held: list[tuple[FlatMatches, Array]] = []
            for part in parts:
                held.append(part)
                self.budget.add("its matches", size_of(part[0]))
            found = joined([part for part, _ in held], piece.components)
            group_of = np.concatenate([EMPTY, *(groups for _, groups in held)])
            parts = iter([self._closed(piece, found, group_of, is_last)])
        else:
            parts = whole_events(parts, by_first=backtracks)
        return (judged(piece, *part, self.budget, self.meter) for part in parts)

    @property
    def waits_for_the_end(self) -> bool:
        query = self.engine.query
        return any(negation.gap == len(query.components) for negation in query.negations)

    def _expanded(self, piece: RunPiece) -> Iterator[tuple[FlatMatches, Array]]:
        assert self.buffer is not None
        self.expansion.budget = self.budget
        if self.engine.algorithm == "backtrack":
            yield from backtracked(piece, self.buffer, piece.components, self.engine.run_limit, self.budget)
            return
        for completions in self._visits(piece):
            yield from self.expansion.matches(piece, self.buffer, completions)

    def _closed(self, piece: RunPiece, found: FlatMatches, group_of: Array, is_last: bool) -> tuple[FlatMatches, Array]:
        """Matches whose window has closed, or whose input has ended; the others wait."""
        numbers = piece.grouped.numbers
        if self.pending is not None:
            places = np.zeros(len(self.partitions), np.int64)
            places[numbers] = np.arange(len(numbers))
            found = joined([self.pending.matches, found], found.lengths.shape[1])
            group_of = np.concatenate([places[self.pending.numbers], group_of])
            self.pending = None
        if is_last or not len(found):
            return found, group_of
        since = found.last if self.engine.format is Format.NON_OVERLAPPING else found.first
        is_closed = self.window.is_over(piece.latest, piece.any_times[since])
        waiting = np.flatnonzero(~is_closed)
        if len(waiting):
            self.pending = Pending(chosen_matches(found, waiting), numbers[group_of[waiting]])
            self.budget.hold("matches that wait for the end of their windows", size_of(self.pending.matches))
        return chosen_matches(found, np.flatnonzero(is_closed)), group_of[is_closed]

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, piece: RunPiece) -> None:
        """Keeps the runs, and of the events only those that a run, or a negation to come, may still look at."""
        buffer = self.buffer
        assert buffer is not None
        counts, registers = self.partitions["run_counts"], piece.kernel.generated.registers
        self.partitions["run_counts"], buffer.stored = stored_runs(
            piece.grouped, piece.groups, counts, buffer.kept, buffer.stored, ROOM
        )
        self._drop_expired(piece, buffer)
        self.dictionary = forget_strings(self.dictionary, registers, buffer.stored.i, self.runs)
        buffer.st.group = buffer.st.runs = buffer.st.kept = buffer.st.loaded = 0
        self._collect_garbage(piece, buffer, [(buffer.stored.i, np.arange(self.runs))])
        rows, places = self.kept.keep_grouped(piece.table, piece.grouped, self._needed(piece, buffer))
        self.kept_positions = piece.positions[rows]
        self._moved(buffer, places)
        if self.pending is not None:
            self.pending.moved(places)

    def _needed(self, piece: RunPiece, buffer: Buffer) -> Array:
        """The rows of the events that are kept."""
        is_needed = np.zeros(len(piece.grouped), np.bool_)
        for column in self._row_columns:
            is_needed[buffer.node[: buffer.st.nodes, column]] = True
        is_needed[buffer.stored.i[: self.runs, RUN_START]] = True
        if self.pending is not None:
            is_needed[self.pending.matches.positions] = True
        # An event that a negation may forbid is looked for until the window of a run that begins now has closed.
        index, size = piece.index(), self.window.in_time
        negative = index.entries if size is None else index.kept(piece.latest.item() - 2 * size, piece.any_times)
        is_needed[negative] = True
        return np.flatnonzero(is_needed)

    def _drop_expired(self, piece: RunPiece, buffer: Buffer) -> None:
        """Runs whose window has closed by now, also in partitions that have fallen silent."""
        size, runs, counts = self.window.in_time, self.runs, self.partitions["run_counts"]
        if size is None or not runs:
            return
        with np.errstate(invalid="ignore"):  # times may be infinite
            is_open = piece.latest - piece.any_times[buffer.stored.i[:runs, RUN_START]] < size
        numbers = np.repeat(np.arange(len(counts)), counts)[is_open]
        self.partitions["run_counts"] = np.bincount(numbers, minlength=len(counts)).astype(np.int64)
        for stored in buffer.stored:
            stored[: len(numbers)] = stored[:runs][is_open]

    def _forget_partitions(self) -> None:
        used = self.partitions["run_counts"] > 0
        if self.pending is not None:
            used[self.pending.numbers] = True
        new = self.forget_partitions(used)
        if self.pending is not None and new is not None:
            self.pending.numbers = new[self.pending.numbers]

    # --- between pieces ------------------------------------------------------------------------------------------

    def held(self) -> Held:
        since = EMPTY
        if self.pending is not None:
            waiting = self.pending.matches
            since = waiting.last if self.engine.format is Format.NON_OVERLAPPING else waiting.first
        wakes = wakes_at(self.window, self.engine.query, self.kept.table, since)
        return self.holding(self.runs, 0 if self.buffer is None else self.buffer.bytes, wakes)

    def saved(self) -> dict[str, Any]:
        parts = {"strings": self.dictionary.strings, "kept_positions": self.kept_positions, **super().saved()}
        if self.pending is not None:
            matches = self.pending.matches
            parts["pending_offsets"], parts["pending_lengths"] = matches.offsets, matches.lengths
            parts["pending_positions"], parts["pending_numbers"] = matches.positions, self.pending.numbers
        return parts if self.buffer is None else parts | self.buffer.saved(self.runs)

    def load(self, parts: SavedParts) -> None:
        self.dictionary = Dictionary(parts.strings("strings"))
        super().load(parts)
        kept = len(self.kept)
        self.kept_positions = parts.array("kept_positions", kept, low=0)
        if "pending_offsets" in parts:
            self.pending = self._loaded_pending(parts)
        if "node" in parts:
            registers = self.engine.generated(self.nullable).registers
            kleene = [component.is_kleene for component in self.engine.query.components]
            strings = len(self.dictionary.strings)
            self.buffer = loaded_buffer(parts, registers, kept, kleene, self.engine.is_merged, strings)
        runs = 0 if self.buffer is None else len(parts.array("stored_i", None, None))
        require_run_counts(self.partitions["run_counts"], runs, "run_counts")

    def _loaded_pending(self, parts: SavedParts) -> Pending:
        offsets = parts.array("pending_offsets", None, low=0)
        positions = parts.array("pending_positions", None, low=0, high=len(self.kept))
        lengths = parts.array("pending_lengths", len(offsets) - 1, len(self.engine.query.components), low=1)
        require_within(lengths, 1, len(positions) + 1, "pending_lengths")
        require(bool((np.append(0, np.cumsum(lengths.sum(axis=1))) == offsets).all()), "pending_offsets")
        require(int(offsets[-1]) == len(positions), "pending_positions")
        numbers = parts.array("pending_numbers", len(offsets) - 1, low=0, high=max(len(self.partitions), 1))
        return Pending(FlatMatches(offsets, lengths, positions), numbers)
