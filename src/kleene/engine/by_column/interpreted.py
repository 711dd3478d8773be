"""Measures as the interpreter computes them, point by point: for what columns cannot do, and to say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from kleene.engine.by_column.matches import Matches, Points
from kleene.engine.row_reference import RowBindings, Visible
from kleene.engine.rows import plain_columns
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate


def interpreted_values(expressions: Sequence[ir.Expr], matches: Matches, points: Points) -> list[tuple[Any, ...]]:
    """The values at each point; they are computed match by match, so that of several errors the first is told."""
    found: list[tuple[Any, ...]] = [()] * len(points)
    for point, bindings in _bindings(expressions, matches, points):
        matches.columns.check_time()
        found[point] = tuple(evaluate(expression, bindings) for expression in expressions)
    return found


def _bindings(expressions: Sequence[ir.Expr], matches: Matches, points: Points) -> Iterator[tuple[int, RowBindings]]:
    query, found, flat = matches.columns.query, matches.found, matches.found.matches
    assert query.schema is not None
    columns = plain_columns(list(expressions), query.schema, matches.columns.table)
    visible = np.stack(matches.visible, axis=1)
    groups = flat.groups[points.matches]
    order = np.lexsort((points.places, points.matches, groups)).tolist()
    for group, numbers in groupby(order, key=groups.__getitem__):
        begin, end = int(found.begins[group]), int(found.ends[group])
        positions = found.grouped.order[begin:end].tolist()
        here = {name: [values[position] for position in positions] for name, values in columns.items()}
        for match, own in groupby(numbers, key=lambda point: points.matches[point]):
            start, length = int(flat.starts[match]) - begin, int(matches.lengths[match])
            rows, variables = range(start, start + length), tuple(matches.names[flat.states_of(match)])
            seen, number = Visible(*(visible[match] - begin).tolist()), int(matches.numbers[match])
            for point in own:
                place = int(points.places[point])
                running = 0 if place < 0 else place - int(flat.offsets[match]) + 1
                yield point, RowBindings(here, seen, query.members, rows, variables, running, number)
