"""Expressions: what predicates, measures and HAVING are made of, whatever language wrote them.

Nodes are compared by content; `span` says where in the text the node was written and `type` what analysis found out
about it, and neither counts in comparisons. After analysis every node has its type, and every conversion is a `Cast`,
so that an engine never has to guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

from kleene.schema import MOST_DECIMAL_DIGITS, Type
from kleene.source import NO_SPAN, Span

if TYPE_CHECKING:
    from kleene.ir.own import OwnAggregate

Value = bool | int | float | str | Decimal | None
"""A literal's value. Timestamps and durations are microseconds, dates are days, both since 1970 where that matters."""


class Position(Enum):
    """Which of a variable's events a reference means; the value is how SASE+ writes it."""

    EACH = ""  # a.price: the event; of a Kleene variable, every one of them
    FIRST = "[1]"
    CURRENT = "[i]"
    PREVIOUS = "[i-1]"
    LAST = "[LEN]"
    SO_FAR = "[..i-1]"  # inside an aggregate: the events selected before the current one
    ALL = "[]"  # inside an aggregate: all of the variable's events


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)
    type: Type | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant. `parameter` is the one that it is the value of; `written` is its text, where only its use tells its
    type for sure: on a command line, 12 is a number or a string.
    """

    value: Value
    of_type: Type
    parameter: str | None = field(default=None, compare=False, repr=False)
    written: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """`:name`, whose value a call gives; binding puts a literal in its place, and no engine sees it."""

    name: str


@dataclass(frozen=True, slots=True)
class Attribute(Expr):
    """An attribute of the event, or of one of the events, bound to a variable.

    `variable` None is, in SASE and before analysis only, a bare attribute; in row patterns, the universal variable.
    A name that is not exact stands for the column that differs from it in case only, if there is just one.
    """

    variable: str | None
    name: str
    position: Position = Position.EACH
    variable_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    exact: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InputConstant(Attribute):
    """A column of the input that has one value in all rows, which counts even where a match has none of them."""


@dataclass(frozen=True, slots=True)
class Events(Expr):
    """The events themselves: `a[]` in `count(a[])`, `A.*` in `count(A.*)`; without a variable, `count(*)`."""

    variable: str | None
    position: Position
    variable_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Length(Expr):
    """`a.LEN`: how many events the Kleene variable has selected."""

    variable: str


@dataclass(frozen=True, slots=True)
class Aggregate(Expr):
    """A function of a variable's events: `argument` is evaluated for each of them, NULLs are skipped.

    In row patterns `final` says that all rows of the match count, also those after the current one; `others` are
    further arguments, only rows count for which `condition` is TRUE, and they come in the order of the keys `order`.
    """

    function: str
    argument: Expr
    distinct: bool = False
    final: bool = False
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    others: tuple[Expr, ...] = ()
    condition: Expr | None = None
    order: tuple[OrderKey, ...] = ()
    own: OwnAggregate | None = None  # where the function is one of the user's own

    @property
    def is_plain(self) -> bool:
        """Whether it is a function of one argument over all rows as they come."""
        return not (self.others or self.order) and self.condition is None


@dataclass(frozen=True, slots=True)
class OrderKey(Expr):
    """What the rows of an aggregate are ordered by."""

    operand: Expr
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic(Expr):
    operator: str  # + - * / %
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Negate(Expr):
    operand: Expr


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    operator: str  # = != < <= > >=
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class And(Expr):
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Expr):
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    operand: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    operand: Expr


@dataclass(frozen=True, slots=True)
class In(Expr):
    operand: Expr
    choices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Between(Expr):
    """Split into two comparisons by analysis; no engine sees it."""

    operand: Expr
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Like(Expr):
    operand: Expr
    pattern: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """`CASE WHEN … THEN … ELSE … END`; without ELSE the default is a NULL literal."""

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A conversion; an implicit one was put in by analysis and is not shown. A decimal has at most `digits` digits.

    One that only `tries` is NULL where there is no such value.
    """

    operand: Expr
    to: Type
    implicit: bool = False
    digits: int = MOST_DECIMAL_DIGITS
    tries: bool = False


@dataclass(frozen=True, slots=True)
class Function(Expr):
    name: str
    arguments: tuple[Expr, ...]
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Item(Expr):
    """`x[key]`: what an array has at a place, from 0, or a map under a key; NULL where there is nothing."""

    operand: Expr
    key: Expr


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """`x.name` of a struct; a name that is not exact stands for the field that differs from it in case only."""

    operand: Expr
    name: str
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    exact: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    """`(x, y) -> body`: an argument of functions that only Spark has."""

    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expr):
    name: str


@dataclass(frozen=True, slots=True)
class IfPresent(Expr):
    """TRUE where an attribute that the predicate reads is missing from its event's type, else the predicate."""

    predicate: Expr


@dataclass(frozen=True, slots=True)
class Navigation(Expr):
    """The value of `argument` in another row of the partition (row patterns).

    First a row of the match is found: the one `offset` rows of the variable after its first or before its last (of the
    universal variable, where it is None), among the rows so far or, if `final`, among all. Then one goes `shift` rows
    from there in the partition; it is None where neither PREV nor NEXT was written.
    """

    argument: Expr
    variable: str | None
    from_last: bool = True
    offset: int = 0
    shift: int | None = None
    final: bool = False


@dataclass(frozen=True, slots=True)
class Classifier(Expr):
    """The name of the variable that the last row of `variable`, or of the match, was matched to."""

    variable: str | None
    final: bool = False


@dataclass(frozen=True, slots=True)
class MatchNumber(Expr):
    """The number of the match in its partition, from 1."""


@dataclass(frozen=True, slots=True)
class PythonCall(Expr):
    """A call of a Python function that the user gave by name.

    `returns` is the type of its values, where its annotations say it. A vectorized one takes arrays of Arrow.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Expr, ...]
    returns: Type | None = None
    vectorized: bool = False
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RowFunction(Expr):
    """A condition that is a Python function of the event being tried and the rows bound so far."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))


NEGATED_COMPARISON = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def children(expr: Expr) -> Iterator[Expr]:
    """The expressions directly inside an expression, from left to right."""
    for item in fields(expr):
        yield from _expressions_in(getattr(expr, item.name))


def _expressions_in(value: object) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions_in(item)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, outermost first. Not recursive, so that no depth is too deep for it."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(children(node))))


def depth_and_size(expr: Expr) -> tuple[int, int]:
    """How deep the expression nests, and how many nodes it has once BETWEEN is written out.

    Parts may be shared (CASE x WHEN … repeats its operand), so each is looked at once, but counted wherever it stands.
    """
    known: dict[int, tuple[int, int]] = {}
    waiting = [expr]
    while waiting:
        node = waiting[-1]
        parts = list(children(node))
        unknown = [part for part in parts if id(part) not in known]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        depths, sizes = zip(*(known[id(part)] for part in parts), strict=True) if parts else ((0,), (0,))
        again = known[id(node.operand)][1] if isinstance(node, Between) else 0
        known[id(node)] = (1 + max(depths), 1 + sum(sizes) + again)
    return known[id(expr)]


def with_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same node around changed children."""
    changed: dict[str, Any] = {}
    for item in fields(expr):
        old = getattr(expr, item.name)
        new = _changed(old, change)
        if new is not old:
            changed[item.name] = new
    return replace(expr, **changed) if changed else expr


def _changed(value: Any, change: Callable[[Expr], Expr]) -> Any:
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, tuple) and any(isinstance(item, (Expr, tuple)) for item in value):
        return tuple(_changed(item, change) for item in value)
    return value
