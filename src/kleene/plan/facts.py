"""What rewrites go by besides the plan itself."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.options.hints import NO_HINTS, Hints
from kleene.options.statistics import UNKNOWN, Statistics


@dataclass(frozen=True, slots=True)
class Facts:
    query: AnalyzedQuery
    hints: Hints = NO_HINTS
    statistics: Statistics = UNKNOWN
