"""The compiled engine for the regular-expression operator: events in, output rows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.positions import positions_of
from kleene.engine.budget import Budget, too_many_partial_matches
from kleene.engine.compiled.arrays import Counters
from kleene.engine.compiled.arrays.groups import GROUP_STORED_COUNT
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_FAILED, PARTIAL_START, PARTIAL_STATES
from kleene.engine.compiled.arrays.regex_blocks import BLOCK_COLUMNS
from kleene.engine.compiled.arrays.regex_matches import REGEX_MATCH_COLUMNS
from kleene.engine.compiled.arrays.statuses import NEEDS_ROOM, PAUSED, TOO_MANY_RUNS
from kleene.engine.compiled.batches import Grouped, arguments, group, grown
from kleene.engine.compiled.columns import Array, Dictionary
from kleene.engine.compiled.kept import KeepingProgress, Partitions, places_of
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.open_runs import Runs, groups_of, require_run_counts, stored_runs
from kleene.engine.compiled.programs import Compiled, Kernel
from kleene.engine.compiled.regex_code import MANY, GeneratedRegex, generate_regex
from kleene.engine.compiled.regex_starts import Starts, starts_of
from kleene.engine.compiled.registers import Registers, forget_strings
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import MOST, SavedParts, require_within

ROOM = 256
MOST_HALVES = 64
WORK_AT_ONCE = 1 << 26
"""How much the kernel does before it pauses, so that limits can be looked at."""
ENOUGH_TRIES = 1 << 26
"""After so many, which take about as long as the code for blocks takes to make, they may go on for much longer."""


class RegexEngine(Compiled[GeneratedRegex]):
    """It begins with code that tries one start after the other, and makes code for blocks of them once they are many.

    What runs as plain Python takes no time to make, and is for blocks from the beginning.
    """

    def __init__(self, query: AnalyzedRowPattern, jit: bool = True, run_limit: int = 1_000_000) -> None:
        automaton, has_blocks = positions_of(query), starts_of(query) is Starts.IN_BLOCKS
        plainly = has_blocks and not jit
        super().__init__(lambda nullable: generate_regex(query, automaton, nullable, plainly, not jit), jit, automaton)
        self.query, self.run_limit = query, run_limit
        self._in_blocks = None
        if has_blocks and jit:
            self._in_blocks = Compiled(lambda nullable: generate_regex(query, automaton, nullable, True), jit)
        self._tries, self._events = 0, 0

    def count(self, tries: int, events: int) -> None:
        """Takes note of how often events were tried on partial matches."""
        self._tries, self._events = self._tries + tries, self._events + events

    def fitting_kernel(self, nullable: frozenset[str], budget: Budget) -> Kernel[GeneratedRegex]:
        """The one for blocks, where the starts so far were many for so long that making it pays."""
        is_many = self._tries > ENOUGH_TRIES and self._tries > MANY * self._events
        if self._in_blocks is not None and is_many:
            self._in_blocks.tier = self.tier
            return self._in_blocks.kernel(nullable, budget)
        return self.kernel(nullable, budget)

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> RegexProgress:
        return RegexProgress(self, budget, meter)


class Partial:
    """Arrays of partial matches, of blocks of them, and of matches with their registers."""

    def __init__(self, registers: Registers) -> None:
        self.stored, self.kept, self.open, self.low, self.high, matched = (
            Runs.empty(ROOM, registers) for _ in range(6)
        )
        self.shared = Runs.empty(2, registers)
        self.oi, self.of = matched
        self.found = np.zeros((ROOM, REGEX_MATCH_COLUMNS), np.int64)
        self.blocks = np.zeros((2, ROOM, BLOCK_COLUMNS), np.int64)
        self.ends = np.zeros(MOST_HALVES, np.int64)

    @property
    def arrays(self) -> tuple[tuple[Array, ...], tuple[Array, ...], Array, Array, tuple[Array, ...]]:
        """All of them, as the kernel takes them."""
        partial = (*self.stored, *self.kept, *self.open, *self.shared)
        return partial, (*self.low, *self.high), self.blocks, self.ends, (self.found, self.oi, self.of)

    @property
    def bytes(self) -> int:
        runs, zones, blocks, _, matched = self.arrays
        return sum(array.nbytes for array in (*runs, *zones, blocks, *matched))

    def grow(self, matches: int, partial: int, kept: int) -> None:
        if 2 * matches + 2 > len(self.found):
            length = 2 * len(self.found)
            self.found, self.oi, self.of = grown(self.found, length), grown(self.oi, length), grown(self.of, length)
        if 2 * partial + 4 > len(self.open.i):
            length = 2 * partial + 2 * len(self.open.i)
            self.open, self.low, self.high = self.open.grown(length), self.low.grown(length), self.high.grown(length)
            self.blocks = np.stack([grown(side, length) for side in self.blocks])
        if 2 * (kept + partial) > len(self.kept.i):
            self.kept = self.kept.grown(2 * (kept + partial) + len(self.kept.i))


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


class RegexProgress(KeepingProgress):
    """How far a stream of events has come. It keeps events only if an output collects them."""

    def __init__(self, engine: RegexEngine, budget: Budget | None, meter: Meter | None) -> None:
        # Of each partition: how many partial matches are open.
        super().__init__(Partitions(engine.query.partition_by, True, counts=0), budget, meter)
        self.engine, self.dictionary = engine, Dictionary()
        self.partial: Partial | None = None

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[FoundRegex]:
        """The matches that these events complete, all at once."""
        old = len(self.kept)
        table, codes = self.behind_kept(events, is_last)
        grouped = group(codes, max(len(self.partitions), 1), self.engine.jit)
        groups = groups_of(grouped, old, self.partitions["counts"])
        if self.partial is not None and old:
            starts = self.partial.stored.i[: self.runs, PARTIAL_START]
            starts[:] = places_of(grouped.order, table.num_rows)[starts]
        found = self._found(table, grouped, groups, is_last)
        if not is_last:
            self._retain(found)
        yield found

    def _found(self, table: pa.Table, grouped: Grouped, groups: Array, is_last: bool) -> FoundRegex:
        query, run_limit, budget = self.engine.query, self.engine.run_limit, self.budget
        kernel = self.engine.fitting_kernel(self.nullable, budget)
        generated = kernel.generated
        given = arguments(generated.layout, table, query.schema, grouped, self.dictionary)
        bits = np.zeros(len(grouped), np.int64)
        partial = Partial(generated.registers) if self.partial is None else self.partial
        st = Counters("regex_counters", run_limit=run_limit, keeps=int(not is_last), work=WORK_AT_ONCE)
        automaton = (generated.follow, generated.of_variable, generated.accepting)
        kernel.run("classify", bits, 0, len(bits), *given)
        while True:
            before = st.row
            status = kernel.run("match_events", st.array, groups, bits, automaton, *partial.arrays, *given)
            self.engine.count(WORK_AT_ONCE - st.work, st.row - before)
            st.work = WORK_AT_ONCE
            budget.reach(st.row)
            if status == PAUSED:
                kernel = self.engine.fitting_kernel(self.nullable, budget)
                continue
            if status != NEEDS_ROOM:
                break
            budget.hold("its partial matches", 3 * partial.bytes)
            stored = int(groups[st.group, GROUP_STORED_COUNT]) if st.group < len(groups) else 0
            partial.grow(st.matches, max(st.partial, stored), st.kept)
        if status == TOO_MANY_RUNS:
            position = int(grouped.order[st.row])
            key = {name: table.column(name)[position].as_py() for name in query.partition_by}
            raise too_many_partial_matches(run_limit, key)
        budget.count(st.matches)
        return FoundRegex(table, grouped, groups, kernel, self.dictionary, partial, st.matches)

    @property
    def runs(self) -> int:
        """How many partial matches are open."""
        return int(self.partitions["counts"].sum())

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, found: FoundRegex) -> None:
        partial, counts = found.partial, self.partitions["counts"]
        registers = found.kernel.generated.registers
        self.partial = fresh = Partial(registers)
        self.partitions["counts"], fresh.stored = stored_runs(
            found.grouped, found.groups, counts, partial.kept, partial.stored, ROOM
        )
        self.dictionary = forget_strings(self.dictionary, registers, fresh.stored.i, self.runs)
        self._keep_events(found, fresh.stored.i[: self.runs, PARTIAL_START])
        self.forget_partitions(self.partitions["counts"] > 0)

    def _keep_events(self, found: FoundRegex, starts: Array) -> None:
        """For Collect: the events since the oldest partial match of each partition began."""
        if not found.kernel.generated.collects:
            starts[:] = 0
            return
        grouped, counts = found.grouped, self.partitions["counts"]
        oldest = np.full(len(counts), len(grouped.order), np.int64)
        np.minimum.at(oldest, np.repeat(np.arange(len(counts)), counts), starts)
        since = np.repeat(oldest[grouped.numbers], grouped.sizes)
        _, places = self.kept.keep_grouped(found.table, grouped, np.flatnonzero(np.arange(len(grouped)) >= since))
        starts[:] = places[starts]

    # --- between pieces ------------------------------------------------------------------------------------------

    def held(self) -> Held:
        """Time alone decides nothing here."""
        return self.holding(self.runs, 0 if self.partial is None else self.partial.bytes, None)

    def saved(self) -> dict[str, Any]:
        parts = {"strings": self.dictionary.strings, **super().saved()}
        return parts if self.partial is None else parts | self.partial.stored.saved(self.runs)

    def load(self, parts: SavedParts) -> None:
        self.dictionary = Dictionary(parts.strings("strings"))
        super().load(parts)
        if "stored_i" in parts:
            self.partial = self._loaded_partial(parts)
        runs = 0 if self.partial is None else len(parts.array("stored_i", None, None))
        require_run_counts(self.partitions["counts"], runs, "counts")

    def _loaded_partial(self, parts: SavedParts) -> Partial:
        generated = self.engine.generated(self.nullable)
        stored, partial = Runs.load(parts, generated.registers), Partial(generated.registers)
        require_within(stored.i[:, PARTIAL_START], 0, len(self.kept) if generated.collects else 1, "stored_i")
        require_within(stored.i[:, PARTIAL_STATES], 1, 2 ** (len(generated.follow) - 1), "stored_i")
        require_within(stored.i[:, PARTIAL_FAILED], 0, generated.sums + 1, "stored_i")
        generated.registers.require_values(stored.i, len(self.dictionary.strings), MOST)
        partial.stored = stored.grown(max(len(stored.i), ROOM))
        return partial
