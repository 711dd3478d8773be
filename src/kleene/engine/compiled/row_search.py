"""The search for the matches of a row pattern in a table, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.positions import positions_of
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import gathered
from kleene.engine.compiled.arrays import Counters, statuses
from kleene.engine.compiled.arrays.row_groups import (
    ROW_GROUP_COLUMNS,
    ROW_GROUP_END,
    ROW_GROUP_FIRST,
    ROW_GROUP_OPENS,
    ROW_GROUP_SEEN_END,
    ROW_GROUP_START,
    ROW_GROUP_STARTS_END,
)
from kleene.engine.compiled.arrays.row_matches import (
    ROW_MATCH_COLUMNS,
    ROW_MATCH_GROUP,
    ROW_MATCH_LENGTH,
    ROW_MATCH_NUMBER,
    ROW_MATCH_OF_ROW,
    ROW_MATCH_START,
)
from kleene.engine.compiled.batches import EMPTY, Grouped, arguments, grown, nullable_names
from kleene.engine.compiled.columns import Array, Dictionary, times_array
from kleene.engine.compiled.failures import GaveUpError, check_span
from kleene.engine.compiled.kernel_window import KernelWindow
from kleene.engine.compiled.open_runs import Runs
from kleene.engine.compiled.programs import Compiled, Kernel
from kleene.engine.compiled.registers import Registers
from kleene.engine.compiled.row_code import GeneratedRows, generate_rows, look_around
from kleene.engine.frames import frame_ends
from kleene.engine.protocol import Time
from kleene.engine.row_reference import cannot_skip
from kleene.errors import LimitError
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Selection
from kleene.schema import FLOAT

ROOM, MOST_ROOM = 1024, 1 << 23
"""The least and the most matches that there is room for from the beginning."""
WORK_AT_ONCE = 1 << 26
"""How many rows the kernel takes before it pauses, so that limits can be looked at."""
ALL_AT_ONCE = 1 << 62
WHY_NOT_TO_SKIP = {
    statuses.NO_ROW_TO_SKIP_TO: "the match has no such row",
    statuses.SKIPS_TO_ITS_START: "that is the row where the match began, so the same match would be found forever",
}
MOST_MEMO = 1 << 28
"""The most words for the marks of states that failed; beyond that the engine gives up."""


FEW_STRETCHES = 64
"""So few stretches of matches are copied each as a whole."""


@dataclass(frozen=True, slots=True)
class RowMatches:
    """Many matches as arrays: match m begins at row starts[m] of the grouped rows; its states begin at offsets[m]."""

    groups: Array
    starts: Array
    offsets: Array
    numbers: Array
    states: Array
    of_rows: Array = field(default_factory=lambda: EMPTY)  # of a window: the row that each is the match of

    def __len__(self) -> int:
        return len(self.starts)

    def states_of(self, number: int) -> Array:
        return self.states[self.offsets[number] : self.offsets[number + 1]]

    def between(self, begin: int, end: int) -> RowMatches:
        """The matches from one number to before another."""
        offsets = self.offsets[begin : end + 1]
        states = self.states[offsets[0] : offsets[-1]]
        groups, starts, numbers, of_rows = (
            part[begin:end] for part in (self.groups, self.starts, self.numbers, self.of_rows)
        )
        return RowMatches(groups, starts, offsets - offsets[0], numbers, states, of_rows)

    def chosen(self, which: Array) -> RowMatches:
        """The matches at these places, in their order."""
        breaks = np.flatnonzero(np.diff(which) != 1) + 1
        if len(which) and len(breaks) < FEW_STRETCHES:
            return self._stretches(which[np.append(0, breaks)], which[np.append(breaks - 1, len(which) - 1)] + 1)
        offsets, places = gathered(self.offsets, which)
        numbers = self.numbers[which] if len(self.numbers) else self.numbers
        of_rows = self.of_rows[which] if len(self.of_rows) else self.of_rows
        return RowMatches(self.groups[which], self.starts[which], offsets, numbers, self.states[places], of_rows)

    def _stretches(self, begins: Array, ends: Array) -> RowMatches:
        """The matches from each begin to before its end."""
        own = [slice(begin, end) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        states = [slice(self.offsets[one.start], self.offsets[one.stop]) for one in own]
        offsets = self.offsets[own[0].start : own[0].stop + 1] - self.offsets[own[0].start]
        if len(own) > 1:
            lengths = np.diff(self.offsets)
            offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *(lengths[one] for one in own)]))
        groups, starts, numbers, of_rows = (
            _together(values, own) for values in (self.groups, self.starts, self.numbers, self.of_rows)
        )
        return RowMatches(groups, starts, offsets, numbers, _together(self.states, states), of_rows)


def _together(values: Array, parts: Sequence[slice]) -> Array:
    return values[parts[0]] if len(parts) == 1 else np.concatenate([values[part] for part in parts])


class RowCode(Compiled[GeneratedRows]):
    """The kernels of a row pattern."""

    def __init__(self, query: AnalyzedRowPattern, jit: bool = True, run_limit: int = 1_000_000) -> None:
        automaton = positions_of(query)
        super().__init__(lambda nullable: generate_rows(query, automaton, nullable, not jit), jit, automaton)
        self.query, self.run_limit = query, run_limit
        self.look_back, self.look_ahead = look_around(query.expressions)

    @property
    def gives_all(self) -> bool:
        return self.query.definition.selection is Selection.ALL_MATCHES


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The matches in a table. `grouped` has its rows by partition, `groups` what the kernel knows of each partition."""

    table: pa.Table
    grouped: Grouped
    groups: Array
    matches: RowMatches
    kernel: Kernel[GeneratedRows]
    counted: Array | None = None  # of each group: matches before
    unmatched: Array = field(default_factory=lambda: EMPTY)  # positions of rows that are known to be in no match
    is_settled: bool = True
    frame_ends: Array = field(default_factory=lambda: EMPTY)  # of a window: of each row, the row behind its frame
    decided: Array | slice = field(default_factory=lambda: EMPTY)  # of a window: the rows whose matches these are

    @property
    def begins(self) -> Array:
        """Of each group, its first row."""
        begins: Array = self.groups[:, ROW_GROUP_FIRST]
        return begins

    @property
    def ends(self) -> Array:
        """Of each group, the row behind the last that may be looked at."""
        ends: Array = self.groups[:, ROW_GROUP_SEEN_END]
        return ends


def find_row_candidates(
    code: RowCode, table: pa.Table, grouped: Grouped, own: Array, entries: Array, budget: Budget
) -> FoundRows:
    """The matches that begin in the own rows of ranges, by their starts. Each range is a group.

    The own rows of a group are those from the first number of `own` to before the second. If they begin with its first
    row, that is the first row of the partition. Where a match of an earlier range ends is not known here, so the search
    begins at each of the first own rows, as many as `entries` says, and finds the matches of all these searches.
    """
    groups = np.zeros((len(grouped.numbers), ROW_GROUP_COLUMNS), np.int64)
    groups[:, ROW_GROUP_FIRST] = grouped.begins[:-1]
    groups[:, ROW_GROUP_END] = groups[:, ROW_GROUP_SEEN_END] = grouped.begins[1:]
    first, end = own.T
    groups[:, ROW_GROUP_START], groups[:, ROW_GROUP_STARTS_END] = first, end
    groups[:, ROW_GROUP_OPENS] = first == groups[:, ROW_GROUP_FIRST]
    tries = np.clip(entries, 1, np.maximum(end - first, 0))
    of_group = np.repeat(np.arange(len(groups)), tries)
    searches = groups[of_group]
    searches[:, ROW_GROUP_START] += np.arange(len(of_group)) - np.repeat(np.cumsum(tries) - tries, tries)
    seen = np.zeros(len(grouped), np.int64)
    search = Search(code, table, grouped, groups, nullable_names(table), budget)
    (found,) = search.parts(ALL_AT_ONCE, searches=searches, seen=seen)
    chosen = found.matches.chosen(np.argsort(found.matches.starts, kind="stable"))
    return replace(found, matches=replace(chosen, groups=of_group[chosen.groups]), counted=None)


class Search:
    """The search for the matches of all groups in a table."""

    def __init__(
        self, code: RowCode, table: pa.Table, grouped: Grouped, groups: Array, nullable: frozenset[str], budget: Budget
    ) -> None:
        self._code, self._table, self._grouped, self._groups, self._budget = code, table, grouped, groups, budget
        self._kernel = code.kernel(nullable, budget)
        self._generated = self._kernel.generated
        self._arrays = _Arrays(self._generated.registers)
        self._frame_ends = self._ends_of_frames()
        self._is_decided = (0, -1)  # of a window: the group, and in it the row, before which all matches were given out
        self._seen = _Seen(self._generated.tables.variable_of) if self._generated.tables.is_ambiguous else None

    def parts(
        self,
        states_at_once: int,
        more_rows: bool = False,
        now: Time | None = None,
        searches: Array | None = None,
        seen: Array = EMPTY,
    ) -> Iterator[FoundRows]:
        """The matches of all groups; or of all searches, several of which may be in one group, and mark their starts.

        Whenever the matches found so far have more than `states_at_once` states, they are given out. `now` is the time
        that a stream has come to, if that is known.
        """
        counted = np.zeros(len(self._groups if searches is None else searches), np.int64)  # matches given out before
        for st, is_last in self._searched(states_at_once, more_rows, now, searches, seen):
            yield self._taken(st, counted, is_last)

    def tables(self, states_at_once: int) -> Iterator[Array]:
        """The matches as rows of `found`, as the kernel writes them: each table is written over by the next."""
        for st, _ in self._searched(states_at_once):
            self._budget.count(st.matches)
            yield self._arrays.found[: st.matches]
            self._given_out(st)

    def _searched(
        self,
        states_at_once: int,
        more_rows: bool = False,
        now: Time | None = None,
        searches: Array | None = None,
        seen: Array = EMPTY,
    ) -> Iterator[tuple[Counters, bool]]:
        """Pauses whenever matches are to be taken out of the arrays; the last time, all are found."""
        query, generated, arrays, budget = self._code.query, self._generated, self._arrays, self._budget
        given = arguments(generated.layout, self._table, query.schema, self._grouped, Dictionary())
        rows = len(self._grouped)
        bits = np.zeros(rows, np.int64)
        times = _times(query, self._table, self._grouped, now)
        most = self._code.run_limit + 100 * rows
        st = Counters(
            "search_counters", start=-1, more_rows=int(more_rows), most_steps=most, work=WORK_AT_ONCE, current=-1
        )
        tables, failed = generated.tables, self._marks(rows)
        automaton = (tables.edge_begin, tables.edge_target, tables.edge_variable, tables.next_bits, tables.variable_of)
        searched = self._groups if searches is None else searches
        frames = (self._frame_ends, np.arange(rows + 1) if query.frame is not None and query.frame.seeks else EMPTY)
        self._kernel.run("classify", bits, self._groups, *given)
        arrays.expect(min(rows, states_at_once // 4, MOST_ROOM))
        while True:
            room = ((*arrays.stack, *arrays.runs), (arrays.found, arrays.states))
            events = (searched, bits, times, automaton, failed, frames)
            status = self._kernel.run("search", st.array, *events, *room, seen, *given)
            budget.reach(st.start)
            if status == statuses.NEEDS_ROOM:
                budget.hold("the stack of the search", 3 * arrays.stack_bytes)
                arrays.deepen()
            elif status == statuses.OUTPUT_FULL and 4 * st.matches + st.states > states_at_once:
                yield st, False
            elif status == statuses.OUTPUT_FULL:
                budget.hold("its matches", 3 * arrays.match_bytes)
                arrays.widen()
            elif status != statuses.PAUSED:
                break
        if status != statuses.DONE:
            raise _failure(status, self._code)
        yield st, True

    def _marks(self, rows: int) -> Array:
        """Room for the marks of states that failed."""
        words = (len(self._generated.tables.variable_of) + 63) // 64
        memo_rows = rows if self._generated.remembers else 1
        if memo_rows * words > MOST_MEMO:
            order = self._code.query.order_by
            raise GaveUpError(ir.Attribute(None, order[0].name) if order else ir.MatchNumber())
        self._budget.hold("the marks of what failed", memo_rows * words * 8)
        return np.zeros((max(memo_rows, 1), max(words, 1)), np.int64)

    def _ends_of_frames(self) -> Array:
        query, groups, grouped = self._code.query, self._groups, self._grouped
        if query.frame is None:
            return EMPTY
        ends = np.zeros(len(grouped), np.int64)
        ends[groups[:, ROW_GROUP_FIRST]] = groups[:, ROW_GROUP_END]
        ends = np.maximum.accumulate(ends)
        return frame_ends(query.frame, self._table, grouped.order, ends, query.definition.source)

    def _decided(self, st: Counters, is_last: bool) -> Array | slice:
        """The rows of a window that were decided since it was asked last."""
        if self._code.query.frame is None:
            return EMPTY
        (first, row), groups = self._is_decided, self._groups
        last = len(groups) if is_last else st.group + 1
        begins, ends = groups[first:last, ROW_GROUP_FIRST].copy(), groups[first:last, ROW_GROUP_END].copy()
        if len(begins):
            begins[0] = max(begins[0], row)
            if not is_last:
                ends[-1] = st.current
        self._is_decided = (st.group, st.current)
        return ranges_of(begins, ends)

    def _taken(self, st: Counters, counted: Array, is_last: bool) -> FoundRows:
        """Takes the matches found so far out of the arrays."""
        found, states = self._arrays.found[: st.matches], self._arrays.states[: st.states]
        states = states if is_last else states.copy()  # later matches are written over them
        groups, starts, numbers = (found[:, at].copy() for at in (ROW_MATCH_GROUP, ROW_MATCH_START, ROW_MATCH_NUMBER))
        offsets = np.concatenate([[0], np.cumsum(found[:, ROW_MATCH_LENGTH])]).astype(np.int64)
        of_rows = EMPTY if self._code.query.frame is None else found[:, ROW_MATCH_OF_ROW].copy()
        matches = RowMatches(groups, starts, offsets, numbers, states, of_rows)
        self._given_out(st)
        if self._code.gives_all and self._seen is not None:
            matches = self._seen.distinct(matches)
        self._budget.count(len(matches))
        before = counted.copy()
        counted += np.bincount(matches.groups, minlength=len(counted))
        return FoundRows(
            self._table,
            self._grouped,
            self._groups,
            matches,
            self._kernel,
            counted=before,
            is_settled=is_last,
            frame_ends=self._frame_ends,
            decided=self._decided(st, is_last),
        )

    def _given_out(self, st: Counters) -> None:
        """The arrays may be written over."""
        st.matches_before -= st.matches
        st.states_before -= st.states
        st.matches = st.states = 0


def ranges_of(begins: Array, ends: Array) -> Array | slice:
    """The numbers from each begin to before its end, one range behind the other; a slice where they follow in order."""
    if len(begins) and (begins[1:] == ends[:-1]).all():
        return slice(int(begins[0]), int(ends[-1]))
    sizes = ends - begins
    return np.asarray(np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum()))


class _Arrays:
    def __init__(self, registers: Registers) -> None:
        self.stack = [np.zeros(ROOM, np.int64) for _ in range(3)]
        self.runs = Runs.empty(ROOM, registers)
        self.found = np.empty((ROOM, ROW_MATCH_COLUMNS), np.int64)
        self.states = np.empty(8 * ROOM, np.int64)

    def expect(self, matches: int) -> None:
        """Room for so many matches, as long as they are short; what is not written to takes no memory."""
        if matches > len(self.found):
            self.found = np.empty((matches, ROW_MATCH_COLUMNS), np.int64)
            self.states = np.empty(2 * matches, np.int64)

    @property
    def stack_bytes(self) -> int:
        return int(sum(part.nbytes for part in (*self.stack, *self.runs)))

    @property
    def match_bytes(self) -> int:
        return int(self.found.nbytes + self.states.nbytes)

    def deepen(self) -> None:
        length = 2 * len(self.runs.i)
        self.stack, self.runs = [grown(part, length) for part in self.stack], self.runs.grown(length)

    def widen(self) -> None:
        self.found = grown(self.found, 2 * len(self.found))
        self.states = grown(self.states, max(2 * len(self.states), 2 * len(self.runs.i)))


def _times(query: AnalyzedRowPattern, table: pa.Table, grouped: Grouped, now: Time | None) -> Array:
    """The times of the rows, and behind them, if it is known, the time that the stream has come to."""
    if KernelWindow.of(query).in_time is None:
        return np.zeros(1, np.float64 if query.time_type == FLOAT else np.int64)
    name = query.order_by[0].name
    times = times_array(table, name, query.time_type)
    check_span(times, name)
    if table.column(name).null_count:
        raise GaveUpError(ir.Attribute(None, name))
    times = grouped.permuted(times)
    return np.ascontiguousarray(times if now is None else np.append(times, times.dtype.type(now)))


def _failure(status: int, code: RowCode) -> Exception:
    after = code.query.definition.after_match or AfterMatch()
    if status in WHY_NOT_TO_SKIP:
        return cannot_skip(after, WHY_NOT_TO_SKIP[status])
    return LimitError(
        f"from one row, the pattern can match in too many ways: {code.run_limit:,} steps were not enough",
        hint="Make its loops and alternatives exclude each other, bound it with WITHIN or MAXLENGTH, or "
        "raise run_limit.",
    )


class _Seen:
    """Recognizes classifications of a start row that were found before, in another way."""

    def __init__(self, variable_of: Array) -> None:
        self._variable_of = variable_of
        self._start, self._paths = -1, set[bytes]()

    def distinct(self, matches: RowMatches) -> RowMatches:
        """Keeps each classification of a start row once: the first way in which it was found."""
        variables = self._variable_of[matches.states] if len(matches.states) else matches.states
        kept: list[int] = []
        for number, start in enumerate(matches.starts.tolist()):
            if start != self._start:
                self._start, self._paths = start, set()
            path = variables[matches.offsets[number] : matches.offsets[number + 1]].tobytes()
            if path not in self._paths:
                self._paths.add(path)
                kept.append(number)
        return replace(matches.chosen(np.array(kept, np.int64)), numbers=EMPTY)


def numbered(found: FoundRows, is_all: bool) -> Array:
    """The number of each match in its partition; for ALL MATCHES they are counted here."""
    matches = found.matches
    if not is_all:
        return matches.numbers
    if not len(matches):
        return EMPTY
    begins = np.flatnonzero(np.concatenate([[True], matches.groups[1:] != matches.groups[:-1]]))
    own = np.arange(len(matches)) - np.repeat(begins, np.diff(np.append(begins, len(matches)))) + 1
    return own if found.counted is None else own + found.counted[matches.groups]
