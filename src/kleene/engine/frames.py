"""The frames of a window: up to which row the match of each row may see."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import FRAME_END_HINT, AnalyzedFrame, wrong_frame_end
from kleene.engine.matches import Array
from kleene.errors import ExecutionError
from kleene.source import SourceText

_FAR = 1 << 40
"""Beyond all rows."""


def frame_ends(frame: AnalyzedFrame, table: pa.Table, order: Array, ends: Array, source: SourceText) -> Array:
    """Of each row of the partitions, which stand one behind the other, the row behind the last that it may see.

    `order` are the places of the rows in the table, `ends` the row behind the partition of each. An error if a frame
    has no end, or a negative one.
    """
    if not frame.is_bounded:
        return ends
    further: Array | int
    if frame.column is None:
        assert frame.rows is not None
        further = min(frame.rows, _FAR)
    else:
        column = table.column(frame.column)
        _check(column, frame, source)
        values = column.cast(pa.int64()).to_numpy()
        further = np.minimum(values[order], _FAR)
    return np.asarray(np.minimum(np.arange(1, len(order) + 1) + further, ends))


def _check(column: pa.ChunkedArray, frame: AnalyzedFrame, source: SourceText) -> None:
    least = pc.min(column).as_py()
    if column.null_count or (least is not None and least < 0):
        wrong = wrong_frame_end(None if column.null_count else least)
        raise ExecutionError(wrong, source.locate(frame.span), FRAME_END_HINT)
