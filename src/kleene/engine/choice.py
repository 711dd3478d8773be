"""Which engine runs a plan, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.code import NotExpressibleError, check_source
from kleene.engine.compiled.regex_code import generate_regex
from kleene.engine.compiled.row_code import generate_rows
from kleene.engine.compiled.sase import generate
from kleene.engine.compiled.sequence_code import generate_sequence
from kleene.errors import UnsupportedError
from kleene.ir.options import Selection
from kleene.plan.operators import Having, NegationFilter, Pipeline, RunScan
from kleene.plan.plan import Plan

TINY, SMALL = 1_000, 10_000
"""Up to so many events the interpreter is done before machine code is read from disk, or made."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`engine` is compiled, generated, reference, or nothing, for a query that has no matches."""

    engine: str
    reason: str


def choose(plan: Plan) -> Choice:
    """The engine for the plan; an error if the one that was asked for cannot run it."""
    _check_algorithm(plan)
    if plan.engine == "reference":
        return Choice("reference", "the plain interpreter, as was asked for")
    if plan.pipeline is not None and plan.pipeline.is_empty:
        return Choice("nothing", "no match can exist, so that no event is read")
    problem = _problem(plan)
    if problem is None:
        engine = "compiled" if plan.engine == "auto" else plan.engine
        reasons = {
            "auto": "machine code made for this query; "
            f"up to {SMALL:,} events, if none is at hand, the interpreter answers",
            "compiled": "machine code made for this query, as was asked for",
            "generated": "the code made for this query, as plain Python",
        }
        return Choice(engine, reasons[plan.engine])
    if plan.engine != "auto" or plan.hints.given():
        engine = "compiled" if plan.engine == "auto" else plan.engine
        raise UnsupportedError(
            f"the {engine} engine cannot run this query: {problem}",
            hint="Use engine='auto' or 'reference', without hints.",
        )
    return Choice("reference", f"the plain interpreter, since the compiled engine has no code for {problem}")


def _check_algorithm(plan: Plan) -> None:
    if plan.algorithm != "auto" and not isinstance(plan.query, AnalyzedQuery):
        raise UnsupportedError("algorithm is for SASE queries", hint="Leave it out.")
    if plan.engine == "reference":
        if plan.algorithm not in ("auto", "basic"):
            raise UnsupportedError(
                f"the reference engine has no algorithm '{plan.algorithm}'", hint="Leave out engine, or algorithm."
            )
        if plan.hints.given():
            raise UnsupportedError("the reference engine has no plans", hint="Leave out engine, or plan.")


def source_of(plan: Plan, nullable: frozenset[str] = frozenset()) -> str:
    """The code that the compiled engine makes for the plan, where only these columns have NULLs."""
    query, pipeline = plan.query, plan.pipeline
    if isinstance(query, AnalyzedQuery):
        assert pipeline is not None
        if pipeline.is_sequence:
            return generate_sequence(query, pipeline, nullable).source
        algorithm = pipeline.get(RunScan).algorithm
        own = planned_query(query, pipeline)
        return generate(own, nullable, algorithm, access_of(pipeline), ending_of(pipeline)).source
    if query.definition.selection is Selection.FIRST_COMPLETED:
        return generate_regex(query, nullable).source
    return generate_rows(query, nullable).source


def planned_query(query: AnalyzedQuery, pipeline: Pipeline) -> AnalyzedQuery:
    """The query with the predicates and negations that its plan has left."""
    runs, late = pipeline.get(RunScan), pipeline.find(NegationFilter)
    kept = {item.name: item for item in (*runs.negations, *(late.negations if late is not None else ()))}
    negations = tuple(kept[item.name] for item in query.negations if item.name in kept)
    having = pipeline.find(Having)
    return replace(
        query,
        components=runs.components,
        negations=negations,
        having=None if having is None else having.condition,
    )


def ending_of(pipeline: Pipeline) -> frozenset[str]:
    """The negations that end runs."""
    return frozenset(item.name for item in pipeline.get(RunScan).negations)


def access_of(pipeline: Pipeline) -> str:
    late = pipeline.find(NegationFilter)
    return "index" if late is None else late.access


def _problem(plan: Plan) -> str | None:
    """What the compiled engine cannot do; None if it can do all of it."""
    if plan.query.schema is None:
        return None
    try:
        check_source(source_of(plan, frozenset(plan.query.schema)))
    except (NotExpressibleError, UnsupportedError) as reason:
        return reason.message if isinstance(reason, UnsupportedError) else str(reason)
    except RecursionError:
        return "expressions that nest so deeply"
    return None
