"""Registers: the values that a run keeps because a later formula reads them (V in SASE+ 2008 §5.2.1).

A register belongs to an owner (a component, or a set of variables) and is brought up to date whenever an event is
bound to it: `first` and `last` keep a value of the first and the last event, the others aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kleene.engine.compiled.code import Code, Reader, Scalar, Truth, typed
from kleene.engine.compiled.columns import Array, Dictionary, kind_of, of_one_event
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.saved_parts import require_within
from kleene.ir import expr as ir
from kleene.schema import FLOAT, DecimalType, OpaqueType

MOST_REGISTERS = 60


@dataclass(frozen=True, slots=True)
class Register:
    """`argument` is an expression over one event; for `count`, which counts events, it is None."""

    owner: int
    function: str  # first, last, count, known (how many are not NULL), sum, total (for avg), min, max, first/last_known
    argument: ir.Expr | None
    kind: str
    text: str = ""  # of the argument: -0.0 and 0.0 are equal, and not the same


@dataclass(slots=True)
class Registers:
    """The registers in the order in which they were asked for; each has a place among the integers or the floats."""

    first_integer: int
    null_column: str  # its name
    all: list[Register] = field(default_factory=list)
    read: set[Register] = field(default_factory=set)

    def get(self, owner: int, function: str, argument: ir.Expr | None) -> Register:
        argument = None if argument is None else of_one_event(argument)
        if argument is not None and isinstance(argument.type, OpaqueType):
            raise NotExpressibleError(f"values of type {argument.type.name}, which can only be passed on")
        kind = "i" if argument is None or function == "known" else kind_of(argument.type)
        register = Register(owner, function, argument, kind, "" if argument is None else repr(argument))
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
        if register.function not in ("count", "known"):
            null = f"((({arrays[0]}[{run}, {self.null_column}] >> {self.null_bit(register)}) & 1) == 1)"
        return Scalar(f"{array}[{run}, {column}]", null)

    def aggregate(self, owner: int, node: ir.Aggregate, code: Code, run: str = "run") -> Scalar | Truth:
        """The value of an aggregate over the owner's events so far."""
        function, argument = node.function, node.argument
        match function:
            case "avg":
                total, known = (self.value(self.get(owner, name, argument), run) for name in ("total", "known"))
                return code.average(total, known, argument)
            case "count":
                of_events = isinstance(argument, ir.Events)
                register = self.get(owner, "count", None) if of_events else self.get(owner, "known", argument)
            case "first" | "last":
                register = self.get(owner, f"{function}_known", argument)
            case "sum" | "min" | "max":
                register = self.get(owner, function, argument)
            case _:
                raise NotExpressibleError(f"{function} inside a condition")
        return typed(self.value(register, run), node)


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


def write_update(
    register: Register, registers: Registers, code: Code, reader: Reader, is_first: bool, arrays: tuple[str, str]
) -> None:
    """Code that brings a register of the row `target` up to date with the current event."""
    target = registers.value(register, "target", arrays)
    null_word = f"{arrays[0]}[target, {registers.null_column}]"
    bit = registers.null_bit(register)
    function = register.function
    if function == "count":
        code.line(f"{target.code} = 1" if is_first else f"{target.code} += 1")
        return
    argument = register.argument
    assert argument is not None
    value = code.scalar(argument, reader)
    code.return_if_bad(value, argument)
    known = value.code
    if function == "known":
        one = "1" if value.null is None else f"(0 if {value.null} else 1)"
        code.line(f"{target.code} = {one}" if is_first else f"{target.code} += {one}")
        return
    set_null, clear_null = f"{null_word} |= {1 << bit}", f"{null_word} &= ~{1 << bit}"
    if function in ("first", "last"):
        code.line(f"{target.code} = {known}")
        if value.null is not None:
            with code.block(f"if {value.null}:"):
                code.line(f"{target.code} = 0")
                code.line(set_null)
            with code.block("else:"):
                code.line(clear_null)
        else:
            code.line(clear_null)
        return
    skipped = value.null
    if function in ("min", "max") and register.kind == "f":
        known = code.temp(known)
        not_a_number = f"({known} != {known})"
        skipped = not_a_number if skipped is None else f"({skipped} or {not_a_number})"
    if is_first:
        code.line(f"{target.code} = 0")
        code.line(set_null)
    with code.block(f"if not {skipped}:" if skipped is not None else "if True:"):
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
