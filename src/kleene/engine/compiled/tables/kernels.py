"""Generated code -> kernels that need no machine code of their own: tables for the loops that serve all queries.

The source of a query's kernels is taken apart: its constants become numbers in an array, its formulas instructions
(`translate.py`), and its loops are those of `generic.py`, which are there already. The kernels take the same arguments
and leave the same state behind as those of machine code, so that either can go on where the other one stopped.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from kleene.engine.compiled.arrays import windows
from kleene.engine.compiled.arrays.edges import EDGE_COLUMNS
from kleene.engine.compiled.arrays.nodes import NODE_COLUMNS
from kleene.engine.compiled.arrays.row_groups import ROW_GROUP_FIRST, ROW_GROUP_SEEN_END
from kleene.engine.compiled.arrays.versions import VERSION_COLUMNS
from kleene.engine.compiled.columns import SIGNATURES, Array, Layout
from kleene.engine.compiled.loading import TABLE, type_of_argument
from kleene.engine.compiled.tables.generic import (
    ARGUMENTS,
    FIRST_CONSTANT,
    KEYS_AT,
    KEYS_WIDTH,
    MOST_VARIABLES,
    SELECTORS,
    WINDOW_KIND,
    WINDOW_SIZE,
    Family,
    families,
    family_of,
    kernel_of,
    slots_of,
    source_of,
)
from kleene.engine.compiled.tables.operations import BLOCK, FIELDS
from kleene.engine.compiled.tables.translate import (
    ArrayAt,
    Files,
    NotTranslatableError,
    Place,
    Translator,
    Value,
)

Kernel = Callable[..., Any]
_TYPES = {"codes": TABLE, "ti": TABLE, "left_i": TABLE, "right_i": TABLE}
_TYPES |= dict.fromkeys(("tf", "left_f", "right_f"), "float64[:,::1]")
"""Of arguments that formulas alone have."""
_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a query's kernels, taken apart."""

    constants: Mapping[str, Any]
    functions: Mapping[str, ast.FunctionDef]
    layout: Layout
    widths: Mapping[str, int]  # of tables
    window: ast.expr | None  # the size of the window
    window_kind: int

    @property
    def times(self) -> str:
        return "float64[::1]" if self.window_kind == windows.WINDOW_IN_FLOAT_TIME else "int64[::1]"


def kernels_of(
    source: str, names: Sequence[str], layout: Layout, registers: Any | None, outputs: int
) -> dict[str, Kernel]:
    """The kernels of these names; `outputs` is how many measures they compute, if they do.

    NotTranslatableError: there are no instructions for the source.
    """
    if layout.called:
        raise NotTranslatableError("functions of the user's own")
    taken = _taken_apart(source, layout, registers, outputs)
    return {name: _classify(taken) if name == "classify" else _kernel(name, taken) for name in names}


def _taken_apart(source: str, layout: Layout, registers: Any | None, outputs: int) -> Source:
    head, *texts = _FUNCTIONS.split(source)
    lines = [*head.splitlines(), *(line for text in texts for line in _CONSTANT.findall(text))]
    constants: dict[str, Any] = {}
    for line in lines:
        if _CONSTANT.fullmatch(line):
            name, value = line.split(" = ", 1)
            constants[name] = _constant(ast.parse(value, mode="eval").body, constants)
    wanted = _formula_names()
    functions = {
        name: _function(text)
        for text in texts
        if (name := text[4 : text.index("(")]) in wanted or name.startswith("passes_")
    }
    widths = {"node": NODE_COLUMNS, "edge": EDGE_COLUMNS, "version": VERSION_COLUMNS}
    widths |= dict.fromkeys(("whole", "floats", "nulls"), outputs)
    if registers is not None:
        widths |= dict.fromkeys(("ri", "ti", "left_i", "right_i", "shared_i"), registers.columns)
        widths |= dict.fromkeys(("rf", "tf", "left_f", "right_f", "shared_f"), max(registers.floats, 1))
    size, kind = _window(functions.get("in_window"))
    return Source(constants, functions, layout, widths, size, kind)


_FUNCTIONS = re.compile(r"^(?=def )", re.MULTILINE)
_CONSTANT = re.compile(r"^[A-Z][A-Z_]* = .*$", re.MULTILINE)


@cache
def _formula_names() -> frozenset[str]:
    """What may be a formula; loops, which are much longer, need not be looked at."""
    known = {name for family in families().values() for name in family.formulas}
    return frozenset({*known, "classify", "measures"})


def _function(text: str) -> ast.FunctionDef:
    (function,) = ast.parse(_CONSTANT.sub("", text)).body
    assert isinstance(function, ast.FunctionDef)
    return function


def _constant(value: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of a constant, which may be computed from others: BELOW + LINKS * STACKED."""
    match value:
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=operator, right=right):
            one, other = _constant(left, known), _constant(right, known)
            return one + other if isinstance(operator, ast.Add) else one * other
    return ast.literal_eval(value)


def _window(function: ast.FunctionDef | None) -> tuple[ast.expr | None, int]:
    """The size of the window, and what it is measured in."""
    if function is None:
        return None, windows.NO_WINDOW
    match function.body[-1]:
        case ast.Return(value=ast.Compare(left=left, comparators=[size])):
            if "times" not in {node.id for node in ast.walk(left) if isinstance(node, ast.Name)}:
                return size, windows.WINDOW_IN_EVENTS
            is_float = isinstance(size, ast.Subscript) and isinstance(size.value, ast.Name) and size.value.id == "kf"
            return size, windows.WINDOW_IN_FLOAT_TIME if is_float else windows.WINDOW_IN_WHOLE_TIME
    return None, windows.NO_WINDOW


# ---- what one event decides


def _classify(source: Source) -> Kernel:
    function = source.functions["classify"]
    files = Files()
    row, begin, end = (Value("i", files.new("i")) for _ in range(3))
    place = _place(source, files, {"row": row, "begin": begin, "end": end}, by_rows=True)
    translator = Translator(files, place, by_rows=True)
    loop = _loop_over_rows(function)
    translator.body([statement for statement in loop.body if not _is_output(statement)])
    found = translator.value(ast.Name("found", ast.Load()))
    code = np.array(translator.instructions, np.int32).reshape(-1, FIELDS)
    arguments = [argument.arg for argument in function.args.args]
    evaluate_rows = kernel_of("evaluate_rows")

    def classify(bits: Array, *rest: Any) -> int:
        given = dict(zip(arguments[1:], rest, strict=True))
        vi, vf = np.empty((files.counts["i"], BLOCK), np.int64), np.empty((max(files.counts["f"], 1), BLOCK))
        for number, whole in files.whole.items():
            vi[number] = whole
        for number, value in files.floats.items():
            vf[number] = value
        for value_of, constants, file in ((place.integers, given["ki"], vi), (place.floats, given["kf"], vf)):
            for register, constant in zip(value_of, constants, strict=False):
                file[register.number] = constant
        addresses = np.array([column.ctypes.data for column in given["columns"]], np.int64)
        if "groups" in given:
            spans = np.ascontiguousarray(given["groups"][:, [ROW_GROUP_FIRST, ROW_GROUP_SEEN_END]])
        else:
            spans = np.array([[given["first"], given["last"]]], np.int64)
        evaluate_rows(bits, spans, found.number, code, addresses, vi, vf)
        if "relevant" not in given:
            return 0
        rows = np.flatnonzero(bits[given["first"] : given["last"]]) + given["first"]
        given["relevant"][: len(rows)] = rows
        return len(rows)

    return classify


def _loop_over_rows(function: ast.FunctionDef) -> ast.For:
    for node in ast.walk(function):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == "row":
            return node
    raise NotTranslatableError("a classification without rows")


def _is_output(statement: ast.stmt) -> bool:
    """Whether the statement writes down what was found, and not what it is."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if isinstance(target, ast.Subscript):
        return True
    return isinstance(target, ast.Name) and target.id == "count"


# ---- loops


def _kernel(name: str, source: Source) -> Kernel:
    family = family_of(name)
    files = Files()
    files.new("i", ARGUMENTS)
    place = _place(source, files, {}, by_rows=False)
    code: list[list[int]] = []
    entries: list[int] = []
    bases: list[int] = []
    for formula in family.called:
        bases.append(len(entries))
        function = source.functions.get(_own_name(formula, name))
        if function is None:
            entries.append(-1)
            continue
        _check_arguments(family, formula, function)
        entries += _entries(formula, function, source, files, place, code)
    constants = _constants(family, source, bases)
    made = _Program(
        constants,
        np.array(code, np.int32).reshape(-1, FIELDS),
        np.array(entries or [-1], np.int64),
        files,
        place,
        source.window,
    )
    return _callable(family, made)


def _own_name(formula: str, kernel: str) -> str:
    """The name that the formula has in the source of the query."""
    return {"passes": f"passes_{kernel}", "measure": "measures"}.get(formula, formula)


def _check_arguments(family: Family, formula: str, function: ast.FunctionDef) -> None:
    own = tuple(argument.arg for argument in function.args.args)
    if formula != "measure" and own != family.formulas[formula]:
        raise AssertionError(f"{formula} takes {own}, not {family.formulas[formula]}")


def _entries(
    formula: str,
    function: ast.FunctionDef,
    source: Source,
    files: Files,
    place: Place,
    code: list[list[int]],
) -> list[int]:
    """Where the instructions of the formula begin, for each value of what it falls apart by."""
    arguments = families()["measures"].formulas["measure"] if formula == "measure" else _arguments(function)
    names: dict[str, Any] = dict(place.names)
    types = {**_TYPES, "times": source.times}
    for number, (name, text) in enumerate(slots_of(formula, arguments)):
        names[name] = _slot(name, text, number, source, types)
    for name, value in list(names.items()):  # of a table, how long its rows are may be in a register
        if isinstance(value, ArrayAt) and f"{name}.shape[1]" in names:
            names[name] = ArrayAt(value.items, value.address, None, names[f"{name}.shape[1]"].number)
    body = function.body
    if formula == "measure":
        (loop,) = [statement for statement in body if isinstance(statement, ast.For)]
        body = loop.body
    found = []
    for chosen in _choices(formula, function, source):
        own = Place({**names, **chosen}, place.columns, place.integers, place.floats, place.functions)
        translator = Translator(files, own, first=len(code))
        translator.body([*body, ast.Return(ast.Constant(0))])
        found.append(_entry(translator, len(code)))
        if found[-1] >= 0:
            code += translator.instructions
    if "variable" in SELECTORS.get(formula, ()):  # the last is for all that have no formula of their own
        found += found[-1:] * (MOST_VARIABLES - len(found))
    return found


def _arguments(function: ast.FunctionDef) -> tuple[str, ...]:
    return tuple(argument.arg for argument in function.args.args)


def _slot(name: str, text: str, number: int, source: Source, types: Mapping[str, str]) -> Value | ArrayAt:
    if not text.endswith(".ctypes.data"):
        return Value("i", number)
    items, _, shape = type_of_argument(name, types).partition("[")
    width = source.widths.get(name) if shape.startswith(":,") else 1
    return ArrayAt(items, number, width)


def _entry(translator: Translator, at: int) -> int:
    """Where the instructions begin; a number below zero if all they do is to give back 0 or another constant."""
    first = translator.instructions[0]
    known = translator.files.whole.get(first[2], -1)
    return -1 - known if translator.is_return(first) and known >= 0 else at


def _choices(formula: str, function: ast.FunctionDef, source: Source) -> Iterator[dict[str, int]]:
    match SELECTORS.get(formula, ()):
        case ():
            yield {}
        case ("variable",):
            yield from ({"variable": number} for number in range(_last_variable(function) + 2))
        case ("component",):
            yield from ({"component": number} for number in range(int(source.constants["COMPONENTS"])))
        case (first, second):
            many = range(int(source.constants["COMPONENTS"]))
            yield from ({first: number, second: flag} for number in many for flag in range(2))


def _last_variable(function: ast.FunctionDef) -> int:
    """The highest number of a variable that the formula asks for; -1 if there is none."""
    numbers = [-1]
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=ast.Name(id="variable"), comparators=[ast.Constant(value=int() as number)]):
                numbers.append(number)
    return max(numbers)


def _place(source: Source, files: Files, names: dict[str, Any], by_rows: bool) -> Place:
    layout = source.layout
    kinds = ["int64", *(kind for column in layout.columns for kind in (SIGNATURES[column.kind][:-5], "uint8"))]
    columns = []
    for number, kind in enumerate(kinds):
        columns.append(ArrayAt(kind, number if by_rows else files.new("i")))
    integers = [Value("i", files.new("i")) for _ in layout.integers]
    floats = [Value("f", files.new("f")) for _ in layout.floats]
    known = {name: value for name, value in source.constants.items() if isinstance(value, (int, float))}
    return Place(
        {**known, **names},
        columns,
        integers,
        floats,
        {"in_window": source.functions["in_window"]} if "in_window" in source.functions else {},
    )


def _constants(family: Family, source: Source, bases: list[int]) -> Array:
    values: list[int] = [0] * FIRST_CONSTANT
    tail: list[int] = []
    first_of_tail = FIRST_CONSTANT + len(family.constants) + len(bases)
    for name in family.constants:
        value = source.constants.get(name, 0)
        if isinstance(value, tuple):
            values.append(first_of_tail + len(tail))
            tail += value
        else:
            values.append(int(value))
    values += bases
    values[WINDOW_KIND] = source.window_kind
    if "key_of" in family.formulas and "key_of" in source.functions:
        values[KEYS_AT] = first_of_tail + len(tail)
        values[KEYS_WIDTH] = int(source.constants["COMPONENTS"])
        tail += _keys(source)
    return np.array([*values, *tail], np.int64)


def _keys(source: Source) -> list[int]:
    """For each test and component, the array of codes with its key; -1 if no test has stacks."""
    names: dict[str, Any] = {}
    module = ast.Module([source.functions["key_of"]], type_ignores=[])
    exec(compile(module, "<kleene>", "exec", dont_inherit=True), names)
    arrays = np.arange(1, 10_001).reshape(-1, 1)  # the number of an array plus one
    tests, components = int(source.constants["STACKED"]), int(source.constants["COMPONENTS"])
    return [int(names["key_of"](test, one, 0, arrays)) - 1 for test in range(tests) for one in range(components)]


@dataclass(frozen=True, slots=True)
class _Program:
    """The tables of a kernel. `window` is the code that reads the size of the window."""

    constants: Array
    code: Array
    entries: Array
    files: Files
    place: Place
    window: ast.expr | None

    def vm(self, columns: Sequence[Array], integers: Array, floats: Array) -> tuple[Array, ...]:
        """What the loops take, with registers of its own: several threads may run at once."""
        vi, vf = np.zeros(self.files.counts["i"], np.int64), np.zeros(max(self.files.counts["f"], 1))
        for number, whole in self.files.whole.items():
            vi[number] = whole
        for number, value in self.files.floats.items():
            vf[number] = value
        for register, column in zip(self.place.columns, columns, strict=False):
            vi[register.address] = column.ctypes.data
        for place, constant in zip(self.place.integers, integers, strict=False):
            vi[place.number] = constant
        for place, constant in zip(self.place.floats, floats, strict=False):
            vf[place.number] = constant
        constants = self.constants.copy()
        constants[WINDOW_SIZE] = self._size(integers, floats)
        return constants, self.code, self.entries, vi, vf

    def _size(self, integers: Array, floats: Array) -> int:
        match self.window:
            case ast.Constant(value=int() as size):
                return size
            case ast.Subscript(value=ast.Name(id="ki"), slice=ast.Constant(value=int() as number)):
                return int(integers[number])
            case ast.Subscript(value=ast.Name(id="kf"), slice=ast.Constant(value=int() as number)):
                return int(floats[number : number + 1].view(np.int64)[0])
        return 0


def _callable(family: Family, program: _Program) -> Kernel:
    loop, times = kernel_of(family.kernel), _where_times_are(family.kernel)

    def run(*arguments: Any) -> Any:
        *others, columns, integers, floats = arguments
        given = others if times is None else _as_whole(others, *times)
        return loop(*given, _NOTHING, integers, floats, program.vm(columns, integers, floats))

    return run


def _as_whole(arguments: list[Any], at: int, part: int | None) -> list[Any]:
    """The arguments with the bits of times as whole numbers: the loops are made for these."""
    given = list(arguments)
    if part is None:
        given[at] = given[at].view(np.int64)
    else:
        parts = list(given[at])
        parts[part] = parts[part].view(np.int64)
        given[at] = tuple(parts)
    return given


@cache
def _where_times_are(kernel: str) -> tuple[int, int | None] | None:
    """Which argument the times are, or which argument they are part of, and which part."""
    source, _ = source_of(kernel)
    (function,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == kernel]
    names = [argument.arg for argument in function.args.args]
    if "times" in names:
        return names.index("times"), None
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=whole)) if whole in names:
                own = [part.id for part in parts if isinstance(part, ast.Name)]
                if "times" in own:
                    return names.index(whole), own.index("times")
    return None
