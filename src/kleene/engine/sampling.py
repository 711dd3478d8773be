"""Statistics of a table, from a sample of its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.columns import times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.kernel_window import KernelWindow
from kleene.engine.needs import type_column_of
from kleene.engine.unencoded import with_texts
from kleene.ir import expr as ir
from kleene.ir.may_fail import may_fail
from kleene.options.statistics import Statistics
from kleene.plan.operators import conjuncts_of
from kleene.schema import INTEGER

SAMPLE = 20_000


def sampled_statistics(table: pa.Table, query: AnalyzedQuery) -> Statistics:
    """How many events of each type there are, how many values of each attribute that is compared, and in a window."""
    rows = np.linspace(0, max(table.num_rows - 1, 0), min(SAMPLE, table.num_rows)).astype(np.int64)
    if not len(rows):
        return Statistics(source="an empty table")
    names = [name for name in _compared(query) if name in table.column_names]
    type_column = type_column_of(query.schema)
    wanted = [*names, *([type_column] if type_column is not None and type_column not in names else [])]
    sample = with_texts(table.select(wanted).take(pa.array(rows)))
    events: dict[str, float] = {}
    if type_column is not None:
        counted = pc.value_counts(sample.column(type_column)).to_pylist()
        scale = table.num_rows / len(rows)
        events = {item["values"]: item["counts"] * scale for item in counted if item["values"] is not None}
    distinct = {name: float(_distinct(sample.column(name))) for name in names}
    source = f"a sample of {len(rows):,} events"
    return Statistics(events, distinct, source, _in_window(table, query), _ranges(table, query))


def _ranges(table: pa.Table, query: AnalyzedQuery) -> dict[str, tuple[int, int]]:
    """The least and the greatest value, in all events, of whole numbers that predicates compute with."""
    found: dict[str, tuple[int, int]] = {}
    computing = [item.expression for item in conjuncts_of(query) if may_fail(item.expression)]
    for node in (node for expression in computing for node in ir.walk(expression)):
        if isinstance(node, ir.Attribute) and node.type == INTEGER and node.name in table.column_names:
            ends = pc.min_max(table.column(node.name)).as_py()
            found[node.name] = (ends["min"] or 0, ends["max"] or 0)
    return found


def _distinct(column: pa.ChunkedArray) -> int:
    try:
        return int(pc.count_distinct(column).as_py())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return 0


def _compared(query: AnalyzedQuery) -> list[str]:
    """Attributes that equivalence tests, and predicates between events, look at."""
    found = dict.fromkeys(query.key)
    for component in query.components:
        for conjunct in component.begin:
            if isinstance(conjunct.expression, ir.Comparison):
                names = [node.name for node in ir.walk(conjunct.expression) if isinstance(node, ir.Attribute)]
                found |= dict.fromkeys(names)
    return list(found)


def _in_window(table: pa.Table, query: AnalyzedQuery) -> float | None:
    """About how many events lie in one window."""
    window = KernelWindow.of(query)
    if window.kind == 1:
        return float(window.size)
    size = window.in_time
    if size is None:
        return float(table.num_rows)
    ends = table.select([query.order_by[0]]).take(pa.array([0, table.num_rows - 1]))
    try:
        first, last = times_array(ends, query.order_by[0], query.time_type).tolist()
    except GaveUpError:
        return None
    return table.num_rows * min(1.0, float(size) / (last - first)) if last > first else float(table.num_rows)
