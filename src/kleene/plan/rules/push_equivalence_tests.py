"""The most selective equivalence test partitions the stacks, the others are judged in construction (§4.2).

Beyond the paper, several tests may partition them together. It dismissed that because there are as many partitions as
combinations of values; but only those need stacks that occur among the events at hand.
"""

from __future__ import annotations

from dataclasses import replace

from kleene.errors import UnsupportedError
from kleene.plan.cost import most_on_a_stack
from kleene.plan.operators import Equivalence, Facts, Pipeline, Selection, SequenceConstruction, SequenceScan

WORTH_COMBINING = 4


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
    second = facts.hints.second_test or _second(algorithm, tests, facts)
    _check(algorithm, second, tests)
    scan = replace(plan.get(SequenceScan), algorithm=algorithm)
    plan = replace(plan.put(scan), tests=tests).noting(_reason(algorithm, second, tests, facts))
    if selection is None or not tests:
        return plan
    in_scan = 0 if algorithm != "pais" else len(tests) if second in ("multi_pais", "combined") else 1
    first, rest = tests[:in_scan], tests[in_scan:]
    # Multi-PAIS looks at each test alone and finds too many sequences: selection judges them again (§4.2.2).
    late = tests[1:] if second == "multi_pais" else rest if second == "selection" else ()
    pushed = rest if second == "dynamic" else ()
    construction = plan.get(SequenceConstruction)
    scan = replace(scan, tests=first, is_combined=second == "combined")
    return plan.put(scan, replace(construction, tests=pushed), replace(selection, tests=late))


def _second(algorithm: str, tests: tuple[Equivalence, ...], facts: Facts) -> str:
    """Together if the most selective test alone leaves many events on a stack; else it is not worth it."""
    if algorithm != "pais" or len(tests) < 2:
        return "dynamic"
    left = most_on_a_stack(facts, distinct_values(tests[0], facts))
    return "combined" if left is not None and left > WORTH_COMBINING else "dynamic"


def _check(algorithm: str, second: str, tests: tuple[Equivalence, ...]) -> None:
    if algorithm == "pais" and not tests:
        raise UnsupportedError(
            "scan='pais' needs an equivalence test, but the query has none",
            hint="For this query scan can be: 'basic', 'ais'.",
        )
    if second in ("multi_pais", "combined") and len(tests) < 2:
        raise UnsupportedError(
            f"second_test='{second}' needs two equivalence tests, but the query has {len(tests)}",
            hint="For this query second_test can be: 'selection', 'dynamic'.",
        )


def _most_selective_first(tests: tuple[Equivalence, ...], facts: Facts) -> tuple[Equivalence, ...]:
    """By the number of values; a test of which nothing is known keeps its place behind those that are known."""
    return tuple(sorted(tests, key=lambda test: -distinct_values(test, facts)))


def distinct_values(test: Equivalence, facts: Facts) -> float:
    known = (facts.statistics.distinct.get(name, 0.0) for name in test.attributes)
    return max(known, default=0.0)


def _reason(algorithm: str, second: str, tests: tuple[Equivalence, ...], facts: Facts) -> str:
    if facts.hints.scan is not None:
        return f"stacks: {algorithm}, as requested"
    if not tests:
        return "stacks: ais, since no equivalence test could partition them"
    if second == "combined" and facts.hints.second_test is None:
        return f"stacks: pais by all tests together, since one value of {tests[0]} alone would have many events"
    values = distinct_values(tests[0], facts)
    if len(tests) > 1 and values:
        return f"stacks: pais by {tests[0]}, the most selective test with about {values:,.0f} values"
    if len(tests) > 1:
        return f"stacks: pais by {tests[0]}, the first test; statistics could tell whether it is the most selective"
    about = f" (about {values:,.0f} values)" if values else ""
    return f"stacks: pais by {tests[0]}{about}, so only events that agree meet"
