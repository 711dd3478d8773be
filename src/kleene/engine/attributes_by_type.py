"""A table of events of several types, and what the user says of their attributes, to what is known of its columns.

An event's value of an attribute that its type lacks is NULL from here on, whatever the column holds: the table means
the same as one input for each type, with that type's columns alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.column_types import attributes_of
from kleene.errors import SchemaError, did_you_mean, listed, printable
from kleene.ir.paths import path_of
from kleene.options.schema import Schema
from kleene.schema import EventSchema
from kleene.wording import said


def schema_of_table(
    columns: pa.Schema,
    type_column: str | None,
    common: Iterable[str],
    given: Schema | None,
    hidden: frozenset[str] = frozenset(),
) -> EventSchema:
    """What is known of the columns of one table; `hidden` are those that were made for parts of others."""
    return with_types(EventSchema(attributes_of(columns), type_column, hidden=hidden), common, given)


def with_types(schema: EventSchema, common: Iterable[str], given: Schema | None) -> EventSchema:
    """The schema with what is given of the attributes of each type; nothing is: every type has all of them.

    `common` are the columns of the order. With that of the type, they belong to every type. A part of another column
    belongs to the types that this one belongs to.
    """
    if given is None:
        return schema
    names = [name for name, _ in schema.attributes]
    if schema.type_column is None:
        raise SchemaError(
            "a schema gives the attributes of each event type, but no column of the input tells the type",
            hint=said(
                python=f"Name such a column with type_column=…, or leave schema out. Columns: {listed(schema)}.",
                shell=f"Name such a column with --type-column, or leave --types out. Columns: {listed(schema)}.",
            ),
        )
    check_attributes(given, list(schema))
    shared = {*common, schema.type_column}
    by_type = tuple((name, _attributes(names, shared.union(own), schema.hidden)) for name, own in given.types)
    return replace(schema, by_type=by_type, other_types=frozenset(names), is_listed=True)


def refuse_for_inputs(given: Schema | None) -> None:
    """An error if attributes are given where inputs come by event type, whose columns are their attributes."""
    if given is not None:
        raise SchemaError(
            "a schema gives the attributes of event types in one table, but inputs by event type were given",
            hint=said(python="Leave schema out", shell="Leave --types out")
            + ": the attributes of a type are the columns of its input.",
        )


def check_attributes(given: Schema, columns: Sequence[str]) -> None:
    """An error if the schema names an attribute that is no column."""
    for event_type, own in given.types:
        for name in own:
            if name not in columns:
                raise SchemaError(
                    f"the schema gives '{printable(event_type)}' the attribute '{printable(name)}', but the input has "
                    "no such column",
                    hint=f"Columns: {listed(columns)}.{did_you_mean(name, columns)}",
                )


def _attributes(names: Iterable[str], own: set[str], hidden: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if name in own or (name in hidden and _column_of(name) in own))


def _column_of(name: str) -> str:
    path = path_of(name)
    return name if path is None else path.column


def types_without(schema: EventSchema, name: str) -> list[str]:
    """The types whose events lack the attribute, among those that are named."""
    return [event_type for event_type, own in schema.by_type or () if name not in own]


def with_own_attributes(table: pa.Table, schema: EventSchema) -> pa.Table:
    """The table, with NULL for each attribute that the type of the event lacks; it has the type column."""
    if schema.by_type is None or schema.type_column is None:
        return table
    types = table.column(schema.type_column)
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        lacking = types_without(schema, field.name) if field.name in schema else []
        if lacking:
            is_lacking = pc.is_in(types, value_set=pa.array(lacking, pa.string()))
            column = pc.if_else(is_lacking, pa.scalar(None, field.type), column)
        columns.append(column)
    return pa.table(columns, schema=table.schema)
