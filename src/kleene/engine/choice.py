"""Which engine runs a plan, and why: a plan to its engine."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.regex_engine import RegexEngine
from kleene.engine.compiled.row_engine import RowEngine
from kleene.engine.compiled.run_engine import RunEngine
from kleene.engine.compiled.sequence_engine import SequenceEngine
from kleene.engine.compiled.steps_engine import StepsEngine
from kleene.engine.compiled.tiers import Tier
from kleene.engine.interpreter import Interpreter, NoMatchEngine
from kleene.engine.steps.interpreter import StepsInterpreter
from kleene.errors import UnsupportedError
from kleene.ir.calls import calls_own
from kleene.ir.options import Selection, Timeouts
from kleene.plan.operators import RunScan, negation_access, run_ending_negations, running_query
from kleene.plan.plan import Plan

TINY, SMALL = 1_000, 10_000
"""Up to so many events the interpreter is done before machine code is read from disk, or made."""
CompiledEngine = RunEngine | SequenceEngine | RowEngine | RegexEngine | StepsEngine
_REASONS = {
    "auto": f"machine code made for this query; up to {SMALL:,} events, the interpreter answers if no code is at hand",
    "compiled": "machine code made for this query, as requested",
    "tables": "loops that serve every query, as requested",
    "generated": "the code made for this query, as plain Python",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs a query. `name` is compiled, generated, reference, or nothing, for a query that has no matches.

    `reason` is a noun phrase that fits after "the query is run by …"; what follows it there may say why.
    """

    name: str
    reason: str
    engine: CompiledEngine | Interpreter | StepsInterpreter | NoMatchEngine

    @property
    def compiled(self) -> CompiledEngine | None:
        """The engine, if it runs code made for the query; it makes that once for each set of columns with NULLs."""
        return None if isinstance(self.engine, (Interpreter, StepsInterpreter, NoMatchEngine)) else self.engine


def choose(plan: Plan, nullable: frozenset[str] | None = None) -> Choice:
    """The engine for the plan; an error if the one that was asked for cannot run it.

    Code is made for tables in which only these columns have NULLs, or all if nothing is known.
    """
    _check_algorithm(plan)
    if plan.engine == "reference":
        return Choice("reference", "the plain interpreter, as requested", interpreter_of(plan))
    if plan.pipeline is not None and plan.pipeline.is_empty:
        return Choice("nothing", "an empty engine: no match can exist, so no event is read", NoMatchEngine())
    name = "compiled" if plan.engine == "auto" else plan.engine
    try:
        engine = _generating(plan, name in ("compiled", "tables"), nullable)
    except NotExpressibleError as missing:
        problem = f"has no code for {missing}"
    except RecursionError:
        problem = "has no code for expressions nested this deeply"
    except UnsupportedError as limit:
        problem = f"cannot run this query: {limit.message}"
    else:
        return Choice(name, _REASONS[plan.engine], engine)
    if plan.engine != "auto" or plan.hints.given():
        raise UnsupportedError(
            f"the {name} engine {problem}",
            hint="Use engine='auto' or 'reference', without hints.",
        )
    if calls_own(plan.query.definition):
        try:
            plain = _generating(plan, False, nullable)
        except (NotExpressibleError, RecursionError, UnsupportedError) as missing:
            problem = f"has no code for {missing}" if isinstance(missing, NotExpressibleError) else problem
        else:
            why = f"the code made for this query, as plain Python, since the compiled engine {problem}"
            return Choice("generated", why, plain)
    why = f"the plain interpreter, since the compiled engine {problem}"
    return Choice("reference", why, interpreter_of(plan))


def interpreter_of(plan: Plan) -> Interpreter | StepsInterpreter:
    """The oracle: of steps, it goes through pieces; of all others, it needs the whole input."""
    return StepsInterpreter(plan) if isinstance(plan.query, AnalyzedSteps) else Interpreter(plan)


def _generating(plan: Plan, jit: bool, nullable: frozenset[str] | None) -> CompiledEngine:
    engine = _engine_of(plan, jit)
    if plan.query.schema is not None:
        known = frozenset(plan.query.schema) if nullable is None else nullable
        engine.generated(known)
        if jit and plan.engine == "tables":
            engine.kernel(known)  # whether there are instructions for the query shows when they are made
    return engine


def _check_algorithm(plan: Plan) -> None:
    is_sase = isinstance(plan.query, AnalyzedQuery) and not isinstance(plan.query, AnalyzedSteps)
    if plan.algorithm != "auto" and not is_sase:
        raise UnsupportedError("algorithm is for SASE queries", hint="Leave it out.")
    if plan.engine == "reference":
        if plan.algorithm not in ("auto", "basic"):
            raise UnsupportedError(
                f"the reference engine has no algorithm '{plan.algorithm}'", hint="Leave out engine or algorithm."
            )
        if plan.hints.given():
            raise UnsupportedError("the reference engine takes no plan", hint="Leave out engine or plan.")


_ENGINES: dict[tuple[int, bool], CompiledEngine] = {}
"""The engines of plans that are in use, by their identity: equal plans may stand at different places of a text."""


def _engine_of(plan: Plan, jit: bool) -> CompiledEngine:
    """The engine of the plan, made once, so that its code is made once for each set of columns with NULLs."""
    key = (id(plan), jit)
    if key not in _ENGINES:
        _ENGINES[key] = compiled_engine(plan, jit)
        weakref.finalize(plan, _ENGINES.pop, key, None)
    return _ENGINES[key]


def compiled_engine(plan: Plan, jit: bool) -> CompiledEngine:
    """The kernels of the plan, of which none is made yet."""
    engine = _kernels_of(plan, jit)
    # No loops serve every pattern in steps.
    engine.tier = Tier.MACHINE if isinstance(engine, StepsEngine) else _TIERS.get(plan.engine, Tier.MACHINE)
    return engine


_TIERS = {"auto": Tier.AUTO, "tables": Tier.TABLES}


def _kernels_of(plan: Plan, jit: bool) -> CompiledEngine:
    query, pipeline, limit = plan.query, plan.pipeline, plan.run_limit
    if isinstance(query, AnalyzedSteps):
        if plan.timeouts is not Timeouts.NONE:
            raise NotExpressibleError("timeouts of patterns in steps")
        if plan.engine == "tables":
            raise NotExpressibleError("patterns in steps, in the loops that serve every query")
        return StepsEngine(plan, jit)
    if not isinstance(query, AnalyzedQuery):
        is_regex = query.definition.selection is Selection.FIRST_COMPLETED
        return RegexEngine(query, jit, limit) if is_regex else RowEngine(query, jit, limit)
    assert pipeline is not None
    if pipeline.is_sequence:
        return SequenceEngine(query, pipeline, jit, plan.format, limit)
    own, algorithm = running_query(query, pipeline), pipeline.get(RunScan).algorithm
    access, ending = negation_access(pipeline), run_ending_negations(pipeline)
    return RunEngine(own, algorithm, jit, access, ending, plan.format, limit)
