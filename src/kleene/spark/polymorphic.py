"""`kleene_match`: one table function for any query text, for clients that speak only SQL.

Spark calls `analyze` with the columns of the table and the text, while it analyzes the SQL query; what comes back says
the columns of the result, and how the table is to be split and sorted. Such a function gets its rows one by one: a
function of `Query.table_function` gets them as Arrow batches, which is faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.errors import PySparkValueError
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, OrderingColumn, PartitioningColumn, SelectedColumn

from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern
from kleene.call import check_reads_one, read_call
from kleene.errors import KleeneError, SchemaError, UnsupportedError, listed, printable, shown
from kleene.ir.query import QueryDefinition
from kleene.lang import match_recognize, sase
from kleene.lang.kinds import language_of
from kleene.options.engine import EngineOptions, engine_options
from kleene.spark.declared import declared_columns
from kleene.spark.names import quoted
from kleene.spark.reads import Reads
from kleene.spark.schema import has_map, is_collated, spark_schema
from kleene.spark.table_function import table_task
from kleene.spark.tasks.table import PartitionMatcher, TableMatcher
from kleene.spark.workers import check_workers

NAME = "kleene_match"
BUCKETS = 64
"""Spark's partitions of the table: each holds many keys, since each costs some milliseconds."""
ROWS_AT_ONCE = 10_000
"""Rows that are put together to a batch."""
LANGUAGES = ("sase", "match_recognize")


def register(spark: SparkSession, name: str = NAME, engine: EngineOptions | str | None = None) -> None:
    """Registers the function under the name for the session. Instants are read in the zone that the session has now."""
    options = engine_options(engine)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise SchemaError(f"name takes the name of a function, but {shown(name)} was given", hint=f"Write: '{NAME}'")
    check_workers(spark)
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    function: Any = F.udtf(_handler(zone, options), useArrow=False)
    spark.udtf.register(name, function)


@dataclass
class Prepared(AnalyzeResult):
    """What `analyze` finds out, and what the tasks get of it."""

    matcher: TableMatcher | None = field(default=None)


def _handler(zone: str, engine: EngineOptions) -> type:
    """The class of the function; it is made here, so that it travels by value and its settings with it."""

    class KleeneMatch:
        def __init__(self, prepared: AnalyzeResult) -> None:
            assert isinstance(prepared, Prepared)
            assert prepared.matcher is not None
            self._rows = RowFeeder(prepared.matcher.start(), prepared.matcher.task.arriving)

        @staticmethod
        def analyze(
            events: AnalyzeArgument,
            query: AnalyzeArgument,
            order_by: AnalyzeArgument | None = None,
            type_column: AnalyzeArgument | None = None,
            tie_break: AnalyzeArgument | None = None,
            language: AnalyzeArgument | None = None,
        ) -> AnalyzeResult:
            try:
                given = Arguments.of(events, query, order_by, type_column, tie_break, language)
                return prepared_for(given, zone, engine)
            except KleeneError as error:
                _raise_text_first(error)

        def eval(self, events: Row, *_: Any, **__: Any) -> Iterator[tuple[Any, ...]]:
            yield from self._rows.feed(events)

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            yield from self._rows.finish()

    return KleeneMatch


def _raise_text_first(error: KleeneError) -> NoReturn:
    """Spark shows a `PySparkValueError` by its text alone, and of all others the traceback before it."""
    raise PySparkValueError(str(error)) from None


# --- what the call says --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call in SQL."""

    schema: StructType
    text: str
    order_by: tuple[str, ...] | None
    type_column: str | None
    tie_break: tuple[str, ...] | None
    language: str

    @classmethod
    def of(
        cls,
        events: AnalyzeArgument,
        query: AnalyzeArgument,
        order_by: AnalyzeArgument | None,
        type_column: AnalyzeArgument | None,
        tie_break: AnalyzeArgument | None,
        language: AnalyzeArgument | None,
    ) -> Arguments:
        if not events.isTable or not isinstance(events.dataType, StructType):
            raise SchemaError(f"the first argument of {NAME} is a table", hint=f"Write: {NAME}(TABLE(name), '…')")
        text = _constant(query, "query")
        if not isinstance(text, str):
            raise SchemaError(
                f"query takes a text, but {shown(text)} was given", hint=f"Write: {NAME}(TABLE(name), '…')"
            )
        return cls(
            events.dataType,
            text,
            _names(order_by, "order_by"),
            "type" if type_column is None else _constant(type_column, "type_column"),
            _names(tie_break, "tie_break"),
            _language(text, None if language is None else _constant(language, "language")),
        )

    def definition(self) -> QueryDefinition:
        if self.language == "sase":
            found = sase.parse(self.text)
            analyze(found)
            check_reads_one(found)
            return found
        found = match_recognize.parse(self.text)
        analyze_row_pattern(found)
        return found


def _constant(argument: AnalyzeArgument, name: str) -> Any:
    if argument.isTable or not argument.isConstantExpression:
        raise SchemaError(
            f"{name} must be a constant, since the columns of the result depend on it", hint="Write it as a literal."
        )
    return argument.value


def _names(argument: AnalyzeArgument | None, name: str) -> tuple[str, ...] | None:
    """One name, or an array of them."""
    value = None if argument is None else _constant(argument, name)
    if value is None:
        return None
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
        raise SchemaError(
            f"{name} takes the name of a column or an array of names, but {shown(value)} was given",
            hint=f"Write: {name} => 'ts' or {name} => array('ts', 'seq')",
        )
    return tuple(names)


def _language(text: str, given: Any) -> str:
    """That which was given, else the one whose queries begin like the text."""
    if given is None:
        return "match_recognize" if language_of(text) == "match_recognize" else "sase"
    if given not in LANGUAGES:
        raise SchemaError(
            f"language takes a name, but {shown(given)} was given", hint=f"Languages: {listed(LANGUAGES)}."
        )
    return str(given)


# --- what Spark is told --------------------------------------------------------------------------------------------


def prepared_for(given: Arguments, zone: str, engine: EngineOptions | None = None) -> Prepared:
    """How Spark splits and sorts the table, and what the tasks do with it."""
    call = read_call(
        given.definition(),
        order_by=given.order_by,
        type_column=given.type_column,
        tie_break=given.tie_break,
        params=None,
        engine=engine,
        spark=None,
        stream=None,
    )
    task = table_task(call, declared_columns(given.schema, call, zone))
    query = task.plan.query
    if isinstance(query, AnalyzedRowPattern) and query.computed:
        raise UnsupportedError(
            f"the key '{printable(query.computed[0][0])}' is an expression, but {NAME} splits and sorts by columns",
            hint="Compute it first: TABLE(SELECT *, … AS key FROM …).",
        )
    reads = task.reads
    return Prepared(
        schema=spark_schema(task.output.result),
        withSinglePartition=not reads.key,
        partitionBy=[PartitioningColumn(_bucket(reads))] if reads.key else [],
        orderBy=[
            OrderingColumn(_comparable(reads, item.name), not item.descending, bool(item.nulls_first))
            for item in reads.order
        ],
        select=[SelectedColumn(_selected(column), column.name) for column in task.arriving],
        matcher=TableMatcher(task),
    )


# Names get into these texts in backquotes, as Spark reads names; nothing else of the query does.


def _bucket(reads: Reads) -> str:
    return f"pmod(xxhash64({', '.join(_comparable(reads, name) for name in reads.key)}), {BUCKETS})"


def _comparable(reads: Reads, name: str) -> str:
    """As `reads.comparable`, for a text."""
    column, text = reads.columns.field(name), quoted(name)
    if is_collated(column):
        return f"collate({text}, 'UTF8_BINARY')"
    if pa.types.is_floating(column.type):
        return f"({text} + 0.0D)"
    return f"to_json({text})" if has_map(column.type) else text


def _selected(column: pa.Field) -> str:
    """Instants travel as numbers: Python shows them in the zone of the worker, where an hour may be there twice."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return f"unix_micros({quoted(column.name)})"
    return quoted(column.name)


# --- inside the tasks ----------------------------------------------------------------------------------------------


class RowFeeder:
    """Rows of Python to Arrow batches for the matcher, and its tables to rows."""

    def __init__(self, matcher: PartitionMatcher, columns: pa.Schema) -> None:
        self._matcher, self._columns = matcher, columns
        self._held: list[Row] = []

    def feed(self, row: Row) -> Iterator[tuple[Any, ...]]:
        self._held.append(row)
        if len(self._held) >= ROWS_AT_ONCE:
            yield from _rows(self._matcher.feed(self._batch()))

    def finish(self) -> Iterator[tuple[Any, ...]]:
        yield from _rows(self._matcher.feed(self._batch()))
        yield from _rows(self._matcher.finish())

    def _batch(self) -> pa.RecordBatch:
        held, self._held = self._held, []
        values: Sequence[Sequence[Any]] = list(zip(*held, strict=True)) if held else [()] * len(self._columns)
        arrays = [_array(column, field) for column, field in zip(values, self._columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._columns)


def _array(values: Sequence[Any], column: pa.Field) -> pa.Array:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return pa.array(values, pa.int64()).cast(column.type)
    return pa.array(map(_plain, values) if pa.types.is_nested(column.type) else values, column.type)


def _plain(value: Any) -> Any:
    """A nested value as Arrow reads it: rows as dicts, maps as pairs."""
    match value:
        case Row():
            return {name: _plain(part) for name, part in value.asDict().items()}
        case list():
            return [_plain(part) for part in value]
        case dict():
            return [(_plain(name), _plain(part)) for name, part in value.items()]
    return value


def _rows(tables: Iterator[pa.Table]) -> Iterator[tuple[Any, ...]]:
    for table in tables:
        columns = [_values(column) for column in table.columns]
        yield from zip(*columns, strict=True)


def _values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    made = _maker(column.type)
    return values if made is None else [None if value is None else made(value) for value in values]


def _maker(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes a value for Spark of one that Arrow gives; None where it is the same."""
    if pa.types.is_map(type_):
        return dict
    if pa.types.is_list(type_) and (part := _maker(type_.value_type)) is not None:
        return lambda values: [None if value is None else part(value) for value in values]
    if pa.types.is_struct(type_):
        parts = {type_.field(n).name: _maker(type_.field(n).type) for n in range(type_.num_fields)}
        return lambda value: {
            name: value[name] if part is None or value[name] is None else part(value[name])
            for name, part in parts.items()
        }
    return None
