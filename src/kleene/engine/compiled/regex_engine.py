"""The compiled engine for the regular-expression operator: events in, output rows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.positions import positions_of
from kleene.engine.budget import Budget, too_many_partial_matches
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
from kleene.engine.compiled.batches import Grouped, arguments, group, grown, nullable_names
from kleene.engine.compiled.columns import Array, Dictionary
from kleene.engine.compiled.kept import KeptEvents, PartitionStates
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.open_runs import groups_of, require_run_counts, sizes_of, stored_runs
from kleene.engine.compiled.programs import Compiled, Kernel
from kleene.engine.compiled.regex_code import GeneratedRegex, generate_regex
from kleene.engine.compiled.registers import forget_strings
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import MOST, SavedParts, require_within

ROOM = 256
WORK_AT_ONCE = 1 << 26
"""How much the kernel does before it pauses, so that limits can be looked at."""


class RegexEngine(Compiled[GeneratedRegex]):
    def __init__(self, query: AnalyzedRowPattern, jit: bool = True, run_limit: int = 1_000_000) -> None:
        automaton = positions_of(query)
        super().__init__(lambda nullable: generate_regex(query, automaton, nullable), jit, automaton)
        self.query, self.run_limit = query, run_limit

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> RegexProgress:
        return RegexProgress(self, Budget() if budget is None else budget)


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
    """The matches in a table; their registers are in `partial`."""

    table: pa.Table
    grouped: Grouped
    groups: Array
    kernel: Kernel[GeneratedRegex]
    dictionary: Dictionary
    partial: Partial
    matches: int
    is_settled: bool = True

    def rows(self) -> Array:
        """For each match: its group, its first row, and the row that completes it."""
        return self.partial.found[: self.matches]


class RegexProgress:
    """How far a stream of events has come. It keeps events only if an output collects them."""

    def __init__(self, engine: RegexEngine, budget: Budget) -> None:
        self.engine, self.budget = engine, budget
        self.dictionary = Dictionary()
        self.nullable: frozenset[str] = frozenset()
        self.partial: Partial | None = None
        self.kept = KeptEvents()
        self.partitions = PartitionStates(engine.query.partition_by, True, counts=0)  # of open partial matches

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[FoundRegex]:
        """The matches that these events complete, all at once."""
        old = len(self.kept)
        codes = self.partitions.numbers(events, is_whole=is_last and self.kept.table is None)
        table, codes = self.kept.in_front_of(events, codes)
        grouped = group(codes, max(len(self.partitions), 1), self.engine.jit)
        self.nullable |= nullable_names(table)
        groups = groups_of(grouped, old, self.partitions["counts"])
        if self.partial is not None and old:
            places = np.empty(table.num_rows, np.int64)
            places[grouped.order] = np.arange(len(grouped.order))
            starts = self.partial.stored_i[: self.runs, PARTIAL_START]
            starts[:] = places[starts]
        found = self._found(table, grouped, groups, is_last)
        if not is_last:
            self._retain(found)
        yield found

    def _found(self, table: pa.Table, grouped: Grouped, groups: Array, is_last: bool) -> FoundRegex:
        query, run_limit, budget = self.engine.query, self.engine.run_limit, self.budget
        assert query.schema is not None
        kernel = self.engine.kernel(self.nullable, budget)
        generated, types = kernel.generated, dict(query.schema.attributes)
        given = arguments(generated.layout, table, query.schema, types, grouped, self.dictionary)
        bits, partial = np.zeros(len(grouped), np.int64), self.partial
        if partial is None:
            partial = Partial(PARTIAL_REGISTERS + generated.registers.integers, max(generated.registers.floats, 1))
        st = np.zeros(REGEX_COUNTERS, np.int64)
        st[REGEX_RUN_LIMIT], st[REGEX_KEEPS], st[REGEX_WORK] = run_limit, 0 if is_last else 1, WORK_AT_ONCE
        automaton = (generated.follow, generated.of_variable, generated.accepting)
        with np.errstate(all="ignore"):
            kernel.functions["classify"](bits, 0, len(bits), *given)
            while True:
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
        return FoundRegex(table, grouped, groups, kernel, self.dictionary, partial, int(st[REGEX_MATCHES]))

    @property
    def runs(self) -> int:
        """How many partial matches are open."""
        return int(self.partitions["counts"].sum())

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, found: FoundRegex) -> None:
        partial, counts = found.partial, self.partitions["counts"]
        self.partial = fresh = Partial(partial.integers, partial.floats)
        arrays = ((partial.kept_i, partial.stored_i), (partial.kept_f, partial.stored_f))
        self.partitions["counts"], (fresh.stored_i, fresh.stored_f) = stored_runs(
            found.grouped, found.groups, counts, arrays, ROOM
        )
        registers = found.kernel.generated.registers
        self.dictionary = forget_strings(self.dictionary, registers, fresh.stored_i, self.runs)
        self._keep_events(found, fresh.stored_i[: self.runs, PARTIAL_START])
        used = self.partitions["counts"] > 0
        used[self.kept.numbers] = True
        if not used.all():
            self.kept.numbers = self.partitions.keep(used)[self.kept.numbers]

    def _keep_events(self, found: FoundRegex, starts: Array) -> None:
        """For Collect: the events since the oldest partial match of each partition began."""
        if not found.kernel.generated.collects:
            starts[:] = 0
            return
        grouped, counts = found.grouped, self.partitions["counts"]
        oldest = np.full(len(counts), len(grouped.order), np.int64)
        np.minimum.at(oldest, np.repeat(np.arange(len(counts)), counts), starts)
        since = np.repeat(oldest[grouped.numbers], sizes_of(found.groups))
        _, places = self.kept.keep_grouped(found.table, grouped, np.flatnonzero(np.arange(len(grouped)) >= since))
        starts[:] = places[starts]

    # --- between pieces ------------------------------------------------------------------------------------------

    def held(self) -> Held:
        """Time alone decides nothing here."""
        size = self.kept.bytes + (0 if self.partial is None else self.partial.bytes)
        return Held(self.runs, len(self.kept), size, None, not self.runs and not len(self.kept))

    def saved(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"strings": self.dictionary.strings, "nullable": sorted(self.nullable)}
        parts |= self.kept.saved() | self.partitions.saved()
        if self.partial is not None:
            parts["stored_i"], parts["stored_f"] = (
                array[: self.runs] for array in (self.partial.stored_i, self.partial.stored_f)
            )
        return parts

    def load(self, parts: SavedParts) -> None:
        self.dictionary = Dictionary(parts.strings("strings"))
        self.nullable = parts.column_names("nullable")
        self.partitions.load(parts)
        self.kept.load(parts, len(self.partitions))
        if "stored_i" in parts:
            self.partial = self._loaded_partial(parts)
        runs = 0 if self.partial is None else len(parts.array("stored_i", None, None))
        require_run_counts(self.partitions["counts"], runs, "counts")

    def _loaded_partial(self, parts: SavedParts) -> Partial:
        generated = self.engine.generated(self.nullable)
        registers = generated.registers
        stored_i = parts.array("stored_i", None, PARTIAL_REGISTERS + registers.integers)
        stored_f = parts.array("stored_f", len(stored_i), max(registers.floats, 1), kind="f")
        require_within(stored_i[:, PARTIAL_START], 0, len(self.kept) if generated.collects else 1, "stored_i")
        require_within(stored_i[:, PARTIAL_STATES], 1, 2 ** (len(generated.follow) - 1), "stored_i")
        registers.require_values(stored_i, len(self.dictionary.strings), MOST)
        partial = Partial(stored_i.shape[1], stored_f.shape[1])
        partial.stored_i, partial.stored_f = (grown(array, max(len(array), ROOM)) for array in (stored_i, stored_f))
        return partial
