"""Compares the generated engine with the reference engine, on one query and one table, in every way it can be run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

import kleene
from flat_options import arguments
from kleene.engine import budget, reference, results, row_columns, rows, spilling
from kleene.engine.compiled import row_engine
from kleene.engine.compiled.failures import GaveUpError
from regex_strategies import outcome, random_regex_case, same_result
from row_strategies import random_row_case
from strategies import event_table, queries_with_events, some_examples

Example = tuple[Any, pa.Table]
CANNOT_RUN = tuple(
    f"the {name} engine {problem}"
    for name in ("generated", "compiled", "tables")
    for problem in ("has no code for", "cannot run")
)
"""How the error begins that says that an engine lacks something."""


def sase_examples(count: int, seed: int) -> list[Example]:
    """A query is a text and the options of `match`."""
    drawn = some_examples(queries_with_events(), lambda _: True, count, seed)
    return [((str(query), {"order_by": "t", "format": query.format}), event_table(events)) for query, events in drawn]


EXAMPLES: dict[str, Callable[[random.Random], Example]] = {"row pattern": random_row_case, "regex": random_regex_case}


def query_of(language: str, said: Any) -> tuple[kleene.Query, dict[str, Any]]:
    match language:
        case "sase":
            return kleene.sase(said[0]), said[1]
        case "row pattern":
            return kleene.match_recognize(said), {}
    return kleene.regex(**said), {}


def disagreement(
    language: str, said: Any, table: pa.Table, chance: random.Random, engine: str = "generated", share: float = 1.0
) -> str | None:
    """What is different, if anything, when the generated code runs on the whole table and on pieces of it.

    Machine code is made for the whole table only, with the algorithm that is chosen by itself. Other algorithms, and
    ways in batches and in pieces, are tried with the chance of `share`.
    """
    is_plain = engine in ("generated", "tables")
    try:
        query, options = query_of(language, said)
    except kleene.KleeneError:
        return None  # a query that means nothing
    expected = outcome(lambda: query.match(table, engine="reference", **options))
    others = ("basic", "backtrack") if language == "sase" and is_plain else ()
    for algorithm in ("auto", *(name for name in others if chance.random() < share)):
        ways = {"engine": engine, "algorithm": algorithm, **options}
        found = outcome(lambda ways=ways: query.match(table, **arguments(ways)))
        if isinstance(found, kleene.UnsupportedError) and found.message.startswith(CANNOT_RUN):
            return None
        if isinstance(found, kleene.UnsupportedError) and "algorithm 'backtrack' cannot" in found.message:
            continue
        if not same_result(expected, found):
            return f"{algorithm}:\n{shown(found)}\nreference:\n{shown(expected)}"
        if is_plain and chance.random() < share:
            with tiny_blocks():
                found = outcome(lambda ways=ways: query.match_batches(table, **arguments(ways)).read_all())
            if not same_result(expected, found):
                return f"{algorithm}, in batches:\n{shown(found)}\nreference:\n{shown(expected)}"
        if isinstance(expected, pa.Table) and is_plain and algorithm != "backtrack" and chance.random() < share:
            problem = disagreement_in_pieces(query, table, expected, chance, ways)
            if problem is not None:
                return f"{algorithm}, {problem}"
    return None


@contextmanager
def tiny_blocks() -> Iterator[None]:
    """Results leave after every few rows, and what waits to be put in order does so on disk."""
    sizes = [
        (budget, "_LEAST_AT_ONCE", 1 << 12),
        (budget, "_MOST_AT_ONCE", 1 << 12),
        (row_engine, "STATES_AT_ONCE", 16),
        (row_columns, "ROWS_AT_ONCE", 8),
        (reference, "POSITIONS_AT_ONCE", 16),
        (rows, "ROWS_AT_ONCE", 7),
        (results, "ROWS_PER_BATCH", 32),
        (spilling, "MOST_RUNS", 3),
    ]
    with ExitStack() as stack:
        for module, name, size in sizes:
            stack.enter_context(mock.patch.object(module, name, size))
        yield


def disagreement_in_pieces(
    query: kleene.Query, table: pa.Table, expected: pa.Table, chance: random.Random, options: dict[str, Any]
) -> str | None:
    """The same rows, in any order, must come out when the table is fed in pieces with snapshots between them."""
    whole = in_order(query, table, options)
    try:
        parts = fed_in_pieces(query, whole, chance, options)
    except GaveUpError:
        return None  # what the interpreter decides for a whole table nobody can decide for pieces
    found = pa.concat_tables(parts)
    if found.schema != expected.schema or as_set(found) != as_set(expected):
        return f"in pieces:\n{shown(found)}\nreference:\n{shown(expected)}"
    return None


def in_order(query: kleene.Query, table: pa.Table, options: dict[str, Any]) -> pa.Table:
    """The rows as the query orders them, those of its columns that it reads."""
    read = query.progress(table, **arguments(options))._read(table)
    return read.select([name for name in table.column_names if name in read.column_names])


def fed_in_pieces(
    query: kleene.Query, table: pa.Table, chance: random.Random, options: dict[str, Any]
) -> list[pa.Table]:
    progress = query.progress(table, **arguments(options))
    cuts = sorted(chance.randrange(table.num_rows + 1) for _ in range(chance.randrange(1, 5)))
    parts = []
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        parts.append(progress.feed(table.slice(begin, end - begin)))
        if chance.random() < 0.5:
            progress = query.progress(table, snapshot=progress.snapshot(), **arguments(options))
    return [*parts, progress.finish()]


def as_set(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def shown(result: Any) -> str:
    return "\n".join(map(str, result.to_pylist())) if isinstance(result, pa.Table) else repr(result)
