"""All calls of a query by name, and the error that a call ends with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kleene


def calls_of(query: kleene.Query) -> dict[str, Callable[..., Any]]:
    return {
        "match": query.match,
        "match_batches": query.match_batches,
        "explain": query.explain,
        "progress": query.progress,
        "compressed": query.compressed,
        "program": kleene.Program((query,)).match,
        "program, explained": kleene.Program((query,)).explain,
    }


def error_of(call: Callable[[], Any]) -> kleene.KleeneError | None:
    try:
        call()
    except kleene.KleeneError as error:
        return error
    return None
