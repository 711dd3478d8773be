"""How much of its limits a call has used.

Engines tell the budget what they hold and how far they are; whatever goes beyond a limit is an error that says what
grew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from kleene.errors import LimitError, printable
from kleene.options.limits import NO_LIMITS, Limits
from kleene.watching import watcher

_LEAST_AT_ONCE, _MOST_AT_ONCE, _MOST_OF_A_WHOLE = 1 << 22, 1 << 24, 1 << 28


class Budget:
    """What a call on so many events has used. Its clock starts when it is made.

    `at_once` is how many bytes of matches are held together before they are given out. A caller who holds the whole
    result anyway gains by more: fewer rows must be put in order when they are made already.
    """

    def __init__(self, limits: Limits = NO_LIMITS, events: int = 0, is_whole: bool = False) -> None:
        self.limits = limits
        self.memory = available_memory() // 2 if limits.memory is None else limits.memory
        most = _MOST_OF_A_WHOLE if is_whole else _MOST_AT_ONCE
        self.at_once = min(most, max(self.memory // 16, min(_LEAST_AT_ONCE, self.memory // 8)))
        self._deadline = None if limits.seconds is None else monotonic() + limits.seconds
        self._held: dict[str, int] = {}
        self._events, self._at, self._found = events, 0, 0
        self._watcher = watcher()

    @property
    def seconds_left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - monotonic(), 0.0)

    def restart(self) -> None:
        """All that was found and held is forgotten, and the call begins anew; its clock goes on."""
        self._held.clear()
        self._at = self._found = 0

    def hold(self, what: str, size: int) -> None:
        """`what` holds so many bytes now."""
        self._held[what] = int(size)
        if sum(self._held.values()) > self.memory:
            most = max(self._held, key=lambda name: self._held[name])
            raise LimitError(
                f"the call would hold more than its memory limit of {amount(self.memory)}: "
                f"{most} alone would take {amount(self._held[most])}; {self._how_far()}",
                hint="Narrow the query (a shorter WITHIN, a stricter strategy, more predicates), take the rows in "
                "batches with match_batches, or raise memory_limit.",
            )

    def add(self, what: str, size: int) -> None:
        self.hold(what, self._held.get(what, 0) + size)

    @property
    def has_too_many_matches(self) -> bool:
        return self.limits.matches is not None and self._found > self.limits.matches

    def count(self, matches: int) -> None:
        """So many more matches were found."""
        self._found += matches
        if self.has_too_many_matches:
            raise LimitError(
                f"there are more matches than the match limit of {self.limits.matches:,}; {self._how_far()}",
                hint="Narrow the query, or raise match_limit.",
            )

    def reach(self, event: int) -> None:
        """The call has come to this event; an error if its time is over."""
        self._at = max(self._at, event)
        if self._watcher is not None:
            self._watcher(self._at, self._events, f"{self._found:,} matches so far")
        self.check_time()

    def check_time(self) -> None:
        if self._deadline is not None and monotonic() > self._deadline:
            raise self.out_of_time()

    def out_of_time(self, doing: str = "") -> LimitError:
        return LimitError(
            f"the call took longer than its time limit of {self.limits.seconds:g} seconds{doing}; {self._how_far()}",
            hint="Narrow the query, or raise time_limit.",
        )

    def _how_far(self) -> str:
        matches = "1 match" if self._found == 1 else f"{self._found:,} matches"
        return f"it had reached event {self._at:,} of {self._events:,} and found {matches}"


def too_many_partial_matches(
    run_limit: int,
    key: Mapping[str, Any],
    hint: str = "Begin the pattern with a stricter predicate, or raise run_limit.",
) -> LimitError:
    where = ", ".join(f"{name} = {value!r}" for name, value in key.items())
    return LimitError(
        f"the partition {printable(where, 200) if where else 'of all events'} has more than "
        f"{run_limit:,} partial matches at once",
        hint=hint,
    )


def amount(size: int) -> str:
    """Bytes as people say them.

    >>> amount(12_345_678_901), amount(5_400_000)
    ('12.3 GB', '5.4 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{size / 1e6:.1f} MB"


def available_memory() -> int:
    """The memory that this process may use: the machine's, or less where a control group or a limit says so."""
    found = [_physical(), *_of_control_group(), *_of_process()]
    return min(size for size in found if size > 0)


def _physical() -> int:
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):  # not on every system
        return 8 << 30


def _of_control_group() -> list[int]:
    found: list[int] = []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = (Path("/sys/fs/cgroup") / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return found


def _of_process() -> list[int]:
    try:
        import resource
    except ImportError:  # Windows
        return []
    unlimited: Any = resource.RLIM_INFINITY
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return [limit for limit in limits if limit != unlimited]
