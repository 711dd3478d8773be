"""What tasks tell beside their matches, and how it comes back: the count of ties, summed up by an observation.

The tasks give out one more column, which is NULL but in one last row of its own; the observation sums it up, and then
row and column are dropped. So it works on classic sessions and by Spark Connect.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import LongType, StructType

from kleene.engine.ties import ON_SPARK, TieCounter, TieRule
from kleene.errors import UnsupportedError
from kleene.spark.marks import GROUP
from kleene.spark.schema import spark_schema
from kleene.spark.tasks.task import GroupTask

TIES = "__kleene_ties"
_PATIENCE = 2.0
"""Seconds: Spark tells of an action a moment after it has ended, and of one that never was, never."""


@dataclass(frozen=True, slots=True)
class CountingTask:
    """A function from batches to batches, shipped to every task: the matches, and then how many events tied."""

    task: GroupTask
    rule: TieRule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counter = TieCounter(self.rule, GROUP)
        schema = self.task.leaving.append(pa.field(TIES, pa.int64()))

        def counted() -> Iterator[pa.Table]:
            for table in self.task.in_order(batches):
                counter.add(self.task.own_events(table))
                yield table

        for batch in self.task.matched(counted()):
            columns = [*batch.columns, pa.nulls(batch.num_rows, pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        count = counter.finish()
        if count:
            nothing = [pa.nulls(1, field.type) for field in self.task.leaving]
            yield pa.RecordBatch.from_arrays([*nothing, pa.array([count], pa.int64())], schema=schema)


@dataclass(slots=True)
class Notes:
    """The notes on a DataFrame of matches, once an action has run on it."""

    rule: TieRule
    observation: Any
    _asked: threading.Thread | None = None
    _count: int | None = None

    def told(self) -> list[str]:
        if self._count is None:
            self._ask()
        return [self.rule.told(self._count, ON_SPARK)] if self._count else []

    def _ask(self) -> None:
        """A classic session answers only after an action: who asks before must not wait for it."""
        if self._asked is None or not self._asked.is_alive():
            self._asked = threading.Thread(target=self._get, daemon=True)
            self._asked.start()
        self._asked.join(_PATIENCE)

    def _get(self) -> None:
        try:
            found = self.observation.get
        except Exception:  # the session has ended meanwhile, or the action failed: nothing is known
            return
        if TIES in found:
            self._count = found[TIES] or 0


_NOTES: WeakKeyDictionary[DataFrame, tuple[Notes, ...]] = WeakKeyDictionary()


def matched_and_counted(events: DataFrame, task: GroupTask, rule: TieRule | None) -> DataFrame:
    """What the task gives out; with notes on ties, if there is a rule what to count."""
    schema: StructType = spark_schema(task.leaving)
    if rule is None:
        return events.mapInArrow(task, schema)
    observation = _observation(events)
    found = events.mapInArrow(CountingTask(task, rule), schema.add(TIES, LongType()))
    observed = found.observe(observation, F.sum(TIES).alias(TIES))
    return keep_notes(observed.where(F.col(TIES).isNull()).drop(TIES), Notes(rule, observation))


def _observation(frame: DataFrame) -> Any:
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.observation import Observation as RemoteObservation

        return RemoteObservation()
    return Observation()


def keep_notes(frame: DataFrame, *notes: Notes) -> DataFrame:
    _NOTES[frame] = notes
    return frame


def with_notes_of(others: Iterable[DataFrame], frame: DataFrame) -> DataFrame:
    """The frame, which is made of the others, with their notes."""
    return keep_notes(frame, *(notes for other in others for notes in _NOTES.get(other, ())))


def last_notes(frame: Any) -> list[str]:
    if not isinstance(frame, DataFrame):
        raise UnsupportedError(
            "notes exist for a DataFrame that match returned", hint="In process, they are warnings instead."
        )
    return [text for notes in _NOTES.get(frame, ()) for text in notes.told()]
