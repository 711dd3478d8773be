"""Matches on Spark to a row for each event, by functions of Spark's own, so that it works wherever `match` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import ArrayType, DataType, StructType

from kleene.engine.tasks import plain_errors
from kleene.errors import SchemaError
from kleene.long.definition import ADDED, MATCH_ID, POSITION, VARIABLE
from kleene.long.tables import CollectedForm, LongForm, check_names
from kleene.scanning.scan import Scan
from kleene.spark.names import quoted_column
from kleene.spark.notes import with_notes_of
from kleene.spark.scans import frame_of
from kleene.spark.schema import arrow_schema, spark_schema
from kleene.spark.source import session_zone

MATCH_ORDER = "match_order"


def columns_of(frame: Any) -> pa.Schema:
    """The columns of a DataFrame as tables in this process would have them."""
    if isinstance(frame, Mapping):
        raise SchemaError("a regular expression reads one table, but a dict was given", hint="Give the table itself.")
    source = frame_of(frame) if isinstance(frame, Scan) else frame
    return arrow_schema(source.schema, session_zone(source))


def long_frame(found: DataFrame, form: LongForm | CollectedForm) -> DataFrame:
    """The events of the matches."""
    if isinstance(form, CollectedForm):
        # Ids are made of the values, as they are in process.
        leaving = form.schema(form.columns)
        return with_notes_of([found], found.mapInArrow(partial(_collected_rows, form), spark_schema(leaving)))
    parts = form.parts
    if parts is None:
        names = [*ADDED, *(name for name in found.columns if name not in ADDED)]
        return with_notes_of([found], found.select(*map(quoted_column, names)))
    types = {name: found.schema[name].dataType for name, _ in parts}
    columns: dict[str, DataType] = {}
    for type_ in types.values():
        for field in _event_type(type_).fields:
            columns.setdefault(field.name, field.dataType)
    check_names(list(columns))
    before: Column = F.lit(0)
    pieces: list[Column] = []
    for name, variable in parts:
        events = quoted_column(name)
        if not isinstance(types[name], ArrayType):
            events = F.filter(F.array(events), _is_there)
        pieces.append(F.transform(events, _row(variable, before, _event_type(types[name]), columns)))
        before = before + F.size(events)
    kept = [MATCH_ID, *([MATCH_ORDER] if MATCH_ORDER in found.columns else [])]
    exploded = found.select(*map(quoted_column, kept), F.inline(F.concat(*pieces)))
    order = [MATCH_ID, VARIABLE, POSITION, *columns, *kept[1:]]
    return with_notes_of([found], exploded.select(*map(quoted_column, order)))


def _collected_rows(form: CollectedForm, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with plain_errors():
        for batch in batches:
            yield from form.table(pa.Table.from_batches([batch])).to_batches()


def _is_there(event: Column) -> Column:
    """A step that was passed over has no event."""
    return event.isNotNull()


def _row(variable: str | None, before: Column, own: StructType, columns: dict[str, DataType]) -> Any:
    names = set(own.fieldNames())

    def row(event: Column, place: Column) -> Column:
        values = [
            (event.getField(name) if name in names else F.lit(None)).cast(type_).alias(name)
            for name, type_ in columns.items()
        ]
        position = (before + place + 1).cast("bigint").alias(POSITION)
        return F.struct(F.lit(variable).cast("string").alias(VARIABLE), position, *values)

    return row


def _event_type(type_: DataType) -> StructType:
    inner = type_.elementType if isinstance(type_, ArrayType) else type_
    assert isinstance(inner, StructType)
    return inner
