"""A table of matches to HTML, for notebooks and pages. Every value is text there, whatever it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from kleene.show import flattened, value_text
from kleene.visible import visible

MOST_LETTERS = 120
"""Letters of a cell; its tooltip has more of them."""
_MOST_IN_TIP = 2_000
Cells = tuple[list[str], list[list[Any]]]


def first_rows(table: Any, most: int) -> pa.Table:
    """The first rows of what `match` returns, as an Arrow table."""
    if isinstance(table, pa.Table):
        return table.slice(0, most)
    head = table.head(most)
    return head.to_arrow() if hasattr(head, "to_arrow") else pa.Table.from_pandas(head, preserve_index=False)


def cells_of(table: pa.Table) -> Cells:
    """The columns, whole events as columns of their attributes, and the values of each row."""
    names = table.column_names
    if len(set(names)) < len(names):  # a column that is named twice is there twice
        columns = [column.to_pylist() for column in table.columns]
        return names, [list(row) for row in zip(*columns, strict=True)]
    rows = [flattened(row, names) for row in table.to_pylist()]
    flat = list(dict.fromkeys(name for row in rows for name in row)) or names
    return flat, [[row.get(name) for name in flat] for row in rows]


def table_html(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A plain table, which pages and notebooks style as they do."""
    numeric = [any(is_number(row[at]) for row in rows) for at in range(len(names))]
    heads = "".join(f'<th scope="col">{escape(visible(name))}</th>' for name in names)
    body = "".join(f"<tr>{''.join(_cells(row, numeric))}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Sequence[Any], numeric: Sequence[bool]) -> Iterator[str]:
    for value, is_numeric in zip(row, numeric, strict=True):
        style = ' style="text-align:right"' if is_numeric else ""
        yield f"<td{style}{cell_html(value)}"


def cell_html(value: Any, most: int = MOST_LETTERS) -> str:
    """The rest of the tag of a cell, and what it holds."""
    text = value_text(value)
    if len(text) <= most:
        return f">{escape(text)}</td>"
    return f' title="{escape(text[:_MOST_IN_TIP])}">{escape(text[: most - 1])}…</td>'


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
