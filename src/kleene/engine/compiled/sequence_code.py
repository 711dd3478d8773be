"""A plan of sequence operators to the source of its kernels.

The generated module has constants and formulas as `sequence_formulas.py` describes them, the loops of `sequences.py`,
`classify` for what depends on one event alone, and a filter for each operator above construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kleene.analysis.analyzed import AnalyzedQuery, Conjunct, NegativeComponent
from kleene.automaton.model import classified
from kleene.automaton.nfa import reads_alone
from kleene.engine.compiled.code import Code
from kleene.engine.compiled.columns import Layout, times_signature
from kleene.engine.compiled.loading import CUBE, ROW_TABLE, TABLE, constants_code, template
from kleene.engine.compiled.programs import GeneratedCode, made_of
from kleene.engine.compiled.sase_code import INDEX, Gap, SaseCode
from kleene.engine.compiled.sase_readers import AT_FIRST, OfMatch, OneEvent, Rows
from kleene.ir.options import WindowUnit
from kleene.plan.operators import (
    Equivalence,
    Having,
    NegationFilter,
    Pipeline,
    Selection,
    SequenceConstruction,
    SequenceScan,
    WindowFilter,
)
from kleene.plan.rules.push_negation import judged_at

ROWS = f"rows, codes, {INDEX}, times, positions, columns, ki, kf"
FILTER = """\
def {name}(found, count, {arguments}):
    kept = 0
    for m in range(count):
        for c in range(COMPONENTS):
            rows[c] = found[m, c]
        verdict = {formula}({arguments})
        if verdict < 0:
            return verdict
        if verdict == 1:
            for c in range(COMPONENTS):
                found[kept, c] = found[m, c]
            kept += 1
    return kept"""
_TYPES = {"codes": TABLE, "found": ROW_TABLE, "heads": CUBE, "stack": CUBE}
"""Of those arguments that are something else in other kernels."""


@dataclass(frozen=True, slots=True)
class CodedTest:
    """An equivalence test by the numbers of its arrays of codes: one for each component, and each negation or -1."""

    components: tuple[int, ...]
    negations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Coding:
    """What an array of codes numbers: of these tests, together, the values of these attributes."""

    tests: tuple[int, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GeneratedSequence(GeneratedCode):
    """`codes` are the arrays of codes; `stacked` the tests, each alone or several together, that have stacks.

    `judged` are the negations of the index; `index_keys`, for each, the arrays that tie it: the first is its key.
    """

    codes: tuple[Coding, ...]
    stacked: tuple[tuple[int, ...], ...]
    judged: tuple[int, ...]
    index_keys: tuple[tuple[int, ...], ...]
    filters: tuple[str, ...]


def stacks_are_ordered(query: AnalyzedQuery, plan: Pipeline) -> bool:
    """Whether an instance below another is never nearer to a later event, as the window measures it.

    Positions in a partition are comparable only on stacks that hold events of one partition.
    """
    if query.window is None or query.window.unit is not WindowUnit.EVENTS or not query.partition_by:
        return True
    scan = plan.get(SequenceScan)
    telling = scan.tests if scan.is_combined else scan.tests[:1]
    return set(query.partition_by) <= {name for test in telling for name in test.attributes}


def prunes(query: AnalyzedQuery, plan: Pipeline) -> bool:
    """Whether the scan can drop instances by comparing them with an event of any partition."""
    window = plan.get(SequenceScan).window
    return window is not None and (window.unit is not WindowUnit.EVENTS or not query.partition_by)


def generate_sequence(
    query: AnalyzedQuery, plan: Pipeline, nullable: frozenset[str], plain: bool = False
) -> GeneratedSequence:
    return _Generator(query, Layout(nullable, plain=plain), plan=plan).module()


@dataclass(slots=True)
class _Generator(SaseCode):
    plan: Pipeline = field(kw_only=True)
    codes: list[Coding] = field(default_factory=list)
    left_to_scan: list[tuple[Conjunct, ...]] = field(default_factory=list)  # by component: what its bit leaves open
    left_to_judge: dict[int, tuple[Conjunct, ...]] = field(default_factory=dict)  # by negation

    def module(self) -> GeneratedSequence:
        self.check_bits(1)
        classify = self._classify()
        parts = [self.window_function(), self._key_of(), self._scan_ok(), template("negation"), self._bound_ok()]
        filters = self._filters()
        parts += [text for _, text in filters]
        names = tuple(name for name, _ in filters)
        keys = tuple(tuple(test.negations[number] for test in self._tied(number)) for number in self._judged())
        kernels = ("classify", "scan_basic" if self._scan.algorithm == "basic" else "scan", "construct", *names)
        parts = [self._constants(), classify, *parts, template("sequences")]
        results, times = dict.fromkeys(kernels, "int64"), times_signature(self.query.time_type)
        made = made_of(parts, self.layout, results, times=times, **_TYPES)
        stacked = tuple(self._numbers(tests) for tests in self._stacked())
        return GeneratedSequence(*made, tuple(self.codes), stacked, self._judged(), keys, names)

    def _stacked(self) -> list[tuple[Equivalence, ...]]:
        """The tests that have stacks, each alone or all together."""
        tests = self._scan.tests
        return [tests] if self._scan.is_combined else [(test,) for test in tests]

    def _numbers(self, tests: tuple[Equivalence, ...]) -> tuple[int, ...]:
        return tuple(self.plan.tests.index(test) for test in tests)

    def _coded(self, *tests: Equivalence) -> CodedTest:
        """Arrays of codes for the tests together, given out as they are asked for."""

        def code(names: tuple[str | None, ...]) -> int:
            if None in names:
                return -1
            wanted = Coding(self._numbers(tests), tuple(name for name in names if name is not None))
            if wanted not in self.codes:
                self.codes.append(wanted)
            return self.codes.index(wanted)

        components = tuple(map(code, zip(*(test.attributes for test in tests), strict=True)))
        return CodedTest(components, tuple(map(code, zip(*(test.negative for test in tests), strict=True))))

    def _tied(self, negation: int) -> list[CodedTest]:
        """The tests that tie the negation to the match: first the one whose codes are the key of its index."""
        tying = [test for test in self.plan.tests if test.negative and test.negative[negation] is not None]
        if self._scan.is_combined and len(tying) == len(self.plan.tests) == len(self._scan.tests):
            return [self._coded(*self._scan.tests)]
        return [self._coded(test) for test in tying]

    @property
    def _scan(self) -> SequenceScan:
        return self.plan.get(SequenceScan)

    @property
    def _construction(self) -> SequenceConstruction:
        return self.plan.get(SequenceConstruction)

    @property
    def _negations(self) -> list[NegativeComponent]:
        """The negations as the plan has them, which may have fewer predicates than the query's."""
        late = self.plan.find(NegationFilter)
        return [*self._construction.negations, *(late.negations if late is not None else ())]

    def _judged(self) -> tuple[int, ...]:
        """The numbers, in the query, of the negations that are looked for."""
        return tuple(sorted(map(self._number_of, self._negations)))

    def _number_of(self, negation: NegativeComponent) -> int:
        return next(n for n, own in enumerate(self.query.negations) if own.name == negation.name)

    def _constants(self) -> str:
        is_ordered = stacks_are_ordered(self.query, self.plan)
        lines = {
            "ALLOCATES": False,
            "COMPONENTS": len(self.query.components),
            "STACKED": max(len(self._stacked()), 1),
            "BASIC": self._scan.algorithm == "basic",
            "WINDOW_IN_SCAN": self._scan.window is not None and is_ordered,
            "PRUNES": prunes(self.query, self.plan),
            "WINDOW_IN_CONSTRUCTION": self._construction.window is not None and is_ordered,
            "WINDOW_OF_ENDS": self._construction.window is not None and not is_ordered,
        }
        return constants_code(lines)

    # --- scan ----------------------------------------------------------------------------------------------------

    def _classify(self) -> str:
        """Bits for every event: one for each component, then one for each negation; and the rows that have any."""
        code = Code(self.layout)
        code.line("count = 0")
        with code.block("for row in range(first, last):"):
            code.line("found = 0")
            for number, component in enumerate(self.query.components):
                simple = [item.conjunct for item in self._scan.predicates if item.components == (number,)]
                own = classified(simple, reads_alone(component.name, *AT_FIRST))
                reader = OneEvent(component.name, AT_FIRST)
                self.left_to_scan.append(self.write_bit(code, number, component.types, own, reader))
            for number in self._judged():
                item = next(item for item in self._negations if self._number_of(item) == number)
                own = classified(item.predicates, reads_alone(item.name, *AT_FIRST))
                bit, reader = len(self.query.components) + number, OneEvent(item.name, AT_FIRST)
                self.left_to_judge[number] = self.write_bit(code, bit, item.types, own, reader)
            code.line("bits[row] = found")
            # Without a branch: which events can be used is hard to foresee.
            code.line("relevant[count] = row")
            code.line("count += 1 if found != 0 else 0")
        code.line("return count")
        return code.function("classify(bits, relevant, first, last, columns, ki, kf)")

    def _key_of(self) -> str:
        code = Code(self.layout)
        stacked = self._stacked()
        for number, tests in enumerate(stacked):
            arrays = self._coded(*tests).components
            if len(set(arrays)) == 1:
                code.return_if(f"test == {number}" if len(stacked) > 1 else "True", f"codes[{arrays[0]}, row]")
                continue
            for component, array in enumerate(arrays):
                code.return_if(f"test == {number} and component == {component}", f"codes[{array}, row]")
        code.line("return 0")
        return code.function("key_of(test, component, row, codes)")

    def _scan_ok(self) -> str:
        code = Code(self.layout)
        for number, component in enumerate(self.query.components):
            if self.left_to_scan[number]:
                reader = OneEvent(component.name, AT_FIRST)
                with code.block(f"if component == {number}:"):
                    for conjunct in self.left_to_scan[number]:
                        code.return_unless(conjunct.expression, reader)
        code.line("return 1")
        return code.function("scan_ok(component, row, columns, ki, kf)")

    # --- construction --------------------------------------------------------------------------------------------

    def _bound_ok(self) -> str:
        """What is judged when a component is bound, the ones behind it being bound already."""
        code, reader = Code(self.layout), self._reader()
        last = len(self.query.components) - 1
        for number in range(last, -1, -1):
            with code.block(f"if component == {number}:"):
                for test in self._construction.tests:
                    self._write_test(code, self._coded(test), [number])
                for item in self._construction.predicates:
                    if item.components[0] == number:
                        code.return_unless(item.conjunct.expression, reader)
                for negation in self._construction.negations:
                    if judged_at(negation, self.query) == number:
                        self._write_negation(code, negation, reader, self._construction.access)
        code.line("return 1")
        return code.function(f"bound_ok(component, {ROWS})")

    def _reader(self) -> OfMatch:
        reader = OfMatch(self.query)
        for number, component in enumerate(self.query.components):
            reader.walked[component.name] = Rows("rows", str(number), "1")
        return reader

    def _write_test(self, code: Code, test: CodedTest, components: Sequence[int]) -> None:
        """Returns 0 unless these components agree with the last one."""
        last = len(test.components) - 1
        value = f"codes[{test.components[last]}, rows[{last}]]"
        for number in components:
            here = f"codes[{test.components[number]}, rows[{number}]]"
            code.return_if(f"{here} < 0" if number == last else f"{here} != {value}")

    def _write_negation(self, code: Code, negation: NegativeComponent, reader: OfMatch, access: str) -> None:
        number, last = self._number_of(negation), len(self.query.components) - 1
        tied = self._tied(number)
        key = f"codes[{tied[0].components[last]}, rows[{last}]]" if tied else "0"
        ties = tuple(
            f"codes[{test.negations[number]}, row] == codes[{test.components[last]}, rows[{last}]]" for test in tied[1:]
        )
        gap = Gap(self._judged().index(number), key, "rows[0]", f"rows[{last}]", ties, access)
        self.write_absence(code, negation, reader, gap, self.left_to_judge[number])

    # --- the operators above it ----------------------------------------------------------------------------------

    def _filters(self) -> list[tuple[str, str]]:
        """For each operator above construction, its name and the function that leaves out what it does not let by."""
        found: list[tuple[str, str]] = []
        everything = range(len(self.query.components) - 1, -1, -1)
        for operator in self.plan.operators:
            code, reader = Code(self.layout), self._reader()
            match operator:
                case Selection(tests=tests, predicates=predicates):
                    for test in tests:
                        self._write_test(code, self._coded(test), everything)
                    for item in predicates:
                        code.return_unless(item.conjunct.expression, reader)
                case WindowFilter():
                    last = len(self.query.components) - 1
                    code.return_if(f"not in_window(rows[0], rows[{last}], times, positions, ki, kf)")
                case NegationFilter(negations=negations, access=access):
                    # Those in last place are judged alone, when their window has closed.
                    late = Code(self.layout)
                    for negation in negations:
                        is_late = negation.gap == len(self.query.components)
                        self._write_negation(late if is_late else code, negation, self._reader(), access)
                    if late.lines:
                        found.append(("NegationInLastPlace", _filter("NegationInLastPlace", late)))
                case Having(condition=condition):
                    code.return_unless(condition, reader)
                case _:
                    continue
            if code.lines:
                found.append((type(operator).__name__, _filter(type(operator).__name__, code)))
        return found


def _filter(name: str, code: Code) -> str:
    code.line("return 1")
    formula = f"passes_{name}"
    return code.function(f"{formula}({ROWS})") + "\n\n" + FILTER.format(name=name, arguments=ROWS, formula=formula)
