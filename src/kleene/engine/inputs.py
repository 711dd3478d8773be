"""Anything that holds events to one sorted Arrow table with its schema."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.engine.attributes_by_type import refuse_for_inputs, schema_of_table, with_own_attributes
from kleene.engine.column_types import attributes_of
from kleene.engine.events import TYPE_OF_EVENT, check_order_key
from kleene.engine.nested import nested_columns, with_nested
from kleene.engine.several import TYPE_FIELD, column_or_nulls, schema_of_inputs, unified_schema
from kleene.engine.sorting import sorted_table
from kleene.engine.sources import Source, first_line, make_source
from kleene.engine.texts import check_texts
from kleene.engine.unencoded import coded_texts, unencoded, unencoded_type
from kleene.errors import KleeneError, SchemaError, did_you_mean, listed, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection
from kleene.ir.paths import Mention, mentions, path_of, spoken
from kleene.ir.query import Measure, QueryDefinition
from kleene.options.schema import Schema
from kleene.schema import EventSchema
from kleene.wording import said

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
            f"{argument} takes the name of a column or a list of names, but {shown(given)} was given",
            hint=f"Write: {argument}='ts' or {argument}=['ts', 'seq']",
        )
    return tuple(names)


@dataclass(frozen=True, slots=True)
class EventSource:
    """Events that are not read yet: what is known of their columns, and a way to read some of them, in input order.

    `order` is what puts them in order once they are read.
    """

    columns: pa.Schema
    schema: EventSchema
    order: OrderKey
    read: Callable[[Sequence[str]], pa.Table]
    ordered: frozenset[str] = frozenset()  # categories with an order of their own


class AllNames:
    """As if it held every name."""

    def __contains__(self, name: object) -> bool:
        return True


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
    events: object,
    order: OrderKey,
    type_column: str | None,
    definition: QueryDefinition | None = None,
    given: Schema | None = None,
    threads: int = 1,
    coded: Container[str] = (),
) -> EventSource:
    """The events of a SASE query, or of any query where none is named; only the columns that it reads must be in order.

    `given` says which attributes the events of each type in a table have. So many `threads` check what is read.
    Columns of `coded` that are dictionaries of a few texts are read as such.

    >>> source = open_events(pa.table({"type": ["B", "A"], "t": [2, 1]}), OrderKey(("t",)), "type")
    >>> source.schema.type_column, source.read(["t"]).to_pydict()
    ('type', {'t': [2, 1]})
    """
    used = mentioned_names(definition, order, type_column)
    if isinstance(events, Mapping):
        _check_inputs(events)
        refuse_for_inputs(given)
        opened = {
            name: _opened(part, f"input '{printable(name)}'", order, definition, used, threads)
            for name, part in events.items()
        }
        hidden = frozenset(added for _, names in opened.values() for added in names)
        return _several({name: source for name, (source, _) in opened.items()}, order, used, hidden)
    source, hidden = _opened(events, "the input", order, definition, used, threads, coded)
    columns = source.columns
    schema = schema_of_table(columns, checked_type_column(columns, type_column), order.columns, given, hidden)
    return EventSource(columns, schema, order, _masked(source.read, schema), source.ordered)


def _masked(read: Callable[[Sequence[str]], pa.Table], schema: EventSchema) -> Callable[[Sequence[str]], pa.Table]:
    """The reading, with NULL for attributes that the type of an event lacks."""
    type_column = schema.type_column
    if schema.by_type is None or type_column is None:
        return read

    def masked(names: Sequence[str]) -> pa.Table:
        table = read(names if type_column in names else [*names, type_column])
        return with_own_attributes(table, schema).select(list(names))

    return masked


def open_rows(
    events: object,
    definition: QueryDefinition | None = None,
    threads: int = 1,
    coded: Container[str] = (),
) -> EventSource:
    """A table for a row pattern, which brings its own order and knows no event types."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, but a dict was given", hint="Give the table itself.")
    used = mentioned_names(definition, OrderKey(()))
    source, hidden = _opened(events, "the input", None, definition, used, threads, coded)
    schema = EventSchema(attributes_of(source.columns), hidden=hidden)
    return EventSource(source.columns, schema, OrderKey(()), source.read, source.ordered)


def read_rows(events: object) -> pa.Table:
    """All columns of one table."""
    source = open_rows(events)
    return source.read(source.columns.names)


def read_events(
    events: object, order: OrderKey, type_column: str | None, given: Schema | None = None
) -> tuple[pa.Table, EventSchema]:
    """All columns of the events, in their order, and what is known of them.

    >>> table, schema = read_events(pa.table({"type": ["B", "A"], "t": [2, 1]}), OrderKey(("t",)), "type")
    >>> table.column("type").to_pylist(), schema.type_column
    (['A', 'B'], 'type')
    """
    source = open_events(events, order, type_column, given=given)
    return in_order(source.read(source.columns.names), order), source.schema


def in_order(table: pa.Table, order: OrderKey, threads: int = 1) -> pa.Table:
    check_order_key(table, order.order_by)
    return sorted_table(table, order.columns, threads)


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
    threads: int,
    coded: Container[str] = (),
) -> tuple[Source, frozenset[str]]:
    """The source with parts of nested columns as columns, all of them plain; and which columns were added so."""
    source = make_source(events, what, used)
    check_names(source.columns.names, what)
    named = [*(() if order is None else map(Mention, order.columns))]
    nested = nested_columns([*named, *(() if definition is None else mentions(definition))], source.columns)
    source = _plain(with_nested(source, nested), what, threads, coded)
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


def _plain(source: Source, what: str, threads: int, coded: Container[str]) -> Source:
    """The source, encodings and string variants made plain; an error names the column that cannot be read."""

    def read(names: Sequence[str]) -> pa.Table:
        try:
            table = source.read(names)
        except KleeneError:
            raise
        except Exception as error:  # what holds the events is somebody else's code
            raise SchemaError(f"{what} cannot be read: {type(error).__name__}: {first_line(error)}") from None
        columns = zip(names, table.columns, strict=True)
        return pa.table([_plain_column(column, name, threads, name in coded) for name, column in columns], names)

    columns = pa.schema([pa.field(column.name, unencoded_type(column.type)) for column in source.columns])
    return Source(columns, read, source.hint, source.ordered)


def _plain_column(column: pa.ChunkedArray, name: str, threads: int, is_coded: bool) -> pa.ChunkedArray:
    try:
        codes = coded_texts(column) if is_coded else None
        if codes is not None:
            check_texts(pa.chunked_array([chunk.dictionary for chunk in codes.chunks], pa.string()))
            return codes
        plain = unencoded(column)
        if pa.types.is_string(plain.type):
            check_texts(plain, threads)
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


def _several(
    sources: dict[str, Source], order: OrderKey, used: Mentioned | None, hidden: frozenset[str]
) -> EventSource:
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
            columns = [column_or_nulls(table, column, name) for column in wanted]
            columns.append(pa.array([name] * table.num_rows, pa.string()))
            parts.append(pa.table(columns, schema=pa.schema([*wanted, TYPE_FIELD])))
        return pa.concat_tables(parts)

    columns = pa.schema([*unified, TYPE_FIELD])
    return EventSource(columns, schema_of_inputs(schemas, unified, hidden), order, read)
