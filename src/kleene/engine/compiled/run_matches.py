"""Matches of runs: read out of the match buffer, or found by going back; and what judges them as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import ROW, as_arguments, chosen_matches
from kleene.engine.compiled.arrays import Counters, statuses
from kleene.engine.compiled.arrays.completions import COMPLETION_GROUP, COMPLETION_NODE, COMPLETION_ROW
from kleene.engine.compiled.arrays.expand_counters import TOTAL_MATCHES, TOTAL_ROWS, TOTALS
from kleene.engine.compiled.arrays.own_events import OWN_COLUMNS
from kleene.engine.compiled.batches import grown
from kleene.engine.compiled.buffer import ROOM, Buffer
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.open_runs import Runs
from kleene.engine.compiled.run_piece import RunPiece, too_many_runs
from kleene.engine.matches import FlatMatches
from kleene.engine.saved_parts import require
from kleene.errors import LimitError

ROWS_AT_ONCE = 1 << 22
"""How many rows of matches are written out at a time."""
WORK_AT_ONCE = 1 << 26
"""How much a kernel does before it pauses, so that limits can be looked at."""
NO_LIMIT = 1 << 62
JUDGED_AT_ONCE = 1 << 14
"""How many matches are judged before limits are looked at."""


class Expansion:
    """Reads matches out of a buffer; those of one event may be `most` at most."""

    def __init__(self, is_merged: bool, components: int, jit: bool, most: int, budget: Budget) -> None:
        self._is_merged, self._components, self._jit = is_merged, components, jit
        self._most, self.budget = most, budget
        self._rows, self._rows_used = np.empty(0, ROW), 0

    def matches(
        self, piece: RunPiece, buffer: Buffer, completions: Array, at_once: int = ROWS_AT_ONCE
    ) -> Iterator[tuple[FlatMatches, Array]]:
        """The matches of the completions, in parts, each with the groups of its matches."""
        loops, done = shared_loops(self._jit), len(completions)
        st, bounds = Counters("expand_counters", most=self._most), np.zeros(self._components, np.int64)
        stack, trail = np.empty(256, np.int64), np.empty(256, np.int64)
        measured = -1  # the completion of which it is known how many matches it stands for
        while st.completion < done:
            room = min(at_once, 4 * done + 1024)
            offsets, lengths = np.zeros(room + 1, np.int64), np.zeros((room, self._components), np.int64)
            origin, p = np.empty(room, np.int64), self._free_rows(2 * len(stack))
            written = np.full(buffer.st.nodes + 1, -1, np.int64)
            while True:
                way, outputs = (stack, trail, bounds), (offsets, lengths, p, origin)
                if self._is_merged:
                    status = loops["expand_merged"](
                        st.array, completions, done, buffer.node, *piece.window_arguments, *way, written, *outputs
                    )
                else:
                    graph = (buffer.node, buffer.edge, buffer.version)
                    status = loops["expand_versions"](st.array, completions, done, *graph, *way, *outputs)
                if status != statuses.NEEDS_ROOM:
                    break
                stack, trail = grown(stack, 2 * len(stack)), grown(trail, 2 * len(trail))
            require(status != statuses.CONTRADICTION, "node" if self._is_merged else "version")
            if status == statuses.TOO_MANY_MATCHES:
                raise self._too_many(piece, int(completions[st.completion, COMPLETION_ROW]))
            is_within = status == statuses.OUTPUT_FULL and st.depth > 0
            if is_within and st.completion != measured and self._most < NO_LIMIT:
                measured = st.completion
                self._check_size(piece, buffer, completions[measured])
            count, rows = st.matches, st.rows
            self._rows_used += rows
            if count:
                groups = completions[origin[:count], COMPLETION_GROUP]
                yield FlatMatches(offsets[: count + 1], lengths[:count], p[:rows]), groups
            st.matches = st.rows = 0

    def _check_size(self, piece: RunPiece, buffer: Buffer, completion: Array) -> None:
        """An error if the matches of one completion are too many, or too large, to be made."""
        totals, row = np.zeros(TOTALS, np.int64), int(completion[COMPLETION_ROW])
        root, stack = int(completion[COMPLETION_NODE]), np.empty(len(piece.grouped) + 1, np.int64)
        measure = shared_loops(self._jit)["measure_merged"]
        status = measure(root, row, self._most, buffer.node, *piece.window_arguments, stack, totals)
        require(status == statuses.DONE, "node")
        if totals[TOTAL_MATCHES] > self._most:
            raise self._too_many(piece, row)
        self.budget.hold("all matches that end at one event", 2 * int(totals[TOTAL_ROWS]) * ROW().itemsize)
        self.budget.hold("all matches that end at one event", 0)

    def _free_rows(self, least: int) -> Array:
        """Room for rows of matches. It is given out from large pieces, since fresh memory is slow."""
        if len(self._rows) - self._rows_used < least:
            size = max(min(4 * len(self._rows), ROWS_AT_ONCE), 2 * least, 4 * ROOM)
            self._rows, self._rows_used = np.empty(size, ROW), 0
        return self._rows[self._rows_used :]

    def _too_many(self, piece: RunPiece, row: int) -> LimitError:
        return LimitError(
            f"one event of the partition {piece.partition_text(row)} completes more than {self._most:,} matches",
            hint="Narrow the query (a strategy such as skip_till_next_match or strict_contiguity, a shorter WITHIN), "
            "raise run_limit, or use Query.compressed, which counts them without making them.",
        )


def backtracked(
    piece: RunPiece, buffer: Buffer, components: int, run_limit: int, budget: Budget
) -> Iterator[tuple[FlatMatches, Array]]:
    """The backtrack algorithm (SASE+ 2008 §5.2.3): one run at a time, over the whole input.

    Gives the matches in parts, each with the groups of its matches.
    """
    runs, new = (Runs.empty(room, piece.kernel.generated.registers) for room in (ROOM, 2))
    resume, own = np.zeros(ROOM, np.int64), np.zeros((8 * ROOM, OWN_COLUMNS), np.int64)
    st = Counters("backtrack_counters", start=-1, run_limit=run_limit, work=WORK_AT_ONCE)
    status, rows = statuses.PAUSED, 8 * ROOM
    while status != statuses.DONE:
        offsets, lengths = np.zeros(rows // 4, np.int64), np.zeros((rows // 4, components), np.int64)
        p, group_of = np.empty(rows, ROW), np.zeros(rows // 4, np.int64)
        arrays = (piece.events, (*runs, resume, *new, own), (offsets, lengths, p, group_of), buffer.node)
        status = piece.kernel.run("backtrack", st.array, *arrays, *piece.arguments)
        if status == statuses.TOO_MANY_RUNS:
            raise too_many_runs(piece, max(st.start, 0), run_limit)
        count, used = st.matches, st.rows
        budget.reach(st.start)
        yield FlatMatches(offsets[: count + 1], lengths[:count], p[:used].copy()), group_of[:count].copy()
        st.matches = st.rows = 0
        if status == statuses.NEEDS_ROOM:
            budget.hold("the stack of runs", 3 * (runs.i.nbytes + runs.f.nbytes + own.nbytes))
            runs, resume, own = runs.grown(2 * len(resume)), grown(resume, 2 * len(resume)), grown(own, 2 * len(own))
        if status == statuses.OUTPUT_FULL:
            rows = min(4 * rows, ROWS_AT_ONCE) if rows < ROWS_AT_ONCE else 2 * rows if not count else rows


def judged(
    piece: RunPiece, found: FlatMatches, group_of: Array, budget: Budget, meter: Meter
) -> tuple[FlatMatches, Array]:
    """The matches that no negation and no HAVING forbids, and their groups."""
    meter.add("RunScan", 0, len(found), 0.0)
    if not piece.kernel.generated.has_accept or not len(found):
        return found, group_of
    started = perf_counter()
    ok = np.zeros(len(found), np.int64)
    for at in range(0, len(found), JUDGED_AT_ONCE):
        budget.check_time()
        part = slice(at, at + JUDGED_AT_ONCE)
        matches = (*as_arguments(found[part]), np.ascontiguousarray(group_of[part]))
        rest = (*piece.index().arguments, piece.any_times, *piece.arguments)
        piece.kernel.run("accept", ok[part], *matches, *rest)  # writes 1 for each match that nothing forbids
    kept = chosen_matches(found, np.flatnonzero(ok))
    meter.add("Judge", len(found), len(kept), perf_counter() - started)
    return kept, group_of[ok == 1]
