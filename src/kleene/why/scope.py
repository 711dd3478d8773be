"""Which partitions are looked at, and how much of each: those that are asked for, or a sample; bounded, and told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from kleene.ir.options import Window, WindowUnit


@dataclass(frozen=True, slots=True)
class Looked:
    """The places of the events of each partition that is looked at, and what was left out, in words."""

    partitions: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def look_at(
    partitions: Sequence[Sequence[int]],
    chosen: frozenset[int],
    is_asked: bool,
    max_events: int,
    reach: Callable[[Sequence[int], int, int], tuple[int, int]],
) -> Looked:
    """The partitions with chosen events, or, where none is asked for, all of them; no more events than allowed.

    `reach` says, for a partition and two numbers of events in it, from where to where matches with events between
    them can go.
    """
    asked = [part for part in partitions if not chosen.isdisjoint(part)] if is_asked else list(partitions)
    notes: list[str] = []
    if is_asked and len(asked) < len(partitions):
        notes.append(
            f"looked at {len(asked):,} of {len(partitions):,} partitions: those of the events that were asked for"
        )
    total = sum(map(len, asked))
    if total <= max_events:
        return Looked(tuple(map(tuple, asked)), tuple(notes))
    order = list(asked)
    if not is_asked:
        Random(0).shuffle(order)  # always the same sample, so that an answer can be asked for again
    left, kept = max_events, dict[int, tuple[int, ...]]()
    for part in order:
        is_too_large = not is_asked and bool(kept) and len(part) > left  # a sample is of whole partitions
        if left > 0 and not is_too_large:
            kept[part[0]] = _stretch(part, chosen, left, reach)
            left -= len(kept[part[0]])
    looked = sum(map(len, kept.values()))
    what = "the partitions that were asked for" if is_asked else "all events"
    notes.append(
        f"looked at {looked:,} of {total:,} events, in {len(kept):,} of {len(asked):,} partitions: {what} are more "
        f"than max_events, {max_events:,}"
    )
    if any(len(kept[part[0]]) < len(part) for part in asked if part[0] in kept):
        notes.append("a partition was cut: matches that reach beyond the cut are not seen, and negations end there")
    return Looked(tuple(kept[part[0]] for part in asked if part[0] in kept), tuple(notes))


def _stretch(
    part: Sequence[int], chosen: frozenset[int], most: int, reach: Callable[[Sequence[int], int, int], tuple[int, int]]
) -> tuple[int, ...]:
    """At most so many events of the partition that follow each other, with the chosen ones and what they can reach."""
    if len(part) <= most:
        return tuple(part)
    wanted = [number for number, place in enumerate(part) if place in chosen]
    if not wanted:
        return tuple(part[:most])
    begin, end = reach(part, wanted[0], wanted[-1])
    spare = max(0, most - (wanted[-1] + 1 - wanted[0])) // 2
    begin = max(begin, wanted[0] - spare)
    return tuple(part[begin : min(end, begin + most)])


def window_reach(
    window: Window | None, size: Any, times: Sequence[Any]
) -> Callable[[Sequence[int], int, int], tuple[int, int]]:
    """How far matches and their negations go, by a window of this size in units of the times."""

    def reach(part: Sequence[int], first: int, last: int) -> tuple[int, int]:
        if window is None:
            return 0, len(part)
        if window.unit is WindowUnit.EVENTS:
            return max(0, first - int(size)), min(len(part), last + int(size) + 1)
        begin, end = first, last
        while begin > 0 and times[part[first]] - times[part[begin - 1]] <= 2 * size:
            begin -= 1
        while end < len(part) and times[part[end]] - times[part[last]] <= 2 * size:
            end += 1
        return begin, end

    return reach
