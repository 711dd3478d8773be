"""The engine for plans of sequence operators: events in, matches out, in pieces of any size.

A block of events goes through the whole pipeline before the next: the scan puts its events on the stacks, construction
makes the sequences that they complete, and each operator above drops what it does not let through. `SequenceProgress`
is how far a stream has come: the stacks, and the events that they refer to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.budget import Budget
from kleene.engine.column_types import attribute_type
from kleene.engine.compiled.arrangement import ROW, without_overlaps
from kleene.engine.compiled.arrays import Counters
from kleene.engine.compiled.arrays.accepts import ACCEPT_RIP, ACCEPT_ROW
from kleene.engine.compiled.arrays.statuses import DONE, NEEDS_ROOM, TOO_MANY_MATCHES
from kleene.engine.compiled.arrays.windows import WINDOW_IN_EVENTS
from kleene.engine.compiled.batches import EMPTY, Arguments, arguments, group, one_group
from kleene.engine.compiled.columns import Array, Dictionary, check_readable, times_array
from kleene.engine.compiled.failures import check_span
from kleene.engine.compiled.kept import KeepingProgress, Partitions, partition_text
from kleene.engine.compiled.kernel_window import KernelWindow, latest_of, wakes_at
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.negation_index import NegationIndex, negation_index
from kleene.engine.compiled.programs import Compiled, Kernel
from kleene.engine.compiled.sequence_code import GeneratedSequence, generate_sequence, prunes
from kleene.engine.compiled.stacks import Scratch, Stacks
from kleene.engine.matches import FlatMatches, FoundMatches
from kleene.engine.output import arrow_type
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import SavedParts, require
from kleene.errors import ExecutionError, LimitError
from kleene.ir.options import Format
from kleene.plan.operators import Pipeline, SequenceScan

BLOCK = 1 << 14
"""How many events go through the pipeline at a time: what they leave behind stays in the machine's cache."""
MOST_TO_CHOOSE = 0.7
"""If fewer than this share of the events can be used, only those get numbers for their keys."""
MOST_HEIGHTS = 1 << 12
"""Sequences are sorted by merging if they are over more instances of one stack than this."""
TRIES_AT_ONCE = 1 << 18
"""How many candidates construction looks at before it pauses, so that limits can be looked at."""
FILTERED_AT_ONCE = 1 << 14
LATE = ("NegationInLastPlace", "Having")


class SequenceEngine(Compiled[GeneratedSequence]):
    """A query and its plan."""

    def __init__(
        self,
        query: AnalyzedQuery,
        plan: Pipeline,
        jit: bool = True,
        format_: Format = Format.ALL,
        run_limit: int = 1_000_000,
    ) -> None:
        super().__init__(lambda nullable: generate_sequence(query, plan, nullable, not jit), jit)
        self.query, self.plan, self.format, self.run_limit = query, plan, format_, run_limit
        scan = plan.get(SequenceScan)
        self.is_basic = scan.algorithm == "basic"
        self.stacked = 1 if scan.is_combined else max(len(scan.tests), 1)

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> SequenceProgress:
        return SequenceProgress(self, budget, meter)


@dataclass(slots=True)
class SequencePiece:
    """One piece of the input behind the events kept from before, as the kernels see them."""

    table: pa.Table
    numbers: Array  # of the events' partitions, where something is counted in them
    kernel: Kernel[GeneratedSequence]
    arguments: Arguments
    bits: Array
    relevant: Array  # the rows that the scan goes through
    codes: Array
    times: Array
    positions: Array
    index: NegationIndex
    heights: Array  # of the events of each component on their stack
    latest: Any

    @property
    def context(self) -> tuple[Any, ...]:
        return self.codes, *self.index.arguments, self.times, self.positions


class SequenceProgress(KeepingProgress):
    """How far a stream has come."""

    def __init__(self, engine: SequenceEngine, budget: Budget | None, meter: Meter | None) -> None:
        self.engine, query = engine, engine.query
        self.window = KernelWindow.of(query)
        # Of each partition, where something is counted in it: how many events it had, where its last match ended.
        names = query.partition_by if self._needs_partitions else ()
        super().__init__(Partitions(names, False, next_positions=0, ended=-1), budget, meter)
        self.stacks = Stacks(len(query.components), engine.stacked, engine.is_basic)
        self.keys: dict[tuple[int, ...], Partitions] = {}  # by the tests that they number together
        self.kept_positions = EMPTY
        self.pending = np.empty((0, len(query.components)), ROW)

    # --- feeding -------------------------------------------------------------------------------------------------

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[FoundMatches]:
        """The matches that these events complete, in blocks of bounded size."""
        old = len(self.kept)
        piece = self._prepared(events, now, is_last)
        held: list[Array] = []
        size = 0
        for part in self._through_the_pipeline(piece, old):
            held.append(part)
            size += part.nbytes
            if is_last and not old and size > self.budget.at_once:
                found = _concatenated(held, part.shape[1])
                end = int(np.searchsorted(found[:, -1], found[-1, -1]))  # more may come that end at the last event
                held, size = [found[end:]], found[end:].nbytes
                if end:
                    matches = self._arranged(piece, self._after_the_end(piece, found[:end], True), old)
                    yield FoundMatches(piece.table, matches, True)
        found = _concatenated(held, len(self.engine.query.components))
        matches = self._arranged(piece, self._after_the_end(piece, found, is_last), old)
        if not is_last:
            self._retain(piece)
        yield FoundMatches(piece.table, matches, True)

    def _arranged(self, piece: SequencePiece, found: Array, old: int) -> FlatMatches:
        """The sequences that are given out, in output order."""
        # Sequences that waited may have events that are no longer on a stack.
        heights = piece.heights[:, :0] if old and LATE[0] in piece.kernel.generated.filters else piece.heights
        found = in_output_order(found, heights, self.engine.jit)
        result = _flat(found, len(self.engine.query.components))
        if self.engine.format is Format.NON_OVERLAPPING:
            places = piece.positions[result.first], piece.positions[result.last]
            ended = self.partitions["ended"]
            result = without_overlaps(result, piece.numbers[result.last], *places, ended, self.engine.jit)
        self.budget.hold("its matches", 0)
        if not self._gives_all(piece):
            self.budget.count(len(result))
        return result

    def _gives_all(self, piece: SequencePiece) -> bool:
        """Whether every sequence that is constructed is given out."""
        return self.engine.format is Format.ALL and not any(name in LATE for name in piece.kernel.generated.filters)

    def _prepared(self, table: pa.Table, now: Time | None, is_last: bool) -> SequencePiece:
        query, started = self.engine.query, perf_counter()
        old, is_whole = len(self.kept), is_last and self.kept.table is None
        table, numbers = self.behind_kept(table, is_last)
        kernel = self.engine.kernel(self.nullable, self.budget)
        generated, rows = kernel.generated, table.num_rows
        given = arguments(generated.layout, table, query.schema, one_group(rows), Dictionary())
        times = times_array(table, query.order_by[0], query.time_type)
        check_span(times, query.order_by[0])
        positions = self._event_positions(numbers, old)
        bits, relevant, classifying = np.empty(rows, np.int64), np.empty(rows + 1, np.int64), perf_counter()
        relevant = relevant[: kernel.run("classify", bits, relevant, 0, rows, *given)]
        seconds = perf_counter() - classifying
        codes = self._codes(table, generated, relevant, is_whole)
        self.meter.add("SequenceScan", rows - old, len(relevant), seconds)
        self.meter.add("read", rows - old, rows - old, perf_counter() - started - seconds)
        started = perf_counter()
        index = self._index(generated, bits, codes, times)
        self.meter.add("NegationIndex", len(index.entries), 0, perf_counter() - started)
        if is_whole:
            self.stacks.expect(len(relevant))
        heights, latest = self.stacks.heights(rows), latest_of(times, now)
        return SequencePiece(
            table, numbers, kernel, given, bits, relevant, codes, times, positions, index, heights, latest
        )

    def _codes(self, table: pa.Table, generated: GeneratedSequence, relevant: Array, is_whole: bool) -> Array:
        """For each attribute of a test, the number of each event's value; -1 if it has none, or if nothing reads it."""
        codes = np.full((max(len(generated.codes), 1), table.num_rows), -1, np.int64)
        for name in self._key_columns:
            check_readable(table.column(name), attribute_type(table.column(name).type), name)
        if len(relevant) < MOST_TO_CHOOSE * table.num_rows:
            table = table.select(self._key_columns).take(pa.array(relevant))
        else:
            relevant = np.arange(table.num_rows)
        for tests in dict.fromkeys(coding.tests for coding in generated.codes):
            own = [coding for coding in generated.codes if coding.tests == tests]
            values = key_values(table, generated, tests, self.engine.query)
            keys = self.keys.setdefault(tests, Partitions(values.column_names, False))
            found = keys.numbers(values, is_whole)
            if tests in generated.stacked:
                self.stacks.more_keys(len(keys))
            for at, coding in enumerate(own):
                part = found[at * table.num_rows : (at + 1) * table.num_rows]
                codes[generated.codes.index(coding), relevant] = part
        return codes

    @property
    def _key_columns(self) -> list[str]:
        tests = self.engine.plan.tests
        return sorted({name for test in tests for name in (*test.attributes, *test.negative) if name is not None})

    @property
    def _needs_partitions(self) -> bool:
        return self.window.kind == WINDOW_IN_EVENTS or self.engine.format is Format.NON_OVERLAPPING

    def _event_positions(self, numbers: Array, old: int) -> Array:
        """The place of each event in its partition, from the beginning of the stream; empty if nothing needs it."""
        if not self._needs_partitions:
            return EMPTY
        next_positions, positions = self.partitions["next_positions"], np.zeros(len(numbers), np.int64)
        positions[:old] = self.kept_positions
        grouped = group(numbers[old:], len(next_positions), self.engine.jit)
        if len(grouped):
            before = np.repeat(next_positions[grouped.numbers], grouped.sizes)
            positions[old + grouped.order] = grouped.places + before
            next_positions[grouped.numbers] += grouped.sizes
        return positions

    def _index(self, generated: GeneratedSequence, bits: Array, codes: Array, times: Array) -> NegationIndex:
        first_bit = len(self.engine.query.components)
        rows = [np.flatnonzero((bits >> (first_bit + number)) & 1) for number in generated.judged]
        keys = []
        for arrays, own in zip(generated.index_keys, rows, strict=True):
            key = codes[arrays[0]][own] if arrays else np.zeros(len(own), np.int64)
            for array in arrays[1:]:  # an event without a value for one of the tests forbids nothing
                key = np.where(codes[array][own] < 0, -1, key)
            keys.append(key)
        return negation_index(rows, keys, times, self.window.in_time, self.engine.jit)

    # --- the pipeline --------------------------------------------------------------------------------------------

    def _through_the_pipeline(self, piece: SequencePiece, old: int) -> Iterator[Array]:
        """The sequences that the events complete, in the order of their last events."""
        stacks, meter = self.stacks, self.meter
        components = len(self.engine.query.components)
        scan = "scan_basic" if self.engine.is_basic else "scan"
        first, last = old, piece.table.num_rows
        if not self.engine.is_basic:
            first, last = int(np.searchsorted(piece.relevant, old)), len(piece.relevant)
        st = Counters("sequence_counters", event=first, component=components, work=TRIES_AT_ONCE)
        accepts = np.zeros((BLOCK, ACCEPT_RIP + self.engine.stacked), np.int64)
        scratch = Scratch(components, self.engine.stacked)
        while st.event < last:
            begin = st.event
            st.end, st.room = min(begin + BLOCK, last), stacks.room
            st.accepts = st.accept = 0
            started = perf_counter()
            events = (piece.bits, piece.relevant, piece.codes, piece.times, piece.positions)
            on_stacks = (stacks.stack, stacks.base, stacks.top, stacks.heads, piece.heights)
            rest = (accepts, scratch.at, stacks.node, *piece.arguments)
            status = piece.kernel.run(scan, st.array, *events, *on_stacks, *rest)
            meter.add("SequenceScan", 0, 0, perf_counter() - started)
            meter.most("instances", int((stacks.top - stacks.base).sum()))
            self.budget.reach(st.event if self.engine.is_basic else int(piece.relevant[st.event - 1]))
            if st.accepts:
                yield from self._construct(piece, st, accepts, scratch)
            if status == NEEDS_ROOM and stacks.room < max(components, stacks.stack.shape[1] // 4):
                self.budget.hold("the stacks", 3 * stacks.bytes)
                stacks.grow()

    def _construct(self, piece: SequencePiece, st: Counters, accepts: Array, scratch: Scratch) -> Iterator[Array]:
        stacks, meter = self.stacks, self.meter
        while True:
            started = perf_counter()
            st.written, st.tried = 0, 0
            stack = scratch.stack if self.engine.is_basic else stacks.stack
            room = (scratch.found, scratch.rows, scratch.cursor, scratch.size)
            rest = ((stack, stacks.base, stacks.node), piece.context, *piece.arguments)
            status = piece.kernel.run("construct", st.array, accepts, room, self.engine.run_limit, *rest)
            if status == TOO_MANY_MATCHES:
                raise self._too_many(piece, int(accepts[st.accept, ACCEPT_ROW]))
            count = st.written
            meter.add("SequenceConstruction", st.tried, count, perf_counter() - started)
            for name in piece.kernel.generated.filters:
                if count and name not in LATE:
                    count = self._filtered(piece, name, scratch.found, count)
            self.budget.check_time()
            if count:
                found = scratch.found[:count].copy()
                self.budget.add("its matches", 3 * found.nbytes)  # they are held twice while they are put in order
                if self._gives_all(piece):
                    self.budget.count(count)
                yield found
            if status == DONE:
                meter.add("accepts", st.accepts, 0, 0.0)
                return
            if status == NEEDS_ROOM:
                scratch.grow()

    def _filtered(self, piece: SequencePiece, name: str, found: Array, count: int) -> int:
        self.budget.check_time()
        started = perf_counter()
        rows = np.zeros(found.shape[1], np.int64)  # its own: construction goes on from where it was
        kept = int(piece.kernel.run(name, found, count, rows, *piece.context, *piece.arguments))
        self.meter.add(name, count, kept, perf_counter() - started)
        return kept

    def _after_the_end(self, piece: SequencePiece, found: Array, is_last: bool) -> Array:
        """Applies HAVING and negations in last place, for which a sequence waits until its window has closed."""
        filters = piece.kernel.generated.filters
        if LATE[0] in filters:
            if len(self.pending):
                found = np.concatenate([self.pending, found])
            if not is_last:
                since = found[:, -1 if self.engine.format is Format.NON_OVERLAPPING else 0]
                is_closed = self.window.is_over(piece.latest, piece.times[since])
                self.pending, found = found[~is_closed], found[is_closed]
        found = np.ascontiguousarray(found)
        for name in LATE:
            if name in filters and len(found):
                parts = [found[at : at + FILTERED_AT_ONCE] for at in range(0, len(found), FILTERED_AT_ONCE)]
                found = np.concatenate([part[: self._filtered(piece, name, part, len(part))] for part in parts])
        return found

    def _too_many(self, piece: SequencePiece, row: int) -> ExecutionError:
        return LimitError(
            f"one event of the partition {partition_text(piece.table, self.engine.query.partition_by, row)} completes "
            f"more than {self.engine.run_limit:,} sequences",
            hint="Narrow the query (a shorter WITHIN, an equivalence test, more predicates), or raise run_limit.",
        )

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, piece: SequencePiece) -> None:
        """Keeps the events that an instance, a negation or a waiting match may still look at."""
        stacks = self.stacks
        if prunes(self.engine.query, self.engine.plan):
            in_time = self.window.in_time
            if in_time is not None:
                stacks.prune(piece.times, piece.latest, in_time)
            elif len(piece.positions):
                stacks.prune(piece.positions, piece.positions.max(), self.window.size)
        needed = np.zeros(piece.table.num_rows, np.bool_)
        for array, places in stacks.live():
            for column in stacks.row_columns:
                needed[array[places, column]] = True
        needed[self.pending.ravel()] = True
        needed[self._live_entries(piece)] = True
        rows = np.flatnonzero(needed)
        moved = self.kept.keep(piece.table, rows, piece.numbers[rows])
        for array, places in stacks.live():
            for column in stacks.row_columns:
                array[places, column] = moved[array[places, column]]
        self.pending = moved[self.pending].astype(ROW)
        self.kept_positions = piece.positions[rows] if len(piece.positions) else EMPTY
        self._forget_keys(piece, rows)
        stacks.shrink()
        if self._needs_partitions and self.engine.query.partition_by:
            self.forget_partitions(np.zeros(len(self.partitions), np.bool_))

    def _live_entries(self, piece: SequencePiece) -> Array:
        """The events of negations, without those in parts of time that no open window reaches."""
        size = self.window.in_time
        if size is None:  # negations are in the middle then, behind an event that is on a stack
            column = self.stacks.row_columns[0]
            live = [array[places, column].min() for array, places in self.stacks.live() if len(places)]
            oldest = min(live, default=None)
            return piece.index.entries[:0] if oldest is None else piece.index.entries[piece.index.entries >= oldest]
        return piece.index.kept(piece.latest.item() - 2 * size, piece.times)

    def _forget_keys(self, piece: SequencePiece, rows: Array) -> None:
        """Values without a kept event lose their numbers. If they come again, they get new ones."""
        generated = piece.kernel.generated
        for tests, keys in self.keys.items():
            own = [codes for coding, codes in zip(generated.codes, piece.codes, strict=False) if coding.tests == tests]
            used = np.zeros(len(keys), np.bool_)
            for codes in own:
                kept = codes[rows]
                used[kept[kept >= 0]] = True
            if used.all():
                continue
            keys.keep(used)
            if tests in generated.stacked:
                self.stacks.keep_keys(generated.stacked.index(tests), used)
        most = max((len(keys) for tests, keys in self.keys.items() if tests in generated.stacked), default=1)
        self.stacks.heads = np.ascontiguousarray(self.stacks.heads[:, : max(most, 1)])

    # --- between pieces ------------------------------------------------------------------------------------------

    def held(self) -> Held:
        """Instances on the stacks take the place of runs here."""
        instances = int((self.stacks.top - self.stacks.base).sum())
        since = self.pending[:, -1 if self.engine.format is Format.NON_OVERLAPPING else 0]
        wakes = wakes_at(self.window, self.engine.query, self.kept.table, since)
        return self.holding(instances, self.stacks.bytes + int(self.pending.nbytes), wakes)

    def saved(self) -> dict[str, Any]:
        stack, node = self.stacks.packed()
        parts = {
            "kept_positions": self.kept_positions,
            "pending": self.pending.astype(np.int64),
            "stack": stack,
            "node": node,
            "base": self.stacks.base,
            "top": self.stacks.top,
            "heads": self.stacks.heads,
            "numbered": [list(tests) for tests in self.keys],
            **super().saved(),
        }
        return parts | {f"keys_{number}": keys.table for number, keys in enumerate(self.keys.values())}

    def load(self, parts: SavedParts) -> None:
        super().load(parts)
        kept = len(self.kept)
        self.kept_positions = parts.array("kept_positions", kept if self._needs_partitions else 0, low=0)
        self.pending = parts.array("pending", None, self.stacks.components, low=0, high=kept).astype(ROW)
        self.stacks.load(parts, kept)
        generated = self.engine.generated(self.nullable)
        for number, tests in enumerate(self._loaded_tests(parts, generated)):
            keys = self.keys[tests] = Partitions(key_names(generated, tests), False)
            empty = key_values(parts.columns.empty_table(), generated, tests, self.engine.query)
            table = parts.table(f"keys_{number}", empty.schema)
            keys.load_keys(table, 0 if table is None else table.num_rows, f"keys_{number}")
            if tests in generated.stacked:
                require(len(keys) <= self.stacks.heads.shape[1], f"keys_{number}")

    def _loaded_tests(self, parts: SavedParts, generated: GeneratedSequence) -> list[tuple[int, ...]]:
        """The tests that have keys of their own: all tests of the query, or none if no event has come yet."""
        told = parts.parts.get("numbered")
        tests = list(dict.fromkeys(coding.tests for coding in generated.codes))
        require(told in ([], [list(one) for one in tests]), "numbered")
        return tests if told else []


def key_names(generated: GeneratedSequence, tests: tuple[int, ...]) -> list[str]:
    """The names of what the tests compare; or their places, if a name comes twice."""
    names = next(coding.attributes for coding in generated.codes if coding.tests == tests)
    return list(names) if len(set(names)) == len(names) else [str(number) for number in range(len(names))]


def key_values(table: pa.Table, generated: GeneratedSequence, tests: tuple[int, ...], query: AnalyzedQuery) -> pa.Table:
    """The values that the tests compare: those of all components, one below the other."""
    columns = zip(*(coding.attributes for coding in generated.codes if coding.tests == tests), strict=True)
    return pa.table([_together(table, column, query) for column in columns], key_names(generated, tests))


def _together(table: pa.Table, names: Sequence[str], query: AnalyzedQuery) -> pa.ChunkedArray:
    """The columns one below the other, so that equal values get equal numbers."""
    columns = [table.column(name) for name in names]
    if len({column.type for column in columns}) > 1:
        assert query.schema is not None
        columns = [column.cast(arrow_type(query.schema.type_of(names[0]))) for column in columns]
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)


def in_output_order(found: Array, heights: Array, jit: bool) -> Array:
    """Sequences by their last event, then the first, then all of them."""
    if len(found) < 2:
        return found
    ends = found[:, -1]
    if (ends[1:] < ends[:-1]).any():  # those that waited for the end of their window come behind others
        found = np.ascontiguousarray(found[np.argsort(ends, kind="stable")])
        heights = heights[:, :0]  # they may not come as the walk back finds them
    arranged, scratch = np.empty_like(found), np.empty((4, len(found)), np.int64)
    counts = np.empty(MOST_HEIGHTS, np.int64)
    shared_loops(jit)["order_sequences"](found, np.ascontiguousarray(heights), counts, *scratch, arranged)
    return arranged


def _flat(found: Array, components: int) -> FlatMatches:
    count = len(found)
    # One event for each component: nothing that would need memory.
    lengths = np.broadcast_to(np.int64(1), (count, components))
    return FlatMatches(np.arange(count + 1) * components, lengths, np.ascontiguousarray(found).ravel())


def _concatenated(parts: Sequence[Array], components: int) -> Array:
    if not parts:
        return np.empty((0, components), ROW)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
