"""Non-overlapping matches: which is chosen, and which match each of the others lost against (SEMANTICS §3 Formats)."""

from __future__ import annotations

from collections.abc import Sequence

from kleene.why.partition import Selected


def winners(runs: Sequence[Selected]) -> dict[Selected, Selected]:
    """For each run of one partition that is not given out, the one that was given out in its place.

    >>> winners([((1,), (2,)), ((2,), (3,)), ((4,), (5,))])
    {((2,), (3,)): ((1,), (2,))}
    """
    lost: dict[Selected, Selected] = {}
    given: Selected | None = None
    for run in sorted(runs, key=_preference):
        if given is None or run[0][0] > given[-1][-1]:
            given = run
        else:
            lost[run] = given
    return lost


def _preference(run: Selected) -> tuple[object, ...]:
    """By the last event; of those that end there: began last, fewer events, smallest positions, longer earlier one."""
    positions = tuple(event for part in run for event in part)
    return positions[-1], -positions[0], len(positions), positions, tuple(-len(part) for part in run)
