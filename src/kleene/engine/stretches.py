"""Checks of long columns, stretch by stretch in several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

LEAST_ROWS = 1 << 17
"""Below so many rows, threads take longer to start than they save."""


def holds_in_stretches(check: Callable[[pa.ChunkedArray], bool], column: pa.ChunkedArray, threads: int) -> bool:
    """Whether the check holds for all stretches of the column, each of which has the first row of the next, too."""
    rows = len(column)
    if threads == 1 or rows < LEAST_ROWS:
        return check(column)
    size = -(-rows // threads)
    stretches = [column.slice(begin, size + 1) for begin in range(0, rows, size)]
    with ThreadPoolExecutor(threads, "kleene") as pool:
        return all(pool.map(check, stretches))
