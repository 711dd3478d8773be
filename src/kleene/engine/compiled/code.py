"""Typed expressions to Python source that numba can compile.

A value becomes three pieces of code: the value, whether it is NULL, and whether computing it is an error. A condition
becomes code for "it is TRUE", for "it is FALSE" and for the error. Connectives combine them as the interpreter would,
from left to right, so that an error in what need not be looked at does not count. No name and no literal of the query
gets into the source: columns and constants are numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kleene.engine.compiled.columns import IS_BAD, IS_NULL, Layout, MissingFrom, kind_of
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.own_calls import (
    BAD,
    NULL,
    InterpretedCall,
    Leaf,
    PlainStep,
    State,
    machine_call,
    machine_finish,
    machine_step,
)
from kleene.errors import ExecutionError, printable
from kleene.ir import expr as ir
from kleene.ir.calls import is_own
from kleene.ir.evaluate import evaluate
from kleene.ir.functions import times
from kleene.ir.text import expression_text
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    UNKNOWN,
    DecimalType,
    DurationType,
    TimestampType,
    average_type,
    is_nested,
    is_plain,
    per_microsecond,
)

HEADER = """\
import math
import numpy as np
from kleene.engine.compiled.arithmetic import (
    EXACT_IN_FLOAT, add, average, divide, exponential, float_remainder, hash_float, logarithm, multiply,
    multiply_or_stop, remainder, square_root, subtract, truncated, whole_below,
)
"""
"""How every generated module begins."""
MOST_CODE = 62_000
"""Characters of source; several times what most queries need. More takes minutes to compile."""
MOST_CHOICES = 16
"""Longer lists of IN are looked up beforehand where that can be done."""
_COMPILED = frozenset(
    {
        *("abs", "ceil", "coalesce", "exp", "floor", "greatest", "least", "ln", "nullif", "pmod", "round", "sign"),
        *("date_add", "date_diff", "date_sub", "hour", "minute", "second", "sqrt", "unix_timestamp"),
    }
)
"""Functions that there is code for; of others, those of one event are computed beforehand."""
_PASSED_ON = (ir.Attribute, ir.Navigation)
_DEPENDENT = (ir.Attribute, ir.Events, ir.Length, ir.Aggregate, ir.Navigation, ir.Classifier, ir.MatchNumber)
_SIGNS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPPOSITE = {"=": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class _NeedsColumnError(Exception):
    """A part that only the interpreter can compute, which it can do beforehand if the part is of one event."""


@dataclass(frozen=True, slots=True)
class Scalar:
    code: str
    null: str | None = None
    bad: str | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    true: str
    false: str
    bad: str | None = None


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the numbers of an aggregate's state stand, and whether it has none yet."""

    state: State
    names: tuple[str, ...]
    null: str


class Reader:
    """Where the values of events come from: here, all from the event of one row."""

    row = "row"
    beyond: tuple[type[ir.Expr], ...] = (ir.Classifier, ir.MatchNumber)
    """What does not depend on one event alone."""

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        """An attribute, an aggregate, or another node that depends on the events."""
        if isinstance(expression, (ir.Attribute, MissingFrom)):
            return self.of_event(code.layout.column(expression), expression, code)
        if isinstance(expression, ir.IfPresent):
            return self._if_present(expression, code)
        raise NotExpressibleError(f"the {type(expression).__name__.lower()} of another row")

    def states(self, aggregate: ir.Aggregate, code: Code) -> Slots:
        """The state of an aggregate of the user's own over the events so far."""
        raise NotExpressibleError(f"the aggregate '{printable(aggregate.function)}' inside another value")

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        """A node by which the event is known, if the expression reads just one event; else None."""
        return None if any(isinstance(node, self.beyond) for node in ir.walk(expression)) else expression

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        """The column's value for the event that the node reads."""
        return code.column(column, self.row)

    def navigated(self, expression: ir.Expr) -> ir.Navigation | None:
        """The expression as a value of the one row that it navigates to; None if it does not, or reads others too."""
        return None

    def of_navigated(self, navigation: ir.Navigation, code: Code) -> Scalar | Truth:
        """The value of such an expression, which may be known though there is no such row."""
        raise AssertionError("this reader does not navigate")

    def _if_present(self, expression: ir.IfPresent, code: Code) -> Truth:
        """TRUE where an attribute that the predicate reads is missing from its event's type."""
        missing: list[Truth] = []
        for node in ir.walk(expression.predicate):
            if isinstance(node, ir.Attribute) and node.position not in (ir.Position.ALL, ir.Position.SO_FAR):
                column = code.layout.column(MissingFrom((node.name,), type=BOOLEAN))
                found = self.of_event(column, node, code)
                missing.append(found if isinstance(found, Truth) else as_truth(found))
        inner = code.truth(expression.predicate, self)
        lacks = code.temp("(" + " or ".join(part.true for part in missing) + ")") if missing else "False"
        bad = None if inner.bad is None else f"(not {lacks} and {inner.bad})"
        return Truth(f"({lacks} or {inner.true})", f"(not {lacks} and {inner.false})", bad)


@dataclass(slots=True)
class AtRow(Reader):
    """Reads the event of another row."""

    row: str


class _AllNull:
    """An event that does not exist."""

    def value(self, expression: ir.Expr) -> Any:
        return None


@dataclass(slots=True)
class Code:
    """Lines of a function that is being written."""

    layout: Layout
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    _count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def function(self, head: str) -> str:
        """The lines as the body of a function."""
        return f"def {head}:\n" + "\n".join(self.lines)

    def return_if(self, test: str, value: object = 0) -> None:
        with self.block(f"if {test}:"):
            self.line(f"return {value}")

    def return_if_bad(self, value: Scalar | Truth, expression: ir.Expr, where: str = "") -> None:
        """Returns the number of an error if the value of the expression cannot be computed."""
        if value.bad is not None:
            self.return_if(f"{where}{value.bad}", self.layout.error(expression))

    def return_unless(self, condition: ir.Expr, reader: Reader) -> None:
        """Returns 0 unless the condition holds, or the number of an error."""
        truth = self.truth(condition, reader)
        self.return_if_bad(truth, condition)
        self.return_if(f"not {truth.true}")

    def name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def temp(self, code: str) -> str:
        """A name for the value, unless it is short enough to be repeated."""
        if len(code) <= 12 and " " not in code:
            return code
        found = self.name()
        self.line(f"{found} = {code}")
        return found

    def pair(self, code: str) -> tuple[str, str]:
        value, flag = self.name(), self.name()
        self.line(f"{value}, {flag} = {code}")
        return value, flag

    # --- columns -------------------------------------------------------------------------------------------------

    def column(self, number: int, row: str) -> Scalar | Truth:
        """The value of the column in the row."""
        layout = self.layout
        column = layout.columns[number]
        value = f"columns[{2 * number + 1}][{row}]"
        null = bad = None
        if layout.has_mask[number]:
            mask = self.temp(f"columns[{2 * number + 2}][{row}]")
            null = f"({mask} == {IS_NULL})"
            bad = None if isinstance(column.expression, ir.Attribute) else f"({mask} == {IS_BAD})"
        if column.kind == "b":
            return as_truth(Scalar(value, null, bad))
        return Scalar(self.temp(value), null, bad)

    # --- conditions ----------------------------------------------------------------------------------------------

    def truth(self, expression: ir.Expr, reader: Reader) -> Truth:
        """The condition, in pieces short enough to be used more than once."""
        found = self._try(expression, reader)
        return self._short(found if isinstance(found, Truth) else as_truth(found))

    def scalar(self, expression: ir.Expr, reader: Reader) -> Scalar:
        found = self._try(expression, reader)
        return found if isinstance(found, Scalar) else as_scalar(found)

    def _short(self, truth: Truth) -> Truth:
        long = 60
        return Truth(
            self.temp(truth.true) if len(truth.true) > long else truth.true,
            self.temp(truth.false) if len(truth.false) > long else truth.false,
            self.temp(truth.bad) if truth.bad is not None and len(truth.bad) > long else truth.bad,
        )

    def _try(self, expression: ir.Expr, reader: Reader) -> Scalar | Truth:
        """The code for an expression, or, where there is none, a column that was computed beforehand."""
        mark, count = len(self.lines), self._count
        try:
            return self._value(expression, reader)
        except _NeedsColumnError as reason:
            del self.lines[mark:]
            self._count = count
            if is_nested(expression.type) or expression.type == UNKNOWN:
                raise  # what is made of it may be a plain value
            if not any(isinstance(node, _DEPENDENT) for node in ir.walk(expression)):
                return self._folded(expression, f"the constant {_shown(expression)}, which has no value")
            event = reader.one_event(expression)
            if event is None:
                navigation = reader.navigated(expression)
                if navigation is not None:
                    return reader.of_navigated(navigation, self)
                if not self.layout.plain or not any(map(is_own, ir.walk(expression))):
                    raise NotExpressibleError(str(reason)) from None
                return self._interpreted(expression, reader)
            return reader.of_event(self.layout.column(expression), event, self)

    def for_nulls(self, expression: ir.Expr) -> Scalar | Truth:
        """The value of an expression over an event that does not exist: all its attributes are NULL."""
        return self._folded(expression, f"{_shown(expression)}, which has no value for NULLs")

    def _folded(self, expression: ir.Expr, problem: str) -> Scalar | Truth:
        """The value of an expression that depends on no event, or on one that does not exist."""
        try:
            value = evaluate(expression, _AllNull())
        except ExecutionError:
            raise NotExpressibleError(problem) from None
        assert expression.type is not None
        return self._literal(ir.Literal(value, expression.type, type=expression.type), value)

    def either(self, test: str, one: Scalar | Truth, other: Scalar | Truth, like: ir.Expr) -> Scalar | Truth:
        """One value where the test holds, else the other."""
        left, right = (item if isinstance(item, Scalar) else as_scalar(item) for item in (one, other))
        null, bad = _chosen(test, left.null, right.null), _chosen(test, left.bad, right.bad)
        return typed(Scalar(f"({left.code} if {test} else {right.code})", null, bad), like)

    def _value(self, expression: ir.Expr, reader: Reader) -> Scalar | Truth:
        if _computes_nested(expression):
            raise _NeedsColumnError(f"{_shown(expression)} over several events")
        match expression:
            case ir.Literal(value=value):
                return self._literal(expression, value)
            case ir.Comparison(operator=operator, left=left, right=right):
                return self._comparison(operator, left, right, reader)
            case ir.And(operands=operands):
                return self._all([self.truth(operand, reader) for operand in operands])
            case ir.Or(operands=operands):
                return negated(self._all([negated(self.truth(operand, reader)) for operand in operands]))
            case ir.Not(operand=operand):
                return negated(self.truth(operand, reader))
            case ir.IsNull(operand=operand):
                return self._is_null(operand, reader)
            case ir.In(operand=operand, choices=choices):
                if len(choices) > MOST_CHOICES and reader.one_event(expression) is not None:
                    raise _NeedsColumnError("a long list")
                equal = [negated(self._comparison("=", operand, choice, reader)) for choice in choices]
                return negated(self._all([self._short(item) for item in equal]))
            case ir.Case():
                return self._case(expression, reader)
            case ir.Arithmetic():
                return self._arithmetic(expression, reader)
            case ir.Negate(operand=operand):
                found = self.scalar(operand, reader)
                if expression.type == FLOAT:
                    return Scalar(f"(-{found.code})", found.null, found.bad)
                return self.checked(f"subtract(0, {found.code})", [found], expression)
            case ir.Cast():
                return self._cast(expression, reader)
            case ir.Function():
                return self._function(expression, reader)
            case ir.Item() | ir.Field():
                raise _NeedsColumnError(f"a part of a value over several events ({_shown(expression)})")
            case ir.Like():
                raise _NeedsColumnError(f"LIKE over several events ({_shown(expression)})")
            case ir.PythonCall():
                return self._python_call(expression, reader)
        return reader.read(expression, self)

    # --- functions of the user's own -------------------------------------------------------------------------------

    def _python_call(self, call: ir.PythonCall, reader: Reader) -> Scalar | Truth:
        what = f"a call of the function '{printable(call.name)}' over several events"
        if call.type == UNKNOWN:
            raise _NeedsColumnError(f"{what}, since no annotation says its type")
        if self.layout.plain or call.vectorized:
            raise _NeedsColumnError(what)
        arguments = [self.scalar(argument, reader) for argument in call.arguments]
        try:
            name = machine_call(call, self.layout, [argument.null is not None for argument in arguments])
        except NotExpressibleError as reason:
            raise _NeedsColumnError(str(reason)) from None  # Python may call it beforehand
        passed = [part for one in arguments for part in (one.code, one.null) if part is not None]
        value, status = self.pair(f"{name}({', '.join(passed)})")
        bad = None
        for argument in arguments:
            bad = _either(bad, argument.bad)
        return typed(Scalar(value, f"({status} == {NULL})", _either(bad, f"({status} == {BAD})")), call)

    def _interpreted(self, expression: ir.Expr, reader: Reader) -> Scalar | Truth:
        """A call of the interpreter, which plain Python can make, with the values that the expression reads."""
        leaves: list[Leaf] = []
        passed, bad = list[str](), None
        for node in _leaves_of(expression):
            if isinstance(node, ir.Aggregate) and node.own is not None:
                slots = reader.states(node, self)
                leaves.append(Leaf(node, "", slots.state))
                passed += [*slots.names, slots.null]
                continue
            if not is_plain(node.type):
                raise NotExpressibleError(f"{_shown(expression)}, which looks into values of type {node.type}")
            value = self.scalar(node, reader)
            leaves.append(Leaf(node, kind_of(node.type)))
            passed += [value.code, value.null or "False"]
            bad = _either(bad, value.bad)
        name = self.layout.call(InterpretedCall(expression, tuple(leaves), self.layout.failures))
        found, status = self.pair(f"{name}(columns, {', '.join([bad or 'False', *passed])})")
        return typed(Scalar(found, f"({status} == {NULL})", f"({status} == {BAD})"), expression)

    def constant(self, value: int | float) -> str:
        return self.layout.float_(value) if isinstance(value, float) else self.layout.integer(value)

    def stepped(
        self, aggregate: ir.Aggregate, state: State, before: Sequence[str], value: str
    ) -> tuple[list[str], str]:
        """Names of the numbers of the next state of an aggregate of the user's own, and of the status of the step."""
        if self.layout.plain:
            kind = kind_of(aggregate.argument.type)
            step = self.layout.call(PlainStep(aggregate, state, kind, self.layout.failures)) + "(columns, "
        else:
            step = machine_step(aggregate, state, self.layout) + "("
        after, status = [self.name() for _ in before], self.name()
        self.line(f"{', '.join([*after, status])} = {step}{', '.join([*before, value])})")
        return after, status

    def finished(self, aggregate: ir.Aggregate, slots: Slots) -> Scalar | Truth:
        """The value of an aggregate of the user's own."""
        if self.layout.plain:
            raise _NeedsColumnError(f"the aggregate '{printable(aggregate.function)}'")
        name = machine_finish(aggregate, slots.state, self.layout)
        value, status = self.pair(f"{name}({', '.join(slots.names)})")
        null = f"({slots.null} or {status} == {NULL})"
        return typed(Scalar(value, null, f"(not {slots.null} and {status} == {BAD})"), aggregate)

    def _literal(self, expression: ir.Literal, value: object) -> Scalar | Truth:
        if value is None:
            return Scalar("0.0" if expression.type == FLOAT else "0", "True")
        if isinstance(value, bool):
            return Truth(str(value), str(not value))
        if isinstance(value, str):
            return Scalar(self.layout.string(value))
        if isinstance(value, float):
            return Scalar(self.layout.given_float(value))
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return Scalar(self.layout.given_integer(value))
        raise _NeedsColumnError(f"the number {_shown(expression)}, wider than 64 bits")

    def _all(self, truths: list[Truth]) -> Truth:
        """AND, looked at from left to right until one is FALSE."""
        true, false, bad = "True", "False", None
        for item in truths:
            if item.bad is not None:
                new = item.bad if false == "False" else f"(not {false} and {item.bad})"
                own_false = f"(not {item.bad} and {item.false})"
            else:
                new, own_false = None, item.false
            if bad is not None:
                own_false = f"(not {bad} and {own_false})"
            bad = _either(bad, new)
            false = own_false if false == "False" else f"({false} or {own_false})"
            true = item.true if true == "True" else f"({true} and {item.true})"
            combined = self._short(Truth(true, false, bad))
            true, false, bad = combined.true, combined.false, combined.bad
        return Truth(true, false, bad)

    def _is_null(self, operand: ir.Expr, reader: Reader) -> Truth:
        if operand.type == BOOLEAN:
            inner = self.truth(operand, reader)
            known = f"({inner.true} or {inner.false})"
            return _guarded(Truth(f"(not {known})", known), inner.bad)
        found = self.scalar(operand, reader)
        null = found.null or "False"
        return _guarded(Truth(f"({null})", f"(not {null})"), found.bad)

    def _comparison(self, operator: str, left: ir.Expr, right: ir.Expr, reader: Reader) -> Truth:
        sides = [self._compared(side, reader) for side in (left, right)]
        codes = [self.temp(side.code) for side in sides]
        null = _either(sides[0].null, sides[1].null)
        if operator not in ("=", "!="):
            text = left if left.type == STRING else right
            codes = [self.comparable(code, text) for code in codes]
        nan = None
        for side, code in zip((left, right), codes, strict=True):
            if side.type == FLOAT and not isinstance(side, ir.Literal):
                nan = _either(nan, f"({code} != {code})")
        bad = _either(sides[0].bad, sides[1].bad)
        if null is not None:
            null = self.temp(null)
        first, second = codes
        true, false = (
            # Beside NaN all signs but this one are false by themselves.
            _unless(_either(null, nan) if sign == "!=" else null, f"({first} {sign} {second})")
            for sign in (_SIGNS[operator], _OPPOSITE[operator])
        )
        return _guarded(Truth(true, false), bad)

    def _compared(self, side: ir.Expr, reader: Reader) -> Scalar:
        """A side of a comparison; a decimal that an implicit conversion makes too wide is as large as can be."""
        if isinstance(side, ir.Cast) and side.implicit and isinstance(side.to, DecimalType):
            power = _power(side)
            if power is not None:
                inner = self.scalar(side.operand, reader)
                factor = self.layout.integer(10**power)
                return Scalar(f"multiply_or_stop({inner.code}, {factor})", inner.null, inner.bad)
        return self.scalar(side, reader)

    def _case(self, expression: ir.Case, reader: Reader) -> Scalar | Truth:
        conditions = [self.truth(condition, reader) for condition, _ in expression.branches]
        values = [*(result for _, result in expression.branches), expression.default]
        *results, default = (self._bounded(value, expression) for value in self._of_type(values, expression, reader))
        code, null, bad = default.code, default.null, default.bad
        for condition, result in reversed(list(zip(conditions, results, strict=True))):
            test = self.temp(condition.true)
            code = self.temp(f"({result.code} if {test} else {code})")
            null = self._named(_chosen(test, result.null, null))
            bad = self._named(_either(condition.bad, _chosen(test, result.bad, bad)))
        return typed(Scalar(code, null, bad), expression)

    def _of_type(self, values: Iterable[ir.Expr], whole: ir.Expr, reader: Reader) -> list[Scalar]:
        """The values of which the whole is one."""
        if whole.type == BOOLEAN:
            return [as_scalar(self.truth(value, reader)) for value in values]
        return [self.scalar(value, reader) for value in values]

    def _named(self, code: str | None) -> str | None:
        """Code that is long has a name, so that it does not nest ever deeper."""
        return code if code is None or len(code) < 200 else self.temp(code)

    def _bounded(self, value: Scalar, like: ir.Expr) -> Scalar:
        """The value; a decimal of more than 18 digits is left to the interpreter, which has 38."""
        return self._within_digits(value, 18) if isinstance(like.type, DecimalType) else value

    def _within_digits(self, value: Scalar, digits: int) -> Scalar:
        wide = self.too_wide(value.code, digits)
        return Scalar(value.code, value.null, _either(value.bad, f"(not {value.null or 'False'} and ({wide}))"))

    def too_wide(self, code: str, digits: int = 18) -> str:
        limit = self.layout.integer(10**digits)
        return f"{code} >= {limit} or {code} <= -{limit}"

    # --- numbers -------------------------------------------------------------------------------------------------

    def checked(self, call: str, operands: list[Scalar], expression: ir.Expr) -> Scalar:
        """The result of a function that also says whether it went too far."""
        null = bad = None
        for operand in operands:
            null, bad = _either(null, operand.null), _either(bad, operand.bad)
        value, flag = self.pair(call)
        if null is not None:
            flag = f"(not {null} and {flag})"
        return self._bounded(Scalar(value, null, _either(bad, flag)), expression)

    def _arithmetic(self, expression: ir.Arithmetic, reader: Reader) -> Scalar:
        left, right = self.scalar(expression.left, reader), self.scalar(expression.right, reader)
        null, bad = _either(left.null, right.null), _either(left.bad, right.bad)
        operator = expression.operator
        is_float = expression.type == FLOAT
        if operator == "/":
            divisor = self.temp(right.code)
            whole = self._as_float_code(expression.left, left), self._as_float_code(expression.right, Scalar(divisor))
            return Scalar(f"divide({whole[0]}, {whole[1]})", _either(null, f"({divisor} == 0)"), bad)
        if operator == "%":
            divisor = self.temp(right.code)
            name = "float_remainder" if is_float else "remainder"
            return Scalar(f"{name}({left.code}, {divisor})", _either(null, f"({divisor} == 0)"), bad)
        if is_float:
            return Scalar(f"({left.code} {operator} {right.code})", null, bad)
        name = {"+": "add", "-": "subtract", "*": "multiply"}[operator]
        return self.checked(f"{name}({left.code}, {right.code})", [left, right], expression)

    def _as_float_code(self, expression: ir.Expr, value: Scalar) -> str:
        return value.code if expression.type == FLOAT else f"float({value.code})"

    def as_float(self, value: Scalar, type_: object) -> Scalar:
        """A number as a float; decimals of more than 2^53 units are left to the interpreter, to be exact."""
        if isinstance(type_, DecimalType):
            code = self.temp(value.code)
            wide = f"({code} > EXACT_IN_FLOAT or {code} < -EXACT_IN_FLOAT)"
            power = self.layout.float_(float(10**type_.scale))
            bad = _either(value.bad, f"(not {value.null or 'False'} and {wide})")
            return Scalar(f"(float({code}) / {power})", value.null, bad)
        return value if type_ == FLOAT else Scalar(f"float({value.code})", value.null, value.bad)

    def average(self, total: Scalar, known: Scalar, argument: ir.Expr) -> Scalar:
        """The sum of an argument's values divided by how many are known."""
        if isinstance(argument.type, DecimalType):
            found = average_type(argument.type)
            assert isinstance(found, DecimalType)
            factor = self.layout.integer(10 ** (found.scale - argument.type.scale))
            divided = f"average({total.code}, {known.code}, {factor})"
            return self.checked(divided, [total], ir.Expr(type=found))
        whole = self.as_float(total, argument.type)
        return Scalar(f"divide({whole.code}, float({known.code}))", whole.null, whole.bad)

    def spread(self, function: str, known: Scalar, squares: Scalar) -> Scalar:
        """A variance or a standard deviation, of the sum of the squares of distances from the mean."""
        fewer = "" if function.endswith("_pop") else " - 1"
        variance = f"divide({squares.code}, float({known.code}{fewer}))"
        null = f"({known.code}{fewer} < 1)"
        return Scalar(variance if function.startswith("var") else f"square_root({variance})", null)

    def _cast(self, cast: ir.Cast, reader: Reader) -> Scalar | Truth:
        source, target = cast.operand.type, cast.to
        if cast.tries:
            raise _NeedsColumnError(f"TRY_CAST over several events ({_shown(cast)})")
        if source == STRING or target == STRING:
            if source == target:
                return self.scalar(cast.operand, reader)
            raise _NeedsColumnError(f"a conversion of strings over several events ({_shown(cast)})")
        if isinstance(cast.operand, ir.Literal) and cast.operand.value is None:
            return Scalar("0.0" if target == FLOAT else "0", "True")
        if target == BOOLEAN:
            if source == BOOLEAN:
                return self.truth(cast.operand, reader)
            found = self.scalar(cast.operand, reader)
            return as_truth(Scalar(f"({found.code} != 0)", found.null, found.bad))
        found = self.scalar(cast.operand, reader)
        match target:
            case DecimalType():
                power = _power(cast)
                if power is None:
                    raise _NeedsColumnError(f"a conversion to decimal over several events ({_shown(cast)})")
                scaled = self.checked(f"multiply({found.code}, {self.layout.integer(10**power)})", [found], ir.Expr())
                return scaled if cast.implicit else self._within_digits(scaled, min(cast.digits, 18))
            case TimestampType() if source == DATE:
                day = self.layout.integer(86_400_000_000 * per_microsecond(target))
                return self.checked(f"multiply({found.code}, {day})", [found], cast)
            case TimestampType() | DurationType() if per_microsecond(target) > per_microsecond(source):
                return self.checked(f"multiply({found.code}, {per_microsecond(target)})", [found], cast)
            case TimestampType() | DurationType() if per_microsecond(target) < per_microsecond(source):
                return Scalar(f"({found.code} // {per_microsecond(source)})", found.null, found.bad)
            case _ if target == source or (isinstance(source, TimestampType) and isinstance(target, TimestampType)):
                return found
            case _ if target == FLOAT:
                return self.as_float(found, source)
            case _ if target == INTEGER and source == FLOAT:
                return self.checked(f"truncated({found.code})", [found], cast)
            case _ if target == INTEGER and isinstance(source, DecimalType):
                whole = self.layout.integer(10**source.scale)
                code = self.temp(found.code)
                return Scalar(f"({code} // {whole} if {code} >= 0 else -(-{code} // {whole}))", found.null, found.bad)
            case _ if target == INTEGER and source == BOOLEAN:
                return found
            case _ if target == DATE and isinstance(source, TimestampType):
                day = self.layout.integer(86_400_000_000 * per_microsecond(source))
                return Scalar(f"({found.code} // {day})", found.null, found.bad)
        raise _NeedsColumnError(f"the conversion {_shown(cast)} over several events")

    def _function(self, call: ir.Function, reader: Reader) -> Scalar | Truth:
        name = call.name
        if name not in _COMPILED or not _has_code(call):
            raise _NeedsColumnError(f"{name} over several events ({_shown(call)})")
        if name == "round":
            return self._round(call, reader)
        arguments = self._of_type(call.arguments, call, reader)
        first = arguments[0]
        match name:
            case "coalesce":
                return typed(self._first_known(arguments, call), call)
            case "least" | "greatest":
                return typed(self._extreme(call, arguments), call)
            case "nullif":
                return typed(self._nullif(*arguments), call)
            case "abs" if call.type == FLOAT:
                return Scalar(f"abs({first.code})", first.null, first.bad)
            case "abs":
                code = self.temp(first.code)
                negative = self.checked(f"subtract(0, {code} if {code} < 0 else 0)", [first], ir.Expr())
                return Scalar(f"({negative.code} if {code} < 0 else {code})", negative.null, negative.bad)
            case "sqrt":
                return Scalar(f"square_root({first.code})", first.null, first.bad)
            case "exp":
                return Scalar(f"exponential({first.code})", first.null, first.bad)
            case "sign":
                code = self.temp(first.code)
                return Scalar(f"(1.0 if {code} > 0.0 else -1.0 if {code} < 0.0 else {code})", first.null, first.bad)
            case "ln":
                code = self.temp(first.code)
                return Scalar(f"logarithm({code})", _either(first.null, f"({code} <= 0.0)"), first.bad)
            case "floor" | "ceil":
                return self._whole(call, first)
            case "pmod":
                return self._positive_remainder(call, *arguments)
        return self._time(call, arguments)

    def _nullif(self, value: Scalar, other: Scalar) -> Scalar:
        code = self.temp(value.code)
        equal = f"({code} == {other.code})" if other.null is None else f"(not {other.null} and {code} == {other.code})"
        return Scalar(code, self.temp(_either(value.null, equal) or equal), _either(value.bad, other.bad))

    def _positive_remainder(self, call: ir.Function, left: Scalar, right: Scalar) -> Scalar:
        name = "float_remainder" if call.type == FLOAT else "remainder"
        divisor = self.temp(right.code)
        found = self.temp(f"{name}({left.code}, {divisor})")
        null = _either(_either(left.null, right.null), f"({divisor} == 0)")
        positive = f"({name}({found} + {divisor}, {divisor}) if {found} < 0 else {found})"
        return Scalar(positive, null, _either(left.bad, right.bad))

    def _time(self, call: ir.Function, arguments: list[Scalar]) -> Scalar:
        """Functions of dates and of times without a zone."""
        units = [_microseconds(argument.type) for argument in call.arguments]
        first, *others = arguments
        if call.name in times.CLOCK_PARTS:
            size, many = times.CLOCK_PARTS[call.name]
            whole = f"({first.code} * 86400000000)" if call.arguments[0].type == DATE else first.code
            return Scalar(f"({whole} // {self.layout.integer(size * units[0])} % {many})", first.null, first.bad)
        if call.name == "unix_timestamp":
            if call.arguments[0].type == DATE:
                return Scalar(f"({first.code} * 86400)", first.null, first.bad)
            second, code = self.layout.integer(1_000_000 * units[0]), self.temp(first.code)
            return Scalar(f"({code} // {second} if {code} >= 0 else -(-{code} // {second}))", first.null, first.bad)
        day = self._days(call.arguments[0], first)
        if call.name == "date_diff":
            other = self._days(call.arguments[1], others[0])
            return Scalar(f"({day} - {other})", _either(first.null, others[0].null), _either(first.bad, others[0].bad))
        sign = "add" if call.name == "date_add" else "subtract"
        found = self.checked(f"{sign}({day}, {others[0].code})", [first, others[0]], ir.Expr())
        limit, code = self.layout.integer(2**31), self.temp(found.code)
        too_far = f"(not {found.null or 'False'} and ({code} >= {limit} or {code} < -{limit}))"
        return Scalar(code, found.null, _either(found.bad, too_far))

    def _days(self, operand: ir.Expr, value: Scalar) -> str:
        if operand.type == DATE:
            return value.code
        return f"({value.code} // {self.layout.integer(86_400_000_000 * _microseconds(operand.type))})"

    def _round(self, call: ir.Function, reader: Reader) -> Scalar:
        places = call.arguments[1].value if len(call.arguments) > 1 and isinstance(call.arguments[1], ir.Literal) else 0
        if call.type == INTEGER and isinstance(places, int) and places >= 0:
            return self.scalar(call.arguments[0], reader)
        raise _NeedsColumnError(f"round over several events ({_shown(call)})")

    def _whole(self, call: ir.Function, value: Scalar) -> Scalar:
        source, code = call.arguments[0].type, self.temp(value.code)
        down = call.name == "floor"
        if isinstance(source, DecimalType):
            power = self.layout.integer(10**source.scale)
            return Scalar(f"({code} // {power})" if down else f"(-(-{code} // {power}))", value.null, value.bad)
        if source != FLOAT:
            return value
        null = _either(value.null, f"({code} - {code} != 0.0)")
        found = self.checked(f"whole_below({code if down else f'-{code}'})", [Scalar(code, null, value.bad)], call)
        return found if down else self.checked(f"subtract(0, {found.code})", [found], call)

    def _first_known(self, arguments: list[Scalar], call: ir.Function) -> Scalar:
        """What comes behind one that is known is not needed, and may be an error."""
        found = arguments[-1]
        for argument in reversed(arguments[:-1]):
            if argument.null is not None:
                code = self.temp(f"({found.code} if {argument.null} else {argument.code})")
                null = None if found.null is None else self.temp(f"({argument.null} and {found.null})")
                later = None if found.bad is None else f"({argument.null} and {found.bad})"
                found = Scalar(code, null, self._named(_either(argument.bad, later)))
            else:
                found = argument
        return self._bounded(found, call)

    def _extreme(self, call: ir.Function, arguments: list[Scalar]) -> Scalar:
        """The least or the greatest of those that are neither NULL nor NaN."""
        sign = "<" if call.name == "least" else ">"
        found, bad = Scalar("0.0" if call.type == FLOAT else "0", "True"), None
        for argument in arguments:
            code = self.temp(argument.code)
            unknown = argument.null
            if call.type == FLOAT:
                unknown = _either(unknown, f"({code} != {code})")
            bad = _either(bad, argument.bad)
            if found.null == "True":
                found = Scalar(code, unknown)
                continue
            best = self.temp(found.code)
            better = " ".join([self.comparable(code, call), sign, self.comparable(best, call)])
            test = f"{found.null} or {better}" if found.null is not None else better
            if unknown is not None:
                test = f"not {unknown} and ({test})"
            null = None if found.null is None or unknown is None else self.temp(f"({found.null} and {unknown})")
            found = Scalar(self.temp(f"({code} if {test} else {best})"), null)
        return self._bounded(Scalar(found.code, found.null, bad), call)

    def comparable(self, code: str, like: ir.Expr) -> str:
        """What is compared where values are put in order: of a string, its rank."""
        if like.type != STRING:
            return code
        if any(map(is_own, ir.walk(like))):
            raise NotExpressibleError(f"the order of strings that a function gives ({_shown(like)})")
        self.layout.needs_ranks = True
        return f"columns[0][{code}]"


def _leaves_of(expression: ir.Expr) -> list[ir.Expr]:
    """The parts of an expression that depend on the events by themselves, each once."""
    found: dict[ir.Expr, None] = {}
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEPENDENT):
            found[node] = None
        else:
            waiting.extend(ir.children(node))
    return list(found)


def _computes_nested(expression: ir.Expr) -> bool:
    """Whether the expression looks into arrays, structs or maps, of which code knows only whether they are NULL."""
    if isinstance(expression, (ir.IsNull, ir.Navigation, ir.Aggregate)):
        inner = next(ir.children(expression))
        return isinstance(expression, ir.IsNull) and is_nested(inner.type) and not isinstance(inner, _PASSED_ON)
    return any(is_nested(part.type) for part in ir.children(expression)) or (
        is_nested(expression.type) and not isinstance(expression, (ir.Attribute, ir.Literal))
    )


def _has_code(call: ir.Function) -> bool:
    """Whether there is code for arguments of these types."""
    types = [argument.type for argument in call.arguments]
    if call.name == "nullif":
        return types[0] == types[1]
    return not any(isinstance(type_, TimestampType) and type_.zone for type_ in types)


def _microseconds(type_: object) -> int:
    """How many units of a time make a microsecond."""
    return per_microsecond(type_) if isinstance(type_, TimestampType) else 1


def _shown(expression: ir.Expr) -> str:
    return printable(expression_text(expression), 60)


@lru_cache(maxsize=128)  # the engine is chosen anew whenever the same query is run
def check_source(source: str) -> None:
    """Code that Python itself refuses, or that would take minutes to compile, is not made."""
    if len(source) > MOST_CODE:
        raise NotExpressibleError(f"conditions that make {len(source):,} characters of code")
    try:
        compile(source, "<kleene>", "exec")
    except (SyntaxError, MemoryError):
        raise NotExpressibleError("expressions nested this deeply") from None


def _power(cast: ir.Cast) -> int | None:
    """What a conversion to decimal multiplies by, as a power of ten; None where it does more than that."""
    assert isinstance(cast.to, DecimalType)
    source = cast.operand.type
    if source == INTEGER:
        return cast.to.scale
    if isinstance(source, DecimalType) and source.scale <= cast.to.scale:
        return cast.to.scale - source.scale
    return None


def _either(left: str | None, right: str | None) -> str | None:
    if left is None or right is None or left == right:
        return left if left is not None else right
    return f"({left} or {right})"


def _unless(unknown: str | None, test: str) -> str:
    return test if unknown is None else f"(not {unknown} and {test})"


def _chosen(test: str, left: str | None, right: str | None) -> str | None:
    if left is None and right is None:
        return None
    return f"({left or 'False'} if {test} else {right or 'False'})"


def _guarded(truth: Truth, bad: str | None) -> Truth:
    if bad is None:
        return truth
    return Truth(f"(not {bad} and {truth.true})", f"(not {bad} and {truth.false})", bad)


def negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true, truth.bad)


def as_truth(value: Scalar) -> Truth:
    known = _either(value.null, value.bad)
    if known is None:
        return Truth(f"({value.code} != 0)", f"({value.code} == 0)")
    return Truth(f"(not {known} and {value.code} != 0)", f"(not {known} and {value.code} == 0)", value.bad)


def typed(value: Scalar, like: ir.Expr) -> Scalar | Truth:
    """The value; as a condition, if that is what the expression is."""
    return as_truth(value) if like.type == BOOLEAN else value


def as_scalar(truth: Truth) -> Scalar:
    return Scalar(f"(1 if {truth.true} else 0)", f"(not ({truth.true} or {truth.false}))", truth.bad)
