"""Compressed output (SASE+ 2008 §4.2): matches as the graph that they share, counted and read out of it on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyze import MATCH_END, analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.blocks import size_of
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrangement import ROW, chosen_matches, ordered
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.sase_engine import NO_LIMIT, Feed, SaseProgram, SaseProgress
from kleene.engine.events import Events
from kleene.engine.inputs import attributes_of
from kleene.engine.matches import FlatMatches, flat_matches, joined
from kleene.engine.output import output_table
from kleene.engine.saved_parts import require
from kleene.engine.snapshot import pack, unpack
from kleene.errors import SnapshotError
from kleene.ir.options import Format
from kleene.ir.query import QueryDefinition
from kleene.ir.text import query_text
from kleene.schema import Schema

MATCH_COUNT, STRUCTURE = "match_count", "structure"
AT_ONCE = 4096
"""How many rows of matches a lazy expansion makes at a time."""


class CompressedMatches:
    """The matches of a table, held together: one row for each event that completes matches.

    `len()` is the number of rows. Matches are counted without being made, and made on demand.
    """

    def __init__(
        self, query: AnalyzedQuery, program: SaseProgram, table: pa.Table, run_limit: int, budget: Budget
    ) -> None:
        self._query, self._table, self._jit = query, table, program.jit
        self._progress = SaseProgress(program, run_limit, Format.ALL, budget=budget)
        self._feed, done = self._progress.completions(table)
        self._needs_judge = self._feed.kernel.generated.has_accept
        ends = self._feed.grouped.order[done[:, 2]] if len(done) else done[:, 2]
        self._done = np.ascontiguousarray(done[np.argsort(ends, kind="stable")])
        ends = np.sort(ends)
        if self._needs_judge:
            # What HAVING or a negation forbids can only be told of matches that are made.
            kept = [number for number in range(len(self._done)) if len(self._judged(self._done[number : number + 1]))]
            self._done, ends = self._done[kept], ends[kept]
        self._ends, self._begins = np.unique(ends, return_index=True)

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
        self._progress.budget.hold("the matches that are asked for", 16 * matches)
        self._progress.budget.hold("the matches that are asked for", 0)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _completions(self, row: int) -> Array:
        end = self._begins[row + 1] if row + 1 < len(self) else len(self._done)
        return self._done[self._begins[row] : end]

    def _judged(self, done: Array) -> FlatMatches:
        """The matches of the completions that nothing forbids, by rows."""
        parts = [self._accepted(part, groups) for part, groups in self._progress.expanded(self._feed, len(done), done)]
        return joined(parts, len(self._query.components))

    def _accepted(self, part: FlatMatches, groups: Array) -> FlatMatches:
        return self._progress.judged(self._feed, part, groups)[0]

    def _output(self, found: FlatMatches) -> pa.Table:
        in_order = ordered(self._progress.in_table(self._feed, found), self._jit)
        assert self._query.schema is not None
        events = Events(self._table, self._query.schema, self._query.order_by)
        return output_table(self._query, events, in_order, self._table.schema)

    def _lazily(self, done: Array) -> Iterator[dict[str, Any]]:
        for part, groups in self._progress.expanded(self._feed, len(done), done, AT_ONCE):
            yield from self._output(self._accepted(part, groups)).to_pylist()

    @cached_property
    def _counts(self) -> list[int]:
        """How many matches each completion stands for."""
        if self._needs_judge:
            return [len(self._judged(self._done[n : n + 1])) for n in range(len(self._done))]
        if self._progress.program.algorithm != "merge":
            return [1] * len(self._done)
        found = self._small_counts()
        return found if found is not None else self._large_counts()

    def _small_counts(self) -> list[int] | None:
        """Counted in 64 bits; None where that is not enough."""
        buffer = self._progress.buffer
        if buffer is None:
            return []
        nodes, room = int(buffer.counts[3]), 1024
        totals = np.zeros(len(self._done), np.int64)
        while True:
            room = max(room, 4 * nodes)
            starts, counts = np.empty(room, np.int64), np.empty(room, np.int64)
            vectors, window = np.empty((max(nodes, 1), 4), np.int64), self._progress.window_arguments(self._feed)
            with np.errstate(over="ignore"):  # the loop notices
                used = shared_loops(self._jit)["count_merged"](
                    buffer.node, 0, nodes, vectors, starts, counts, 0, self._done, len(self._done), totals, *window
                )
            if used == -2:
                return None
            if used >= 0:
                return [int(total) for total in totals]
            room *= 2

    def _large_counts(self) -> list[int]:
        """Counted in Python's integers, by the first event of a match, since windows end by it."""
        assert self._progress.buffer is not None
        links = self._progress.buffer.node[: self._progress.buffer.counts[3]].tolist()
        near = _Near(
            self._progress.window.kind, self._progress.window.size, self._progress.window.float_size, self._feed
        )
        of_node: list[dict[int, int]] = []
        of_list: list[dict[int, int]] = []
        for row, _, before, after, *_ in links:
            own = {row if near.kind else 0: 1} if before < 0 else of_list[before]
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
            for node, row in self._done[:, [0, 2]].tolist()
        ]


def compressed_schema(query: AnalyzedQuery, columns: pa.Schema) -> pa.Schema:
    fields = [columns.field(name) for name in query.key]
    fields.append(columns.field(query.order_by[0]).with_name(MATCH_END))
    return pa.schema([*fields, pa.field(MATCH_COUNT, pa.string()), pa.field(STRUCTURE, pa.binary())])


class _Near:
    """Whether a match from a row may reach another."""

    def __init__(self, kind: int, size: int, float_size: float, feed: Feed) -> None:
        self.kind = kind
        self._size = float_size if kind == 3 else size
        self._at: list[Any] = [] if kind == 0 else (feed.positions if kind == 1 else feed.any_times).tolist()

    def __call__(self, start: int, row: int) -> bool:
        return self.kind == 0 or self._at[row] - self._at[start] < self._size


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
        rows, nodes[:, 0] = np.unique(nodes[:, 0], return_inverse=True)
        whole = self._whole
        events = whole._table.take(pa.array(whole._feed.grouped.order[rows])).combine_chunks()
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
            }
        )

    @property
    def _done(self) -> Array:
        return self._whole._completions(self._number)

    def _graph(self) -> tuple[Array, Array]:
        """Nodes (row, component, list before, next in list), and those that are ends of matches."""
        whole = self._whole
        if whole._needs_judge or whole._progress.program.algorithm != "merge":
            return _chains(whole._judged(self._done))
        buffer = whole._progress.buffer
        assert buffer is not None
        count = int(buffer.counts[3])
        window = whole._progress.window_arguments(whole._feed)
        seen, ids = np.zeros(count, np.int64), np.empty(count, np.int64)
        roots, row = np.ascontiguousarray(self._done[:, 0]), int(self._done[0, 2])
        found = shared_loops(whole._jit)["piece_of"](
            buffer.node, roots, row, seen, 1, ids, np.empty(2 * count + 1, np.int64), *window
        )
        own = np.sort(ids[:found])
        number = np.full(count + 1, -1, np.int64)
        number[own] = np.arange(found)
        nodes = buffer.node[own][:, :4].copy()
        for column in (2, 3):
            nodes[:, column] = number[_first_of(nodes[:, column], buffer.node, number)]
        nodes[number[roots], 3] = -1
        return nodes, number[roots]


def _first_of(links: Array, node: Array, number: Array) -> Array:
    """The first node of each list that is part of the piece."""
    links = links.copy()
    while True:
        outside = np.flatnonzero((links >= 0) & (number[links] < 0))
        if not len(outside):
            return links
        links[outside] = node[links[outside], 3]


def _chains(found: FlatMatches) -> tuple[Array, Array]:
    """Matches that share nothing, as a graph."""
    count = len(found.positions)
    nodes = np.full((count, 4), -1, np.int64)
    nodes[:, 0] = found.positions
    components = found.lengths.shape[1]
    nodes[:, 1] = np.repeat(np.tile(np.arange(components), len(found)), found.lengths.reshape(-1))
    nodes[:, 2] = np.arange(count) - 1
    nodes[found.offsets[:-1], 2] = -1
    return nodes, found.offsets[1:] - 1


def expand(structure: bytes, parse: Callable[[str], QueryDefinition]) -> pa.Table:
    """The matches of a row of compressed output, from its structure."""
    parts = unpack(structure)
    try:
        table, query = parts["events"], _query(parts, parse)
        found = _read_out(parts["nodes"], parts["roots"], len(query.components))
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise SnapshotError(f"the structure cannot be read: {type(error).__name__}") from None
    assert query.schema is not None
    order = sorted(range(len(found)), key=lambda number: found.match(number).output_order)
    return output_table(
        query,
        Events(table, query.schema, query.order_by),
        chosen_matches(found, np.array(order, np.int64)),
        table.schema,
    )


def _query(parts: Mapping[str, Any], parse: Callable[[str], QueryDefinition]) -> AnalyzedQuery:
    by_type = parts["by_type"]
    types = None if by_type is None else tuple((name, frozenset(names)) for name, names in by_type)
    schema = Schema(attributes_of(parts["events"].schema), parts["type_column"], types)
    return analyze(parse(parts["query"]), schema, tuple(parts["order_by"]))


def _read_out(nodes: Array, roots: Array, components: int) -> FlatMatches:
    whole = np.zeros((max(len(nodes), 1), 8), np.int64)
    whole[: len(nodes), :4] = nodes
    done = np.zeros((len(roots), 4), np.int64)
    done[:, 0] = roots
    done[:, 2] = nodes[roots, 0]
    st, stack = np.zeros(6, np.int64), np.empty(max(len(nodes), 1) + 1, np.int64)
    st[5] = NO_LIMIT
    trail, bounds = np.empty(len(stack), np.int64), np.zeros(components, np.int64)
    parts: list[FlatMatches] = []
    room, budget = 1024, Budget(events=len(nodes))
    empty, floats = np.empty(0, np.int64), np.empty(0, np.float64)
    while st[0] < len(roots):
        offsets, lengths = np.zeros(room + 1, np.int64), np.zeros((room, components), np.int64)
        p, origin = np.empty(room * 16 + len(stack), ROW), np.empty(room, np.int64)
        # Few matches are asked for at a time, so plain Python will do.
        status = shared_loops(False)["expand_merged"](
            st,
            done,
            len(done),
            whole,
            0,
            0,
            0.0,
            empty,
            floats,
            empty,
            stack,
            trail,
            bounds,
            empty,  # no node says that there is one way only
            offsets,
            lengths,
            p,
            origin,
        )
        require(status != 4, "nodes")
        count = int(st[2])
        parts.append(FlatMatches(offsets[: count + 1], lengths[:count], p[: st[3]].copy()))
        budget.add("its matches", 4 * size_of(parts[-1]))
        st[2] = st[3] = 0
    return joined(parts, components) if parts else flat_matches([], components)
