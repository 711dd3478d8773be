"""Kills streams of matches again and again, and compares what their sinks hold in the end with the answer in batch.

Run it with `make soak`. A driver with several streams runs in a process of its own, while files of events come in, late
and out of order as far as the watermark allows. At chosen moments all its processes are killed, and a new one goes on
from the checkpoints. It ends with status 1 if a match was lost or given out twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import stream_driver
from processes import kill_session
from quick_jvm import QUICK_JVM
from stream_driver import DELAY, QUERIES

PATIENCE = 600
"""Seconds; a machine may be slow."""
AHEAD = 5
"""Files that may wait for the slowest stream."""
BUSY = ("Processing new data", "No new data but cleaning up state")
"""What Spark says of a stream in the middle of a micro-batch."""
FEWEST_MATCHES = 20
"""Of each query; with fewer, an empty result might pass for a right one."""

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("seq", pa.int64()),
        ("tag", pa.int64()),
        ("weight", pa.int64()),
    ]
)
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
CLOSING = {"type": "Close", "ts": datetime(9999, 6, 1, tzinfo=UTC), "seq": -1, "tag": -1, "weight": 0}
"""An event after which nothing can come: a stream gives out all that it has held back."""


class Moment(Enum):
    """When a driver is killed."""

    PLANNING = "planning"
    """Spark runs, and the streams are being started."""
    AT_WORK = "at work"
    """A while after a micro-batch was done, in the middle of another."""
    STATE = "state"
    """A task has stored the state of a micro-batch, of which the sink knows nothing yet."""
    COMMIT = "commit"
    """The sink has the rows of a micro-batch, which does not count as done yet."""


class Store:
    """Files of readings in a store without end: tags come, are seen for a while with pauses, and fall silent."""

    STEP = 60
    """Seconds of event time between two files."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)
        self._step = self._seq = self._tags = 0
        self._lives: dict[int, int] = {}  # a tag, and the step of its end
        self._under_way: list[tuple[float, dict[str, Any]]] = []  # with the second of arrival

    def next_file(self) -> list[dict[str, Any]]:
        """What arrives in the next seconds, in no order: an event is late by no more than the watermark allows."""
        choose, begin = self._choose, self._step * self.STEP
        for _ in range(choose.randrange(3, 8)):
            self._lives[self._tags] = self._step + choose.choice([1, 2, 4, 30])
            self._tags += 1
        for tag in [tag for tag, end in self._lives.items() if end > self._step and choose.random() < 0.7]:
            for _ in range(choose.randrange(2, 10)):
                second = begin + choose.randrange(self.STEP)  # whole seconds: many events have equal times
                self._under_way.append((second + choose.uniform(0, DELAY), self._reading(second, tag)))
        self._step += 1
        return self._arrived(begin + self.STEP)

    def last_file(self) -> list[dict[str, Any]]:
        return self._arrived(float("inf"))

    def _reading(self, second: int, tag: int) -> dict[str, Any]:
        self._seq += 1
        kind = self._choose.choices(["Shelf", "Register", "Exit"], [5, 1, 2])[0]
        ts = BEGIN + timedelta(seconds=second)
        return {"type": kind, "ts": ts, "seq": self._seq, "tag": tag, "weight": self._choose.randrange(10)}

    def _arrived(self, until: float) -> list[dict[str, Any]]:
        events = [event for second, event in self._under_way if second < until]
        self._under_way = [(second, event) for second, event in self._under_way if second >= until]
        self._choose.shuffle(events)
        return events


@dataclass(frozen=True, slots=True)
class Stand:
    """How far a stream is, as the files of its checkpoint and its sink tell: numbers of micro-batches."""

    begun: int
    stored: int
    """Of at least one task the state is."""
    given_out: int
    done: int

    def __str__(self) -> str:
        if self.begun == self.done:
            return f"{self.done} done"
        if self.given_out == self.begun:
            return f"{self.begun} given out"
        return f"{self.begun} stored" if self.stored == self.begun else f"{self.begun} begun"


def stand_of(place: Path) -> Stand:
    checkpoint = place / "checkpoint"
    stored = max((_newest(tasks) for tasks in (checkpoint / "state" / "0").glob("[0-9]*")), default=0)
    return Stand(
        _newest(checkpoint / "offsets"),
        stored - 1,  # what a micro-batch leaves is the state that the next one begins with
        _newest(place / "sink" / "_spark_metadata"),
        _newest(checkpoint / "commits"),
    )


def _newest(folder: Path) -> int:
    """The number in the names of its files that is highest; -1 if there is none."""
    names = os.listdir(folder) if folder.is_dir() else []
    numbers = (re.fullmatch(r"(\d+)(\.compact|\.zip|\.changelog)?", name) for name in names)
    return max((int(number[1]) for number in numbers if number), default=-1)


@dataclass(frozen=True, slots=True)
class Kill:
    moment: Moment
    seconds: float
    """From the start of the driver."""
    files: int
    """Of events, so far."""
    batches: int
    """That were done between the start and the end of this driver, all streams together."""
    busy: int
    """Streams in the middle of a micro-batch, by what Spark said a moment before."""
    stands: dict[str, Stand]


class Soak:
    """A folder in which streams live from kill to kill."""

    def __init__(self, folder: Path, names: list[str], engine: str, seed: int, most_batches: int) -> None:
        self._folder, self._names, self._engine = folder, names, engine
        self._choose, self._most_batches = random.Random(seed), most_batches
        self._store = Store(seed)
        self.events: list[dict[str, Any]] = []
        self.files = 0
        for name in ("events", "on_the_way"):
            (folder / name).mkdir(parents=True)

    def live(self, moment: Moment) -> Kill:
        """Starts a driver, gives it events, and kills it at the moment."""
        while (kill := self._killed_at(moment)) is None:
            pass
        return kill

    def _killed_at(self, moment: Moment) -> Kill | None:
        """None if the machine was too busy."""
        before, began = self._stands(), time.monotonic()
        pause = self._choose.choice([0.2, 0.5, 2.0])
        with self._driver() as driver:
            has_come = self._coming(moment, before)
            next_file = began
            while not has_come():
                if driver.poll() is not None and self._was_too_busy():
                    return None
                if driver.poll() is not None or time.monotonic() > began + PATIENCE:
                    raise AssertionError(f"waited in vain for the moment '{moment.value}':\n{self._said()}")
                if time.monotonic() >= next_file and self.files < AHEAD + max(s.begun for s in self._stands().values()):
                    self._send(self._store.next_file())
                    next_file = time.monotonic() + pause
                time.sleep(0.005)
            seconds = time.monotonic() - began
            kill_session(driver.pid)
        after = self._stands()
        batches = sum(after[name].done - before[name].done for name in self._names)
        return Kill(moment, seconds, self.files, batches, self._busy(), after)

    def drain(self) -> dict[str, pa.Table]:
        """Sends the events that are under way and one that closes the streams; what is in the sinks then."""
        self._send(self._store.last_file())
        self._send([CLOSING])
        while True:
            with self._driver("drain") as driver:
                if driver.wait(PATIENCE) == 0:
                    return {name: pq.read_table(self._folder / f"{name}.parquet") for name in self._names}
            if not self._was_too_busy():
                raise AssertionError(f"the driver failed:\n{self._said()}")

    def _was_too_busy(self) -> bool:
        """Whether a driver ended because Spark gives a Python worker ten seconds to start, whatever else goes on."""
        return "Python worker failed to connect back" in self._said()

    def expected(self) -> dict[str, pa.Table]:
        events = pa.Table.from_pylist(self.events, SCHEMA)
        queries = {name: QUERIES[name] for name in self._names}
        return {name: query.match(events, **options, engine="reference") for name, (query, options) in queries.items()}

    def given_out(self) -> dict[str, int]:
        """How many rows the sinks hold now, without what Spark would leave out of account."""
        return {
            name: sum(pq.read_metadata(path).num_rows for path in self._counted_files(name)) for name in self._names
        }

    def abandoned_files(self) -> int:
        """Files in the sinks that a killed driver has left there, and that do not count."""
        there = sum(len([*(self._folder / name / "sink").glob("*.parquet")]) for name in self._names)
        return there - sum(len(self._counted_files(name)) for name in self._names)

    def _counted_files(self, name: str) -> set[str]:
        log = self._folder / name / "sink" / "_spark_metadata"
        lines = [line for file in log.glob("[0-9]*") for line in file.read_text().splitlines()[1:]]
        return {json.loads(line)["path"].removeprefix("file://") for line in lines}

    def _coming(self, moment: Moment, before: dict[str, Stand]) -> Callable[[], bool]:
        """A function that says whether the moment is there; a few micro-batches come before it."""
        fewest = 1 if moment is Moment.AT_WORK else 0
        batches, wait = self._choose.randint(fewest, self._most_batches), self._choose.uniform(0, 2)
        since: list[float] = []

        def is_there(name: str, stand: Stand) -> bool:
            # What killed drivers have left behind says nothing about this one.
            old = before[name]
            if stand.done < old.done + batches:
                return False
            if moment is Moment.STATE:
                return stand.stored > max(stand.given_out, old.stored)
            return moment is Moment.AT_WORK or stand.given_out > max(stand.done, old.given_out)

        def a_while_after(condition: bool) -> bool:
            if condition and not since:
                since.append(time.monotonic())
            return bool(since) and time.monotonic() >= since[0] + wait

        def has_come() -> bool:
            if moment is Moment.PLANNING:
                return a_while_after(self._status() is not None)
            found = any(is_there(name, stand) for name, stand in self._stands().items())
            return a_while_after(found) and self._busy() > 0 if moment is Moment.AT_WORK else found

        return has_come

    def _busy(self) -> int:
        return sum(message in BUSY for message in (self._status() or {}).values())

    def _stands(self) -> dict[str, Stand]:
        return {name: stand_of(self._folder / name) for name in self._names}

    def _status(self) -> dict[str, str] | None:
        path = self._folder / "status.json"
        return json.loads(path.read_text()) if path.exists() else None

    def _send(self, events: list[dict[str, Any]]) -> None:
        """A file, of which a stream sees all or nothing."""
        name = f"{self.files:05}.parquet"
        pq.write_table(pa.Table.from_pylist(events, SCHEMA), self._folder / "on_the_way" / name)
        # Streams read files in the order of their times.
        os.utime(self._folder / "on_the_way" / name, (BEGIN.timestamp() + self.files,) * 2)
        os.rename(self._folder / "on_the_way" / name, self._folder / "events" / name)
        self.files += 1
        self.events += events

    @contextmanager
    def _driver(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        (self._folder / "status.json").unlink(missing_ok=True)
        settings = {
            "JDK_JAVA_OPTIONS": QUICK_JVM,
            "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g pyspark-shell",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
        }
        command = [
            sys.executable,
            stream_driver.__file__,
            str(self._folder),
            self._engine,
            ",".join(self._names),
            *arguments,
        ]
        with (self._folder / "driver.log").open("wb") as log:
            driver = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **settings}, start_new_session=True
            )
            try:
                yield driver
            finally:
                kill_session(driver.pid)
                driver.wait()

    def _said(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")[-5000:]


def difference(expected: pa.Table, found: pa.Table) -> str | None:
    """What was lost and what came twice or out of nothing; None if it is the same rows, in whatever order."""
    wanted, had = _rows(expected), _rows(found)
    lost, too_much = wanted - had, had - wanted
    if not lost and not too_much:
        return None
    shown = [*(f"lost      {row}" for row in lost), *(f"too much  {row}" for row in too_much)]
    return "\n".join([f"{lost.total()} lost, {too_much.total()} too much", *shown[:10]])


def _rows(table: pa.Table) -> Counter[str]:
    names = sorted(table.column_names)
    return Counter(repr([row[name] for name in names]) for row in table.to_pylist())


def table_of(kills: list[Kill]) -> str:
    """The kills, one in a line: which micro-batch of each stream was how far."""
    lines = [["kill", "moment", "after", "files", "batches", "busy", *kills[0].stands]]
    for number, kill in enumerate(kills, 1):
        told = [kill.moment.value, f"{kill.seconds:.1f} s", str(kill.files), f"+{kill.batches}", str(kill.busy)]
        lines.append([str(number), *told, *map(str, kill.stands.values())])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


@dataclass(frozen=True, slots=True)
class Outcome:
    kills: list[Kill]
    expected: dict[str, pa.Table]
    differences: dict[str, str]
    """Of the queries whose sinks do not hold what was expected."""
    before_end: dict[str, int]
    """How many rows the sinks held before the streams were closed."""
    abandoned_files: int


def soak(
    folder: Path, moments: list[Moment], names: list[str], engine: str, seed: int, most_batches: int = 3
) -> Outcome:
    """Streams that die at each of the moments, after some micro-batches at most, and are drained in the end."""
    streams, kills = Soak(folder, names, engine, seed, most_batches), []
    for moment in moments:
        kills.append(streams.live(moment))
        print(table_of(kills).splitlines()[-1], flush=True)
    before_end = streams.given_out()
    found, expected = streams.drain(), streams.expected()
    compared = {name: difference(expected[name], found[name]) for name in names}
    differences = {name: different for name, different in compared.items() if different is not None}
    return Outcome(kills, expected, differences, before_end, streams.abandoned_files())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    moments = random.Random(options.seed).choices([*Moment], [1, 2, 2, 2], k=options.kills)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outcome = soak(Path(folder), moments, [*QUERIES], "compiled", options.seed)
    print(table_of(outcome.kills))
    is_right = True
    for name, table in outcome.expected.items():
        different = outcome.differences.get(name, "the same as in batch")
        early = outcome.before_end[name]
        print(f"{name:<12} {table.num_rows:,} rows, {early:,} of them before the end: {different}")
        if name in outcome.differences or early < FEWEST_MATCHES:
            is_right = False
    print(f"{outcome.abandoned_files} files of killed drivers in the sinks do not count")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
