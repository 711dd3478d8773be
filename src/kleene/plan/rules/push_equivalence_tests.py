"""The most selective equivalence test partitions the stacks, the others are judged in construction (§4.2)."""

from __future__ import annotations

from dataclasses import replace

from kleene.errors import UnsupportedError
from kleene.plan.facts import Facts
from kleene.plan.operators import Equivalence, Pipeline, Selection, SequenceConstruction, SequenceScan


def push_equivalence_tests(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with its stacks, and with equivalence tests where the hints, or the statistics, want them.

    >>> plan, facts = planned("EVENT SEQ(A a, B b) WHERE [x, y]", statistics={"distinct": {"x": 10, "y": 500}})
    >>> print(push_equivalence_tests(plan, facts))
    TF transformation
    └─ SC← sequence construction
       │  [x] by dynamic filtering
       └─ SS→ sequence scan
             (A a, B b)
             active instance stacks partitioned by value (PAIS), by [y]
    """
    selection = plan.find(Selection)
    tests = _most_selective_first(() if selection is None else selection.tests, facts)
    algorithm = facts.hints.scan or ("pais" if tests else "ais")
    second = facts.hints.second_test or "dynamic"
    _check(algorithm, second, tests)
    scan = replace(plan.get(SequenceScan), algorithm=algorithm)
    plan = replace(plan.put(scan), tests=tests).noting(_reason(algorithm, tests, facts))
    if selection is None or not tests:
        return plan
    in_scan = 0 if algorithm != "pais" else len(tests) if second == "multi_pais" else 1
    first, rest = tests[:in_scan], tests[in_scan:]
    # Multi-PAIS looks at each test alone and finds too many sequences: selection judges them again (§4.2.2).
    late = tests[1:] if second == "multi_pais" else rest if second == "selection" else ()
    pushed = rest if second == "dynamic" else ()
    construction = plan.get(SequenceConstruction)
    return plan.put(replace(scan, tests=first), replace(construction, tests=pushed), replace(selection, tests=late))


def _check(algorithm: str, second: str, tests: tuple[Equivalence, ...]) -> None:
    if algorithm == "pais" and not tests:
        raise UnsupportedError(
            "scan='pais' needs an equivalence test, and the query has none",
            hint="For this query scan can be: 'basic', 'ais'.",
        )
    if second == "multi_pais" and len(tests) < 2:
        raise UnsupportedError(
            f"second_test='multi_pais' needs two equivalence tests, and the query has {len(tests)}",
            hint="For this query second_test can be: 'selection', 'dynamic'.",
        )


def _most_selective_first(tests: tuple[Equivalence, ...], facts: Facts) -> tuple[Equivalence, ...]:
    """By the number of values; a test of which nothing is known keeps its place behind those that are known."""
    return tuple(sorted(tests, key=lambda test: -distinct_values(test, facts)))


def distinct_values(test: Equivalence, facts: Facts) -> float:
    known = (facts.statistics.distinct.get(name, 0.0) for name in test.attributes)
    return max(known, default=0.0)


def _reason(algorithm: str, tests: tuple[Equivalence, ...], facts: Facts) -> str:
    if facts.hints.scan is not None:
        return f"stacks: {algorithm}, as was asked for"
    if not tests:
        return "stacks: ais, since no equivalence test could partition them"
    values = distinct_values(tests[0], facts)
    if len(tests) > 1 and values:
        return f"stacks: pais by {tests[0]}, the most selective test with about {values:,.0f} values"
    if len(tests) > 1:
        return f"stacks: pais by {tests[0]}, the first test; statistics could tell whether it is the most selective"
    about = f" (about {values:,.0f} values)" if values else ""
    return f"stacks: pais by {tests[0]}{about}, so that only events that agree meet"
