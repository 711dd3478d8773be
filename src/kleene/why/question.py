"""What is asked: which events, keys or combination of events, among those of a table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.engine.events import plain_values
from kleene.engine.row_reference import RowBindings, Visible
from kleene.errors import AnalysisError, SchemaError, did_you_mean, listed, printable, shown
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, evaluate
from kleene.ir.options import RowsPerMatch, Selection
from kleene.ir.pattern import Variable
from kleene.ir.query import Definition, QueryDefinition
from kleene.lang.regex import parse_condition
from kleene.schema import EventSchema
from kleene.source import SourceText

ROW = "\0row"
"""A column that every event has: its row in the input."""
_CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Question:
    """`at` as it was given, read as far as it can be without events; `keys` are values by attribute."""

    rows: tuple[int, ...] | None = None
    filter: str | None = None
    combination: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    keys: tuple[tuple[tuple[str, Any], ...], ...] | None = None

    @property
    def is_about_some(self) -> bool:
        return self != Question()


def read_question(at: object, keys: object, key_names: Sequence[str]) -> Question:
    """The question that the arguments ask; an error where they are of a wrong kind."""
    read_keys = None if keys is None else _read_keys(keys, key_names)
    match at:
        case None:
            return Question(keys=read_keys)
        case str():
            return Question(filter=at, keys=read_keys)
        case Mapping():
            if keys is not None:
                raise SchemaError("at names the events of one match, so there is nothing for keys to choose")
            return Question(combination=tuple((_variable(name), _rows(part)) for name, part in at.items()))
    return Question(rows=_rows(at), keys=read_keys)


def _variable(name: object) -> str:
    if not isinstance(name, str):
        raise SchemaError(f"at is a dict of rows by variable, but {shown(name)} is not a name")
    return name


def _rows(given: object) -> tuple[int, ...]:
    items = given if isinstance(given, Sequence) and not isinstance(given, str) else getattr(given, "tolist", None)
    if callable(items):
        items = items()
    found: list[int] = []
    for item in items if isinstance(items, Sequence) else [given]:
        try:
            if isinstance(item, bool):
                raise TypeError
            found.append(operator.index(item))  # type: ignore[arg-type]  # that is the test
        except TypeError:
            raise SchemaError(
                f"at is a row number, a list of them, a filter or a dict of rows by variable, but {shown(item)} was "
                "given",
                hint="Write: at=7, at=[3, 7], at=\"tag = 7\", or at={'a': 3, 'b': [5, 6]}.",
            ) from None
    return tuple(found)


def _read_keys(keys: object, names: Sequence[str]) -> tuple[tuple[tuple[str, Any], ...], ...]:
    if not names:
        raise SchemaError(
            "keys chooses partitions, but the query has no partition key",
            hint='Choose events: at="tag = 7", or add an equivalence test such as [tag], or PARTITION BY.',
        )
    items = keys if isinstance(keys, (list, tuple)) and not _is_one_key(keys, names) else [keys]
    return tuple(_read_key(item, names) for item in items)


def _is_one_key(given: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether a tuple is one key of several attributes, and not several keys."""
    return isinstance(given, tuple) and len(names) > 1 and not any(isinstance(item, (tuple, Mapping)) for item in given)


def _read_key(given: object, names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    match given:
        case Mapping():
            for name in given:
                if name not in names:
                    guess = did_you_mean(name, names) if isinstance(name, str) else ""
                    raise SchemaError(
                        f"the partition key has no attribute {shown(name)}", hint=f"It is: {listed(names)}.{guess}"
                    )
            return tuple(given.items())
        case tuple() if len(given) == len(names):
            return tuple(zip(names, given, strict=True))
        case _ if len(names) == 1:
            return ((names[0], given),)
    raise SchemaError(
        f"the partition key is {listed(names)}, but {shown(given)} was given as a key",
        hint=f"Write a dict: keys={{{', '.join(f'{printable(name)!r}: …' for name in names)}}}",
    )


# --- the events that are chosen ---


def chosen_positions(question: Question, table: pa.Table, schema: EventSchema) -> frozenset[int]:
    """The places in the table, which is in order, of the events that `at` chooses."""
    if question.filter is not None:
        return frozenset(_passing(question.filter, table, schema))
    rows = question.rows or ()
    check_rows(rows, table.num_rows)
    wanted = set(rows)
    return frozenset(place for place, row in enumerate(table.column(ROW).to_pylist()) if row in wanted)


def chosen_places(
    question: Question,
    table: pa.Table,
    schema: EventSchema,
    partitions: Sequence[Sequence[int]],
    shown_key: Callable[[int], str],
) -> tuple[frozenset[int], list[str]]:
    """The places of the events whose runs are told, of keys all their events; and what is to be said of them."""
    if not question.is_about_some:
        return frozenset(), []
    notes: list[str] = []
    chosen = frozenset(range(table.num_rows))
    if question.rows is not None or question.filter is not None:
        chosen = chosen_positions(question, table, schema)
        if question.filter is not None and not chosen:
            notes.append(f"no event passes the filter {printable(question.filter)}")
    if question.keys is not None:
        of_keys: set[int] = set()
        for key in question.keys:
            found = [part for part in partitions if is_key(table, part[0], key)]
            if not found:
                raise no_such_key(key, [shown_key(part[0]) for part in partitions])
            of_keys.update(place for part in found for place in part)
        chosen &= of_keys
    return chosen, notes


def check_rows(rows: Sequence[int], count: int) -> None:
    for row in rows:
        if not 0 <= row < count:
            exist = f"it has {count:,} rows, 0 to {count - 1:,}" if count else "it has no rows"
            raise SchemaError(f"the input has no row {row:,}: {exist}", hint="Rows are counted from 0.")


def filter_condition(text: str, schema: EventSchema) -> ir.Expr:
    """The filter as a typed condition on one event."""
    expression = parse_condition(text, "filter")
    for node in ir.walk(expression):
        if isinstance(node, ir.Aggregate):
            raise AnalysisError(
                "in the filter: it looks at one event at a time, and has nothing to aggregate",
                SourceText(text).locate(node.span),
                "Compare attributes: tag = 7 AND ts >= TIMESTAMP '2024-01-31 08:00:00'.",
            )
        if isinstance(node, ir.Parameter):
            raise AnalysisError(
                "in the filter: it has no parameters", SourceText(text).locate(node.span), "Write the value itself."
            )
    definition = QueryDefinition(
        Variable(_CHOSEN),
        selection=Selection.FIRST_COMPLETED,
        rows_per_match=RowsPerMatch.ALL_SHOW_EMPTY,
        definitions=(Definition(_CHOSEN, expression, source=SourceText(text)),),
        source=SourceText(text),
    )
    [(_, condition)] = analyze_row_pattern(definition, schema).conditions
    return condition


def filter_columns(text: str, schema: EventSchema) -> list[str]:
    condition = filter_condition(text, schema)
    return [node.name for node in ir.walk(condition) if isinstance(node, ir.Attribute)]


def _passing(text: str, table: pa.Table, schema: EventSchema) -> list[int]:
    condition = filter_condition(text, schema)
    names = {node.name for node in ir.walk(condition) if isinstance(node, ir.Attribute)}
    columns: dict[str, list[PlainValue]] = {
        name: plain_values(table.column(name), schema.type_of(name), name) for name in names
    }
    visible = Visible(0, table.num_rows)
    return [
        place
        for place in range(table.num_rows)
        if evaluate(condition, RowBindings(columns, visible, {}, (), (), row=place)) is True
    ]


def is_key(table: pa.Table, position: int, key: Sequence[tuple[str, Any]]) -> bool:
    """Whether the event at the position is of the key, by the values that Python sees."""
    return all(table.column(name)[position].as_py() == value for name, value in key)


def no_such_key(key: Sequence[tuple[str, Any]], known: Sequence[str]) -> SchemaError:
    text = ", ".join(f"{printable(name)} = {shown(value)}" for name, value in key)
    return SchemaError(
        f"no event has the key {text}",
        hint=f"Keys: {listed(known, most=10)}. A key and its attribute are compared as values of one type.",
    )
