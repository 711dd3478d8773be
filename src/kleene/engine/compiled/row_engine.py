"""The compiled engine for row patterns: rows in, matches out, in pieces of any size.

Between pieces only rows are kept: those from the first undecided start on, and as many before it as conditions look
back to. When more rows come, the search from that start begins again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.positions import positions_of
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrays.row_groups import (
    ROW_GROUP_COLUMNS,
    ROW_GROUP_END,
    ROW_GROUP_FIRST,
    ROW_GROUP_MATCHES,
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
    ROW_MATCH_START,
)
from kleene.engine.compiled.arrays.row_partitions import (
    PARTITION_COLUMNS,
    PARTITION_COVERED,
    PARTITION_DECIDED,
    PARTITION_DROPPED,
    PARTITION_MATCHES,
)
from kleene.engine.compiled.arrays.search_counters import (
    SEARCH_COUNTERS,
    SEARCH_MATCHES,
    SEARCH_MATCHES_BEFORE,
    SEARCH_MORE_ROWS,
    SEARCH_MOST_STEPS,
    SEARCH_START,
    SEARCH_STATES,
    SEARCH_STATES_BEFORE,
    SEARCH_WORK,
)
from kleene.engine.compiled.arrays.statuses import (
    DONE,
    FIRST_ERROR,
    NEEDS_ROOM,
    NO_ROW_TO_SKIP_TO,
    OUTPUT_FULL,
    PAUSED,
    SKIPS_TO_ITS_START,
)
from kleene.engine.compiled.batches import (
    EMPTY,
    Grouped,
    arguments,
    group,
    grown,
    nullable_names,
    one_group,
    partition_codes,
)
from kleene.engine.compiled.buffer import Time, wake_time
from kleene.engine.compiled.columns import Array, Dictionary, times_array
from kleene.engine.compiled.failures import GaveUpError, check_span
from kleene.engine.compiled.partitions import Partitions
from kleene.engine.compiled.programs import Kernel, Program
from kleene.engine.compiled.row_code import GeneratedRows, generate_rows, has_time_window
from kleene.engine.events import window_time
from kleene.engine.row_reference import RowMatch, cannot_skip
from kleene.engine.saved_parts import SavedParts, require
from kleene.errors import LimitError
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Selection
from kleene.ir.pattern import has_anchor
from kleene.schema import FLOAT

ROOM = 1024
WORK_AT_ONCE = 1 << 26
"""How many rows the kernel takes before it pauses, so that limits can be looked at."""
ALL_AT_ONCE = 1 << 62
WHY_NOT_TO_SKIP = {
    NO_ROW_TO_SKIP_TO: "the match has no such row",
    SKIPS_TO_ITS_START: "it is the row where the match began, which would be found forever",
}
MOST_MEMO = 1 << 28
"""The most words for the marks of states that failed; beyond that the engine gives up."""


@dataclass(frozen=True, slots=True)
class RowMatches:
    """Many matches as arrays: match m begins at row starts[m] of the grouped rows; its states begin at offsets[m]."""

    groups: Array
    starts: Array
    offsets: Array
    numbers: Array
    states: Array

    def __len__(self) -> int:
        return len(self.starts)

    def states_of(self, number: int) -> Array:
        return self.states[self.offsets[number] : self.offsets[number + 1]]


class RowProgram(Program[GeneratedRows]):
    def __init__(self, query: AnalyzedRowPattern, jit: bool = True) -> None:
        automaton = positions_of(query)
        super().__init__(lambda nullable: generate_rows(query, automaton, nullable), jit, automaton)
        self.query = query


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The matches in a table. `grouped` has its rows by partition, `groups` what the kernel knows of each partition."""

    table: pa.Table
    grouped: Grouped
    groups: Array
    matches: RowMatches
    kernel: Kernel[GeneratedRows]
    # For a stream, of each partition: the first row not decided yet, the first not decided before, rows matched before.
    decided: Array | None = None
    began: Array | None = None
    covered: Array | None = None
    counted: Array | None = None  # matches before

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


def find_row_matches(
    program: RowProgram,
    table: pa.Table,
    run_limit: int,
    budget: Budget | None = None,
    states_at_once: int = ALL_AT_ONCE,
) -> Iterator[FoundRows]:
    """All matches in a whole table, partition by partition, in the order in which they were found.

    They come in parts of about `states_at_once` states. There is at least one part.
    """
    if program.query.partition_by:
        grouped = group(*partition_codes(table, program.query.partition_by, null_is_a_key=True), program.jit)
    else:
        grouped = one_group(table.num_rows)
    groups = np.zeros((len(grouped.numbers), ROW_GROUP_COLUMNS), np.int64)
    groups[:, ROW_GROUP_FIRST] = groups[:, ROW_GROUP_START] = grouped.begins[:-1]
    groups[:, ROW_GROUP_END] = groups[:, ROW_GROUP_SEEN_END] = groups[:, ROW_GROUP_STARTS_END] = grouped.begins[1:]
    groups[:, ROW_GROUP_OPENS] = 1
    if not grouped.is_identity:  # of two errors, report that of the partition that came first
        groups = groups[np.argsort(grouped.order[groups[:, ROW_GROUP_FIRST]])]
    search = Search(program, table, grouped, groups, run_limit, nullable_names(table), budget)
    return search.parts(states_at_once)


def find_row_candidates(
    program: RowProgram,
    table: pa.Table,
    grouped: Grouped,
    own: Array,
    entries: Array,
    run_limit: int,
    budget: Budget | None = None,
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
    search = Search(program, table, grouped, groups, run_limit, nullable_names(table), budget)
    found = search.whole(searches=searches, seen=seen)
    matches = found.matches
    order = np.argsort(matches.starts, kind="stable")
    sizes = np.diff(matches.offsets)[order]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    states = matches.states[np.repeat(matches.offsets[order], sizes) + within]
    numbers = matches.numbers[order] if len(matches.numbers) else matches.numbers
    chosen = RowMatches(of_group[matches.groups[order]], matches.starts[order], offsets, numbers, states)
    return replace(found, matches=chosen)


class Search:
    """The search for the matches of all groups in a table."""

    def __init__(
        self,
        program: RowProgram,
        table: pa.Table,
        grouped: Grouped,
        groups: Array,
        run_limit: int,
        nullable: frozenset[str],
        budget: Budget | None = None,
    ) -> None:
        self._program, self._table, self._grouped, self._groups = program, table, grouped, groups
        self._run_limit = run_limit
        self._budget = Budget(events=table.num_rows) if budget is None else budget
        self._kernel = program.kernel(nullable, self._budget)
        self._generated = self._kernel.generated
        self._arrays = _Arrays(self._generated.integers, self._generated.floats)
        definition = program.query.definition
        self._is_all = definition.selection is Selection.ALL_MATCHES
        self._seen = _Seen(self._generated.tables.variable_of) if self._generated.tables.is_ambiguous else None

    def whole(
        self,
        more_rows: bool = False,
        now: Time | None = None,
        searches: Array | None = None,
        seen: Array = EMPTY,
    ) -> FoundRows:
        """All of them together. `now` is the time that a stream has come to, if that is known."""
        (found,) = self.parts(ALL_AT_ONCE, more_rows, now, searches, seen)
        return found

    def parts(
        self,
        states_at_once: int,
        more_rows: bool = False,
        now: Time | None = None,
        searches: Array | None = None,
        seen: Array = EMPTY,
    ) -> Iterator[FoundRows]:
        """The matches of all groups; or of all searches, several of which may be in one group, and mark their starts.

        Whenever the matches found so far have more than `states_at_once` states, they are given out.
        """
        query, generated, arrays, budget = self._program.query, self._generated, self._arrays, self._budget
        assert query.schema is not None
        types = dict(query.schema.attributes)
        given = arguments(generated.layout, self._table, query.schema, types, self._grouped, Dictionary())
        rows = len(self._grouped)
        bits = np.zeros(rows, np.int64)
        times = _times(query, self._table, self._grouped, now)
        st = np.zeros(SEARCH_COUNTERS, np.int64)
        st[SEARCH_START] = -1
        st[SEARCH_MORE_ROWS] = 1 if more_rows else 0
        st[SEARCH_MOST_STEPS] = self._run_limit + 100 * rows
        st[SEARCH_WORK] = WORK_AT_ONCE
        tables, failed = generated.tables, self._marks(rows)
        automaton = (tables.edge_begin, tables.edge_target, tables.edge_variable, tables.next_bits, tables.variable_of)
        search, searched = self._kernel.functions["search"], self._groups if searches is None else searches
        counted = np.zeros(len(searched), np.int64)  # matches given out before
        with np.errstate(all="ignore"):
            self._kernel.functions["classify"](bits, self._groups, *given)
        while True:
            with np.errstate(all="ignore"):
                room = (*arrays.stack, arrays.ri, arrays.rf, arrays.found, arrays.states)
                status = search(st, searched, bits, times, *automaton, failed, *room, seen, *given)
            budget.reach(int(st[SEARCH_START]))
            if status == NEEDS_ROOM:
                budget.hold("the stack of the search", 3 * arrays.stack_bytes)
                arrays.deepen()
            elif status == OUTPUT_FULL and 4 * st[SEARCH_MATCHES] + st[SEARCH_STATES] > states_at_once:
                yield self._taken(st, counted)
            elif status == OUTPUT_FULL:
                budget.hold("its matches", 3 * arrays.match_bytes)
                arrays.widen()
            elif status != PAUSED:
                break
        if status != DONE:
            raise _failure(status, self._program, self._run_limit, generated)
        yield self._taken(st, counted)

    def _marks(self, rows: int) -> Array:
        """Room for the marks of states that failed."""
        words = (len(self._generated.tables.variable_of) + 63) // 64
        memo_rows = rows if self._generated.remembers else 1
        if memo_rows * words > MOST_MEMO:
            raise GaveUpError(ir.Attribute(None, self._program.query.order_by[0].name))
        self._budget.hold("the marks of what failed", memo_rows * words * 8)
        return np.zeros((max(memo_rows, 1), max(words, 1)), np.int64)

    def _taken(self, st: Array, counted: Array) -> FoundRows:
        """Takes the matches found so far out of the arrays."""
        matches = _matches(self._arrays.found[: st[SEARCH_MATCHES]], self._arrays.states[: st[SEARCH_STATES]].copy())
        st[SEARCH_MATCHES_BEFORE] -= st[SEARCH_MATCHES]
        st[SEARCH_STATES_BEFORE] -= st[SEARCH_STATES]
        st[SEARCH_MATCHES] = st[SEARCH_STATES] = 0
        if self._is_all and self._seen is not None:
            matches = self._seen.distinct(matches)
        self._budget.count(len(matches))
        before = counted.copy()
        np.add.at(counted, matches.groups, 1)
        return FoundRows(self._table, self._grouped, self._groups, matches, self._kernel, counted=before)


@dataclass(slots=True)
class _Arrays:
    integers: int
    floats: int
    stack: list[Array] = field(default_factory=lambda: [np.zeros(ROOM, np.int64) for _ in range(3)])
    found: Array = field(default_factory=lambda: np.zeros((ROOM, ROW_MATCH_COLUMNS), np.int64))
    states: Array = field(default_factory=lambda: np.zeros(8 * ROOM, np.int64))
    ri: Array = field(init=False)
    rf: Array = field(init=False)

    def __post_init__(self) -> None:
        self.ri = np.zeros((ROOM, self.integers), np.int64)
        self.rf = np.zeros((ROOM, self.floats), np.float64)

    @property
    def stack_bytes(self) -> int:
        return int(sum(part.nbytes for part in (*self.stack, self.ri, self.rf)))

    @property
    def match_bytes(self) -> int:
        return int(self.found.nbytes + self.states.nbytes)

    def deepen(self) -> None:
        length = 2 * len(self.ri)
        self.stack = [grown(part, length) for part in self.stack]
        self.ri, self.rf = grown(self.ri, length), grown(self.rf, length)

    def widen(self) -> None:
        self.found = grown(self.found, 2 * len(self.found))
        self.states = grown(self.states, max(2 * len(self.states), 2 * len(self.ri)))


def _times(query: AnalyzedRowPattern, table: pa.Table, grouped: Grouped, now: Time | None) -> Array:
    """The times of the rows, and behind them, if it is known, the time that the stream has come to."""
    if not has_time_window(query):
        return np.zeros(1, np.float64 if query.time_type == FLOAT else np.int64)
    name = query.order_by[0].name
    times = times_array(table, name, query.time_type)
    check_span(times, name)
    if table.column(name).null_count:
        raise GaveUpError(ir.Attribute(None, name))
    times = grouped.permuted(times)
    return np.ascontiguousarray(times if now is None else np.append(times, times.dtype.type(now)))


def _failure(status: int, program: RowProgram, run_limit: int, generated: GeneratedRows) -> Exception:
    if status <= FIRST_ERROR:
        return generated.layout.failure(status)
    after = program.query.definition.after_match or AfterMatch()
    if status in WHY_NOT_TO_SKIP:
        return cannot_skip(after, WHY_NOT_TO_SKIP[status])
    return LimitError(
        f"the pattern can be matched from one row in too many ways: {run_limit:,} steps did not end",
        hint="Make its loops and alternatives exclude each other, bound it with WITHIN or MAXLENGTH, or "
        "raise run_limit.",
    )


def _matches(found: Array, states: Array) -> RowMatches:
    offsets = np.concatenate([[0], np.cumsum(found[:, ROW_MATCH_LENGTH])]).astype(np.int64)
    groups, starts, numbers = (found[:, at].copy() for at in (ROW_MATCH_GROUP, ROW_MATCH_START, ROW_MATCH_NUMBER))
    return RowMatches(groups, starts, offsets, numbers, states)


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
        chosen = np.array(kept, np.int64)
        lengths = (matches.offsets[1:] - matches.offsets[:-1])[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        states = matches.states[np.repeat(matches.offsets[chosen], lengths) + within]
        return RowMatches(matches.groups[chosen], matches.starts[chosen], offsets, EMPTY, states)


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


def row_matches(found: FoundRows, is_all: bool) -> list[list[RowMatch]]:
    """The matches of each partition as the interpreter has them; rows are known by their numbers in the partition."""
    tables, matches = found.kernel.generated.tables, found.matches
    names = np.array([tables.variables[number] for number in tables.variable_of], object)
    excluded = np.array(tables.is_excluded, np.bool_)
    numbers = numbered(found, is_all)
    by_group: list[list[RowMatch]] = [[] for _ in range(len(found.groups))]
    for m in range(len(matches)):
        own = matches.states_of(m)
        at = int(matches.groups[m])
        by_group[at].append(
            RowMatch(
                int(matches.starts[m] - found.begins[at]),
                int(numbers[m]),
                tuple(names[own]),
                tuple(excluded[own].tolist()),
            )
        )
    return by_group


class RowProgress:
    """How far a stream of rows has come, partition by partition. Feed it rows in order.

    Of each partition it keeps the rows from the undecided start on, and those before it that conditions and measures
    look back to; how many matches there were; and up to which row it is matched.
    """

    def __init__(self, program: RowProgram, run_limit: int) -> None:
        self.program, self.run_limit, self.budget = program, run_limit, Budget()
        self.partitions = Partitions(program.query.partition_by)
        self.nullable: frozenset[str] = frozenset()
        self.kept_table: pa.Table | None = None
        self.kept_numbers = EMPTY
        self.state = np.zeros((0, PARTITION_COLUMNS), np.int64)

    def feed(self, table: pa.Table, is_last: bool = False, now: Time | None = None) -> FoundRows:
        """The matches that no later row can change. `now` is the time that the stream has come to, if that is known."""
        codes = self.partitions.numbers(table, null_is_a_key=True)
        missing = len(self.partitions) - len(self.state)
        if missing > 0:
            self.state = np.concatenate([self.state, np.zeros((missing, PARTITION_COLUMNS), np.int64)])
        if self.kept_table is not None:
            table = pa.concat_tables([self.kept_table, table.select(self.kept_table.column_names)])
            codes = np.concatenate([self.kept_numbers, codes])
        grouped = group(codes, max(len(self.partitions), 1), self.program.jit)
        self.nullable |= nullable_names(table)
        generated = self.program.generated(self.nullable)
        own = self.state[grouped.numbers]
        groups = np.zeros((len(grouped.numbers), ROW_GROUP_COLUMNS), np.int64)
        begins, ends = grouped.begins[:-1], grouped.begins[1:]
        groups[:, ROW_GROUP_FIRST], groups[:, ROW_GROUP_SEEN_END] = begins, ends
        groups[:, ROW_GROUP_END] = ends if is_last else np.maximum(ends - generated.look_ahead, begins)
        groups[:, ROW_GROUP_STARTS_END] = groups[:, ROW_GROUP_END]
        groups[:, ROW_GROUP_START] = begins + own[:, PARTITION_DECIDED]
        groups[:, ROW_GROUP_MATCHES] = own[:, PARTITION_MATCHES]
        groups[:, ROW_GROUP_OPENS] = own[:, PARTITION_DROPPED] == 0
        search = Search(self.program, table, grouped, groups, self.run_limit, self.nullable, self.budget)
        found = search.whole(not is_last, now)
        covered = self._covered(found, own)
        if self.program.query.definition.selection is Selection.ALL_MATCHES:
            # Ways that are one classification are one match.
            found_here = np.bincount(found.matches.groups, minlength=len(groups))
            groups[:, ROW_GROUP_MATCHES] = own[:, PARTITION_MATCHES] + found_here
        found = replace(
            found,
            decided=groups[:, ROW_GROUP_START] - groups[:, ROW_GROUP_FIRST],
            began=own[:, PARTITION_DECIDED],
            covered=own[:, PARTITION_COVERED] - own[:, PARTITION_DROPPED],
            counted=own[:, PARTITION_MATCHES],
        )
        self._retain(found, own, covered, generated.look_back)
        return found

    def _covered(self, found: FoundRows, own: Array) -> Array:
        """Up to which row, counted from the beginning of the stream, each partition is matched."""
        covered = own[:, PARTITION_COVERED].copy()
        if len(found.matches):
            lengths = np.maximum(np.diff(found.matches.offsets), 1)  # an empty match is at a row, too
            ends = found.matches.starts + lengths - found.groups[found.matches.groups, ROW_GROUP_FIRST]
            np.maximum.at(covered, found.matches.groups, ends + own[found.matches.groups, PARTITION_DROPPED])
        return covered

    def _retain(self, found: FoundRows, own: Array, covered: Array, look_back: int) -> None:
        groups, grouped = found.groups, found.grouped
        start = groups[:, ROW_GROUP_START] - groups[:, ROW_GROUP_FIRST]
        dropped = np.maximum(start - look_back, 0)
        numbers = grouped.numbers
        self.state[numbers, PARTITION_DROPPED] = own[:, PARTITION_DROPPED] + dropped
        self.state[numbers, PARTITION_DECIDED] = start - dropped
        self.state[numbers, PARTITION_MATCHES] = groups[:, ROW_GROUP_MATCHES]
        self.state[numbers, PARTITION_COVERED] = covered
        sizes = groups[:, ROW_GROUP_SEEN_END] - groups[:, ROW_GROUP_FIRST]
        within = np.arange(len(grouped)) - np.repeat(groups[:, ROW_GROUP_FIRST], sizes)
        rows = np.flatnonzero(within >= np.repeat(dropped, sizes))
        positions = grouped.order[rows]
        in_table = np.argsort(positions, kind="stable")
        self.kept_table = found.table.take(pa.array(positions[in_table])).combine_chunks()
        self.kept_numbers = np.repeat(numbers, sizes)[rows][in_table]
        if not self._counts_from_the_beginning:
            self._forget_partitions()

    @property
    def _counts_from_the_beginning(self) -> bool:
        """Whether a partition without open rows matters: its matches are numbered, or its first row is special."""
        query = self.program.query
        read = [*(condition for _, condition in query.conditions), *(item.expression for item in query.measures)]
        is_numbered = any(isinstance(node, ir.MatchNumber) for expression in read for node in ir.walk(expression))
        return is_numbered or has_anchor(query.definition.pattern, at_start=True)

    def _forget_partitions(self) -> None:
        """Forgets partitions of which nothing is kept. If rows of one come again, it begins anew."""
        used = np.zeros(len(self.state), np.bool_)
        used[self.kept_numbers] = True
        if not used.all():
            new = self.partitions.keep(used)
            self.state, self.kept_numbers = self.state[used], new[self.kept_numbers]

    @property
    def open_runs(self) -> int:
        """Partitions with an undecided start, which take the place of runs here."""
        sizes = np.bincount(self.kept_numbers, minlength=len(self.state))
        return int((sizes > self.state[:, PARTITION_DECIDED]).sum())

    @property
    def kept_events(self) -> int:
        return len(self.kept_numbers)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held that the next row could depend on."""
        return not len(self.state)

    def wakes_at(self) -> Time | None:
        """When time alone decides about an open start, without a row; None if it never does."""
        query = self.program.query
        if not has_time_window(query) or self.kept_table is None or not len(self.kept_numbers):
            return None
        grouped = group(self.kept_numbers, len(self.state), self.program.jit)
        at = grouped.begins[:-1] + self.state[grouped.numbers, PARTITION_DECIDED]
        times = grouped.permuted(times_array(self.kept_table, query.order_by[0].name, query.time_type))
        since = times[at[at < grouped.begins[1:]]]
        assert query.definition.window is not None
        return wake_time(since.min(), window_time(query.definition.window, query.time_type)) if len(since) else None

    def saved(self) -> dict[str, object]:
        parts = {
            "nullable": sorted(self.nullable),
            "keys": self.partitions.table,
            "kept_table": self.kept_table,
            "kept_numbers": self.kept_numbers,
            "state": self.state,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def load(self, parts: SavedParts) -> None:
        self.nullable = parts.column_names("nullable")
        self.state = parts.array("state", None, PARTITION_COLUMNS, low=0)
        self.partitions.load(parts, "keys", len(self.state))
        self.kept_table, kept = parts.table("kept_table"), parts.rows_of("kept_table")
        self.kept_numbers = parts.array("kept_numbers", kept, low=0, high=len(self.state))
        sizes = np.bincount(self.kept_numbers, minlength=len(self.state))
        require(bool((self.state[:, PARTITION_DECIDED] <= sizes).all()), "state")
        require(bool((self.state[:, PARTITION_COVERED] - self.state[:, PARTITION_DROPPED] <= sizes).all()), "state")
