"""EXPLAIN: how a query is understood and how it will be run."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedFrame, AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.compile import automaton_of, scan_automaton, stacks_text
from kleene.automaton.model import Automaton
from kleene.automaton.svg import automaton_svg
from kleene.automaton.text import automaton_dot, automaton_text
from kleene.engine.analyze import analyzed
from kleene.engine.by_column.forms import left_to_the_interpreter
from kleene.engine.choice import Choice, choose
from kleene.engine.compiled import background
from kleene.engine.compiled.regex_starts import starts_text
from kleene.engine.compiled.sequence_code import prunes
from kleene.engine.range_shares import reach_or_reason
from kleene.engine.totals.totals import why_match_by_match
from kleene.errors import UnsupportedError, listed, printable
from kleene.ir.options import Selection, Skip, Strategy, Timeouts, Window, WindowUnit
from kleene.ir.row_text import pattern_text, row_query_text
from kleene.ir.steps import SkipMode, all_steps
from kleene.ir.steps_text import steps_text
from kleene.ir.text import equivalence_text, expression_text, query_text, window_text
from kleene.plan.operators import Pipeline, RowScan, SequenceScan, Transformation
from kleene.plan.plan import ByKey, Plan, output_columns
from kleene.plan.text import component_text, pipeline_text

_STRATEGIES = {
    Strategy.STRICT_CONTIGUITY: "selected events are neighbours in the whole input",
    Strategy.PARTITION_CONTIGUITY: "selected events are neighbours in their partition",
    Strategy.SKIP_TILL_NEXT_MATCH: "events that do not fit are passed over",
    Strategy.SKIP_TILL_ANY_MATCH: "any event may be passed over: all combinations",
}
_MOST_NAMED = 6
_SELECTIONS = {
    Selection.PREFERRED: "the most preferred match of each start row",
    Selection.ALL_MATCHES: "every classification of every start row",
    Selection.FIRST_COMPLETED: "the longest match at the first event that completes one; then matching starts over",
}


def explain_text(
    plan: Plan,
    table: pa.Table | None = None,
    place: tuple[str, str | None] = ("on Spark", None),
    notes: Sequence[str] = (),
) -> str:
    """The explanation; with a table, the plan is run on it and what was counted is added, and notes on the table.

    `place` says how events that are not in a table come to the engine, under its own heading.
    """
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        text, facts = row_query_text(query.definition), _row_facts(query)
        pipeline = _row_pipeline(query)
        warnings = query.warnings
    elif isinstance(query, AnalyzedSteps):
        text, facts = steps_text(query.definition), _step_facts(query)
        pipeline, warnings = _step_pipeline(query), query.warnings
    else:
        assert plan.pipeline is not None
        pipeline = plan.pipeline
        text, facts = query_text(query.definition), _facts(query, pipeline)
        warnings = (*query.warnings, *pipeline.warnings)
    choice = choose(plan)
    facts |= {"split": _split_text(plan)}
    facts |= dict(note.split(": ", 1) for note in pipeline.notes)
    facts |= {"engine": f"{choice.name}: {choice.reason}"}
    if choice.compiled is not None and background.is_on() and query.schema is not None:
        facts |= {"code": choice.compiled.tier_text(frozenset())}
    if isinstance(query, AnalyzedRowPattern) and choice.compiled is not None and query.schema is not None:
        facts |= _measures_fact(query)
    if plan.mode == "totals":
        facts |= {"matches": _totals_text(plan, choice)}
    if plan.timeouts is not Timeouts.NONE and not isinstance(query, AnalyzedSteps):
        facts |= {"timeouts": "once a window has passed, the interpreter follows again what its first event began"}
    lines = [text, "", *(f"{name:<10} {fact}" for name, fact in facts.items())]
    lines += [f"{'warning':<10} {warning}" for warning in warnings]
    figures = None if table is None else analyzed(plan, table)
    lines += _section("plan", pipeline_text(pipeline, None if figures is None else figures.operators))
    if figures is not None:
        lines += _section("run", "\n".join([*figures.whole, *notes]))
    heading, come = place
    if come is not None:
        lines += _section(heading, come)
    return "\n".join([*lines, *_section(*_states(plan, choice))])


def _totals_text(plan: Plan, choice: Choice) -> str:
    """How matches are added up."""
    nullable = frozenset(plan.query.schema or ())
    why = why_match_by_match(plan, choice, nullable)
    if why is None:
        return "none is made: one walk over the graph that they share adds them up"
    return f"each is made, and added up, since {why}"


def _section(name: str, text: str) -> list[str]:
    return ["", name, *("  " + line for line in text.splitlines())]


def explain_code(plan: Plan) -> str:
    """The source that is compiled for the query, for columns without NULLs."""
    if plan.query.schema is None:
        raise UnsupportedError(
            "code is made for known columns only", hint="Give events: query.explain(events, code=True)."
        )
    choice = choose(plan, frozenset())
    if choice.compiled is None:
        raise UnsupportedError(f"no code is made for this query, which is run by {choice.reason}")
    return choice.compiled.generated(frozenset()).source


def explain_dot(plan: Plan) -> str:
    return automaton_dot(drawn_automaton(plan))


def explain_svg(plan: Plan) -> str:
    return automaton_svg(drawn_automaton(plan))


def drawn_automaton(plan: Plan) -> Automaton:
    """What is drawn of a plan: the automaton that runs, or what puts events on stacks."""
    if plan.pipeline is not None and plan.pipeline.is_sequence:
        return scan_automaton(plan.pipeline)
    automaton = automaton_of(plan)
    if automaton is None:
        raise UnsupportedError("there is nothing to draw: no match can exist, so no automaton is made")
    return automaton


def _states(plan: Plan, choice: Choice) -> tuple[str, str]:
    """What the engine moves through, under its heading: the automaton that the code is made from, or stacks."""
    if plan.pipeline is not None and plan.pipeline.is_sequence:
        return "stacks", stacks_text(plan.pipeline)
    automaton = choice.engine.automaton
    return "automaton", "none: no match can exist" if automaton is None else automaton_text(automaton)


def _row_pipeline(query: AnalyzedRowPattern) -> Pipeline:
    definition = query.definition
    how = {
        Selection.PREFERRED: "depth first, in order of preference; a state and row that failed are not tried again",
        Selection.ALL_MATCHES: "depth first, every way",
        Selection.FIRST_COMPLETED: "partial matches are carried along, with their aggregates",
    }
    search = [f"({pattern_text(definition.pattern)})", how[definition.selection]]
    if definition.selection is Selection.FIRST_COMPLETED:
        search.append(starts_text(query))
    if query.partition_by:
        search.append(f"partitioned by {', '.join(query.partition_by)}")
    if definition.window is not None:
        search.append(f"within {window_text(definition.window)}")
    output = tuple(measure.name for measure in definition.measures or ())
    return Pipeline(()).put(RowScan(tuple(search)), Transformation((definition.rows_per_match.value, *output)))


def _split_text(plan: Plan) -> str:
    if isinstance(plan.split, ByKey):
        why = "equalities tie every event of a match to its key" if plan.split.is_implied else "the query's partition"
        return f"{plan.split}, {why}: each key is matched on its own, in any thread or task"
    if plan.mode != "verbose" or isinstance(reach_or_reason(plan), str):
        return str(plan.split)
    return f"{plan.split}; a large input is cut into ranges of the order key"


def _state_text(query: AnalyzedQuery, pipeline: Pipeline) -> str:
    """What must be kept between events, and what bounds it."""
    if pipeline.is_empty:
        return "nothing is kept"
    scan = pipeline.find(SequenceScan)
    kept = "runs and their events"
    if scan is not None:
        names = [component_text(item) for item in scan.components[:-1]]
        if not names:
            return "nothing is kept: each event is judged alone"
        kept = f"events of {', '.join(names)}"
    if scan is not None and scan.algorithm == "basic":
        kept = "every event"
    if not _is_bounded(query, pipeline):
        return f"{kept}, all of them, to the end: no window bounds them"
    assert query.window is not None
    reach = window_text(query.window)
    return f"{kept}, of the last {reach} only" + (
        "" if query.window.unit is WindowUnit.EVENTS else "; what is older is dropped"
    )


def _is_bounded(query: AnalyzedQuery, pipeline: Pipeline) -> bool:
    """Whether the window bounds what the plan keeps."""
    scan = pipeline.find(SequenceScan)
    return query.window is not None and (scan is None or prunes(query, pipeline))


def _facts(query: AnalyzedQuery, pipeline: Pipeline) -> dict[str, str]:
    return {
        "strategy": f"{query.strategy.value}: {_STRATEGIES[query.strategy]}",
        "partition": _partition_text(query),
        "window": _window_text(query.window),
        "state": _state_text(query, pipeline),
        "output": ", ".join(output_columns(query)),
    }


_AFTER = {
    SkipMode.NO_SKIP: "every match is given out",
    SkipMode.SKIP_TO_NEXT: "what begins with the same event is dropped",
    SkipMode.SKIP_PAST_LAST_EVENT: "what begins before the match has ended is dropped",
    SkipMode.SKIP_TO_FIRST: "what begins before the first event of the step is dropped",
    SkipMode.SKIP_TO_LAST: "what begins before the last event of the step is dropped",
}


def _step_facts(query: AnalyzedSteps) -> dict[str, str]:
    windows, after = query.pattern.windows, query.after
    step = "" if after.step is None else f" {after.step}"
    return {
        "after": f"{after.mode.value}{step}: {_AFTER[after.mode]}",
        "partition": ", ".join(query.key) or "none: the whole input",
        "window": "; ".join(map(_window_text, windows)) if windows else _window_text(None),
        "state": "runs and their events, "
        + ("of the last window only" if windows else "to the end: no window bounds them"),
        "output": ", ".join(output_columns(query)),
    }


def _step_pipeline(query: AnalyzedSteps) -> Pipeline:
    names = [f"!{step.name}" if step.negative is not None else step.name for step in all_steps(query.pattern.steps)]
    search = [f"({', '.join(names)})", "every run is followed through the automaton, event by event"]
    if query.partition_by:
        search.append(f"partitioned by {', '.join(query.partition_by)}")
    search += [f"within {window_text(window)}" for window in query.pattern.windows]
    return Pipeline(()).put(RowScan(tuple(search)), Transformation(tuple(output_columns(query))))


def _row_facts(query: AnalyzedRowPattern) -> dict[str, str]:
    definition = query.definition
    facts = {"matches": _SELECTIONS[definition.selection] if query.frame is None else _window_matches(query.frame)}
    after = definition.after_match
    if after is not None:
        to = f" {after.variable}" if after.skip in (Skip.TO_FIRST, Skip.TO_LAST) else ""
        facts["after"] = f"{after.skip.value}{to}"
    facts["partition"] = ", ".join(query.partition_by) or "none: the whole input"
    if not query.order_by:
        facts["order"] = "none is given: in process that of the input, on Spark by all columns"
    if query.frame is None:
        facts["window"] = _window_text(definition.window)
    else:
        facts["frame"] = _frame_text(query.frame)
    if definition.max_length is not None:
        facts["length"] = f"at most {definition.max_length} rows"
    facts["output"] = definition.rows_per_match.value
    return facts


def _measures_fact(query: AnalyzedRowPattern) -> dict[str, str]:
    """What has no column form is computed value by value; nothing is said where that is nothing."""
    parts = [part for item in query.measures for part in left_to_the_interpreter(item.expression)]
    texts = list(dict.fromkeys(printable(expression_text(part), 80) for part in parts))
    named = listed(texts, most=_MOST_NAMED)
    return {"measures": f"by column, except that the interpreter computes value by value: {named}"} if texts else {}


def _window_matches(frame: AnalyzedFrame) -> str:
    where = "at the row, or at the first row of its frame where there is one" if frame.seeks else "at the row"
    return f"for each row that is not skipped, the most preferred match that begins {where}"


def _frame_text(frame: AnalyzedFrame) -> str:
    if frame.rows is not None:
        return f"the row and the {frame.rows:,} that follow it" if frame.rows else "the row alone"
    return "the row and all that follow it" if frame.column is None else "as far as each row says"


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
