"""Matches on Spark to a row for each event, by functions of Spark's own, so that it works wherever `match` does."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import ArrayType, DataType, StructType

from kleene.long.definition import ADDED, MATCH_ID, POSITION, VARIABLE
from kleene.long.tables import check_names
from kleene.spark.names import quoted_column
from kleene.spark.notes import with_notes_of

MATCH_ORDER = "match_order"


def long_frame(found: DataFrame, parts: tuple[tuple[str, str | None], ...] | None) -> DataFrame:
    """The events of the matches; `parts` are the columns that hold them, if rows are not events already."""
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
        is_list = isinstance(types[name], ArrayType)
        events = quoted_column(name) if is_list else F.array(quoted_column(name))
        pieces.append(F.transform(events, _row(variable, before, _event_type(types[name]), columns)))
        before = before + (F.size(events) if is_list else F.lit(1))
    kept = [MATCH_ID, *([MATCH_ORDER] if MATCH_ORDER in found.columns else [])]
    exploded = found.select(*map(quoted_column, kept), F.inline(F.concat(*pieces)))
    order = [MATCH_ID, VARIABLE, POSITION, *columns, *kept[1:]]
    return with_notes_of([found], exploded.select(*map(quoted_column, order)))


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
