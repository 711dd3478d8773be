"""The regular-expression operator to the source of its kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.model import Automaton
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_REGISTERS
from kleene.engine.compiled.code import Code, Reader, Scalar, Slots, Truth, typed
from kleene.engine.compiled.columns import Array, Layout
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.loading import constants_code, template
from kleene.engine.compiled.programs import GeneratedCode, made_of
from kleene.engine.compiled.registers import Register, Registers, write_update
from kleene.engine.compiled.row_code import PatternCode, variable_of
from kleene.ir import expr as ir
from kleene.ir.evaluate import of_one_event
from kleene.schema import FLOAT

MOST_STATES = 62


@dataclass(frozen=True, slots=True)
class GeneratedRegex(GeneratedCode):
    """`follow[s]` are the states after s, a bit each, and the last of them those to begin with."""

    registers: Registers
    follow: Array
    of_variable: Array
    accepting: int
    measured: dict[ir.Aggregate, tuple[Register, ...]]  # for outputs: the registers of an aggregate
    collects: bool


def generate_regex(
    query: AnalyzedRowPattern, automaton: Automaton, nullable: frozenset[str], plain: bool = False
) -> GeneratedRegex:
    return _Generator(
        query, Layout(nullable, plain=plain), automaton, Registers(PARTIAL_REGISTERS, "PARTIAL_NULLS")
    ).module()


class _Generator(PatternCode):
    def module(self) -> GeneratedRegex:
        automaton, states = self.automaton, self.automaton.states[1:-1]
        variables = tuple(dict.fromkeys(variable_of(state) for state in states))
        if len(states) > MOST_STATES:
            raise NotExpressibleError(f"a pattern of {len(states)} states")
        code, in_match = Code(self.layout), _OfPartial(self.registers)
        with code.block("for row in range(first, last):"):
            code.line("found = 0")
            left = self.write_bits(code, variables, lambda _: _OfEvent())
            code.line("bits[row] = found")
        holds = self.tests("holds(variable, run, row, ri, rf, columns, ki, kf)", left, lambda _: in_match)
        measured, collects = self._measured()
        add_event = self._add_event()
        self.registers.check("{} aggregates")
        columns = {"INTEGER_COLUMNS": self.registers.columns, "FLOAT_COLUMNS": self.registers.floats}
        classify = code.function("classify(bits, first, last, columns, ki, kf)")
        parts = [constants_code({"ALLOCATES": False, **columns}), classify, holds, add_event, template("regex")]
        made = made_of(parts, self.layout, {"classify": "void", "match_events": "int64"})
        start, *following = automaton.edges[:-1]
        # The start, where no edge leads, is not counted.
        targets = [[edge.target for edge in edges if edge.target != automaton.final] for edges in [*following, start]]
        follow = [sum(1 << (target - 1) for target in own) for own in targets]
        of_variable = [sum(1 << n for n, state in enumerate(states) if state.variable == name) for name in variables]
        return GeneratedRegex(
            *made,
            self.registers,
            np.array(follow, np.int64),
            np.array(of_variable, np.int64),
            sum(1 << n for n, edges in enumerate(following) if any(e.target == automaton.final for e in edges)),
            measured,
            collects,
        )

    def _measured(self) -> tuple[dict[ir.Aggregate, tuple[Register, ...]], bool]:
        found: dict[ir.Aggregate, tuple[Register, ...]] = {}
        collects = False
        for measure in self.query.measures:
            for node in ir.walk(measure.expression):
                if not isinstance(node, ir.Aggregate):
                    continue
                if node.function == "collect":
                    collects = True
                    continue
                for inner in ir.walk(node.argument):
                    if isinstance(inner, ir.Aggregate):
                        raise NotExpressibleError("an aggregate inside an aggregate")
                if node.own is not None:
                    self.registers.states(0, node, self.layout.plain)
                    found[node] = tuple(one for one in self.registers.all if one.own is node.own and _is_of(one, node))
                    continue
                found[node] = tuple(self.registers.get(0, name, argument) for name, argument in _parts(node))
        return found, collects

    def _add_event(self) -> str:
        code = Code(self.layout)
        reader, arrays = _OfEvent(), ("ri", "rf")
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
        return code.function("add_event(target, row, ri, rf, columns, ki, kf)")


def _is_of(register: Register, node: ir.Aggregate) -> bool:
    return register.argument == of_one_event(node.argument)


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


class _OfEvent(Reader):
    """Reads the current event."""

    beyond = (ir.Aggregate, ir.Events)

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        if isinstance(expression, ir.Attribute):
            return super().read(expression, code)
        raise NotExpressibleError(f"{type(expression).__name__} inside an aggregate")


class _OfPartial(_OfEvent):
    """Reads the current event, and the aggregates of the partial match before it."""

    def __init__(self, registers: Registers) -> None:
        self._registers = registers

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        return (
            self._aggregate(expression, code)
            if isinstance(expression, ir.Aggregate)
            else super().read(expression, code)
        )

    def states(self, aggregate: ir.Aggregate, code: Code) -> Slots:
        return self._registers.states(0, aggregate, code.layout.plain)

    def _aggregate(self, node: ir.Aggregate, code: Code) -> Scalar | Truth:
        registers = self._registers
        if node.own is not None:
            return registers.aggregate(0, node, code)
        values = [registers.value(registers.get(0, name, argument)) for name, argument in _parts(node)]
        if node.function == "avg":
            return code.average(values[0], values[1], node.argument)
        if node.function == "delta":
            now = code.scalar(node.argument, self)
            if node.argument.type == FLOAT:
                null = values[0].null if now.null is None else f"({values[0].null} or {now.null})"
                return Scalar(f"({now.code} - {values[0].code})", null, now.bad)
            return code.checked(f"subtract({now.code}, {values[0].code})", [now, values[0]], node)
        return typed(values[0], node)
