"""Ticks that are planted among generated ones, so that queries of RIP have matches."""

from __future__ import annotations

# Uniform prices rarely draw six or thirteen ticks in one exact order: for these queries such ticks are planted.
_ZIGZAG = [10, 20, 30, 25, 15, 28, 40, 30, 18, 25, 35, 20, 12]
PLANTED = {
    "Q1": _ZIGZAG,
    "Q5": _ZIGZAG,
    "Q6": [20, 30, 25, 35, 28, 10],
    "Q9": [60, 100, 140, 100, 60, 100, 140, 100, 60, 100, 140, 100, 60],
    "Q10": [50, 50, 50, 90, 110, 80, 120, 90, 110, 90, 110, 100, 100],
    "Q11": [70, 75, 85, 95, 105, 115],
}
