"""Several inputs as one: all columns of all of them, and the type of each event."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import pyarrow as pa

from kleene.engine.column_types import attributes_of
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.sources import first_line
from kleene.errors import SchemaError, printable
from kleene.schema import EventSchema
from kleene.source import Location

TYPE_FIELD = pa.field(TYPE_OF_EVENT, pa.string())


def column_or_nulls(table: pa.Table, column: pa.Field, input_name: str) -> pa.ChunkedArray | pa.Array:
    if column.name not in table.column_names:
        return pa.nulls(table.num_rows, column.type)
    values = table.column(column.name)
    try:
        return values if values.type.equals(column.type) else values.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"the attribute '{printable(column.name)}' is {values.type} in '{printable(input_name)}', whose values "
            f"do not all fit {column.type}, the type for all inputs: {first_line(error)}",
            hint="Cast the attribute to one type in all inputs.",
        ) from None


def schema_of_inputs(
    schemas: Mapping[str, pa.Schema], unified: pa.Schema, hidden: frozenset[str] = frozenset()
) -> EventSchema:
    by_type = tuple((name, frozenset(schema.names)) for name, schema in schemas.items())
    return EventSchema(attributes_of(unified), TYPE_OF_EVENT, by_type, hidden=hidden)


def unified_schema(
    schemas: Mapping[str, pa.Schema],
    used: Container[str] | None = None,
    locate: Callable[[str], Location | None] = lambda _: None,
) -> pa.Schema:
    """All columns of all inputs; one that several have and that is used needs a type that holds the values of each.

    `locate` says where in a text an input is named, for the error about two types that do not go together.
    """
    found: dict[str, tuple[str, pa.Field]] = {}
    for input_name, schema in schemas.items():
        for column in schema:
            if column.name not in found:
                found[column.name] = (input_name, column)
                continue
            if used is not None and column.name not in used:
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
                    locate(input_name),
                    "Cast one of them so that both are of one type, or rename one.",
                ) from None
            found[column.name] = (earlier_input, unified)
    return pa.schema([pa.field(column.name, column.type) for _, column in found.values()])
