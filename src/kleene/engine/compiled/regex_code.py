"""The regular-expression operator to the source of its kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.model import TRUE, Automaton, Edge, FormulaClass, predicates_of
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_REGISTERS
from kleene.engine.compiled.code import HEADER, Code, NotExpressibleError, Scalar, Truth, as_truth
from kleene.engine.compiled.columns import Array, Layout
from kleene.engine.compiled.loading import assembled, template
from kleene.engine.compiled.registers import MOST_REGISTERS, Register, Registers, write_update
from kleene.engine.compiled.row_code import variable_of
from kleene.ir import expr as ir
from kleene.schema import BOOLEAN, FLOAT

MOST_STATES = 62


@dataclass(frozen=True, slots=True)
class GeneratedRegex:
    """`follow[s]` are the states after s, a bit each, and the last of them those to begin with."""

    source: str
    signatures: dict[str, str]
    layout: Layout
    registers: Registers
    follow: Array
    of_variable: Array
    accepting: int
    measured: dict[ir.Aggregate, tuple[Register, ...]]  # for outputs: the registers of an aggregate
    collects: bool


def generate_regex(query: AnalyzedRowPattern, automaton: Automaton, nullable: frozenset[str]) -> GeneratedRegex:
    return _Generator(query, Layout(nullable), automaton).module()


@dataclass(slots=True)
class _Generator:
    query: AnalyzedRowPattern
    layout: Layout
    automaton: Automaton
    registers: Registers = field(default_factory=lambda: Registers(PARTIAL_REGISTERS, "PARTIAL_NULLS"))

    def module(self) -> GeneratedRegex:
        automaton, states = self.automaton, self.automaton.states[1:-1]
        variables = tuple(dict.fromkeys(variable_of(state) for state in states))
        if len(states) > MOST_STATES:
            raise NotExpressibleError(f"a pattern of {len(states)} states")
        classify, left = self._classify(variables)
        holds = self._holds(variables, left)
        measured, collects = self._measured()
        add_event = self._add_event()
        if len(self.registers.all) > MOST_REGISTERS:
            raise NotExpressibleError(f"{len(self.registers.all)} aggregates")
        columns = PARTIAL_REGISTERS + self.registers.integers
        constants = f"ALLOCATES = False\nINTEGER_COLUMNS = {columns}\nFLOAT_COLUMNS = {self.registers.floats}"
        parts = [constants, classify, holds, add_event, template("regex")]
        start, *following = automaton.edges[:-1]
        return GeneratedRegex(
            assembled(HEADER, parts),
            self._signatures(),
            self.layout,
            self.registers,
            np.array([_mask(edges, automaton) for edges in [*following, start]], np.int64),
            np.array(
                [sum(1 << n for n, state in enumerate(states) if state.variable == name) for name in variables],
                np.int64,
            ),
            sum(1 << n for n, edges in enumerate(following) if any(e.target == automaton.final for e in edges)),
            measured,
            collects,
        )

    def _classify(self, variables: tuple[str, ...]) -> tuple[str, dict[str, list[ir.Expr]]]:
        code = Code(self.layout)
        left: dict[str, list[ir.Expr]] = {}
        definitions = dict(self.automaton.definitions)
        reader = _OfPartial(self, None)
        with code.block("for row in range(first, last):"):
            code.line("found = 0")
            for number, name in enumerate(variables):
                parts: list[str] = []
                left[name] = []
                for predicate in predicates_of(definitions.get(name, TRUE)):
                    mark, condition = len(code.lines), predicate.conjunct.expression
                    truth = None if predicate.formula_class is FormulaClass.RUN else code.truth(condition, reader)
                    if truth is None or truth.bad is not None:
                        del code.lines[mark:]
                        left[name].append(condition)
                    else:
                        parts.append(truth.true)
                with code.block(f"if {' and '.join(parts) or 'True'}:"):
                    code.line(f"found |= {1 << number}")
            code.line("bits[row] = found")
        return "def classify(bits, first, last, columns, ki, kf):\n" + "\n".join(code.lines), left

    def _holds(self, variables: tuple[str, ...], left: dict[str, list[ir.Expr]]) -> str:
        code = Code(self.layout)
        for number, name in enumerate(variables):
            if not left[name]:
                continue
            with code.block(f"if variable == {number}:"):
                for part in left[name]:
                    truth = code.truth(part, _OfPartial(self, "run"))
                    if truth.bad is not None:
                        with code.block(f"if {truth.bad}:"):
                            code.line(f"return {self.layout.error(part)}")
                    with code.block(f"if not {truth.true}:"):
                        code.line("return 0")
        code.line("return 1")
        return "def holds(variable, run, row, ri, rf, columns, ki, kf):\n" + "\n".join(code.lines)

    def _measured(self) -> tuple[dict[ir.Aggregate, tuple[Register, ...]], bool]:
        found: dict[ir.Aggregate, tuple[Register, ...]] = {}
        collects = False
        for measure in self.query.measures:
            for node in ir.walk(measure.expression):
                if isinstance(node, ir.PythonCall):
                    raise NotExpressibleError("a call of a Python function")
                if not isinstance(node, ir.Aggregate):
                    continue
                if node.function == "collect":
                    collects = True
                    continue
                for inner in ir.walk(node.argument):
                    if isinstance(inner, ir.Aggregate):
                        raise NotExpressibleError("an aggregate inside an aggregate")
                found[node] = tuple(self.registers.get(0, name, argument) for name, argument in _parts(node))
        return found, collects

    def _add_event(self) -> str:
        code = Code(self.layout)
        reader, arrays = _OfPartial(self, None), ("ri", "rf")
        firsts = [register for register in self.registers.all if register.function == "first"]
        if firsts:
            count = self.registers.value(self.registers.get(0, "count", None), "target").code
            with code.block(f"if {count} == 0:"):
                for register in firsts:
                    write_update(register, self.registers, code, reader, False, arrays)
        for register in self.registers.all:
            if register.function != "first":
                write_update(register, self.registers, code, reader, False, arrays)
        code.line("return 0")
        return "def add_event(target, row, ri, rf, columns, ki, kf):\n" + "\n".join(code.lines)

    def _signatures(self) -> dict[str, str]:
        columns = self.layout.signature()
        one, two, floats = "int64[::1]", "int64[:,::1]", "float64[:,::1]"
        return {
            "classify": f"void({one}, int64, int64, {columns}, {one}, float64[::1])",
            "match_events": f"int64({one}, {two}, {one}, {one}, {one}, int64, {two}, {floats}, {two}, {floats}, "
            f"{two}, {floats}, {two}, {two}, {floats}, {columns}, {one}, float64[::1])",
        }


def _mask(edges: tuple[Edge, ...], automaton: Automaton) -> int:
    """The states that the edges lead to, a bit each; the start, where no edge leads, is not counted."""
    return sum(1 << (edge.target - 1) for edge in edges if edge.target != automaton.final)


def _parts(node: ir.Aggregate) -> list[tuple[str, ir.Expr | None]]:
    """The registers that an aggregate is computed from. Here first and last are values of events, NULL or not."""
    if isinstance(node.argument, ir.Events):
        return [("count", None)]
    match node.function:
        case "avg":
            return [("total", node.argument), ("known", node.argument)]
        case "delta":
            return [("first", node.argument)]
        case "first" | "last" | "sum" | "min" | "max":
            return [(node.function, node.argument)]
    raise NotExpressibleError(f"{node.function} in a predicate")


@dataclass(slots=True)
class _OfPartial:
    """Reads the current event, and the aggregates of the partial match before it."""

    generator: _Generator
    run: str | None

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Attribute():
                return code.column(code.layout.column(expression), "row")
            case ir.Aggregate() if self.run is not None:
                return self._aggregate(expression, code)
        raise NotExpressibleError(f"{type(expression).__name__} inside an aggregate")

    def _aggregate(self, node: ir.Aggregate, code: Code) -> Scalar | Truth:
        registers = self.generator.registers
        values = [
            registers.value(registers.get(0, name, argument), self.run or "run") for name, argument in _parts(node)
        ]
        if node.function == "avg":
            whole = code.as_float(values[0], node.argument.type)
            return Scalar(f"divide({whole.code}, float({values[1].code}))", whole.null, whole.bad)
        if node.function == "delta":
            now = code.scalar(node.argument, self)
            if node.argument.type == FLOAT:
                null = values[0].null if now.null is None else f"({values[0].null} or {now.null})"
                return Scalar(f"({now.code} - {values[0].code})", null, now.bad)
            return code.checked(f"subtract({now.code}, {values[0].code})", [now, values[0]], node)
        return as_truth(values[0]) if node.type == BOOLEAN else values[0]

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        has_more = any(isinstance(node, (ir.Aggregate, ir.Events, ir.PythonCall)) for node in ir.walk(expression))
        return None if has_more else expression

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        return code.column(column, "row")
