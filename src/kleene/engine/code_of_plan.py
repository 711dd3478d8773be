"""The machine code that a plan's tasks may use: found where the plan is made, and sent along with the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kleene.cache import cache_folder
from kleene.engine.choice import choose
from kleene.engine.compiled import background
from kleene.engine.compiled.jit import Code, receive, stored_code
from kleene.engine.compiled.programs import GeneratedCode
from kleene.engine.compiled.warming import once_for_a_machine
from kleene.plan.plan import Plan

__all__ = ["Code", "code_of", "receive_in_task"]


def code_of(plan: Plan) -> Code:
    """What lies on disk here: code made for the query, and the loops that every query shares.

    What was not made for the query yet is asked for, so that the next job has it.
    """
    found: dict[tuple[str, str], bytes] = {}
    for generated in _generated(plan):
        own = stored_code(generated.source, generated.signatures)
        if not own:
            background.ask_for(generated.source, generated.signatures)
        found |= own
    return {**found, **_loops()}


_complete: dict[Path | None, Code] = {}


def _loops() -> Code:
    """The loops that every query shares, as far as they were made; `kleene warm` makes all of them."""
    folder = cache_folder()
    if folder in _complete:
        return _complete[folder]
    sources = once_for_a_machine().values()
    found = {key: code for told in sources for key, code in stored_code(*told).items()}
    if len(found) == len(sources):
        _complete[folder] = found
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
