"""Registers: the values that a run keeps because a later formula reads them (V in SASE+ 2008 §5.2.1).

A register belongs to an owner (a component, or a set of variables) and is brought up to date whenever an event is
bound to it: `first` and `last` keep a value of the first and the last event, the others aggregate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kleene.engine.compiled.code import Code, Reader, Scalar, Slots, Truth, typed
from kleene.engine.compiled.columns import Array, Dictionary, kind_of
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.own_calls import BAD, state_of
from kleene.engine.saved_parts import require_within
from kleene.ir import expr as ir
from kleene.ir.evaluate import of_one_event
from kleene.ir.own import OwnAggregate
from kleene.schema import (
    FLOAT,
    DecimalType,
    is_plain,
)

MOST_REGISTERS = 60
_KINDS = {"count": "i", "known": "i", "trues": "i", "mean": "f", "squares": "f"}
"""Of those that do not hold a value of their argument."""


@dataclass(frozen=True, slots=True)
class Register:
    """`argument` is an expression over one event; for `count`, which counts events, it is None.

    Functions: first, last, count, known (how many are not NULL), trues (how many are TRUE), sum, total (for avg), min,
    max, first_known and last_known; mean and squares, for variances; at_min and at_max, the argument where the key is
    least or greatest. Only events count for which the condition is TRUE; if distinct, only the first of equal values.
    """

    owner: int
    function: str
    argument: ir.Expr | None
    kind: str
    text: str = ""  # of the expressions: -0.0 and 0.0 are equal, and not the same
    key: ir.Expr | None = None
    condition: ir.Expr | None = None
    distinct: bool = False
    own: OwnAggregate | None = None


@dataclass(slots=True)
class Registers:
    """The registers in the order in which they were asked for; each has a place among the integers or the floats."""

    first_integer: int
    null_column: str  # its name
    all: list[Register] = field(default_factory=list)
    read: set[Register] = field(default_factory=set)

    def get(
        self,
        owner: int,
        function: str,
        argument: ir.Expr | None,
        key: ir.Expr | None = None,
        condition: ir.Expr | None = None,
        distinct: bool = False,
        aggregate: OwnAggregate | None = None,
        kind: str | None = None,
    ) -> Register:
        own = [None if part is None else of_one_event(part) for part in (argument, key, condition)]
        argument, key, condition = own
        if argument is not None and argument.type is not None and not is_plain(argument.type):
            raise NotExpressibleError(f"values of type {argument.type.name}, which can only be passed on")
        text = "" if not any(own) else repr(argument) if key is None and condition is None else repr(own)
        kind = kind or _KINDS.get(function) or kind_of(None if argument is None else argument.type)
        register = Register(owner, function, argument, kind, text, key, condition, distinct, aggregate)
        if register not in self.all:
            self.all.append(register)
        self.read.add(register)
        return register

    def check(self, what: str) -> None:
        if len(self.all) > MOST_REGISTERS:
            raise NotExpressibleError(what.format(len(self.all)))

    def place(self, register: Register) -> tuple[str, int]:
        """Which array, and which column of it."""
        is_float = register.kind == "f"
        same = [other for other in self.all if (other.kind == "f") == is_float]
        number = same.index(register)
        return ("f", number) if is_float else ("i", self.first_integer + number)

    def null_bit(self, register: Register) -> int:
        return self.all.index(register)

    def require_values(self, runs: Array, strings: int, events: int) -> None:
        """In a snapshot, strings are codes of the dictionary (0 where there is none), and events are not too many."""
        for register in self.all:
            if register.kind == "s":
                require_within(runs[:, self.place(register)[1]], 0, max(strings, 1), "stored_i")
            elif register.function == "count":
                require_within(runs[:, self.place(register)[1]], 0, events + 1, "stored_i")

    @property
    def columns(self) -> int:
        """How many whole numbers a run has, registers and others."""
        return self.first_integer + sum(register.kind != "f" for register in self.all)

    @property
    def floats(self) -> int:
        return sum(register.kind == "f" for register in self.all)

    def value(self, register: Register, run: str = "run", arrays: tuple[str, str] = ("ri", "rf")) -> Scalar:
        """The code that reads the register of a run."""
        which, column = self.place(register)
        array = arrays[0] if which == "i" else arrays[1]
        null = None
        if register.function not in _KINDS and not register.function.startswith("state_"):
            null = f"((({arrays[0]}[{run}, {self.null_column}] >> {self.null_bit(register)}) & 1) == 1)"
        return Scalar(f"{array}[{run}, {column}]", null)

    def aggregate(self, owner: int, node: ir.Aggregate, code: Code, run: str = "run") -> Scalar | Truth:
        """The value of an aggregate over the owner's events so far."""
        function, argument = node.function, node.argument
        if node.own is not None:
            return code.finished(node, self.states(owner, node, code.layout.plain, run))

        def value(name: str, key: ir.Expr | None = None) -> Scalar:
            of = None if isinstance(argument, ir.Events) else argument
            is_distinct = node.distinct and name in _COUNTING_EACH
            return self.value(self.get(owner, name, of, key, node.condition, is_distinct), run)

        match function:
            case "avg":
                return code.average(value("total"), value("known"), argument)
            case "count" if not node.others:
                return value("count" if isinstance(argument, ir.Events) else "known")
            case "count_if":
                return value("trues")
            case "first" | "last" | "any_value":
                return typed(value("last_known" if function == "last" else "first_known"), node)
            case "sum" | "min" | "max" if not node.others:
                return typed(value(function), node)
            case "bool_and" | "bool_or":
                return typed(value("min" if function == "bool_and" else "max"), node)
            case "min_by" | "max_by" if len(node.others) == 1:
                name = function.removesuffix("_by")
                self.get(owner, name, node.others[0], None, node.condition)  # the key that is the best so far
                return typed(value(f"at_{name}", node.others[0]), node)
            case "stddev" | "stddev_pop" | "var_samp" | "var_pop":
                value("mean")
                return code.spread(function, value("known"), value("squares"))
        raise NotExpressibleError(f"{function} inside a condition")

    def states(
        self, owner: int, node: ir.Aggregate, plain: bool, run: str = "run", arrays: tuple[str, str] = ("ri", "rf")
    ) -> Slots:
        """The registers of an aggregate of the user's own. The first, `state`, is NULL as long as there is no value."""
        state = state_of(node, plain)
        values = [
            self.value(
                self.get(owner, _state(number), node.argument, None, node.condition, node.distinct, node.own, kind),
                run,
                arrays,
            )
            for number, kind in enumerate(state.kinds)
        ]
        return Slots(state, tuple(value.code for value in values), values[0].null or "False")


def _state(number: int) -> str:
    return f"state_{number}" if number else "state"


_COUNTING_EACH = ("known", "sum", "total", "trues", "mean", "squares")
"""What equal values change more than once; of the others, DISTINCT makes no difference."""


def forget_strings(dictionary: Dictionary, registers: Registers, runs: Array, count: int) -> Dictionary:
    """A dictionary with only the strings that runs still hold; their registers are brought in line with it."""
    places = [registers.place(register)[1] for register in registers.all if register.kind == "s"]
    if not places or not count or not dictionary.strings:
        return Dictionary()
    codes = np.ascontiguousarray(runs[:count, places])
    # A register that is NULL, or that its component has not set yet, holds 0.
    kept, new = dictionary.kept(np.append(codes.reshape(-1), 0))
    runs[:count, places] = new[: codes.size].reshape(codes.shape)
    return kept


def _same(expression: ir.Expr) -> ir.Expr:
    return expression


def write_update(
    register: Register,
    registers: Registers,
    code: Code,
    reader: Reader,
    is_first: bool,
    arrays: tuple[str, str],
    seen: str | None = None,
    of: Callable[[ir.Expr], ir.Expr] = _same,
) -> None:
    """Code that brings a register of the row `target` up to date with the current event.

    `seen` says whether its value came before, where that matters; `of` gives an expression as it is read.
    """
    if register.condition is None:
        _write_update(register, registers, code, reader, is_first, arrays, seen, of)
        return
    truth = code.truth(of(register.condition), reader)
    code.return_if_bad(truth, register.condition)
    with code.block(f"if {truth.true}:"):
        _write_update(register, registers, code, reader, is_first, arrays, seen, of)


def _write_update(
    register: Register,
    registers: Registers,
    code: Code,
    reader: Reader,
    is_first: bool,
    arrays: tuple[str, str],
    seen: str | None,
    of: Callable[[ir.Expr], ir.Expr],
) -> None:
    target = registers.value(register, "target", arrays)
    null_word = f"{arrays[0]}[target, {registers.null_column}]"
    bit = registers.null_bit(register)
    function = register.function
    if function == "count":
        code.line(f"{target.code} = 1" if is_first else f"{target.code} += 1")
        return
    argument = register.argument
    assert argument is not None
    value = code.scalar(of(argument), reader)
    code.return_if_bad(value, argument)
    known = value.code
    skipped = value.null if seen is None else seen if value.null is None else f"({value.null} or {seen})"
    if function == "known":
        one = "1" if skipped is None else f"(0 if {skipped} else 1)"
        code.line(f"{target.code} = {one}" if is_first else f"{target.code} += {one}")
        return
    if register.own is not None:
        if function == "state":  # the others are written with it
            _write_states(register, registers, code, value, skipped, is_first, arrays)
        return
    set_null, clear_null = f"{null_word} |= {1 << bit}", f"{null_word} &= ~{1 << bit}"
    if function in ("first", "last"):
        _write_value(target.code, value, set_null, clear_null, code)
        return
    if function in ("at_min", "at_max"):
        assert register.key is not None
        best = registers.value(
            registers.get(register.owner, function[3:], register.key, None, register.condition), "target", arrays
        )
        with code.block(f"if {_is_better(function[3:], register.key, best, code, reader, of)}:"):
            _write_value(target.code, value, set_null, clear_null, code)
        return
    if function in ("min", "max") and register.kind == "f":
        known = code.temp(known)
        not_a_number = f"({known} != {known})"
        skipped = not_a_number if skipped is None else f"({skipped} or {not_a_number})"
    if is_first:
        code.line(f"{target.code} = 0")
        code.line(set_null)
    with code.block(f"if not {skipped}:" if skipped is not None else "if True:"):
        if function in ("trues", "mean", "squares"):
            _write_step(register, registers, Scalar(known), code, arrays)
            return
        empty = f"({null_word} >> {bit}) & 1 == 1"
        if is_first or function == "last_known":
            code.line(f"{target.code} = {known}")
            code.line(clear_null)
            return
        with code.block(f"if {empty}:"):
            code.line(f"{target.code} = {known}")
            code.line(clear_null)
        if function == "first_known":
            return
        with code.block("else:"):
            write_combined(function, argument, target.code, known, code)


def _write_states(
    register: Register,
    registers: Registers,
    code: Code,
    value: Scalar,
    skipped: str | None,
    is_first: bool,
    arrays: tuple[str, str],
) -> None:
    """Code for a step of an aggregate of the user's own."""
    assert register.argument is not None
    assert register.own is not None
    node = ir.Aggregate(
        register.own.name, register.argument, register.distinct, condition=register.condition, own=register.own
    )
    slots = registers.states(register.owner, node, code.layout.plain, "target", arrays)
    null_word, bit = f"{arrays[0]}[target, {registers.null_column}]", registers.null_bit(register)
    starts = [code.constant(one) for one in slots.state.start]
    if is_first:
        code.line(f"{null_word} |= {1 << bit}")
    with code.block(f"if not {skipped}:" if skipped is not None else "if True:"):
        empty = code.name()
        code.line(f"{empty} = ({null_word} >> {bit}) & 1 == 1")
        pairs = zip(starts, slots.names, strict=True)
        before = [code.temp(f"({start} if {empty} else {name})") for start, name in pairs]
        after, status = code.stepped(node, slots.state, before, value.code)
        code.return_if(f"{status} == {BAD}", code.layout.error(node))
        for name, number in zip(slots.names, after, strict=True):
            code.line(f"{name} = {number}")
        code.line(f"{null_word} &= ~{1 << bit}")


def _write_value(target: str, value: Scalar, set_null: str, clear_null: str, code: Code) -> None:
    """Code that puts the value into a register, NULL as well."""
    code.line(f"{target} = {value.code}")
    if value.null is None:
        code.line(clear_null)
        return
    with code.block(f"if {value.null}:"):
        code.line(f"{target} = 0")
        code.line(set_null)
    with code.block("else:"):
        code.line(clear_null)


def _is_better(
    function: str, key: ir.Expr, best: Scalar, code: Code, reader: Reader, of: Callable[[ir.Expr], ir.Expr]
) -> str:
    """Whether the event's key is less or greater than the best one before; NULL and NaN are neither."""
    own = code.scalar(of(key), reader)
    code.return_if_bad(own, key)
    known = code.temp(own.code)
    sign = "<" if function == "min" else ">"
    better = f"({best.null} or {code.comparable(known, key)} {sign} {code.comparable(best.code, key)})"
    tests = [f"not {own.null}"] if own.null is not None else []
    tests += [f"{known} == {known}"] if key.type == FLOAT else []
    return " and ".join([*tests, better])


def _write_step(register: Register, registers: Registers, value: Scalar, code: Code, arrays: tuple[str, str]) -> None:
    """Code for one more value that counts; mean and squares look at the others as they were before it."""
    target = registers.value(register, "target", arrays).code
    if register.function == "trues":
        code.line(f"{target} += {value.code}")
        return
    argument = register.argument
    assert argument is not None
    number = code.as_float(value, argument.type)
    code.return_if_bad(number, argument)
    count, mean = (
        registers.value(
            registers.get(register.owner, name, argument, None, register.condition, register.distinct), "target", arrays
        ).code
        for name in ("known", "mean")
    )
    distance = code.temp(f"({number.code} - {mean})")
    step = f"{distance} / ({count} + 1)"
    code.line(f"{target} += {step if register.function == 'mean' else f'{distance} * ({distance} - {step})'}")


def write_combined(function: str, argument: ir.Expr, total: str, item: str, code: Code) -> None:
    """Code that brings an aggregate up to date with one more value of its argument."""
    match function:
        case "min" | "max":
            sign = "<" if function == "min" else ">"
            with code.block(f"if {code.comparable(item, argument)} {sign} {code.comparable(total, argument)}:"):
                code.line(f"{total} = {item}")
        case "sum" | "total" | "avg" if argument.type == FLOAT:
            code.line(f"{total} += {item}")
        case "sum" | "total" | "avg":
            value, too_far = code.pair(f"add({total}, {item})")
            if function == "sum" and isinstance(argument.type, DecimalType):
                too_far = f"({too_far} or {code.too_wide(value)})"
            code.return_if_bad(Scalar(value, bad=too_far), ir.Aggregate("sum", argument, type=argument.type))
            code.line(f"{total} = {value}")
        case _:
            raise NotExpressibleError(f"{function} inside a condition")
