"""Conditions of steps, evaluated one event at a time: the part of the expressions that the cases use, in
three-valued logic.

`+ - * /`, comparisons, AND OR NOT, IS [NOT] NULL, COALESCE, numbers, strings, NULL, attributes of the event being
tried, `s.x`, and the aggregates FIRST LAST COUNT SUM AVG MIN MAX over `s.x` and COUNT over `s.*`. NULL and unknown
are None.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steps_model import Condition, Event

Bindings = tuple[tuple[str, Event], ...]


@dataclass(frozen=True)
class Moment:
    """The event being tried, and what the run has bound: pairs of step and event in the order of the events."""

    event: Event
    bindings: Bindings

    def bound(self, step: str) -> list[Event]:
        return [event for name, event in self.bindings if name == step]


Expression = Callable[[Moment], Any]
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*)|'([^']*)'|([A-Za-z_]\w*(?:\.(?:\w+|\*))?)|(<=|>=|<>|!=|[-+*/()<>=,]))")
_AGGREGATES = ("FIRST", "LAST", "COUNT", "SUM", "AVG", "MIN", "MAX")


def holds(condition: Condition, moment: Moment) -> bool:
    """Whether the condition is TRUE: the type always counts, the texts are joined from left to right."""
    if condition.letters is not None and moment.event.letter not in condition.letters:
        return False
    truth: Any = True
    for number, (joiner, text) in enumerate(condition.texts):
        value = expression(text)(moment)
        truth = value if number == 0 else _and(truth, value) if joiner == "AND" else _or(truth, value)
    return truth is True


@functools.cache
def expression(text: str) -> Expression:
    """The text as a function of a moment."""
    parser = _Parser(text)
    made = parser.disjunction()
    if parser.tokens:
        raise ValueError(f"{parser.tokens[0]!r} is left over in {text!r}")
    return made


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise ValueError(f"cannot read {text[place:]!r}")
            kind = ("number", "string", "name", "sign")[(found.lastindex or 1) - 1]
            self.tokens.append((kind, found.group(found.lastindex or 1)))
            place = found.end()

    def accept(self, *words: str) -> str | None:
        if self.tokens and self.tokens[0][0] in ("name", "sign") and self.tokens[0][1].upper() in words:
            return self.tokens.pop(0)[1].upper()
        return None

    def expect(self, word: str) -> None:
        if self.accept(word) is None:
            raise ValueError(f"{word!r} is missing")

    def disjunction(self) -> Expression:
        left = self.conjunction()
        while self.accept("OR"):
            left = _binary(_or, left, self.conjunction())
        return left

    def conjunction(self) -> Expression:
        left = self.negation()
        while self.accept("AND"):
            left = _binary(_and, left, self.negation())
        return left

    def negation(self) -> Expression:
        if self.accept("NOT"):
            inner = self.negation()
            return lambda moment: _not(inner(moment))
        return self.comparison()

    def comparison(self) -> Expression:
        left = self.total()
        if self.accept("IS"):
            negated = self.accept("NOT") is not None
            self.expect("NULL")
            return lambda moment: (left(moment) is None) != negated
        sign = self.accept("=", "<>", "!=", "<", "<=", ">", ">=")
        return left if sign is None else _binary(_COMPARE[sign], left, self.total())

    def total(self) -> Expression:
        left = self.product()
        while sign := self.accept("+", "-"):
            left = _binary(_COMPUTE[sign], left, self.product())
        return left

    def product(self) -> Expression:
        left = self.atom()
        while sign := self.accept("*", "/"):
            left = _binary(_COMPUTE[sign], left, self.atom())
        return left

    def atom(self) -> Expression:
        if self.accept("("):
            inner = self.disjunction()
            self.expect(")")
            return inner
        if self.accept("-"):
            return _binary(_COMPUTE["-"], lambda moment: 0, self.atom())
        kind, text = self.tokens.pop(0)
        if kind == "number":
            number = float(text) if "." in text else int(text)
            return lambda moment: number
        if kind == "string":
            return lambda moment: text
        return self.named(text)

    def named(self, text: str) -> Expression:
        word = text.upper()
        if word == "NULL":
            return lambda moment: None
        if word in ("TRUE", "FALSE"):
            return lambda moment: word == "TRUE"
        if word == "COALESCE":
            return self.coalesce()
        if word in _AGGREGATES:
            self.expect("(")
            step, _, attribute = self.tokens.pop(0)[1].partition(".")
            self.expect(")")
            return lambda moment: _aggregate(word, moment.bound(step), attribute)
        step, dot, attribute = text.partition(".")
        if dot:
            return lambda moment: _aggregate("FIRST", moment.bound(step), attribute)
        return lambda moment: moment.event.attribute(text)

    def coalesce(self) -> Expression:
        self.expect("(")
        choices = [self.disjunction()]
        while self.accept(","):
            choices.append(self.disjunction())
        self.expect(")")
        return lambda moment: next((value for value in (each(moment) for each in choices) if value is not None), None)


def _binary(operate: Callable[[Any, Any], Any], left: Expression, right: Expression) -> Expression:
    return lambda moment: operate(left(moment), right(moment))


def _strict(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: None if left is None or right is None else operate(left, right)


_COMPARE = {
    "=": _strict(lambda left, right: left == right),
    "<>": _strict(lambda left, right: left != right),
    "!=": _strict(lambda left, right: left != right),
    "<": _strict(lambda left, right: left < right),
    "<=": _strict(lambda left, right: left <= right),
    ">": _strict(lambda left, right: left > right),
    ">=": _strict(lambda left, right: left >= right),
}
_COMPUTE = {
    "+": _strict(lambda left, right: left + right),
    "-": _strict(lambda left, right: left - right),
    "*": _strict(lambda left, right: left * right),
    "/": _strict(lambda left, right: None if right == 0 else left / right),
}


def _and(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Any, right: Any) -> Any:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _not(value: Any) -> Any:
    return None if value is None else not value


def _aggregate(word: str, events: list[Event], attribute: str) -> Any:
    if attribute == "*":
        return len(events)
    values = [event.attribute(attribute) for event in events]
    if word in ("FIRST", "LAST"):
        return None if not values else values[0] if word == "FIRST" else values[-1]
    known = [value for value in values if value is not None]
    if word == "COUNT":
        return len(known)
    if not known:
        return None
    if word in ("SUM", "AVG"):
        return sum(known) / (len(known) if word == "AVG" else 1)
    return min(known) if word == "MIN" else max(known)
