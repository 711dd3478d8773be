"""Anything that holds events to one sorted Arrow table with its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.engine.events import TYPE_OF_EVENT, check_order_key
from kleene.engine.nested import nested_columns, with_nested
from kleene.engine.sorting import sorted_table
from kleene.engine.sources import Source, first_line, make_source
from kleene.engine.unencoded import is_list, unencoded, unencoded_type
from kleene.errors import KleeneError, SchemaError, did_you_mean, listed, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection
from kleene.ir.paths import Mention, mentions, path_of, spoken
from kleene.ir.query import Measure, QueryDefinition
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    STRING,
    TIME,
    EventSchema,
    OpaqueType,
    Type,
    array,
    decimal,
    duration,
    is_plain,
    map_of,
    struct,
    timestamp,
)
from kleene.wording import said

DEFAULT_TYPE_COLUMN = "type"
TYPE_FIELD = pa.field(TYPE_OF_EVENT, pa.string())


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
            f"{argument} takes the name of a column or a list of names, but {shown(given)} was given",
            hint=f"Write: {argument}='ts' or {argument}=['ts', 'seq']",
        )
    return tuple(names)


@dataclass(frozen=True, slots=True)
class EventSource:
    """Events that are not read yet: what is known of their columns, and a way to read some of them, in input order."""

    columns: pa.Schema
    schema: EventSchema
    read: Callable[[Sequence[str]], pa.Table]
    ordered: frozenset[str] = frozenset()  # categories with an order of their own


@dataclass(frozen=True, slots=True)
class Mentioned:
    """The names of columns that a query and its call use; those of `folded` in any case of letters."""

    exact: frozenset[str]
    folded: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return name in self.exact or (isinstance(name, str) and name.lower() in self.folded)


def mentioned_names(
    definition: QueryDefinition | None, order: OrderKey, type_column: str | None = None
) -> Mentioned | None:
    """The columns that matter; None if all of them do, since the query gives out whole events."""
    if definition is None or _gives_out_events(definition):
        return None
    exact, folded = {TYPE_OF_EVENT, type_column or ""}, set()
    for mention in (*mentions(definition), *map(Mention, order.columns)):
        path = path_of(mention.name)
        for name in (mention.name, *([] if path is None else [path.column])):
            if mention.exact:
                exact.add(name)
            else:
                folded.add(name.lower())
    return Mentioned(frozenset(exact), frozenset(folded))


def _is_whole(measure: Measure) -> bool:
    """Whether RETURN asks for whole events: *, a.* or, as it seems, a."""
    expression = measure.expression
    return isinstance(expression, ir.Events) or (isinstance(expression, ir.Attribute) and expression.variable is None)


def _gives_out_events(definition: QueryDefinition) -> bool:
    if definition.selection is Selection.EVERY_RUN:
        return definition.measures is None or any(map(_is_whole, definition.measures))
    return definition.rows_per_match is not RowsPerMatch.ONE


def open_events(
    events: object, order: OrderKey, type_column: str | None, definition: QueryDefinition | None = None
) -> EventSource:
    """The events of a SASE query, or of any query where none is named; only the columns that it reads must be in order.

    >>> source = open_events(pa.table({"type": ["B", "A"], "t": [2, 1]}), OrderKey(("t",)), "type")
    >>> source.schema.type_column, source.read(["t"]).to_pydict()
    ('type', {'t': [2, 1]})
    """
    used = mentioned_names(definition, order, type_column)
    if isinstance(events, Mapping):
        _check_inputs(events)
        opened = {
            name: _opened(part, f"input '{printable(name)}'", order, definition, used) for name, part in events.items()
        }
        hidden = frozenset(added for _, names in opened.values() for added in names)
        return _several({name: source for name, (source, _) in opened.items()}, used, hidden)
    source, hidden = _opened(events, "the input", order, definition, used)
    columns = source.columns
    return EventSource(
        columns,
        EventSchema(attributes_of(columns), checked_type_column(columns, type_column), hidden=hidden),
        source.read,
        source.ordered,
    )


def open_rows(events: object, definition: QueryDefinition | None = None) -> EventSource:
    """A table for a row pattern, which brings its own order and knows no event types."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, but a dict was given", hint="Give the table itself.")
    used = mentioned_names(definition, OrderKey(()))
    source, hidden = _opened(events, "the input", None, definition, used)
    schema = EventSchema(attributes_of(source.columns), hidden=hidden)
    return EventSource(source.columns, schema, source.read, source.ordered)


def read_rows(events: object) -> pa.Table:
    """All columns of one table."""
    source = open_rows(events)
    return source.read(source.columns.names)


def read_events(events: object, order: OrderKey, type_column: str | None) -> tuple[pa.Table, EventSchema]:
    """All columns of the events, in their order, and what is known of them.

    >>> table, schema = read_events(pa.table({"type": ["B", "A"], "t": [2, 1]}), OrderKey(("t",)), "type")
    >>> table.column("type").to_pylist(), schema.type_column
    (['A', 'B'], 'type')
    """
    source = open_events(events, order, type_column)
    return in_order(source.read(source.columns.names), order), source.schema


def in_order(table: pa.Table, order: OrderKey) -> pa.Table:
    check_order_key(table, order.order_by)
    return sorted_table(table, order.columns)


def category_notes(definition: QueryDefinition, order: OrderKey, ordered: frozenset[str]) -> Iterator[str]:
    """What to tell about categories with an order of their own that the query compares: it compares their texts."""
    used = {*order.columns, *(key.name for key in _sort_attributes(definition))}
    for expression, _ in spoken(definition):
        for node in ir.walk(expression):
            is_order = isinstance(node, ir.Comparison) and node.operator not in ("=", "!=")
            is_extreme = isinstance(node, ir.Aggregate) and node.function in ("max", "max_by", "min", "min_by")
            if is_order or is_extreme or isinstance(node, (ir.Between, ir.OrderKey)):
                used |= {part.name for part in ir.walk(node) if isinstance(part, ir.Attribute)}
    for name in sorted(used & ordered):
        yield (
            f"the column '{printable(name)}' is of categories that have an order of their own, but Kleene compares "
            "their texts, in alphabetical order; give it their codes if their order matters"
        )


def _sort_attributes(definition: QueryDefinition) -> list[ir.Attribute]:
    return [key.expression for key in definition.order_by if isinstance(key.expression, ir.Attribute)]


def _opened(
    events: object,
    what: str,
    order: OrderKey | None,
    definition: QueryDefinition | None,
    used: Mentioned | None,
) -> tuple[Source, frozenset[str]]:
    """The source with parts of nested columns as columns, all of them plain; and which columns were added so."""
    source = make_source(events, what, used)
    check_names(source.columns.names, what)
    named = [*(() if order is None else map(Mention, order.columns))]
    nested = nested_columns([*named, *(() if definition is None else mentions(definition))], source.columns)
    source = _plain(with_nested(source, nested), what)
    added = frozenset(item.name for item in nested)
    if order is not None:
        check_order_columns(order, source.columns.names, what, source.hint, added)
    return source, added


def _check_inputs(inputs: Mapping[Any, object]) -> None:
    check_input_names(inputs)
    if not inputs:
        raise SchemaError("the dict of inputs is empty", hint="Give at least one input: {'Shelf': table}.")
    for part in inputs.values():
        if part is None or isinstance(part, (bool, int, float)):
            raise SchemaError(
                f"a dict holds inputs by event type, but {shown(part)} in it is a value",
                hint="One event is a list with one dict: [event].",
            )


def check_input_names(inputs: Mapping[Any, object]) -> None:
    for name in inputs:
        try:
            is_name = isinstance(name, str) and bool(name.encode())
        except UnicodeEncodeError:
            is_name = False
        if not is_name:
            raise SchemaError(
                f"inputs are given by the names of event types, but {shown(name)} is not a name",
                hint=said(
                    python="Write: {'Shelf': shelf_readings, 'Exit': exit_readings}",
                    shell="Write: --input Shelf=shelf.csv --input Exit=exit.csv",
                ),
            )


def _plain(source: Source, what: str) -> Source:
    """The source, encodings and string variants made plain; an error names the column that cannot be read."""

    def read(names: Sequence[str]) -> pa.Table:
        try:
            table = source.read(names)
        except KleeneError:
            raise
        except Exception as error:  # what holds the events is somebody else's code
            raise SchemaError(f"{what} cannot be read: {type(error).__name__}: {first_line(error)}") from None
        return pa.table([_plain_column(column, name) for name, column in zip(names, table.columns, strict=True)], names)

    columns = pa.schema([pa.field(column.name, unencoded_type(column.type)) for column in source.columns])
    return Source(columns, read, source.hint, source.ordered)


def _plain_column(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    try:
        plain = unencoded(column)
        if pa.types.is_string(plain.type):
            plain.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaError(
            f"the column '{printable(name)}' of type {column.type} cannot be read: {first_line(error)}",
            hint="Drop it, or convert it first.",
        ) from None
    return plain


def check_names(names: Sequence[str], what: str) -> None:
    if not names:
        raise SchemaError(f"{what} has no columns", hint="Events need at least a column to order by.")
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
            return decimal(0)  # it may hold what no signed integer can
        return INTEGER
    if pa.types.is_floating(type_):
        return FLOAT
    if pa.types.is_decimal(type_):
        if type_.precision > MOST_DECIMAL_DIGITS or not 0 <= type_.scale <= MOST_DECIMAL_DIGITS:
            return OpaqueType(str(type_), f"Cast it to a decimal of at most {MOST_DECIMAL_DIGITS} digits, or to float.")
        return decimal(type_.scale)
    if pa.types.is_timestamp(type_):
        return timestamp(type_.tz, "ns" if type_.unit == "ns" else "us")
    if pa.types.is_duration(type_):
        return duration("ns" if type_.unit == "ns" else "us")
    simple: tuple[tuple[Any, Type], ...] = (
        (pa.types.is_boolean, BOOLEAN),
        (pa.types.is_string, STRING),
        (pa.types.is_date, DATE),
        (pa.types.is_time, TIME),
        (pa.types.is_null, NULL),
    )
    for is_kind, found in simple:
        if is_kind(type_):
            return found
    opaque = OpaqueType(str(type_), "Cast it to a number, a string, a boolean, a date or a timestamp first.")
    return _nested_type(type_) or opaque


def _nested_type(type_: pa.DataType) -> Type | None:
    """The type of values that have parts; None if some of the parts cannot be computed with."""
    if pa.types.is_map(type_):
        parts = [attribute_type(type_.key_type), attribute_type(type_.item_type)]
        return map_of(*parts) if is_plain(parts[0]) and _is_known(parts) else None
    if is_list(type_):
        element = attribute_type(type_.value_type)
        return array(element) if _is_known([element]) else None
    if pa.types.is_struct(type_):
        fields = [(field.name, attribute_type(field.type)) for field in type_]
        return struct(fields) if fields and _is_known(inner for _, inner in fields) else None
    return None


def _is_known(types: Iterable[Type]) -> bool:
    return not any(isinstance(type_, OpaqueType) for type_ in types)


def checked_type_column(schema: pa.Schema, type_column: str | None) -> str | None:
    """The type column, if the input has it; one that the caller named must exist."""
    if type_column is None:
        return None
    if not isinstance(type_column, str):
        raise SchemaError(f"type_column takes the name of a column or None, but {shown(type_column)} was given")
    if type_column not in schema.names:
        if type_column == DEFAULT_TYPE_COLUMN:
            return None
        raise SchemaError(
            f"the input has no column '{printable(type_column)}' to tell the type of an event",
            hint=f"Columns: {listed(schema.names)}.{did_you_mean(type_column, schema.names)}",
        )
    found = schema.field(type_column).type
    if not (pa.types.is_string(found) or pa.types.is_null(found)):
        way_out = said(
            python="name another column with type_column=…, or use type_column=None",
            shell="or name another column with --type-column",
        )
        raise SchemaError(
            f"the type column '{printable(type_column)}' is {found}, but event types are strings",
            hint=f"Cast it to string, {way_out}.",
        )
    return type_column


def check_order_columns(
    order: OrderKey,
    columns: Sequence[str],
    what: str,
    further: str = "",
    hidden: frozenset[str] = frozenset(),
) -> None:
    """An error if the order names no column; `further` is what else there is to say of those that are not hidden."""
    shown_columns = [name for name in columns if name not in hidden]
    if not order.order_by:
        raise SchemaError(
            "no order key is given", hint=f"Name the column that orders the events: {listed(shown_columns)}.{further}"
        )
    for name in order.columns:
        if name not in columns:
            raise SchemaError(
                f"{what} has no column '{printable(name)}' to order by",
                hint=f"Columns: {listed(shown_columns)}.{did_you_mean(name, shown_columns)}{further}",
            )


def _several(sources: dict[str, Source], used: Mentioned | None, hidden: frozenset[str]) -> EventSource:
    """Several inputs by event type as one: all columns of all of them, and the type of each event."""
    schemas = {name: source.columns for name, source in sources.items()}
    unified = unified_schema(schemas, used)

    def read(names: Sequence[str]) -> pa.Table:
        wanted = [unified.field(name) for name in names if name != TYPE_OF_EVENT]
        parts = []
        for name, source in sources.items():
            own = source.columns.names
            # Some column is always read, since the number of rows is known by it.
            table = source.read([field.name for field in wanted if field.name in own] or own[:1])
            columns = [_column_or_nulls(table, column, name) for column in wanted]
            columns.append(pa.array([name] * table.num_rows, pa.string()))
            parts.append(pa.table(columns, schema=pa.schema([*wanted, TYPE_FIELD])))
        return pa.concat_tables(parts)

    return EventSource(pa.schema([*unified, TYPE_FIELD]), schema_of_inputs(schemas, unified, hidden), read)


def _column_or_nulls(table: pa.Table, column: pa.Field, input_name: str) -> pa.ChunkedArray | pa.Array:
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
    return EventSchema(attributes_of(unified), by_type=by_type, hidden=hidden)


def unified_schema(schemas: Mapping[str, pa.Schema], used: Mentioned | None = None) -> pa.Schema:
    """All columns of all inputs; one that several have and that is used needs a type that holds the values of each."""
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
                    hint="Cast one of them so that both are of one type, or rename one.",
                ) from None
            found[column.name] = (earlier_input, unified)
    return pa.schema([pa.field(column.name, column.type) for _, column in found.values()])
