"""The instructions of formulas that no machine code was made for, and the two loops that carry them out.

A formula is a list of instructions (`translate.py` makes it) over two files of registers: `vi` for whole numbers,
addresses and truth values, `vf` for floats. One loop, `evaluate`, carries it out for one event, with jumps. The other,
`evaluate_rows`, carries out a formula without jumps for a block of rows at once, one instruction after the other, so
that most of the time goes into loops over a few thousand numbers.

Both loops are written from one table, so that an instruction means the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

BLOCK = 256
"""How many rows `evaluate_rows` has in a register."""
FIELDS = 6
OPERATION, TARGET, LEFT, RIGHT, THIRD, FOURTH = range(FIELDS)
"""The fields of an instruction. Of a jump, `TARGET` is where it leads; of a store, what is written."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What an instruction computes: `code` over its operands a, b and c. `kinds` are their files, the result's first.

    With two results, the second is written to the register behind the first.
    """

    name: str
    kinds: str
    code: str
    results: int = 1


def _computing() -> list[Operation]:
    found = [
        Operation("move_i", "ii", "a"),
        Operation("move_f", "ff", "a"),
        Operation("float_of", "fi", "float(a)"),
        Operation("select_i", "iiii", "b if a != 0 else c"),
        Operation("select_f", "fiff", "b if a != 0 else c"),
        Operation("not", "ii", "1 - a"),
        Operation("negative_i", "ii", "-a"),
        Operation("negative_f", "ff", "-a"),
        Operation("inverted", "ii", "~a"),
        Operation("absolute_i", "ii", "abs(a)"),
        Operation("absolute_f", "ff", "abs(a)"),
        Operation("copysign", "fff", "math.copysign(a, b)"),
        Operation("divide_numbers", "fff", "a / b"),
        Operation("floor_divide", "iii", "a // b"),
        Operation("modulo", "iii", "a % b"),
        Operation("shift_left", "iii", "a << b"),
        Operation("shift_right", "iii", "a >> b"),
        Operation("and", "iii", "a & b"),
        Operation("or", "iii", "a | b"),
        Operation("exclusive_or", "iii", "a ^ b"),
        Operation("least_i", "iii", "min(a, b)"),
        Operation("greatest_i", "iii", "max(a, b)"),
        Operation("least_f", "fff", "min(a, b)"),
        Operation("greatest_f", "fff", "max(a, b)"),
    ]
    for sign, name in (("+", "plus"), ("-", "minus"), ("*", "times")):
        found += [Operation(f"{name}_{kind}", kind * 3, f"a {sign} b") for kind in "if"]
    for name, sign in COMPARISONS.items():
        found += [Operation(f"{name}_{kind}", f"i{kind}{kind}", f"1 if a {sign} b else 0") for kind in "if"]
    for name, (kinds, results) in HELPERS.items():
        arguments = ", ".join("abc"[: len(kinds) - 1])
        found.append(Operation(name, kinds, f"{name}({arguments})", results))
    return found


COMPARISONS = {
    "equal": "==",
    "unequal": "!=",
    "less": "<",
    "less_or_equal": "<=",
    "greater": ">",
    "greater_or_equal": ">=",
}
HELPERS = {
    "add": ("iii", 2),
    "subtract": ("iii", 2),
    "multiply": ("iii", 2),
    "average": ("iiii", 2),
    "multiply_or_stop": ("iii", 1),
    "remainder": ("iii", 1),
    "float_remainder": ("fff", 1),
    "divide": ("fff", 1),
    "exponential": ("ff", 1),
    "square_root": ("ff", 1),
    "logarithm": ("ff", 1),
    "whole_below": ("if", 2),
    "truncated": ("if", 2),
    "hash_float": ("if", 1),
}
"""The functions of `arithmetic.py` that formulas call: the files of the result and the arguments, and the results."""
COMPUTING = {operation.name: operation for operation in _computing()}
READS = {"read_whole": "i", "read_short": "i", "read_byte": "i", "read_float": "f"}
WRITES = {"write_whole": "i", "write_byte": "i", "write_float": "f"}
_NAMES = [
    *COMPUTING,
    *READS,
    *(f"{name}_at" for name in READS),  # the column is in a register
    *WRITES,
    *(f"{name}_in_row" for name in READS),  # of the row that is looked at: only in `evaluate_rows`
    "return",
    "jump",
    "jump_if",
    "jump_unless",
    *(f"jump_unless_{name}_{kind}" for name in COMPARISONS for kind in "if"),
    "first_after",
]
NUMBERS = {name: number for number, name in enumerate(_NAMES)}
"""The instructions, by number."""

_HEAD = """\
import math
from kleene.engine.compiled.arithmetic import (
    add, average, divide, exponential, float_remainder, hash_float, logarithm, multiply, multiply_or_stop, remainder,
    square_root, subtract, truncated, whole_below,
)
from kleene.engine.compiled.tables.memory import (
    as_float, read_byte, read_float, read_short, read_whole, write_byte, write_float, write_whole,
)

ALLOCATES = False
"""


def head() -> str:
    """How a module begins that has one of the loops."""
    return _HEAD


def _operands(operation: Operation, place: str) -> list[str]:
    files = operation.kinds[1:]
    fields = ("code[pc, 2]", "code[pc, 3]", "code[pc, 4]")
    return [f"{letter} = v{file}[{field}{place}]" for letter, file, field in zip("abc", files, fields, strict=False)]


def _computed(operation: Operation, place: str) -> list[str]:
    """The lines that carry out an instruction; `place` is behind the number of a register."""
    result = f"v{operation.kinds[0]}[code[pc, 1]{place}]"
    lines = _operands(operation, place)
    if operation.results == 1:
        return [*lines, f"{result} = {operation.code}"]
    second = f"vi[code[pc, 1] + 1{place}]"
    return [*lines, f"one, other = {operation.code}", f"{result} = one", f"{second} = 1 if other else 0"]


def _chain(cases: list[tuple[int, list[str]]], depth: int) -> list[str]:
    indent = "    " * depth
    lines = []
    for at, (number, body) in enumerate(cases):
        head = f"{indent}{'if' if at == 0 else 'elif'} operation == {number}:"
        lines += [head, *(indent + "    " + line for line in body)]
    return lines


@cache
def evaluator() -> str:
    """The source of `evaluate`, which carries out a formula for one event from the instruction `pc` on."""
    cases = []
    for name, number in NUMBERS.items():
        if name.endswith("_in_row"):
            continue
        cases.append((number, _one_step(name)))
    lines = [
        "def evaluate(pc, code, vi, vf):",
        "    while True:",
        "        operation = code[pc, 0]",
        *_chain(cases, 2),
        "        pc += 1",
    ]
    return "\n".join(lines)


def _one_step(name: str) -> list[str]:
    if name in COMPUTING:
        return _computed(COMPUTING[name], "")
    index = "vi[code[pc, 3]] * code[pc, 4] + code[pc, 5]"
    if name in READS:
        return [f"v{READS[name]}[code[pc, 1]] = {name}(vi[code[pc, 2]], {index})"]
    if name in WRITES:
        return [f"{name}(vi[code[pc, 2]], {index}, v{WRITES[name]}[code[pc, 1]])"]
    if name.endswith("_at"):
        plain = name.removesuffix("_at")
        there = "vi[code[pc, 3]] * vi[code[pc, 4]] + vi[code[pc, 5]]"
        return [f"v{READS[plain]}[code[pc, 1]] = {plain}(vi[code[pc, 2]], {there})"]
    if name == "return":
        return ["return vi[code[pc, 2]]"]
    if name == "first_after":
        return _FIRST_AFTER
    jump = ["    pc = code[pc, 1]", "    continue"]
    if name == "jump":
        return [line.strip() for line in jump]
    if name in ("jump_if", "jump_unless"):
        return [f"if vi[code[pc, 2]] {'!=' if name == 'jump_if' else '=='} 0:", *jump]
    comparison, kind = name.removeprefix("jump_unless_").rsplit("_", 1)
    return [f"if not v{kind}[code[pc, 2]] {COMPARISONS[comparison]} v{kind}[code[pc, 3]]:", *jump]


# As `loops/negation.py` searches; its six arguments stand one behind the other from the register `LEFT` on.
_FIRST_AFTER = """\
first = code[pc, 2]
low, high, key, before = vi[first + 2], vi[first + 3], vi[first + 4], vi[first + 5]
while low < high:
    middle = (low + high) >> 1
    entry = read_whole(vi[first + 1], middle)
    if entry < key or (entry == key and read_whole(vi[first], middle) <= before):
        low = middle + 1
    else:
        high = middle
vi[code[pc, 1]] = low""".splitlines()


@cache
def row_evaluator() -> str:
    """The source of `evaluate_rows`: all instructions of a formula for each block of rows."""
    cases = []
    for name, number in NUMBERS.items():
        body = _many_steps(name)
        if body:
            cases.append((number, body))
    lines = [
        "def evaluate_rows(bits, spans, result, code, addresses, vi, vf):",
        '    """Sets bits[row] for the rows from `first` to before `last`; register 0 has the row, 1 and 2 its span.',
        "",
        "    spans[s] has where span s begins and ends, which are the rows that formulas may look at.",
        '    """',
        "    for s in range(len(spans)):",
        "        begin, end = spans[s, 0], spans[s, 1]",
        "        first = begin",
        "        while first < end:",
        f"            count = min(end - first, {BLOCK})",
        "            for i in range(count):",
        "                vi[0, i] = first + i",
        "                vi[1, i] = begin",
        "                vi[2, i] = end",
        "            for pc in range(len(code)):",
        "                operation = code[pc, 0]",
        *_chain(cases, 4),
        "            for i in range(count):",
        "                bits[first + i] = vi[result, i]",
        "            first += count",
        "    return 0",
    ]
    return "\n".join(lines)


def _many_steps(name: str) -> list[str]:
    loop = "for i in range(count):"
    if name in COMPUTING:
        return [loop, *("    " + line for line in _computed(COMPUTING[name], ", i"))]
    if name in READS:
        index = "vi[code[pc, 3], i] * code[pc, 4] + code[pc, 5]"
        return ["at = addresses[code[pc, 2]]", loop, f"    v{READS[name]}[code[pc, 1], i] = {name}(at, {index})"]
    if name.endswith("_in_row"):
        plain = name.removesuffix("_in_row")
        return ["at = addresses[code[pc, 2]]", loop, f"    v{READS[plain]}[code[pc, 1], i] = {plain}(at, first + i)"]
    return []
