"""One piece of the input behind the events kept from before, as the kernels of runs see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.batches import EMPTY, EMPTY_FLOAT, Arguments, Grouped
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.kept import partition_text
from kleene.engine.compiled.kernel_window import KernelWindow
from kleene.engine.compiled.negation_index import NegationIndex, negation_index
from kleene.engine.compiled.programs import Kernel
from kleene.engine.compiled.sase import Generated
from kleene.errors import LimitError


@dataclass(slots=True)
class RunPiece:
    table: pa.Table
    grouped: Grouped
    any_times: Array
    positions: Array  # the place of each event in its partition, since the beginning of the stream
    kernel: Kernel[Generated]
    arguments: Arguments
    bits: Array
    groups: Array
    latest: Any  # the time that the stream has come to
    window: KernelWindow
    components: int
    partition_by: tuple[str, ...]
    _index: NegationIndex | None = None

    @property
    def events(self) -> tuple[Array, ...]:
        """The events as the loops of runs take them."""
        return self.groups, self.bits, self.any_times, self.positions

    @property
    def window_arguments(self) -> tuple[Any]:
        """The window with what it measures: one argument, `window`, of the shared loops."""
        window, is_float = self.window, self.any_times.dtype == np.float64
        times = (EMPTY, self.any_times) if is_float else (self.any_times, EMPTY_FLOAT)
        return ((window.kind, window.size, window.float_size, *times, self.positions),)

    def index(self) -> NegationIndex:
        """The events that the judged negations may be about."""
        if self._index is None:
            first_bit = 2 * self.components
            rows = [np.flatnonzero((self.bits >> (first_bit + n)) & 1) for n in self.kernel.generated.judges]
            groups = np.repeat(np.arange(len(self.groups)), self.grouped.sizes)
            keys, jit = [groups[own] for own in rows], self.kernel.jit
            self._index = negation_index(rows, keys, self.any_times, self.window.in_time, jit)
        return self._index

    def partition_text(self, row: int) -> str:
        """The partition of a row, for people."""
        return partition_text(self.table, self.partition_by, int(self.grouped.order[row]))


def too_many_runs(piece: RunPiece, row: int, run_limit: int) -> LimitError:
    return LimitError(
        f"the partition {piece.partition_text(row)} has more than {run_limit:,} partial matches at once",
        hint="Narrow the query (a shorter WITHIN, a stricter strategy, more predicates), or raise run_limit.",
    )
