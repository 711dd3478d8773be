"""Compressed output (SASE+ 2008 §4.2): matches as the graph that they share, counted and read out of it on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import MATCH_END, AnalyzedQuery
from kleene.engine.budget import Budget
from kleene.engine.column_types import attributes_of
from kleene.engine.compiled.arrangement import ROW, ordered
from kleene.engine.compiled.arrays.advance_counters import ADVANCE_NODES
from kleene.engine.compiled.arrays.completions import COMPLETION_COLUMNS, COMPLETION_NODE, COMPLETION_ROW
from kleene.engine.compiled.arrays.counted import COUNTED_COLUMNS
from kleene.engine.compiled.arrays.expand_counters import (
    EXPAND_COMPLETION,
    EXPAND_COUNTERS,
    EXPAND_MATCHES,
    EXPAND_MOST,
    EXPAND_ROWS,
)
from kleene.engine.compiled.arrays.nodes import (
    NODE_BEFORE,
    NODE_COLUMNS,
    NODE_COMPONENT,
    NODE_NEXT,
    NODE_ROW,
    NODE_SHARED_COLUMNS,
)
from kleene.engine.compiled.arrays.statuses import CONTRADICTION, DONE, TOO_LARGE
from kleene.engine.compiled.arrays.windows import NO_WINDOW, WINDOW_IN_EVENTS
from kleene.engine.compiled.buffer import Buffer
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.run_engine import RunEngine
from kleene.engine.compiled.run_matches import NO_LIMIT, Expansion, judged
from kleene.engine.compiled.run_piece import RunPiece
from kleene.engine.events import Events
from kleene.engine.matches import FlatMatches, joined, size_of
from kleene.engine.output import output_table
from kleene.engine.saved_parts import require
from kleene.engine.snapshot import pack, unpack
from kleene.errors import AnalysisError, SnapshotError
from kleene.ir.query import QueryDefinition
from kleene.ir.text import query_text
from kleene.schema import EventSchema

MATCH_COUNT, STRUCTURE = "match_count", "structure"
AT_ONCE = 4096
"""How many rows of matches a lazy expansion makes at a time."""


class CompressedMatches:
    """The matches of a table, held together: one row for each event that completes matches.

    `len()` is the number of rows. Matches are counted without being made, and made on demand.
    """

    def __init__(
        self, query: AnalyzedQuery, engine: RunEngine, piece: RunPiece, buffer: Buffer, done: Array, budget: Budget
    ) -> None:
        """`done` are the completions of the piece, of which the buffer is whole."""
        self._query, self._table, self._engine, self._budget = query, piece.table, engine, budget
        self._piece, self._buffer = piece, buffer
        self._expansion = Expansion(engine.is_merged, len(query.components), engine.jit, NO_LIMIT, budget)
        self._needs_judge = self._piece.kernel.generated.has_accept
        ends = self._piece.grouped.order[done[:, COMPLETION_ROW]] if len(done) else done[:, COMPLETION_ROW]
        self._done = np.ascontiguousarray(done[np.argsort(ends, kind="stable")])
        ends = np.sort(ends)
        if self._needs_judge:
            # What HAVING or a negation forbids is known only of matches that are made.
            kept = [number for number in range(len(self._done)) if len(self._judged(self._done[number : number + 1]))]
            self._done, ends = self._done[kept], ends[kept]
        self._ends, self._begins = np.unique(ends, return_index=True)

    @classmethod
    def of_table(cls, query: AnalyzedQuery, engine: RunEngine, table: pa.Table, budget: Budget) -> CompressedMatches:
        progress = engine.start(budget)
        piece, done = progress.completions(table)
        assert progress.buffer is not None
        return cls(query, engine, piece, progress.buffer, done, budget)

    def __len__(self) -> int:
        return len(self._ends)

    def __repr__(self) -> str:
        return f"<{len(self):,} events that complete matches>"

    def __iter__(self) -> Iterator[CompressedRow]:
        return (CompressedRow(self, number) for number in range(len(self)))

    def __getitem__(self, number: int) -> CompressedRow:
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return CompressedRow(self, number % len(self))

    def count(self) -> int:
        """How many matches there are, exactly, however many."""
        return sum(self.counts())

    def counts(self) -> list[int]:
        """How many matches each row stands for."""
        by_completion = self._counts
        ends = [*self._begins[1:].tolist(), len(by_completion)]
        return [sum(by_completion[begin:end]) for begin, end in zip(self._begins.tolist(), ends, strict=False)]

    def expand(self) -> pa.Table:
        """All matches, as `match` gives them out."""
        self._check_size(self.count())
        return self._output(self._judged(self._done))

    def matches(self) -> Iterator[dict[str, Any]]:
        """All matches one after the other, made as they are asked for."""
        return self._lazily(self._done)

    def to_table(self) -> pa.Table:
        """The rows as a table: key, time of the completing event, count (as text, since it may be long), structure.

        A structure holds all that its matches are made of; `kleene.expand` makes them.
        """
        rows = range(len(self))
        taken = self._table.take(pa.array(self._ends))
        arrays: list[Any] = [taken.column(name) for name in (*self._query.key, self._query.order_by[0])]
        arrays += [pa.array(map(str, self.counts()), pa.string())]
        arrays += [pa.array([self[row].structure() for row in rows], pa.binary())]
        return pa.table(arrays, schema=compressed_schema(self._query, self._table.schema))

    def _check_size(self, matches: int) -> None:
        """An error if so many matches, of one event each, are more than can be held."""
        self._budget.hold("the matches that are asked for", 16 * matches)
        self._budget.hold("the matches that are asked for", 0)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _judged(self, done: Array) -> FlatMatches:
        """The matches of the completions that nothing forbids, by rows."""
        expanded = self._expansion.matches(self._piece, self._buffer, done)
        parts = [self._accepted(part, groups) for part, groups in expanded]
        return joined(parts, len(self._query.components))

    def _accepted(self, part: FlatMatches, groups: Array) -> FlatMatches:
        return judged(self._piece, part, groups, self._budget, Meter())[0]

    def _output(self, found: FlatMatches) -> pa.Table:
        positions = self._piece.grouped.order[found.positions]
        in_order = ordered(FlatMatches(found.offsets, found.lengths, positions), self._engine.jit)
        assert self._query.schema is not None
        events = Events(self._table, self._query.schema, self._query.order_by)
        return output_table(self._query, events, in_order)

    def _lazily(self, done: Array) -> Iterator[dict[str, Any]]:
        for part, groups in self._expansion.matches(self._piece, self._buffer, done, AT_ONCE):
            yield from self._output(self._accepted(part, groups)).to_pylist()

    @cached_property
    def _counts(self) -> list[int]:
        """How many matches each completion stands for."""
        if self._needs_judge:
            return [len(self._judged(self._done[n : n + 1])) for n in range(len(self._done))]
        if not self._engine.is_merged:
            return [1] * len(self._done)
        found = self._small_counts()
        return found if found is not None else self._large_counts()

    def _small_counts(self) -> list[int] | None:
        """The counts in 64 bits; None if that is not enough."""
        buffer = self._buffer
        nodes, room = int(buffer.counts[ADVANCE_NODES]), 1024
        totals, window = np.zeros(len(self._done), np.int64), self._piece.window_arguments
        while True:
            room = max(room, 4 * nodes)
            starts, counts = np.empty(room, np.int64), np.empty(room, np.int64)
            vectors = np.empty((max(nodes, 1), COUNTED_COLUMNS), np.int64)
            with np.errstate(over="ignore"):  # the loop notices
                status = shared_loops(self._engine.jit)["count_merged"](
                    buffer.node, nodes, vectors, starts, counts, self._done, totals, *window
                )
            if status == TOO_LARGE:
                return None
            if status == DONE:
                return [int(total) for total in totals]
            room *= 2

    def _large_counts(self) -> list[int]:
        """The counts in Python's integers, by the first event of a match, which decides when its window ends."""
        links = self._buffer.node[: self._buffer.counts[ADVANCE_NODES]].tolist()
        near = _Near(self._piece)
        of_node: list[dict[int, int]] = []
        of_list: list[dict[int, int]] = []
        for link in links:
            row, before, after = link[NODE_ROW], link[NODE_BEFORE], link[NODE_NEXT]
            own = {row if near.has_window else 0: 1} if before < 0 else of_list[before]
            of_node.append(own)
            if after < 0:
                of_list.append(own)
                continue
            both = {start: number for start, number in of_list[after].items() if near(start, row)}
            for start, number in own.items():
                both[start] = both.get(start, 0) + number
            of_list.append(both)
        return [
            sum(number for start, number in of_node[node].items() if near(start, row))
            for node, row in self._done[:, [COMPLETION_NODE, COMPLETION_ROW]].tolist()
        ]


def compressed_schema(query: AnalyzedQuery, columns: pa.Schema) -> pa.Schema:
    fields = [columns.field(name) for name in query.key]
    fields.append(columns.field(query.order_by[0]).with_name(MATCH_END))
    return pa.schema([*fields, pa.field(MATCH_COUNT, pa.string()), pa.field(STRUCTURE, pa.binary())])


class _Near:
    """Whether a match from a row may reach another."""

    def __init__(self, piece: RunPiece) -> None:
        window = piece.window
        self.has_window = window.kind != NO_WINDOW
        self._size = window.float_size if window.is_float else window.size
        at = piece.positions if window.kind == WINDOW_IN_EVENTS else piece.any_times
        self._at: list[Any] = at.tolist() if self.has_window else []

    def __call__(self, start: int, row: int) -> bool:
        return not self.has_window or self._at[row] - self._at[start] < self._size


class CompressedRow:
    """The matches that one event completes."""

    def __init__(self, whole: CompressedMatches, number: int) -> None:
        self._whole, self._number = whole, number

    def count(self) -> int:
        return self._whole.counts()[self._number]

    def expand(self) -> pa.Table:
        """The matches that the event completes, as `match` gives them out."""
        self._whole._check_size(self.count())
        return self._whole._output(self._whole._judged(self._done))

    def matches(self) -> Iterator[dict[str, Any]]:
        """The same one after the other, made as they are asked for."""
        return self._whole._lazily(self._done)

    def structure(self) -> bytes:
        """The graph of the matches and the events in it, as bytes."""
        nodes, roots = self._graph()
        rows, nodes[:, NODE_ROW] = np.unique(nodes[:, NODE_ROW], return_inverse=True)
        whole = self._whole
        events = whole._table.take(pa.array(whole._piece.grouped.order[rows])).combine_chunks()
        query = whole._query
        assert query.schema is not None
        by_type = None if query.schema.by_type is None else [[n, sorted(a)] for n, a in query.schema.by_type]
        return pack(
            {
                "nodes": nodes,
                "roots": roots,
                "events": events,
                "query": query_text(query.definition),
                "order_by": list(query.order_by),
                "type_column": query.schema.type_column,
                "by_type": by_type,
                "other_types": None if query.schema.other_types is None else sorted(query.schema.other_types),
            }
        )

    @property
    def _done(self) -> Array:
        whole, after = self._whole, self._number + 1
        return whole._done[whole._begins[self._number] : whole._begins[after] if after < len(whole) else None]

    def _graph(self) -> tuple[Array, Array]:
        """The nodes, with the columns that a structure has, and the numbers of those that are ends of matches."""
        whole = self._whole
        if whole._needs_judge or not whole._engine.is_merged:
            return _chains(whole._judged(self._done))
        buffer = whole._buffer
        assert buffer is not None
        count = int(buffer.counts[ADVANCE_NODES])
        window = whole._piece.window_arguments
        seen, ids = np.zeros(count, np.int64), np.empty(count, np.int64)
        roots, row = np.ascontiguousarray(self._done[:, COMPLETION_NODE]), int(self._done[0, COMPLETION_ROW])
        found = shared_loops(whole._engine.jit)["piece_of"](
            buffer.node, roots, row, seen, ids, np.empty(count, np.int64), *window
        )
        own = np.sort(ids[:found])
        number = np.full(count + 1, -1, np.int64)
        number[own] = np.arange(found)
        nodes = buffer.node[own][:, :NODE_SHARED_COLUMNS].copy()
        for column in (NODE_BEFORE, NODE_NEXT):
            nodes[:, column] = number[_first_of(nodes[:, column], buffer.node, number)]
        nodes[number[roots], NODE_NEXT] = -1
        return nodes, number[roots]


def _first_of(links: Array, node: Array, number: Array) -> Array:
    """The first node of each list that is part of the piece."""
    links = links.copy()
    while True:
        outside = np.flatnonzero((links >= 0) & (number[links] < 0))
        if not len(outside):
            return links
        links[outside] = node[links[outside], NODE_NEXT]


def _chains(found: FlatMatches) -> tuple[Array, Array]:
    """Matches that share nothing, as a graph."""
    count = len(found.positions)
    nodes = np.full((count, NODE_SHARED_COLUMNS), -1, np.int64)
    nodes[:, NODE_ROW] = found.positions
    components = found.lengths.shape[1]
    nodes[:, NODE_COMPONENT] = np.repeat(np.tile(np.arange(components), len(found)), found.lengths.reshape(-1))
    nodes[:, NODE_BEFORE] = np.arange(count) - 1
    nodes[found.offsets[:-1], NODE_BEFORE] = -1
    return nodes, found.offsets[1:] - 1


def expand(structure: bytes, parse: Callable[[str], QueryDefinition]) -> pa.Table:
    """The matches of a row of compressed output, from its structure."""
    parts = unpack(structure)
    try:
        table, query = parts["events"], _query(parts, parse)
        found = _read_out(parts["nodes"], parts["roots"], len(query.components))
    except AnalysisError as error:
        raise SnapshotError(
            f"the query of the structure cannot be read: {error.message}",
            hint="If it calls functions of your own, give them: kleene.expand(structure, functions=[…]).",
        ) from None
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise SnapshotError(f"the structure cannot be read: {type(error).__name__}") from None
    assert query.schema is not None
    return output_table(query, Events(table, query.schema, query.order_by), ordered(found, jit=False))


def _query(parts: Mapping[str, Any], parse: Callable[[str], QueryDefinition]) -> AnalyzedQuery:
    by_type = parts["by_type"]
    types = None if by_type is None else tuple((name, frozenset(names)) for name, names in by_type)
    others = None if parts["other_types"] is None else frozenset(parts["other_types"])
    schema = EventSchema(attributes_of(parts["events"].schema), parts["type_column"], types, others)
    return analyze(parse(parts["query"]), schema, tuple(parts["order_by"]))


def _read_out(nodes: Array, roots: Array, components: int) -> FlatMatches:
    whole = np.zeros((max(len(nodes), 1), NODE_COLUMNS), np.int64)
    whole[: len(nodes), :NODE_SHARED_COLUMNS] = nodes
    done = np.zeros((len(roots), COMPLETION_COLUMNS), np.int64)
    done[:, COMPLETION_NODE] = roots
    done[:, COMPLETION_ROW] = nodes[roots, NODE_ROW]
    st, stack = np.zeros(EXPAND_COUNTERS, np.int64), np.empty(max(len(nodes), 1) + 1, np.int64)
    st[EXPAND_MOST] = NO_LIMIT
    trail, bounds = np.empty(len(stack), np.int64), np.zeros(components, np.int64)
    parts: list[FlatMatches] = []
    room, budget = 1024, Budget(events=len(nodes))
    none = np.empty(0, np.int64)
    no_window = (NO_WINDOW, 0, 0.0, none, np.empty(0, np.float64), none)
    while st[EXPAND_COMPLETION] < len(roots):
        offsets, lengths = np.zeros(room + 1, np.int64), np.zeros((room, components), np.int64)
        p, origin = np.empty(room * 16 + len(stack), ROW), np.empty(room, np.int64)
        # Few matches are asked for at a time, so plain Python will do. No node says that there is one way only.
        way, outputs = (stack, trail, bounds, none), (offsets, lengths, p, origin)
        status = shared_loops(False)["expand_merged"](st, done, len(done), whole, no_window, *way, *outputs)
        require(status != CONTRADICTION, "nodes")
        count = int(st[EXPAND_MATCHES])
        parts.append(FlatMatches(offsets[: count + 1], lengths[:count], p[: st[EXPAND_ROWS]].copy()))
        budget.add("its matches", 4 * size_of(parts[-1]))
        st[EXPAND_MATCHES] = st[EXPAND_ROWS] = 0
    return joined(parts, components)
