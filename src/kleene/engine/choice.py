"""Which engine runs a plan, and why."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.code import NotExpressibleError
from kleene.engine.compiled.regex_engine import RegexProgram
from kleene.engine.compiled.row_engine import RowProgram
from kleene.engine.compiled.sase_engine import SaseProgram
from kleene.engine.compiled.sequence_engine import SequenceProgram
from kleene.errors import UnsupportedError
from kleene.ir.options import Selection
from kleene.plan.operators import RunScan
from kleene.plan.plan import Plan
from kleene.plan.running import negation_access, run_ending_negations, running_query

TINY, SMALL = 1_000, 10_000
"""Up to so many events the interpreter is done before machine code is read from disk, or made."""
AnyProgram = SaseProgram | SequenceProgram | RowProgram | RegexProgram


@dataclass(frozen=True, slots=True)
class Choice:
    """`engine` is compiled, generated, reference, or nothing, for a query that has no matches.

    The first two have a program, which makes its code once for each set of columns that have NULLs.
    """

    engine: str
    reason: str
    program: AnyProgram | None = None


def choose(plan: Plan, nullable: frozenset[str] | None = None) -> Choice:
    """The engine for the plan; an error if the one that was asked for cannot run it.

    Code is made for tables in which only these columns have NULLs, or all if nothing is known.
    """
    _check_algorithm(plan)
    if plan.engine == "reference":
        return Choice("reference", "the plain interpreter, as was asked for")
    if plan.pipeline is not None and plan.pipeline.is_empty:
        return Choice("nothing", "no match can exist, so that no event is read")
    engine = "compiled" if plan.engine == "auto" else plan.engine
    try:
        program = program_of(plan, engine == "compiled")
        if plan.query.schema is not None:
            program.generated(frozenset(plan.query.schema) if nullable is None else nullable)
    except (NotExpressibleError, UnsupportedError) as reason:
        problem = reason.message if isinstance(reason, UnsupportedError) else str(reason)
    except RecursionError:
        problem = "expressions that nest so deeply"
    else:
        reasons = {
            "auto": "machine code made for this query; "
            f"up to {SMALL:,} events, if none is at hand, the interpreter answers",
            "compiled": "machine code made for this query, as was asked for",
            "generated": "the code made for this query, as plain Python",
        }
        return Choice(engine, reasons[plan.engine], program)
    if plan.engine != "auto" or plan.hints.given():
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


def program_of(plan: Plan, jit: bool) -> AnyProgram:
    """The kernels of the plan, of which none is made yet."""
    query, pipeline = plan.query, plan.pipeline
    if not isinstance(query, AnalyzedQuery):
        is_regex = query.definition.selection is Selection.FIRST_COMPLETED
        return RegexProgram(query, jit) if is_regex else RowProgram(query, jit)
    assert pipeline is not None
    if pipeline.is_sequence:
        return SequenceProgram(query, pipeline, jit)
    return SaseProgram(
        running_query(query, pipeline),
        pipeline.get(RunScan).algorithm,
        jit,
        negation_access(pipeline),
        run_ending_negations(pipeline),
    )
