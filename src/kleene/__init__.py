"""Kleene finds patterns in event data: sequences, repetitions and absences of events that belong together."""

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
from kleene.ir.own import aggregate, function
from kleene.options import EngineOptions, Schema, SparkOptions, StreamOptions
from kleene.program import Program, program
from kleene.steps import StepPattern, begin
from kleene.watching import show_progress

__all__ = [
    "AnalysisError",
    "EngineOptions",
    "ExecutionError",
    "KleeneError",
    "KleeneWarning",
    "LimitError",
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
