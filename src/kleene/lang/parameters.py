"""Parameters: the values that a call gives for the `:name`s of a query, put in as literals before anything is analyzed.

No value is ever pasted into a text. What comes out has no parameter left, so that no later stage knows of them, but for
the names in messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

from kleene.errors import AnalysisError, did_you_mean, listed, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import Window, WindowParameter
from kleene.ir.query import QueryDefinition
from kleene.ir.text import duration_text
from kleene.ir.written import Written, as_written
from kleene.lang.expressions import negative_literal
from kleene.lang.sase import parse_window
from kleene.remembered import remembered
from kleene.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    FLOAT,
    INTEGER,
    LARGEST_INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    SMALLEST_INTEGER,
    STRING,
    TIME,
    Type,
    decimal,
    timestamp,
)
from kleene.source import SourceText, Span
from kleene.wording import said

_MICROSECOND = timedelta(microseconds=1)
_MIDNIGHT = datetime(1970, 1, 1)
_ALL_DIGITS = Context(prec=1_000)
_KINDS = "int, float, str, bool, Decimal, date, datetime, time, timedelta and None"


@dataclass(frozen=True, slots=True)
class _Use:
    """A parameter where it stands in a text."""

    name: str
    span: Span
    source: SourceText
    window: WindowParameter | None = None


def bind(
    definitions: tuple[QueryDefinition, ...], params: object, argument: str = "params"
) -> tuple[QueryDefinition, ...]:
    """The queries with the values that a call gives to their parameters; `argument` is what the call calls them.

    >>> from kleene.ir.text import query_text
    >>> from kleene.lang.sase import parse
    >>> query = parse("EVENT SEQ(Shelf a, Exit b) WHERE a.price > :least WITHIN :size")
    >>> print(query_text(bind((query,), {"least": 100, "size": "12 hours"})[0]))
    PATTERN SEQ(Shelf a, Exit b)
    WHERE a.price > 100
    WITHIN 12 hours
    """
    if params is not None and not isinstance(params, Mapping):
        raise AnalysisError(
            f"{argument} are a dict of values by name, but {shown(params)} was given",
            hint="Write: {'T': '12 hours'}",
        )
    given: Mapping[object, object] = params or {}
    names = list(dict.fromkeys(use.name for query in definitions for use in _uses(query)))
    for name in given:
        if name not in names:
            raise _unknown(name, names)
    return tuple(_bound_query(query, given, argument) for query in definitions)


def bind_clause(definition: QueryDefinition, args: object) -> QueryDefinition:
    """The clause of a SQL text with its parameters; `args` may hold more, which stand elsewhere in the text."""
    uses = list(_uses(definition))
    if not uses:
        return definition
    if args is not None and not isinstance(args, Mapping):
        use = uses[0]
        raise AnalysisError(
            f"the parameter ':{printable(use.name)}' has a name, but args gives values without names",
            use.source.locate(use.span),
            f"Give args as a dict: args={{'{printable(use.name)}': …}}; outside of the clause write :name, too.",
        )
    return _bound_query(definition, args or {}, "args")


def is_open(query: QueryDefinition) -> bool:
    """Whether a call must give values before the query can be planned."""
    return any(True for _ in _uses(query))


def _unknown(name: object, names: list[str]) -> AnalysisError:
    guess = did_you_mean(name, names) if isinstance(name, str) else ""
    return AnalysisError(f"the query has no parameter {shown(name)}", hint=f"Its parameters: {listed(names)}.{guess}")


# --- where parameters stand ---------------------------------------------------------------------------------------


def _uses(query: QueryDefinition) -> Iterator[_Use]:
    """The parameters of a query, in the order of its clauses."""
    for expression, source in _expressions(query):
        for node in ir.walk(expression):
            if isinstance(node, ir.Parameter):
                yield _Use(node.name, node.span, source)
    window = query.window_parameter
    if window is not None:
        yield _Use(window.name, window.span, query.source, window)


def _expressions(query: QueryDefinition) -> Iterator[tuple[ir.Expr, SourceText]]:
    own = query.source
    yield from ((key, own) for key in query.partition_by)
    yield from ((key.expression, own) for key in query.order_by)
    yield from ((test.constant, own) for test in query.equivalence_tests if test.constant is not None)
    yield from ((predicate, own) for predicate in query.predicates)
    yield from ((item.condition, item.source or own) for item in query.definitions)
    yield from ((query.having, own) for _ in range(1) if query.having is not None)
    yield from ((item.expression, item.source or own) for item in query.measures or ())
    if query.frame is not None and query.frame.end is not None:
        yield query.frame.end, own


def _with_expressions(query: QueryDefinition, change: Callable[[ir.Expr], Any]) -> QueryDefinition:
    """The query with all its expressions changed."""
    frame = query.frame
    return replace(
        query,
        partition_by=tuple(map(change, query.partition_by)),
        order_by=tuple(replace(key, expression=change(key.expression)) for key in query.order_by),
        equivalence_tests=tuple(
            test if test.constant is None else replace(test, constant=change(test.constant))
            for test in query.equivalence_tests
        ),
        predicates=tuple(map(change, query.predicates)),
        definitions=tuple(replace(item, condition=change(item.condition)) for item in query.definitions),
        having=None if query.having is None else change(query.having),
        measures=None
        if query.measures is None
        else tuple(replace(item, expression=change(item.expression)) for item in query.measures),
        frame=frame if frame is None or frame.end is None else replace(frame, end=change(frame.end)),
    )


# --- binding ------------------------------------------------------------------------------------------------------


def _bound_query(query: QueryDefinition, params: Mapping[Any, object], argument: str) -> QueryDefinition:
    uses = list(_uses(query))
    if not uses:
        return query
    for use in uses:
        if use.name not in params:
            raise _missing(use, params, argument)
    names = dict.fromkeys(use.name for use in uses)
    # 1, 1.0 and True are equal, but not the same parameter.
    values = tuple((name, type(params[name]), params[name]) for name in names)
    return _bound(query, values)


@remembered
def _bound(query: QueryDefinition, values: tuple[tuple[str, type, object], ...]) -> QueryDefinition:
    """Remembered, since all that is remembered of a query is remembered of the same one."""
    params = {name: value for name, _, value in values}
    literals: dict[str, ir.Literal] = {}
    for use in _uses(query):
        if use.window is None and use.name not in literals:
            literals[use.name] = _literal(use, params[use.name])

    def change(expression: ir.Expr) -> ir.Expr:
        if isinstance(expression, ir.Parameter):
            return replace(literals[expression.name], span=expression.span)
        changed = ir.with_children(expression, change)
        if isinstance(changed, ir.Negate) and changed is not expression:  # the sign of a number belongs to it
            return negative_literal(changed.operand, changed.span) or changed
        return changed

    bound = _with_expressions(query, change)
    parameter = query.window_parameter
    if parameter is not None:
        use = _Use(parameter.name, parameter.span, query.source, parameter)
        window = replace(_window(use, params[parameter.name]), span=parameter.span)
        bound = replace(bound, window=window, window_parameter=None)
    return bound


def _missing(use: _Use, params: Mapping[Any, object], argument: str) -> AnalysisError:
    where, name = use.source.locate(use.span), printable(use.name)
    if use.window is not None and not use.window.is_marked:
        return AnalysisError(
            f"the window '{name}' is a parameter without a value",
            where,
            said(
                python="Write a size (12 hours, 500 events, 100) in its place, or give the call a value: "
                f"{argument}={{'{name}': '12 hours'}}.",
                shell=f"Write a size in its place, such as 12 hours, 500 events or 100, or add --param {name}=….",
            ),
        )
    example = "'12 hours'" if use.window is not None else "…"
    given = f" Given: {listed(map(str, params))}.{did_you_mean(use.name, map(str, params))}" if params else ""
    return AnalysisError(
        f"the parameter ':{name}' has no value",
        where,
        said(python=f"Give the call one: {argument}={{'{name}': {example}}}.", shell=f"Add --param {name}=….") + given,
    )


def _window(use: _Use, value: object) -> Window:
    value = _plain(value)
    text = None
    if isinstance(value, timedelta):
        text = duration_text(value // _MICROSECOND)
    elif isinstance(value, str):
        text = re.sub(r"(?<=\d)\s*rows?\s*$", " events", value, flags=re.IGNORECASE)
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        try:
            text = str(value)
        except ValueError:  # Python writes no number of thousands of digits out
            text = None
    window = None if text is None else parse_window(text)
    if window is None:
        raise AnalysisError(
            f"the parameter '{printable(use.name)}' is {shown(value)}, which is not a window",
            use.source.locate(use.span),
            "Windows look like: 12 hours, 500 events, 100.",
        )
    return window


# --- values -------------------------------------------------------------------------------------------------------


def _literal(use: _Use, given: object) -> ir.Literal:
    try:
        found = _typed_value(as_written(given) if isinstance(given, Written) else _plain(given))
    except (OverflowError, ValueError) as error:
        raise AnalysisError(
            f"the parameter ':{printable(use.name)}' is {shown(given)}: {error}", use.source.locate(use.span)
        ) from None
    if found is None:
        hint = f"Values are of the types {_KINDS}."
        if isinstance(given, (list, tuple, set, frozenset)):
            hint = f"Give each value a name of its own: x IN (:{printable(use.name)}_1, :{printable(use.name)}_2)."
        raise AnalysisError(
            f"the parameter ':{printable(use.name)}' is {shown(given)}, which is not a single value",
            use.source.locate(use.span),
            hint,
        )
    value, type_ = found
    written = str(given) if isinstance(given, Written) else None
    return ir.Literal(value, type_, use.name, written, span=use.span)


def _plain(value: Any) -> Any:
    """NumPy's numbers, texts and times as Python's."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def _typed_value(value: Any) -> tuple[ir.Value, Type] | None:
    """The value as a literal holds it, and its type; None where there is no such type, ValueError where no such value.

    A float is what it is written as, so that 1.05 equals the decimal 1.05, as it does in a text.
    """
    match value:
        case None:
            return None, NULL
        case bool():
            return value, BOOLEAN
        case int():
            if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
                raise ValueError("an integer has 64 bits")
            return int(value), INTEGER
        case float():
            if not math.isfinite(value):
                raise ValueError("a number in a query is finite")
            return Decimal(repr(float(value))), FLOAT
        case Decimal():
            return _decimal(value)
        case str():
            value.encode()  # half of a surrogate pair is not a character
            return str(value), STRING
        case datetime():
            return _moment(value)
        case date():
            return (value - date(1970, 1, 1)).days, DATE
        case time():
            if value.tzinfo is not None:
                raise ValueError("a time of the day has no zone here")
            return (datetime.combine(date(1970, 1, 1), value) - _MIDNIGHT) // _MICROSECOND, TIME
        case timedelta():
            return value // _MICROSECOND, DURATION
    return None


def _decimal(value: Decimal) -> tuple[ir.Value, Type]:
    if not value.is_finite():
        raise ValueError("a number in a query is finite")
    digits, exponent = value.as_tuple()[1:]
    scale = max(0, -int(exponent))
    if max(scale, len(digits) + max(0, int(exponent))) > MOST_DECIMAL_DIGITS:
        raise ValueError(f"a decimal has up to {MOST_DECIMAL_DIGITS} digits")
    return int(value.scaleb(scale, _ALL_DIGITS)), decimal(scale)


def _moment(value: datetime) -> tuple[ir.Value, Type]:
    """An instant; without a zone it is one of UTC. A pandas.Timestamp may have nanoseconds."""
    nanoseconds = int(getattr(value, "nanosecond", 0))
    plain = datetime(*value.timetuple()[:6], value.microsecond)
    if value.tzinfo is not None:
        offset = value.utcoffset()
        plain -= offset if offset is not None else timedelta(0)
    whole = (plain - _MIDNIGHT) // _MICROSECOND
    return (whole * 1_000 + nanoseconds, timestamp(unit="ns")) if nanoseconds else (whole, timestamp())
