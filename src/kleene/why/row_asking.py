"""A row pattern, or a regular expression, and its rows to the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern
from kleene.automaton.positions import positions_of
from kleene.engine.column_types import attribute_type
from kleene.engine.events import plain_values, window_size
from kleene.engine.frames import frame_ends
from kleene.engine.inputs import open_rows
from kleene.engine.needs import columns_read
from kleene.engine.row_reference import PartitionMatcher
from kleene.engine.rows import plain_columns, row_partitions, sorted_rows, with_computed_keys
from kleene.errors import UnsupportedError
from kleene.ir.evaluate import text_of
from kleene.ir.options import Selection
from kleene.ir.query import QueryDefinition
from kleene.ir.row_text import row_query_text
from kleene.why.answer import Why, answer_of
from kleene.why.findings import Findings, Limits
from kleene.why.question import ROW, Question, chosen_places, filter_columns, read_question
from kleene.why.regex import RegexWalk
from kleene.why.row_partition import RowPartition
from kleene.why.row_tally import RowTally
from kleene.why.rows import TRIES_PER_RUN, RowWalk
from kleene.why.scope import Looked, look_at, window_reach

RUN_LIMIT = 1_000_000


def with_rows(table: pa.Table) -> pa.Table:
    """The table with the number of each row."""
    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))


def why_of_rows(
    definition: QueryDefinition, events: Any, at: object, keys: object, max_events: int, limits: Limits
) -> Why:
    source = open_rows(events, definition)
    query = analyze_row_pattern(definition, source.schema, source.schema.hidden)
    question = read_question(at, keys, query.partition_by)
    if question.combination is not None:
        raise UnsupportedError(
            "rows by variable are for SASE queries: a row pattern chooses its match among all that begin at a row",
            hint="Ask about the row where the match should begin: at=7.",
        )
    there = source.columns.names
    names = columns_read(query, there, ()) or there[:1]
    if question.filter is not None:
        names = list(dict.fromkeys([*names, *filter_columns(question.filter, source.schema)]))
    table = sorted_rows(query, with_computed_keys(query, with_rows(source.read(names))))
    return _RowAnswer(query, table, question, max_events, limits).made()


class _RowAnswer:
    def __init__(
        self, query: AnalyzedRowPattern, table: pa.Table, question: Question, max_events: int, limits: Limits
    ) -> None:
        self.query, self.table, self.question, self.max_events, self.limits = query, table, question, max_events, limits
        self.rows: list[int] = table.column(ROW).to_pylist()
        self.times = self._texts(query.order_by[0].name) if query.order_by else [""] * table.num_rows
        self.partitions = row_partitions(query, table)

    def made(self) -> Why:
        chosen, notes = self._chosen()
        looked = self._looked(chosen)
        findings = Findings(self.limits, frozenset(self.rows[place] for place in chosen))
        tally = RowTally(self.query)
        self._walk(looked, findings, tally)
        stopped = f"{TRIES_PER_RUN * self.limits.runs:,} tries, {TRIES_PER_RUN} times max_runs"
        text, notes = row_query_text(self.query.definition), [*notes, *looked.notes, *findings.notes(stopped)]
        return answer_of(text, tally, looked, findings, tuple(findings.runs), notes, self.question)

    def _walk(self, looked: Looked, findings: Findings, tally: RowTally) -> None:
        query, automaton = self.query, positions_of(self.query)
        assert query.schema is not None
        measured = query.measured_column
        used = [condition for _, condition in query.conditions]
        columns = plain_columns(used, query.schema, self.table, {} if measured is None else {measured: query.time_type})
        for places in looked.partitions:
            here = {name: [values[place] for place in places] for name, values in columns.items()}
            partition = RowPartition(
                query,
                here,
                [self.rows[place] for place in places],
                [self.times[place] for place in places],
                self._key(places[0]),
            )
            if query.definition.selection is Selection.FIRST_COMPLETED:
                RegexWalk(partition, automaton, findings, tally).follow()
            else:
                matcher = PartitionMatcher(query, here, len(places), RUN_LIMIT)
                RowWalk(partition, automaton, findings, tally).follow(self._ends(places), matcher.resume)
            if findings.is_cut:
                return

    def _ends(self, places: Sequence[int]) -> list[int] | None:
        """Where the frame of each row of the partition ends, if the query is a window."""
        if self.query.frame is None:
            return None
        order, count = np.array(places, np.int64), len(places)
        ends = frame_ends(self.query.frame, self.table, order, np.full(count, count), self.query.definition.source)
        return [int(end) for end in ends]

    def _texts(self, name: str) -> list[str]:
        column = self.table.column(name)
        type_ = attribute_type(column.type)
        return ["NULL" if value is None else text_of(value, type_) for value in plain_values(column, type_, name)]

    def _key(self, place: int) -> tuple[tuple[str, str], ...]:
        return tuple((name, str(self.table.column(name)[place].as_py())) for name in self.query.partition_by)

    def _chosen(self) -> tuple[frozenset[int], list[str]]:
        assert self.query.schema is not None
        return chosen_places(
            self.question,
            self.table,
            self.query.schema,
            self.partitions,
            lambda place: ", ".join(value for _, value in self._key(place)),
        )

    def _looked(self, chosen: frozenset[int]) -> Looked:
        definition, query = self.query.definition, self.query
        window = definition.window
        size = None if window is None else window_size(window, query.time_type)
        times: list[Any] = []
        if query.measured_column is not None:
            times = plain_values(self.table.column(query.measured_column), query.time_type, query.measured_column)
        is_timed = bool(times) and None not in times and not query.order_by[0].descending
        reach = window_reach(window if not times or is_timed else None, size, times)
        return look_at(self.partitions, chosen, bool(chosen), self.max_events, reach)
