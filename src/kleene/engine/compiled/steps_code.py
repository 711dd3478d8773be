"""A pattern in steps to the source of its kernels.

The generated module has constants, formulas as `step_formulas.py` describes them, the loops of `steps.py`, and
`classify`, which decides for every event at once what depends on the event alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from kleene.analysis.analyzed import Conjunct
from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import FormulaClass, Predicate, TypeIs, parts_of, predicates_of
from kleene.automaton.steps import StepsAutomaton
from kleene.engine.compiled.arrays.step_runs import STEP_RUN_NULLS, STEP_RUN_REGISTERS
from kleene.engine.compiled.code import Code, Reader, Scalar, Truth, typed
from kleene.engine.compiled.columns import Layout, times_signature
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.loading import TABLE, constants_code, template
from kleene.engine.compiled.programs import GeneratedCode, made_of
from kleene.engine.compiled.registers import Registers, write_update
from kleene.engine.compiled.sase_code import SaseCode
from kleene.engine.compiled.sase_readers import OneEvent
from kleene.engine.compiled.steps_tables import ALWAYS, StepTables, step_tables
from kleene.engine.events import window_size
from kleene.ir import expr as ir
from kleene.ir.options import Window, WindowUnit
from kleene.ir.steps import SkipMode
from kleene.schema import FLOAT

_UPDATE = "update(step, run, row, ri, rf, target, ti, tf, columns, ki, kf)"


@dataclass(frozen=True, slots=True)
class GeneratedSteps(GeneratedCode):
    registers: Registers
    tables: StepTables


def generate_steps(
    query: AnalyzedSteps, steps: StepsAutomaton, nullable: frozenset[str], plain: bool
) -> GeneratedSteps:
    if query.calls_python:
        raise NotExpressibleError("conditions that are Python functions")
    if query.after.fails:
        raise NotExpressibleError("after_match with missing='error'")
    return _Generator(query, Layout(nullable, plain=plain), steps, step_tables(query, steps)).module()


@dataclass(slots=True)
class OfSteps(Reader):
    """Reads the event being tried, and the registers of the run."""

    registers: Registers
    numbers: dict[str, int]

    def read(self, expression: ir.Expr, code: Code) -> Scalar | Truth:
        match expression:
            case ir.Aggregate(function="first" | "last" as function, argument=argument):
                return typed(self._value(self._owner(argument), function, argument), expression)
            case ir.Aggregate(argument=argument):
                return self.registers.aggregate(self._owner(argument), expression, code)
            case ir.Attribute(variable=str() as variable):
                return typed(self._value(self.numbers[variable], "last", expression), expression)
        return Reader.read(self, expression, code)

    def _value(self, owner: int, function: str, argument: ir.Expr) -> Scalar:
        return self.registers.value(self.registers.get(owner, function, argument))

    def _owner(self, argument: ir.Expr) -> int:
        nodes = (node for node in ir.walk(argument) if isinstance(node, (ir.Attribute, ir.Events)))
        return self.numbers[next(node.variable or "" for node in nodes)]

    def one_event(self, expression: ir.Expr) -> ir.Expr | None:
        """A node by which the event is known: a bare attribute, or one of the step that all are of."""
        found: ir.Expr = expression
        owners: set[str | None] = set()
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                owners.add(node.variable)
                found = node
            elif isinstance(node, (ir.Events, ir.Aggregate)):
                return None
        return found if len(owners) <= 1 else None

    def of_event(self, column: int, like: ir.Expr, code: Code) -> Scalar | Truth:
        if isinstance(like, ir.Attribute) and like.variable is not None:
            wanted = code.layout.columns[column].expression
            return typed(self._value(self.numbers[like.variable], "last", wanted), wanted)
        return code.column(column, "row")


@dataclass(slots=True)
class _Generator(SaseCode):
    query: AnalyzedSteps
    steps: StepsAutomaton
    tables: StepTables
    registers: Registers = field(default_factory=lambda: Registers(STEP_RUN_REGISTERS, "STEP_RUN_NULLS"))
    left: dict[int, tuple[Conjunct, ...]] = field(default_factory=dict)  # what bits leave to formulas, by atom

    def module(self) -> GeneratedSteps:
        classify = self._classify()
        atoms = self._atoms()
        update = self._update()
        self.registers.check("conditions that read {} values of a run")
        parts = [self._constants(), classify, self._is_over(), self._is_soon(), atoms, update, template("steps")]
        results = dict.fromkeys(("advance_steps", "read_out", "drop_unreachable", "replay"), "int64")
        types = {"times": times_signature(self.query.time_type), "nodes": "int64", "waiting": TABLE}
        types |= dict.fromkeys(("state_table", "plan_table", "move_table"), TABLE)
        made = made_of(parts, self.layout, {"classify": "void", **results}, **types)
        return GeneratedSteps(*made, self.registers, self.tables)

    def type_test(self, types: tuple[str, ...]) -> ir.Expr | None:
        return SaseCode.type_test(self, types) if types else None

    # --- formulas ----------------------------------------------------------------------------------------------------

    def _classify(self) -> str:
        """Bits for every event: one for each atom that it satisfies, or may satisfy."""
        code, definitions = Code(self.layout), dict(self.steps.automaton.definitions)
        with code.block("for row in range(first, last):"):
            code.line(f"found = {ALWAYS}")
            for bit, name in enumerate(self.tables.atoms):
                formula = definitions[name]
                types = next((part.types for part in parts_of(formula) if isinstance(part, TypeIs)), ())
                self.left[bit] = self.write_bit(code, bit, types, _in_order(predicates_of(formula)), OneEvent("", ()))
            code.line("bits[row] = found")
        return code.function("classify(bits, first, last, columns, ki, kf)")

    def _atoms(self) -> str:
        code = Code(self.layout)
        numbers = {component.name: number for number, component in enumerate(self.query.components)}
        for bit, left in self.left.items():
            if left:
                with code.block(f"if atom == {bit}:"):
                    for conjunct in left:
                        code.return_unless(conjunct.expression, OfSteps(self.registers, numbers))
        code.line("return 1")
        return code.function("atom_ok(atom, run, row, ri, rf, columns, ki, kf)")

    def _update(self) -> str:
        code, arrays = Code(self.layout), ("ti", "tf")
        if not self.registers.all:
            code.line("return 0")
            return code.function(_UPDATE)
        code.line("ti[target, STEP_RUN_NULLS] = ri[run, STEP_RUN_NULLS]")
        code.line("ti[target, STEP_RUN_HAS] = ri[run, STEP_RUN_HAS] | (1 << step)")
        for register in self.registers.all:
            value = self.registers.value(register).code
            code.line(f"{self.registers.value(register, 'target', arrays).code} = {value}")
        for number in range(len(self.query.components)):
            own = [register for register in self.registers.all if register.owner == number]
            if not own:
                continue
            with code.block(f"if step == {number}:"):
                for register in own:
                    is_first = register.function == "first"
                    test = f"if (ri[run, STEP_RUN_HAS] >> {number}) & 1 == 0:" if is_first else "if True:"
                    with code.block(test):
                        write_update(register, self.registers, code, OneEvent("", ()), False, arrays)
        code.line("return 0")
        return code.function(_UPDATE)

    # --- windows -----------------------------------------------------------------------------------------------------

    def _size(self, window: Window) -> str:
        size = window_size(window, self.query.time_type)
        if self.query.time_type == FLOAT:
            return self.layout.given_float(float(size))
        if isinstance(size, Decimal) and size != int(size):
            size = int(size) + 1  # times are whole, and less than 2.5 is less than 3
        return self.layout.given_integer(min(int(size), 2**63 - 1))

    def _is_over(self) -> str:
        code = Code(self.layout)
        for window in self.query.pattern.windows:
            if window.unit is WindowUnit.EVENTS:
                size = self.layout.given_integer(min(int(window.size), 2**62))
                code.return_if(f"place_now - place >= {size}", True)
            else:
                code.return_if(f"times[row] - times[start] >= {self._size(window)}", True)
        code.line("return False")
        return code.function("is_over(start, place, row, place_now, times, ki, kf)")

    def _is_soon(self) -> str:
        code = Code(self.layout)
        for number, window in enumerate(self.tables.windows):
            with code.block(f"if wait == {number}:"):
                code.line(f"return times[row] - times[last] < {self._size(window)}")
        code.line("return True")
        return code.function("is_soon(wait, last, row, times, ki, kf)")

    # --- constants ---------------------------------------------------------------------------------------------------

    def _constants(self) -> str:
        query, tables = self.query, self.tables
        names = [component.name for component in query.components]
        if len(names) > 60:
            raise NotExpressibleError(f"a pattern of {len(names)} steps")
        after = query.after
        to = {SkipMode.SKIP_TO_NEXT: -1, SkipMode.SKIP_PAST_LAST_EVENT: -2}.get(after.mode)
        return constants_code(
            {
                "FINAL": self.steps.automaton.final,
                "STOP": self.steps.stop,
                "ALWAYS": ALWAYS,
                "ALONE": sum(1 << bit for bit, left in self.left.items() if not left),
                "DERIVED": len(tables.derived) // 2 if tables.derived.any() else 0,
                "FIRST_DERIVED": len(tables.atoms),
                "BEGINS": tables.begins,
                "MOST_MOVES": tables.most_moves,
                "KEEPS_ORDER": after.mode is not SkipMode.NO_SKIP,
                "ENDS_IN_TIME": bool(self.steps.pending),
                "HAS_WAITS": bool(tables.windows),
                "HAS_ABSENCES": bool(tables.open_after.any()),
                "HAS_PLANS": tables.plan_width > 0,
                "PLAN_WIDTH": max(tables.plan_width, 1),
                "HAS_GROUPS": any(step.group for step in query.pattern.steps),
                "SKIPS_TO": to if to is not None else names.index(after.step) if after.step is not None else -1,
                "SKIPS_TO_LAST": after.mode is SkipMode.SKIP_TO_LAST,
                "ALL_NULL": (1 << len(self.registers.all)) - 1,
                # Without registers nobody asks which of them are NULL.
                "INTEGER_COLUMNS": self.registers.columns if self.registers.all else STEP_RUN_NULLS,
                "FLOAT_COLUMNS": self.registers.floats,
            }
        )


def _in_order(predicates: tuple[Predicate, ...]) -> list[Predicate]:
    """What one event decides first: a condition has no error that another would hide."""
    alone = [item for item in predicates if item.formula_class is FormulaClass.SINGLE_EVENT]
    return alone + [item for item in predicates if item.formula_class is not FormulaClass.SINGLE_EVENT]
