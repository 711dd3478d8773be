"""A row pattern to the source of its kernels: what each row alone decides, and what looks at the match so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise

import numpy as np

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.model import (
    TRUE,
    Accepting,
    AtEnd,
    AtStart,
    Automaton,
    Defined,
    Edge,
    FormulaClass,
    Predicate,
    State,
    parts_of,
    predicates_of,
)
from kleene.engine.compiled.arrays.row_automaton import (
    ACCEPT,
    ACCEPT_AT_END,
    SKIP_PAST_LAST,
    SKIP_TO_FIRST,
    SKIP_TO_LAST,
    SKIP_TO_NEXT,
)
from kleene.engine.compiled.arrays.row_frames import FRAME_REGISTERS
from kleene.engine.compiled.code import HEADER, Code, NotExpressibleError, Scalar, Truth, as_truth
from kleene.engine.compiled.columns import Array, Layout
from kleene.engine.compiled.loading import assembled, template
from kleene.engine.compiled.registers import MOST_REGISTERS, Register, Registers, write_update
from kleene.engine.events import window_size
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Skip, WindowUnit
from kleene.schema import BOOLEAN, FLOAT

MOST_VARIABLES = 62
ANY_ROW = 62
MOST_ROWS = 2**31


def has_time_window(query: AnalyzedRowPattern) -> bool:
    window = query.definition.window
    return window is not None and window.unit is not WindowUnit.EVENTS


_SKIPS = {
    Skip.PAST_LAST_ROW: SKIP_PAST_LAST,
    Skip.TO_NEXT_ROW: SKIP_TO_NEXT,
    Skip.TO_FIRST: SKIP_TO_FIRST,
    Skip.TO_LAST: SKIP_TO_LAST,
}


@dataclass(frozen=True, slots=True)
class Tables:
    """The automaton as arrays: the edges of state s are edge_target[edge_begin[s]:edge_begin[s + 1]].

    Two states come after the pattern's own: the start at the first row of the partition, and the start elsewhere.
    """

    edge_begin: Array
    edge_target: Array
    edge_variable: Array
    next_bits: Array
    variable_of: Array
    variables: tuple[str, ...]
    is_excluded: tuple[bool, ...]
    has_choices: bool  # some state has several to go to
    is_ambiguous: bool  # two ways may be one classification


@dataclass(frozen=True, slots=True)
class GeneratedRows:
    source: str
    signatures: dict[str, str]
    layout: Layout
    tables: Tables
    remembers: bool
    integers: int
    floats: int


def make_tables(automaton: Automaton) -> Tables:
    """The automaton as arrays; in them states are counted without the start, which comes last, and F."""
    states = automaton.states[1:-1]
    variables = tuple(dict.fromkeys(variable_of(state) for state in states))
    if len(variables) > MOST_VARIABLES:
        raise NotExpressibleError(f"a pattern of {len(variables)} variables")
    targets: list[int] = []
    begins = [0]
    start, *following = automaton.edges[:-1]
    for edges, at_first_row in [*((edges, False) for edges in following), (start, True), (start, False)]:
        for edge in edges:
            is_last = edge.target == automaton.final
            is_plain = isinstance(edge.formula, Defined)
            at_start, at_end = (False, False) if is_plain else anchors_of(edge)
            # Behind a row there is no first row any more; behind the last row nothing can be matched.
            if (at_start and not at_first_row) or (at_end and not is_last):
                continue
            if is_last:
                targets.append(ACCEPT_AT_END if at_end else ACCEPT)
            else:
                targets.append(edge.target - 1)
        begins.append(len(targets))
    of_states = [variables.index(variable_of(state)) for state in states]
    return Tables(
        np.array(begins, np.int64),
        np.array(targets or [0], np.int64),
        np.array([of_states[target] if target >= 0 else -1 for target in targets] or [-1], np.int64),
        np.array([_next_bits(targets[a:b], of_states) for a, b in pairwise(begins)], np.int64),
        np.array(of_states, np.int64),
        variables,
        tuple(state.is_excluded for state in states),
        any(sum(target >= 0 for target in targets[a:b]) > 1 for a, b in pairwise(begins)),
        _is_ambiguous(targets, begins, of_states),
    )


def variable_of(state: State) -> str:
    assert state.variable is not None
    return state.variable


def anchors_of(edge: Edge) -> tuple[bool, bool]:
    parts = parts_of(edge.formula)
    return AtStart() in parts, AtEnd() in parts


def _is_ambiguous(targets: list[int], begins: list[int], of_states: list[int]) -> bool:
    """Whether from some state the same variable leads to two states, or the end can be reached twice."""
    for begin, end in pairwise(begins):
        variables = [of_states[target] if target >= 0 else -1 for target in targets[begin:end]]
        if len(set(variables)) < len(variables):
            return True
    return False


def _next_bits(targets: list[int], of_states: list[int]) -> int:
    """The variables that can come next, a bit each; and the bit that every row has, where a match can end."""
    found = 0
    for target in targets:
        if target < 0:
            found |= 1 << ANY_ROW
        else:
            found |= 1 << of_states[target]
    return found


def _late_first(register: Register) -> tuple[int, int]:
    """row_first looks at the count, row_last_2 at row_last_1, each as it was before the row."""
    if register.function.startswith("row_first"):
        return 0, 0
    if register.function.startswith("row_last"):
        return 1, -int(register.function.removeprefix("row_last_"))
    return 2, 0


def generate_rows(query: AnalyzedRowPattern, automaton: Automaton, nullable: frozenset[str]) -> GeneratedRows:
    return _Generator(query, Layout(nullable), automaton, make_tables(automaton)).module()


@dataclass(slots=True)
class _Generator:
    query: AnalyzedRowPattern
    layout: Layout
    automaton: Automaton
    tables: Tables
    registers: Registers = field(default_factory=lambda: Registers(FRAME_REGISTERS, "FRAME_NULLS"))
    owners: list[frozenset[str] | None] = field(default_factory=list)

    def module(self) -> GeneratedRows:
        self._check_match_numbers()
        classify, left = self._classify()
        fits_run = self._fits_run(left)
        looks = any(left.values())
        run_variables = sum(1 << n for n, name in enumerate(self.tables.variables) if left[name])
        if len(self.registers.all) > MOST_REGISTERS:
            raise NotExpressibleError(f"conditions that read {len(self.registers.all)} values of a match")
        bind = self._bind() if self.registers.all else ""
        parts = [
            self._constants(looks, run_variables),
            self._window(),
            classify,
            bind,
            fits_run if looks else "",
            template("rows"),
        ]
        source = assembled(HEADER, parts)
        return GeneratedRows(
            source,
            self._signatures(),
            self.layout,
            self.tables,
            self._remembers(looks),
            FRAME_REGISTERS + self.registers.integers,
            max(self.registers.floats, 1),
        )

    def _check_match_numbers(self) -> None:
        if self._gives_all and self.tables.is_ambiguous:
            for _, condition in self.query.conditions:
                if any(isinstance(node, ir.MatchNumber) for node in ir.walk(condition)):
                    raise NotExpressibleError("MATCH_NUMBER() in a condition that decides which match is found")

    @property
    def _gives_all(self) -> bool:
        return self.automaton.policy.accepting is Accepting.EVERY_RUN

    def _constants(self, looks: bool, run_variables: int) -> str:
        definition = self.query.definition
        after = self.automaton.policy.after or AfterMatch()
        wanted = self.query.members.get(after.variable or "", ())
        mask = sum(1 << n for n, name in enumerate(self.tables.variables) if name in wanted)
        lines = {
            "ALLOCATES": False,
            "ALL_MATCHES": self._gives_all,
            "LOOKS_AT_MATCH": looks,
            "REMEMBERS": self._remembers(looks),
            "RUN_VARIABLES": run_variables,
            "REGISTERS": len(self.registers.all),
            "MOST_ROWS": -1 if definition.max_length is None else min(definition.max_length, 2**62),
            "WINDOW_IN_TIME": has_time_window(self.query),
            "SKIP": _SKIPS[after.skip],
            "SKIP_TARGET": mask,
        }
        return "\n".join(f"{name} = {value}" for name, value in lines.items())

    def _remembers(self, looks: bool) -> bool:
        """A pattern that is one sequence costs little from each start as it is."""
        return not looks and self.tables.has_choices

    def _window(self) -> str:
        head = "def in_window(start, row, times, ki, kf):\n    return "
        window = self.query.definition.window
        if window is None:
            return head + "True"
        if window.unit is WindowUnit.EVENTS:
            return head + f"row - start < {self.layout.integer(int(window.size))}"
        size = window_size(window, self.query.time_type)
        if self.query.time_type == FLOAT:
            return head + f"abs(times[row] - times[start]) < {self.layout.float_(float(size))}"
        if isinstance(size, Decimal) and size != int(size):
            size = int(size) + 1
        return head + f"abs(times[row] - times[start]) < {self.layout.integer(min(int(size), 2**63 - 1))}"

    # --- one row and its neighbours ------------------------------------------------------------------------------

    def _classify(self) -> tuple[str, dict[str, list[ir.Expr]]]:
        """Code that sets a bit for each variable that a row can be, and the conditions that this leaves open."""
        code = Code(self.layout)
        left: dict[str, list[ir.Expr]] = {}
        definitions = dict(self.automaton.definitions)
        with code.block("for group in range(len(groups)):"):
            code.line("begin, end = groups[group, ROW_GROUP_FIRST], groups[group, ROW_GROUP_SEEN_END]")
            with code.block("for row in range(begin, end):"):
                code.line(f"found = {1 << ANY_ROW}")
                for number, name in enumerate(self.tables.variables):
                    parts: list[str] = []
                    left[name] = []
                    for predicate in predicates_of(definitions.get(name, TRUE)):
                        truth = (
                            None if predicate.formula_class is FormulaClass.RUN else self._of_row(code, predicate, name)
                        )
                        if truth is None:
                            left[name].append(predicate.conjunct.expression)
                        else:
                            parts.append(truth.true)
                    with code.block(f"if {' and '.join(parts) or 'True'}:"):
                        code.line(f"found |= {1 << number}")
                code.line("bits[row] = found")
        return "def classify(bits, groups, columns, ki, kf):\n" + "\n".join(code.lines), left

    def _of_row(self, code: Code, predicate: Predicate, name: str) -> Truth | None:
        """The code for a condition that the row and its neighbours decide; None if it may give up."""
        mark = len(code.lines)
        known = len(self.layout.errors)
        try:
            truth = code.truth(predicate.conjunct.expression, _Neighbours(self.query, name))
        except NotExpressibleError:  # what looks at the match so far may have another way to say it
            truth = None
        if truth is None or truth.bad is not None:
            del code.lines[mark:]
            del self.layout.errors[known:]
            return None
        return truth

    # --- the match so far ----------------------------------------------------------------------------------------

    def _fits_run(self, left: dict[str, list[ir.Expr]]) -> str:
        code = Code(self.layout)
        for number, name in enumerate(self.tables.variables):
            if not left[name]:
                continue
            with code.block(f"if variable == {number}:"):
                for part in left[name]:
                    truth = code.truth(part, _OfMatchSoFar(self, name))
                    if truth.bad is not None:
                        with code.block(f"if {truth.bad}:"):
                            code.line(f"return {self.layout.error(part)}")
                    with code.block(f"if not {truth.true}:"):
                        code.line("return 0")
        code.line("return 1")
        head = "def fits_run(variable, row, start, number, begin, end, ri, rf, columns, ki, kf):\n"
        return head + "\n".join(code.lines)

    def owner(self, variable: str | None) -> int:
        """The number of a set of variables whose rows a register is about; None is all of them."""
        members = None if variable is None else frozenset(self.query.members[variable])
        if members not in self.owners:
            self.owners.append(members)
        return self.owners.index(members)

    def _bind(self) -> str:
        bind, unbind, clear = Code(self.layout), Code(self.layout), Code(self.layout)
        bind.line("target = 0")
        clear.line("ri[0, FRAME_NULLS] = -1")
        for register in self.registers.all:
            empty = "-1" if register.function.startswith("row_") else "0"
            clear.line(f"{self._current(register)} = {empty}")
        for number, name in enumerate(self.tables.variables):
            # Those that depend on another's value before the row come first.
            own = sorted((r for r in self.registers.all if self._is_about(r, name)), key=_late_first)
            if not own:
                continue
            with bind.block(f"if variable == {number}:"), unbind.block(f"if variable == {number}:"):
                bind.line("ri[depth, FRAME_NULLS] = ri[0, FRAME_NULLS]")
                unbind.line("ri[0, FRAME_NULLS] = ri[depth, FRAME_NULLS]")
                for register in own:
                    kept = self.registers.value(register, "depth").code
                    bind.line(f"{kept} = {self._current(register)}")
                    unbind.line(f"{self._current(register)} = {kept}")
                for register in own:
                    self._write(bind, register, name)
        bind.line("return 0")
        unbind.line("return 0")
        return "\n\n".join(
            [
                "def clear(ri, rf):\n" + "\n".join(clear.lines),
                "def bind(variable, row, start, depth, begin, end, ri, rf, columns, ki, kf):\n" + "\n".join(bind.lines),
                "def unbind(variable, depth, ri, rf):\n" + "\n".join(unbind.lines),
            ]
        )

    def _current(self, register: Register) -> str:
        return self.registers.value(register, "0").code

    def _is_about(self, register: Register, name: str) -> bool:
        members = self.owners[register.owner]
        return members is None or name in members

    def _write(self, code: Code, register: Register, name: str) -> None:
        target = self._current(register)
        function = register.function
        if function == "row_name":
            code.line(f"{target} = {self.layout.string(name)}")
        elif function.startswith("row_last"):
            offset = int(function.removeprefix("row_last_"))
            if offset == 0:
                code.line(f"{target} = row")
            else:
                before = Register(register.owner, f"row_last_{offset - 1}", None, "i")
                code.line(f"{target} = {self._current(before)}")
        elif function.startswith("row_first"):
            offset = int(function.removeprefix("row_first_"))
            counted = self._current(Register(register.owner, "count", None, "i"))
            with code.block(f"if {counted} == {offset}:"):
                code.line(f"{target} = row")
        else:
            reader = _Neighbours(self.query, name, for_aggregate=True)
            write_update(register, self.registers, code, reader, False, ("ri", "rf"))

    def row_register(self, variable: str | None, from_last: bool, offset: int) -> Register:
        """The register with the row that is `offset` rows of the variable from its first or last."""
        owner = self.owner(variable)
        if offset > 16:
            raise NotExpressibleError(f"an offset of {offset} rows")
        if from_last:
            for nearer in range(offset):
                self.registers.get(owner, f"row_last_{nearer}", None)
            return self.registers.get(owner, f"row_last_{offset}", None)
        self.registers.get(owner, "count", None)
        return self.registers.get(owner, f"row_first_{offset}", None)

    # --- the rest ------------------------------------------------------------------------------------------------

    def _signatures(self) -> dict[str, str]:
        columns = self.layout.signature()
        times = "float64[::1]" if self.query.time_type == FLOAT else "int64[::1]"
        one, two, floats = "int64[::1]", "int64[:,::1]", "float64[:,::1]"
        return {
            "classify": f"void({one}, {two}, {columns}, {one}, float64[::1])",
            "search": f"int64({one}, {two}, {one}, {times}, {one}, {one}, {one}, {one}, {one}, {two}, "
            f"{one}, {one}, {one}, {two}, {floats}, {two}, {one}, {one}, {columns}, {one}, float64[::1])",
        }


def look_around(query: AnalyzedRowPattern) -> tuple[int, int]:
    """How many rows before a match, and after the last row tried, conditions and measures look at."""
    expressions = [condition for _, condition in query.conditions] + [item.expression for item in query.measures]
    navigations = (node for item in expressions for node in ir.walk(item) if isinstance(node, ir.Navigation))
    shifts = [0, *(node.shift for node in navigations if node.shift is not None)]
    return min(max(0, -min(shifts)), MOST_ROWS), min(max(shifts), MOST_ROWS)


class _LooksAtMatchError(Exception):
    """The condition needs more than the row and its neighbours."""


@dataclass(slots=True)
class _Neighbours:
    """Reads the row that is tried for the variable, and rows at a distance from it in the partition."""

    query: AnalyzedRowPattern
    own: str
    for_aggregate: bool = False

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Attribute():
                if not self._is_own(expression.variable):
                    raise _LooksAtMatchError
                return code.column(code.layout.column(expression), "row")
            case ir.Navigation(variable=variable, from_last=True, offset=0, shift=shift) if self._is_own(variable):
                return shifted(expression, "row", shift or 0, code)
            case ir.Classifier(variable=variable) if self._is_own(variable):
                return Scalar(code.layout.string(self.own))
        raise _LooksAtMatchError

    def _is_own(self, variable: str | None) -> bool:
        return self.for_aggregate or variable is None or self.own in self.query.members[variable]

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                if not self._is_own(node.variable):
                    return None
            elif isinstance(node, (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber, ir.Events)):
                return None
        return expression

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        return code.column(column, "row")


@dataclass(slots=True)
class _AtRow:
    """Reads the row that a navigation has gone to."""

    row: str

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        if not isinstance(expression, ir.Attribute):
            raise NotExpressibleError(f"the {type(expression).__name__.lower()} of another row")
        return code.column(code.layout.column(expression), self.row)

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        is_plain = not any(isinstance(node, (ir.Classifier, ir.MatchNumber)) for node in ir.walk(expression))
        return expression if is_plain else None

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        return code.column(column, self.row)


def shifted(navigation: ir.Navigation, row: str, shift: int, code: Code, missing: str | None = None) -> Scalar | Truth:
    """The value of the navigation's argument `shift` rows from the row, NULL outside of the partition."""
    shift = max(-MOST_ROWS, min(shift, MOST_ROWS))  # beyond all rows is beyond all rows
    there = code.temp(f"{row} + {shift}") if shift else row
    outside = None
    if shift:
        outside = f"({there} < begin)" if shift < 0 else f"({there} >= end)"
    absent = outside if missing is None else (missing if outside is None else f"({missing} or {outside})")
    if absent is None:
        inside = there
    else:
        absent = code.temp(absent)
        inside = code.temp(f"(row if {absent} else {there})")
    found = code.scalar(navigation.argument, _AtRow(inside))
    if navigation.argument.type == BOOLEAN:
        truth = code.truth(navigation.argument, _AtRow(inside))
        found = Scalar(f"(1 if {truth.true} else 0)", f"(not ({truth.true} or {truth.false}))", truth.bad)
    if absent is not None:
        null = absent if found.null is None else f"({absent} or {found.null})"
        bad = None if found.bad is None else f"(not {absent} and {found.bad})"
        found = Scalar(found.code, null, bad)
    return as_truth(found) if navigation.type == BOOLEAN else found


@dataclass(slots=True)
class _OfMatchSoFar:
    """Reads the row that is tried, which counts as the last of the match, and the registers that include it."""

    generator: _Generator
    own: str

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        try:
            return _Neighbours(self.generator.query, self.own).read(expression, code)
        except _LooksAtMatchError:
            pass
        match expression:
            case ir.Attribute(variable=variable):
                as_navigation = ir.Navigation(expression, variable, type=expression.type)
                return self._navigate(as_navigation, code)
            case ir.Navigation():
                return self._navigate(expression, code)
            case ir.Aggregate():
                return self._aggregate(expression, code)
            case ir.Classifier(variable=variable):
                register = self._get(variable, "row_name")
                value = self.generator.registers.value(register, "0").code
                return Scalar(value, f"({value} < 0)")
            case ir.MatchNumber():
                return Scalar("number")
        raise NotExpressibleError(f"{type(expression).__name__} in a condition")

    def _get(self, variable: str | None, function: str) -> Register:
        return self.generator.registers.get(self.generator.owner(variable), function, None)

    def _navigate(self, navigation: ir.Navigation, code: Code) -> Scalar | Truth:
        variable, shift = navigation.variable, navigation.shift or 0
        offset = min(navigation.offset, MOST_ROWS)
        if variable is None:
            # The rows of a match follow each other, so that their places are known.
            place = f"row - {offset}" if navigation.from_last else f"start + {offset}"
            place = code.temp(place)
            missing = f"({place} < start)" if navigation.from_last else f"({place} > row)"
            return shifted(navigation, place, shift, code, missing)
        register = self.generator.row_register(variable, navigation.from_last, offset)
        place = code.temp(self.generator.registers.value(register, "0").code)
        return shifted(navigation, place, shift, code, f"({place} < 0)")

    def _aggregate(self, aggregate: ir.Aggregate, code: Code) -> Scalar | Truth:
        if aggregate.distinct and aggregate.function not in ("min", "max"):
            raise NotExpressibleError(f"{aggregate.function}(DISTINCT …) in a condition")
        for node in ir.walk(aggregate.argument):
            if isinstance(node, (ir.Classifier, ir.MatchNumber, ir.Navigation)):
                raise NotExpressibleError(f"{type(node).__name__} inside an aggregate")
        owner = self.generator.owner(_variable_of(aggregate.argument))
        found = self.generator.registers.aggregate(owner, aggregate, aggregate.argument, code, "0")
        return as_truth(found) if aggregate.type == BOOLEAN else found

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        """All columns of one row: the one that is tried, or the last of a variable."""
        variables: set[object] = set()
        example: ir.Expr | None = None
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                own = node.variable is None or self.own in self.generator.query.members[node.variable]
                variables.add(None if own else node.variable)
                example = node
            elif isinstance(node, (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber, ir.Events)):
                return None
        return example if len(variables) == 1 else None

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        assert isinstance(like, ir.Attribute)
        expression = code.layout.columns[column].expression
        if like.variable is None or self.own in self.generator.query.members[like.variable]:
            return code.column(column, "row")
        register = self.generator.row_register(like.variable, True, 0)
        place = code.temp(self.generator.registers.value(register, "0").code)
        there = code.column(column, code.temp(f"(row if {place} < 0 else {place})"))
        return code.either(f"({place} < 0)", code.for_nulls(expression), there, expression)


def _variable_of(argument: ir.Expr) -> str | None:
    for node in ir.walk(argument):
        if isinstance(node, (ir.Attribute, ir.Events)):
            return node.variable
    return None
