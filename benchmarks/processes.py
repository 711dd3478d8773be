"""What the processes of a running Spark need, as Linux tells it: processor time, and the peak memory of workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    id: int
    parent: int
    name: str
    seconds: float
    """Processor time so far; that of its children too, once they have ended."""
    session: int
    """The process that leads its session; what a process starts stays in it, whatever group it joins."""
    is_dead: bool
    """It has ended, and nobody has asked for its status yet."""


def descendants() -> list[Process]:
    """The processes below this one: Java, the daemon that starts Python workers, and those."""
    found = {process.id: process for process in _all()}
    parents = {process.id: process.parent for process in found.values()}
    return [process for process in found.values() if os.getpid() in _ancestors(process.id, parents)]


def kill_session(leader: int) -> None:
    """Kills all processes of a session as a power cut would: none is told, and none is left."""
    while living := [process for process in _all() if process.session == leader and not process.is_dead]:
        for process in living:
            with suppress(ProcessLookupError):
                os.kill(process.id, signal.SIGKILL)


class ProcessorTime:
    """What the processes below this one use from now on; on a busy machine it says more than the clock."""

    def __init__(self) -> None:
        self._before = _seconds()

    def used(self) -> float:
        return _seconds() - self._before


def _seconds() -> float:
    return sum(process.seconds for process in descendants())


def _all() -> Iterator[Process]:
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in FOLDER.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it ended while we looked
            continue
        # The name stands in parentheses and may hold anything.
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        seconds = sum(map(int, rest[11:15])) / ticks
        yield Process(int(folder.name), int(rest[1]), name, seconds, int(rest[3]), rest[0] == "Z")


def _ancestors(process: int, parents: Mapping[int, int]) -> Iterator[int]:
    while process in parents:
        process = parents[process]
        yield process


def worker_peaks() -> list[float]:
    """The peak memory of each Python process below this one, in megabytes."""
    peaks = []
    for process in descendants():
        try:
            lines = (FOLDER / str(process.id) / "status").read_text().splitlines()
        except OSError:
            continue
        if process.name.startswith("python"):
            peaks += [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]
    return peaks


class PeakWatch(threading.Thread):
    """Looks at Spark's Python workers while a job runs: the most that any of them had at once, in megabytes.

    The system keeps the peak of each process, so that looking now and then is enough; but it forgets it when the
    process ends.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._peak = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.1):
            self._peak = max([self._peak, *worker_peaks()])

    def stop(self) -> float:
        self._done.set()
        self.join()
        return max([self._peak, *worker_peaks()])
