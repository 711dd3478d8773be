"""The types of attributes, and the attributes that events of each type have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

MOST_DECIMAL_DIGITS = 38
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an attribute or of an expression's value."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType(Type):
    """Exact numbers of at most 38 digits, `scale` of them after the point."""

    scale: int = 0

    def __str__(self) -> str:
        return f"decimal with {self.scale} decimal places"


@dataclass(frozen=True, slots=True)
class TimestampType(Type):
    """An instant shown in `zone`, or, where zone is None, a reading of an unnamed clock."""

    zone: str | None = None
    unit: str = "us"  # or "ns": what its whole numbers count

    def __str__(self) -> str:
        return f"timestamp in {self.zone}" if self.zone else "timestamp"


@dataclass(frozen=True, slots=True)
class DurationType(Type):
    """A length of time, in microseconds or, between times that have them, in nanoseconds."""

    unit: str = "us"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayType(Type):
    element: Type = Type("null")

    def __str__(self) -> str:
        return f"array of {self.element}"


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """Named values; `fields` are their names and types, in order."""

    fields: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        return f"struct of {', '.join(name for name, _ in self.fields)}"


@dataclass(frozen=True, slots=True)
class MapType(Type):
    key: Type = Type("null")
    value: Type = Type("null")

    def __str__(self) -> str:
        return f"map from {self.key} to {self.value}"


def a_type(type_: Type) -> str:
    """The type with its article, for messages."""
    return f"{'an' if str(type_)[0] in 'aeiou' else 'a'} {type_}"


INTEGER = Type("integer")
FLOAT = Type("float")
BOOLEAN = Type("boolean")
STRING = Type("string")
DATE = Type("date")
DURATION = DurationType("duration")
TIME = Type("time")
"""A time of day, in microseconds since midnight."""
NULL = Type("null")
"""The type of the literal NULL: it fits everywhere."""
UNKNOWN = Type("unknown")
"""The type of an attribute while no input is known; like NULL it fits everywhere."""


def decimal(scale: int) -> DecimalType:
    return DecimalType("decimal", scale)


def average_type(type_: Type) -> Type:
    """Of numbers: an average of decimals is one with four more places, as far as there is room; else it is a float."""
    return decimal(min(MOST_DECIMAL_DIGITS, type_.scale + 4)) if isinstance(type_, DecimalType) else FLOAT


def timestamp(zone: str | None = None, unit: str = "us") -> TimestampType:
    return TimestampType("timestamp", zone, unit)


def duration(unit: str) -> DurationType:
    return DurationType("duration", unit)


def per_microsecond(type_: Type | None) -> int:
    """How many units of a timestamp or a duration make a microsecond."""
    return 1_000 if isinstance(type_, (TimestampType, DurationType)) and type_.unit == "ns" else 1


def finer_unit(left: Type, right: Type) -> str:
    return "ns" if max(per_microsecond(left), per_microsecond(right)) > 1 else "us"


def array(element: Type) -> ArrayType:
    return ArrayType("array", element)


def struct(fields: Iterable[tuple[str, Type]]) -> StructType:
    return StructType("struct", tuple(fields))


def map_of(key: Type, value: Type) -> MapType:
    return MapType("map", key, value)


@dataclass(frozen=True, slots=True)
class OpaqueType(Type):
    """A column that Kleene carries to the output but does not compute with; `advice` says how to make it usable."""

    advice: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.advice})"


def is_nested(type_: Type | None) -> bool:
    """Whether values of the type have parts."""
    return isinstance(type_, (ArrayType, StructType, MapType))


def holds_map(type_: Type | None) -> bool:
    """Whether values of the type are maps, or hold some: those cannot be compared."""
    match type_:
        case MapType():
            return True
        case ArrayType(element=element):
            return holds_map(element)
        case StructType(fields=fields):
            return any(holds_map(inner) for _, inner in fields)
    return False


def is_plain(type_: Type | None) -> bool:
    """Whether values of the type can be put in order."""
    return not (is_nested(type_) or isinstance(type_, OpaqueType))


def advice_on(type_: Type | None) -> str:
    """What to do with a value that is needed as a plain one."""
    if isinstance(type_, OpaqueType):
        return type_.advice
    return "Take a part of it, such as x[0] or x.name, or cast it to a string before matching."


def is_numeric(type_: Type) -> bool:
    return type_ in (INTEGER, FLOAT) or isinstance(type_, DecimalType)


def fits_everywhere(type_: Type) -> bool:
    return type_ in (NULL, UNKNOWN)


@dataclass(frozen=True)
class EventSchema:
    """The attributes of a stream of events.

    `attributes` are those of the whole input. `type_column` is the column that tells the type of an event, or None
    where every event is of the one type that the pattern names. If `by_type` is given, it says which attributes events
    of each type have, and `other_types` says it for types that are not named there: None if there are no others.
    Otherwise every event has every attribute.
    """

    attributes: tuple[tuple[str, Type], ...]
    type_column: str | None = None
    by_type: tuple[tuple[str, frozenset[str]], ...] | None = None
    other_types: frozenset[str] | None = None
    hidden: frozenset[str] = frozenset()  # made for the query's sake: not part of an event
    # Where the type alone does not say it: the column that tells which attributes an event has, these by its values,
    # and the attributes that events of other types may or may not have.
    kind_column: str | None = None
    by_kind: tuple[tuple[str, frozenset[str]], ...] = ()
    unsure: frozenset[str] = frozenset()
    is_listed: bool = False  # whether a user has listed types, so that nobody knows whether there are others

    @cached_property
    def _types(self) -> dict[str, Type]:
        return dict(self.attributes)

    @cached_property
    def _attributes_by_type(self) -> dict[str, frozenset[str]]:
        return dict(self.by_type or ())

    @cached_property
    def _attributes_by_kind(self) -> dict[str, frozenset[str]]:
        return dict(self.by_kind)

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[str]:
        """The attributes that a user can see."""
        return (name for name in self._types if name not in self.hidden)

    def type_of(self, name: str) -> Type:
        return self._types[name]

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """The types that exist, where that is known."""
        is_known = self.by_type is not None and self.other_types is None
        return tuple(self._attributes_by_type) if is_known else None

    def has(self, event_type: str, name: str) -> bool:
        """Whether all events of the type have the attribute."""
        if self.by_type is None:
            return name in self._types
        own = self._attributes_by_type.get(event_type, self.other_types)
        return own is not None and name in own

    def may_have(self, event_type: str, name: str) -> bool:
        """Whether some events of the type have the attribute."""
        is_unsure = name in self.unsure and event_type not in self._attributes_by_type
        return is_unsure or self.has(event_type, name)

    @property
    def presence_column(self) -> str | None:
        """The column that tells which attributes an event has."""
        return self.kind_column or self.type_column

    def lacks(self, kind: str | None, name: str) -> bool:
        """Whether an event lacks the attribute that has this value in the presence column."""
        if kind is None:
            return True
        return not (self.has(kind, name) if self.kind_column is None else name in self._attributes_by_kind[kind])

    def knows(self, name: str, event_types: Iterable[str]) -> bool:
        """Whether some type has the attribute; of types that a user has not listed, only those count that are named."""
        if not self.is_listed:
            return name in self._types
        return any(self.has(event_type, name) for event_type in (*self._attributes_by_type, *event_types))

    def attributes_of(self, event_types: tuple[str, ...]) -> tuple[str, ...]:
        """The attributes that events of at least one of the types have, in the order of the input."""
        return tuple(name for name in self if any(self.may_have(event_type, name) for event_type in event_types))
