"""A row pattern to the source of its kernels: what each row alone decides, and what looks at the match so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

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
from kleene.engine.compiled.code import AtRow, Code, Reader, Scalar, Slots, Truth, as_scalar, typed
from kleene.engine.compiled.columns import Array, Layout, times_signature
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.kernel_window import KernelWindow
from kleene.engine.compiled.loading import constants_code, template
from kleene.engine.compiled.programs import GeneratedCode, made_of
from kleene.engine.compiled.registers import Register, Registers, write_update
from kleene.ir import expr as ir
from kleene.ir.aggregates import aggregated_variable
from kleene.ir.options import AfterMatch, Skip
from kleene.schema import BOOLEAN, FLOAT, STRING

MOST_VARIABLES = 62
ANY_ROW = 62
MOST_ROWS = 2**31
Conditions = dict[str, list[ir.Expr]]
"""By variable."""


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
    is_ambiguous: bool  # two ways may be one classification: from a state a variable, or the end, is reached twice


@dataclass(frozen=True, slots=True)
class GeneratedRows(GeneratedCode):
    tables: Tables
    remembers: bool
    registers: Registers


def make_tables(automaton: Automaton) -> Tables:
    """The automaton as arrays; in them states are counted without the start, which comes last, and F."""
    states = automaton.states[1:-1]
    variables = tuple(dict.fromkeys(variable_of(state) for state in states))
    if len(variables) > MOST_VARIABLES:
        raise NotExpressibleError(f"a pattern of {len(variables)} variables")
    start, *following = automaton.edges[:-1]
    all_edges = [*((edges, False) for edges in following), (start, True), (start, False)]
    targets = [_targets(edges, at_first_row, automaton.final) for edges, at_first_row in all_edges]  # by state
    of_states = [variables.index(variable_of(state)) for state in states]
    following_variables = [[of_states[target] if target >= 0 else -1 for target in own] for own in targets]
    return Tables(
        np.cumsum([0, *map(len, targets)]),
        np.array([*chain(*targets)] or [0], np.int64),
        np.array([*chain(*following_variables)] or [-1], np.int64),
        np.array([_next_bits(own) for own in following_variables], np.int64),
        np.array(of_states, np.int64),
        variables,
        tuple(state.is_excluded for state in states),
        any(sum(target >= 0 for target in own) > 1 for own in targets),
        any(len(set(own)) < len(own) for own in following_variables),
    )


def _targets(edges: Sequence[Edge], at_first_row: bool, final: int) -> list[int]:
    """Where a state's edges lead to."""
    targets = []
    for edge in edges:
        parts = () if isinstance(edge.formula, Defined) else parts_of(edge.formula)
        is_last, at_end = edge.target == final, AtEnd() in parts
        # Behind a row there is no first row any more; behind the last row nothing can be matched.
        if (AtStart() not in parts or at_first_row) and (is_last or not at_end):
            targets.append((ACCEPT_AT_END if at_end else ACCEPT) if is_last else edge.target - 1)
    return targets


def variable_of(state: State) -> str:
    assert state.variable is not None
    return state.variable


def _next_bits(variables: Sequence[int]) -> int:
    """The variables that can come next, a bit each; and the bit that every row has, where a match can end."""
    return sum(1 << (variable if variable >= 0 else ANY_ROW) for variable in set(variables))


def _late_first(register: Register) -> tuple[int, int]:
    """row_first looks at the count, row_last_2 at row_last_1, squares at the mean, each as it was before the row."""
    if register.function.startswith(("row_first", "at_", "squares")):
        return 0, 0
    if register.function == "mean":
        return 1, 0
    if register.function.startswith("row_last"):
        return 1, -int(register.function.removeprefix("row_last_"))
    return 2, 0


def generate_rows(
    query: AnalyzedRowPattern, automaton: Automaton, nullable: frozenset[str], plain: bool = False
) -> GeneratedRows:
    registers = Registers(FRAME_REGISTERS, "FRAME_NULLS")
    return _Generator(query, Layout(nullable, plain=plain), automaton, registers, make_tables(automaton)).module()


@dataclass(slots=True)
class PatternCode:
    """What the code of row patterns and that of the regular-expression operator have in common."""

    query: AnalyzedRowPattern
    layout: Layout
    automaton: Automaton
    registers: Registers

    def write_bits(self, code: Code, variables: Sequence[str], reader: Callable[[str], Reader]) -> Conditions:
        """Sets a bit for each variable that a row can be; returns the conditions that this leaves open."""
        left: Conditions = {}
        definitions = dict(self.automaton.definitions)
        for number, name in enumerate(variables):
            parts: list[str] = []
            left[name] = []
            for predicate in predicates_of(definitions.get(name, TRUE)):
                truth = None
                if predicate.formula_class is not FormulaClass.RUN:
                    truth = self._of_row(code, predicate.conjunct.expression, reader(name))
                if truth is None:
                    left[name].append(predicate.conjunct.expression)
                else:
                    parts.append(truth.true)
            with code.block(f"if {' and '.join(parts) or 'True'}:"):
                code.line(f"found |= {1 << number}")
        return left

    def _of_row(self, code: Code, condition: ir.Expr, reader: Reader) -> Truth | None:
        """The code for a condition that the row and its neighbours decide; None if it may give up."""
        mark = len(code.lines)
        known = len(self.layout.errors)
        try:
            truth = code.truth(condition, reader)
        except NotExpressibleError:  # what looks at the match so far may have another way to say it
            truth = None
        if truth is None or truth.bad is not None:
            del code.lines[mark:]
            del self.layout.errors[known:]
            return None
        return truth

    def tests(self, head: str, left: Conditions, reader: Callable[[str], Reader]) -> str:
        """A function that says whether the conditions left of a variable hold."""
        code = Code(self.layout)
        for number, name in enumerate(left):
            if left[name]:
                with code.block(f"if variable == {number}:"):
                    for condition in left[name]:
                        code.return_unless(condition, reader(name))
        code.line("return 1")
        return code.function(head)


@dataclass(slots=True)
class _Generator(PatternCode):
    tables: Tables
    owners: list[frozenset[str] | None] = field(default_factory=list)

    def module(self) -> GeneratedRows:
        self._check_match_numbers()
        classify, left = self._classify()
        match = "number, stack_state, variable_of"
        head = f"fits_run(variable, row, start, {match}, begin, end, ri, rf, columns, ki, kf)"
        fits_run = self.tests(head, left, lambda name: _OfMatchSoFar(self.query, name, generator=self))
        looks = any(left.values())
        run_variables = sum(1 << n for n, name in enumerate(self.tables.variables) if left[name])
        self.registers.check("conditions that read {} values of a match")
        bind = self._bind() if self.registers.all else ""
        window = KernelWindow.of(self.query)
        constants = self._constants(looks, run_variables, window.in_time is not None)
        in_window = window.function(self.layout, "times", "row - start", "abs(times[row] - times[start])")
        row_bits = "" if self.query.frame is None else self._row_bits()
        parts = [constants, in_window, row_bits, classify, bind, fits_run if looks else "", template("rows")]
        times = times_signature(self.query.time_type)
        made = made_of(parts, self.layout, {"classify": "void", "search": "int64"}, times=times)
        return GeneratedRows(*made, self.tables, self._remembers(looks), self.registers)

    def _check_match_numbers(self) -> None:
        nodes = (node for _, condition in self.query.conditions for node in ir.walk(condition))
        if self._gives_all and self.tables.is_ambiguous and any(isinstance(node, ir.MatchNumber) for node in nodes):
            raise NotExpressibleError("MATCH_NUMBER() in a condition that decides which match is found")

    @property
    def _gives_all(self) -> bool:
        return self.automaton.policy.accepting is Accepting.EVERY_RUN

    def _constants(self, looks: bool, run_variables: int, in_time: bool) -> str:
        definition, frame = self.query.definition, self.query.frame
        back, ahead = look_around([condition for _, condition in self.query.conditions])
        after = self.automaton.policy.after or AfterMatch()
        wanted = self.query.members.get(after.variable or "", ())
        mask = sum(1 << n for n, name in enumerate(self.tables.variables) if name in wanted)
        constants = {
            "ALLOCATES": False,
            "ALL_MATCHES": self._gives_all,
            "LOOKS_AT_MATCH": looks,
            "REMEMBERS": self._remembers(looks),
            "RUN_VARIABLES": run_variables,
            "REGISTERS": len(self.registers.all),
            "MOST_ROWS_AT": -1 if definition.max_length is None else self._place(min(definition.max_length, 2**62)),
            "WINDOW_IN_TIME": in_time,
            "SKIP": _SKIPS[after.skip],
            "SKIP_TARGET": mask,
            "FRAMES": frame is not None,
            "BOUNDED_FRAMES": frame is not None and frame.is_bounded,
            "SEEKS": frame is not None and frame.seeks,
            "LOOK_BACK": back,
            "LOOK_AHEAD": ahead,
        }
        return constants_code(constants)

    def _place(self, number: int) -> int:
        """Where the number stands among those that kernels are given."""
        self.layout.given_integer(number)
        return len(self.layout.integers) - 1

    def _remembers(self, looks: bool) -> bool:
        """A pattern that is one sequence costs little from each start as it is.

        What fails at the end of a frame may hold where a longer frame ends, if a condition looks ahead.
        """
        frame, (_, ahead) = self.query.frame, look_around([condition for _, condition in self.query.conditions])
        is_same_everywhere = frame is None or not frame.is_bounded or not ahead
        return not looks and self.tables.has_choices and is_same_everywhere

    # --- one row and its neighbours ------------------------------------------------------------------------------

    def _classify(self) -> tuple[str, Conditions]:
        code = Code(self.layout)
        with code.block("for group in range(len(groups)):"):
            code.line("begin, end = groups[group, ROW_GROUP_FIRST], groups[group, ROW_GROUP_SEEN_END]")
            with code.block("for row in range(begin, end):"):
                code.line(f"found = {1 << ANY_ROW}")
                left = self.write_bits(code, self.tables.variables, lambda name: _Neighbours(self.query, name))
                code.line("bits[row] = found")
        return code.function("classify(bits, groups, columns, ki, kf)"), left

    def _row_bits(self) -> str:
        code = Code(self.layout)
        code.line(f"found = {1 << ANY_ROW}")
        self.write_bits(code, self.tables.variables, lambda name: _Neighbours(self.query, name))
        code.line("return found")
        return code.function("row_bits(row, begin, end, columns, ki, kf)")

    # --- the match so far ----------------------------------------------------------------------------------------

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
            clear.line(f"{self.current(register)} = {empty}")
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
                    bind.line(f"{kept} = {self.current(register)}")
                    unbind.line(f"{self.current(register)} = {kept}")
                seen: dict[tuple[int, str], str] = {}
                for register in own:
                    self._write(bind, register, name, seen)
        bind.line("return 0")
        unbind.line("return 0")
        head = (
            "bind(variable, row, start, number, depth, stack_state, variable_of, begin, end, ri, rf, columns, ki, kf)"
        )
        binds = bind.function(head)
        return "\n\n".join([clear.function("clear(ri, rf)"), binds, unbind.function("unbind(variable, depth, ri, rf)")])

    def current(self, register: Register) -> str:
        return self.registers.value(register, "0").code

    def _is_about(self, register: Register, name: str) -> bool:
        members = self.owners[register.owner]
        return members is None or name in members

    def _write(self, code: Code, register: Register, name: str, seen: dict[tuple[int, str], str]) -> None:
        target = self.current(register)
        function = register.function
        if function == "row_name":
            code.line(f"{target} = {self.layout.string(name)}")
        elif function.startswith("row_last"):
            offset = int(function.removeprefix("row_last_"))
            before = Register(register.owner, f"row_last_{offset - 1}", None, "i")
            code.line(f"{target} = {self.current(before) if offset else 'row'}")
        elif function.startswith("row_first"):
            offset = int(function.removeprefix("row_first_"))
            with code.block(f"if {self.current(Register(register.owner, 'count', None, 'i'))} == {offset}:"):
                code.line(f"{target} = row")
        else:
            reader, of = _Neighbours(self.query, name, for_aggregate=True), partial(_classified, name)
            came_before = None
            if register.distinct:  # the same for all registers of one aggregate
                same = (register.owner, register.text)
                came_before = seen.get(same) or self._write_seen(code, register, name)
                seen[same] = came_before
            write_update(register, self.registers, code, reader, False, ("ri", "rf"), came_before, of)

    def _write_seen(self, code: Code, register: Register, name: str) -> str:
        """Code that looks back over the rows of the match for one that counts already, with the value of this row."""
        assert register.argument is not None
        own = code.scalar(_classified(name, register.argument), _Neighbours(self.query, name, for_aggregate=True))
        value = code.temp(own.code)
        found, before, variable = code.name(), code.name(), code.name()
        code.line(f"{found} = False")
        code.line(f"{before} = row - 1 if not {own.null} else start - 1" if own.null else f"{before} = row - 1")
        with code.block(f"while {before} >= start and not {found}:"):
            code.line(f"{variable} = variable_of[stack_state[{before} - start + 1]]")
            members = [n for n, other in enumerate(self.tables.variables) if self._is_about(register, other)]
            for group in [members] if not _names_variables(register) else [[member] for member in members]:
                bits = sum(1 << member for member in group)
                with code.block(f"if ({self.layout.integer(bits)} >> {variable}) & 1 == 1:"):
                    self._write_same(code, register, self.tables.variables[group[0]], before, value, found)
            code.line(f"{before} -= 1")
        return found

    def _write_same(self, code: Code, register: Register, name: str, row: str, value: str, found: str) -> None:
        """Code that compares the value of an earlier row, which was the variable's."""
        assert register.argument is not None
        reader = _EarlierRow(row)
        tests = []
        if register.condition is not None:
            tests.append(code.truth(_classified(name, register.condition), reader).true)
        other = code.scalar(_classified(name, register.argument), reader)
        tests += [f"not {other.null}"] if other.null is not None else []
        same = f"{other.code} == {value}"
        if register.argument.type == FLOAT:  # where values are grouped, NaN is the same as NaN
            earlier = code.temp(other.code)
            same = f"({earlier} == {value} or ({earlier} != {earlier} and {value} != {value}))"
        code.line(f"{found} = {' and '.join([*tests, same])}")

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


def look_around(expressions: Sequence[ir.Expr]) -> tuple[int, int]:
    """How many rows before a match, and after the last row tried, the expressions look at."""
    navigations = (node for item in expressions for node in ir.walk(item) if isinstance(node, ir.Navigation))
    shifts = [0, *(node.shift for node in navigations if node.shift is not None)]
    return min(max(0, -min(shifts)), MOST_ROWS), min(max(shifts), MOST_ROWS)


def _classified(name: str, expression: ir.Expr) -> ir.Expr:
    """The expression of a row that is the variable's."""
    if isinstance(expression, ir.Classifier):
        return ir.Literal(name, STRING, type=STRING)
    return ir.with_children(expression, partial(_classified, name))


def _names_variables(register: Register) -> bool:
    parts = (part for part in (register.argument, register.condition) if part is not None)
    return any(isinstance(node, ir.Classifier) for part in parts for node in ir.walk(part))


class _LooksAtMatchError(Exception):
    """The condition needs more than the row and its neighbours."""


@dataclass(slots=True)
class _Neighbours(Reader):
    """Reads the row that is tried for the variable, and rows at a distance from it in the partition."""

    query: AnalyzedRowPattern
    own: str
    for_aggregate: bool = False

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Attribute(variable=variable) if self._is_own(variable):
                return Reader.read(self, expression, code)
            case ir.Navigation(variable=variable, from_last=True, offset=0, shift=shift) if self._is_own(variable):
                return shifted(expression, "row", shift or 0, code, at_row=self._at_row)
            case ir.Classifier(variable=variable) if self._is_own(variable):
                return Scalar(code.layout.string(self.own))
            case ir.MatchNumber() if self.for_aggregate:
                return Scalar("number")
        return self._of_match(expression, code)

    def _of_match(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        raise _LooksAtMatchError

    def _at_row(self, row: str) -> Reader:
        return AtRow(row)

    def navigated(self, expression: ir.Expr) -> ir.Navigation | None:
        """The expression as a value of one row that it navigates to, if it reads no other."""
        inner = list(_outermost_navigations(expression))
        first = inner[0] if inner else None
        if not isinstance(first, ir.Navigation):
            return None
        same = all(isinstance(one, ir.Navigation) and replace(one, argument=first.argument) == first for one in inner)
        names_variables = any(isinstance(node, ir.Classifier) for node in ir.walk(expression))
        if not same or names_variables:
            return None
        return replace(first, argument=_without_navigations(expression), type=expression.type)

    def _is_own(self, variable: str | None) -> bool:
        return self.for_aggregate or variable is None or self.own in self.query.members[variable]

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        """All columns of one row: the one that is tried, or the last of a variable."""
        variables: set[object] = set()
        example = expression
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                variables.add(None if self._is_own(node.variable) else node.variable)
                example = node
            elif isinstance(node, (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber, ir.Events)):
                return None
        return example if self._can_read(variables) else None

    def _can_read(self, variables: set[object]) -> bool:
        return variables <= {None}

    def of_navigated(self, navigation: ir.Navigation, code: Code) -> Scalar | Truth:
        nothing = code.for_nulls(navigation.argument)
        is_near = navigation.from_last and not navigation.offset and self._is_own(navigation.variable)
        if not is_near:
            return self._of_match(navigation, code)
        return shifted(navigation, "row", navigation.shift or 0, code, at_row=self._at_row, absent_value=nothing)


@dataclass(slots=True)
class _EarlierRow(AtRow):
    """Reads a row of the match so far."""

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        return Scalar("number") if isinstance(expression, ir.MatchNumber) else AtRow.read(self, expression, code)


@dataclass(slots=True)
class _RowOfMatch(AtRow):
    """Reads a row by its place; of the rows of the match so far the variables are known."""

    variables: tuple[str, ...] = field(kw_only=True)

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        if not isinstance(expression, ir.Classifier):
            return AtRow.read(self, expression, code)
        is_earlier = f"start <= {self.row} < row"
        earlier = f"variable_of[stack_state[{self.row} - start + 1 if {is_earlier} else 0]]"
        number = code.temp(f"({earlier} if {is_earlier} else variable)")
        *names, found = (code.layout.string(name) for name in self.variables)
        for at, name in reversed(list(enumerate(names))):
            found = f"({name} if {number} == {at} else {found})"
        return Scalar(code.temp(found), f"({self.row} < start or {self.row} > row)")


def _outermost_navigations(expression: ir.Expr) -> Iterator[ir.Expr]:
    """The navigations in an expression, and whatever else in it depends on rows."""
    if isinstance(expression, (ir.Navigation, ir.Attribute, ir.Aggregate, ir.Classifier, ir.MatchNumber, ir.Events)):
        yield expression
    else:
        for child in ir.children(expression):
            yield from _outermost_navigations(child)


def _without_navigations(expression: ir.Expr) -> ir.Expr:
    if isinstance(expression, ir.Navigation):
        return expression.argument
    return ir.with_children(expression, _without_navigations)


def shifted(
    navigation: ir.Navigation,
    row: str,
    shift: int,
    code: Code,
    missing: str | None = None,
    at_row: Callable[[str], Reader] = AtRow,
    absent_value: Scalar | Truth | None = None,
) -> Scalar | Truth:
    """The value of the navigation's argument `shift` rows from the row; outside of the partition NULL, or as given."""
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
    found = code.scalar(navigation.argument, at_row(inside))
    if navigation.argument.type == BOOLEAN:
        found = as_scalar(code.truth(navigation.argument, at_row(inside)))
    if absent is not None and absent_value is not None:
        return code.either(absent, absent_value, found, navigation)
    if absent is not None:
        null = absent if found.null is None else f"({absent} or {found.null})"
        bad = None if found.bad is None else f"(not {absent} and {found.bad})"
        found = Scalar(found.code, null, bad)
    return typed(found, navigation)


@dataclass(slots=True)
class _OfMatchSoFar(_Neighbours):
    """Reads the row that is tried, which counts as the last of the match, and the registers that include it."""

    generator: _Generator = field(kw_only=True)

    def _at_row(self, row: str) -> Reader:
        return _RowOfMatch(row, variables=self.generator.tables.variables)

    def _of_match(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Attribute(variable=variable):
                return self._navigate(ir.Navigation(expression, variable, type=expression.type), code)
            case ir.Navigation():
                return self._navigate(expression, code)
            case ir.Aggregate():
                return self._aggregate(expression, code)
            case ir.Classifier(variable=variable):
                register = self.generator.registers.get(self.generator.owner(variable), "row_name", None)
                value = self.generator.current(register)
                return Scalar(value, f"({value} < 0)")
            case ir.MatchNumber():
                return Scalar("number")
        raise NotExpressibleError(f"{type(expression).__name__} in a condition")

    def _navigate(
        self, navigation: ir.Navigation, code: Code, absent_value: Scalar | Truth | None = None
    ) -> Scalar | Truth:
        variable, shift = navigation.variable, navigation.shift or 0
        offset = min(navigation.offset, MOST_ROWS)
        if variable is None:
            # The rows of a match follow each other, so that their places are known.
            place = f"row - {offset}" if navigation.from_last else f"start + {offset}"
            place = code.temp(place)
            missing = f"({place} < start)" if navigation.from_last else f"({place} > row)"
            return shifted(navigation, place, shift, code, missing, self._at_row, absent_value)
        place = code.temp(self.generator.current(self.generator.row_register(variable, navigation.from_last, offset)))
        return shifted(navigation, place, shift, code, f"({place} < 0)", self._at_row, absent_value)

    def of_navigated(self, navigation: ir.Navigation, code: Code) -> Scalar | Truth:
        is_near = navigation.from_last and not navigation.offset and self._is_own(navigation.variable)
        if is_near:
            return _Neighbours.of_navigated(self, navigation, code)
        return self._navigate(navigation, code, code.for_nulls(navigation.argument))

    def _aggregate(self, aggregate: ir.Aggregate, code: Code) -> Scalar | Truth:
        if aggregate.order:
            raise NotExpressibleError(f"{aggregate.function}(… ORDER BY …) in a condition")
        owner = self.generator.owner(aggregated_variable(aggregate))
        return self.generator.registers.aggregate(owner, aggregate, code, "0")

    def states(self, aggregate: ir.Aggregate, code: Code) -> Slots:
        if aggregate.order:
            raise NotExpressibleError(f"{aggregate.function}(… ORDER BY …) in a condition")
        owner = self.generator.owner(aggregated_variable(aggregate))
        return self.generator.registers.states(owner, aggregate, code.layout.plain, "0")

    def _can_read(self, variables: set[object]) -> bool:
        return len(variables) == 1

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        assert isinstance(like, ir.Attribute)
        expression = code.layout.columns[column].expression
        if self._is_own(like.variable):
            return code.column(column, "row")
        place = code.temp(self.generator.current(self.generator.row_register(like.variable, True, 0)))
        there = code.column(column, code.temp(f"(row if {place} < 0 else {place})"))
        return code.either(f"({place} < 0)", code.for_nulls(expression), there, expression)
