"""The accepting runs of the automaton are the matches of the plain engine, before negations and HAVING."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kleene
from automaton_runner import accepted
from case_files import Case, load_all
from kleene.analysis.analyze import analyze
from kleene.engine.events import Events
from kleene.engine.inputs import make_order_key, read_events
from kleene.engine.reference import find_matches
from kleene.ir.options import Format
from kleene.lang.parameters import bind

CASES = [case for case in load_all() if not case.is_program]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_accepting_runs_are_the_matches(case: Case) -> None:
    order = make_order_key(case.options["order_by"], case.options["tie_break"])
    table, schema = read_events(case.inputs, order, case.options["type_column"], case.options.get("schema"))
    [definition] = bind((kleene.sase(case.query).definition,), case.options.get("params"))
    query = analyze(definition, schema, order.order_by)
    positive = replace(query, negations=(), having=None)
    for partition in partitions(table, query.partition_by):
        events = Events(partition, schema, order.order_by)
        matches = find_matches(positive, events, Format.ALL, 1_000_000)
        assert accepted(positive, events) == {match.selected for match in matches}


def partitions(table: pa.Table, key: tuple[str, ...]) -> list[pa.Table]:
    """The table cut by key, so that the automaton sees each partition as one stream."""
    if not key:
        return [table]
    keys = table.select(list(key)).group_by(list(key)).aggregate([]).to_pylist()
    found = []
    for values in keys:
        mask = pa.array([True] * table.num_rows)
        for name, value in values.items():
            same = pc.fill_null(pc.equal(table.column(name), pa.scalar(value, table.schema.field(name).type)), False)
            mask = pc.and_(mask, same)
        found.append(table.filter(mask))
    return found
