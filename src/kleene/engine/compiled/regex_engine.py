"""The compiled engine for the regular-expression operator: events in, output rows out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.positions import positions_of
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrays.groups import GROUP_STORED_COUNT
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_REGISTERS, PARTIAL_START, PARTIAL_STATES
from kleene.engine.compiled.arrays.regex_counters import (
    REGEX_COUNTERS,
    REGEX_GROUP,
    REGEX_KEEPS,
    REGEX_KEPT,
    REGEX_MATCHES,
    REGEX_PARTIAL,
    REGEX_ROW,
    REGEX_RUN_LIMIT,
    REGEX_WORK,
)
from kleene.engine.compiled.arrays.regex_matches import REGEX_MATCH_COLUMNS
from kleene.engine.compiled.arrays.statuses import FIRST_ERROR, NEEDS_ROOM, PAUSED, TOO_MANY_RUNS
from kleene.engine.compiled.batches import Grouped, arguments, group, grown, nullable_names, partition_codes
from kleene.engine.compiled.columns import Array, Dictionary
from kleene.engine.compiled.open_runs import groups_of, sizes_of, stored_runs
from kleene.engine.compiled.partitions import Partitions
from kleene.engine.compiled.programs import Kernel, Program
from kleene.engine.compiled.regex_code import GeneratedRegex, generate_regex
from kleene.engine.compiled.registers import forget_strings
from kleene.engine.regex_reference import too_many_partial_matches
from kleene.engine.saved_parts import MOST, SavedParts, require_runs, require_within

ROOM = 256
WORK_AT_ONCE = 1 << 26
"""How much the kernel does before it pauses, so that limits can be looked at."""


class RegexProgram(Program[GeneratedRegex]):
    def __init__(self, query: AnalyzedRowPattern, jit: bool = True) -> None:
        automaton = positions_of(query)
        super().__init__(lambda nullable: generate_regex(query, automaton, nullable), jit, automaton)
        self.query = query


@dataclass(slots=True)
class Partial:
    """Arrays of partial matches, and of matches with their registers."""

    integers: int
    floats: int
    ri: Array = field(init=False)
    rf: Array = field(init=False)
    kept_i: Array = field(init=False)
    kept_f: Array = field(init=False)
    stored_i: Array = field(init=False)
    stored_f: Array = field(init=False)
    oi: Array = field(init=False)
    of: Array = field(init=False)
    found: Array = field(default_factory=lambda: np.zeros((ROOM, REGEX_MATCH_COLUMNS), np.int64))

    def __post_init__(self) -> None:
        for name in ("r", "kept_", "stored_", "o"):
            setattr(self, f"{name}i", np.zeros((ROOM, self.integers), np.int64))
            setattr(self, f"{name}f", np.zeros((ROOM, self.floats), np.float64))

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All of them, as the kernel takes them."""
        open_ = (self.stored_i, self.stored_f, self.kept_i, self.kept_f, self.ri, self.rf)
        return (*open_, self.found, self.oi, self.of)

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def grow(self, matches: int, partial: int, kept: int) -> None:
        if 2 * matches + 2 > len(self.found):
            length = 2 * len(self.found)
            self.found, self.oi, self.of = grown(self.found, length), grown(self.oi, length), grown(self.of, length)
        if 2 * partial + 4 > len(self.ri):
            length = 2 * partial + 2 * len(self.ri)
            self.ri, self.rf = grown(self.ri, length), grown(self.rf, length)
        if 2 * (kept + partial) > len(self.kept_i):
            length = 2 * (kept + partial) + len(self.kept_i)
            self.kept_i, self.kept_f = grown(self.kept_i, length), grown(self.kept_f, length)


@dataclass(frozen=True, slots=True)
class FoundRegex:
    table: pa.Table
    grouped: Grouped
    groups: Array
    kernel: Kernel[GeneratedRegex]
    dictionary: Dictionary
    partial: Partial
    matches: int
    kept: int

    def rows(self) -> Array:
        """For each match: its group, its first row, and the row that completes it."""
        return self.partial.found[: self.matches]


def find_regex(program: RegexProgram, table: pa.Table, run_limit: int, budget: Budget | None = None) -> FoundRegex:
    codes, count = partition_codes(table, program.query.partition_by, null_is_a_key=True)
    grouped = group(codes, count, program.jit)
    no_runs = np.zeros(max(count, 1), np.int64)
    groups = groups_of(grouped, 0, no_runs, no_runs)
    nullable = nullable_names(table)
    budget = Budget(events=table.num_rows) if budget is None else budget
    return run_regex(program, table, grouped, groups, run_limit, Dictionary(), nullable, None, False, budget)


def run_regex(
    program: RegexProgram,
    table: pa.Table,
    grouped: Grouped,
    groups: Array,
    run_limit: int,
    dictionary: Dictionary,
    nullable: frozenset[str],
    partial: Partial | None,
    more_events: bool,
    budget: Budget,
) -> FoundRegex:
    query = program.query
    assert query.schema is not None
    kernel = program.kernel(nullable, budget)
    generated = kernel.generated
    given = arguments(generated.layout, table, query.schema, dict(query.schema.attributes), grouped, dictionary)
    rows = len(grouped)
    bits = np.zeros(rows, np.int64)
    if partial is None:
        partial = Partial(PARTIAL_REGISTERS + generated.registers.integers, max(generated.registers.floats, 1))
    st = np.zeros(REGEX_COUNTERS, np.int64)
    st[REGEX_RUN_LIMIT], st[REGEX_KEEPS], st[REGEX_WORK] = run_limit, 1 if more_events else 0, WORK_AT_ONCE
    with np.errstate(all="ignore"):
        kernel.functions["classify"](bits, 0, rows, *given)
        while True:
            automaton = (generated.follow, generated.of_variable, generated.accepting)
            status = kernel.functions["match_events"](st, groups, bits, *automaton, *partial.arrays, *given)
            budget.reach(int(st[REGEX_ROW]))
            if status == PAUSED:
                continue
            if status != NEEDS_ROOM:
                break
            budget.hold("its partial matches", 3 * partial.bytes)
            stored = int(groups[st[REGEX_GROUP], GROUP_STORED_COUNT]) if st[REGEX_GROUP] < len(groups) else 0
            partial.grow(int(st[REGEX_MATCHES]), max(int(st[REGEX_PARTIAL]), stored), int(st[REGEX_KEPT]))
    if status == TOO_MANY_RUNS:
        position = int(grouped.order[st[REGEX_ROW]])
        key = {name: table.column(name)[position].as_py() for name in query.partition_by}
        raise too_many_partial_matches(run_limit, key)
    if status <= FIRST_ERROR:
        raise generated.layout.failure(status)
    budget.count(int(st[REGEX_MATCHES]))
    return FoundRegex(table, grouped, groups, kernel, dictionary, partial, int(st[REGEX_MATCHES]), int(st[REGEX_KEPT]))


class RegexProgress:
    """How far a stream of events has come. It keeps events only if an output collects them."""

    def __init__(self, program: RegexProgram, run_limit: int) -> None:
        self.program, self.run_limit, self.budget = program, run_limit, Budget()
        self.partitions = Partitions(program.query.partition_by)
        self.dictionary = Dictionary()
        self.nullable: frozenset[str] = frozenset()
        self.partial: Partial | None = None
        self.kept_table: pa.Table | None = None
        self.kept_numbers = np.empty(0, np.int64)
        self.begins, self.counts = np.empty(0, np.int64), np.empty(0, np.int64)

    def feed(self, table: pa.Table, is_last: bool = False) -> FoundRegex:
        codes = self.partitions.numbers(table, null_is_a_key=True)
        missing = len(self.partitions) - len(self.counts)
        if missing > 0:
            zeros = np.zeros(missing, np.int64)
            self.begins, self.counts = np.concatenate([self.begins, zeros]), np.concatenate([self.counts, zeros])
        fresh_from = 0
        if self.kept_table is not None:
            fresh_from = self.kept_table.num_rows
            table = pa.concat_tables([self.kept_table, table.select(self.kept_table.column_names)])
            codes = np.concatenate([self.kept_numbers, codes])
        grouped = group(codes, max(len(self.partitions), 1), self.program.jit)
        self.nullable |= nullable_names(table)
        groups = groups_of(grouped, fresh_from, self.begins, self.counts)
        if self.partial is not None and fresh_from:
            place = np.empty(table.num_rows, np.int64)
            place[grouped.order] = np.arange(len(grouped.order))
            runs = int(self.counts.sum())
            self.partial.stored_i[:runs, PARTIAL_START] = place[self.partial.stored_i[:runs, PARTIAL_START]]
        found = run_regex(
            self.program,
            table,
            grouped,
            groups,
            self.run_limit,
            self.dictionary,
            self.nullable,
            self.partial,
            not is_last,
            self.budget,
        )
        if not is_last:
            self._retain(found)
        return found

    def _retain(self, found: FoundRegex) -> None:
        partial = found.partial
        fresh = Partial(partial.integers, partial.floats)
        arrays = ((partial.kept_i, partial.stored_i), (partial.kept_f, partial.stored_f))
        self.begins, self.counts, (fresh.stored_i, fresh.stored_f) = stored_runs(
            found.grouped, found.groups, self.begins, self.counts, arrays, ROOM
        )
        total = int(self.counts.sum())
        self.partial = fresh
        registers = found.kernel.generated.registers
        self.dictionary = forget_strings(self.dictionary, registers, fresh.stored_i, total)
        self._keep_events(found, total)
        used = self.counts > 0
        used[self.kept_numbers] = True
        if not used.all():
            new_numbers = self.partitions.keep(used)
            self.begins, self.counts = self.begins[used], self.counts[used]
            self.kept_numbers = new_numbers[self.kept_numbers]

    def _keep_events(self, found: FoundRegex, total: int) -> None:
        """For Collect: the events since the oldest partial match of each partition began."""
        assert self.partial is not None
        if not found.kernel.generated.collects:
            self.partial.stored_i[:total, PARTIAL_START] = 0
            return
        grouped = found.grouped
        oldest = np.full(len(self.counts), len(grouped.order), np.int64)
        starts = self.partial.stored_i[:total, PARTIAL_START]
        np.minimum.at(oldest, np.repeat(np.arange(len(self.counts)), self.counts), starts)
        sizes = sizes_of(found.groups)
        rows = np.flatnonzero(np.arange(len(grouped.order)) >= np.repeat(oldest[grouped.numbers], sizes))
        positions = grouped.order[rows]
        in_table = np.argsort(positions, kind="stable")
        place = np.full(len(grouped.order), -1, np.int64)
        place[rows[in_table]] = np.arange(len(rows))
        starts[:] = place[starts]
        self.kept_table = found.table.take(pa.array(positions[in_table])).combine_chunks()
        self.kept_numbers = np.repeat(grouped.numbers, sizes)[rows][in_table]

    @property
    def open_runs(self) -> int:
        return int(self.counts.sum())

    @property
    def kept_events(self) -> int:
        return len(self.kept_numbers)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held that the next event could depend on."""
        return not self.open_runs and not self.kept_events

    def wakes_at(self) -> None:
        """Time alone decides nothing here."""
        return

    def saved(self) -> dict[str, Any]:
        parts: dict[str, Any] = {
            "strings": self.dictionary.strings,
            "nullable": sorted(self.nullable),
            "keys": self.partitions.table,
            "kept_table": self.kept_table,
            "kept_numbers": self.kept_numbers,
            "begins": self.begins,
            "counts": self.counts,
        }
        if self.partial is not None:
            runs = int(self.counts.sum())
            parts["stored_i"], parts["stored_f"] = self.partial.stored_i[:runs], self.partial.stored_f[:runs]
        return {name: part for name, part in parts.items() if part is not None}

    def load(self, parts: SavedParts) -> None:
        self.dictionary = Dictionary(parts.strings("strings"))
        self.nullable = parts.column_names("nullable")
        self.counts = parts.array("counts", None, low=0)
        count = len(self.counts)
        self.begins = parts.array("begins", count, low=0)
        self.partitions.load(parts, "keys", count)
        self.kept_table, kept = parts.table("kept_table"), parts.rows_of("kept_table")
        self.kept_numbers = parts.array("kept_numbers", kept, low=0, high=count)
        if "stored_i" in parts:
            self.partial = self._loaded_partial(parts, kept)
        runs = 0 if self.partial is None else len(parts.array("stored_i", None, None))
        require_runs(self.counts, self.begins, runs, "counts")

    def _loaded_partial(self, parts: SavedParts, kept: int) -> Partial:
        generated = self.program.generated(self.nullable)
        registers = generated.registers
        stored_i = parts.array("stored_i", None, PARTIAL_REGISTERS + registers.integers)
        stored_f = parts.array("stored_f", len(stored_i), max(registers.floats, 1), kind="f")
        require_within(stored_i[:, PARTIAL_START], 0, kept if generated.collects else 1, "stored_i")
        require_within(stored_i[:, PARTIAL_STATES], 1, 2 ** (len(generated.follow) - 1), "stored_i")
        registers.require_values(stored_i, len(self.dictionary.strings), MOST)
        partial = Partial(stored_i.shape[1], stored_f.shape[1])
        partial.stored_i, partial.stored_f = (grown(array, max(len(array), ROOM)) for array in (stored_i, stored_f))
        return partial
