"""What a plan will cost, by statistics: how many events and runs are looked at, on average, for each event.

Rough, and made to tell large differences from small ones. Events are taken to be spread evenly, and predicates to be
independent of each other.
"""

from __future__ import annotations

import math

from kleene.ir import expr as ir
from kleene.plan.operators import Equivalence, Facts, Predicate, bracketed_tests, predicates_of

CLEARLY = 4.0
"""So many times less work must runs promise to be preferred: sequences are cheaper in all that is not counted here."""
_SELECTIVITY = {"=": 0.1, "!=": 0.9, "<": 0.5, "<=": 0.5, ">": 0.5, ">=": 0.5}


def cheaper_runs(facts: Facts) -> str | None:
    """Why runs would do clearly less work than sequence operators; None if they would not, or too little is known.

    The walk back from the last event cannot use a predicate between the first events before it has come to them.

    >>> text = "EVENT SEQ(A a, B b, C c) WHERE a.x = b.x WITHIN 1000"
    >>> rare = {"events": {"A": 10, "B": 5000, "C": 5000}, "distinct": {"x": 1000}}
    >>> _, facts = planned(text, statistics=rare)
    >>> cheaper_runs(facts)
    'few of the events so far lead on: for each event, runs to look at are about 1, but tries from behind about 499'
    >>> _, facts = planned(text, statistics={"events": {"A": 5000, "B": 5000, "C": 10}, "distinct": {"x": 10}})
    >>> cheaper_runs(facts) is None
    True
    """
    shares = _shares(facts)
    if shares is None or len(shares) < 3:
        return None
    sequences, runs = _tries_from_behind(facts, shares), _runs_looked_at(facts, shares)
    if sequences <= CLEARLY * (runs + 1):
        return None
    return (
        f"few of the events so far lead on: for each event, runs to look at are about {runs:,.0f}, "
        f"but tries from behind about {sequences:,.0f}"
    )


def expected_partners(facts: Facts, component: int) -> float | None:
    """How many ways there are, on average, to bind the components before this one; None if nothing is known."""
    shares = _shares(facts)
    if shares is None:
        return None
    partners, predicates = _partners(facts, shares), _predicates(facts)
    found = 1.0
    for number in range(component - 1, -1, -1):
        found *= partners[number] * _passing(predicates, number, 0, facts) / (component - number)
    return found


def most_on_a_stack(facts: Facts, values: float) -> float | None:
    """How many events of a component one window holds, at most, for one of so many values; None if nothing is known."""
    shares = _shares(facts)
    return None if shares is None or values < 1 else max(shares) * _in_window(facts) / values


def _shares(facts: Facts) -> list[float] | None:
    """The part of all events that each component may select; None if that is not known of all."""
    shares = [facts.statistics.share(component.types) for component in facts.query.components]
    known = [share for share in shares if share is not None]
    return known if len(known) == len(shares) else None


def _in_window(facts: Facts) -> float:
    statistics = facts.statistics
    if statistics.in_window is not None:
        return statistics.in_window
    total, window = sum(statistics.events.values()), facts.query.window
    return total if window is None else min(total, float(window.size))


def _distinct(test: Equivalence, facts: Facts) -> float:
    return max(facts.statistics.distinct.get(test.attributes[0], 1.0), 1.0)


def _tries_from_behind(facts: Facts, shares: list[float]) -> float:
    """For an event, on average: the instances that construction tries, should the event end the pattern."""
    partners, predicates = _partners(facts, shares), _predicates(facts)
    values = sorted((_distinct(test, facts) for test in bracketed_tests(facts.query)), reverse=True)
    on_one_stack = math.prod(values[1:])  # the first test has stacks, the others judge what stands on one
    partial, tried = 1.0, 0.0
    for number in range(len(shares) - 2, -1, -1):
        tried += partial * partners[number] * on_one_stack
        partial *= partners[number] * _passing(predicates, number, 0, facts) / (len(shares) - 1 - number)
    return shares[-1] * tried


def _runs_looked_at(facts: Facts, shares: list[float]) -> float:
    """For an event, on average: the runs of its partition, each of which is asked what it does with the event."""
    partners, predicates = _partners(facts, shares), _predicates(facts)
    runs, partial = 0.0, 1.0
    for number in range(len(shares) - 1):
        partial *= partners[number] * _passing(predicates, number, -1, facts) / (number + 1)
        runs += partial
    return sum(shares) * runs


def _partners(facts: Facts, shares: list[float]) -> list[float]:
    """How many events of each component a window holds that agree on the tests."""
    events, values = _in_window(facts), math.prod(_distinct(test, facts) for test in bracketed_tests(facts.query))
    return [share * events / values for share in shares]


def _predicates(facts: Facts) -> list[Predicate]:
    return [item for item in predicates_of(facts.query) if not item.is_simple]


def _passing(predicates: list[Predicate], number: int, end: int, facts: Facts) -> float:
    """The part that satisfies the predicates that can be judged at the component: 0 from behind, -1 from the front."""
    found = 1.0
    for item in predicates:
        if item.components[end] == number:
            found *= _selectivity(item, facts)
    return found


def _selectivity(predicate: Predicate, facts: Facts) -> float:
    match predicate.conjunct.expression:
        case ir.Comparison(operator="=", left=ir.Attribute(name=left), right=ir.Attribute(name=right)):
            values = max(facts.statistics.distinct.get(name, 0.0) for name in (left, right))
            return 1 / values if values >= 1 else _SELECTIVITY["="]
        case ir.Comparison(operator=operator):
            return _SELECTIVITY[operator]
    return 0.5
