"""A SASE+ query to the source of its kernels.

The generated module has constants, formulas as `run_formulas.py` describes them, the loops of `runs.py`, and two
functions of its own: `classify`, which decides for every event at once what depends on the event alone, and `accept`,
which judges finished matches by HAVING and by those negations that no single event decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.automaton.model import (
    TRUE,
    AllOf,
    AnyOf,
    Automaton,
    Edge,
    Formula,
    FormulaOf,
    InWindow,
    Move,
    NotFormula,
    TypeIs,
    all_of,
    parts_of,
    predicates_of,
)
from kleene.engine.compiled.arrays.runs import RUN_REGISTERS
from kleene.engine.compiled.code import Code
from kleene.engine.compiled.columns import Layout, times_signature
from kleene.engine.compiled.loading import constants_code, template
from kleene.engine.compiled.programs import GeneratedCode, made_of
from kleene.engine.compiled.registers import Register, Registers, write_update
from kleene.engine.compiled.sase_code import INDEX, Gap, SaseCode
from kleene.engine.compiled.sase_readers import AT_FIRST, LATER, OfRun, OneEvent, Rows, of_match_in_rows
from kleene.plan.choice import walked_by, what_it_walks


@dataclass(frozen=True, slots=True)
class Generated(GeneratedCode):
    registers: Registers
    judges: tuple[int, ...] = ()  # the negations that `accept` judges
    has_accept: bool = False


def generate(
    query: AnalyzedQuery,
    automaton: Automaton,
    nullable: frozenset[str],
    algorithm: str,
    negation_access: str = "index",
    ending: frozenset[str] | None = None,
    plain: bool = False,
) -> Generated:
    """`ending` are the negations that may end runs; None: all that can be decided by one event."""
    return _Generator(query, Layout(nullable, plain=plain), automaton, algorithm, negation_access, ending).module()


MATCHES = f"offsets, lengths, p, group_of, {INDEX}, times, columns, ki, kf"
ACCEPT = f"""\
def accept(ok, {MATCHES}):
    for m in range(len(ok)):
        verdict = judged(m, {MATCHES})
        if verdict < 0:
            return verdict
        ok[m] = verdict
    return 0"""
_ARGUMENTS = "component, run, row, ri, rf, node, edge, version, columns, ki, kf"
_FORMULAS = {Move.BEGIN: "begin_ok", Move.TAKE: "take_ok", Move.PROCEED: "complete_ok"}


@dataclass(slots=True)
class _Generator(SaseCode):
    automaton: Automaton
    algorithm: str = "merge"
    access: str = "index"
    ending: frozenset[str] | None = None
    registers: Registers = field(default_factory=lambda: Registers(RUN_REGISTERS, "RUN_NULLS"))
    reads: dict[tuple[Move, int], set[Register]] = field(default_factory=dict)  # registers, by move and component
    left: dict[tuple[Move, int], tuple[Conjunct, ...]] = field(default_factory=dict)  # what bits leave to formulas
    left_to_judge: list[tuple[Conjunct, ...]] = field(default_factory=list)  # and to negations, by their number

    def module(self) -> Generated:
        query = self.query
        self.check_bits(2)
        classify = self._classify()
        formulas = [self._formula(move) for move in _FORMULAS]
        update = self._update()
        judges = tuple(n for n, negation in enumerate(query.negations) if self._needs_judge(negation))
        has_accept = bool(judges) or query.having is not None
        accept = self._accept(judges) if has_accept else ""
        self.registers.check("formulas that read {} values of a run")
        walks, backtracks = what_it_walks(query) is not None, self.algorithm == "backtrack"
        parts = [self._constants(), template("walk") if walks else "", classify, self.window_function()]
        parts += [*formulas, update, *self._merging(), template("negation") if judges else "", accept]
        parts.append(template("backtrack" if backtracks else "runs"))
        results = {"classify": "void", "backtrack" if backtracks else "advance": "int64"}
        if has_accept:
            results["accept"] = "int64"
        made = made_of(parts, self.layout, results, times=times_signature(self.query.time_type))
        return Generated(*made, self.registers, judges, has_accept)

    # --- what depends on one event alone -------------------------------------------------------------------------

    def _classify(self) -> str:
        """Bits for every event: 2c and 2c + 1 for component c begun and taken, then one for each negation."""
        code = Code(self.layout)
        with code.block("for row in range(first, last):"):
            code.line("found = 0")
            for number, edge in self._edges():
                if edge.move is Move.PROCEED:
                    self.left[edge.move, number] = tuple(item.conjunct for item in predicates_of(edge.formula))
                elif edge.move is not Move.IGNORE:
                    is_first = edge.move is Move.BEGIN
                    types = next(part.types for part in parts_of(edge.formula) if isinstance(part, TypeIs))
                    reader = OneEvent(self.query.components[number].name, AT_FIRST if is_first else LATER)
                    bit, predicates = 2 * number + (0 if is_first else 1), predicates_of(edge.formula)
                    self.left[edge.move, number] = self.write_bit(code, bit, types, predicates, reader)
            for number, negation in enumerate(self.automaton.negations):
                item, predicates = negation.component, predicates_of(AllOf(negation.predicates))
                bit, reader = self._negation_bit + number, OneEvent(item.name, AT_FIRST)
                self.left_to_judge.append(self.write_bit(code, bit, item.types, predicates, reader))
            code.line("bits[row] = found")
        return code.function("classify(bits, first, last, columns, ki, kf)")

    def _edges(self) -> Iterator[tuple[int, Edge]]:
        """The edges of all states, each with the number of its state's component."""
        for state, edges in zip(self.automaton.states, self.automaton.edges, strict=True):
            for edge in edges:
                assert state.component is not None
                yield state.component, edge

    @property
    def _negation_bit(self) -> int:
        return 2 * len(self.query.components)

    # --- constants -----------------------------------------------------------------------------------------------

    def _constants(self) -> str:
        query = self.query
        kleene = sum(1 << number for number, component in enumerate(query.components) if component.is_kleene)
        ends_runs = any(self._kills(negation) for negation in query.negations)
        constants = {
            "ALLOCATES": what_it_walks(query) is not None,
            "COMPONENTS": len(query.components),
            "KLEENE": kleene,
            "KEEPS_ALWAYS": self._ignores("any"),
            "KEEPS_UNSELECTED": self._ignores("unselected"),
            "MERGE": self.algorithm == "merge",
            "NEGATIONS": len(query.negations) if ends_runs else 0,
            "NEGATION_BIT": self._negation_bit,
            "NEGATION_GAPS": tuple(item.gap if self._kills(item) else -1 for item in query.negations) or (-1,),
            "INTEGER_COLUMNS": self.registers.columns,
            "FLOAT_COLUMNS": self.registers.floats,
        }
        return constants_code(constants)

    def _ignores(self, what: str) -> bool:
        """Whether a run may pass over any event in its window, or at least over one that it cannot select."""
        edges = [edge for _, edge in self._edges() if edge.move is Move.IGNORE]
        return bool(edges) and all(_ignored_by(edge.formula) in (what, "any") for edge in edges)

    def _kills(self, negation: NegativeComponent) -> bool:
        """Whether one event alone decides the negation, so that it can end runs when it comes."""
        if not 0 < negation.gap < len(self.query.components) or not self._ignores("unselected"):
            return False
        if self.ending is not None and negation.name not in self.ending:
            return False
        return not self.left_to_judge[self.query.negations.index(negation)]

    def _needs_judge(self, negation: NegativeComponent) -> bool:
        """Between neighbours there is nothing to forbid."""
        in_the_middle = 0 < negation.gap < len(self.query.components)
        return not self._kills(negation) and not (in_the_middle and not self._ignores("unselected"))

    # --- formulas ------------------------------------------------------------------------------------------------

    def _formula(self, move: Move) -> str:
        code = Code(self.layout)
        for number, component in enumerate(self.query.components):
            self.registers.read = set()
            left = self.left.get((move, number), ())
            if left:
                with code.block(f"if component == {number}:"):
                    for conjunct in left:
                        self._test(code, conjunct, component, move)
            self.reads[move, number] = set(self.registers.read)
        code.line("return 1")
        return code.function(f"{_FORMULAS[move]}({_ARGUMENTS})")

    def _test(self, code: Code, conjunct: Conjunct, component: Component, move: Move) -> None:
        """Returns 0 unless the conjunct holds, for each choice of the events it speaks of one at a time."""
        is_complete = move is Move.PROCEED
        walked = walked_by(conjunct, component, is_complete)
        reader = OfRun(self.query, self.registers, None if is_complete else component.name, move is Move.BEGIN)
        for variable, _ in walked:
            self._collect(code, variable, reader)
        with self.each_choice(code, walked, reader):
            code.return_unless(conjunct.expression, reader)

    def _collect(self, code: Code, variable: str, reader: OfRun) -> None:
        """The rows of an earlier Kleene variable, from the match buffer."""
        number = reader.number(variable)
        count = self.registers.value(self.registers.get(number, "count", None)).code
        rows, length = code.name(), code.name()
        code.line(f"{length} = {count}")
        last = "ri[run, RUN_HEAD], ri[run, RUN_VERSION]"
        code.line(f"{rows} = events_of({number}, {length}, {last}, node, edge, version)")
        reader.walked[variable] = Rows(rows, "0", length)

    def _update(self) -> str:
        code = Code(self.layout)
        arrays = ("ti", "tf")
        code.line("ti[target, RUN_NULLS] = ri[run, RUN_NULLS]")
        for register in self.registers.all:
            value = self.registers.value(register).code
            code.line(f"{self.registers.value(register, 'target', arrays).code} = {value}")
        for number, component in enumerate(self.query.components):
            own = [register for register in self.registers.all if register.owner == number]
            if not own:
                continue
            with code.block(f"if component == {number}:"):
                reader = OneEvent(component.name, ())
                with code.block("if is_first == 1:"):
                    for register in own:
                        write_update(register, self.registers, code, reader, True, arrays)
                if component.is_kleene:
                    with code.block("else:"):
                        for register in own:
                            if register.function != "first":
                                write_update(register, self.registers, code, reader, False, arrays)
        code.line("return 0")
        return code.function("update(component, is_first, run, row, ri, rf, target, ti, tf, columns, ki, kf)")

    # --- merging -------------------------------------------------------------------------------------------------

    def live(self, state: int) -> list[Register]:
        """The registers that a formula at the state, or at a later one, reads: the paper's masks."""
        wanted = self.reads[Move.TAKE, state] | self.reads[Move.PROCEED, state]
        for later in range(state + 1, len(self.query.components)):
            for move in _FORMULAS:
                wanted |= self.reads[move, later]
        return [register for register in self.registers.all if register in wanted and register.owner <= state]

    def _merging(self) -> list[str]:
        if self.algorithm != "merge":
            return []
        equal, hashed = Code(self.layout), Code(self.layout)
        for name in ("RUN_STATE", "RUN_NEGATIONS"):
            equal.return_if(f"left_i[left, {name}] != right_i[right, {name}]", False)
        hashed.line("found = ri[run, RUN_STATE] * 7919 + ri[run, RUN_NEGATIONS]")
        for state in range(len(self.query.components)):
            live = self.live(state)
            if not live:
                continue
            mask = sum(1 << self.registers.null_bit(register) for register in live)
            with equal.block(f"if left_i[left, RUN_STATE] == {state}:"):
                equal.return_if(f"(left_i[left, RUN_NULLS] ^ right_i[right, RUN_NULLS]) & {mask} != 0", False)
                for register in live:
                    which, column = self.registers.place(register)
                    equal.return_if(f"left_{which}[left, {column}] != right_{which}[right, {column}]", False)
            with hashed.block(f"if ri[run, RUN_STATE] == {state}:"):
                for register in live:
                    which, column = self.registers.place(register)
                    value = f"hash_float(rf[run, {column}])" if which == "f" else f"ri[run, {column}]"
                    hashed.line(f"found = (found ^ (({value}) & 0xFFFFFFFFFFFF)) * 31 & 0xFFFFFFFFFFFF")
        equal.line("return True")
        hashed.line("return (found ^ (found >> 17)) & 0x7FFFFFFF")
        equals = equal.function("live_equal(left, left_i, left_f, right, right_i, right_f)")
        return [equals, hashed.function("live_hash(run, ri, rf)")]

    # --- finished matches ----------------------------------------------------------------------------------------

    def _accept(self, judges: tuple[int, ...]) -> str:
        """Judges matches, given by their rows."""
        code = Code(self.layout)
        reader = of_match_in_rows(self.query, code)
        last = len(self.query.components) - 1
        code.line(f"first_row, last_row = p[b0], p[b{last} + lengths[m, {last}] - 1]")
        for place, number in enumerate(judges):
            negation = self.query.negations[number]
            gap = Gap(place, "group_of[m]", "first_row", "last_row", access=self.access)
            self.write_absence(code, negation, reader, gap, self.left_to_judge[number])
        if self.query.having is not None:
            code.return_unless(self.query.having, reader)
        code.line("return 1")
        return code.function(f"judged(m, {MATCHES})") + "\n\n" + ACCEPT


def _ignored_by(formula: Formula) -> str:
    """Which events of the run's partition and window an ignore edge lets by: "any", "unselected", or "none"."""
    match all_of(part for part in parts_of(formula) if not isinstance(part, InWindow)):
        case AllOf() as rest if rest == TRUE:
            return "any"
        case NotFormula(part=FormulaOf()):
            return "unselected"
        case NotFormula() | AnyOf():
            return "none"
    raise AssertionError(f"no code for an event ignored by {formula}")
