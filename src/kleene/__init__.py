"""Kleene finds patterns in event data: sequences, repetitions and absences of events that belong together."""

from kleene.api import Query, sase
from kleene.errors import (
    AnalysisError,
    ExecutionError,
    KleeneError,
    QuerySyntaxError,
    SchemaError,
    SnapshotError,
    UnsupportedError,
)
from kleene.program import Program, program

__all__ = [
    "AnalysisError",
    "ExecutionError",
    "KleeneError",
    "Program",
    "Query",
    "QuerySyntaxError",
    "SchemaError",
    "SnapshotError",
    "UnsupportedError",
    "program",
    "sase",
]
__version__ = "0.1.0"
