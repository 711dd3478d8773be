"""Which engine runs a plan, with which algorithm, and why."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.code import NotExpressibleError, check_source
from kleene.engine.compiled.regex_code import generate_regex
from kleene.engine.compiled.row_code import generate_rows
from kleene.engine.compiled.sase import generate, what_it_walks
from kleene.errors import UnsupportedError
from kleene.ir.options import Selection
from kleene.plan.plan import Plan

TINY, SMALL = 1_000, 10_000
"""Up to so many events the interpreter is done before machine code is read from disk, or made."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`engine` is compiled, generated or reference; `algorithm` is that of SASE+ runs, None for other queries."""

    engine: str
    reason: str
    algorithm: str | None = None
    algorithm_reason: str = ""


def choose(plan: Plan) -> Choice:
    """The engine for the plan; an error if the one that was asked for cannot run it."""
    algorithm, why = _choose_algorithm(plan)
    if plan.engine == "reference":
        if plan.algorithm not in ("auto", "basic"):
            raise UnsupportedError(
                f"the reference engine has no algorithm '{plan.algorithm}'", hint="Leave out engine, or algorithm."
            )
        return Choice("reference", "the plain interpreter, as was asked for")
    problem = _problem(plan, algorithm)
    if problem is None:
        engine = "compiled" if plan.engine == "auto" else plan.engine
        reasons = {
            "auto": "machine code made for this query; "
            f"up to {SMALL:,} events, if none is at hand, the interpreter answers",
            "compiled": "machine code made for this query, as was asked for",
            "generated": "the code made for this query, as plain Python",
        }
        return Choice(engine, reasons[plan.engine], algorithm, why)
    if plan.engine != "auto":
        raise UnsupportedError(
            f"the {plan.engine} engine cannot run this query: {problem}", hint="Use engine='auto' or 'reference'."
        )
    return Choice("reference", f"the plain interpreter, since the compiled engine has no code for {problem}")


def source_of(plan: Plan, choice: Choice) -> str:
    """The code that the compiled engine makes for the plan, where no column has NULLs."""
    query = plan.query
    if isinstance(query, AnalyzedQuery):
        assert choice.algorithm is not None
        return generate(query, frozenset(), choice.algorithm).source
    if query.definition.selection is Selection.FIRST_COMPLETED:
        return generate_regex(query, frozenset()).source
    return generate_rows(query, frozenset()).source


def _choose_algorithm(plan: Plan) -> tuple[str | None, str]:
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        if plan.algorithm != "auto":
            raise UnsupportedError("algorithm is for SASE queries", hint="Leave it out.")
        return None, ""
    walked = what_it_walks(query)
    if plan.algorithm != "auto":
        if plan.algorithm in ("merge", "backtrack") and walked is not None:
            raise UnsupportedError(
                f"the algorithm '{plan.algorithm}' cannot be used here: a predicate of '{walked}' looks at every event "
                "of a Kleene variable",
                hint="Use algorithm='basic' or 'auto'.",
            )
        return plan.algorithm, "as was asked for"
    if walked is not None:
        return "basic", f"a predicate of '{walked}' looks at every event of a Kleene variable, so runs stay apart"
    return "merge", "runs in the same state that agree in all values still read go on as one"


def _problem(plan: Plan, algorithm: str | None) -> str | None:
    """What the compiled engine cannot do; None if it can do all of it."""
    query = plan.query
    if query.schema is None:
        return None
    try:
        if isinstance(query, AnalyzedQuery):
            assert algorithm is not None
            check_source(generate(query, frozenset(query.schema), algorithm).source)
        elif query.definition.selection is Selection.FIRST_COMPLETED:
            check_source(generate_regex(query, frozenset(query.schema)).source)
        else:
            check_source(generate_rows(query, frozenset(query.schema)).source)
    except (NotExpressibleError, UnsupportedError) as reason:
        return reason.message if isinstance(reason, UnsupportedError) else str(reason)
    except RecursionError:
        return "expressions that nest so deeply"
    return None
