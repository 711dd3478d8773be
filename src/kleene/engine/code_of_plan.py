"""The machine code that a plan's tasks may use: found where the plan is made, and sent along with the work."""

from __future__ import annotations

from collections.abc import Iterator

from kleene.engine.choice import choose
from kleene.engine.compiled import background
from kleene.engine.compiled.jit import Code, receive, stored_code
from kleene.engine.compiled.programs import GeneratedCode
from kleene.engine.compiled.tables.generic import needed_for, source_of_any
from kleene.plan.plan import Plan

__all__ = ["Code", "code_of", "receive_in_task"]


def code_of(plan: Plan) -> Code:
    """What lies on disk here: code made for the query, and the loops that serve every query.

    What was not made for the query yet is asked for, so that the next job has it.
    """
    found: dict[tuple[str, str], bytes] = {}
    for generated in _generated(plan):
        own = stored_code(generated.source, generated.signatures)
        if not own:
            background.ask_for(generated.source, generated.signatures)
        found |= own
        for name in needed_for(generated.signatures):
            found |= stored_code(*source_of_any(name))
    return found


def _generated(plan: Plan) -> Iterator[GeneratedCode]:
    """The code for tables without NULLs, and for those that may have them anywhere."""
    engine = choose(plan).compiled
    if engine is None or not engine.jit or plan.query.schema is None:
        return
    for nullable in (frozenset[str](), frozenset(plan.query.schema)):
        generated = engine.generated(nullable)
        if not generated.layout.called:
            yield generated


def receive_in_task(code: Code) -> None:
    """Takes what came with a task. The process compiles nothing in the background: others have the same work."""
    receive(code)
    background.never_here()
