"""What a job on Spark gives out: the columns of the result, and those that come with them if they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kleene.engine.events import decoded
from kleene.engine.matches import Array, FlatMatches
from kleene.engine.ranges import Candidates
from kleene.engine.results import MATCH_ID, ResultBatch, with_match_ids
from kleene.engine.ties import TieRule
from kleene.engine.timeouts import TIMED_OUT
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The columns of the result, and what those are made of that the query itself does not know."""

    result: pa.Schema
    with_times: bool = False
    id_columns: tuple[str, ...] | None = None  # of events, for ids of matches
    carried: tuple[str, ...] | None = None  # of events, for a match's place in the output
    timeouts: bool = False  # whether runs that time out are given out, and marked
    ties: TieRule | None = None  # what tasks that sort count, if they do

    def with_ids(self, columns: Sequence[str]) -> Output:
        return replace(self, result=self.result.append(pa.field(MATCH_ID, pa.string())), id_columns=tuple(columns))

    def with_order(self, name: str, columns: pa.Schema, carried: Sequence[str]) -> Output:
        field = pa.field(name, _match_order_type(columns, carried))
        return replace(self, result=self.result.append(field), carried=tuple(carried))

    def with_timeouts(self) -> Output:
        return replace(self, result=self.result.append(pa.field(TIMED_OUT, pa.bool_())), timeouts=True)

    def rows(self, part: ResultBatch | Candidates, plan: Plan) -> pa.Table:
        """The rows of matches with all columns of the result."""
        rows = part.table
        if self.id_columns is not None:
            rows = with_match_ids(rows, part.events, part.matches, plan, self.id_columns)
        if self.carried is not None:
            assert part.matches is not None
            field = self.result.field(rows.num_columns)
            order = _match_order_column(part.events, part.matches, self.carried)
            rows = rows.append_column(field, order.cast(field.type))
        if self.timeouts:
            rows = rows.append_column(TIMED_OUT, pa.array(np.zeros(rows.num_rows, np.bool_)))
        return rows


MATCH_ORDER = "__kleene_match_order"
"""The column's name while it travels from one query of a program to the next."""


def _match_order_type(columns: pa.Schema, sort_columns: Sequence[str]) -> pa.DataType:
    event = _event_type(columns, sort_columns)
    return pa.struct(
        [("last", event), ("first", event), ("events", pa.list_(event)), ("longer_first", pa.list_(pa.int64()))]
    )


def _event_type(columns: pa.Schema, sort_columns: Sequence[str]) -> pa.DataType:
    fields: list[tuple[str, pa.DataType]] = []
    for number, name in enumerate(sort_columns):
        # Spark sorts NULLs first inside a struct; the flag before the value puts them last.
        fields += [(f"{number}_is_null", pa.bool_()), (f"{number}", columns.field(name).type)]
    return pa.struct(fields)


def _match_order_column(table: pa.Table, matches: FlatMatches, sort_columns: Sequence[str]) -> pa.Array:
    components = matches.lengths.shape[1]
    lengths = pa.array(-matches.lengths.reshape(-1), pa.int64())
    ends = pa.array(range(0, len(lengths) + 1, components), pa.int32())
    return pa.StructArray.from_arrays(
        [
            _event_keys(table, matches.last, sort_columns),
            _event_keys(table, matches.first, sort_columns),
            pa.ListArray.from_arrays(
                pa.array(matches.offsets, pa.int32()), _event_keys(table, matches.positions, sort_columns)
            ),
            pa.ListArray.from_arrays(ends, lengths),
        ],
        names=["last", "first", "events", "longer_first"],
    )


def _event_keys(table: pa.Table, positions: Array, sort_columns: Sequence[str]) -> pa.Array:
    taken = table.select(list(sort_columns)).take(pa.array(positions, pa.int64())).combine_chunks()
    arrays: list[pa.Array] = []
    for name in sort_columns:
        column = decoded(taken.column(name))
        values = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
        arrays += [values.is_null(), values]
    names = [label for number in range(len(sort_columns)) for label in (f"{number}_is_null", f"{number}")]
    return pa.StructArray.from_arrays(arrays, names=names)
