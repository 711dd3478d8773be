"""What pictures are made of: the events of a call as arrays, and the matches among them.

Events stand in the order that matching saw them in, and a match has the places of its events there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.errors import SchemaError, did_you_mean, listed, printable
from kleene.visible import visible

Array = np.ndarray[Any, Any]
NO_KEY = -1
_MOST_LETTERS = 28


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """The time of each event as a number, and what it counts.

    `unit` is "days" since 1970 for times, "seconds" for lengths of time, "number" for numbers, and "place" where there
    is no order that could be drawn, so that events stand side by side.
    """

    name: str
    unit: str
    values: Array
    zone: str | None = None
    is_whole: bool = False  # whether it counts in whole numbers

    @property
    def is_calendar(self) -> bool:
        return self.unit == "days"


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Match m has the places from offsets[m] to offsets[m + 1]; `variable` numbers the variable of each."""

    offsets: Array
    places: Array
    variable: Array
    variables: tuple[str | None, ...]
    is_cut: bool = False  # whether there are more that were not looked at

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        return np.diff(self.offsets)

    @property
    def first(self) -> Array:
        return np.asarray(self.places[self.offsets[:-1]])

    @property
    def last(self) -> Array:
        return np.asarray(self.places[self.offsets[1:] - 1])

    def events_of(self, match: int) -> tuple[Array, Array]:
        """The places of the match's events, and the number of the variable of each."""
        part = slice(self.offsets[match], self.offsets[match + 1])
        return self.places[part], self.variable[part]


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The partition of each event, by number; NO_KEY where it has none."""

    names: tuple[str, ...]
    of_event: Array
    first_place: Array  # an event of each key

    def __len__(self) -> int:
        return len(self.first_place)

    def text(self, table: pa.Table, key: int) -> str:
        place = int(self.first_place[key])
        return ", ".join(short_text(table.column(name)[place].as_py()) for name in self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The events, in order, and all that was found among them."""

    table: pa.Table
    clock: Clock
    keys: Keys
    matches: Matches

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def key_of_match(self) -> Array:
        return np.asarray(self.keys.of_event[self.matches.first])


def short_text(value: object, most: int = _MOST_LETTERS) -> str:
    """A value as it may stand in a picture: on one line, seen as it is, and not too long."""
    text = drawable("NULL" if value is None else str(value))
    return text if len(text) <= most else text[: most - 1] + "…"


def drawable(text: str) -> str:
    """The text without what cannot be seen, or may not stand in XML."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in visible(text))


def clock_of(table: pa.Table, name: str | None) -> Clock:
    """The times of a column; where it holds none that could be drawn, the places of the events."""
    if name is None:
        return Clock("place in the input", "place", np.arange(table.num_rows, dtype=np.float64), None, True)
    column, type_ = table.column(name), table.schema.field(name).type
    if pa.types.is_timestamp(type_):
        local = column if type_.tz is None else pc.local_timestamp(column)
        micro = local.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return Clock(name, "days", _floats(micro) / 86_400e6, type_.tz)
    if pa.types.is_date(type_):
        return Clock(name, "days", _floats(column.cast(pa.date32()).cast(pa.int32())))
    if pa.types.is_duration(type_):
        micro = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return Clock(name, "seconds", _floats(micro) / 1e6)
    if _is_number(type_):
        return Clock(name, "number", _floats(column), is_whole=pa.types.is_integer(type_))
    return Clock(f"place by {name}", "place", np.arange(table.num_rows, dtype=np.float64), None, True)


def numbers_of(table: pa.Table, name: str, columns: pa.Schema) -> Array:
    """The values of an attribute to draw; NULL is NaN. `columns` are all that the input has."""
    type_ = table.schema.field(name).type
    if pa.types.is_boolean(type_):
        return _floats(table.column(name).cast(pa.int8()))
    if not _is_number(type_):
        numeric = [field.name for field in columns if _is_number(field.type)]
        raise SchemaError(
            f"y is drawn as a number, but the column '{printable(name)}' is {type_}",
            hint=f"Columns of numbers: {listed(numeric)}.",
        )
    return _floats(table.column(name))


def check_column(name: str, there: list[str]) -> None:
    if name not in there:
        raise SchemaError(
            f"the input has no column '{printable(name)}' to draw",
            hint=f"Columns: {listed(there)}.{did_you_mean(name, there)}",
        )


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _floats(column: pa.ChunkedArray) -> Array:
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


def keys_of(table: pa.Table, names: tuple[str, ...], with_nulls: bool) -> Keys:
    """The keys in the order in which they first appear; a NULL is a key of its own, or none."""
    if not names:
        count = table.num_rows
        return Keys((), np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64))
    codes = np.zeros(table.num_rows, np.int64)
    is_without = np.zeros(table.num_rows, bool)
    for name in names:
        column = table.column(name).combine_chunks()
        is_null = np.asarray(column.is_null(nan_is_null=pa.types.is_floating(column.type)))
        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column, null_encoding="encode")
        own = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        indices = np.asarray(own.indices.fill_null(len(own.dictionary)), np.int64)
        _, codes = np.unique(codes * (len(own.dictionary) + 1) + indices, return_inverse=True)
        is_without |= is_null
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    of_event = rank[codes] if with_nulls else np.where(is_without, NO_KEY, rank[codes])
    return Keys(names, of_event, first[order])
