"""How a query's kernels are run, and when that changes: loops that serve every query first, machine code then.

| tier | what runs | made |
| --- | --- | --- |
| tables | the loops of `tables`, with tables made from the query's code | in milliseconds |
| machine | machine code made for the query alone | in seconds, in the background |
| plain | the query's code as plain Python | in milliseconds |

The tiers have the same arguments and leave the same state, so that the machine code takes over between two pieces of
the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from kleene.cache import cache_folder
from kleene.engine.compiled import background
from kleene.engine.compiled.columns import Layout
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.engine.compiled.jit import Kernels, is_loaded, is_stored


class Tier(Enum):
    """What was asked for; `AUTO` is tables until machine code is there."""

    AUTO = "auto"
    TABLES = "tables"
    MACHINE = "machine"
    PLAIN = "plain"


def table_kernels(
    source: str, signatures: Mapping[str, str], layout: Layout, registers: Any | None, outputs: int
) -> Kernels | None:
    """The kernels by tables; None where there are no instructions for the source."""
    from kleene.engine.compiled.tables.kernels import kernels_of  # imports numba, which few calls need
    from kleene.engine.compiled.tables.translate import NotTranslatableError

    try:
        return kernels_of(source, list(signatures), layout, registers, outputs)
    except NotTranslatableError:
        return None


def has_loops(names: Mapping[str, str]) -> bool:
    """Whether the loops that serve kernels of these names need not be compiled first."""
    from kleene.engine.compiled.tables.generic import needed_for, source_of_any

    folder = cache_folder()
    for name in needed_for(names):
        source, signatures = source_of_any(name)
        if not is_loaded(source, signatures) and (folder is None or not is_stored(source, signatures, folder)):
            return False
    return True


def ask_for_loops(names: Iterable[str]) -> None:
    """Has the loops that serve every query made in the background, those for kernels of these names first.

    The first calls on a machine do without them.
    """
    from kleene.engine.compiled.tables.generic import all_sources, needed_for

    sources = all_sources()
    for name in dict.fromkeys([*needed_for(names), *sources]):
        background.ask_for(*sources[name])


def not_by_tables() -> NotExpressibleError:
    return NotExpressibleError("a part of the query, in the loops that serve every query")


__all__ = ["Tier", "ask_for_loops", "has_loops", "not_by_tables", "table_kernels"]
