"""A plan to the automaton that runs it, or to its stacks. EXPLAIN shows them, and engines are compiled from them."""

from __future__ import annotations

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import TRUE, Automaton, Edge, FormulaClass, Move, Predicate, State, TypeIs, all_of
from kleene.automaton.nfa import nfa_of
from kleene.automaton.positions import positions_of
from kleene.automaton.steps import steps_automaton
from kleene.automaton.text import formula_text
from kleene.plan.operators import Pipeline, RunScan, SequenceScan, running_query
from kleene.plan.plan import Plan


def automaton_of(plan: Plan) -> Automaton | None:
    """The automaton of the plan; None where sequences are constructed from stacks, or nothing can match."""
    if isinstance(plan.query, AnalyzedRowPattern):
        return positions_of(plan.query)
    if isinstance(plan.query, AnalyzedSteps):
        return steps_automaton(plan.query).automaton
    assert plan.pipeline is not None
    if plan.pipeline.find(RunScan) is None:
        return None
    return nfa_of(running_query(plan.query, plan.pipeline))


# --- stacks, one for each component, which a plan of sequence operators has instead (SASE 2006 §3.2) ---


def scan_automaton(pipeline: Pipeline) -> Automaton:
    """What decides which events go on which stack, in the form of an automaton: each edge puts an event on a stack."""
    scan = pipeline.get(SequenceScan)
    edges: list[tuple[Edge, ...]] = []
    for number, component in enumerate(scan.components):
        own = (item.conjunct for item in scan.predicates if item.components == (number,))
        predicates = (Predicate(conjunct, FormulaClass.SINGLE_EVENT) for conjunct in own)
        push = Edge(Move.BEGIN, number + 1, all_of([TypeIs(component.types), *predicates]))
        edges.append((push, Edge(Move.IGNORE, number, TRUE)) if number else (push,))
    states = (State(item.name, item.name, number) for number, item in enumerate(scan.components))
    return Automaton((*states, State("F")), (*edges, ()))


def stacks_text(pipeline: Pipeline) -> str:
    """A line for each stack: which events go on it, and where they point."""
    automaton = scan_automaton(pipeline)
    width = max(len(state.name) for state in automaton.states)
    lines = []
    for number, state in enumerate(automaton.states[:-1]):
        formula = formula_text(automaton.edges[number][0].formula, automaton, number)
        below = f"; each points to the top of the stack of {automaton.states[number - 1].name}" if number else ""
        lines.append(f"{state.name:<{width}}  {formula}{below}")
    return "\n".join([*lines, f"matches are constructed backwards from each event of {automaton.states[-2].name}"])
