"""What a table function does inside a task: record batches of a TABLE argument to tables of matches.

Spark splits the table by PARTITION BY, sorts it by ORDER BY, and makes a new instance for each of its partitions. The
engine forms the query's own partitions, so Spark's may be coarser. Whether they are finer, and whether the events are
in order, is checked here as far as a task can see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.attributes_by_type import with_own_attributes
from kleene.engine.events import check_order_key
from kleene.engine.rows import with_computed_keys
from kleene.engine.sorting import order_numbers, table_in_order
from kleene.engine.tasks import key_codes, plain_errors
from kleene.errors import ExecutionError, SchemaError, listed, printable
from kleene.spark.hashing import key_digests
from kleene.spark.marks import GROUP
from kleene.spark.names import quoted
from kleene.spark.tasks.groups import AT_ONCE, GroupMatcher, GroupPart, Groups
from kleene.spark.tasks.order import has_order_numbers
from kleene.spark.tasks.task import Task

_ROW = "__kleene_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTask(Task):
    """What a table function is made of. `arriving` are the columns that it takes from the table, by their names."""

    arriving: pa.Schema
    at_once: int = AT_ONCE

    @property
    def order_key(self) -> tuple[SortColumn, ...]:
        return self.reads.order[: self.reads.order_key]

    @property
    def clauses(self) -> str:
        """What to write behind TABLE(…), for messages."""
        query = self.plan.query
        computed = dict(query.computed) if isinstance(query, AnalyzedRowPattern) else {}

        def name(column: str) -> str:
            return column if column in computed or column.isidentifier() else quoted(column)

        keys = _together([name(column) for column in self.reads.key])
        order = _together([f"{name(item.name)}{_direction(item)}" for item in self.order_key])
        split = f"PARTITION BY {keys}" if keys else "WITH SINGLE PARTITION"
        return f"{split} ORDER BY {order}" if order else split

    def events_of(self, batch: pa.RecordBatch) -> pa.Table:
        """The events of a batch, with the columns that the plan knows."""
        events = pa.Table.from_arrays([self._taken(batch, column) for column in self.arriving], schema=self.arriving)
        query = self.plan.query
        if isinstance(query, AnalyzedRowPattern):
            return with_computed_keys(query, events) if query.computed else events
        return events if query.schema is None else with_own_attributes(events, query.schema)

    def _taken(self, batch: pa.RecordBatch, column: pa.Field) -> pa.Array:
        check_column(batch.schema, column, "the table")
        found = batch.column(column.name)
        try:
            return found.cast(column.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError):
            raise _other_type(found.type, column, "the table") from None  # nested values that are not alike after all


def check_column(found: pa.Schema, declared: pa.Field, what: str) -> None:
    """An error if the columns that were found do not have the declared one."""
    if declared.name not in found.names:
        raise SchemaError(
            f"{what} has no column '{printable(declared.name)}', which the declared schema has",
            hint=f"Columns: {listed(found.names)}.",
        )
    if not is_alike(found.field(declared.name).type, declared.type):
        raise _other_type(found.field(declared.name).type, declared, what)


def _other_type(found: pa.DataType, declared: pa.Field, what: str) -> SchemaError:
    return SchemaError(
        f"the column '{printable(declared.name)}' of {what} is {found}, but the declared schema says {declared.type}",
        hint="Declare the columns as they are.",
    )


def is_alike(found: pa.DataType, declared: pa.DataType) -> bool:
    """Whether Spark may hand over one where the other was declared: zones and large variants are up to settings."""
    if found.equals(declared):
        return True
    kinds = (pa.types.is_timestamp, _is_text, _is_bytes)
    if any(is_kind(found) and is_kind(declared) for is_kind in kinds):
        return not pa.types.is_timestamp(found) or (found.tz is None) == (declared.tz is None)
    return bool(pa.types.is_nested(found) and pa.types.is_nested(declared))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _together(items: list[str]) -> str:
    """Spark wants parentheses around several."""
    return f"({', '.join(items)})" if len(items) > 1 else "".join(items)


def _direction(item: SortColumn) -> str:
    if item.nulls_first is None:
        return " DESC" if item.descending else ""
    return f"{' DESC' if item.descending else ''} NULLS {'FIRST' if item.nulls_first else 'LAST'}"


@dataclass(slots=True)
class TableMatcher:
    """What all instances in a task share. It travels empty, and each task gets a copy of its own."""

    task: TableTask
    done: set[bytes] = field(default_factory=set)  # keys of Spark partitions that have ended
    groups: GroupMatcher | None = None

    def start(self) -> PartitionMatcher:
        if self.groups is None:
            # One ordered stream comes, of one key or of several: there is nothing to mix.
            output = self.task.output
            self.groups = GroupMatcher(self.task.plan, self.task.reads.columns, output.with_times, (), output.row_order)
        return PartitionMatcher(self, self.groups)


class PartitionMatcher:
    """The matches of one of Spark's partitions, whose events come batch by batch."""

    def __init__(self, shared: TableMatcher, groups: GroupMatcher) -> None:
        self._shared, self._task, self._groups = shared, shared.task, groups
        self._keys: set[bytes] = set()
        self._last: pa.Table | None = None  # the event that came last
        self._held: list[pa.Table] = []
        self._is_parted = False

    def feed(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        with plain_errors():
            if not batch.num_rows:
                return
            events = self._task.events_of(batch)
            check_order_key(events, self._task.reads.strict)
            self._check_order(events)
            self._check_keys(events)
            self._held.append(events)
            if sum(table.num_rows for table in self._held) > self._task.at_once:
                self._is_parted = True
                yield from self._found(GroupPart(self._taken(), False))

    def finish(self) -> Iterator[pa.Table]:
        with plain_errors():
            if self._last is None:
                return
            yield from self._found(GroupPart(self._taken(), True) if self._is_parted else Groups(self._taken()))
            self._shared.done |= self._keys

    def _found(self, part: Groups | GroupPart) -> Iterator[pa.Table]:
        return map(self._task.given_out, self._groups.found(part))

    def _taken(self) -> pa.Table:
        """The events held, which are one group whatever their keys."""
        assert self._last is not None
        events = pa.concat_tables(self._held or [self._last.slice(0, 0)])
        self._held = []
        return events.append_column(GROUP, pa.array(np.zeros(events.num_rows, np.int64)))

    def _check_order(self, events: pa.Table) -> None:
        together = events if self._last is None else pa.concat_tables([self._last, events])
        if not is_in_order(together, self._task.order_key):
            name = printable(self._task.order_key[0].name)
            raise ExecutionError(
                f"events of one partition of the table are not in the order of '{name}'",
                hint=f"Write: TABLE(…) {self._task.clauses}",
            )
        self._last = events.slice(events.num_rows - 1)

    def _check_keys(self, events: pa.Table) -> None:
        """An error if events of an earlier Spark partition belong to the same partition of the query."""
        here = keys_in(events, self._task.reads.key, self._task.reads.needs_key)
        if not self._shared.done.isdisjoint(here):
            key = self._task.reads.key
            whose = f"of one {listed(key)}" if key else "of the query, which has no key,"
            raise ExecutionError(
                f"the events {whose} are in several partitions of the table",
                hint=f"Write: TABLE(…) {self._task.clauses}",
            )
        self._keys |= here


def keys_in(events: pa.Table, key: tuple[str, ...], needs_key: bool) -> set[bytes]:
    """The keys of the events. Where an event needs a key to be of use, one without it counts for nothing."""
    if not key:
        return {b""}
    keys = events.select(list(key))
    if needs_key and any(column.null_count for column in keys.columns):
        keys = keys.drop_null()
    if not keys.num_rows:
        return set()
    codes, _ = key_codes(keys, key)
    firsts = np.unique(codes, return_index=True)[1]
    found: set[bytes] = set(key_digests(keys, firsts, key).to_pylist())
    return found


def is_in_order(events: pa.Table, order: tuple[SortColumn, ...]) -> bool:
    if not order:
        return True
    first = order[0]
    if len(order) == 1 and first.nulls_first is None and has_order_numbers(events.schema.field(first.name).type):
        numbers: Any = order_numbers(events.column(first.name))
        return bool((numbers[1:] <= numbers[:-1]).all() if first.descending else (numbers[1:] >= numbers[:-1]).all())
    numbered = events.select([item.name for item in order]).append_column(_ROW, pa.array(np.arange(events.num_rows)))
    rows: Any = table_in_order(numbered, order).column(_ROW).to_numpy()
    return bool((rows[1:] >= rows[:-1]).all())  # sorting is stable: what is in order stays where it is
