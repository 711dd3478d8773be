"""Functions and aggregates of the user's own: what `functions=` of a query takes, to values by name.

A text is never code: it can only call what was given by name. What is given is trusted code, and runs as it is.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from kleene.errors import AnalysisError, printable, shown
from kleene.ir.aggregates import AGGREGATES, SPARK_AGGREGATES, SYNONYMS
from kleene.ir.functions.names import FUNCTIONS
from kleene.schema import BOOLEAN, DATE, DURATION, FLOAT, INTEGER, STRING, TIME, Type, decimal, timestamp

DECIMAL_PLACES = 18
"""Digits after the point of the decimals that functions return: an annotation does not say how many there are."""
_TYPES: dict[object, Type] = {
    bool: BOOLEAN,
    int: INTEGER,
    float: FLOAT,
    str: STRING,
    Decimal: decimal(DECIMAL_PLACES),
    date: DATE,
    datetime: timestamp(),
    time: TIME,
    timedelta: DURATION,
}
_TYPES_BY_NAME = {kind.__name__: type_ for kind, type_ in _TYPES.items() if isinstance(kind, type)}
ANNOTATIONS = ", ".join(_TYPES_BY_NAME)
_RESERVED = frozenset(
    {
        *(FUNCTIONS.keys() | AGGREGATES.keys() | SYNONYMS.keys() | SPARK_AGGREGATES),
        *("average", "classifier", "collect", "delta", "first", "last", "match_number", "match_sequence_number"),
        *("next", "prev"),
        *("and", "any", "between", "case", "cast", "else", "end", "false", "in", "is", "like", "not", "null", "or"),
        *("then", "true", "try_cast", "when"),
    }
)
_EXAMPLE = "Write: functions=[near], or functions={'near': near}"


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """A Python function that a query may call. `returns` is the type of its values, where its annotation says it."""

    name: str
    function: Callable[..., Any]
    vectorized: bool = False
    returns: Type | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class OwnAggregate:
    """An aggregate in steps: from `start`, `step(state, value)` gives the next state, `finish(state)` the value.

    `start` is a value, or a function without arguments that gives one.
    """

    name: str
    start: Any
    step: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any] | None = None
    returns: Type | None = field(default=None, repr=False)

    def started(self) -> Any:
        return self.start() if callable(self.start) else self.start


Own = OwnFunction | OwnAggregate
NO_FUNCTIONS: Mapping[str, Own] = types.MappingProxyType({})


def function(f: Callable[..., Any], name: str | None = None, vectorized: bool = False) -> OwnFunction:
    """A Python function under another name, or one that takes whole columns.

    >>> import kleene, pyarrow as pa, pyarrow.compute as pc
    >>> events = pa.table({"type": ["A", "A"], "t": [1, 2], "word": ["Noon", "Night"]})
    >>> loud = kleene.function(lambda words: pc.equal(words, pc.utf8_capitalize(words)), "loud", vectorized=True)
    >>> kleene.sase("EVENT A a WHERE loud(a.word)", functions=[loud]).match(events, order_by="t").num_rows
    2

    f: takes values of events, and returns a value; NULL is None. It must be pure. Its annotation says the type of what
        it returns: bool, int, float, str, Decimal, date, datetime, time or timedelta, or one of these `| None`.
    name: what queries call it; by default, its own name.
    vectorized: whether it takes Arrow arrays, and returns an array of the same length. Such a function may be called in
        predicates about one event, and is called once for each batch of events.
    """
    if isinstance(f, Own) or not callable(f):
        raise AnalysisError(f"a function is needed, but {shown(f)} was given", hint="Write: kleene.function(near)")
    try:
        hash(f)
    except TypeError:
        raise AnalysisError(
            f"functions are told apart by their hash, but {shown(f)} has none",
            hint="Give a function that calls it: lambda x: it(x).",
        ) from None
    own = _name_of(f) if name is None else name
    _check_name(own)
    if not isinstance(vectorized, bool):
        raise AnalysisError(f"vectorized is True or False, but {shown(vectorized)} was given")
    return OwnFunction(own, f, vectorized, returned_type(f))


def aggregate(
    name: str,
    start: Any,
    step: Callable[[Any, Any], Any],
    finish: Callable[[Any], Any] | None = None,
) -> OwnAggregate:
    """An aggregate of one's own, computed step by step.

    >>> import kleene, pyarrow as pa
    >>> def weighed(state: float, price: float) -> float:
    ...     return 0.5 * state + 0.5 * price
    >>> ewma = kleene.aggregate("ewma", start=0.0, step=weighed)
    >>> events = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 3], "price": [8.0, 4.0, 0.0]})
    >>> query = kleene.sase("PATTERN SEQ(A+ a[], B b) RETURN ewma(a[].price) AS x", functions=[ewma])
    >>> query.match(events, order_by="t").to_pylist()
    [{'x': 4.0}, {'x': 4.0}, {'x': 2.0}]

    name: what queries call it.
    start: the first state: a number, a tuple of numbers, any value, or a function without arguments that gives one.
    step: takes a state and a value, and returns the next state. NULLs are skipped.
    finish: takes the last state, and returns the aggregate; by default, the aggregate is the state. Over no value, the
        aggregate is NULL.
    Functions of numbers become machine code. The type of the aggregate is that of the annotation of `finish`, or of
    `step`, or else that of `start`.
    """
    _check_name(name)
    for role, given in (("step", step), ("finish", finish)):
        if not callable(given) and not (role == "finish" and given is None):
            raise AnalysisError(
                f"{role} of the aggregate '{printable(name)}' must be a function, but {shown(given)} was given",
                hint="Write: kleene.aggregate('total', start=0.0, step=lambda total, x: total + x)",
            )
    _check_takes(name, "step", step, 2)
    if finish is not None:
        _check_takes(name, "finish", finish, 1)
    found = OwnAggregate(name, start, step, finish)
    return replace(found, returns=_aggregate_type(found))


def _check_takes(name: str, role: str, function: Callable[..., Any], count: int) -> None:
    if takes(function, count) is False:
        what = "a state and a value" if count == 2 else "a state"
        raise AnalysisError(
            f"{role} of the aggregate '{printable(name)}' must take {what}, but its parameters are "
            f"{inspect.signature(function)}"
        )


def takes(function: Callable[..., Any], count: int) -> bool | None:
    """Whether the function can be called with so many arguments; None if it does not tell."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except ValueError:
        return None
    except TypeError:
        return False
    return True


def _aggregate_type(own: OwnAggregate) -> Type | None:
    last = own.step if own.finish is None else own.finish
    known = returned_type(last)
    if known is not None or own.finish is not None or callable(own.start):
        return known
    return _TYPES.get(type(own.start))


def returned_type(function: Callable[..., Any]) -> Type | None:
    """The type that the function says it returns; None if it does not say one that values can be of."""
    annotation = getattr(function, "__annotations__", {}).get("return")
    if isinstance(annotation, str):  # as modules with postponed annotations have it
        parts = [part.strip().rpartition(".")[2] for part in _without_optional(annotation).split("|")]
        known = [part for part in parts if part != "None"]
        return _TYPES_BY_NAME.get(known[0]) if len(known) == 1 else None
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        annotation = members[0] if len(members) == 1 else None
    return _TYPES.get(annotation) if isinstance(annotation, type) else None


def _without_optional(annotation: str) -> str:
    found = re.fullmatch(r"(?:typing\.)?Optional\[(.*)\]", annotation.strip())
    return annotation if found is None else found[1]


def own_functions(given: object) -> Mapping[str, Own]:
    """What may be called, by its name in small letters: languages do not tell names of functions apart by case.

    >>> def near(left: float, right: float) -> bool: return abs(left - right) < 1
    >>> own_functions([near])["near"].returns
    Type(name='boolean')
    """
    if given is None:
        return NO_FUNCTIONS
    found: dict[str, Own] = {}
    for own in _each(given):
        folded = own.name.lower()
        if folded in _RESERVED:
            raise AnalysisError(
                f"'{own.name}' is a word, or a function, that queries have already", hint="Give yours another name."
            )
        if folded in found:
            raise AnalysisError(
                f"two functions are called '{printable(own.name)}'",
                hint="Give one of them another name: kleene.function(near, 'nearer'). Case does not tell names apart.",
            )
        found[folded] = own
    return types.MappingProxyType(found)


def _each(given: object) -> Iterator[Own]:
    if isinstance(given, Mapping):
        for name, value in given.items():
            _check_name(name)
            yield replace(_own(value, name), name=name)
        return
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise AnalysisError(f"functions is a list, or a dict by name, but {shown(given)} was given", hint=_EXAMPLE)
    for value in given:
        yield _own(value, None)


def _own(value: Any, name: str | None) -> Own:
    if isinstance(value, Own):
        return value
    if not callable(value):
        called = "" if name is None else f"'{printable(name)}' is "
        raise AnalysisError(f"functions: {called}{shown(value)}, but must be a function", hint=_EXAMPLE)
    return function(value, name)


def _name_of(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", None)
    if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*", name):
        raise AnalysisError(
            f"the function {shown(f)} has no name that a query could call it by",
            hint="Give it one: functions={'near': …}, or kleene.function(…, 'near').",
        )
    return name


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*", name):
        raise AnalysisError(f"a function has a name, but {shown(name)} is not a name", hint=_EXAMPLE)
