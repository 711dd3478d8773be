"""How much of its limits a call has used.

Engines tell the budget what they hold and how far they are; whatever goes beyond a limit is an error that says what
grew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

import pyarrow as pa

from kleene.errors import LimitError, printable
from kleene.options.limits import NO_LIMITS, Limits
from kleene.watching import watcher

_LEAST_AT_ONCE, _MOST_AT_ONCE, _MOST_OF_A_WHOLE = 1 << 22, 1 << 24, 1 << 28


class EndedError(Exception):
    """The call that a thread works for has ended."""


@dataclass(slots=True)
class _Used:
    """What the threads of a call have used together; each of them has its number."""

    held: dict[tuple[int, str], int] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    matches: dict[int, int] = field(default_factory=dict)
    passed: int = 0  # events of earlier pieces
    has_ended: bool = False
    lock: Lock = field(default_factory=Lock)

    @property
    def events(self) -> int:
        return self.passed + sum(self.reached.values())

    @property
    def found(self) -> int:
        return sum(self.matches.values())

    def forget(self, thread: int | None) -> None:
        """What the thread has used, or, for None, what all have."""
        with self.lock:
            for used in (self.reached, self.matches):
                for number in [number for number in used if thread in (None, number)]:
                    del used[number]
            for key in [key for key in self.held if thread in (None, key[0])]:
                del self.held[key]


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
        self._events = events
        self._used, self._thread, self._is_of_thread = _Used(), 0, False
        self._watcher = watcher()

    def for_threads(self, count: int) -> list[Budget]:
        """A budget for each of so many threads; what they use is added up."""
        parts = [copy(self) for _ in range(count)]
        for number, part in enumerate(parts):
            part._thread, part._is_of_thread = number, True
            part.at_once = max(self.at_once // count, min(_LEAST_AT_ONCE, self.at_once))
        return parts

    def end(self) -> None:
        """Whatever thread works on the call gives up when it next looks at its time."""
        self._used.has_ended = True

    @property
    def seconds_left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - monotonic(), 0.0)

    def restart(self) -> None:
        """All that was found and held is forgotten, and the call begins anew; its clock goes on."""
        self._used.forget(self._thread if self._is_of_thread else None)
        if not self._is_of_thread:
            self._used.has_ended = False

    def hold(self, what: str, size: int) -> None:
        """`what` holds so many bytes now."""
        with self._used.lock:
            held = self._used.held
            held[self._thread, what] = int(size)
            is_too_much = sum(held.values()) > self.memory
            most = max(held, key=lambda name: held[name]) if is_too_much else (0, "")
        if is_too_much:
            raise LimitError(
                f"the call would hold more than its memory limit of {amount(self.memory)}: "
                f"{most[1]} alone would take {amount(held[most])}; {self._how_far()}",
                hint="Narrow the query (a shorter WITHIN, a stricter strategy, more predicates), take the rows in "
                "batches with match_batches, or raise memory_limit.",
            )

    def add(self, what: str, size: int) -> None:
        self.hold(what, self._used.held.get((self._thread, what), 0) + size)

    @property
    def has_too_many_matches(self) -> bool:
        return self.limits.matches is not None and self._used.found > self.limits.matches

    def count(self, matches: int) -> None:
        """So many more matches were found."""
        with self._used.lock:
            self._used.matches[self._thread] = self._used.matches.get(self._thread, 0) + matches
        if self.has_too_many_matches:
            raise LimitError(
                f"there are more matches than the match limit of {self.limits.matches:,}; {self._how_far()}",
                hint="Narrow the query, or raise match_limit.",
            )

    def reach(self, event: int) -> None:
        """The call has come to this event; an error if its time is over."""
        with self._used.lock:
            self._used.reached[self._thread] = max(self._used.reached.get(self._thread, 0), event)
            reached = self._used.events
        if self._watcher is not None:
            self._watcher(reached, self._events, f"{self._used.found:,} matches so far")
        self.check_time()

    def passed(self, events: int) -> None:
        """A piece of so many events is done; the next is counted from its own beginning."""
        with self._used.lock:
            self._used.passed += events
            self._used.reached.clear()
            reached = self._used.passed
        if self._watcher is not None:
            self._watcher(reached, self._events, f"{self._used.found:,} matches so far")

    @property
    def is_out_of_time(self) -> bool:
        return self._deadline is not None and monotonic() > self._deadline

    def check_time(self) -> None:
        if self._used.has_ended:
            raise EndedError
        if self.is_out_of_time:
            raise self.out_of_time()

    def out_of_time(self, doing: str = "") -> LimitError:
        return LimitError(
            f"the call took longer than its time limit of {self.limits.seconds:g} seconds{doing}; {self._how_far()}",
            hint="Narrow the query, or raise time_limit.",
        )

    def _how_far(self) -> str:
        used = self._used
        matches = "1 match" if used.found == 1 else f"{used.found:,} matches"
        reached = min(used.events, self._events)  # ranges have events in common
        return f"it had reached event {reached:,} of {self._events:,} and found {matches}"


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


def table_bytes(table: pa.Table) -> int:
    """The bytes that the table's values take."""
    try:
        return int(table.nbytes)
    except pa.ArrowTypeError:  # older versions of Arrow do not know it of every type
        return int(table.get_total_buffer_size())


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
