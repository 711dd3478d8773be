"""What every engine is.

An engine is a plan made ready to run; it never changes, and is shared and shipped. A progress is how far one stream of
events has come: events go in piece by piece, what was found comes out. Whatever the pieces, the same is found; a whole
table is one piece, the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from kleene.automaton.model import Automaton
from kleene.engine.budget import Budget
from kleene.engine.compiled.meter import Meter
from kleene.engine.saved_parts import SavedParts

Time = int | float
"""A time in the units of the order key."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a progress holds between pieces.

    `runs` are open runs, instances on stacks, or partitions with a start that is not decided. `wakes_at` is when time
    alone may complete a match or free what is kept. Where it is idle, nothing is held that a next event depends on.
    """

    runs: int
    events: int
    bytes: int
    wakes_at: Time | None
    is_idle: bool


class Found(Protocol):
    """Some matches, as arrays. Where they are settled, all up to here come before all that are found later."""

    @property
    def table(self) -> pa.Table:
        """The events that the matches refer to."""

    @property
    def is_settled(self) -> bool: ...


class Progress(Protocol):
    """How far a stream has come."""

    budget: Budget

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[Found]:
        """What can be given out now. It must be read to its end before anything else is asked of the progress.

        Events are in order, and follow those of earlier pieces; up to the time `now` all events are there.
        """

    def held(self) -> Held: ...

    def saved(self) -> Mapping[str, Any]:
        """All that the progress is, as the parts of a snapshot."""

    def load(self, parts: SavedParts) -> None:
        """Goes on from where the parts were saved; an error if they do not fit one another."""


class Engine(Protocol):
    """`automaton` is the one that runs, if there is one."""

    @property
    def automaton(self) -> Automaton | None: ...

    def start(self, budget: Budget, meter: Meter) -> Progress:
        """An empty progress."""
