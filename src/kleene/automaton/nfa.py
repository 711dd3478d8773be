"""A SASE+ query to its automaton, NFA^b, by the six steps of SASE+ 2008 §3.2, each a function on automata.

States stand in a line: one for a component that selects a single event, two for a Kleene plus (`a[1]` and `a[i]`), and
the final state F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.automaton.model import (
    FALSE,
    TRUE,
    Absence,
    AllOf,
    AnyOf,
    Automaton,
    Edge,
    Formula,
    FormulaClass,
    FormulaOf,
    InWindow,
    Move,
    NotFormula,
    Predicate,
    State,
    TypeIs,
    all_of,
    classified,
    parts_of,
)
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.options import Strategy
from kleene.schema import BOOLEAN


def nfa_of(query: AnalyzedQuery, steps: int = 6) -> Automaton:
    """The automaton after that many of the paper's steps; fewer than all are for looking at."""
    automaton = Automaton((), ())
    for step in _STEPS[:steps]:
        automaton = step(automaton, query)
    return automaton


def _states(query: AnalyzedQuery) -> list[State]:
    states: list[State] = []
    for number, component in enumerate(query.components):
        names = [f"{component.name}[1]", f"{component.name}[i]"] if component.is_kleene else [component.name]
        states += [State(name, component.name, number) for name in names]
    return [*states, State("F")]


def _make_structure(_: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 1: the pattern determines the states and their edges."""
    states = _states(query)
    edges: list[tuple[Edge, ...]] = []
    for number, state in enumerate(states[:-1]):
        ignore = Edge(Move.IGNORE, number)
        if number > 0 and states[number - 1].component == state.component:  # a repetition
            edges.append((Edge(Move.TAKE, number), ignore, Edge(Move.PROCEED, number + 1)))
        elif number > 0:
            edges.append((Edge(Move.BEGIN, number + 1), ignore))
        else:
            edges.append((Edge(Move.BEGIN, number + 1),))
    negations = tuple(_negation(negation, query) for negation in query.negations)
    return Automaton(tuple(states), (*edges, ()), negations=negations)


def _negation(negation: NegativeComponent, query: AnalyzedQuery) -> Absence:
    """The negation with the equivalence tests that tie it to the partition."""
    first = query.components[0].name
    tests = (_agree(negation.name, Position.EACH, first, Position.EACH, name) for name in query.partition_by)
    tied = tuple(Predicate(Conjunct(test), FormulaClass.PARTITION) for test in tests)
    own = reads_alone(negation.name, Position.EACH, Position.FIRST)
    return Absence(negation, tied + classified(negation.predicates, own))


def _agree(left: str, left_position: Position, right: str, right_position: Position, attribute: str) -> ir.Expr:
    sides = (ir.Attribute(left, attribute, left_position), ir.Attribute(right, attribute, right_position))
    return ir.Comparison("=", *sides, type=BOOLEAN)


def _place_predicates(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 2: every conjunct goes on an edge of the state that binds its last identifier."""

    def formula(state: int, edge: Edge) -> Formula:
        component = _component_at(state, automaton, query)
        match edge.move:
            case Move.BEGIN:
                position = Position.FIRST if component.is_kleene else Position.EACH
                return _selecting(component, component.begin, position, query)
            case Move.TAKE:
                return _selecting(component, component.take, Position.CURRENT, query)
            case Move.PROCEED:
                return all_of(Predicate(conjunct, FormulaClass.COMPLETION) for conjunct in component.complete)
        return edge.formula

    return _with_formulas(automaton, formula)


def _selecting(
    component: Component, conjuncts: Iterable[Conjunct], position: Position, query: AnalyzedQuery
) -> Formula:
    """The formula of an edge that selects an event for the component, in the role of `position`."""
    tests = (_partition_test(component, position, name, query) for name in query.partition_by)
    own = [
        replace(item, expression=_in_role(item.expression, component.name, position)) if component.is_kleene else item
        for item in conjuncts
    ]
    roles = {position, Position.EACH} | ({Position.FIRST} if position is not Position.CURRENT else set())
    predicates = classified(own, reads_alone(component.name, *roles))
    return all_of([TypeIs(component.types), *(test for test in tests if test is not None), *predicates])


def reads_alone(variable: str, *positions: Position) -> Callable[[ir.Expr], FormulaClass]:
    """Whether an expression looks at nothing but the event that is tried for the variable."""

    def is_own(node: ir.Expr) -> bool:
        match node:
            case ir.Attribute(variable=str() as other, position=position):
                return other == variable and position in positions
        return not isinstance(node, (ir.Events, ir.Length, ir.Aggregate))

    def class_of(expression: ir.Expr) -> FormulaClass:
        return FormulaClass.SINGLE_EVENT if all(map(is_own, ir.walk(expression))) else FormulaClass.RUN

    return class_of


def _in_role(expression: ir.Expr, variable: str, position: Position) -> ir.Expr:
    """`a.price` on the edge that begins `a` is `a[1].price`, and on the one that takes it is `a[i].price`."""
    match expression:
        case ir.Attribute(position=Position.EACH) if expression.variable == variable:
            return replace(expression, position=position)
    return ir.with_children(expression, lambda child: _in_role(child, variable, position))


def _partition_test(component: Component, position: Position, name: str, query: AnalyzedQuery) -> Predicate | None:
    """The canonical form of an equivalence test, `b.id = a[1].id`; the first event has nothing to agree with."""
    first = query.components[0]
    if component is first and position is not Position.CURRENT:
        return None
    first_position = Position.FIRST if first.is_kleene else Position.EACH
    comparison = _agree(component.name, position, first.name, first_position, name)
    indexed = ((component.name, 1),) if position is Position.CURRENT else ()
    return Predicate(Conjunct(comparison, indexed), FormulaClass.PARTITION)


def _set_ignore(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 3: the strategy says when an event may be ignored."""

    def formula(state: int, edge: Edge) -> Formula:
        if edge.move is not Move.IGNORE:
            return edge.formula
        selecting = automaton.edge(state, Move.TAKE) or automaton.edge(state, Move.BEGIN)
        assert selecting is not None
        match query.strategy:
            case Strategy.STRICT_CONTIGUITY:
                return FALSE
            case Strategy.PARTITION_CONTIGUITY:
                return NotFormula(all_of(_partition_predicates(selecting.formula)))
            case Strategy.SKIP_TILL_NEXT_MATCH:
                return NotFormula(FormulaOf(state, selecting.move))
        return TRUE

    return _with_formulas(automaton, formula)


def _partition_predicates(formula: Formula) -> Iterable[Formula]:
    parts = parts_of(formula)
    return (part for part in parts if isinstance(part, Predicate) and part.formula_class is FormulaClass.PARTITION)


def _add_window(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 4: WITHIN is checked on the way to the final state."""
    return _with_window(automaton, query, lambda _, edge: edge.target == automaton.final)


def _push_window(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 5: and on every edge before it, so that a run that is too old ends at once."""
    return _with_window(automaton, query, lambda state, edge: state > 0 and edge.move is not Move.PROCEED)


def _with_window(automaton: Automaton, query: AnalyzedQuery, is_wanted: Callable[[int, Edge], bool]) -> Automaton:
    window = query.window
    if window is None:
        return automaton

    def formula(number: int, edge: Edge) -> Formula:
        test = InWindow(_last_selected(automaton.states[number], edge), automaton.states[0].name, window)
        if number == 0 or not is_wanted(number, edge) or test in parts_of(edge.formula):
            return edge.formula
        return all_of([edge.formula, test])

    return _with_formulas(automaton, formula)


def _last_selected(state: State, edge: Edge) -> str:
    """The event that the window is measured to: the current one, or, when a match is closed, the last selected one."""
    return f"{state.variable}[{state.variable}.LEN]" if edge.move is Move.PROCEED else state.name


def _constrain_proceed(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 6: a Kleene variable is left only by an event that begins what follows.

    The paper's exception stays in the formula: where the event can be neither taken nor ignored the run may move on,
    and since the next state cannot ignore the event either, it ends there.
    """

    def formula(state: int, edge: Edge) -> Formula:
        if edge.move is not Move.PROCEED or edge.target == automaton.final:
            return edge.formula
        stuck = AllOf(tuple(NotFormula(FormulaOf(state, move)) for move in (Move.TAKE, Move.IGNORE)))
        return all_of([edge.formula, AnyOf((FormulaOf(edge.target, Move.BEGIN), stuck))])

    return _with_formulas(automaton, formula)


_STEPS = (_make_structure, _place_predicates, _set_ignore, _add_window, _push_window, _constrain_proceed)


def _with_formulas(automaton: Automaton, formula: Callable[[int, Edge], Formula]) -> Automaton:
    edges = (
        tuple(replace(edge, formula=formula(state, edge)) for edge in own) for state, own in enumerate(automaton.edges)
    )
    return replace(automaton, edges=tuple(edges))


def _component_at(state: int, automaton: Automaton, query: AnalyzedQuery) -> Component:
    number = automaton.states[state].component
    assert number is not None
    return query.components[number]
