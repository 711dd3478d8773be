"""Parts of nested columns as columns of a DataFrame: what `engine/nested.py` does to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql import types as st

from kleene.engine.inputs import OrderKey
from kleene.engine.nested import NestedColumn, nested_columns
from kleene.ir.paths import Mention, mentions
from kleene.ir.query import QueryDefinition
from kleene.spark.names import quoted_column
from kleene.spark.schema import arrow_schema
from kleene.spark.source import session_zone

Frames = DataFrame | Mapping[str, DataFrame]


def with_nested(events: Frames, definition: QueryDefinition, order: OrderKey) -> tuple[Frames, frozenset[str]]:
    """The events with a column for each path that the query names; and which columns were added so."""
    if isinstance(events, Mapping):
        wider = {name: _with_nested(frame, definition, order) for name, frame in events.items()}
        added = frozenset(name for _, names in wider.values() for name in names)
        return {name: frame for name, (frame, _) in wider.items()}, added
    frame, names = _with_nested(events, definition, order)
    return frame, frozenset(names)


def _with_nested(frame: DataFrame, definition: QueryDefinition, order: OrderKey) -> tuple[DataFrame, Sequence[str]]:
    wanted = [*map(Mention, order.columns), *mentions(definition)]
    if all(mention.name in frame.columns for mention in wanted):
        return frame, ()
    nested = nested_columns(wanted, arrow_schema(_deep_columns(frame), session_zone(frame), used=()))
    if not nested:
        return frame, ()
    return frame.withColumns({item.name: _part(frame, item) for item in nested}), [item.name for item in nested]


def _deep_columns(frame: DataFrame) -> st.StructType:
    """The columns that have parts; the types of others do not matter."""
    deep = (st.StructType, st.ArrayType, st.MapType)
    return st.StructType([field for field in frame.schema.fields if isinstance(field.dataType, deep)])


def _part(frame: DataFrame, nested: NestedColumn) -> Column:
    column, type_ = quoted_column(nested.path.column), frame.schema[nested.path.column].dataType
    for step in nested.path.steps:
        match type_:
            case st.StructType():
                column, type_ = column.getField(str(step)), type_[str(step)].dataType
            case st.MapType():
                column, type_ = F.try_element_at(column, F.lit(step).cast(type_.keyType)), type_.valueType
            case st.ArrayType():
                column, type_ = F.get(column, F.lit(step)), type_.elementType
    return column
