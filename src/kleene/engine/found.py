"""What engines of SASE queries find: matches in a table, in blocks, so that nobody has to hold all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.engine.matches import Array, FlatMatches, joined


@dataclass(frozen=True, slots=True)
class FoundMatches:
    """Some matches, in output order, whose positions are those of the table.

    Matches that end at the same event come together, or in the right order one after the other. Where they are settled,
    all matches up to here come before all that are found later.
    """

    table: pa.Table
    matches: FlatMatches
    is_settled: bool


def size_of(matches: FlatMatches) -> int:
    """Bytes that the matches take."""
    return int(matches.positions.nbytes + matches.lengths.nbytes + matches.offsets.nbytes)


def whole_events(
    parts: Iterable[tuple[FlatMatches, Array]], by_first: bool = False
) -> Iterator[tuple[FlatMatches, Array]]:
    """The same matches, cut so that those with one last event, or one first event, stay together.

    Matches come in the order of those events; each part has an array of as many values beside it.
    """
    held: list[tuple[FlatMatches, Array]] = []
    for part in parts:
        found, values = part
        if not len(found):
            continue
        ends = found.first if by_first else found.last
        begin = int(np.flatnonzero(ends == ends[-1])[0])
        before = held[-1][0] if held else None
        is_same = before is not None and (before.first[-1] if by_first else before.last[-1]) == ends[0]
        if before is not None and not is_same:
            yield _together(held)
            held = []
        if begin > 0:
            yield _together([*held, (found[:begin], values[:begin])])
            held = []
        held.append((found[begin:], values[begin:]))
    if held:
        yield _together(held)


def _together(parts: list[tuple[FlatMatches, Array]]) -> tuple[FlatMatches, Array]:
    if len(parts) == 1:
        return parts[0]
    components = parts[0][0].lengths.shape[1]
    return joined([found for found, _ in parts], components), np.concatenate([values for _, values in parts])
