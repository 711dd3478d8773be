"""What a query means, by brute force: every assignment of events to components is tried, and kept if it is a match.

Written from SEMANTICS.md alone (the sections in brackets), and sharing nothing with the engines it checks. Clear, and
exponential in the number of events.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import Any

from structured_query import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Component,
    Condition,
    Constant,
    IsNull,
    Length,
    Not,
    Or,
    StructuredQuery,
    Value,
    is_completion,
    is_indexed,
    references,
    variables,
)

Event = Mapping[str, Any]
Bound = Mapping[str, Sequence[Event]]  # the events selected so far, by variable
Assignment = tuple[tuple[int, ...], ...]  # for each positive component, the positions of its events

COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def result_rows(query: StructuredQuery, events: Sequence[Event]) -> list[dict[str, Any]]:
    """The rows of the result, in order; the events are in the order of the input. [3 Output]"""
    ordered = in_order(events)
    return [result_row(query, ordered, assignment) for assignment in assignments_given_out(query, ordered)]


def in_order(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event["t"])


def result_row(query: StructuredQuery, events: Sequence[Event], assignment: Assignment) -> dict[str, Any]:
    row = {key.name: events[assignment[0][0]][key.name] for key in query.keys}
    for component, positions in zip(query.positives, assignment, strict=True):
        if component.is_named:
            selected = [dict(events[position]) for position in positions]
            row[component.variable] = selected if component.is_kleene else selected[0]
    return row | {"match_start": events[assignment[0][0]]["t"], "match_end": events[assignment[-1][-1]]["t"]}


def assignments_given_out(query: StructuredQuery, events: Sequence[Event]) -> list[Assignment]:
    found = [assignment for assignment in every_assignment(query, len(events)) if is_match(query, events, assignment)]
    if query.format == "non_overlapping":
        found = non_overlapping(query, events, found)
    return sorted(found, key=output_order)


def every_assignment(query: StructuredQuery, count: int) -> Iterator[Assignment]:
    """Every way to give components events, those of a component all before those of the next."""
    components = query.positives
    for size in range(len(components), count + 1):
        for positions in combinations(range(count), size):
            for cuts in combinations(range(1, size), len(components) - 1):
                edges = (0, *cuts, size)
                groups = tuple(positions[start:end] for start, end in pairwise(edges))
                if all(
                    component.is_kleene or len(group) == 1 for component, group in zip(components, groups, strict=True)
                ):
                    yield groups


def positions_of(assignment: Assignment) -> tuple[int, ...]:
    return tuple(position for group in assignment for position in group)


def output_order(assignment: Assignment) -> Any:
    """By the last event, the first, then all of them. [1]

    Matches of the same events differ in their variables: SEMANTICS.md is silent about these, the longer earlier
    variable comes first, as it does where non-overlapping matches are chosen.
    """
    positions = positions_of(assignment)
    return positions[-1], positions[0], positions, [-len(group) for group in assignment]


def non_overlapping(
    query: StructuredQuery, events: Sequence[Event], found: Sequence[Assignment]
) -> Iterator[Assignment]:
    """[3 Formats]"""

    def choice(assignment: Assignment) -> Any:
        positions = positions_of(assignment)
        return positions[-1], -positions[0], len(positions), positions, [-len(group) for group in assignment]

    ends: dict[Any, int] = {}
    for assignment in sorted(found, key=choice):
        first, last = assignment[0][0], assignment[-1][-1]
        partition = key_of(query, events[first])
        if first > ends.get(partition, -1):
            ends[partition] = last
            yield assignment


# A match.


def is_match(query: StructuredQuery, events: Sequence[Event], assignment: Assignment) -> bool:
    bound = {
        component.variable: [events[position] for position in group]
        for component, group in zip(query.positives, assignment, strict=True)
    }
    return (
        is_within_window(query, events, assignment)
        and is_run(query, events, assignment)
        and not any(occurs(query, events, assignment, bound, negative) for negative in query.negatives)
        and (query.having is None or holds(query.having, bound))
    )


def is_within_window(query: StructuredQuery, events: Sequence[Event], assignment: Assignment) -> bool:
    """[3 Window]"""
    first, last = assignment[0][0], assignment[-1][-1]
    if query.window is None:
        return True
    if query.window.is_events:
        partition = key_of(query, events[first])
        return sum(key_of(query, event) == partition for event in events[first:last]) < query.window.size
    return events[last]["t"] - events[first]["t"] < query.window.size


def is_run(query: StructuredQuery, events: Sequence[Event], assignment: Assignment) -> bool:
    """Whether a run selects exactly these events: each move, from the first event to the last, is allowed. [3 Runs]"""
    components = query.positives
    component_at = {position: number for number, group in enumerate(assignment) for position in group}
    first, last = assignment[0][0], assignment[-1][-1]
    bound: dict[str, list[Event]] = {}
    current = -1  # the component bound last
    for position in range(first, last + 1):
        event = events[position]
        if position in component_at:
            begins = component_at[position] != current
            if begins and current >= 0 and not is_complete(query, bound, components[current]):
                return False
            current = component_at[position]
            component = components[current]
            if not may_select(query, bound, component, event):
                return False
            bound.setdefault(component.variable, []).append(event)
        elif is_seen(query, event, events[first]) and not may_ignore(query, bound, current, event):
            return False
    return is_complete(query, bound, components[current])


def is_seen(query: StructuredQuery, event: Event, first: Event) -> bool:
    """Whether the event is in the stream that the run reads: the whole input, or its partition."""
    return query.strategy == "strict_contiguity" or key_of(query, event) == key_of(query, first)


def may_ignore(query: StructuredQuery, bound: Bound, current: int, event: Event) -> bool:
    match query.strategy:
        case "strict_contiguity" | "partition_contiguity":
            return False
        case "skip_till_next_match":
            component = query.positives[current]
            waits_for = component if component.is_kleene else query.positives[current + 1]
            return not may_select(query, bound, waits_for, event)
    return True


def may_select(query: StructuredQuery, bound: Bound, component: Component, event: Event) -> bool:
    """Whether the event has the type, the key and the predicates to begin the component, or to be taken by it."""
    extended = {**bound, component.variable: [*bound.get(component.variable, []), event]}
    return (
        event["type"] in component.types
        and has_key(query, event, bound)
        and all(
            holds(conjunct, extended)
            for conjunct in conjuncts_of(query, component)
            if not is_for_completion(conjunct, component)
        )
    )


def is_complete(query: StructuredQuery, bound: Bound, component: Component) -> bool:
    return all(
        holds(conjunct, bound) for conjunct in conjuncts_of(query, component) if is_for_completion(conjunct, component)
    )


def occurs(
    query: StructuredQuery, events: Sequence[Event], assignment: Assignment, bound: Bound, negative: Component
) -> bool:
    """Whether an event of the negative component stands where none may. [3 Negation]"""
    place = query.components.index(negative)
    before = sum(not component.is_negative for component in query.components[:place])  # positive components before it
    start = assignment[before - 1][-1] + 1 if before > 0 else 0
    end = assignment[before][0] if before < len(assignment) else len(events)
    first, last = events[assignment[0][0]], events[assignment[-1][-1]]
    return any(
        event["type"] in negative.types
        and has_key(query, event, bound)
        and (before > 0 or event["t"] > last["t"] - query.window.size)
        and (before < len(assignment) or event["t"] < first["t"] + query.window.size)
        and all(holds(conjunct, {**bound, negative.variable: [event]}) for conjunct in conjuncts_of(query, negative))
        for event in events[start:end]
    )


def key_of(query: StructuredQuery, event: Event) -> tuple[Any, ...]:
    return tuple(event[key.name] for key in query.keys)


def has_key(query: StructuredQuery, event: Event, bound: Bound) -> bool:
    """Whether the event agrees with those selected, and with the constants. [3 Equivalence tests]"""
    others = [other for selected in bound.values() for other in selected]
    return all(
        event[key.name] is not None
        and all(event[key.name] == other[key.name] for other in others)
        and (key.constant is None or event[key.name] == key.constant)
        for key in query.keys
    )


# Predicates.


def conjuncts_of(query: StructuredQuery, component: Component) -> list[Condition]:
    """The conjuncts of WHERE that belong to the component. [3 Predicate placement]"""
    return [
        conjunct
        for predicate in query.predicates
        for conjunct in conjuncts(predicate)
        if owner(query, conjunct) == component
    ]


def owner(query: StructuredQuery, conjunct: Condition) -> Component:
    """The negative component that it mentions, or else the positive one that is bound last."""
    mentioned = [component for component in query.components if component.variable in variables(conjunct)]
    return next((component for component in mentioned if component.is_negative), mentioned[-1])


def is_for_completion(conjunct: Condition, component: Component) -> bool:
    return any(
        component.is_kleene and reference.variable == component.variable and is_completion(reference)
        for reference in references(conjunct)
    )


def conjuncts(condition: Condition) -> list[Condition]:
    """The conjunctive normal form."""
    match condition:
        case And(operands):
            return [conjunct for operand in operands for conjunct in conjuncts(operand)]
        case Or(operands):
            return [Or(choice) for choice in product(*(conjuncts(operand) for operand in operands))]
        case Between(operand, low, high):
            return [Comparison(">=", operand, low), Comparison("<=", operand, high)]
        case Not(operand):
            return conjuncts(negation(operand))
    return [condition]


def negation(condition: Condition) -> Condition:
    """The condition that is TRUE where this one is FALSE, with NOT pushed inward."""
    match condition:
        case Comparison(sign, left, right):
            return Comparison(OPPOSITES[sign], left, right)
        case IsNull(operand, is_negated):
            return IsNull(operand, not is_negated)
        case Between(operand, low, high):
            return Or((Comparison("<", operand, low), Comparison(">", operand, high)))
        case Not(operand):
            return operand
        case And(operands):
            return Or(tuple(negation(operand) for operand in operands))
        case Or(operands):
            return And(tuple(negation(operand) for operand in operands))
    raise AssertionError(condition)


def holds(condition: Condition, bound: Bound) -> bool:
    """Whether the condition is TRUE for every i that it speaks of, and every event where it names no index."""
    names = sorted(variables(condition))
    indexes = (indexes_of(name, condition, bound) for name in names)
    return all(truth(condition, bound, dict(zip(names, choice, strict=True))) is True for choice in product(*indexes))


def indexes_of(variable: str, condition: Condition, bound: Bound) -> range:
    mentions = [reference for reference in references(condition) if reference.variable == variable]
    if any(is_indexed(reference) for reference in mentions):
        return range(1, len(bound[variable]))
    if any(isinstance(reference, Attribute) and reference.place == "every" for reference in mentions):
        return range(len(bound[variable]))
    return range(1)


def truth(condition: Condition, bound: Bound, index: Mapping[str, int]) -> bool | None:
    """TRUE, FALSE, or None for unknown. [2]"""
    match condition:
        case Comparison(sign, left, right):
            values = value(left, bound, index), value(right, bound, index)
            return None if any(item is None or item != item for item in values) else COMPARISONS[sign](*values)
        case IsNull(operand, is_negated):
            return (value(operand, bound, index) is None) != is_negated
        case Between(operand, low, high):
            return truth(And((Comparison(">=", operand, low), Comparison("<=", operand, high))), bound, index)
        case Not(operand):
            known = truth(operand, bound, index)
            return None if known is None else not known
        case And(operands):
            parts = [truth(operand, bound, index) for operand in operands]
            return False if False in parts else None if None in parts else True
        case Or(operands):
            parts = [truth(operand, bound, index) for operand in operands]
            return True if True in parts else None if None in parts else False
    raise AssertionError(condition)


def value(node: Value, bound: Bound, index: Mapping[str, int]) -> Any:
    match node:
        case Constant(constant):
            return constant
        case Length(variable):
            return len(bound[variable])
        case Attribute(variable, place, name):
            position = {"first": 0, "last": -1, "i-1": index[variable] - 1}.get(place, index[variable])
            return bound[variable][position][name]
        case Aggregate(function, variable, is_so_far, name):
            events = bound[variable][: index[variable]] if is_so_far else bound[variable]
            return aggregate(function, [True if name is None else event[name] for event in events])
        case Arithmetic(sign, left, right):
            return arithmetic(sign, value(left, bound, index), value(right, bound, index))
    raise AssertionError(node)


def aggregate(function: str, values: Sequence[Any]) -> Any:
    known = [item for item in values if item is not None]
    if function == "count":
        return len(known)
    if not known:
        return None
    match function:
        case "sum":
            return sum(known)
        case "avg":
            return sum(known) / len(known)
        case "min":
            return min(known)
        case "max":
            return max(known)
        case "first":
            return known[0]
        case "last":
            return known[-1]
    raise AssertionError(function)


def arithmetic(sign: str, left: Any, right: Any) -> Any:
    if left is None or right is None or (sign in "/%" and right == 0):
        return None
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "%":
            return math.fmod(left, right)
    raise AssertionError(sign)
