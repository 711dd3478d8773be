"""What went through each operator, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Measured:
    taken: int = 0
    given: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Meter:
    """Counts and times by the names of operators; `peaks` are the most there was at once of something."""

    operators: dict[str, Measured] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, taken: int, given: int, seconds: float) -> None:
        found = self.operators.setdefault(name, Measured())
        found.taken += taken
        found.given += given
        found.seconds += seconds

    def seconds(self, name: str) -> float:
        return self.operators[name].seconds if name in self.operators else 0.0

    def most(self, name: str, count: int) -> None:
        self.peaks[name] = max(self.peaks.get(name, 0), count)
