"""The runs of partitions as arrays of a snapshot, and back: nothing is believed that does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kleene.engine.saved_parts import MOST, SavedParts, require
from kleene.engine.steps.conditions import Bound
from kleene.engine.steps.runs import Partition, Run

_COMPLETE, _TOLD, _SHADOW = -1, -2, -3
"""In the place of a state: a match that waits, a timeout that was given out; from _SHADOW down, a shadow's state."""
_PARTITION, _STATE, _PLACE, _LENGTH = range(4)


def saved_partitions(partitions: Sequence[Partition]) -> dict[str, Any]:
    """A row for each run, waiting match, timeout or shadow, and a row for each event that it has bound."""
    runs: list[tuple[int, int, int, int]] = []
    bound: list[tuple[int, int]] = []
    for number, partition in enumerate(partitions):
        own = [(run.state, run.place, run.bound) for run in partition.runs]
        own += [(_COMPLETE, 0, match) for match in partition.complete]
        own += [(_TOLD, 0, told) for told in sorted(partition.told)]
        own += [(_SHADOW - run.state, run.place, run.bound) for run in partition.shadows]
        for state, place, events in own:
            runs.append((number, state, place, len(events)))
            bound += events
    return {
        "steps_runs": np.array(runs, np.int64).reshape(-1, 4),
        "steps_bound": np.array(bound, np.int64).reshape(-1, 2),
        "steps_counts": np.array([partition.count for partition in partitions], np.int64),
    }


def loaded_partitions(parts: SavedParts, states: int, steps: int, rows: int, times_out: bool) -> list[Partition]:
    """The partitions; states, steps and rows are numbers below these. Without timeouts, none has been told or waits."""
    counts = parts.array("steps_counts", None, low=0)
    runs = parts.array("steps_runs", None, 4, low=_SHADOW - (states - 2) if times_out else _COMPLETE)
    bound = parts.array("steps_bound", None, 2, low=0)
    require(bool((runs[:, _PARTITION] >= 0).all() and (runs[:, _PARTITION] < len(counts)).all()), "steps_runs")
    require(bool((runs[:, _STATE] < states - 1).all() and (runs[:, _PLACE] >= 0).all()), "steps_runs")
    require(bool((runs[:, _LENGTH] > 0).all() and (runs[:, _LENGTH] < MOST // 4).all()), "steps_runs")
    require(sum(runs[:, _LENGTH].tolist()) == len(bound), "steps_bound")
    require(bool((bound[:, 0] < steps).all() and (bound[:, 1] < rows).all()), "steps_bound")
    partitions = [Partition(count=count) for count in counts.tolist()]
    at = 0
    for number, state, place, length in runs.tolist():
        own: Bound = tuple((step, row) for step, row in bound[at : at + length].tolist())
        require(all(one[1] < other[1] for one, other in pairwise(own)), "steps_bound")
        at += length
        if state == _COMPLETE:
            partitions[number].complete.append(own)
        elif state == _TOLD:
            partitions[number].told.add(own)
        elif state <= _SHADOW:
            partitions[number].shadows.append(Run(_SHADOW - state, own, place))
        else:
            partitions[number].runs.append(Run(state, own, place))
    require(all(not partition.is_empty for partition in partitions), "steps_counts")
    return partitions
