"""The arguments of a call to one value. Here they are read and checked, and here the plan is made from them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import ModuleType
from typing import Any

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, is_row_pattern
from kleene.analysis.timeouts import check_timeouts
from kleene.engine.inputs import OrderKey, make_order_key
from kleene.engine.nested_times import in_microseconds
from kleene.engine.together import Together
from kleene.errors import SchemaError, UnsupportedError, printable, shown
from kleene.ir.options import NUMBERS, Format, Timeouts
from kleene.ir.query import Measure, QueryDefinition
from kleene.ir.steps import is_steps
from kleene.lang.parameters import bind
from kleene.lang.step_condition import with_parts_of_columns
from kleene.lang.totals import grouping, totals
from kleene.options.checks import checked_choice, checked_flag
from kleene.options.engine import USUAL_ENGINE, EngineOptions, engine_options, usable_cores
from kleene.options.schema import Schema, schema_option
from kleene.options.spark import SparkOptions, spark_options
from kleene.options.statistics import Statistics
from kleene.options.stream import StreamOptions, stream_options
from kleene.plan.plan import Plan, make_plan
from kleene.remembered import remembered
from kleene.wording import said

NO_ORDER = OrderKey(())
_plan = remembered(make_plan)


class Input(Enum):
    """Where events are."""

    TABLE = "a table in this process"
    FRAME = "a Spark DataFrame"
    STREAM = "a stream"


@dataclass(frozen=True, slots=True)
class Call:
    """A query with its parameters bound, and what the call says about it besides its events.

    `spark` and `stream` are None where they were not given.
    """

    definition: QueryDefinition
    order: OrderKey = NO_ORDER
    type_column: str | None = None
    format: Format = Format.ALL
    match_id: bool = False
    match_order: bool = False
    is_compressed: bool = False
    timeouts: bool = False
    kind: str | None = None  # of the table that comes out; None is that of the events
    engine: EngineOptions = USUAL_ENGINE
    spark: SparkOptions | None = None
    stream: StreamOptions | None = None
    schema: Schema | None = None  # the attributes of event types

    @property
    def threads(self) -> int:
        """How many threads read and match events in this process."""
        return usable_cores() if self.engine.threads is None else self.engine.threads

    def plan(self, query: AnalyzedQuery | AnalyzedRowPattern, measured: Statistics | None = None) -> Plan:
        """The plan; statistics that were measured fill in for those that were not given."""
        known = self.engine.known
        if measured is not None:
            known = measured if known is None else replace(known, ranges=measured.ranges, in_window=measured.in_window)
        mode = "compressed" if self.is_compressed else "verbose" if self.definition.grouping is None else "totals"
        timeouts = Timeouts.CLOSED if self.timeouts else Timeouts.NONE
        return _plan(query, replace(self.engine, statistics=known), self.format, mode, timeouts)

    def check_fits(self, events: Input) -> None:
        """An error if an option that was given means nothing for such events."""
        match events:
            case Input.TABLE:
                _refuse("stream", "for streams", self.stream, "the input is a table")
                _refuse("spark", "for Spark DataFrames", self.spark, "the input is in this process")
                _refuse(
                    "match_order",
                    "for Spark DataFrames",
                    self.match_order,
                    "the input is in this process, where rows are in order",
                )
            case Input.FRAME:
                _refuse("stream", "for streams", self.stream, "the input is a table")
                _refuse("as_", "for events in this process", self.kind, "Spark DataFrames were given", _SPARKS_OWN)
            case Input.STREAM:
                _refuse("as_", "for events in this process", self.kind, "a stream was given")
                _refuse("match_order", "for tables", self.match_order, "a stream gives out matches as they complete")
                self._check_groups_end()
                if self.spark is not None and self.spark.is_for_tables:
                    name = "range_size" if self.spark.layout == "auto" else f"layout='{self.spark.layout}'"
                    arrival = said(python="write stream=kleene.StreamOptions(order='arrival')", shell="use --arrival")
                    presorted = f"On a stream, {arrival}."
                    hint = presorted if self.spark.is_presorted else f"Leave {name} out."
                    _refuse(name, "for tables", True, "a stream is grouped by its state", hint)

    def _check_groups_end(self) -> None:
        """An error if aggregates over all matches are asked for groups that a stream never comes to the end of."""
        groups = self.definition.grouping
        if groups is not None and not groups.by_event and groups.window is None:
            group = "a key" if groups.by_partition else "all matches"
            raise UnsupportedError(
                f"aggregates over {group} are complete when there are no more events, and a stream has no end",
                hint="Ask for groups that end: per='event', a window of time such as per='1 hour', or "
                "per=['partition', '1 hour'].",
            )


_SPARKS_OWN = "Leave it out, and convert the result: toArrow() or toPandas()."


def _refuse(name: str, use: str, given: object, why: str, hint: str | None = None) -> None:
    if given is not None and given is not False:
        raise UnsupportedError(f"{name} is {use}, but {why}", hint=hint or f"Leave {name} out.")


def read_call(
    definition: QueryDefinition,
    *,
    order_by: str | Sequence[str] | None,
    type_column: str | None,
    tie_break: str | Sequence[str] | None,
    params: object,
    format: object = "all",
    match_id: bool = False,
    match_order: bool = False,
    is_compressed: bool = False,
    timeouts: bool = False,
    as_: str | None = None,
    aggregates: object = None,
    is_over_all: bool = False,
    per: object = None,
    numbers: object = "text",
    engine: EngineOptions | str | None,
    spark: SparkOptions | None,
    stream: StreamOptions | None,
    schema: object = None,
) -> Call:
    """The call that the arguments say; an error where they are wrong, or do not fit the query.

    `is_over_all`: whether aggregates over all matches that the query itself returns are what is asked for.
    """
    if aggregates is not None:
        definition = _with_totals(definition, totals(aggregates), per, numbers)
    elif definition.grouping is not None:
        if not is_over_all:
            raise _over_all(definition)
        definition = _with_totals(definition, definition.measures or (), per, numbers)
    if is_steps(definition):
        definition = with_parts_of_columns(definition)
    [bound] = bind((definition,), params)
    call = Call(
        bound,
        make_order_key(() if order_by is None else order_by, tie_break),
        type_column,
        Format(checked_choice("format", format, [member.value for member in Format])),
        checked_flag("match_id", match_id),
        checked_flag("match_order", match_order),
        checked_flag("compressed", is_compressed),
        checked_flag("timeouts", timeouts),
        None if as_ is None else checked_choice("as_", as_, KINDS),
        engine_options(engine),
        spark_options(spark),
        stream_options(stream),
        schema_option(schema),
    )
    if call.is_compressed:
        _check_compressed(call)
    if call.timeouts:
        _check_timeouts(call)
    if is_steps(bound):
        _check_steps(call)
    if is_row_pattern(bound):
        _check_row_pattern(call, order_by is not None or tie_break is not None)
    return call


def _over_all(definition: QueryDefinition) -> UnsupportedError:
    [first, *_] = definition.measures or ()
    use = said(
        python="Use aggregate(events, per=…), or compressed(events) for a row per completing event",
        shell="Add them up in Python, with aggregate(events, per=…)",
    )
    return UnsupportedError(
        "the query returns aggregates over all its matches, and not values of each",
        (first.source or definition.source).locate(first.expression.span),
        f"{use}; values of one match are aggregates of a[].x.",
    )


def _check_timeouts(call: Call) -> None:
    if call.is_compressed or call.definition.grouping is not None:
        raise UnsupportedError(
            "timeouts are rows of runs beside those of matches, but "
            + ("compressed output holds" if call.is_compressed else "aggregates add up")
            + " matches only",
            hint="Leave timeouts out, or use match.",
        )
    check_timeouts(call.definition)


def _with_totals(
    definition: QueryDefinition, aggregates: tuple[Measure, ...], per: object, numbers: object
) -> QueryDefinition:
    """The query with aggregates over all matches in the place of what it returns of each."""
    if is_row_pattern(definition) or is_steps(definition):
        raise UnsupportedError(
            "aggregates over all matches are for SASE queries",
            hint="Use match, and aggregate the rows that it returns.",
        )
    groups = grouping(per, checked_choice("numbers", numbers, NUMBERS))
    return replace(definition, measures=aggregates, grouping=groups)


def _check_compressed(call: Call) -> None:
    given = {"format": call.format is not Format.ALL, "match_id": call.match_id, "match_order": call.match_order}
    name = next((name for name, is_given in given.items() if is_given), None)
    if name is not None:
        raise UnsupportedError(
            f"compressed output holds all matches of an event together, but {name} is about single matches",
            hint=f"Leave {name} out, or use match.",
        )


def _check_steps(call: Call) -> None:
    if call.is_compressed:
        raise UnsupportedError("compressed output is for SASE queries", hint="Use match.")
    if call.format is not Format.ALL:
        raise UnsupportedError("format is for SASE queries", hint="In a pattern of steps, after_match says this.")


def _check_row_pattern(call: Call, is_ordered: bool) -> None:
    if call.match_id:
        raise SchemaError(
            "match_id is for SASE queries",
            hint="Return the partition's columns and MATCH_NUMBER(), which together identify a match.",
        )
    if call.match_order and call.definition.frame is not None:
        raise SchemaError(
            "match_order is for matches, but a window gives the rows of the input", hint="Order by their columns."
        )
    if is_ordered:
        raise SchemaError(
            "this query sets its own order, but order_by or tie_break was given too", hint="Leave them out of match."
        )
    if call.schema is not None and call.schema.types:
        raise SchemaError(
            "attributes by event type are for SASE queries: a row pattern knows no types",
            hint=said(python="Leave kleene.Schema out.", shell="Leave --types out."),
        )
    if call.format is not Format.ALL:
        raise SchemaError("format is for SASE queries", hint="In a row pattern, AFTER MATCH SKIP says this.")


def check_reads_one(definition: QueryDefinition) -> None:
    """An error if the query reads several streams, which have their names in a program only."""
    if len(definition.from_streams) > 1:
        raise UnsupportedError(
            f"a query by itself reads one stream, but FROM names {len(definition.from_streams)}",
            definition.source.locate(definition.from_spans[1]),
            "Use kleene.program(text).match({'name': table, …}, order_by=…), which reads streams by their names.",
        )


def is_spark_sql(spark: Any, text: Any, tables: Any, as_: Any, allow_jvm_calls: Any, schema: Any) -> bool:
    """Whether arguments of `sql` ask for Spark, and not for this process; an error if they ask for both."""
    example = "Write kleene.sql(text, tables={'trades': table}), or on Spark: kleene.sql(spark, text)."
    if spark is None or isinstance(spark, str):
        if isinstance(text, Mapping) or (isinstance(spark, str) and text is not None):
            raise SchemaError(
                f"after the text, kleene.sql takes arguments by name, but {shown(text)} was given", None, example
            )
        if not isinstance(tables, Mapping):
            raise SchemaError(
                "no tables were given"
                if tables is None
                else f"tables is a dict by name, but {shown(tables)} was given",
                hint=example,
            )
        _refuse("allow_jvm_calls", "for Spark", allow_jvm_calls, "the text runs in this process")
        _refuse("schema", "for Spark", schema, "the text runs in this process")
        if any(is_spark(table) for table in tables.values()):
            raise SchemaError(
                "a table is a Spark DataFrame, but the text runs in this process",
                hint="Run the text on Spark: df.createOrReplaceTempView('trades'), and kleene.sql(spark, text).",
            )
        return False
    _refuse(
        "tables",
        "for SQL in this process",
        tables,
        "a Spark session was given",
        "Make views of them: df.createOrReplaceTempView('trades')",
    )
    _refuse("as_", "for SQL in this process", as_, "a Spark session was given", _SPARKS_OWN)
    return True


def input_of(events: Any) -> Input:
    """Where the events, or those of a dict, are."""
    if isinstance(events, Together):
        return input_of(events.inputs)
    if not is_spark(events):
        return Input.TABLE
    if is_scan(events):
        return Input.FRAME
    is_stream = spark_module("layouts.stream").is_stream(as_spark(events))
    return Input.STREAM if is_stream else Input.FRAME


def is_spark(events: Any) -> bool:
    """Whether the events, or those of a dict, are Spark DataFrames (classic or Connect)."""
    if isinstance(events, Mapping):
        kinds = {is_spark(part) for part in events.values()}
        if len(kinds) > 1:
            raise SchemaError(
                "some inputs are Spark DataFrames, and some are not",
                hint="Give all of them as Spark DataFrames: spark.createDataFrame(arrow_table).",
            )
        return True in kinds
    if is_scan(events):
        return events.session is not None
    # By name, so that asking does not import Spark.
    return _is_frame_of(events, "pyspark.sql") or _is_frame_of(events, "pyspark.pandas")


def is_scan(events: Any) -> bool:
    """Whether the events are a `kleene.scan`: by name, so that asking does not import what reads files."""
    return type(events).__module__ == "kleene.scanning.scan" and type(events).__name__ == "Scan"


def in_session(events: Any, spark: Any) -> tuple[Any, Any]:
    """The events and the options, where a session of Spark was given instead of options: a scan runs in it."""
    is_session = any(base.__name__ == "SparkSession" for base in type(spark).__mro__)
    return (replace(events, session=spark), None) if is_session and is_scan(events) else (events, spark)


def _is_frame_of(events: Any, package: str) -> bool:
    bases = type(events).__mro__
    return any(base.__module__.startswith(package) and base.__name__ == "DataFrame" for base in bases)


KINDS = ("arrow", "pandas", "polars")


def like_events(found: Any, events: Any, kind: str | None = None) -> Any:
    """The result as the kind of table that was asked for, or that the events are: pandas, polars, or else Arrow."""
    parts = list(_leaves(events))
    if kind is None:
        kind = next((name for name in ("pandas", "polars") if parts and all(_is_of(part, name) for part in parts)), "")
    if kind == "pandas":
        return _as_pandas(found.replace_schema_metadata(None))
    if kind == "polars":
        _check_names_differ(found.column_names)
        return _polars().from_arrow(found)
    return found


def _check_names_differ(names: Sequence[str]) -> None:
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        raise SchemaError(
            f"the result has the column '{printable(twice)}' twice, which polars does not allow",
            hint="Name each column once in PARTITION BY and ORDER BY, or ask for an Arrow table: as_='arrow'.",
        )


def _as_pandas(table: Any) -> Any:
    """The table in pandas; whole numbers with NULLs among them stay whole numbers, and nested times stay times."""
    pandas = importlib.import_module("pandas")
    frame = table.to_pandas()
    for number, field in enumerate(table.schema):
        plainer = in_microseconds(field.type)
        if plainer != field.type:
            frame.isetitem(number, _with_times(table.column(number), plainer, pandas))
        if str(field.type) in _WHOLE and table.column(number).null_count:
            nullable = getattr(pandas, _WHOLE[str(field.type)])()
            frame.isetitem(number, table.column(number).to_pandas(types_mapper={field.type: nullable}.get))
    return frame


def _with_times(column: Any, type_: Any, pandas: ModuleType) -> Any:
    try:
        return column.cast(type_).to_pandas()
    except ValueError:  # finer than microseconds: slower, and nothing is lost
        return pandas.Series(column.to_pylist(), dtype=object)


_WHOLE = {
    name: f"{'UI' if name[0] == 'u' else 'I'}nt{name.lstrip('uint')}Dtype"
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}


def _polars() -> ModuleType:
    try:
        return importlib.import_module("polars")
    except ModuleNotFoundError:
        raise UnsupportedError(
            "as_='polars' needs the package 'polars'", hint="Install it: pip install polars"
        ) from None


def _is_of(events: Any, package: str) -> bool:
    """Whether the events are a frame of the package: pandas', or polars', lazy or not."""
    bases = [base for base in type(events).__mro__ if base.__module__.split(".")[0] == package]
    return any(base.__name__ in ("DataFrame", "LazyFrame") for base in bases)


def as_spark(events: Any) -> Any:
    """The events; those in pandas' way on Spark as Spark's own DataFrames, whose rows have no index."""
    if isinstance(events, Mapping):
        return {name: as_spark(part) for name, part in events.items()}
    if not is_pandas_on_spark(events):
        return events
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it tells that the index gets lost, which is what is wanted
        return events.to_spark()


def is_pandas_on_spark(events: Any) -> bool:
    parts = list(_leaves(events))
    return bool(parts) and all(_is_frame_of(part, "pyspark.pandas") for part in parts)


def _leaves(events: Any) -> Sequence[Any]:
    if isinstance(events, Mapping):
        return [leaf for part in events.values() for leaf in _leaves(part)]
    return [events]


def local_sql_module(name: str) -> ModuleType:
    """A module of SQL in this process; an error if what it needs is missing, or too old to give the right rows."""
    for package, least in (("duckdb", (1, 4)), ("sqlglot", (30, 24))):
        try:
            version = str(importlib.import_module(package).__version__)
        except ModuleNotFoundError:
            raise UnsupportedError(
                f"SQL without Spark needs the package '{package}'", hint="Install it: pip install 'kleene[sql]'"
            ) from None
        if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < least:
            wanted = ".".join(map(str, least))
            raise UnsupportedError(
                f"SQL without Spark needs {package} {wanted} or newer, but {version} is installed",
                hint="Install it: pip install --upgrade 'kleene[sql]'",
            )
    return importlib.import_module(f"kleene.local_sql.{name}")


def scan_module(name: str) -> ModuleType:
    """What reads files, which takes a while to import."""
    return importlib.import_module(f"kleene.scanning.{name}")


def spark_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"kleene.spark.{name}")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"matching on Spark needs the package '{(error.name or '').split('.')[0]}'",
            hint="Install it: pip install 'pyspark[sql]>=4,<5'",
        ) from None
