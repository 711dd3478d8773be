"""The backtrack algorithm (SASE+ 2008 §5.2.3): one run at a time, over the whole input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import ROW
from kleene.engine.compiled.arrays.backtrack_counters import (
    BACKTRACK_COUNTERS,
    BACKTRACK_MATCHES,
    BACKTRACK_ROWS,
    BACKTRACK_RUN_LIMIT,
    BACKTRACK_START,
    BACKTRACK_WORK,
)
from kleene.engine.compiled.arrays.own_events import OWN_COLUMNS
from kleene.engine.compiled.arrays.statuses import DONE, FIRST_ERROR, NEEDS_ROOM, OUTPUT_FULL, PAUSED, TOO_MANY_RUNS
from kleene.engine.compiled.batches import grown
from kleene.engine.compiled.buffer import ROOM, Buffer
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.run_matches import ROWS_AT_ONCE
from kleene.engine.compiled.run_piece import RunPiece, too_many_runs
from kleene.engine.matches import FlatMatches

WORK_AT_ONCE = 1 << 26
"""How much a kernel does before it pauses, so that limits can be looked at."""


def backtracked(
    piece: RunPiece, buffer: Buffer, components: int, run_limit: int, budget: Budget
) -> Iterator[tuple[FlatMatches, Array]]:
    """The matches in parts, each with the groups of its matches."""
    integers, floats = buffer.ri.shape[1], buffer.rf.shape[1]
    ri, rf = np.zeros((ROOM, integers), np.int64), np.zeros((ROOM, floats), np.float64)
    ni, nf = np.zeros((2, integers), np.int64), np.zeros((2, floats), np.float64)
    resume, own = np.zeros(ROOM, np.int64), np.zeros((8 * ROOM, OWN_COLUMNS), np.int64)
    st, rows = np.zeros(BACKTRACK_COUNTERS, np.int64), 8 * ROOM
    st[BACKTRACK_START], st[BACKTRACK_RUN_LIMIT], st[BACKTRACK_WORK] = -1, run_limit, WORK_AT_ONCE
    status = PAUSED
    while status != DONE:
        offsets, lengths = np.zeros(rows // 4, np.int64), np.zeros((rows // 4, components), np.int64)
        p, group_of = np.empty(rows, ROW), np.zeros(rows // 4, np.int64)
        with np.errstate(all="ignore"):
            status = piece.kernel.functions["backtrack"](
                st,
                piece.groups,
                piece.bits,
                piece.any_times,
                piece.positions,
                ri,
                rf,
                resume,
                ni,
                nf,
                own,
                offsets,
                lengths,
                p,
                group_of,
                buffer.node,
                *piece.arguments,
            )
        if status <= FIRST_ERROR:
            raise piece.kernel.generated.layout.failure(status)
        if status == TOO_MANY_RUNS:
            raise too_many_runs(piece, max(int(st[BACKTRACK_START]), 0), run_limit)
        count, used = int(st[BACKTRACK_MATCHES]), int(st[BACKTRACK_ROWS])
        budget.reach(int(st[BACKTRACK_START]))
        yield FlatMatches(offsets[: count + 1], lengths[:count], p[:used].copy()), group_of[:count].copy()
        st[BACKTRACK_MATCHES] = st[BACKTRACK_ROWS] = 0
        if status == NEEDS_ROOM:
            budget.hold("the stack of runs", 3 * (ri.nbytes + rf.nbytes + own.nbytes))
            ri, rf, resume = (grown(array, 2 * len(ri)) for array in (ri, rf, resume))
            own = grown(own, 2 * len(own))
        if status == OUTPUT_FULL:
            rows = min(4 * rows, ROWS_AT_ONCE) if rows < ROWS_AT_ONCE else 2 * rows if not count else rows
