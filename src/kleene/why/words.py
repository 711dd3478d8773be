"""Parts of an answer in words, the same in text and in tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kleene.errors import printable
from kleene.ir.expr import Expr
from kleene.ir.text import expression_text, literal_text
from kleene.schema import STRING, Type, is_nested
from kleene.why.model import Bound, Check, Event, Kind

_LONGEST = 120


def predicate_text(predicate: Expr) -> str:
    return printable(expression_text(predicate), _LONGEST)


def types_text(types: Sequence[str]) -> str:
    return "any row" if not types else f"is {' or '.join(map(printable, types))}"


def result_text(check: Check) -> str:
    if check.error is not None:
        return "error"
    return {True: "TRUE", False: "FALSE", None: "NULL"}[check.result]


def values_text(check: Check) -> str:
    """The values that decided the predicate: b.price = 7, a.price = 9."""
    found = [
        f"{predicate_text(one.expression)} = {value_text(one.value, one.expression.type)}" for one in check.operands
    ]
    if check.error is not None:
        found.append(printable(check.error, _LONGEST))
    return ", ".join(found)


def value_text(value: Any, type_: Type | None) -> str:
    if is_nested(type_) or type_ is None:
        return printable("NULL" if value is None else repr(value))
    if type_ == STRING and value is not None and not isinstance(value, str):
        return printable(repr(value))
    return printable(literal_text(value, type_))


def check_text(check: Check) -> str:
    values = values_text(check)
    verb = "cannot be decided" if check.error is not None else f"is {result_text(check)}"
    return f"{predicate_text(check.predicate)} {verb}" + (f" ({values})" if values else "")


def event_text(event: Event) -> str:
    type_ = "" if event.type is None else f" {printable(event.type)}"
    return f"row {event.row:,}{type_}" + (f" at {event.time}" if event.time else "")


def bound_text(bound: Bound) -> str:
    """What a run has bound, by rows: a = 0, b[] = 1 2 3."""
    return ", ".join(
        f"{printable(variable)} = {' '.join(_few([f'{event.row:,}' for event in events]))}"
        for variable, events in bound
    )


def _few(rows: list[str]) -> list[str]:
    return rows if len(rows) <= 6 else [*rows[:4], "…", rows[-1]]


def key_text(key: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{printable(name)} = {printable(value)}" for name, value in key)


def ending_word(kind: Kind) -> str:
    return kind.value
