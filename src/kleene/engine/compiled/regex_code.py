"""The regular-expression operator to the source of its kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from kleene.engine.compiled.regex_starts import LOW, Starts, bounds_of, depends_on_start, starts_of
from kleene.engine.compiled.registers import Register, Registers, write_update
from kleene.engine.compiled.row_code import Conditions, PatternCode, variable_of
from kleene.ir import expr as ir
from kleene.ir.evaluate import of_one_event
from kleene.schema import FLOAT

MOST_STATES = 62
MANY, LEAF = 32, 4
"""So many partial matches are tried one by one before they are put into blocks, and so few in a block."""
_RUN, _SHARED = ("ri", "rf"), ("shared_i", "shared_f")
NO_BLOCKS = """\
def in_blocks(base, partial, ri, rf, zones, blocks):
    return 0, partial


def in_rows(side, count, ri, rf, zones, blocks):
    return 0


def try_blocks(
    row, side, count, work, matches, bits, automaton, partials, zones, blocks, ends, matched, columns, ki, kf
):
    return 0, 0, 0, work
"""
"""In place of the loops for blocks, where there are none."""


@dataclass(frozen=True, slots=True)
class GeneratedRegex(GeneratedCode):
    """`follow[s]` are the states after s, a bit each, and the last of them those to begin with."""

    registers: Registers
    follow: Array
    of_variable: Array
    accepting: int
    measured: dict[ir.Aggregate, tuple[Register, ...]]  # for outputs: the registers of an aggregate
    collects: bool
    sums: int  # how many can go too far before anybody reads them


def generate_regex(
    query: AnalyzedRowPattern, automaton: Automaton, nullable: frozenset[str], in_blocks: bool, plain: bool = False
) -> GeneratedRegex:
    """`in_blocks` says whether many starts are tried at once, which takes several times as long to compile.

    The arguments of the kernels are the same either way.
    """
    registers = Registers(PARTIAL_REGISTERS, "PARTIAL_NULLS")
    return _Generator(query, Layout(nullable, plain=plain), automaton, registers).module(in_blocks)


class _Generator(PatternCode):
    def module(self, in_blocks: bool) -> GeneratedRegex:
        automaton, states = self.automaton, self.automaton.states[1:-1]
        variables = tuple(dict.fromkeys(variable_of(state) for state in states))
        if len(states) > MOST_STATES:
            raise NotExpressibleError(f"a pattern of {len(states)} states")
        code, in_match = Code(self.layout), _OfPartial(self.registers)
        with code.block("for row in range(first, last):"):
            code.line("found = 0")
            left = self.write_bits(code, variables, lambda _: _OfEvent())
            code.line("bits[row] = found")
        classify = code.function("classify(bits, first, last, columns, ki, kf)")
        head = "holds(variable, run, row, ri, rf, shared_i, shared_f, columns, ki, kf)"
        holds = self.tests(head, left, lambda _: in_match)
        bounds = self._bounds(left if starts_of(self.query) is Starts.IN_BLOCKS else {})
        read = list(self.registers.all)
        measured, collects = self._measured()
        count = self.registers.get(0, "count", None)  # by which it is known where a match from before began
        kept = _Kept(self.registers, self.layout, read)
        start, *following = automaton.edges[:-1]
        # The start, where no edge leads, is not counted.
        targets = [[edge.target for edge in edges if edge.target != automaton.final] for edges in [*following, start]]
        follow = [sum(1 << (target - 1) for target in own) for own in targets]
        of_variable = [sum(1 << n for n, state in enumerate(states) if state.variable == name) for name in variables]
        dependent = sum(of_variable[n] for n, name in enumerate(variables) if any(map(depends_on_start, left[name])))
        functions = [classify, holds, bounds, *kept.functions()]
        self.registers.check("{} aggregates")
        constants = {
            "ALLOCATES": False,
            "INTEGER_COLUMNS": self.registers.columns,
            "FLOAT_COLUMNS": self.registers.floats,
            "BOUNDS": in_blocks,
            "MANY": MANY,
            "LEAF": LEAF,
            "COLLECTS": collects,
            "COUNT_COLUMN": self.registers.place(count)[1],
            "FREE_STATES": free_states(follow[:-1], dependent),
        }
        blocks = template("regex_blocks") if in_blocks else NO_BLOCKS
        parts = [constants_code(constants), *functions, template("regex"), blocks]
        made = made_of(parts, self.layout, {"classify": "void", "match_events": "int64"})
        return GeneratedRegex(
            *made,
            self.registers,
            np.array(follow, np.int64),
            np.array(of_variable, np.int64),
            sum(1 << n for n, edges in enumerate(following) if any(e.target == automaton.final for e in edges)),
            measured,
            collects,
            len(kept.sums),
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

    def _bounds(self, left: Conditions) -> str:
        """A condition that fails for the least or the greatest value decides nothing for those between them."""
        code, reader = Code(self.layout), _OfBlock(self.registers)
        code.line("low_i, low_f, high_i, high_f = zones")
        for number, conditions in enumerate(left.values()):
            with code.block(f"if variable == {number}:"):
                code.line("is_certain = True")
                for condition in conditions:
                    _write_bounds(code, condition, reader)
                code.line("return 1 if is_certain else 2")
        code.line("return 1")
        return code.function("bounds(variable, block, row, zones, shared_i, shared_f, columns, ki, kf)")


def _write_bounds(code: Code, condition: ir.Expr, reader: Reader) -> None:
    both = bounds_of(condition)
    assert both is not None
    # Each comparison is looked at by itself: what AND and OR need not look at for one start they may for another.
    comparisons = [node for side in both for node in ir.walk(side) if isinstance(node, ir.Comparison)]
    for expression in dict.fromkeys([*comparisons, *both]):
        bad = code.truth(expression, reader).bad
        if bad is not None:
            code.return_if(bad, 2)
    possible, certain = (code.truth(side, reader) for side in both)
    code.return_if(f"not {possible.true}")
    code.line(f"is_certain = is_certain and {certain.true}")


class _Kept:
    """The functions that keep registers up to date: those that predicates read as events come, the others later.

    All partial matches share what was last. What is first is set where a match begins. An aggregate of the user's own
    is never late: what it says when it fails must be said at once.
    """

    def __init__(self, registers: Registers, layout: Layout, read: list[Register]) -> None:
        self._registers, self._layout = registers, layout
        self._counts = any(one.function == "count" for one in read)
        self._lasts = [one for one in read if one.function == "last"]
        self._firsts = [one for one in read if one.function == "first"]
        at_once = [one for one in read if one.function not in ("first", "last", "count")]
        self._read = [*self._firsts, *at_once]
        self._eager = [one for one in registers.all if one in at_once or one.own is not None]
        self._late = [one for one in registers.all if one not in self._firsts and one not in self._eager]
        self.sums = [one for one in self._late if _may_go_too_far(one)]

    def functions(self) -> Iterator[str]:
        yield self._take_event()
        yield self._share_event()
        code = Code(self._layout)
        self._clear(code, self._eager)
        self._write(code, self._firsts)
        yield self._ended(code, "begin_run(target, row, ri, rf, columns, ki, kf)")
        code = Code(self._layout)
        self._write(code, self._eager)
        yield self._ended(code, "add_event(target, row, ri, rf, columns, ki, kf)")
        yield self._add_late()
        yield self._failure_of()
        yield self._is_beyond_bounds()
        yield self._agree()

    def _ended(self, code: Code, head: str, result: object = 0) -> str:
        code.line(f"return {result}")
        return code.function(head)

    def _write(self, code: Code, chosen: Iterable[Register]) -> None:
        for register in chosen:
            write_update(register, self._registers, code, _OfEvent(), False, _RUN)

    def _clear(self, code: Code, chosen: Iterable[Register]) -> None:
        """Where a match begins, all bits say that registers are NULL already."""
        for register in chosen:
            code.line(f"{self._registers.value(register, 'target').code} = 0")

    def _take_event(self) -> str:
        """Arguments of aggregates that may fail are computed for each event that a match takes, once for all."""
        code, reader = Code(self._layout), _OfEvent()
        arguments = {one.text: one.argument for one in self._registers.all if one.argument is not None}
        for argument in arguments.values():
            mark = len(code.lines)
            value = code.scalar(argument, reader)
            if value.bad is None:
                del code.lines[mark:]
            code.return_if_bad(value, argument)
        code.line("target = 1")
        for register in self._lasts:
            write_update(register, self._registers, code, reader, False, _SHARED)
        return self._ended(code, "take_event(row, shared_i, shared_f, columns, ki, kf)")

    def _share_event(self) -> str:
        code = Code(self._layout)
        if self._lasts:
            code.line("shared_i[0, PARTIAL_NULLS] = shared_i[1, PARTIAL_NULLS]")
        for register in self._lasts:
            now, before = (self._registers.value(register, row, _SHARED).code for row in ("1", "0"))
            code.line(f"{before} = {now}")
        return self._ended(code, "share_event(shared_i, shared_f)")

    def _add_late(self) -> str:
        code = Code(self._layout)
        with code.block("if is_first:"):
            self._clear(code, self._late)
            self._write(code, [one for one in self._late if one.function == "first"])
        for register in self._late:
            if register.function == "first":
                continue
            if register in self.sums:  # what goes too far returns, and the mark stays
                code.line(f"ri[target, PARTIAL_FAILED] = {self.sums.index(register) + 1}")
            self._write(code, [register])
        code.line("ri[target, PARTIAL_FAILED] = 0")
        return self._ended(code, "add_late(target, is_first, row, ri, rf, columns, ki, kf)")

    def _failure_of(self) -> str:
        code = Code(self._layout)
        for number, register in enumerate(self.sums, 1):
            assert register.argument is not None
            node = ir.Aggregate("sum", register.argument, type=register.argument.type)
            code.return_if(f"number == {number}", self._layout.error(node))
        return self._ended(code, "failure_of(number)")

    def _is_beyond_bounds(self) -> str:
        code = Code(self._layout)
        code.return_if(f"(ri[run, PARTIAL_NULLS] & {self._null_bits(self._firsts)}) != 0", True)
        for register in self._firsts:
            if register.kind == "f":
                value = self._registers.value(register).code
                code.return_if(f"{value} - {value} != 0.0", True)
        return self._ended(code, "is_beyond_bounds(run, ri, rf)", False)

    def _agree(self) -> str:
        """Whether all that predicates read is the same; two starts have never counted the same."""
        code, head = Code(self._layout), "agree(run, other, ri, rf)"
        if self._counts:
            return self._ended(code, head, False)
        nulls = "(ri[run, PARTIAL_NULLS] ^ ri[other, PARTIAL_NULLS])"
        code.return_if(f"({nulls} & {self._null_bits(self._read)}) != 0", False)
        for register in self._read:
            one, two = (self._registers.value(register, run).code for run in ("run", "other"))
            code.return_if(f"{one} != {two}", False)
            if register.kind == "f":
                code.return_if(f"{one} == 0.0 and math.copysign(1.0, {one}) != math.copysign(1.0, {two})", False)
        return self._ended(code, head, True)

    def _null_bits(self, chosen: Iterable[Register]) -> int:
        return sum(1 << self._registers.null_bit(register) for register in chosen)


def free_states(follow: list[int], dependent: int) -> int:
    """The states, a bit each, from which no state can be reached whose predicate depends on the start of a match.

    >>> free_states([0b010, 0b100, 0b100], dependent=0b010)
    6
    """
    bound = 0
    while True:
        grown = sum(1 << n for n, after in enumerate(follow) if after & (dependent | bound))
        if grown == bound:
            return (1 << len(follow)) - 1 & ~bound
        bound = grown


def _may_go_too_far(register: Register) -> bool:
    argument = register.argument
    return register.function in ("sum", "total") and argument is not None and argument.type != FLOAT


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
        values = [self._value(registers.get(0, name, argument)) for name, argument in _parts(node)]
        if node.function == "avg":
            return code.average(values[0], values[1], node.argument)
        if node.function == "delta":
            return self._delta(node, values[0], code)
        return typed(values[0], node)

    def _value(self, register: Register) -> Scalar:
        match register.function:
            case "last":
                return self._registers.value(register, "0", _SHARED)
            case "count":
                return Scalar("(row - ri[run, PARTIAL_START])")
        return self._registers.value(register)

    def _delta(self, node: ir.Aggregate, first: Scalar, code: Code) -> Scalar:
        now = code.scalar(node.argument, self)
        if node.argument.type == FLOAT:
            nulls = [null for null in (first.null, now.null) if null is not None]
            return Scalar(f"({now.code} - {first.code})", f"({' or '.join(nulls)})" if nulls else None, now.bad)
        return code.checked(f"subtract({now.code}, {first.code})", [now, first], node)


class _OfBlock(_OfPartial):
    """Reads the least or the greatest values of many partial matches, by aggregates that are named so."""

    def _aggregate(self, node: ir.Aggregate, code: Code) -> Scalar | Truth:
        function, sign, end = node.function.partition("_")
        if not sign:
            return super()._aggregate(node, code)
        if function == "count":  # the later a match began, the fewer events it has
            return Scalar(f"(row - {'high_i' if sign + end == LOW else 'low_i'}[block, PARTIAL_START])")
        is_low = (sign + end == LOW) == (function == "first")
        register = self._registers.get(0, "first", node.argument)
        first = self._registers.value(register, "block", ("low_i", "low_f") if is_low else ("high_i", "high_f"))
        return self._delta(node, Scalar(first.code), code) if function == "delta" else Scalar(first.code)
