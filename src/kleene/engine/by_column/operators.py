"""Expressions over values that are known at many points, from the bottom up: vectors to a vector.

The rules are those of `ir/evaluate.py`: NULL and NaN, three-valued logic, and what is not evaluated at all, such as the
branches of CASE that are not chosen. A value that is, or may be, an error is bad; if nothing needs it, it does not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kleene.analysis.conversions import type_of
from kleene.engine.by_column.forms import LEAVES, has_column_form
from kleene.engine.by_column.numbers import arithmetic, converted, negated, rounded_floats, whole_of_floats
from kleene.engine.by_column.vectors import (
    Vector,
    constant,
    either,
    kind_of,
    nothing,
    of_plain,
    plain_values_of,
    some,
)
from kleene.engine.compiled.columns import Array, Dictionary
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate
from kleene.schema import BOOLEAN, INTEGER, NULL, DecimalType, Type

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Strings(Dictionary):
    """The codes of all strings of a table's columns and of what is computed of them."""

    _ranked: Array = np.empty(0, np.int64)

    def order(self, codes: Array) -> Array:
        """Numbers in the order of the strings."""
        if len(self._ranked) < max(len(self.strings), 1):
            self._ranked = self.ranks()
        ranks: Array = self._ranked[codes]
        return ranks


class Operators:
    """Computes expressions at `size` points; `leaf` gives the values of what depends on rows."""

    def __init__(
        self, size: int, leaf: Callable[[ir.Expr], Vector], strings: Strings, check_time: Callable[[], None]
    ) -> None:
        self._size, self._leaf, self._strings, self._check_time = size, leaf, strings, check_time
        self._known: dict[int, tuple[ir.Expr, Vector]] = {}  # by identity: parts may be shared

    def value(self, expression: ir.Expr) -> Vector:
        known = self._known.get(id(expression))
        if known is None:
            with np.errstate(all="ignore"):
                known = self._known[id(expression)] = (expression, self._computed(expression))
        return known[1]

    def _computed(self, expression: ir.Expr) -> Vector:
        is_vectorized = isinstance(expression, ir.PythonCall) and expression.vectorized
        if isinstance(expression, LEAVES) or is_vectorized:
            return self._leaf(expression)
        if not has_column_form(expression):
            return self._value_by_value(expression)
        match expression:
            case ir.Literal(value=value):
                return constant(value, type_of(expression), self._size, self._strings)
            case ir.Comparison(operator=operator, left=left, right=right):
                return self._compared(operator, self.value(left), self.value(right))
            case ir.And(operands=operands):
                return self._all([self.value(operand) for operand in operands])
            case ir.Or(operands=operands):
                return self._any([self.value(operand) for operand in operands])
            case ir.Not(operand=operand):
                return _not(self.value(operand))
            case ir.IsNull(operand=operand):
                inner = self.value(operand)
                return Vector(BOOLEAN, inner.nulls, None, inner.is_bad)
            case ir.In(operand=operand, choices=choices):
                inner = self.value(operand)
                return self._any([self._compared("=", inner, self.value(choice)) for choice in choices])
            case ir.Case(branches=branches, default=default):
                return self._chosen(branches, default, type_of(expression))
            case ir.Arithmetic():
                return self._arithmetic(expression, self.value(expression.left), self.value(expression.right))
            case ir.Negate(operand=operand):
                return self._negated(self.value(operand))
            case ir.Cast(operand=operand):
                return self._cast(expression, self.value(operand))
            case ir.Function(arguments=arguments):
                return self._call(expression, [self.value(argument) for argument in arguments])
        raise AssertionError(f"no column form of {type(expression).__name__}")

    # --- conditions ----------------------------------------------------------------------------------------------

    def _compared(self, operator: str, left: Vector, right: Vector) -> Vector:
        is_null, is_bad = either(left.is_null, right.is_null), either(left.is_bad, right.is_bad)
        if NULL in (left.type, right.type):
            return replace(nothing(BOOLEAN, self._size), is_bad=is_bad)
        first, second = left.values, right.values
        if left.kind == "s" and operator not in ("=", "!="):
            first, second = self._strings.order(first), self._strings.order(second)
        if left.kind == "f":
            is_null = either(is_null, some(np.isnan(first)), some(np.isnan(second)))
        return Vector(BOOLEAN, _COMPARE[operator](first, second), is_null, is_bad)

    def _all(self, operands: Sequence[Vector]) -> Vector:
        """AND, from left to right: what stands behind FALSE is not evaluated."""
        is_false, is_null = np.zeros(self._size, np.bool_), np.zeros(self._size, np.bool_)
        is_bad: Array | None = None
        for operand in operands:
            condition = operand.typed(BOOLEAN)
            if condition.is_bad is not None:
                is_bad = either(is_bad, condition.is_bad & ~is_false)
            is_null |= condition.nulls
            is_false |= ~condition.values & condition.is_known
        return Vector(BOOLEAN, ~(is_false | is_null), some(is_null & ~is_false), is_bad)

    def _any(self, operands: Sequence[Vector]) -> Vector:
        return _not(self._all([_not(operand) for operand in operands]))

    # --- choices -------------------------------------------------------------------------------------------------

    def _chosen(self, branches: Sequence[tuple[ir.Expr, ir.Expr]], default: ir.Expr, type_: Type) -> Vector:
        found, is_open = _Chosen.start(type_, self._size), np.ones(self._size, np.bool_)
        for condition, result in branches:
            when = self.value(condition).typed(BOOLEAN)
            if when.is_bad is not None:
                found.spoil(is_open & when.is_bad)
                is_open &= ~when.is_bad
            found.put(is_open & when.is_true, self._as(self.value(result), type_))
            is_open &= ~when.is_true
        found.put(is_open, self._as(self.value(default), type_))
        return found.vector(type_)

    def _coalesced(self, arguments: Sequence[Vector], type_: Type) -> Vector:
        found, is_open = _Chosen.start(type_, self._size), np.ones(self._size, np.bool_)
        for argument in arguments:
            is_decided = is_open & (
                argument.is_known if argument.is_bad is None else argument.is_known | argument.is_bad
            )
            found.put(is_decided, self._as(argument, type_))
            is_open &= ~is_decided
        return found.vector(type_)

    def _extreme(self, arguments: Sequence[Vector], type_: Type, is_least: bool) -> Vector:
        """The least or the greatest of what is known; the first of equals."""
        found, best = _Chosen.start(type_, self._size), np.zeros(self._size, np.bool_)
        for argument in arguments:
            own = argument.typed(type_)
            is_known = own.is_known & ~np.isnan(own.values) if own.kind == "f" else own.is_known
            first, second = own.values, found.values
            if own.kind == "s":
                first, second = self._strings.order(first), self._strings.order(second)
            is_better = first < second if is_least else first > second
            found.put(is_known & (is_better | ~best), own)
            best |= is_known
        return replace(found.vector(type_), is_bad=either(*(argument.is_bad for argument in arguments)))

    def _as(self, vector: Vector, type_: Type) -> Vector:
        """The vector as one of the type; a type that is not known takes values of any."""
        if kind_of(type_) == "o" and vector.kind != "o":
            return of_plain(plain_values_of(vector, self._strings), type_, self._strings, vector.is_bad)
        return vector.typed(type_)

    # --- numbers -------------------------------------------------------------------------------------------------

    def _arithmetic(self, expression: ir.Arithmetic, left: Vector, right: Vector) -> Vector:
        type_, is_bad = type_of(expression), either(left.is_bad, right.is_bad)
        if NULL in (left.type, right.type):
            return replace(nothing(type_, self._size), is_bad=is_bad)
        values, is_zero, is_wide = arithmetic(expression.operator, left.values, right.values)
        is_null = either(left.is_null, right.is_null, is_zero)
        return Vector(type_, values, is_null, either(is_bad, _unless(is_wide, is_null)))

    def _negated(self, operand: Vector) -> Vector:
        if operand.kind == "f":
            return replace(operand, values=-operand.values)
        values, is_wide = negated(operand.values)
        return replace(operand, values=values, is_bad=either(operand.is_bad, _unless(is_wide, operand.is_null)))

    def _cast(self, cast: ir.Cast, operand: Vector) -> Vector:
        type_ = type_of(cast)
        if operand.type == NULL or (operand.type == type_ and not isinstance(type_, DecimalType)):
            return operand.typed(type_)
        values, is_wide = converted(cast, operand.values)
        return Vector(type_, values, operand.is_null, either(operand.is_bad, _unless(is_wide, operand.is_null)))

    def _call(self, call: ir.Function, arguments: Sequence[Vector]) -> Vector:
        type_, first = type_of(call), arguments[0]
        match call.name:
            case "coalesce":
                return self._coalesced(arguments, type_)
            case "least" | "greatest":
                return self._extreme(arguments, type_, call.name == "least")
            case "nullif":
                is_same = self._compared("=", first, arguments[1])
                is_bad = either(first.is_bad, arguments[1].is_bad)
                return Vector(type_, first.values, either(first.is_null, some(is_same.is_true)), is_bad)
            case "sqrt":
                return Vector(type_, np.sqrt(first.values), first.is_null, first.is_bad)
            case "round":
                return self._rounded_to(call, first)
            case "abs" if first.kind == "f":
                return replace(first, values=np.abs(first.values))
            case "abs":
                negative, is_wide = negated(first.values)
                values = np.where(first.values < 0, negative, first.values)
                return replace(first, values=values, is_bad=either(first.is_bad, _unless(is_wide, first.is_null)))
        assert call.name in ("floor", "ceil")
        return _rounded(first, type_, np.floor if call.name == "floor" else np.ceil)

    # --- value by value ------------------------------------------------------------------------------------------

    def _value_by_value(self, expression: ir.Expr) -> Vector:
        """What the interpreter says of the values of the parts; once for each combination of strings and booleans."""
        parts = [part for part in ir.children(expression) if not isinstance(part, ir.Literal)]
        vectors = [self.value(part) for part in parts]
        if all(vector.kind in "sb" and vector.is_bad is None for vector in vectors):
            examples, places = _combinations(vectors, self._size)
            examined = [vector.at(examples) for vector in vectors]
            return self._interpreted(expression, parts, examined, len(examples)).at(places)
        return self._interpreted(expression, parts, vectors, self._size)

    def _interpreted(
        self, expression: ir.Expr, parts: Sequence[ir.Expr], vectors: Sequence[Vector], size: int
    ) -> Vector:
        """The expression, of whose parts these are the values."""
        slots = {id(part): ir.Attribute(None, str(number), type=part.type) for number, part in enumerate(parts)}
        outer = ir.with_children(expression, lambda part: slots.get(id(part), part))
        columns = [plain_values_of(vector, self._strings) for vector in vectors]
        failed = either(np.zeros(size, np.bool_), *(vector.is_bad for vector in vectors))
        assert failed is not None
        found: list[Any] = []
        for point in range(size):
            self._check_time()
            value = None
            if not failed[point]:
                try:
                    value = evaluate(outer, AtPoint(columns, point))
                except ExecutionError:
                    failed[point] = True
            found.append(value)
        return of_plain(found, type_of(expression), self._strings, some(failed))

    def _rounded_to(self, call: ir.Function, operand: Vector) -> Vector:
        """Floats to that many places; those that are close to a half are left to the interpreter, which sees digits."""
        if operand.kind == "i":
            return operand
        places = call.arguments[1] if len(call.arguments) > 1 else ir.Literal(0, INTEGER)
        assert isinstance(places, ir.Literal)
        assert isinstance(places.value, int)
        values, is_close = rounded_floats(operand.values, places.value)
        left = np.flatnonzero(is_close & operand.is_known)
        if len(left):
            rest = self._interpreted(call, call.arguments[:1], [operand.at(left)], len(left))
            values[left] = rest.values
        return Vector(type_of(call), values, operand.is_null, operand.is_bad)


@dataclass(frozen=True, slots=True)
class AtPoint:
    """What the interpreter evaluates for: parts by their numbers, at one point."""

    columns: Sequence[Sequence[Any]]
    point: int

    def value(self, expression: ir.Expr) -> Any:
        assert isinstance(expression, ir.Attribute)
        return self.columns[int(expression.name)][self.point]


def _combinations(vectors: Sequence[Vector], size: int) -> tuple[Array, Array]:
    """A place for each combination of values, and for each point the number of its combination."""
    numbers, count = np.zeros(size, np.int64), 1
    for vector in vectors:
        own = np.where(vector.nulls, -1, vector.values) + 1
        both = numbers * (int(own.max(initial=0)) + 1) + own
        _, numbers = np.unique(both, return_inverse=True)
        count = int(numbers.max(initial=-1)) + 1
    examples = np.zeros(min(count, size), np.int64)
    examples[numbers[::-1]] = np.arange(size)[::-1]
    return examples, numbers


@dataclass(slots=True)
class _Chosen:
    """Values that are put together from those of several vectors."""

    values: Array
    is_null: Array
    is_bad: Array | None = None

    @classmethod
    def start(cls, type_: Type, size: int) -> _Chosen:
        empty = nothing(type_, size)
        assert empty.is_null is not None
        return cls(empty.values, empty.is_null)

    def put(self, where: Array, vector: Vector) -> None:
        self.values = np.where(where, vector.values, self.values)
        self.is_null = np.where(where, vector.nulls, self.is_null)
        if vector.is_bad is not None:
            self.spoil(where & vector.is_bad)

    def spoil(self, where: Array) -> None:
        self.is_bad = either(self.is_bad, where)

    def vector(self, type_: Type) -> Vector:
        return Vector(type_, self.values, some(self.is_null), None if self.is_bad is None else some(self.is_bad))


def _not(operand: Vector) -> Vector:
    condition = operand.typed(BOOLEAN)
    return replace(condition, values=~condition.values)


def _unless(is_wide: Array | None, is_null: Array | None) -> Array | None:
    """Where a number is too large, though not where it is NULL anyway."""
    return is_wide if is_wide is None or is_null is None else some(is_wide & ~is_null)


def _rounded(operand: Vector, type_: Type, function: Callable[[Array], Array]) -> Vector:
    if operand.kind == "i":
        return operand
    is_null = either(operand.is_null, some(~np.isfinite(operand.values)))
    values, is_wide = whole_of_floats(function(operand.values))
    return Vector(type_, values, is_null, either(operand.is_bad, _unless(is_wide, is_null)))
