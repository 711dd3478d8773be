"""A plan and a table to its aggregates over all matches: by one walk over the graph, or match by match."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.budget import Budget
from kleene.engine.choice import Choice
from kleene.engine.compiled.buffer import Buffer
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.run_engine import RunEngine
from kleene.engine.compiled.run_piece import RunPiece
from kleene.engine.matches import FoundMatches, flat_matches
from kleene.engine.protocol import Engine, Found
from kleene.engine.totals.channels import channels_of
from kleene.engine.totals.graph import graph_of, sums_of_graph
from kleene.engine.totals.groups import Totals, totals_of
from kleene.engine.totals.listed import joined_sums, sums_of_matches
from kleene.ir.options import Format
from kleene.plan.plan import Plan


def why_match_by_match(plan: Plan, choice: Choice, nullable: frozenset[str]) -> str | None:
    """Why matches are made one by one, a clause that fits after "since"; None if one walk over the graph will do."""
    engine = choice.compiled
    if choice.name == "nothing":
        return None
    if plan.format is Format.NON_OVERLAPPING:
        return "non-overlapping matches are chosen among those that are made"
    if engine is None:
        return f"the query is run by {choice.reason}"
    if not isinstance(engine, RunEngine):
        return "sequence operators share no graph of their matches"
    if not engine.is_merged:
        return f"the algorithm '{engine.algorithm}' does not merge runs"
    if plan.query.schema is not None and engine.generated(nullable).has_accept:
        return "HAVING, or a negation, is decided on whole matches"
    return None


def totals_by_graph(query: AnalyzedQuery, engine: RunEngine, table: pa.Table, budget: Budget) -> Totals:
    progress = engine.start(budget)
    piece, done = progress.completions(table)
    assert progress.buffer is not None
    return totals_of_piece(query, piece, progress.buffer, done, engine.jit)


def totals_of_piece(query: AnalyzedQuery, piece: RunPiece, buffer: Buffer, done: Array, jit: bool) -> Totals:
    """Those of the matches that end in a piece, of which the buffer is whole."""
    table = piece.table
    graph = graph_of(piece, buffer, done, jit)
    used = [graph.events_of(component) for component in range(len(query.components))]
    channels = channels_of(query, table, used)
    return totals_of(query, table, graph.ends, sums_of_graph(graph, channels), channels)


def totals_by_match(query: AnalyzedQuery, engine: Engine, table: pa.Table, budget: Budget) -> Totals:
    """The same from matches that are made one by one, of which few are held at a time."""
    return totals_of_found(query, engine.start(budget, Meter()).feed(table, is_last=True), table)


def totals_of_found(query: AnalyzedQuery, all_found: Iterable[Found], table: pa.Table) -> Totals:
    """Those of matches as an engine finds them. They refer to one table: the one that was fed, or a wider one."""
    components = len(query.components)
    channels = channels_of(query, table, [np.arange(table.num_rows)] * components)
    parts = [sums_of_matches(flat_matches([], components), channels)]
    for found in all_found:
        assert isinstance(found, FoundMatches)
        if len(found.matches) and found.table is not table:  # with events that were kept from before
            assert len(parts) == 1, "a piece has one table"
            table = found.table
            channels = channels_of(query, table, [np.arange(table.num_rows)] * components)
            parts = [sums_of_matches(flat_matches([], components), channels)]
        if len(found.matches):
            parts.append(sums_of_matches(found.matches, channels))
    ends = np.concatenate([ends for ends, _ in parts])
    return totals_of(query, table, ends, joined_sums([sums for _, sums in parts]), channels)
