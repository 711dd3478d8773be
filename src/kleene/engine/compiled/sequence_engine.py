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
from kleene.engine.blocks import Block
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import ROW, without_overlaps
from kleene.engine.compiled.arrays.accepts import ACCEPT_RIP, ACCEPT_ROW
from kleene.engine.compiled.arrays.sequence_counters import (
    CONSTRUCT_ACCEPT,
    CONSTRUCT_COMPONENT,
    CONSTRUCT_TRIED,
    CONSTRUCT_WORK,
    CONSTRUCT_WRITTEN,
    SCAN_ACCEPTS,
    SCAN_END,
    SCAN_EVENT,
    SCAN_ROOM,
    SEQUENCE_COUNTERS,
)
from kleene.engine.compiled.arrays.statuses import DONE, FIRST_ERROR, NEEDS_ROOM, TOO_MANY_MATCHES
from kleene.engine.compiled.arrays.windows import WINDOW_IN_EVENTS
from kleene.engine.compiled.batches import (
    EMPTY,
    Arguments,
    arguments,
    group,
    nullable_names,
    one_group,
    partition_codes,
    types_of,
)
from kleene.engine.compiled.buffer import Time, Window, latest_of, wakes_at
from kleene.engine.compiled.columns import Array, Dictionary, check_readable, times_array
from kleene.engine.compiled.failures import check_span
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.negation_index import NegationIndex, negation_index
from kleene.engine.compiled.partitions import Partitions, partition_text
from kleene.engine.compiled.programs import Kernel, Program
from kleene.engine.compiled.sequence_code import GeneratedSequence, generate_sequence, prunes
from kleene.engine.compiled.stacks import Scratch, Stacks
from kleene.engine.inputs import attribute_type
from kleene.engine.matches import FlatMatches
from kleene.engine.output import arrow_type
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


class SequenceProgram(Program[GeneratedSequence]):
    """A query and its plan."""

    def __init__(self, query: AnalyzedQuery, plan: Pipeline, jit: bool = True) -> None:
        super().__init__(lambda nullable: generate_sequence(query, plan, nullable), jit)
        self.query, self.plan = query, plan
        self.is_basic = plan.get(SequenceScan).algorithm == "basic"
        scan = plan.get(SequenceScan)
        self.stacked = 1 if scan.is_combined else max(len(scan.tests), 1)


@dataclass(slots=True)
class Feed:
    """One piece of the input behind the events kept from before, as the kernels see them."""

    table: pa.Table
    kernel: Kernel[GeneratedSequence]
    given: Arguments
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
        return (self.codes, *self.index.arguments, self.times, self.positions, *self.given)


class SequenceProgress:
    """How far a stream has come. Feed it events in order; it gives back matches, and the table they refer to."""

    def __init__(
        self,
        program: SequenceProgram,
        run_limit: int,
        format_: Format,
        meter: Meter | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.program, self.run_limit, self.format = program, run_limit, format_
        self.meter = meter if meter is not None else Meter()
        self.budget = Budget() if budget is None else budget
        query = program.query
        self.window = Window.of(query)
        self.nullable: frozenset[str] = frozenset()
        self.stacks = Stacks(len(query.components), program.stacked, program.is_basic)
        self.keys: dict[tuple[int, ...], Partitions] = {}  # by the tests that they number together
        self.partitions = Partitions(query.partition_by)
        self.kept_table: pa.Table | None = None
        self.kept_positions = EMPTY
        self.next_positions, self.ended = np.zeros(1, np.int64), np.full(1, -1, np.int64)
        self.pending = np.empty((0, len(query.components)), ROW)

    # --- feeding -------------------------------------------------------------------------------------------------

    def feed(self, table: pa.Table, is_last: bool = False, now: Time | None = None) -> tuple[pa.Table, FlatMatches]:
        """The matches that these events complete, in output order, and the table they refer to.

        `now` is the time that the stream has come to, if it is known to be later than the last event.
        """
        fresh_from = 0
        if self.kept_table is not None:
            fresh_from = self.kept_table.num_rows
            table = pa.concat_tables([self.kept_table, table.select(self.kept_table.column_names)])
        feed, numbers = self._prepare(table, fresh_from, is_last and self.kept_table is None, now)
        found = _concatenated(list(self._through_the_pipeline(feed, fresh_from)), len(self.program.query.components))
        result = self._arranged(feed, numbers, self._after_the_end(feed, found, is_last), fresh_from)
        if not is_last:
            self._retain(feed, numbers)
        return table, result

    def blocks(self, table: pa.Table) -> Iterator[Block]:
        """The matches of a whole table in blocks, each given out before the next is made."""
        feed, numbers = self._prepare(table, 0, True, None)
        held: list[Array] = []
        size = 0
        for part in self._through_the_pipeline(feed, 0):
            held.append(part)
            size += part.nbytes
            if size > self.budget.at_once:
                found = _concatenated(held, part.shape[1])
                end = int(np.searchsorted(found[:, -1], found[-1, -1]))  # more may come that end at the last event
                held, size = [found[end:]], found[end:].nbytes
                if end:
                    whole = self._after_the_end(feed, found[:end], True)
                    yield Block(self._arranged(feed, numbers, whole, 0), True)
        found = _concatenated(held, len(self.program.query.components))
        yield Block(self._arranged(feed, numbers, self._after_the_end(feed, found, True), 0), True)

    def _arranged(self, feed: Feed, numbers: Array, found: Array, fresh_from: int) -> FlatMatches:
        """The sequences that are given out, in output order."""
        # Sequences that waited may have events that are no longer on a stack.
        heights = feed.heights[:, :0] if fresh_from and LATE[0] in feed.kernel.generated.filters else feed.heights
        found = in_output_order(found, heights, self.program.jit)
        result = _flat(found, len(self.program.query.components))
        if self.format is Format.NON_OVERLAPPING:
            places = feed.positions[result.first], feed.positions[result.last]
            result = without_overlaps(result, numbers[result.last], *places, self.ended, self.program.jit)
        self.budget.hold("its matches", 0)
        if not self._gives_all(feed):
            self.budget.count(len(result))
        return result

    def _gives_all(self, feed: Feed) -> bool:
        """Whether every sequence that is constructed is given out."""
        return self.format is Format.ALL and not any(name in LATE for name in feed.kernel.generated.filters)

    def _prepare(self, table: pa.Table, fresh_from: int, is_whole: bool, now: Time | None) -> tuple[Feed, Array]:
        query = self.program.query
        assert query.schema is not None
        started = perf_counter()
        self.nullable |= nullable_names(table)
        kernel = self.program.kernel(self.nullable, self.budget)
        generated = kernel.generated
        rows = table.num_rows
        given = arguments(generated.layout, table, query.schema, types_of(query.schema), one_group(rows), Dictionary())
        times = times_array(table, query.order_by[0], query.time_type)
        check_span(times, query.order_by[0])
        numbers = self._partition_numbers(table, is_whole)
        positions = self._event_positions(numbers, fresh_from)
        bits, relevant, classifying = np.empty(rows, np.int64), np.empty(rows + 1, np.int64), perf_counter()
        with np.errstate(all="ignore"):
            count = kernel.functions["classify"](bits, relevant, 0, rows, *given)
        relevant = relevant[:count]
        seconds = perf_counter() - classifying
        codes = self._codes(table, generated, relevant, is_whole)
        self.meter.add("SequenceScan", rows - fresh_from, len(relevant), seconds)
        self.meter.add("read", rows - fresh_from, rows - fresh_from, perf_counter() - started - seconds)
        started = perf_counter()
        index = self._index(generated, bits, codes, times)
        self.meter.add("NegationIndex", len(index.entries), 0, perf_counter() - started)
        latest = latest_of(times, now)
        heights = self.stacks.heights(rows)
        return Feed(table, kernel, given, bits, relevant, codes, times, positions, index, heights, latest), numbers

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
            values = key_values(table, generated, tests, self.program.query)
            if is_whole:
                found, count = partition_codes(values, values.column_names, null_is_a_key=False)
            else:
                keys = self.keys.setdefault(tests, Partitions(values.column_names))
                found = keys.numbers(values, null_is_a_key=False)
                count = len(keys)
            if tests in generated.stacked:
                self.stacks.more_keys(count)
            for at, coding in enumerate(own):
                part = found[at * table.num_rows : (at + 1) * table.num_rows]
                codes[generated.codes.index(coding), relevant] = part
        return codes

    @property
    def _key_columns(self) -> list[str]:
        tests = self.program.plan.tests
        return sorted({name for test in tests for name in (*test.attributes, *test.negative) if name is not None})

    @property
    def _needs_partitions(self) -> bool:
        return self.window.kind == WINDOW_IN_EVENTS or self.format is Format.NON_OVERLAPPING

    def _partition_numbers(self, table: pa.Table, is_whole: bool) -> Array:
        """The partition of each event, if the query counts something in partitions; else 0."""
        if not self._needs_partitions or not self.program.query.partition_by:
            return np.zeros(table.num_rows, np.int64)
        if is_whole:
            numbers, count = partition_codes(table, self.program.query.partition_by, null_is_a_key=False)
        else:
            numbers = self.partitions.numbers(table, null_is_a_key=False)
            count = len(self.partitions)
        missing = count - len(self.next_positions)
        if missing > 0:
            self.next_positions = np.concatenate([self.next_positions, np.zeros(missing, np.int64)])
            self.ended = np.concatenate([self.ended, np.full(missing, -1, np.int64)])
        return numbers

    def _event_positions(self, numbers: Array, fresh_from: int) -> Array:
        """The place of each event in its partition, from the beginning of the stream; empty if nothing needs it."""
        if not self._needs_partitions:
            return EMPTY
        positions = np.zeros(len(numbers), np.int64)
        positions[:fresh_from] = self.kept_positions
        grouped = group(numbers[fresh_from:], len(self.next_positions), self.program.jit)
        if len(grouped):
            sizes = np.diff(grouped.begins)
            within = np.arange(len(grouped)) - np.repeat(grouped.begins[:-1], sizes)
            positions[fresh_from + grouped.order] = within + np.repeat(self.next_positions[grouped.numbers], sizes)
            self.next_positions[grouped.numbers] += sizes
        return positions

    def _index(self, generated: GeneratedSequence, bits: Array, codes: Array, times: Array) -> NegationIndex:
        first_bit = len(self.program.query.components)
        rows = [np.flatnonzero((bits >> (first_bit + number)) & 1) for number in generated.judged]
        keys = []
        for arrays, own in zip(generated.index_keys, rows, strict=True):
            key = codes[arrays[0]][own] if arrays else np.zeros(len(own), np.int64)
            for array in arrays[1:]:  # an event without a value for one of the tests forbids nothing
                key = np.where(codes[array][own] < 0, -1, key)
            keys.append(key)
        return negation_index(rows, keys, times, self.window.in_time)

    # --- the pipeline --------------------------------------------------------------------------------------------

    def _through_the_pipeline(self, feed: Feed, fresh_from: int) -> Iterator[Array]:
        """The sequences that the events complete, in the order of their last events."""
        stacks, meter = self.stacks, self.meter
        components = len(self.program.query.components)
        scan = feed.kernel.functions["scan_basic" if self.program.is_basic else "scan"]
        st = np.zeros(SEQUENCE_COUNTERS, np.int64)
        st[CONSTRUCT_WORK] = TRIES_AT_ONCE
        last = feed.table.num_rows
        if not self.program.is_basic:
            fresh_from, last = int(np.searchsorted(feed.relevant, fresh_from)), len(feed.relevant)
        st[SCAN_EVENT], st[CONSTRUCT_COMPONENT] = fresh_from, components
        accepts = np.zeros((BLOCK, ACCEPT_RIP + self.program.stacked), np.int64)
        scratch = Scratch(components, self.program.stacked)
        while st[SCAN_EVENT] < last:
            begin = int(st[SCAN_EVENT])
            st[SCAN_END], st[SCAN_ROOM] = min(begin + BLOCK, last), stacks.room
            st[SCAN_ACCEPTS] = st[CONSTRUCT_ACCEPT] = 0
            started = perf_counter()
            with np.errstate(all="ignore"):
                events = (feed.bits, feed.relevant, feed.codes, feed.times, feed.positions)
                on_stacks = (stacks.stack, stacks.base, stacks.top, stacks.heads, feed.heights)
                status = scan(st, *events, *on_stacks, accepts, scratch.at, stacks.node, *feed.given)
            self._check(feed, status)
            meter.add("SequenceScan", 0, 0, perf_counter() - started)
            meter.most("instances", int((stacks.top - stacks.base).sum()))
            self.budget.reach(int(st[SCAN_EVENT]) if self.program.is_basic else int(feed.relevant[st[SCAN_EVENT] - 1]))
            if st[SCAN_ACCEPTS]:
                yield from self._construct(feed, st, accepts, scratch)
            if status == NEEDS_ROOM and stacks.room < max(components, stacks.stack.shape[1] // 4):
                self.budget.hold("the stacks", 3 * stacks.bytes)
                stacks.grow()

    def _construct(self, feed: Feed, st: Array, accepts: Array, scratch: Scratch) -> Iterator[Array]:
        stacks, meter, construct = self.stacks, self.meter, feed.kernel.functions["construct"]
        while True:
            started = perf_counter()
            st[CONSTRUCT_WRITTEN], st[CONSTRUCT_TRIED] = 0, 0
            stack = scratch.stack if self.program.is_basic else stacks.stack
            with np.errstate(all="ignore"):
                room = (scratch.found, scratch.rows, scratch.cursor, scratch.size)
                on_stacks = (stack, stacks.base, stacks.node)
                status = construct(st, accepts, *room, self.run_limit, *on_stacks, *feed.context)
            self._check(feed, status)
            if status == TOO_MANY_MATCHES:
                raise self._too_many(feed, int(accepts[st[CONSTRUCT_ACCEPT], ACCEPT_ROW]))
            count = int(st[CONSTRUCT_WRITTEN])
            meter.add("SequenceConstruction", int(st[CONSTRUCT_TRIED]), count, perf_counter() - started)
            for name in feed.kernel.generated.filters:
                if count and name not in LATE:
                    count = self._filtered(feed, name, scratch.found, count)
            self.budget.check_time()
            if count:
                found = scratch.found[:count].copy()
                self.budget.add("its matches", 3 * found.nbytes)  # they are held twice while they are put in order
                if self._gives_all(feed):
                    self.budget.count(count)
                yield found
            if status == DONE:
                meter.add("accepts", int(st[SCAN_ACCEPTS]), 0, 0.0)
                return
            if status == NEEDS_ROOM:
                scratch.grow()

    def _filtered(self, feed: Feed, name: str, found: Array, count: int) -> int:
        self.budget.check_time()
        started = perf_counter()
        rows = np.zeros(found.shape[1], np.int64)  # its own: construction goes on from where it was
        with np.errstate(all="ignore"):
            kept = int(feed.kernel.functions[name](found, count, rows, *feed.context))
        self._check(feed, kept)
        self.meter.add(name, count, kept, perf_counter() - started)
        return kept

    def _check(self, feed: Feed, status: int) -> None:
        if status <= FIRST_ERROR:
            raise feed.kernel.generated.layout.failure(status)

    def _after_the_end(self, feed: Feed, found: Array, is_last: bool) -> Array:
        """Applies HAVING and negations in last place, for which a sequence waits until its window has closed."""
        filters = feed.kernel.generated.filters
        if LATE[0] in filters:
            if len(self.pending):
                found = np.concatenate([self.pending, found])
            if not is_last:
                since = found[:, -1 if self.format is Format.NON_OVERLAPPING else 0]
                is_closed = self.window.is_over(feed.latest, feed.times[since])
                self.pending, found = found[~is_closed], found[is_closed]
        found = np.ascontiguousarray(found)
        for name in LATE:
            if name in filters and len(found):
                parts = [found[at : at + FILTERED_AT_ONCE] for at in range(0, len(found), FILTERED_AT_ONCE)]
                found = np.concatenate([part[: self._filtered(feed, name, part, len(part))] for part in parts])
        return found

    def _too_many(self, feed: Feed, row: int) -> ExecutionError:
        return LimitError(
            f"one event of the partition {partition_text(feed.table, self.program.query.partition_by, row)} completes "
            f"more than {self.run_limit:,} sequences",
            hint="Narrow the query (a shorter WITHIN, an equivalence test, more predicates), or raise run_limit.",
        )

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, feed: Feed, numbers: Array) -> None:
        """Keeps the events that an instance, a negation or a waiting match may still look at."""
        stacks = self.stacks
        if prunes(self.program.query, self.program.plan):
            in_time = self.window.in_time
            if in_time is not None:
                stacks.prune(feed.times, feed.latest, in_time)
            elif len(feed.positions):
                stacks.prune(feed.positions, feed.positions.max(), self.window.size)
        needed = np.zeros(feed.table.num_rows, np.bool_)
        for array, places in stacks.live():
            for column in stacks.row_columns:
                needed[array[places, column]] = True
        needed[self.pending.ravel()] = True
        needed[self._live_entries(feed)] = True
        rows = np.flatnonzero(needed)
        place = np.full(feed.table.num_rows, -1, np.int64)
        place[rows] = np.arange(len(rows))
        for array, places in stacks.live():
            for column in stacks.row_columns:
                array[places, column] = place[array[places, column]]
        self.pending = place[self.pending].astype(ROW)
        self.kept_table = feed.table.take(pa.array(rows)).combine_chunks()
        self.kept_positions = feed.positions[rows] if len(feed.positions) else EMPTY
        self._forget_keys(feed, rows)
        stacks.shrink()
        if self._needs_partitions and self.program.query.partition_by:
            self._forget_partitions(numbers[rows])

    def _live_entries(self, feed: Feed) -> Array:
        """The events of negations, without those in parts of time that no open window reaches."""
        size = self.window.in_time
        if size is None:  # negations are in the middle then, behind an event that is on a stack
            column = self.stacks.row_columns[0]
            live = [array[places, column].min() for array, places in self.stacks.live() if len(places)]
            oldest = min(live, default=None)
            return feed.index.entries[:0] if oldest is None else feed.index.entries[feed.index.entries >= oldest]
        return feed.index.kept(feed.latest.item() - 2 * size, feed.times)

    def _forget_keys(self, feed: Feed, rows: Array) -> None:
        """Values without a kept event lose their numbers. If they come again, they get new ones."""
        generated = feed.kernel.generated
        for tests, keys in self.keys.items():
            own = [codes for coding, codes in zip(generated.codes, feed.codes, strict=False) if coding.tests == tests]
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

    def _forget_partitions(self, kept: Array) -> None:
        used = np.zeros(len(self.partitions), np.bool_)
        used[kept[kept >= 0]] = True
        if not used.all():
            self.partitions.keep(used)
            count = len(used)
            self.next_positions, self.ended = self.next_positions[:count][used], self.ended[:count][used]
            if not len(self.next_positions):
                self.next_positions, self.ended = np.zeros(1, np.int64), np.full(1, -1, np.int64)

    # --- waiting -------------------------------------------------------------------------------------------------

    @property
    def open_runs(self) -> int:
        """Instances on the stacks, which take the place of runs here."""
        return int((self.stacks.top - self.stacks.base).sum())

    @property
    def kept_events(self) -> int:
        return 0 if self.kept_table is None else self.kept_table.num_rows

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held that the next event could depend on."""
        return not self.open_runs and not self.kept_events

    def wakes_at(self) -> Time | None:
        """When time alone may have an effect, without an event; None if it never does."""
        since = self.pending[:, -1 if self.format is Format.NON_OVERLAPPING else 0]
        return wakes_at(self.window, self.program.query, self.kept_table, since)

    # --- saving --------------------------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """The whole progress, as the parts of a snapshot."""
        stacks = self.stacks
        stack, node = stacks.packed()
        parts: dict[str, Any] = {
            "nullable": sorted(self.nullable),
            "kept_positions": self.kept_positions,
            "next_positions": self.next_positions,
            "ended": self.ended,
            "pending": self.pending.astype(np.int64),
            "stack": stack,
            "node": node,
            "base": stacks.base,
            "top": stacks.top,
            "heads": stacks.heads,
            "kept_table": self.kept_table,
            "keys": self.partitions.table,
            "partition_count": len(self.partitions),
            "numbered": [list(tests) for tests in self.keys],
        }
        for number, keys in enumerate(self.keys.values()):
            parts[f"keys_{number}"] = keys.table
        return {name: part for name, part in parts.items() if part is not None}

    def load(self, parts: SavedParts) -> None:
        """Continues from where the parts were saved."""
        self.nullable = parts.column_names("nullable")
        self.kept_table, kept = parts.table("kept_table"), parts.rows_of("kept_table")
        self.next_positions = parts.array("next_positions", None, low=0)
        count = len(self.next_positions)
        require(count >= 1, "next_positions")
        self.ended = parts.array("ended", count, low=-1)
        self.kept_positions = parts.array("kept_positions", kept if self._needs_partitions else 0, low=0)
        partitions: Any = parts.parts.get("partition_count")
        require(type(partitions) is int and 0 <= partitions <= count, "partition_count")
        self.partitions.load(parts, "keys", partitions)
        self.pending = parts.array("pending", None, self.stacks.components, low=0, high=kept).astype(ROW)
        self.stacks.load(parts, kept)
        generated = self.program.generated(self.nullable)
        for number, tests in enumerate(self._loaded_tests(parts, generated)):
            keys = self.keys[tests] = Partitions(key_names(generated, tests))
            empty = key_values(parts.columns.empty_table(), generated, tests, self.program.query)
            table = parts.table(f"keys_{number}", empty.schema)
            keys.load_table(table, 0 if table is None else table.num_rows, f"keys_{number}")
            if tests in generated.stacked:
                require(len(keys) <= self.stacks.heads.shape[1], f"keys_{number}")

    def _loaded_tests(self, parts: SavedParts, generated: GeneratedSequence) -> list[tuple[int, ...]]:
        """The tests that have keys of their own: all tests of the query, or none if no event has come yet."""
        told = parts.parts.get("numbered")
        tests = list(dict.fromkeys(coding.tests for coding in generated.codes))
        require(told in ([], [list(one) for one in tests]), "numbered")
        return tests if told else []

    @property
    def held(self) -> int:
        """Bytes that are held between pieces."""
        table = 0 if self.kept_table is None else self.kept_table.nbytes
        return int(table + self.stacks.bytes + self.pending.nbytes)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names; or their places, if a name comes twice."""
    return list(names) if len(set(names)) == len(names) else [str(number) for number in range(len(names))]


def key_names(generated: GeneratedSequence, tests: tuple[int, ...]) -> list[str]:
    return _distinct(next(coding.attributes for coding in generated.codes if coding.tests == tests))


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


def find_sequences(
    program: SequenceProgram,
    table: pa.Table,
    format_: Format,
    run_limit: int,
    meter: Meter | None = None,
    budget: Budget | None = None,
) -> Iterator[Block]:
    """All matches in a whole table."""
    if table.num_rows:
        yield from SequenceProgress(program, run_limit, format_, meter, budget).blocks(table)
