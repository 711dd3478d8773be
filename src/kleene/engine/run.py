"""A plan and a sorted table of events to the table of matches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kleene.engine import reference
from kleene.engine.events import Events
from kleene.engine.matches import Match
from kleene.engine.output import output_table
from kleene.plan.plan import Plan

MATCHES_PER_BATCH = 10_000


def run(plan: Plan, table: pa.Table, with_times: bool = False) -> pa.Table:
    """The matches as rows, in output order."""
    events, matches = find(plan, table)
    return output_table(plan.query, events, matches, table.schema, with_times)


def run_in_batches(plan: Plan, table: pa.Table, with_times: bool = False) -> Iterator[tuple[list[Match], pa.Table]]:
    """The same, some thousand matches at a time, each with the matches that its rows stand for."""
    events, matches = find(plan, table)
    for start in range(0, len(matches), MATCHES_PER_BATCH):
        part = matches[start : start + MATCHES_PER_BATCH]
        yield part, output_table(plan.query, events, part, table.schema, with_times)


def find(plan: Plan, table: pa.Table) -> tuple[Events, list[Match]]:
    assert plan.query.schema is not None
    events = Events(table, plan.query.schema, plan.query.order_by)
    return events, reference.find_matches(plan.query, events, plan.format, plan.run_limit)
