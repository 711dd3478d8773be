"""A call and its events to the answer: chooses the walk, and asks about one combination of a SASE query's events."""

from __future__ import annotations

from typing import Any

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import is_row_pattern
from kleene.call import Call
from kleene.errors import SchemaError, listed, printable
from kleene.ir.options import Format
from kleene.ir.steps import is_steps
from kleene.ir.text import query_text
from kleene.options.checks import checked_count
from kleene.why.answer import Why
from kleene.why.asked import Asked, read_asked
from kleene.why.combination import Combination
from kleene.why.findings import Findings, Limits
from kleene.why.model import Ending, Kind, Run
from kleene.why.partition import Partition
from kleene.why.question import Question, check_rows
from kleene.why.row_asking import why_of_rows
from kleene.why.runs import Walk
from kleene.why.step_asking import why_of_steps
from kleene.why.tally import Tally


def why_of(
    call: Call, events: Any, at: object, keys: object, max_events: object, max_runs: object, limit: object
) -> Why:
    """The answer to the question that `at` and `keys` ask."""
    most_events = checked_count("max_events", max_events)
    limits = Limits(checked_count("max_runs", max_runs), checked_count("limit", limit))
    if is_row_pattern(call.definition):
        return why_of_rows(call.definition, events, at, keys, most_events, limits)
    asked = read_asked(call, events, at, keys)
    if is_steps(call.definition):
        return why_of_steps(asked, most_events, limits)
    if asked.question.combination is not None:
        return _why_of_combination(asked, call.format, limits)
    return _why_of_runs(asked, call.format, most_events, limits)


def _why_of_runs(asked: Asked, format_: Format, max_events: int, limits: Limits) -> Why:
    tally = Tally(asked.query)

    def walk(partition: Partition, findings: Findings) -> None:
        Walk(partition, findings, tally).follow(format_)

    text = query_text(asked.query.definition)
    return asked.answer(text, asked.query.window, max_events, limits, tally, walk, f"{limits.runs:,} runs, max_runs")


# --- one combination of events ---


def _why_of_combination(asked: Asked, format_: Format, limits: Limits) -> Why:
    text = query_text(asked.query.definition)
    rows = _rows_by_component(asked.query, asked.question)
    check_rows([row for part in rows for row in part], len(asked.rows))
    place_of = {row: place for place, row in enumerate(asked.rows)}
    places_of = [[place_of[row] for row in part] for part in rows]
    group, stranger = asked.group_of(place for part in places_of for place in part)
    names = [component.name for component in asked.query.components]
    if stranger is not None:
        bound = tuple((name, tuple(map(asked.event, part))) for name, part in zip(names, places_of, strict=True))
        return asked.combination_answer(text, Run(0, None, (), bound, (), (Ending(Kind.KEY, stranger),)))
    partition = asked.partition(group)
    number_of = {place: number for number, place in enumerate(group)}
    combination = Combination(partition, tuple(tuple(number_of[at] for at in part) for part in places_of))
    combination.judge()
    bound = partition.bound(combination.run)
    reasons = combination.reasons or _overlap(partition, combination, format_, limits)
    endings = tuple(reasons) or (Ending(Kind.MATCH, match=1),)
    return asked.combination_answer(text, Run(1, None, partition.key_text(), bound, tuple(combination.steps), endings))


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


def _rows_by_component(query: AnalyzedQuery, question: Question) -> list[tuple[int, ...]]:
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
