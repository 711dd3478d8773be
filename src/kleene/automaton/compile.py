"""An analyzed query to its automaton, by the six steps of SASE+ 2008 §3.2, each a function on automata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.automaton.model import (
    FALSE,
    FINAL,
    TRUE,
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
    both,
)
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.options import Strategy
from kleene.schema import BOOLEAN


def compile_automaton(query: AnalyzedQuery, steps: int = 6) -> Automaton:
    """The automaton after that many of the paper's steps; fewer than all are for looking at."""
    automaton = Automaton((), ())
    for step in _STEPS[:steps]:
        automaton = step(automaton, query)
    return automaton


def _states(query: AnalyzedQuery) -> list[State]:
    states: list[State] = []
    for number, component in enumerate(query.components):
        if component.is_kleene:
            states += [State(f"{component.name}[1]", number), State(f"{component.name}[i]", number)]
        else:
            states.append(State(component.name, number))
    return [*states, State(FINAL, None)]


def _make_structure(_: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 1: the pattern determines the states and their edges."""
    states = _states(query)
    edges: list[Edge] = []
    for number, state in enumerate(states[:-1]):
        following = states[number + 1].name
        is_repetition = number > 0 and states[number - 1].component == state.component
        if is_repetition:
            edges += [Edge(state.name, Move.TAKE, state.name), Edge(state.name, Move.IGNORE, state.name)]
            edges.append(Edge(state.name, Move.PROCEED, following))
        else:
            edges.append(Edge(state.name, Move.BEGIN, following))
            if number > 0:
                edges.append(Edge(state.name, Move.IGNORE, state.name))
    return Automaton(tuple(states), tuple(edges), tuple(_tied(negation, query) for negation in query.negations))


def _tied(negation: NegativeComponent, query: AnalyzedQuery) -> NegativeComponent:
    """The negation with the equivalence tests that tie it to the partition."""
    first = query.components[0].name
    tests = tuple(Conjunct(_agree(negation.name, Position.EACH, first, Position.EACH, n)) for n in query.partition_by)
    return replace(negation, predicates=tests + negation.predicates)


def _agree(left: str, left_position: Position, right: str, right_position: Position, attribute: str) -> ir.Expr:
    sides = (ir.Attribute(left, attribute, left_position), ir.Attribute(right, attribute, right_position))
    return ir.Comparison("=", *sides, type=BOOLEAN)


def _place_predicates(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 2: every conjunct goes on an edge of the state that binds its last identifier."""

    def formula(edge: Edge) -> Formula:
        component = _component_at(edge.source, automaton, query)
        match edge.move:
            case Move.BEGIN:
                position = Position.FIRST if component.is_kleene else Position.EACH
                return _selecting(component, component.begin, position, query)
            case Move.TAKE:
                return _selecting(component, component.take, Position.CURRENT, query)
            case Move.PROCEED:
                return _all(Predicate(conjunct, FormulaClass.COMPLETION) for conjunct in component.complete)
        return edge.formula

    return _with_formulas(automaton, formula)


def _selecting(
    component: Component, conjuncts: Iterable[Conjunct], position: Position, query: AnalyzedQuery
) -> Formula:
    """The formula of an edge that selects an event for the component, in the role of `position`."""
    predicates = [_partition_test(component, position, name, query) for name in query.partition_by]
    for conjunct in conjuncts:
        expression = (
            _in_role(conjunct.expression, component.name, position) if component.is_kleene else conjunct.expression
        )
        own = {(component.name, position), (component.name, Position.EACH)}
        is_single = all(_reads_only(node, own) for node in ir.walk(expression))
        formula_class = FormulaClass.SINGLE_EVENT if is_single else FormulaClass.RUN
        predicates.append(Predicate(replace(conjunct, expression=expression), formula_class))
    return _all([TypeIs(component.types), *(predicate for predicate in predicates if predicate is not None)])


def _reads_only(node: ir.Expr, own: set[tuple[str, Position]]) -> bool:
    match node:
        case ir.Attribute(variable=str() as variable, position=position):
            return (variable, position) in own
    return not isinstance(node, (ir.Events, ir.Length))


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

    def formula(edge: Edge) -> Formula:
        if edge.move is not Move.IGNORE:
            return edge.formula
        move = Move.TAKE if automaton.edge(edge.source, Move.TAKE) else Move.BEGIN
        match query.strategy:
            case Strategy.STRICT_CONTIGUITY:
                return FALSE
            case Strategy.PARTITION_CONTIGUITY:
                selecting = automaton.edge(edge.source, move)
                assert selecting is not None
                return NotFormula(_all(_partition_predicates(selecting.formula)))
            case Strategy.SKIP_TILL_NEXT_MATCH:
                return NotFormula(FormulaOf(edge.source, move))
        return TRUE

    return _with_formulas(automaton, formula)


def _partition_predicates(formula: Formula) -> Iterable[Formula]:
    parts = formula.parts if isinstance(formula, AllOf) else (formula,)
    return (part for part in parts if isinstance(part, Predicate) and part.formula_class is FormulaClass.PARTITION)


def _add_window(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 4: WITHIN is checked on the way to the final state."""
    return _with_window(automaton, query, lambda edge: edge.target == FINAL)


def _push_window(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 5: and on every edge before it, so that a run that is too old ends at once."""
    start = automaton.states[0].name
    return _with_window(automaton, query, lambda edge: edge.source != start and edge.move is not Move.PROCEED)


def _with_window(automaton: Automaton, query: AnalyzedQuery, is_wanted: Callable[[Edge], bool]) -> Automaton:
    window = query.window
    if window is None:
        return automaton
    start = automaton.states[0].name

    def formula(edge: Edge) -> Formula:
        test = InWindow(_last_selected(edge), start, window)
        if edge.source == start or not is_wanted(edge) or test in _parts(edge.formula):
            return edge.formula
        return both(edge.formula, test)

    return _with_formulas(automaton, formula)


def _last_selected(edge: Edge) -> str:
    """The event that the window is measured to: the current one, or, when a match is closed, the last selected one."""
    if edge.move is Move.PROCEED:
        variable = edge.source[: -len("[i]")]
        return f"{variable}[{variable}.LEN]"
    return edge.source


def _parts(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, AllOf) else (formula,)


def _constrain_proceed(automaton: Automaton, query: AnalyzedQuery) -> Automaton:
    """Step 6: a Kleene variable is left only by an event that begins what follows.

    The paper's exception stays in the formula: where the event can be neither taken nor ignored the run may move on,
    and since the next state cannot ignore the event either, it ends there.
    """

    def formula(edge: Edge) -> Formula:
        if edge.move is not Move.PROCEED or edge.target == FINAL:
            return edge.formula
        stuck = AllOf(tuple(NotFormula(FormulaOf(edge.source, move)) for move in (Move.TAKE, Move.IGNORE)))
        return both(edge.formula, AnyOf((FormulaOf(edge.target, Move.BEGIN), stuck)))

    return _with_formulas(automaton, formula)


_STEPS = (_make_structure, _place_predicates, _set_ignore, _add_window, _push_window, _constrain_proceed)


def _with_formulas(automaton: Automaton, formula: Callable[[Edge], Formula]) -> Automaton:
    return replace(automaton, edges=tuple(replace(edge, formula=formula(edge)) for edge in automaton.edges))


def _component_at(name: str, automaton: Automaton, query: AnalyzedQuery) -> Component:
    number = next(state.component for state in automaton.states if state.name == name)
    assert number is not None
    return query.components[number]


def _all(parts: Iterable[Formula]) -> Formula:
    found = tuple(parts)
    return found[0] if len(found) == 1 else AllOf(found)
