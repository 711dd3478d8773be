"""A call and its events to the answer: reads the events, looks at what was asked for, and puts the answer together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import is_row_pattern
from kleene.call import Call
from kleene.engine.events import Events, window_size
from kleene.engine.inputs import in_order, open_events
from kleene.engine.needs import columns_read
from kleene.engine.vectorized import vectorized_columns
from kleene.errors import SchemaError, listed, printable
from kleene.ir.evaluate import PlainValue
from kleene.ir.options import Format
from kleene.ir.query import QueryDefinition
from kleene.ir.text import query_text
from kleene.options.checks import checked_count
from kleene.why.answer import Why
from kleene.why.combination import Combination
from kleene.why.findings import Findings, Limits
from kleene.why.model import Ending, Event, Kind, Match, Run
from kleene.why.partition import Partition
from kleene.why.question import (
    ROW,
    Question,
    check_rows,
    chosen_positions,
    filter_columns,
    is_key,
    no_such_key,
    read_question,
)
from kleene.why.row_asking import why_of_rows, with_rows
from kleene.why.runs import Walk
from kleene.why.scope import Looked, look_at, window_reach
from kleene.why.tally import Tally, places


def why_of(
    call: Call, events: Any, at: object, keys: object, max_events: object, max_runs: object, limit: object
) -> Why:
    """The answer to the question that `at` and `keys` ask."""
    most_events = checked_count("max_events", max_events)
    limits = Limits(checked_count("max_runs", max_runs), checked_count("limit", limit))
    if is_row_pattern(call.definition):
        return why_of_rows(call.definition, events, at, keys, most_events, limits)
    return _why_of_events(call, events, at, keys, most_events, limits)


def _why_of_events(call: Call, events: Any, at: object, keys: object, max_events: int, limits: Limits) -> Why:
    source = open_events(events, call.order, call.type_column, call.definition, call.schema)
    query = analyze(call.definition, source.schema, source.order.order_by)
    question = read_question(at, keys, query.partition_by)
    names = columns_read(query, source.columns.names, source.order.columns)
    if question.filter is not None:
        names = list(dict.fromkeys([*names, *filter_columns(question.filter, source.schema)]))
    table = with_rows(source.read(names))
    table = in_order(table, source.order)
    asked = _Asked(query, Events(table, source.schema, query.order_by))
    if question.combination is not None:
        return _why_of_combination(asked, question, call.format, limits)
    return _why_of_runs(asked, question, call.format, max_events, limits)


class _Asked:
    """The events in their order, with the partition of each."""

    def __init__(self, query: AnalyzedQuery, events: Events) -> None:
        self.query, self.events, self.table = query, events, events.table
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

    def partition(self, key: tuple[PlainValue, ...], positions: Sequence[int]) -> Partition:
        types = None if self.types is None else [self.types[position] for position in positions]
        rows, times = [self.rows[position] for position in positions], [self.times[at] for at in positions]
        return Partition(self.query, self.events, key, list(positions), rows, times, types)

    def event(self, position: int) -> Event:
        return self.partition((), [position]).event(0)


def _why_of_runs(asked: _Asked, question: Question, format_: Format, max_events: int, limits: Limits) -> Why:
    chosen, notes = _chosen(asked, question)
    looked = _looked(asked, chosen, max_events)
    findings = Findings(limits, frozenset(asked.rows[position] for position in chosen))
    tally = Tally(asked.query)
    for positions in looked.partitions:
        Walk(asked.partition(_key(asked, positions), positions), findings, tally).follow(format_)
        if findings.is_cut:
            break
    if asked.without_key:
        notes.append(
            f"{asked.without_key:,} of {len(asked.rows):,} events are in no partition: "
            f"{listed(asked.query.partition_by)} is NULL or NaN there"
        )
    notes += [*looked.notes, *findings.notes(f"{limits.runs:,} runs, max_runs")]
    unseen = _unseen(asked, looked, chosen, findings)
    return Why(
        query_text(asked.query.definition),
        tally.events,
        len(looked.partitions),
        tally.runs,
        tally.predicates(),
        tally.states(),
        tally.endings(),
        tuple(findings.nearest()),
        (*findings.runs, *unseen),
        tuple(findings.matches),
        tuple(notes),
        has_runs=question.is_about_some,
    )


def _key(asked: _Asked, positions: Sequence[int]) -> tuple[PlainValue, ...]:
    return tuple(asked.events.values(name)[positions[0]] for name in asked.query.partition_by)


def _chosen(asked: _Asked, question: Question) -> tuple[frozenset[int], list[str]]:
    """The places of the events whose runs are told; of keys, all their events."""
    if not question.is_about_some:
        return frozenset(), []
    notes: list[str] = []
    chosen = frozenset(range(len(asked.rows)))
    if question.rows is not None or question.filter is not None:
        chosen = chosen_positions(question, asked.table, asked.events.schema)
        if question.filter is not None and not chosen:
            notes.append(f"no event passes the filter {printable(question.filter)}")
    if question.keys is not None:
        of_keys: set[int] = set()
        for key in question.keys:
            found = [part for part in asked.groups.values() if is_key(asked.table, part[0], key)]
            if not found:
                raise no_such_key(key, [_shown_key(asked, part[0]) for part in asked.groups.values()])
            of_keys.update(position for part in found for position in part)
        chosen &= of_keys
    return chosen, notes


def _shown_key(asked: _Asked, position: int) -> str:
    return ", ".join(str(asked.table.column(name)[position].as_py()) for name in asked.query.partition_by)


def _looked(asked: _Asked, chosen: frozenset[int], max_events: int) -> Looked:
    window = asked.query.window
    size = None if window is None else window_size(window, asked.query.time_type)
    reach = window_reach(window, size, asked.times)
    return look_at(list(asked.groups.values()), chosen, bool(chosen), max_events, reach)


def _unseen(asked: _Asked, looked: Looked, chosen: frozenset[int], findings: Findings) -> list[Run]:
    """A tale for each chosen event that no run tells of: it is of no partition, or no run was waiting for it."""
    if findings.is_cut or findings.untold_runs or len(chosen) > findings.limits.told:
        return []
    told = {step.event.row for run in findings.runs for step in run.steps}
    told |= {row for run in findings.runs for row in run.rows}
    told |= {ending.by.row for run in findings.runs for ending in run.endings if ending.by is not None}
    looked_at = {position for part in looked.partitions for position in part}
    keyed = {position for part in asked.groups.values() for position in part}
    found: list[Run] = []
    for position in sorted(chosen):
        is_cut_off = position in keyed and position not in looked_at
        if asked.rows[position] not in told and not is_cut_off:
            kind = Kind.NOT_SEEN if position in keyed else Kind.KEY
            found.append(Run(0, None, (), (), (), (Ending(kind, asked.event(position)),)))
    return found


# --- one combination of events ---


def _why_of_combination(asked: _Asked, question: Question, format_: Format, limits: Limits) -> Why:
    rows = _rows_by_component(asked.query.definition, asked.query, question)
    check_rows([row for part in rows for row in part], len(asked.rows))
    place_of = {row: place for place, row in enumerate(asked.rows)}
    places_of = [[place_of[row] for row in part] for part in rows]
    flat = [place for part in places_of for place in part]
    group = next((part for part in asked.groups.values() if flat[0] in part), [])
    stranger = next((place for place in flat if place not in group), None)
    names = [component.name for component in asked.query.components]
    if stranger is not None:
        bound = tuple((name, tuple(map(asked.event, part))) for name, part in zip(names, places_of, strict=True))
        run = Run(0, None, (), bound, (), (Ending(Kind.KEY, asked.event(stranger)),))
        return _combination_answer(asked, run, ())
    partition = asked.partition(_key(asked, group), group)
    number_of = {place: number for number, place in enumerate(group)}
    combination = Combination(partition, tuple(tuple(number_of[at] for at in part) for part in places_of))
    combination.judge()
    bound = partition.bound(combination.run)
    reasons = combination.reasons or _overlap(partition, combination, format_, limits)
    is_match = not reasons
    endings = (Ending(Kind.MATCH, match=1),) if is_match else tuple(reasons)
    run = Run(1, None, partition.key_text(), bound, tuple(combination.steps), endings)
    return _combination_answer(asked, run, (Match(1, bound),) if is_match else ())


def _overlap(partition: Partition, combination: Combination, format_: Format, limits: Limits) -> list[Ending]:
    """Whether a match is not given out because another one is."""
    if format_ is not Format.NON_OVERLAPPING:
        return []
    findings = Findings(limits, frozenset())
    Walk(partition, findings, Tally(partition.query)).follow(format_)
    bound = partition.bound(combination.run)
    given = [match for match in findings.matches if match.bound == bound]
    if given:
        return []
    numbers = [partition.rows.index(event.row) for _, events in bound for event in events]
    for match in findings.matches:
        others = [partition.rows.index(event.row) for _, events in match.bound for event in events]
        if others[0] <= numbers[-1] and numbers[0] <= others[-1]:
            return [Ending(Kind.LOST, match=match.number)]
    return []


def _rows_by_component(definition: QueryDefinition, query: AnalyzedQuery, question: Question) -> list[tuple[int, ...]]:
    given = dict(question.combination or ())
    names = [component.name for component in query.components if component.named]
    if len(names) < len(query.components):
        raise SchemaError(
            "at names the events of each variable, but a component of the pattern has no variable",
            hint="Give it one: SEQ(Shelf a, Exit b).",
        )
    for name in given:
        if name not in names:
            raise SchemaError(
                f"at names '{printable(name)}', which no event of a match is bound to",
                hint=f"Variables of the pattern: {listed(names)}.",
            )
    for component in query.components:
        count = len(given.get(component.name, ()))
        if not count:
            raise SchemaError(
                f"at names no row for the variable '{printable(component.name)}'",
                hint=f"Give each variable its rows: {listed(names)}.",
            )
        if count > 1 and not component.is_kleene:
            raise SchemaError(
                f"at names {count:,} rows for '{printable(component.name)}', which is one event",
                hint="Only a Kleene variable, as Stock+ a[], has several.",
            )
    return [given[component.name] for component in query.components]


def _combination_answer(asked: _Asked, run: Run, found: tuple[Match, ...]) -> Why:
    return Why(
        query_text(asked.query.definition),
        len(asked.rows),
        len(asked.groups),
        1,
        (),
        (),
        (),
        (),
        (run,),
        found,
        (),
        is_combination=True,
    )
