"""Registers: the values that a run keeps because a later formula reads them (V in SASE+ 2008 §5.2.1).

A register belongs to an owner (a component, or a set of variables) and is brought up to date whenever an event is
bound to it: `first` and `last` keep a value of the first and the last event, the others aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kleene.engine.compiled.code import Code, NotExpressibleError, Reader, Scalar
from kleene.engine.compiled.columns import Array, Dictionary, kind_of, of_one_event
from kleene.engine.saved_parts import require_within
from kleene.ir import expr as ir
from kleene.schema import STRING, DecimalType, OpaqueType

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
    def integers(self) -> int:
        return sum(register.kind != "f" for register in self.all)

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

    def aggregate(self, owner: int, node: ir.Aggregate, argument: ir.Expr, code: Code, run: str = "run") -> Scalar:
        """The value of an aggregate over the owner's events so far."""
        match node.function:
            case "count" if isinstance(argument, ir.Events):
                return self.value(self.get(owner, "count", None), run)
            case "count":
                return self.value(self.get(owner, "known", argument), run)
            case "avg":
                total = self.value(self.get(owner, "total", argument), run)
                known = self.value(self.get(owner, "known", argument), run)
                whole = code.as_float(total, argument.type)
                return Scalar(f"divide({whole.code}, float({known.code}))", whole.null, whole.bad)
            case "first" | "last":
                return self.value(self.get(owner, f"{node.function}_known", argument), run)
            case "sum" | "min" | "max":
                return self.value(self.get(owner, node.function, argument), run)
        raise NotExpressibleError(f"{node.function} inside a condition")


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
    if value.bad is not None:
        with code.block(f"if {value.bad}:"):
            code.line(f"return {code.layout.error(argument)}")
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
            _accumulate(register, target.code, known, code)


def _accumulate(register: Register, target: str, known: str, code: Code) -> None:
    assert register.argument is not None
    match register.function:
        case "min" | "max":
            sign = "<" if register.function == "min" else ">"
            sides = (known, target)
            if register.argument.type == STRING:
                code.layout.needs_ranks = True
                sides = (f"columns[0][{known}]", f"columns[0][{target}]")
            with code.block(f"if {sides[0]} {sign} {sides[1]}:"):
                code.line(f"{target} = {known}")
        case "sum" | "total" if register.kind == "f":
            code.line(f"{target} += {known}")
        case "sum" | "total":
            value, too_far = code.pair(f"add({target}, {known})")
            if isinstance(register.argument.type, DecimalType) and register.function == "sum":
                limit = code.layout.integer(10**18)
                too_far = f"({too_far} or {value} >= {limit} or {value} <= -{limit})"
            overflow = ir.Aggregate("sum", register.argument, type=register.argument.type)
            with code.block(f"if {too_far}:"):
                code.line(f"return {code.layout.error(overflow)}")
            code.line(f"{target} = {value}")
