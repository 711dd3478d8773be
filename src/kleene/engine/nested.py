"""Parts of nested columns as columns of their own: `payload.user.id` beside `payload`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.sources import Source
from kleene.engine.unencoded import is_list, unencoded, unencoded_type
from kleene.errors import SchemaError, did_you_mean, listed, printable
from kleene.ir.paths import Mention, Path, Step, path_of, path_text


@dataclass(frozen=True, slots=True)
class NestedColumn:
    """A column to be made: under its name, the part of another column that the path leads to, of its type."""

    name: str
    path: Path
    type: pa.DataType


def nested_columns(mentions: Iterable[Mention], columns: pa.Schema) -> list[NestedColumn]:
    """The paths among the names, resolved; names that are columns, or whose first part is none, are left alone."""
    found: dict[str, NestedColumn] = {}
    for mention in mentions:
        path = None if mention.name in columns.names else path_of(mention.name)
        column = None if path is None else _spelt(path.column, columns.names, mention.exact)
        if path is not None and column is not None:
            steps, type_ = _resolved(path_text(column, ()), path.steps, columns.field(column).type, mention)
            found[mention.name] = NestedColumn(mention.name, Path(column, steps), type_)
    return list(found.values())


def _spelt(name: str, names: Sequence[str], exact: bool) -> str | None:
    """The one of the names that is meant; where case does not matter, if only one differs in nothing else."""
    if name in names:
        return name
    alike = [] if exact else [other for other in names if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _resolved(
    column: str, steps: tuple[Step, ...], type_: pa.DataType, mention: Mention
) -> tuple[tuple[Step, ...], pa.DataType]:
    """The steps with fields as the input spells them, and the type that they lead to."""
    taken: list[Step] = []
    for step in steps:
        type_ = unencoded_type(type_)
        inner: pa.DataType | None = None
        if pa.types.is_struct(type_):
            names = [type_.field(number).name for number in range(type_.num_fields)]
            field = _spelt(step, names, mention.exact) if isinstance(step, str) else None
            if field is None:
                raise _fail(
                    f"'{path_text(column, taken)}' has no field {_shown(step)}",
                    mention,
                    f"Fields: {listed(names)}.{did_you_mean(str(step), names)}",
                )
            step, inner = field, type_.field(field).type
        elif pa.types.is_map(type_):
            is_text = pa.types.is_string(type_.key_type) or pa.types.is_large_string(type_.key_type)
            if isinstance(step, str) is not is_text or not (is_text or pa.types.is_integer(type_.key_type)):
                raise _fail(
                    f"'{path_text(column, taken)}' has keys of type {type_.key_type}, not {_shown(step)}",
                    mention,
                    "Write m['key'] for a key that is text, and m[1] for a whole number.",
                )
            inner = type_.item_type
        elif is_list(type_) and isinstance(step, int):
            inner = type_.value_type
        if inner is None:
            raise _fail(
                f"'{path_text(column, taken)}' is of type {printable(str(type_), 80)} and has no part {_shown(step)}",
                mention,
                "A struct has fields (s.field), a list has positions from 0 (x[0]), and a map has keys (m['key']).",
            )
        taken.append(step)
        type_ = inner
    return tuple(taken), unencoded_type(type_)


def _shown(step: Step) -> str:
    return str(step) if isinstance(step, int) else f"'{printable(step)}'"


def _fail(message: str, mention: Mention, hint: str) -> SchemaError:
    return SchemaError(message, None if mention.source is None else mention.source.locate(mention.span), hint)


def with_nested(source: Source, nested: Sequence[NestedColumn]) -> Source:
    """The source with further columns for parts of its own."""
    if not nested:
        return source
    by_name = {item.name: item for item in nested}

    def read(names: Sequence[str]) -> pa.Table:
        bases = dict.fromkeys(by_name[name].path.column if name in by_name else name for name in names)
        table = source.read(list(bases))
        columns = [
            _part(table.column(by_name[name].path.column), by_name[name].path.steps)
            if name in by_name
            else table.column(name)
            for name in names
        ]
        return pa.table(columns, names=list(names))

    wider = pa.schema([*source.columns, *(pa.field(item.name, item.type) for item in nested)])
    return Source(wider, read, source.hint, source.ordered)


def _part(column: pa.ChunkedArray, steps: Sequence[Step]) -> pa.ChunkedArray:
    for step in steps:
        column = unencoded(column)
        type_ = column.type
        if pa.types.is_struct(type_):
            column = pc.struct_field(column, [type_.get_field_index(step)])
        elif pa.types.is_map(type_):
            column = pc.map_lookup(column, pa.scalar(step, type_.key_type), "first")
        else:
            chunks = [_elements(chunk, int(step)) for chunk in column.chunks]
            column = pa.chunked_array(chunks, type_.value_type)
    return unencoded(column)


def _elements(lists: pa.Array, position: int) -> pa.Array:
    """The element at the position of each list; NULL where there is none."""
    if not pa.types.is_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    begins = np.asarray(lists.offsets)
    is_there = np.diff(begins) > position
    is_there &= ~np.asarray(lists.is_null())
    return lists.values.take(pa.array(np.where(is_there, begins[:-1] + position, 0), mask=~is_there))
