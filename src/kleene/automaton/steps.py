"""Steps to their automaton: cells that wait for one event each, as docs/steps.md draws them.

A cell takes an event and leads on, or ignores it; where it has ways out, it may be left without an event, but only
before it has ignored one: the run that ignores goes on in the cell's waiting twin, which has no ways out. Greedy steps
add a guard to every edge of what follows. Absences in the middle have no state: they are open, or they are not,
according to the step that was bound last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kleene.analysis.analyzed import Conjunct
from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import (
    FALSE,
    TRUE,
    Automaton,
    Defined,
    Edge,
    Formula,
    FormulaClass,
    Move,
    NotFormula,
    Predicate,
    SoonAfter,
    State,
    TypeIs,
    all_of,
    classified,
)
from kleene.errors import UnsupportedError, listed
from kleene.ir import expr as ir
from kleene.ir.options import Window
from kleene.ir.steps import Contiguity, Negative, SkipMode, Step, all_steps

MOST_STATES = 20_000


@dataclass(frozen=True, slots=True)
class StepsAutomaton:
    """The automaton, and what its states mean to a run besides.

    `pending` are the states of runs that are matches unless an absence is hit, `stop` is the one that ends a run.
    `waits[s]` is how long after the event before a run may wait in state s. `open_after` are the absences that are open
    once a step has an event, by its name.
    """

    automaton: Automaton
    pending: frozenset[int]
    stop: int
    waits: tuple[Window | None, ...]
    open_after: tuple[tuple[str, tuple[str, ...]], ...]


def steps_automaton(query: AnalyzedSteps) -> StepsAutomaton:
    """The automaton of the pattern; its first state is where runs begin, its last is F."""
    builder = _Builder(query)
    steps = query.pattern.steps
    last = steps[-1]
    ends_open = last.negative is Negative.NOT_FOLLOWED_BY
    sink = builder.pending(last.since_previous) if ends_open else builder.final
    first = builder.chain(steps, sink, Contiguity.STRICT, (), ())
    return builder.finished(first)


@dataclass(eq=False, slots=True)
class _Cell:
    """A state that is being made."""

    name: str
    variable: str | None = None
    edges: list[_Edge] = field(default_factory=list)
    waits: Window | None = None
    is_pending: bool = False


@dataclass(slots=True)
class _Edge:
    move: Move
    target: _Cell
    formula: Formula


@dataclass(frozen=True, slots=True)
class _Way:
    """A way out of a cell."""

    formula: Formula
    target: _Cell


def _until(label: str) -> str:
    return f"until {label}"


class _Builder:
    def __init__(self, query: AnalyzedSteps) -> None:
        self.query = query
        self.final, self.stop = _Cell("F"), _Cell("stop")
        self.cells: list[_Cell] = []
        self.names: dict[str, int] = {}

    def cell(self, name: str, variable: str | None = None) -> _Cell:
        if len(self.cells) >= MOST_STATES:
            raise UnsupportedError(
                f"the automaton of the pattern has more than {MOST_STATES:,} states",
                hint="Repeat steps and groups fewer times, or use times_or_more.",
            )
        count = self.names[name] = self.names.get(name, 0) + 1
        made = _Cell(name if count == 1 else f"{name} ({count})", variable)
        self.cells.append(made)
        return made

    def pending(self, waits: Window | None) -> _Cell:
        made = self.cell("pending")
        made.is_pending, made.waits = True, waits
        made.edges.append(_Edge(Move.IGNORE, made, TRUE))
        return made

    # --- one pattern after the other ---------------------------------------------------------------------------------

    def chain(
        self, steps: Sequence[Step], sink: _Cell, first: Contiguity, ways: tuple[_Way, ...], around: tuple[str, ...]
    ) -> _Cell:
        """The first cell of the steps, after which comes `sink`.

        `first` is the contiguity of the first step, `ways` are further ways out of its first cell, and `around` are
        the groups around the steps that have an until condition.
        """
        for number in reversed(range(len(steps))):
            step = steps[number]
            if step.negative is Negative.NOT_NEXT:
                sink = self._not_next(step, sink, is_last=number == len(steps) - 1)
            elif step.negative is None:
                contiguity = step.contiguity if number else first
                sink = self._step(step, sink, contiguity, () if number else ways, around)
        return sink

    def _not_next(self, step: Step, sink: _Cell, is_last: bool) -> _Cell:
        made = self.cell(f"not {step.name}")
        hit = Defined(step.name)
        made.edges = [
            _Edge(Move.IGNORE if is_last else Move.PROCEED, sink, NotFormula(hit)),
            _Edge(Move.PROCEED, self.stop, hit),
        ]
        return made

    def _step(
        self, step: Step, sink: _Cell, contiguity: Contiguity, ways: tuple[_Way, ...], around: tuple[str, ...]
    ) -> _Cell:
        """The first cell of a step or group and its repetition."""
        out = self._ways_to(step, sink, around)  # copies the sink before it is guarded
        if step.is_greedy and step.repetition is not None and not step.repetition.is_fixed:
            _guard(sink, NotFormula(all_of([Defined(step.name), self._outside(around)])))
        repetition = step.repetition
        least, most = (1, 1) if repetition is None else (repetition.least, repetition.most)
        inside = step.inside or Contiguity.RELAXED
        target = self._loop(step, out, inside, around) if most is None else sink
        for number in reversed(range(1, (least if most is None else most) + 1)):
            own = out if number > least else ()
            if number == 1:
                own = (*(out if step.is_optional else own), *ways)
                return self._cell(step, number, target, contiguity, own, around)
            target = self._cell(step, number, target, inside, own, around)
        raise AssertionError("a step occurs at least once")

    def _ways_to(self, step: Step, sink: _Cell, around: tuple[str, ...]) -> tuple[_Way, ...]:
        proceed = self._outside(around)
        if not (step.is_greedy and step.has_until):
            return (_Way(proceed, sink),)
        ends = Defined(_until(step.label))
        free = self._copy(sink)
        return (_Way(all_of([proceed, ends]), free), _Way(all_of([proceed, NotFormula(ends)]), sink))

    def _copy(self, state: _Cell) -> _Cell:
        """The state once more, with edges of its own; one that led back to itself does so again."""
        if state is self.final:
            return state
        made = self.cell(f"{state.name} unguarded", state.variable)
        made.waits, made.is_pending = state.waits, state.is_pending
        made.edges = [_Edge(e.move, made if e.target is state else e.target, e.formula) for e in state.edges]
        return made

    def _loop(self, step: Step, out: tuple[_Way, ...], inside: Contiguity, around: tuple[str, ...]) -> _Cell:
        """L: the cell, or the round, that comes again and again."""
        if not step.group:
            return self._cell(step, None, None, inside, out, around)
        again, round_ = self.cell(f"{step.label} again"), _Cell("the round that is not made yet")
        again.edges.append(_Edge(Move.PROCEED, round_, TRUE))  # before a greedy step inside may guard it, or copy it
        first = self._cell(step, None, again, inside, out, around)
        for edge in (edge for cell in self.cells for edge in cell.edges):
            edge.target = first if edge.target is round_ else edge.target
        return first

    def _cell(
        self,
        step: Step,
        number: int | None,
        target: _Cell | None,
        contiguity: Contiguity,
        ways: tuple[_Way, ...],
        around: tuple[str, ...],
    ) -> _Cell:
        """What waits for the event of that number, or for a further one of a loop, where `target` is itself."""
        if step.group:
            assert target is not None
            inner = (*around, step.label) if step.has_until else around
            return self.chain(step.group, target, contiguity, ways, inner)
        name = step.name if step.repetition is None else f"{step.name}[{number or 'i'}]"
        made = self.cell(name, step.name)
        is_first = number == 1
        bound = step.since_previous if is_first else step.repetition.gap if step.repetition is not None else None
        take = self._take(step, bound, around)
        ignore = self._ignore(step, contiguity, not is_first, around)
        made.edges.append(_Edge(Move.TAKE, target or made, take))
        made.edges += [_Edge(Move.PROCEED, way.target, way.formula) for way in ways]
        if not ways:
            made.waits = bound
            _add_ignore(made, made, ignore)
        elif ignore != FALSE:
            twin = self.cell(f"{name} waiting", step.name)
            twin.waits = bound
            twin.edges.append(_Edge(Move.TAKE, target or made, take))
            _add_ignore(twin, twin, ignore)
            _add_ignore(made, twin, ignore)
        return made

    # --- formulas ----------------------------------------------------------------------------------------------------

    def _outside(self, around: tuple[str, ...]) -> Formula:
        """¬U: no until condition of a group around holds."""
        return all_of(NotFormula(Defined(_until(label))) for label in around)

    def _take(self, step: Step, bound: Window | None, around: tuple[str, ...]) -> Formula:
        """T: the event is one of the step, and nothing ends its loop."""
        parts: list[Formula] = [Defined(step.name)]
        if step.has_until:
            parts.append(NotFormula(Defined(_until(step.label))))
        parts.append(self._outside(around))
        return all_of([*parts, *([] if bound is None else [SoonAfter(bound)])])

    def _ignore(self, step: Step, contiguity: Contiguity, is_inside: bool, around: tuple[str, ...]) -> Formula:
        """I, or J inside the repetition: the event may be passed over."""
        if contiguity is Contiguity.STRICT:
            return FALSE
        parts: list[Formula] = [NotFormula(Defined(step.name))] if contiguity is Contiguity.RELAXED else []
        if is_inside and step.has_until:
            parts.append(NotFormula(Defined(_until(step.label))))
        return all_of([*parts, self._outside(around)])

    # --- the whole ---------------------------------------------------------------------------------------------------

    def finished(self, first: _Cell) -> StepsAutomaton:
        """The cells that can be reached, numbered from the first one; stop and F come last."""
        order, waiting = [first], [first]
        seen = {id(first), id(self.stop), id(self.final)}
        while waiting:
            for edge in waiting.pop(0).edges:
                if id(edge.target) not in seen:
                    seen.add(id(edge.target))
                    order.append(edge.target)
                    waiting.append(edge.target)
        has_stop = any(edge.target is self.stop for cell in order for edge in cell.edges)
        order += [self.stop, self.final] if has_stop else [self.final]
        numbers = {id(cell): number for number, cell in enumerate(order)}
        edges = tuple(
            tuple(Edge(edge.move, numbers[id(edge.target)], edge.formula) for edge in cell.edges) for cell in order
        )
        components = {component.name: number for number, component in enumerate(self.query.components)}
        states = tuple(
            State(cell.name, cell.variable, components[cell.variable] if cell.variable is not None else None)
            for cell in order
        )
        open_after = tuple(_open_after(self.query.pattern.steps))
        automaton = Automaton(
            states,
            edges,
            definitions=tuple(_definitions(self.query)),
            notes=tuple(_notes(self.query, open_after)),
        )
        return StepsAutomaton(
            automaton,
            frozenset(number for number, cell in enumerate(order) if cell.is_pending),
            numbers.get(id(self.stop), -1),
            tuple(cell.waits for cell in order),
            open_after,
        )


def _add_ignore(cell: _Cell, target: _Cell, formula: Formula) -> None:
    if formula != FALSE:
        cell.edges.append(_Edge(Move.IGNORE, target, formula))


def _guard(sink: _Cell, guard: Formula) -> None:
    for edge in sink.edges:
        edge.formula = all_of([edge.formula, guard])


def _open_after(steps: tuple[Step, ...], behind: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """For each positive step the absences between it and the next step that must occur, or the end.

    `behind` are those that stand after the steps, before what must occur there.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    following = behind
    for step in reversed(steps):
        if step.negative is Negative.NOT_FOLLOWED_BY:
            following = (step.name, *following)
        elif step.negative is None:
            inner = _open_after(step.group, following) if step.group else [(step.name, following)]
            found = [*inner, *found]
            if not step.can_be_skipped:
                following = ()
            if step.group:
                following = (*_leading(step), *following)
    return found


def _leading(group: Step) -> tuple[str, ...]:
    """The absences in a group that can be reached without any event of it; a group never begins with one."""
    found: tuple[str, ...] = ()
    for step in group.group:
        if step.negative is Negative.NOT_FOLLOWED_BY:
            found = (*found, step.name)
        elif step.negative is None and not step.can_be_skipped:
            break
    return found


def _definitions(query: AnalyzedSteps) -> list[tuple[str, Formula]]:
    conditions, untils = dict(query.conditions), dict(query.untils)
    found: list[tuple[str, Formula]] = []
    for step in all_steps(query.pattern.steps):
        parts: list[Formula] = [TypeIs(step.types)] if step.types else []
        if step.label in conditions:
            parts += _predicates(conditions[step.label])
        found.append((step.name, all_of(parts)))
    return found + [(_until(label), all_of(_predicates(condition))) for label, condition in untils.items()]


def _predicates(condition: ir.Expr) -> tuple[Predicate, ...]:
    parts = condition.operands if isinstance(condition, ir.And) else (condition,)
    return classified(map(Conjunct, parts), class_of)


def class_of(expression: ir.Expr) -> FormulaClass:
    """What an engine needs to know to decide a condition of a step."""
    reads_run = any(
        isinstance(node, (ir.Aggregate, ir.RowFunction))
        or (isinstance(node, ir.Attribute) and node.variable is not None)
        for node in ir.walk(expression)
    )
    return FormulaClass.RUN if reads_run else FormulaClass.SINGLE_EVENT


def _notes(query: AnalyzedSteps, open_after: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    found = [f"after {name}, no {listed(absent)} may come" for name, absent in open_after if absent]
    after = query.after
    if after.mode is not SkipMode.NO_SKIP:
        found.append(f"after a match: {after.mode.value}" + (f" {after.step}" if after.step is not None else ""))
    return found
