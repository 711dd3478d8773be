"""Functions over a pattern window as measures of its match: `f(x) OVER w` is f over the rows of the match."""

from __future__ import annotations

import re
from collections.abc import Callable

from kleene.errors import AnalysisError, ExecutionError, KleeneError
from kleene.ir import expr as ir
from kleene.lang import match_recognize
from kleene.schema import NULL
from kleene.source import Location
from kleene.sqltext.mixed import sql_name
from kleene.sqltext.window_calls import FunctionCall

_ZERO = frozenset({"count", "count_if", "approx_count_distinct", "regr_count"})
_EMPTY = frozenset({"collect_list", "collect_set"})
_LITERAL = re.compile(r"-?\d+(\.\d+)?|'(?:[^'\\]|'')*'|true|false|null", re.IGNORECASE)


def of_no_rows(call: FunctionCall, column: str) -> str:
    """What the outer query writes for the call: where a row has no match, the function of no rows."""
    if call.name in _ZERO:
        return f"coalesce({sql_name(column)}, 0)"
    return f"coalesce({sql_name(column)}, array())" if call.name in _EMPTY else sql_name(column)


def as_measure(call: FunctionCall, column: Callable[[str], str], location: Location | None) -> ir.Expr:
    """The measure; `column` gives the name of the column that an argument is computed in for each row."""
    if call.name in ("first_value", "first", "last_value", "last"):
        return _first_or_last(call, column, location)
    if call.name == "nth_value":
        return _nth(call, column, location)
    return _parsed(_aggregate_text(call, column), location)


def _aggregate_text(call: FunctionCall, column: Callable[[str], str]) -> str:
    arguments = ", ".join(_argument(text, column) for text in call.arguments)
    order = f" ORDER BY {_keys(call.order_by, column)}" if call.order_by and call.name != "listagg" else ""
    within = f" WITHIN GROUP (ORDER BY {_keys(call.order_by, column)})" if call.order_by and not order else ""
    only = f" FILTER (WHERE {sql_name(column(call.condition))})" if call.condition else ""
    distinct = "DISTINCT " if call.is_distinct else ""
    return f"FINAL {_function_name(call.name)}({distinct}{arguments}{order}){within}{only}"


def _function_name(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else sql_name(name)


def _argument(text: str, column: Callable[[str], str]) -> str:
    is_constant = text == "*" or _LITERAL.fullmatch(text.strip()) is not None
    return text if is_constant else sql_name(column(text))


def _keys(text: str, column: Callable[[str], str]) -> str:
    """Keys of an ORDER BY inside the call; what stands behind each key is kept."""
    found = []
    for key in _split(text):
        behind = re.search(r"(\s+(?:ASC|DESC))?(\s+NULLS\s+(?:FIRST|LAST))?\s*$", key, re.IGNORECASE)
        assert behind is not None
        found.append(sql_name(column(key[: behind.start()].strip())) + behind[0])
    return ", ".join(found)


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no parentheses or quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        depth += (character in "([") - (character in ")]") if not quote else 0
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _first_or_last(call: FunctionCall, column: Callable[[str], str], location: Location | None) -> ir.Expr:
    value, *flags = call.arguments or ("",)
    if not value or len(flags) > 1 or call.is_distinct or call.condition or call.order_by:
        raise AnalysisError(f"{call.name} takes one value", location, f"Write: {call.name}(x) OVER w")
    attribute, from_last = ir.Attribute(None, column(value)), call.name.startswith("last")
    if call.ignores_nulls or [flag.lower() for flag in flags] == ["true"]:
        return ir.Aggregate("last" if from_last else "first", attribute, final=True)
    return ir.Navigation(attribute, None, from_last, final=True)


def _nth(call: FunctionCall, column: Callable[[str], str], location: Location | None) -> ir.Expr:
    if len(call.arguments) != 2:
        raise AnalysisError("nth_value takes a value and a number", location, "Write: nth_value(x, 2) OVER w")
    value, number = call.arguments
    if re.fullmatch(r"null|cast\s*\(\s*null\s+as\s+\w+\s*\)", number.strip(), re.IGNORECASE):
        return ir.Literal(None, NULL)
    if not re.fullmatch(r"-?\d+", number.strip()):
        raise AnalysisError("the number of nth_value must be a literal whole number", location)
    place = int(number)
    if place < 1:
        raise ExecutionError(f"nth_value counts rows from 1, but {place} was given", location)
    attribute = ir.Attribute(None, column(value))
    if not call.ignores_nulls:
        return ir.Navigation(attribute, None, False, place - 1, final=True)
    name = sql_name(column(value))
    known = f"FINAL array_agg({name}) FILTER (WHERE {name} IS NOT NULL)"
    return _parsed(f"CASE WHEN FINAL count({name}) >= {place} THEN element_at({known}, {place}) END", location)


def _parsed(text: str, location: Location | None) -> ir.Expr:
    """The expression, read as a measure; an error in it is one of the call."""
    try:
        definition = match_recognize.parse(f"MEASURES {text} AS m PATTERN (A)")
    except KleeneError as error:
        raise AnalysisError(error.message, location, error.hint) from None
    assert definition.measures
    return definition.measures[0].expression
