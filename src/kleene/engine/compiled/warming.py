"""What a machine compiles once: the loops that serve every query. `kleene warm` makes them ahead of time."""

from __future__ import annotations

from collections.abc import Callable

from kleene.cache import cache_folder
from kleene.engine.compiled.jit import is_stored, load
from kleene.engine.compiled.loading import shared_names, shared_source
from kleene.engine.compiled.tables.generic import all_sources
from kleene.errors import ExecutionError


def warm(on_made: Callable[[str, int, int], None] | None = None) -> tuple[int, int]:
    """Compiles what is not in the cache folder yet; gives back how many loops were made, and how many there are.

    on_made is called before each loop with its name, its number and how many there are.
    """
    folder = cache_folder()
    if folder is None:
        raise ExecutionError(
            "machine code cannot be kept: no folder can be written to",
            hint="Name one of your own with the environment variable KLEENE_CACHE_DIR.",
        )
    sources = once_for_a_machine()
    made = 0
    for number, (name, (source, signatures)) in enumerate(sources.items()):
        if on_made is not None:
            on_made(name, number, len(sources))
        if not is_stored(source, signatures, folder):
            load(source, signatures)
            made += 1
    return made, len(sources)


def once_for_a_machine() -> dict[str, tuple[str, dict[str, str]]]:
    """The loops that every query shares: their sources and signatures, by name."""
    return {**{name: shared_source(name) for name in shared_names()}, **all_sources()}
