"""The loops of all queries as loops of any query: what is a constant of one query's code becomes an argument.

A template of `loops` is written against constants and formulas of a query. Here the constants are read from an array,
and a formula is a call of `evaluate` with the place where its instructions begin. So the code of these loops is made
once for a machine, and serves queries that nobody has asked before.

A loop has one argument more, `vm`: the constants, the instructions, where each formula begins, and the registers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kleene.engine.compiled.arrays import constants_of, windows
from kleene.engine.compiled.jit import load
from kleene.engine.compiled.loading import CUBE, ROW_TABLE, TABLE, VECTOR, signatures_in, template
from kleene.engine.compiled.regex_code import NO_BLOCKS
from kleene.engine.compiled.tables.operations import evaluator, head, row_evaluator

VM = f"Tuple(({VECTOR}, int32[:,::1], {VECTOR}, {VECTOR}, float64[::1]))"
CONSTANTS, CODE, ENTRIES, WHOLE, FLOATS = range(5)
"""The parts of `vm`."""
ARGUMENTS = 32
"""So many registers are for the arguments of formulas."""
GIVEN = ("columns", "ki", "kf")
"""The arguments of a formula that stand in registers from the beginning."""
SELECTORS = {
    "begin_ok": ("component",),
    "take_ok": ("component",),
    "complete_ok": ("component",),
    "update": ("component", "is_first"),
    "scan_ok": ("component",),
    "bound_ok": ("component",),
    "bind": ("variable",),
    "unbind": ("variable",),
    "fits_run": ("variable",),
    "holds": ("variable",),
}
"""Arguments by whose values a formula falls apart into several, of which a call takes one."""
WITH_WIDTH, WITH_LENGTH = ("codes", "directory", "lengths"), ("buckets",)
"""Arrays of which formulas ask for the length of a row, and for their own."""
MOST_VARIABLES = 62
_INDEX = "negative, entry_keys, directory, buckets"
_MATCHES = f"offsets, lengths, p, group_of, {_INDEX}, times, columns, ki, kf"
_ROWS = f"rows, codes, {_INDEX}, times, positions, columns, ki, kf"
_ACCEPT = f"""
def accept(ok, {_MATCHES}):
    for m in range(len(ok)):
        verdict = judged(m, {_MATCHES})
        if verdict < 0:
            return verdict
        ok[m] = verdict
    return 0
"""
_FILTER = f"""
def filter_found(found, count, {_ROWS}):
    kept = 0
    for m in range(count):
        for c in range(COMPONENTS):
            rows[c] = found[m, c]
        verdict = passes({_ROWS})
        if verdict < 0:
            return verdict
        if verdict == 1:
            for c in range(COMPONENTS):
                found[kept, c] = found[m, c]
            kept += 1
    return kept
"""
_OUTPUTS = "whole, floats, nulls, offsets, lengths, p, columns, ki, kf"
_MEASURES = f"""
def measures({_OUTPUTS}):
    for m in range(len(offsets) - 1):
        status = measure(m, {_OUTPUTS})
        if status < 0:
            return status
    return 0
"""
_IN_WINDOW = """\
def in_window(start, row, times, {positions}ki, kf, vm):
    kind, size = vm[0][0], vm[0][1]
    if kind == {no_window}:
        return True
    if kind == {in_events}:
        return {apart} < size
    if kind == {in_whole_time}:
        return {before}times[row] - times[start]{behind} < size
    return {before}as_float(times[row]) - as_float(times[start]){behind} < as_float(size)
"""
_KEY_OF = """\
def key_of(test, component, row, codes, vm):
    array = vm[0][vm[0][2] + test * vm[0][3] + component]
    return codes[array, row] if array >= 0 else 0
"""
WINDOW_KIND, WINDOW_SIZE, KEYS_AT, KEYS_WIDTH, FIRST_CONSTANT = range(5)
"""What stands first among the constants."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kernel that serves many queries: its loops, the heads of formulas and the names of constants it expects."""

    kernel: str
    loops: str
    formulas: Mapping[str, tuple[str, ...]]  # the arguments of each
    constants: tuple[str, ...]
    types: Mapping[str, str]
    rows_apart: bool = False  # a window of events is measured in rows

    @property
    def called(self) -> list[str]:
        """The formulas that instructions are made for."""
        own = [name for name in self.formulas if name not in ("in_window", "key_of")]
        return [name for name in own if re.search(rf"\b{name}\(", self.loops)]


def _family(kernel: str, loops: str, described: str, **types: str) -> Family:
    """`described` is the file with the formulas, or their source."""
    text = described if "\n" in described else _resource(described)
    tree = ast.parse(text)
    formulas = {
        node.name: tuple(one.arg for one in node.args.args) for node in tree.body if isinstance(node, ast.FunctionDef)
    }
    own = [
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    derived = [line.split(" = ")[0] for line in loops.splitlines() if re.match(r"[A-Z_]+ = ", line)]
    return Family(kernel, loops, formulas, (*own, *derived), types, rows_apart=kernel == "search")


def _resource(name: str) -> str:
    return resources.files("kleene.engine.compiled").joinpath("loops", f"{name}.py").read_text(encoding="utf-8")


@cache
def families() -> dict[str, Family]:
    sequence = {"codes": TABLE, "found": ROW_TABLE, "heads": CUBE, "stack": CUBE}
    judged, passes = f"def judged(m, {_MATCHES}):\n    pass\n", f"def passes({_ROWS}):\n    pass\nCOMPONENTS = 1\n"
    measure = f"def measure(m, {_OUTPUTS}):\n    pass\n"
    found = [
        _family("advance", template("runs"), "run_formulas"),
        _family("backtrack", template("backtrack"), "run_formulas"),
        _family("accept", _ACCEPT, judged),
        *(
            _family(name, template("sequences"), "sequence_formulas", **sequence)
            for name in ("scan", "scan_basic", "construct")
        ),
        _family("filter_found", _FILTER, passes, **sequence),
        _family("search", template("rows"), "row_formulas"),
        _family("match_events", template("regex") + "\n\n" + NO_BLOCKS, "regex_formulas"),
        _family("measures", _MEASURES, measure),
    ]
    return {family.kernel: family for family in found}


def slots_of(formula: str, arguments: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What a call puts into the registers, one after the other: its name, and the code for it."""
    for name in arguments:
        if name in GIVEN or name in SELECTORS.get(formula, ()):
            continue
        if name in _SCALARS:
            yield name, name
            continue
        yield name, f"{name}.ctypes.data"
        if name in WITH_WIDTH:
            yield f"{name}.shape[1]", f"{name}.shape[1]"
        if name in WITH_LENGTH:
            yield f"len({name})", f"len({name})"


_SCALARS = frozenset(
    {
        *("run", "row", "start", "number", "depth", "begin", "end", "left", "right", "target", "is_first"),
        *("component", "variable", "m", "test", "other"),
    }
)
"""The arguments of formulas that are numbers; the others are arrays."""


def _stub(family: Family, formula: str) -> str:
    """A function that calls `evaluate` with the arguments of the formula."""
    arguments = family.formulas[formula]
    index = f"vm[{CONSTANTS}][{formula_constant(family, formula)}]"
    for selector in SELECTORS.get(formula, ()):
        index += f" + {selector}" if selector == SELECTORS[formula][-1] else f" + 2 * {selector}"
    lines = [f"def {formula}({', '.join(arguments)}, vm):", f"    entry = vm[{ENTRIES}][{index}]"]
    # What is the same for every event is told by the place itself.
    lines += ["    if entry < 0:", "        return -1 - entry"]
    lines += [f"    registers = vm[{WHOLE}]"]
    slots = list(slots_of(formula, arguments))
    assert len(slots) <= ARGUMENTS
    lines += [f"    registers[{number}] = {code}" for number, (_, code) in enumerate(slots)]
    lines.append(f"    return evaluate(entry, vm[{CODE}], registers, vm[{FLOATS}])")
    return "\n".join(lines)


def formula_constant(family: Family, formula: str) -> int:
    """Where the constants say at which entry the formula begins."""
    return FIRST_CONSTANT + len(family.constants) + family.called.index(formula)


# ---- loops


class _Rewriting(ast.NodeTransformer):
    """Reads constants from `vm`, and hands it on to whatever needs it."""

    def __init__(self, needing: frozenset[str]) -> None:
        self._needing = needing

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._needing:
            node.args.append(ast.Name("vm", ast.Load()))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name(id="NEGATION_GAPS" as name)):
                place = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), node.slice)
                return ast.Subscript(_vm_part(CONSTANTS), place, node.ctx)
        return node


def _vm_part(number: int) -> ast.expr:
    return ast.Subscript(ast.Name("vm", ast.Load()), ast.Constant(number), ast.Load())


def _names_in(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def _rewritten(family: Family) -> str:
    """The functions that the kernel needs, the called ones first."""
    tree = ast.parse(family.loops)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = {name: _names_in(function) for name, function in functions.items()}
    needed = _needed(family.kernel, names)
    needing = {*family.formulas, family.kernel}
    while more := {one for one in needed if one not in needing and names[one] & (needing | {*family.constants})}:
        needing |= more
    texts = []
    for name in needed:
        function = functions[name]
        if name in needing:
            used = [constant for constant in family.constants if constant in names[name]]
            _Rewriting(frozenset(needing)).visit(function)
            function.args.args.append(ast.arg("vm"))
            function.body[:0] = [
                ast.parse(f"{constant} = vm[{CONSTANTS}][{constant_at(family, constant)}]").body[0] for constant in used
            ]
        text = ast.unparse(ast.fix_missing_locations(function))
        texts.append(re.sub(r"^( +)\((\w+(?:, \w+)+)\) = ", r"\1\2 = ", text, flags=re.MULTILINE))
    return "\n\n".join(texts)


def _needed(name: str, names: Mapping[str, set[str]]) -> list[str]:
    """The function and those that it calls, which come first."""
    called = [other for other in names if other != name and other in names[name]]
    return [*dict.fromkeys(needed for other in called for needed in _needed(other, names)), name]


def constant_at(family: Family, name: str) -> int:
    return FIRST_CONSTANT + family.constants.index(name)


@cache
def source_of(kernel: str) -> tuple[str, dict[str, str]]:
    """The source of a kernel for all queries, and its signature."""
    family = families()[kernel]
    loops = _rewritten(family)
    parts = [evaluator(), *(_stub(family, name) for name in family.called)]
    if "in_window(" in loops:
        rows = family.rows_apart
        parts.append(
            _IN_WINDOW.format(
                positions="" if rows else "positions, ",
                no_window=windows.NO_WINDOW,
                in_events=windows.WINDOW_IN_EVENTS,
                in_whole_time=windows.WINDOW_IN_WHOLE_TIME,
                apart="row - start" if rows else "positions[row] - positions[start]",
                before="abs(" if rows else "",
                behind=")" if rows else "",
            )
        )
    if "key_of(" in loops:
        parts.append(_KEY_OF)
    text = "\n\n".join([*parts, loops])
    source = "\n\n".join([head(), 'CALLED = ("evaluate",)', constants_of(text), text])
    types = {"times": VECTOR, "columns": VECTOR, "vm": VM, **family.types}
    return source, signatures_in(source, {kernel: "int64"}, types)


@cache
def row_source() -> tuple[str, dict[str, str]]:
    table = "int64[:,::1]"
    signature = f"int64({VECTOR}, {table}, int64, int32[:,::1], {VECTOR}, {table}, float64[:,::1])"
    return "\n\n".join([head(), row_evaluator()]), {"evaluate_rows": signature}


def source_of_any(name: str) -> tuple[str, dict[str, str]]:
    return row_source() if name == "evaluate_rows" else source_of(name)


def kernel_of(name: str) -> Any:
    """The kernel as machine code, which is made if need be."""
    return load(*source_of_any(name))[name]


def family_of(kernel: str) -> Family:
    """The loops that serve a kernel of this name: what is not known by name is a filter."""
    return families().get(kernel) or families()["filter_found"]


def needed_for(kernels: Iterable[str]) -> list[str]:
    """The loops that serve kernels of these names."""
    return ["evaluate_rows" if name == "classify" else family_of(name).kernel for name in kernels]


def all_sources() -> dict[str, tuple[str, dict[str, str]]]:
    """What a machine needs once."""
    return {"evaluate_rows": row_source(), **{name: source_of(name) for name in families()}}
