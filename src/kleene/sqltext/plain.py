"""A text with constructs of Kleene's to plain SQL."""

from __future__ import annotations

from collections.abc import Mapping

from kleene.ir.own import NO_FUNCTIONS, Own
from kleene.lang.expressions import check_is_text
from kleene.source import SourceText
from kleene.sqltext.clauses import first_clause
from kleene.sqltext.constructs import Backend, Kind, replace_constructs
from kleene.sqltext.pattern_windows import first_pattern_window
from kleene.sqltext.statement import Args, Statement

KINDS: tuple[Kind, ...] = (first_clause, first_pattern_window)
"""All kinds of constructs that a text may hold."""


def plain_statement(text: str, args: Args, backend: Backend, functions: Mapping[str, Own] = NO_FUNCTIONS) -> Statement:
    """The text as plain SQL, in which stand-ins take the places of the constructs. What they stand for has been run."""
    check_is_text(text)
    return replace_constructs(Statement(SourceText(text), text, args, functions), backend, KINDS)
