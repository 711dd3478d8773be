"""The events that a question is about, in their order, with the partition of each: for queries whose matches are runs.

Walks of SASE queries and of patterns in steps begin here, and their answers end here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.call import Call
from kleene.engine.events import Events, window_size
from kleene.engine.inputs import in_order, open_events
from kleene.engine.needs import columns_read
from kleene.engine.vectorized import vectorized_columns
from kleene.errors import listed
from kleene.ir.evaluate import PlainValue
from kleene.ir.options import Window
from kleene.why.answer import Why, answer_of
from kleene.why.counts import Counts
from kleene.why.findings import Findings, Limits
from kleene.why.model import Ending, Event, Kind, Match, Run
from kleene.why.partition import Partition
from kleene.why.question import ROW, Question, chosen_places, filter_columns, read_question
from kleene.why.row_asking import with_rows
from kleene.why.scope import Looked, look_at, window_reach
from kleene.why.tally import places


class Asked:
    def __init__(self, query: AnalyzedQuery, events: Events, question: Question) -> None:
        self.query, self.events, self.table, self.question = query, events, events.table, question
        predicates = [conjunct.expression for _, _, conjunct in places(query)]
        events.add(vectorized_columns(predicates, events.table, dict(events.schema.attributes)))
        self.rows: list[int] = events.table.column(ROW).to_pylist()
        self.times, self.types = events.times(), events.types()
        columns = [events.values(name) for name in query.partition_by]
        groups: dict[tuple[PlainValue, ...], list[int]] = defaultdict(list)
        self.without_key = 0
        for position in range(len(events)):
            key = tuple(column[position] for column in columns)
            if all(value is not None and value == value for value in key):
                groups[key].append(position)
            else:
                self.without_key += 1
        self.groups = dict(groups)

    def partition(self, positions: Sequence[int]) -> Partition:
        """The partition, or the part of it, that has the events at these positions."""
        key = tuple(self.events.values(name)[positions[0]] for name in self.query.partition_by)
        types = None if self.types is None else [self.types[position] for position in positions]
        rows, times = [self.rows[position] for position in positions], [self.times[at] for at in positions]
        return Partition(self.query, self.events, key, list(positions), rows, times, types)

    def event(self, position: int) -> Event:
        return self.partition([position]).event(0)

    # --- runs --------------------------------------------------------------------------------------------------------

    def answer(
        self,
        text: str,
        window: Window | None,
        max_events: int,
        limits: Limits,
        counts: Counts,
        walk: Callable[[Partition, Findings], None],
        most: str,
    ) -> Why:
        """Walks through the partitions that are looked at, and puts together what was found; `most` bounds the walk."""
        chosen, notes = self._chosen()
        looked = self._looked(chosen, window, max_events)
        findings = Findings(limits, frozenset(self.rows[position] for position in chosen))
        for positions in looked.partitions:
            walk(self.partition(positions), findings)
            if findings.is_cut:
                break
        if self.without_key:
            notes.append(
                f"{self.without_key:,} of {len(self.rows):,} events are in no partition: "
                f"{listed(self.query.partition_by)} is NULL or NaN there"
            )
        notes += [*looked.notes, *findings.notes(most)]
        runs = (*findings.runs, *self._unseen(looked, chosen, findings))
        return answer_of(text, counts, looked, findings, runs, notes, self.question)

    def _chosen(self) -> tuple[frozenset[int], list[str]]:
        groups = list(self.groups.values())
        return chosen_places(self.question, self.table, self.events.schema, groups, self._shown_key)

    def _shown_key(self, position: int) -> str:
        return ", ".join(str(self.table.column(name)[position].as_py()) for name in self.query.partition_by)

    def _looked(self, chosen: frozenset[int], window: Window | None, max_events: int) -> Looked:
        size = None if window is None else window_size(window, self.query.time_type)
        reach = window_reach(window, size, self.times)
        return look_at(list(self.groups.values()), chosen, bool(chosen), max_events, reach)

    def _unseen(self, looked: Looked, chosen: frozenset[int], findings: Findings) -> list[Run]:
        """A tale for each chosen event that no run tells of: it is of no partition, or no run was waiting for it."""
        if findings.is_cut or findings.untold_runs or len(chosen) > findings.limits.told:
            return []
        told = {step.event.row for run in findings.runs for step in run.steps}
        told |= {row for run in findings.runs for row in run.rows}
        told |= {ending.by.row for run in findings.runs for ending in run.endings if ending.by is not None}
        looked_at = {position for part in looked.partitions for position in part}
        keyed = {position for part in self.groups.values() for position in part}
        found: list[Run] = []
        for position in sorted(chosen):
            is_cut_off = position in keyed and position not in looked_at
            if self.rows[position] not in told and not is_cut_off:
                kind = Kind.NOT_SEEN if position in keyed else Kind.KEY
                found.append(Run(0, None, (), (), (), (Ending(kind, self.event(position)),)))
        return found

    # --- one combination of events -----------------------------------------------------------------------------------

    def group_of(self, positions: Iterable[int]) -> tuple[list[int], Event | None]:
        """The partition of the first of the events, and the first event that is not in it, if there is one."""
        first, *others = positions
        group = next((part for part in self.groups.values() if first in part), [])
        stranger = next((position for position in (first, *others) if position not in group), None)
        return group, None if stranger is None else self.event(stranger)

    def combination_answer(self, text: str, run: Run, notes: tuple[str, ...] = ()) -> Why:
        """The answer about one run; it is a match if that is how it ended."""
        is_match = [ending.kind for ending in run.endings] == [Kind.MATCH]
        found = (Match(1, run.bound),) if is_match else ()
        sizes = (len(self.rows), len(self.groups), 1)
        return Why(text, *sizes, (), (), (), (), (run,), found, notes, is_combination=True)


def read_asked(call: Call, events: Any, at: object, keys: object) -> Asked:
    """The events, with the columns that the query and the question read."""
    source = open_events(events, call.order, call.type_column, call.definition, call.schema)
    query = analyze(call.definition, source.schema, source.order.order_by)
    question = read_question(at, keys, query.partition_by)
    names = columns_read(query, source.columns.names, source.order.columns)
    if question.filter is not None:
        names = list(dict.fromkeys([*names, *filter_columns(question.filter, source.schema)]))
    table = in_order(with_rows(source.read(names)), source.order)
    return Asked(query, Events(table, source.schema, query.order_by), question)
