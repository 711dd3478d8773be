"""Kleene finds patterns in event data: sequences, repetitions and absences of events that belong together.

A public name is imported when it is first used: a command that prints its help, or a task on a cluster that only runs
an engine, does not wait for parsers and planners.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kleene.api import (
        Progress,
        Query,
        expand,
        last_notes,
        match_recognize,
        pattern_window,
        regex,
        register,
        sase,
        scan,
        sql,
        stream_metrics,
    )
    from kleene.errors import (
        AnalysisError,
        ExecutionError,
        KleeneError,
        KleeneWarning,
        LimitError,
        QuerySyntaxError,
        SchemaError,
        SnapshotError,
        UnsupportedError,
    )
    from kleene.found import Found
    from kleene.ir.own import aggregate, function
    from kleene.options import EngineOptions, Schema, SparkOptions, StreamOptions
    from kleene.plot.picture import Picture
    from kleene.programs import Program, program
    from kleene.steps import StepPattern, begin
    from kleene.watching import show_progress

__all__ = [
    "AnalysisError",
    "EngineOptions",
    "ExecutionError",
    "Found",
    "KleeneError",
    "KleeneWarning",
    "LimitError",
    "Picture",
    "Program",
    "Progress",
    "Query",
    "QuerySyntaxError",
    "Schema",
    "SchemaError",
    "SnapshotError",
    "SparkOptions",
    "StepPattern",
    "StreamOptions",
    "UnsupportedError",
    "aggregate",
    "begin",
    "expand",
    "function",
    "last_notes",
    "match_recognize",
    "pattern_window",
    "program",
    "regex",
    "register",
    "sase",
    "scan",
    "show_progress",
    "sql",
    "stream_metrics",
]
__version__ = "0.1.0"

_HOMES = {
    "errors": "AnalysisError ExecutionError KleeneError KleeneWarning LimitError QuerySyntaxError SchemaError "
    "SnapshotError UnsupportedError",
    "found": "Found",
    "ir.own": "aggregate function",
    "options": "EngineOptions Schema SparkOptions StreamOptions",
    "plot.picture": "Picture",
    "programs": "Program program",
    "steps": "StepPattern begin",
    "watching": "show_progress",
}
"""The modules of public names; what is not here is in `api`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'kleene' has no attribute '{name}'")
    home = next((module for module, names in _HOMES.items() if name in names.split()), "api")
    found = globals()[name] = getattr(import_module(f"kleene.{home}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext kleene` calls: it makes the cell magic `%%kleene` known."""
    from kleene.magic import load

    load(shell)
