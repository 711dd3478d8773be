"""What is known of groups on its way: written as text, read again, and put together with what others know."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.totals.cells import Cell, Sum, no_cell, together
from kleene.engine.totals.groups import CELLS, Totals, aggregate_of, group_fields, no_columns
from kleene.ir import expr as ir


def aggregates_of(query: AnalyzedQuery) -> list[ir.Aggregate]:
    return [aggregate_of(measure) for measure in query.measures or ()]


def no_totals(query: AnalyzedQuery) -> Totals:
    """What is known where there is no match, and nothing to group by."""
    return Totals(no_columns(1), [[no_cell(aggregate) for aggregate in aggregates_of(query)]])


def partial_schema(query: AnalyzedQuery, columns: pa.Schema) -> pa.Schema:
    return pa.schema([*group_fields(query, columns), pa.field(CELLS, pa.string())])


def partial_table(query: AnalyzedQuery, found: Totals, columns: pa.Schema) -> pa.Table:
    """The groups, and their cells as text."""
    schema = partial_schema(query, columns)
    groups = [found.groups.column(number) for number in range(found.groups.num_columns)]
    return pa.table([*groups, pa.array([written(cells) for cells in found.cells], pa.string())], schema=schema)


def written(cells: list[Cell]) -> str:
    """Cells as text, whole numbers in hexadecimal digits, of which Python reads and writes any number."""
    return json.dumps([_plain(cell) for cell in cells])


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Sum):
        return {"sum": [hex(cell.total), cell.exponent, hex(cell.values), cell.special]}
    return cell if not isinstance(cell, int) or isinstance(cell, bool) else {"number": hex(cell)}


def read(text: str) -> list[Cell]:
    return [_cell(plain) for plain in json.loads(text)]


def _cell(plain: Any) -> Cell:
    match plain:
        case {"number": str() as digits}:
            return int(digits, 16)
        case {"sum": [str() as total, int() as exponent, str() as values, int() as special]}:
            return Sum(int(total, 16), exponent, int(values, 16), special)
    return plain


def _known_by(value: Any) -> str:
    """What tells groups apart: -0.0 and 0.0 are one value."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def put_together(query: AnalyzedQuery, tables: Iterable[pa.Table], schema: pa.Schema) -> Totals | None:
    """All that is known of each group; None if there is nothing."""
    aggregates, groups = aggregates_of(query), schema.names[:-1]
    known: dict[Any, tuple[dict[str, Any], list[Cell]]] = {}
    for table in tables:
        for row in table.to_pylist():
            cells, key = read(row.pop(CELLS)), tuple(map(_known_by, row.values()))
            if key in known:
                both = zip(aggregates, known[key][1], cells, strict=True)
                cells = [together(aggregate, left, right) for aggregate, left, right in both]
            known[key] = known[key][0] if key in known else row, cells
    if not known:
        return None
    rows, cells = [row for row, _ in known.values()], [cells for _, cells in known.values()]
    own = pa.schema([schema.field(name) for name in groups])
    return Totals(pa.Table.from_pylist(rows, own) if groups else no_columns(len(rows)), cells)
