"""Anything that holds events to one sorted Arrow table with its schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.events import TYPE_OF_EVENT, check_order_key
from kleene.engine.sorting import sorted_table
from kleene.errors import SchemaError, did_you_mean, listed, printable, shown
from kleene.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    FLOAT,
    INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    STRING,
    OpaqueType,
    Schema,
    Type,
    decimal,
    timestamp,
)

DEFAULT_TYPE_COLUMN = "type"


@dataclass(frozen=True, slots=True)
class OrderKey:
    """The order key, and the columns that decide between events of equal keys."""

    order_by: tuple[str, ...]
    tie_break: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.order_by + self.tie_break))


def make_order_key(order_by: str | Sequence[str], tie_break: str | Sequence[str] | None) -> OrderKey:
    return OrderKey(
        column_names(order_by, "order_by"), () if tie_break is None else column_names(tie_break, "tie_break")
    )


def column_names(given: object, argument: str) -> tuple[str, ...]:
    """The names that an argument gives: one, or a list of them, whose order matters."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
        raise SchemaError(
            f"{argument} takes the name of a column or a list of names, and {shown(given)} was given",
            hint=f"Write: {argument}='ts' or {argument}=['ts', 'seq']",
        )
    return tuple(names)


def read_events(events: object, order: OrderKey, type_column: str | None) -> tuple[pa.Table, Schema]:
    """The events in their order, and what is known of their columns.

    >>> table, schema = read_events(pa.table({"type": ["B", "A"], "t": [2, 1]}), OrderKey(("t",)), "type")
    >>> table.column("type").to_pylist(), schema.type_column
    (['A', 'B'], 'type')
    """
    if isinstance(events, Mapping):
        check_input_names(events)
        tables = {name: _plain_table(part, f"input '{printable(name)}'") for name, part in events.items()}
        for name, part in tables.items():
            check_order_columns(order, part.column_names, f"input '{printable(name)}'")
        table, schema = _read_inputs(tables)
    else:
        table = _plain_table(events, "the input")
        check_order_columns(order, table.column_names, "the input")
        schema = Schema(attributes_of(table.schema), checked_type_column(table.schema, type_column))
    check_order_key(table, order.order_by)
    return sorted_table(table, order.columns), schema


def check_input_names(inputs: Mapping[Any, object]) -> None:
    for name in inputs:
        try:
            is_name = isinstance(name, str) and bool(name.encode())
        except UnicodeEncodeError:
            is_name = False
        if not is_name:
            raise SchemaError(
                f"inputs are given by the names of event types, and {shown(name)} is none",
                hint="Write: {'Shelf': shelf_readings, 'Exit': exit_readings}",
            )


def read_rows(events: object) -> pa.Table:
    """A table for a row pattern, which brings its own order and knows no event types."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, and a dict was given", hint="Give the table itself.")
    return _plain_table(events, "the input")


def _plain_table(events: object, what: str) -> pa.Table:
    """The input as a table with unique column names, encodings and string variants made plain."""
    table = _as_table(events, what)
    check_names(table.column_names, what)
    for number, column in enumerate(table.schema):
        try:
            plain = _plain_column(table.column(number))
            if pa.types.is_string(plain.type):
                plain.validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SchemaError(
                f"the column '{printable(column.name)}' of type {column.type} cannot be read: {_first_line(error)}",
                hint="Drop it, or convert it first.",
            ) from None
        if plain is not table.column(number):
            table = table.set_column(number, column.name, plain)
    return table


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_run_end_encoded(column.type):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _plain_column(pa.chunked_array(chunks, column.type.value_type))
    if pa.types.is_dictionary(column.type):
        chunks = [chunk.dictionary_decode() for chunk in column.chunks]
        return _plain_column(pa.chunked_array(chunks, column.type.value_type))
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if pa.types.is_large_binary(column.type) or pa.types.is_binary_view(column.type):
        return column.cast(pa.binary())
    return column


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return printable(lines[0], 200) if lines else type(error).__name__


def _as_table(events: object, what: str) -> pa.Table:
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, pa.RecordBatchReader) or hasattr(events, "__arrow_c_stream__"):
        try:
            if type(events).__module__.startswith("pandas.") and hasattr(events, "columns"):
                return pa.Table.from_pandas(events, preserve_index=False)  # an index is not a column
            reader = events if isinstance(events, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(events)
            return reader.read_all()
        except Exception as error:  # the stream is somebody else's code, and may raise anything
            raise SchemaError(
                f"{what}, a {type(events).__name__}, cannot be read: {type(error).__name__}: {_first_line(error)}",
                hint="Convert it to a pyarrow.Table first.",
            ) from None
    if hasattr(events, "collect") and type(events).__module__.startswith("polars"):
        raise SchemaError(
            f"{what} is a polars {type(events).__name__}, which has no rows yet", hint="Call .collect() on it."
        )
    raise SchemaError(
        f"{what} is {shown(events)}, which cannot be read as events",
        hint="Events are a pyarrow.Table, anything with the Arrow C stream protocol (a pandas or polars DataFrame, a "
        "DuckDB result), a Spark DataFrame, or a dict of such things by event type.",
    )


def check_names(names: Sequence[str], what: str) -> None:
    if not names:
        raise SchemaError(f"{what} has no columns", hint="Events need at least a column to order by.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SchemaError(f"{what} has two columns '{printable(twice[0])}'", hint="Rename one of them.")
    if TYPE_OF_EVENT in names:
        raise SchemaError(f"{what} has a column '{TYPE_OF_EVENT}', a name that Kleene uses", hint="Rename it.")


def attributes_of(schema: pa.Schema) -> tuple[tuple[str, Type], ...]:
    return tuple((column.name, attribute_type(column.type)) for column in schema)


def attribute_type(type_: pa.DataType) -> Type:
    """What Kleene computes with for a column of the Arrow type."""
    if pa.types.is_dictionary(type_):
        return attribute_type(type_.value_type)
    if pa.types.is_integer(type_):
        if pa.types.is_uint64(type_):
            return OpaqueType("uint64", "Cast it to int64 or to decimal first.")
        return INTEGER
    if pa.types.is_floating(type_):
        return FLOAT
    if pa.types.is_decimal(type_):
        if type_.precision > MOST_DECIMAL_DIGITS or not 0 <= type_.scale <= MOST_DECIMAL_DIGITS:
            return OpaqueType(str(type_), f"Cast it to a decimal of at most {MOST_DECIMAL_DIGITS} digits, or to float.")
        return decimal(type_.scale)
    if pa.types.is_timestamp(type_):
        return timestamp(type_.tz)
    simple: tuple[tuple[Any, Type], ...] = (
        (pa.types.is_boolean, BOOLEAN),
        (pa.types.is_string, STRING),
        (pa.types.is_date, DATE),
        (pa.types.is_duration, DURATION),
        (pa.types.is_null, NULL),
    )
    for is_kind, found in simple:
        if is_kind(type_):
            return found
    return OpaqueType(str(type_), "Cast it to a number, a string, a boolean, a date or a timestamp first.")


def checked_type_column(schema: pa.Schema, type_column: str | None) -> str | None:
    """The type column, if the input has it; one that the caller named must exist."""
    if type_column is None:
        return None
    if not isinstance(type_column, str):
        raise SchemaError(f"type_column takes the name of a column or None, and {shown(type_column)} was given")
    if type_column not in schema.names:
        if type_column == DEFAULT_TYPE_COLUMN:
            return None
        raise SchemaError(
            f"the input has no column '{printable(type_column)}' to tell the type of an event",
            hint=f"Columns: {listed(schema.names)}.{did_you_mean(type_column, schema.names)}",
        )
    found = schema.field(type_column).type
    if not (pa.types.is_string(found) or pa.types.is_null(found)):
        raise SchemaError(
            f"the type column '{printable(type_column)}' is {found}, and event types are strings",
            hint="Cast it to string, name another column with type_column=…, or use type_column=None.",
        )
    return type_column


def check_order_columns(order: OrderKey, columns: Sequence[str], what: str) -> None:
    if not order.order_by:
        raise SchemaError("no order key is given", hint=f"Name the column that orders the events: {listed(columns)}.")
    for name in order.columns:
        if name not in columns:
            raise SchemaError(
                f"{what} has no column '{printable(name)}' to order by",
                hint=f"Columns: {listed(columns)}.{did_you_mean(name, columns)}",
            )


def _read_inputs(tables: dict[str, pa.Table]) -> tuple[pa.Table, Schema]:
    """Several inputs by event type as one table: all columns of all of them, and the type of each event."""
    if not tables:
        raise SchemaError("the dict of inputs is empty", hint="Give at least one input: {'Shelf': table}.")
    unified = unified_schema({name: table.schema for name, table in tables.items()})
    parts = []
    for name, table in tables.items():
        columns = [_column_or_nulls(table, column, name) for column in unified]
        columns.append(pa.array([name] * table.num_rows, pa.string()))
        parts.append(pa.table(columns, schema=unified.append(pa.field(TYPE_OF_EVENT, pa.string()))))
    return pa.concat_tables(parts), schema_of_inputs({name: table.schema for name, table in tables.items()}, unified)


def _column_or_nulls(table: pa.Table, column: pa.Field, input_name: str) -> pa.ChunkedArray | pa.Array:
    if column.name not in table.column_names:
        return pa.nulls(table.num_rows, column.type)
    values = table.column(column.name)
    try:
        return values if values.type.equals(column.type) else values.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"the attribute '{printable(column.name)}' is {values.type} in '{printable(input_name)}', whose values "
            f"do not all fit {column.type}, the type for all inputs: {_first_line(error)}",
            hint="Cast the attribute to one type in all inputs.",
        ) from None


def schema_of_inputs(schemas: Mapping[str, pa.Schema], unified: pa.Schema) -> Schema:
    by_type = tuple((name, frozenset(schema.names)) for name, schema in schemas.items())
    return Schema(attributes_of(unified), by_type=by_type)


def unified_schema(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """All columns of all inputs; a column that several have needs one type that holds the values of each."""
    found: dict[str, tuple[str, pa.Field]] = {}
    for input_name, schema in schemas.items():
        for column in schema:
            if column.name not in found:
                found[column.name] = (input_name, column)
                continue
            earlier_input, earlier = found[column.name]
            try:
                unified = pa.unify_schemas(
                    [pa.schema([earlier]), pa.schema([column])], promote_options="permissive"
                ).field(0)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                raise SchemaError(
                    f"the attribute '{printable(column.name)}' is {earlier.type} in input '{printable(earlier_input)}' "
                    f"and {column.type} in input '{printable(input_name)}'",
                    hint="Cast one of them so that both are of one type, or rename one.",
                ) from None
            found[column.name] = (earlier_input, unified)
    return pa.schema([pa.field(column.name, column.type) for _, column in found.values()])
