"""Equalities that tie all components together are an equivalence test, though the query did not say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kleene.analysis.analyzed import AnalyzedQuery, NegativeComponent
from kleene.ir import expr as ir
from kleene.plan.operators import Equivalence, Facts, NegationFilter, Pipeline, Predicate, Selection, numbers_of

Place = tuple[int, str]
"""An attribute of a component."""


def imply_equivalence_tests(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with equivalence tests in place of the equalities that say the same.

    >>> plan, facts = planned("EVENT SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x = c.y AND a.x > 5")
    >>> print(plan.get(Selection))
    Selection
       a.x > 5
       a.x = b.x
       b.x = c.y
    >>> print(imply_equivalence_tests(plan, facts).get(Selection))
    Selection
       [x = y]
       a.x > 5
    """
    selection = plan.find(Selection)
    if selection is None or facts.hints.implied_tests == "off":
        return plan
    classes = _classes(selection.predicates, facts.query)
    found = [test for places in classes if (test := _test(places, facts.query)) is not None]
    bracketed = {test.attributes for test in selection.tests}
    tests = tuple(test for test in found if test.attributes not in bracketed)
    chosen = [set(enumerate(test.attributes)) for test in (*selection.tests, *tests)]
    kept = tuple(item for item in selection.predicates if not _is_said(item, chosen, facts.query))
    plan = plan.put(replace(selection, tests=(*selection.tests, *tests), predicates=kept))
    return _tied_negations(replace(plan, tests=(*plan.tests, *tests)), facts.query)


def _equality(expression: ir.Expr, query: AnalyzedQuery) -> tuple[ir.Attribute, ir.Attribute] | None:
    """The two sides of an equality between attributes of two events, of one type."""
    match expression:
        case ir.Comparison(operator="=", left=ir.Attribute() as left, right=ir.Attribute() as right):
            # Without a schema no type is known, but a name has the type it has.
            is_same = left.type == right.type if query.schema is not None else left.name == right.name
            if is_same and left.variable != right.variable:
                return left, right
    return None


def _places(predicate: Predicate, query: AnalyzedQuery) -> tuple[Place, Place] | None:
    sides = _equality(predicate.conjunct.expression, query)
    if sides is None:
        return None
    numbers = numbers_of(query)
    left, right = ((numbers[str(side.variable)], side.name) for side in sides)
    return left, right


def _classes(predicates: tuple[Predicate, ...], query: AnalyzedQuery) -> list[list[Place]]:
    """Attributes that equalities make equal, together, in the order in which they are mentioned."""
    found: list[list[Place]] = []
    for predicate in predicates:
        places = _places(predicate, query)
        if places is None:
            continue
        touched = [part for part in found if not set(part).isdisjoint(places)]
        merged = list(dict.fromkeys([*(place for part in touched for place in part), *places]))
        found = [part for part in found if part not in touched] + [merged]
    return found


def _test(places: list[Place], query: AnalyzedQuery) -> Equivalence | None:
    by_component: dict[int, str] = {}
    for component, name in places:
        by_component.setdefault(component, name)
    if len(by_component) < len(query.components):
        return None
    attributes = tuple(by_component[number] for number in range(len(query.components)))
    return Equivalence(attributes, (None,) * len(query.negations), is_implied=True)


def _is_said(predicate: Predicate, chosen: list[set[Place]], query: AnalyzedQuery) -> bool:
    places = _places(predicate, query)
    return places is not None and any(set(places) <= part for part in chosen)


def _tied_negations(plan: Pipeline, query: AnalyzedQuery) -> Pipeline:
    """Negations whose predicates tie them to an implied test: it says so, and the predicate is not needed."""
    negation = plan.find(NegationFilter)
    if negation is None:
        return plan
    tests, negations = list(plan.tests), list(negation.negations)
    for at, item in enumerate(negations):
        number = query.negations.index(next(own for own in query.negations if own.name == item.name))
        for which, test in enumerate(tests):
            if test.is_implied and test.negative[number] is None:
                tied = dict(_ties(item, test, query))
                if tied:
                    conjunct, name = next(iter(tied.items()))
                    negative = (*test.negative[:number], name, *test.negative[number + 1 :])
                    tests[which] = replace(test, negative=negative)
                    left = tuple(own for own in item.predicates if id(own) != conjunct)
                    negations[at] = item = replace(item, predicates=left)
    same = dict(zip(plan.tests, tests, strict=True))
    selection = plan.find(Selection)
    if selection is not None:
        plan = plan.put(replace(selection, tests=tuple(same.get(test, test) for test in selection.tests)))
    return replace(plan, tests=tuple(tests)).put(replace(negation, negations=tuple(negations)))


def _ties(item: NegativeComponent, test: Equivalence, query: AnalyzedQuery) -> Iterator[tuple[int, str]]:
    """Predicates of the negation, by identity, that compare an attribute of it with one of the test."""
    numbers = numbers_of(query)
    for conjunct in item.predicates:
        sides = _equality(conjunct.expression, query)
        if sides is None:
            continue
        for own, other in (sides, sides[::-1]):
            number = numbers.get(str(other.variable))
            if own.variable == item.name and number is not None and test.attributes[number] == other.name:
                yield id(conjunct), own.name
