"""EXPLAIN: how a query is understood and how it will be run."""

from __future__ import annotations

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.compile import compile_automaton
from kleene.automaton.row_pattern import compile_row_automaton, row_automaton_dot, row_automaton_text
from kleene.automaton.text import automaton_dot, automaton_text
from kleene.engine.choice import choose, source_of
from kleene.errors import UnsupportedError
from kleene.ir.options import Selection, Skip, Strategy, Window, WindowUnit
from kleene.ir.row_text import row_query_text
from kleene.ir.text import equivalence_text, query_text, window_text
from kleene.plan.plan import Plan, output_columns

_STRATEGIES = {
    Strategy.STRICT_CONTIGUITY: "selected events are neighbours in the whole input",
    Strategy.PARTITION_CONTIGUITY: "selected events are neighbours in their partition",
    Strategy.SKIP_TILL_NEXT_MATCH: "events that do not fit are passed over",
    Strategy.SKIP_TILL_ANY_MATCH: "any event may be passed over: all combinations",
}
_SELECTIONS = {
    Selection.PREFERRED: "for each start row the most preferred match",
    Selection.ALL_MATCHES: "every classification of every start row",
    Selection.FIRST_COMPLETED: "at the first event that completes one, the longest match; then from nothing",
}


def explain_text(plan: Plan) -> str:
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        text, facts = row_query_text(query.definition), _row_facts(query)
        automaton = row_automaton_text(compile_row_automaton(query))
    else:
        text, facts = query_text(query.definition), _facts(query)
        automaton = automaton_text(compile_automaton(query))
    choice = choose(plan)
    facts |= {"split": str(plan.split), "engine": f"{choice.engine}: {choice.reason}"}
    if plan.pipeline is not None:
        facts |= dict(note.split(": ", 1) for note in plan.pipeline.notes)
    lines = [text, "", *(f"{name:<10} {fact}" for name, fact in facts.items())]
    lines += [f"{'warning':<10} {warning}" for warning in query.warnings]
    return "\n".join([*lines, "", "automaton", *("  " + line for line in automaton.splitlines())])


def explain_code(plan: Plan) -> str:
    """The source that is compiled for the query, for columns without NULLs."""
    if plan.query.schema is None:
        raise UnsupportedError("code is made for known columns", hint="Give events: query.explain(events, code=True).")
    choice = choose(plan)
    if choice.engine == "reference":
        raise UnsupportedError(f"no code is made for this query: it is run by {choice.reason}")
    return source_of(plan)


def explain_dot(query: AnalyzedQuery | AnalyzedRowPattern) -> str:
    if isinstance(query, AnalyzedRowPattern):
        return row_automaton_dot(compile_row_automaton(query))
    return automaton_dot(compile_automaton(query))


def _facts(query: AnalyzedQuery) -> dict[str, str]:
    return {
        "strategy": f"{query.strategy.value}: {_STRATEGIES[query.strategy]}",
        "partition": _partition_text(query),
        "window": _window_text(query.window),
        "output": ", ".join(output_columns(query)),
    }


def _row_facts(query: AnalyzedRowPattern) -> dict[str, str]:
    definition = query.definition
    facts = {"matches": _SELECTIONS[definition.selection]}
    after = definition.after_match
    if after is not None:
        to = f" {after.variable}" if after.skip in (Skip.TO_FIRST, Skip.TO_LAST) else ""
        facts["after"] = f"{after.skip.value}{to}"
    facts["partition"] = ", ".join(query.partition_by) or "none: the whole input"
    facts["window"] = _window_text(definition.window)
    if definition.max_length is not None:
        facts["length"] = f"at most {definition.max_length} rows"
    facts["output"] = definition.rows_per_match.value
    return facts


def _partition_text(query: AnalyzedQuery) -> str:
    tests = " ".join(equivalence_text(test) for test in query.definition.equivalence_tests)
    if query.partition_by:
        return tests
    return f"none; {tests} is an ordinary predicate here" if tests else "none: the whole input"


def _window_text(window: Window | None) -> str:
    if window is None:
        return "none: a partial match is kept until the end of the input"
    if window.unit is WindowUnit.EVENTS:
        return f"{window_text(window)}: first and last event of a match are less than {window.size} positions apart"
    return f"{window_text(window)}: the last event of a match comes less than that after the first"
