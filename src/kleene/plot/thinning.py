"""What is drawn, and what is not: keys, matches and points are bounded, and what is left out is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.errors import SchemaError
from kleene.plot.seen import NO_KEY, Array, Seen
from kleene.why.question import is_key, no_such_key, read_question

MOST_LANES = 36
"""Lanes of matches in a picture, over all keys."""
MOST_DRAWN = 600
"""Matches in a picture, over all keys; where there are more, some of them, evenly spread."""
MOST_MARKS = 3_000
"""Marks of selected events in a picture, over all keys."""
MOST_POINTS = 1_500
"""Points of a key that no match has; where there are more, the lowest and the highest of each stretch of time."""


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """The matches of a key, each with the lane that it is drawn in."""

    matches: Array
    lane: Array
    count: int
    overlapping: int  # matches that no lane was left for
    skipped: int  # matches that were not looked at, since there are too many


def chosen_keys(seen: Seen, keys: object, limit: int) -> tuple[list[int], str | None]:
    """The keys that are drawn, and what to say of those that are not."""
    if keys is not None:
        return _asked_keys(seen, keys, limit)
    total = len(seen.keys)
    by_key = np.bincount(seen.key_of_match[seen.key_of_match != NO_KEY], minlength=total)
    if total <= limit:
        return list(range(total)), None
    order = np.lexsort((np.arange(total), -by_key))[:limit]
    matched = int((by_key > 0).sum())
    how = "those with most matches" if matched else "the first"
    return sorted(order.tolist()), f"{limit:,} of {total:,} keys, {how}"


def _asked_keys(seen: Seen, keys: object, limit: int) -> tuple[list[int], str | None]:
    question = read_question(None, keys, seen.keys.names)
    found: list[int] = []
    for key in question.keys or ():
        places = seen.keys.first_place.tolist()
        own = [number for number, place in enumerate(places) if is_key(seen.table, place, key)]
        if not own:
            raise no_such_key(key, [seen.keys.text(seen.table, number) for number in range(min(len(places), 11))])
        found += own
    distinct = list(dict.fromkeys(found))
    if len(distinct) <= limit:
        return distinct, None
    return distinct[:limit], f"{limit:,} of the {len(distinct):,} keys that were asked for"


def spread(numbers: Array, most: int) -> Array:
    """So many of the numbers at most, evenly spread."""
    if len(numbers) <= most:
        return numbers
    return numbers[np.linspace(0, len(numbers) - 1, most).astype(np.int64)]


def drawn_matches(seen: Seen, key: int, share: int) -> tuple[Array, int]:
    """Matches of the key that are drawn, where `share` keys share the picture, and how many are not."""
    own = np.flatnonzero(seen.key_of_match == key)
    shown = spread(own, max(MOST_DRAWN // share, 20))
    marks = np.cumsum(seen.matches.lengths[shown])
    shown = shown[: max(int(np.searchsorted(marks, max(MOST_MARKS // share, 100), side="right")), 1)]
    return shown, len(own) - len(shown)


def lanes_of(seen: Seen, key: int, most: int, share: int) -> Lanes:
    """Matches of the key in as few lanes as they need, so that none covers another; the first so many lanes."""
    own, skipped = drawn_matches(seen, key, share)
    starts, ends = seen.matches.first[own].tolist(), seen.matches.last[own].tolist()
    free: list[int] = []  # the place behind the last match of each lane
    kept, lane = [], []
    for number, start, end in zip(own.tolist(), starts, ends, strict=True):
        at = next((at for at, place in enumerate(free) if place < start), len(free))
        if at == most:
            continue
        if at == len(free):
            free.append(end)
        free[at] = end
        kept.append(number)
        lane.append(at)
    return Lanes(np.array(kept, np.int64), np.array(lane, np.int64), len(free), len(own) - len(kept), skipped)


def thinned(times: Array, values: Array | None, kept: Array, most: int = MOST_POINTS) -> Array:
    """Which of the points are drawn: those to keep, and of each stretch of time the lowest and the highest other.

    Without values, one of each stretch.
    """
    count = len(times)
    others = np.flatnonzero(~kept)
    if len(others) <= most:
        return np.arange(count)
    stretches = most if values is None else most // 2
    finite = times[np.isfinite(times)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    scaled = np.nan_to_num((times[others] - low) / ((high - low) or 1.0))
    stretch = np.minimum((scaled * stretches).astype(np.int64), stretches - 1)
    heights = np.zeros(len(others)) if values is None else np.nan_to_num(values[others])
    order = np.lexsort((heights, stretch))
    begins = np.flatnonzero(np.diff(stretch[order], prepend=-1))
    ends = np.append(begins[1:], len(order)) - 1
    picked = order[begins] if values is None else np.concatenate([order[begins], order[ends]])
    return np.unique(np.concatenate([np.flatnonzero(kept), others[picked]]))


def check_limit(limit: int) -> int:
    if limit > 200:
        raise SchemaError(f"limit is 200 at most, but {limit:,} was given", hint="Choose keys instead: keys=[…].")
    return limit


def sentence(parts: Sequence[str | None]) -> str:
    """The parts that say something, as one caption."""
    said = [part for part in parts if part]
    return "; ".join(said)


def plural(count: int, word: str, words: str | None = None) -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def selected_places(seen: Seen, matches: Any = None) -> Array:
    """Whether each event is selected by one of the matches, or by any."""
    is_selected = np.zeros(len(seen), bool)
    if matches is None:
        is_selected[seen.matches.places] = True
        return is_selected
    for match in matches:
        is_selected[seen.matches.events_of(int(match))[0]] = True
    return is_selected
