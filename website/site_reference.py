"""The page with all public names, from their docstrings."""

from __future__ import annotations

import kleene

_PARTS = {
    "Queries": ["sase", "match_recognize", "pattern_window", "regex", "begin", "program", "sql"],
    "What a query can do": ["Query", "StepPattern", "Program", "Progress", "Found", "Picture"],
    "Inputs and results": ["scan", "expand", "show_progress"],
    "Options": ["EngineOptions", "Schema", "SparkOptions", "StreamOptions"],
    "Functions of your own": ["function", "aggregate"],
    "Spark and streams": ["register", "stream_metrics", "last_notes"],
    "Errors": [
        "KleeneError",
        "QuerySyntaxError",
        "AnalysisError",
        "UnsupportedError",
        "SchemaError",
        "ExecutionError",
        "LimitError",
        "SnapshotError",
        "KleeneWarning",
    ],
}


def reference_page() -> str:
    """The text of the page; names that no part has come last, so that none is ever missing."""
    named = {name for names in _PARTS.values() for name in names}
    parts = {**_PARTS, "More": [name for name in kleene.__all__ if name not in named]}
    text = "# Reference\n\nAll public names of `kleene`, with what their docstrings say.\n"
    for title, names in parts.items():
        if names:
            text += f"\n## {title}\n" + "".join(f"\n::: kleene.{name}\n" for name in names)
    return text
