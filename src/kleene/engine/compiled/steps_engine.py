"""The compiled engine for patterns in steps: events in, matches out, in pieces of any size.

Within a piece runs are arrays, and their events a tree of nodes that they share. Between pieces they are what the
interpreter holds, so that snapshots and the end of time are the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.steps import steps_automaton
from kleene.engine.budget import Budget, too_many_partial_matches
from kleene.engine.compiled.arrangement import arranged
from kleene.engine.compiled.arrays import Counters
from kleene.engine.compiled.arrays.statuses import DONE, NEEDS_ROOM, TOO_MANY_RUNS
from kleene.engine.compiled.arrays.step_groups import (
    STEP_GROUP_COLUMNS,
    STEP_GROUP_END,
    STEP_GROUP_FRESH,
    STEP_GROUP_KEPT,
    STEP_GROUP_KEPT_COUNT,
    STEP_GROUP_PLACE,
    STEP_GROUP_STORED,
    STEP_GROUP_STORED_COUNT,
)
from kleene.engine.compiled.arrays.step_nodes import STEP_NODE_COLUMNS, STEP_NODE_LENGTH
from kleene.engine.compiled.arrays.step_runs import (
    STEP_RUN_HEAD,
    STEP_RUN_NULLS,
    STEP_RUN_PLACE,
    STEP_RUN_START,
    STEP_RUN_STATE,
)
from kleene.engine.compiled.batches import (
    Arguments,
    Grouped,
    arguments,
    group,
    grown,
    nullable_names,
    one_group,
    partition_codes,
    permuted_arguments,
)
from kleene.engine.compiled.columns import Array, Dictionary, times_array
from kleene.engine.compiled.failures import check_span
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.programs import Compiled, Kernel
from kleene.engine.compiled.steps_code import GeneratedSteps, generate_steps
from kleene.engine.compiled.steps_tables import ALWAYS
from kleene.engine.matches import FlatMatches, FoundMatches
from kleene.engine.protocol import Time
from kleene.engine.steps.conditions import Bound
from kleene.engine.steps.interpreter import Key, StepsProgress
from kleene.engine.steps.matches import StepMatches, in_output_order, joined_steps, step_matches
from kleene.engine.steps.runs import Partition, Run
from kleene.engine.timeouts import FoundTimeouts
from kleene.plan.plan import Plan

ROOM = 1 << 12
WORK_AT_ONCE = 1 << 22


class StepsEngine(Compiled[GeneratedSteps]):
    """A pattern in steps, made into kernels."""

    def __init__(self, plan: Plan, jit: bool = True) -> None:
        query = plan.query
        assert isinstance(query, AnalyzedSteps)
        steps = steps_automaton(query)
        super().__init__(lambda nullable: generate_steps(query, steps, nullable, not jit), jit, steps.automaton)
        self.plan, self.query, self.steps = plan, query, steps

    def tier_text(self, nullable: frozenset[str]) -> str:
        return "machine code made for this query at the first call" if self.jit else "the query's code, as plain Python"

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> CompiledStepsProgress:
        return CompiledStepsProgress(self, Budget() if budget is None else budget)


@dataclass(slots=True)
class _Room:
    """The arrays of the kernel; they grow when it asks for room."""

    stored_i: Array
    stored_f: Array
    kept_i: Array
    kept_f: Array
    ri: Array
    rf: Array
    ni: Array
    nf: Array
    node: Array
    done: Array
    waiting: Array
    slots: Array
    marks: Array

    @classmethod
    def of(cls, generated: GeneratedSteps, stored: int, events: int) -> _Room:
        """Room for a table of so many events; matches are read out in fewer, larger parts where there are many."""
        registers, most = generated.registers, generated.tables.most_moves
        columns, floats = registers.columns, max(registers.floats, 1)
        room = max(ROOM, 4 * most)
        many = 16 * room if events > 16 * ROOM else 2 * room

        def table(rows: int, width: int) -> Array:
            return np.zeros((rows, width), np.int64)

        def numbers(rows: int) -> Array:
            return np.zeros((rows, floats), np.float64)

        return cls(
            table(stored, columns),
            numbers(stored),
            table(room, columns),
            numbers(room),
            table(room, columns),
            numbers(room),
            table(room, columns),
            numbers(room),
            table(4 * many, STEP_NODE_COLUMNS),
            table(many, 2),
            table(2 * room, 2),
            np.zeros(1 << (32 * room - 1).bit_length(), np.int64),
            np.zeros(2 * (len(generated.tables.edge) + 2), np.int64),
        )

    @property
    def all_runs(self) -> tuple[Array, ...]:
        runs = (self.stored_i, self.stored_f, self.kept_i, self.kept_f)
        return (*runs, self.ri, self.rf, self.ni, self.nf)

    @property
    def graph(self) -> tuple[Array, ...]:
        return self.node, self.done, self.waiting, self.slots, self.marks

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (*self.all_runs, *self.graph))

    def grow(self, st: Counters, most: int, stored: int) -> None:
        """Twice the room for what is more than half full."""
        need = (st.runs + 1) * most
        if 2 * (st.runs + need) > len(self.ri) or 2 * need > len(self.ni) or 2 * (stored + 1) > len(self.ri):
            rows = 2 * max(len(self.ri), st.runs + need, need, stored + 1)
            self.ri, self.rf, self.ni, self.nf = (grown(array, rows) for array in (self.ri, self.rf, self.ni, self.nf))
            self.slots = np.zeros(1 << (32 * rows - 1).bit_length(), np.int64)
        if 2 * (st.nodes + need) > len(self.node):
            self.node = grown(self.node, 2 * max(len(self.node), st.nodes + need))
        wanted = st.waiting + need + st.runs + stored + 1
        if 2 * wanted > len(self.waiting):
            self.waiting = grown(self.waiting, 2 * wanted)
        if 2 * wanted > len(self.done):
            self.done = grown(self.done, 2 * wanted)
        if 2 * (st.kept + st.runs + st.waiting) > len(self.kept_i):
            rows = 2 * max(len(self.kept_i), st.kept + st.runs + st.waiting)
            self.kept_i, self.kept_f = grown(self.kept_i, rows), grown(self.kept_f, rows)


@dataclass(slots=True)
class _Piece:
    """Events as the kernel sees them, by partition; those kept from before come first in each."""

    table: pa.Table
    grouped: Grouped
    times: Array
    bits: Array
    groups: Array
    given: Arguments
    kernel: Kernel[GeneratedSteps]


class CompiledStepsProgress(StepsProgress):
    """How far a stream has come: between pieces, what the interpreter would hold."""

    def __init__(self, engine: StepsEngine, budget: Budget) -> None:
        super().__init__(engine.plan, engine.steps, budget)
        self.engine = engine
        self.nullable: frozenset[str] = frozenset()
        self._has_groups = any(step.group for step in self._query.pattern.steps)

    def feed(
        self, events: pa.Table, now: Time | None = None, is_last: bool = False
    ) -> Iterator[FoundMatches | FoundTimeouts]:
        table = events if self._kept is None else pa.concat_tables([self._kept, events])
        piece = self._prepared(table, table.num_rows - events.num_rows)
        parts = list(self._run(piece, is_last))
        rows, ended = self._after(piece.table, now, is_last)
        late = step_matches([_moved(bound, rows) for bound in ended], len(self._query.components))
        found = self._arranged(parts, late, piece.grouped.order)
        if len(found):
            yield FoundMatches(table, found, self._is_settled(is_last))

    def _arranged(self, parts: list[FlatMatches], late: StepMatches, order: Array) -> FlatMatches:
        """All matches in output order, by positions; `late` are those that time has completed."""
        steps, jit = len(self._query.components), self.engine.jit
        if not self._has_groups and not len(late):
            return arranged(parts, order, steps, jit)
        placed = [FlatMatches(part.offsets, part.lengths, order[part.positions]) for part in parts]
        return in_output_order(joined_steps([*placed, late]), self._has_groups, jit)

    def _after(self, table: pa.Table, now: Time | None, is_last: bool) -> tuple[list[int], list[Bound]]:
        """What time alone makes of the runs that are kept; the rows of the events that these refer to, and matches."""
        rows = sorted({row for partition in self._partitions.values() for row in partition.rows()})
        numbers = {row: number for number, row in enumerate(rows)}
        self._partitions = {key: own.renumbered(numbers) for key, own in self._partitions.items()}
        kept = table.take(pa.array(rows, pa.int64())).combine_chunks()
        matching = self._matching(kept)
        self._move_time(matching, now, is_last)
        self._compact(kept, matching)
        self.budget.count(len(matching.found))
        return rows, matching.found

    # --- a piece as the kernel sees it -------------------------------------------------------------------------------

    def _prepared(self, table: pa.Table, old: int) -> _Piece:
        query = self._query
        self.nullable |= nullable_names(table)
        kernel = self.engine.kernel(self.nullable, self.budget)
        codes, count = partition_codes(table, query.partition_by, null_is_a_key=False)
        as_given = one_group(table.num_rows)
        given = arguments(kernel.generated.layout, table, query.schema, as_given, Dictionary())
        bits = np.zeros(table.num_rows, np.int64)
        kernel.run("classify", bits, 0, len(bits), *given)
        if kernel.generated.tables.leaves_out:
            codes = np.where((bits == ALWAYS) & (np.arange(len(bits)) >= old), -1, codes)
        grouped = group(codes, max(count, 1), self.engine.jit)
        if not grouped.is_identity:
            given, bits = permuted_arguments(given, grouped), np.ascontiguousarray(bits[grouped.order])
        times = np.ascontiguousarray(grouped.permuted(times_array(table, query.order_by[0], query.time_type)))
        check_span(times, query.order_by[0])
        groups = np.zeros((len(grouped.numbers), STEP_GROUP_COLUMNS), np.int64)
        groups[:, STEP_GROUP_END] = grouped.begins[1:]
        groups[:, STEP_GROUP_FRESH] = grouped.begins[:-1]
        if old:
            is_old = np.append(0, np.cumsum(grouped.order < old))
            groups[:, STEP_GROUP_FRESH] += is_old[grouped.begins[1:]] - is_old[grouped.begins[:-1]]
        return _Piece(table, grouped, times, bits, groups, given, kernel)

    def _load(self, piece: _Piece) -> tuple[_Room, int]:
        """The runs that were kept, in arrays; how many nodes there are."""
        places = np.full(piece.table.num_rows, -1, np.int64)
        places[piece.grouped.order] = np.arange(len(piece.grouped))
        all_nodes: dict[tuple[int, int, int], int] = {}
        runs: list[tuple[int, int, int, int, Bound]] = []
        by_group = sorted(
            (
                (int(np.searchsorted(piece.grouped.begins, places[next(own.rows())], "right")) - 1, own)
                for own in self._partitions.values()
            ),
            key=lambda item: item[0],
        )
        for number, partition in by_group:
            piece.groups[number, STEP_GROUP_STORED] = len(runs)
            piece.groups[number, STEP_GROUP_PLACE] = partition.count
            own = [(run.state, run.place, run.bound) for run in partition.runs]
            for state, place, bound in [*own, *((-1, 0, match) for match in partition.complete)]:
                head, moved = -1, tuple((step, int(places[row])) for step, row in bound)
                for step, row in moved:
                    head = all_nodes.setdefault((head, step, row), len(all_nodes))
                runs.append((state, head, moved[0][1], place, moved))
            piece.groups[number, STEP_GROUP_STORED_COUNT] = len(runs) - piece.groups[number, STEP_GROUP_STORED]
        room = _Room.of(piece.kernel.generated, len(runs), len(piece.grouped))
        if len(all_nodes) > len(room.node):
            room.node = grown(room.node, 2 * len(all_nodes))
        if all_nodes:
            lengths: list[int] = []
            for before, _, _ in all_nodes:
                lengths.append(1 if before < 0 else lengths[before] + 1)
            nodes = zip(all_nodes, lengths, strict=True)
            room.node[: len(all_nodes)] = [(row, step, before, length) for (before, step, row), length in nodes]
        if runs:
            self._replay(piece, room, runs)
        return room, len(all_nodes)

    def _replay(self, piece: _Piece, room: _Room, runs: list[tuple[int, int, int, int, Bound]]) -> None:
        """The runs with their registers, which are made anew."""
        registers = piece.kernel.generated.registers
        columns = [STEP_RUN_STATE, STEP_RUN_HEAD, STEP_RUN_START, STEP_RUN_PLACE]
        room.stored_i[:, columns] = [run[:4] for run in runs]
        room.stored_i[:, STEP_RUN_NULLS] = (1 << len(registers.all)) - 1
        offsets = np.cumsum([0, *(len(run[4]) for run in runs)]).astype(np.int64)
        flat = np.array([event for run in runs for event in run[4]], np.int64).reshape(-1, 2)
        steps, rows = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
        arrays = (room.stored_i, room.stored_f, room.ni, room.nf)
        piece.kernel.run("replay", len(runs), offsets, rows, steps, *arrays, *piece.given)

    # --- running -----------------------------------------------------------------------------------------------------

    def _run(self, piece: _Piece, is_last: bool) -> Iterator[FlatMatches]:
        """The matches that the events complete, by their rows."""
        room, nodes = self._load(piece)
        st = Counters("step_counters", nodes=nodes, run_limit=self.plan.run_limit, keeps=0 if is_last else 1)
        tables = piece.kernel.generated.tables
        machine = (tables.edge, tables.states, tables.derived, tables.open_after, tables.plans, tables.moves)
        events = (piece.groups, piece.bits, piece.times)
        status = NEEDS_ROOM
        while status != DONE:
            st.work = WORK_AT_ONCE
            status = piece.kernel.run(
                "advance_steps", st.array, events, room.all_runs, room.graph, machine, *piece.given
            )
            if status == TOO_MANY_RUNS:
                raise self._too_many(piece, st.row - 1)
            self.budget.reach(st.row)
            if st.matches:
                self.budget.count(st.matches)
                yield self._read_out(piece, room, st.matches)
                st.matches = 0
            if status == NEEDS_ROOM:
                self._make_room(piece, room, st)
        self._partitions = self._kept_partitions(piece, room, st)

    def _too_many(self, piece: _Piece, row: int) -> Exception:
        position = int(piece.grouped.order[row])
        names = self._query.partition_by
        key = {name: piece.table.column(name)[position].as_py() for name in names}
        hint = "Narrow the pattern (a shorter within, stricter steps, more conditions), or raise run_limit."
        return too_many_partial_matches(self.plan.run_limit, key, hint)

    def _make_room(self, piece: _Piece, room: _Room, st: Counters) -> None:
        """Drops the nodes that nothing refers to any more; what is still more than half full grows."""
        begin = st.group + (1 if st.loaded else 0)
        stored = int(piece.groups[begin, STEP_GROUP_STORED]) if begin < len(piece.groups) else len(room.stored_i)
        used = [
            (room.ri[: st.runs], STEP_RUN_HEAD),
            (room.stored_i[stored:], STEP_RUN_HEAD),
            (room.kept_i[: st.kept], STEP_RUN_HEAD),
            (room.waiting[: st.waiting], 0),
        ]
        roots = np.concatenate([rows[:, column] for rows, column in used])
        places = np.empty(len(room.node), np.int64)
        st.nodes = piece.kernel.run("drop_unreachable", st.nodes, roots, room.node, places)
        at = 0
        for rows, column in used:
            rows[:, column] = roots[at : at + len(rows)]
            at += len(rows)
        waiting = int(piece.groups[st.group, STEP_GROUP_STORED_COUNT]) if st.group < len(piece.groups) else 0
        self.budget.hold("the match buffer with the runs in it", 3 * room.bytes)
        room.grow(st, piece.kernel.generated.tables.most_moves, waiting)

    def _read_out(self, piece: _Piece, room: _Room, count: int) -> FlatMatches:
        """The matches by their rows."""
        offsets, lengths, rows, steps = self._events_of(piece, room.done, count, room, self._has_groups)
        if self._has_groups:  # else the events of a match come step by step
            rows = rows[np.lexsort((np.arange(len(rows)), steps, np.repeat(np.arange(count), np.diff(offsets))))]
        return FlatMatches(offsets, lengths, rows)

    def _events_of(
        self, piece: _Piece, done: Array, count: int, room: _Room, needs_steps: bool
    ) -> tuple[Array, Array, Array, Array]:
        """The events of matches or runs, in their order: offsets, how many each step has, rows and steps."""
        sizes = room.node[done[:count, 0], STEP_NODE_LENGTH]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.empty(int(offsets[-1]), np.int64)
        steps = np.empty(len(rows) if needs_steps else 0, np.int64)
        lengths = np.zeros((count, max(len(self._query.components), 1)), np.int64)
        piece.kernel.run("read_out", count, done, room.node, offsets, lengths, rows, steps)
        return offsets, lengths, rows, steps

    def _kept_partitions(self, piece: _Piece, room: _Room, st: Counters) -> dict[Key, Partition]:
        """The runs that go on, and the matches that wait, as the interpreter has them."""
        count = st.kept
        if not count:
            return {}
        heads = np.zeros((count, 2), np.int64)
        heads[:, 0] = room.kept_i[:count, STEP_RUN_HEAD]
        offsets, _, rows, steps = self._events_of(piece, heads, count, room, True)
        pairs = list(zip(steps.tolist(), piece.grouped.order[rows].tolist(), strict=True))
        bounds: list[Bound] = [tuple(pairs[begin:end]) for begin, end in pairwise(offsets.tolist())]
        states, places = (room.kept_i[:count, column].tolist() for column in (STEP_RUN_STATE, STEP_RUN_PLACE))
        found: dict[Key, Partition] = {}
        for number, own in enumerate(piece.groups.tolist()):
            if own[STEP_GROUP_KEPT_COUNT]:
                partition = Partition(count=own[STEP_GROUP_PLACE] + own[STEP_GROUP_END] - own[STEP_GROUP_FRESH])
                for at in range(own[STEP_GROUP_KEPT], own[STEP_GROUP_KEPT] + own[STEP_GROUP_KEPT_COUNT]):
                    if states[at] < 0:
                        partition.complete.append(bounds[at])
                    else:
                        partition.runs.append(Run(states[at], bounds[at], places[at]))
                partition.runs.sort(key=lambda run: run.first)
                found[number,] = partition
        return found


def _moved(bound: Bound, rows: list[int]) -> Bound:
    return tuple((step, rows[row]) for step, row in bound)
