"""One piece of the input behind the events kept from before, as the kernels of runs see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.batches import Arguments, Grouped
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
    times: Array
    float_times: Array
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
    def any_times(self) -> Array:
        return self.float_times if len(self.float_times) else self.times

    @property
    def events(self) -> tuple[Array, ...]:
        """The events as the loops of runs take them."""
        return self.groups, self.bits, self.any_times, self.positions

    @property
    def window_arguments(self) -> tuple[Any]:
        """The window with what it measures: one argument, `window`, of the shared loops."""
        window = self.window
        return ((window.kind, window.size, window.float_size, self.times, self.float_times, self.positions),)

    def index(self) -> NegationIndex:
        """The events that the judged negations may be about."""
        if self._index is None:
            first_bit = 2 * self.components
            rows = [np.flatnonzero((self.bits >> (first_bit + n)) & 1) for n in self.kernel.generated.judges]
            groups = np.repeat(np.arange(len(self.groups)), self.grouped.sizes)
            self._index = negation_index(rows, [groups[own] for own in rows], self.any_times, self.window.in_time)
        return self._index

    def partition_text(self, row: int) -> str:
        """The partition of a row, for people."""
        return partition_text(self.table, self.partition_by, int(self.grouped.order[row]))


def too_many_runs(piece: RunPiece, row: int, run_limit: int) -> LimitError:
    return LimitError(
        f"the partition {piece.partition_text(row)} has more than {run_limit:,} partial matches at once",
        hint="Narrow the query (a shorter WITHIN, a stricter strategy, more predicates), or raise run_limit.",
    )
