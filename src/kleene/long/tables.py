"""Matches as rows, with events in structs and lists of them, to a row for each event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.column_types import attributes_of
from kleene.engine.matches import FlatMatches
from kleene.engine.results import match_ids
from kleene.errors import SchemaError, printable
from kleene.long.definition import ADDED, MATCH_ID, POSITION, VARIABLE
from kleene.schema import EventSchema

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class LongForm:
    """`parts` are the columns of events, with their variables; None if rows are events and only change their places."""

    parts: tuple[tuple[str, str | None], ...] | None

    def schema(self, wide: pa.Schema) -> pa.Schema:
        if self.parts is None:
            # A column that PARTITION BY and ORDER BY both name is there twice; once is enough here.
            names = dict.fromkeys([*ADDED, *wide.names])
            return pa.schema([wide.field(wide.names.index(name)) for name in names])
        columns: dict[str, pa.Field] = {}
        for name, _ in self.parts:
            for column in _event_type(wide.field(name).type):
                columns.setdefault(column.name, column.with_nullable(True))
        check_names(list(columns))
        added = [wide.field(MATCH_ID), pa.field(VARIABLE, pa.string()), pa.field(POSITION, pa.int64())]
        return pa.schema([*added, *columns.values()])

    def table(self, wide: pa.Table) -> pa.Table:
        """The events of each match together and in their order, matches as they come."""
        schema = self.schema(wide.schema)
        if self.parts is None:
            return wide.select([wide.column_names.index(name) for name in schema.names])
        before = np.zeros(wide.num_rows, np.int64)  # events of the match that earlier variables have
        pieces: list[pa.Table] = []
        matches: list[Array] = []
        for name, variable in self.parts:
            events, match, within = _flat(wide.column(name).combine_chunks())
            own = dict(zip((column.name for column in events.type), events.flatten(), strict=True))
            columns: list[Any] = [
                wide.column(MATCH_ID).take(pa.array(match)),
                pa.array([variable] * len(match), pa.string()),
                pa.array(before[match] + within + 1),
            ]
            columns += [
                own.get(column.name, pa.nulls(len(match), column.type)) for column in list(schema)[len(ADDED) :]
            ]
            pieces.append(pa.table(columns, schema=schema))
            matches.append(match)
            before += np.bincount(match, minlength=wide.num_rows)
        # Within a match, variables come one after the other, so that a stable sort keeps events in order.
        order = np.argsort(np.concatenate(matches), kind="stable")
        return pa.concat_tables(pieces).take(pa.array(order))

    def reader(self, wide: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
        """The same in batches, each made of one."""
        return _reader(self, wide, batches)


@dataclass(frozen=True, slots=True)
class CollectedForm:
    """The long form of a regular expression, whose rows have a list of values for each column of the input."""

    columns: pa.Schema

    def schema(self, wide: pa.Schema) -> pa.Schema:
        check_names(self.columns.names)
        return pa.schema([(MATCH_ID, pa.string()), (VARIABLE, pa.string()), (POSITION, pa.int64()), *self.columns])

    def table(self, wide: pa.Table) -> pa.Table:
        schema = self.schema(wide.schema)
        flat = [_flat(wide.column(name).combine_chunks()) for name in self.columns.names]
        _, match, within = flat[0]
        events = pa.table([values for values, _, _ in flat], names=self.columns.names)
        lengths = np.bincount(match, minlength=wide.num_rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        matches = FlatMatches(offsets, lengths.reshape(-1, 1), np.arange(len(match)))
        ids = match_ids(events, matches, events.column_names, EventSchema(attributes_of(events.schema)))
        added = [ids.take(pa.array(match)), pa.nulls(len(match), pa.string()), pa.array(within + 1)]
        return pa.table([*added, *events.cast(self.columns).columns], schema=schema)

    def reader(self, wide: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
        return _reader(self, wide, batches)


def _reader(form: LongForm | CollectedForm, wide: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    tables = (form.table(pa.Table.from_batches([batch])) for batch in batches)
    return pa.RecordBatchReader.from_batches(
        form.schema(wide), (batch for table in tables for batch in table.to_batches())
    )


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if name.lower() in ADDED:
            raise SchemaError(
                f"the long form adds a column '{printable(name.lower())}', but events have one of that name",
                hint="Rename the column of the input.",
            )


def _event_type(type_: pa.DataType) -> pa.StructType:
    return type_.value_type if pa.types.is_list(type_) or pa.types.is_large_list(type_) else type_


def _flat(column: Any) -> tuple[Any, Array, Array]:
    """The events of a column, the match of each, and how many of the column's own come before it there."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if not isinstance(column, (pa.ListArray, pa.LargeListArray)):
        match = np.flatnonzero(column.is_valid())  # a step that was passed over has no event
        return column.take(pa.array(match)), match, np.zeros(len(match), np.int64)
    offsets = np.asarray(column.offsets)
    lengths = np.diff(offsets)
    match = np.repeat(np.arange(len(column)), lengths)
    within = np.arange(len(match)) - np.repeat(offsets[:-1] - offsets[0], lengths)
    return column.flatten(), match, within
