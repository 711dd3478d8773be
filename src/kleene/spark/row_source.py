"""A row pattern and the DataFrame it reads to a plan and a frame that has all its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern, check_measure_names
from kleene.analysis.value_types import type_of
from kleene.call import Call
from kleene.engine.columns_read import columns_read
from kleene.engine.inputs import OrderKey, attributes_of, mentioned_names
from kleene.engine.output import arrow_type
from kleene.engine.rows import with_computed_keys
from kleene.errors import SchemaError
from kleene.plan.plan import Plan
from kleene.schema import Schema
from kleene.spark.foreign import Prepared, prepare_foreign
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.schema import arrow_schema, spark_schema
from kleene.spark.source import session_zone, with_unique_names
from kleene.spark.tasks.task import table_of


def prepare_rows(
    call: Call, events: DataFrame | Mapping[str, DataFrame], nested: frozenset[str] = frozenset()
) -> tuple[Prepared, pa.Schema, Plan]:
    """What Spark computes beforehand, the columns there are then, and the plan. `nested` are parts of columns."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, and a dict was given", hint="Give the DataFrame itself.")
    definition = call.definition
    used = mentioned_names(definition, OrderKey(()))
    events = with_unique_names(events, "the input", used)
    prepared = prepare_foreign(definition, events)
    zone = session_zone(events)
    if used is not None:
        used = replace(used, exact=used.exact.union(prepared.hidden))
    columns = arrow_schema(prepared.frame.schema, zone, used)
    query = analyze_row_pattern(
        prepared.definition, Schema(attributes_of(columns)), [*prepared.hidden, *nested], prepared.key_names
    )
    check_measure_names(definition, Schema(attributes_of(arrow_schema(events.schema, zone, used))), query.partition_by)
    return prepared, columns, call.plan(query)


def with_keys(frame: DataFrame, columns: pa.Schema, query: AnalyzedRowPattern) -> tuple[DataFrame, pa.Schema]:
    """The columns that the query reads, and the keys that are expressions.

    Kleene computes these, so that they mean on Spark what they mean in process.
    """
    columns, wider = columns_with_keys(columns, query)
    names = columns.names
    if not query.computed:
        return frame, columns
    plain = frame.select(*map(quoted_column, names)).toDF(*plain_names(names))
    renamed = pa.schema([field.with_name(name) for field, name in zip(wider, plain_names(wider.names), strict=True)])
    return plain.mapInArrow(KeyAdder(query, columns), spark_schema(renamed)).toDF(*wider.names), wider


def columns_with_keys(columns: pa.Schema, query: AnalyzedRowPattern) -> tuple[pa.Schema, pa.Schema]:
    """The columns that the query reads, and these with the keys that are expressions."""
    names = columns_read(query, columns.names, [column.name for column in query.order_by])
    read = pa.schema([columns.field(name) for name in names])
    return read, pa.schema([*read, *(pa.field(name, arrow_type(type_of(key))) for name, key in query.computed)])


@dataclass(frozen=True, slots=True)
class KeyAdder:
    """A function from batches to batches that adds the keys that are expressions, for a Spark task."""

    query: AnalyzedRowPattern
    columns: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = with_computed_keys(self.query, table_of(batch, self.columns))
            table = pa.Table.from_batches([batch])
            for name, _ in self.query.computed:
                table = table.append_column(name, keys.column(name))
            yield from table.rename_columns(plain_names(table.column_names)).to_batches()
