"""What a user says of the columns of an input: which of them are attributes of which event type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kleene.errors import SchemaError, UnsupportedError, printable, shown
from kleene.wording import said


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """The attributes that events of each type have, where one table holds events of several types.

    >>> import kleene, pyarrow as pa
    >>> events = pa.table({"type": ["Shelf", "Exit"], "t": [1, 2], "id": [7, 7], "size": [3, None]})
    >>> large = kleene.sase("EVENT ANY(Shelf, Exit) e WHERE e.size > 2 RETURN e.t AS t")
    >>> large.match(events, order_by="t").to_pylist()
    [{'t': 1}]
    >>> large.match(events, order_by="t", schema=Schema({"Shelf": ["id", "size"], "Exit": ["id"]})).to_pylist()
    [{'t': 1}, {'t': 2}]

    types: lists of attributes by event type. The columns of the order key, of the tie-break and of the type belong to
        every type. A type that is not named here has every attribute.
    columns: in a pipeline, the columns of the table, as a pyspark StructType or a pyarrow.Schema.
    """

    types: tuple[tuple[str, tuple[str, ...]], ...]
    columns: Any

    def __init__(self, types: Mapping[str, Iterable[str]], *, columns: Any = None) -> None:
        object.__setattr__(self, "types", _checked(types))
        object.__setattr__(self, "columns", columns)

    def __repr__(self) -> str:
        columns = "" if self.columns is None else f", columns={self.columns!r}"
        return f"Schema({ {name: list(own) for name, own in self.types} }{columns})"


def schema_option(given: object) -> Schema | None:
    """The schema that the argument says of event types; None is not given."""
    if isinstance(given, Schema) and given.columns is not None:
        raise UnsupportedError(
            "the columns of a schema are for match and table_function on Spark", hint="Leave columns out."
        )
    if given is None or isinstance(given, Schema):
        return given
    raise SchemaError(f"schema is a kleene.Schema, but {shown(given)} was given", hint=_example())


def schema_of_pairs(pairs: Iterable[tuple[Any, Any]]) -> Schema:
    """The schema of pairs in which a type may wrongly stand twice, as in a file."""
    found: dict[Any, Any] = {}
    for name, own in pairs:
        if name in found:
            raise SchemaError(f"the event type {shown(name)} is given twice", hint="Give each type one list.")
        found[name] = own
    return Schema(found)


def _checked(types: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(types, Mapping):
        raise SchemaError(f"attributes are given by event type, but {shown(types)} was given", hint=_example())
    for name in types:
        if not isinstance(name, str) or not name:
            raise SchemaError(f"an event type is a name, but {shown(name)} was given", hint=_example())
    return tuple((name, _checked_attributes(name, own)) for name, own in types.items())


def _checked_attributes(event_type: str, given: Any) -> tuple[str, ...]:
    is_list = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    names = tuple(given) if is_list else ()
    if not is_list or not all(isinstance(name, str) and name for name in names):
        raise SchemaError(
            f"the attributes of '{printable(event_type)}' are a list of names, but {shown(given)} was given",
            hint=_example(),
        )
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise SchemaError(
            f"the attribute '{printable(twice)}' of '{printable(event_type)}' is given twice", hint="Name it once."
        )
    return names


def _example() -> str:
    return said(
        python="Write: kleene.Schema({'Shelf': ['id', 'size'], 'Exit': ['id']})",
        shell="""Write: --types '{"Shelf": ["id", "size"], "Exit": ["id"]}'""",
    )
