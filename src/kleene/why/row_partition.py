"""The rows of one partition of a row pattern, as they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.events import times_of, window_size
from kleene.ir.evaluate import PlainValue
from kleene.ir.options import WindowUnit
from kleene.why.model import Bound, Event


@dataclass(frozen=True, slots=True)
class RowPartition:
    """`rows` are those in the input; `times` are texts; inside, a row is known by its number here."""

    query: AnalyzedRowPattern
    columns: Mapping[str, Sequence[PlainValue]]
    rows: Sequence[int]
    times: Sequence[str]
    key: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def event(self, number: int) -> Event:
        return Event(self.rows[number], None, self.times[number])

    def bound(self, start: int, variables: Sequence[str]) -> Bound:
        """The rows from the start on by variable; those of one variable that follow each other are together."""
        named = zip(variables, map(self.event, range(start, start + len(variables))), strict=True)
        parts: Iterable[Any] = groupby(named, key=lambda pair: pair[0])
        return tuple((variable, tuple(event for _, event in part)) for variable, part in parts)

    def is_in_window(self, start: int, row: int) -> bool:
        window = self.query.definition.window
        if window is None:
            return True
        if window.unit is WindowUnit.EVENTS:
            return row - start < window.size
        assert self.query.measured_column is not None
        values = self.columns[self.query.measured_column]
        first, last = times_of([values[start], values[row]], self.query.time_type)
        if first is None or last is None:
            return False
        return bool(abs(last - first) < window_size(window, self.query.time_type))
