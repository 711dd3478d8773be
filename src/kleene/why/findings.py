"""What the walks through all partitions have in common: what is asked for, how much may be told, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kleene.why.model import Match, NearMiss, Run


class EnoughError(Exception):
    """As much was looked at as may be."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many runs are followed in all, and how many runs and near misses are told."""

    runs: int
    told: int


@dataclass(slots=True)
class Findings:
    limits: Limits
    chosen: frozenset[int]  # rows of the input whose runs are told
    runs: list[Run] = field(default_factory=list)
    misses: list[NearMiss] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    untold_runs: int = 0
    is_cut: bool = False

    def tell(self, run: Run) -> None:
        if len(self.runs) < self.limits.told:
            self.runs.append(run)
        else:
            self.untold_runs += 1

    def nearest(self) -> Sequence[NearMiss]:
        """The near misses that are told, nearest first."""
        return sorted(self.misses, key=_nearness)[: self.limits.told]

    def notes(self, what: str) -> list[str]:
        """What was left out; `what` is that which was stopped, if it was."""
        found: list[str] = []
        if self.is_cut:
            found.append(f"stopped after {what}: what comes later, matches too, was not looked at")
        if self.untold_runs:
            found.append(
                f"{self.untold_runs:,} more runs have to do with the events that were asked for; raise limit, "
                f"{self.limits.told:,}, to see them"
            )
        if len(self.misses) > self.limits.told:
            found.append(f"{len(self.misses):,} near misses, of which the nearest {self.limits.told:,} are told")
        return found


def _nearness(miss: NearMiss) -> tuple[object, ...]:
    """Those that would have matched first, then those that had bound most, then as they were found."""
    return not miss.would_match, -sum(len(events) for _, events in miss.bound), miss.run
