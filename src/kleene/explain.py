"""EXPLAIN: how a query is understood and how it will be run."""

from __future__ import annotations

from kleene.analysis.analyze import MATCH_END, MATCH_START
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.automaton.compile import compile_automaton
from kleene.automaton.text import automaton_dot, automaton_text
from kleene.ir.options import Strategy, WindowUnit
from kleene.ir.text import equivalence_text, query_text, window_text
from kleene.plan.plan import Plan

_STRATEGIES = {
    Strategy.STRICT_CONTIGUITY: "selected events are neighbours in the whole input",
    Strategy.PARTITION_CONTIGUITY: "selected events are neighbours in their partition",
    Strategy.SKIP_TILL_NEXT_MATCH: "events that do not fit are passed over",
    Strategy.SKIP_TILL_ANY_MATCH: "any event may be passed over: all combinations",
}


def explain_text(plan: Plan) -> str:
    query = plan.query
    facts = {
        "strategy": f"{query.strategy.value}: {_STRATEGIES[query.strategy]}",
        "partition": _partition_text(query),
        "window": _window_text(query),
        "split": str(plan.split),
        "engine": f"{plan.engine}: the plain interpreter",
        "output": ", ".join(_output_columns(query)),
    }
    lines = [query_text(query.definition), ""]
    lines += [f"{name:<10} {fact}" for name, fact in facts.items()]
    lines += [f"{'warning':<10} {warning}" for warning in query.warnings]
    automaton = automaton_text(compile_automaton(query))
    lines += ["", "automaton", *("  " + line for line in automaton.splitlines())]
    return "\n".join(lines)


def explain_dot(query: AnalyzedQuery) -> str:
    return automaton_dot(compile_automaton(query))


def _partition_text(query: AnalyzedQuery) -> str:
    tests = " ".join(equivalence_text(test) for test in query.definition.equivalence_tests)
    if query.partition_by:
        return tests
    return f"none; {tests} is an ordinary predicate here" if tests else "none: the whole input"


def _window_text(query: AnalyzedQuery) -> str:
    window = query.window
    if window is None:
        return "none: a partial match is kept until the end of the input"
    if window.unit is WindowUnit.EVENTS:
        return f"{window_text(window)}: first and last event of a match are less than {window.size} positions apart"
    return f"{window_text(window)}: the last event of a match comes less than that after the first"


def _output_columns(query: AnalyzedQuery) -> list[str]:
    if query.measures is not None:
        return [measure.name for measure in query.measures]
    variables = [f"{c.name}[]" if c.is_kleene else c.name for c in query.components if c.named]
    return [*query.key, *variables, MATCH_START, MATCH_END]
