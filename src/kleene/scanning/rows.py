"""Rows of matches, each with the place of the event that completes its match, to rows in output order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.output import values_at
from kleene.engine.results import PLACED, ROWS_PER_BATCH
from kleene.engine.spilling import Sorter
from kleene.scanning.detours import ByOrder

Order = Sequence[SortColumn]


def _by_place(order: Order) -> ByOrder:
    """The order of rows by the columns beside them, in which the completing events have this order."""
    return ByOrder(tuple(replace(column, name=f"{PLACED}{number}") for number, column in enumerate(order)))


def whole_in_order(tables: Iterable[pa.Table], order: Order, schema: pa.Schema, budget: Budget) -> pa.Table:
    """All rows as one table."""
    held = []
    for table in tables:
        held.append(table)
        budget.add("its result", table_bytes(table))
    if not held:
        return schema.empty_table()
    whole = pa.concat_tables(held)
    if len(order) > 1:
        return pa.table(_by_place(order).sorted(whole).columns[: len(schema)], schema=schema)
    places = whole.column(len(schema)).to_numpy()
    columns = whole.columns[: len(schema)]
    if not (places[1:] >= places[:-1]).all():
        by_place = np.argsort(places, kind="stable")
        columns = [values_at(column, by_place) for column in columns]
    return pa.table(columns, schema=schema)


def batches_in_order(
    tables: Iterable[pa.Table], order: Order, schema: pa.Schema, budget: Budget
) -> Iterator[pa.RecordBatch]:
    """All rows in batches; those that wait do so on disk once they are many."""
    sorter = Sorter(_by_place(order), budget.at_once)
    for table in tables:
        sorter.add(table)
        budget.hold("rows that wait to be put in order", 2 * sorter.held_bytes)
    for table in sorter.tables():
        yield from pa.table(table.columns[: len(schema)], schema=schema).to_batches(max_chunksize=ROWS_PER_BATCH)
