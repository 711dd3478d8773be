"""From the basic plan to the plan that is run: rewrites, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from kleene.plan.operators import Facts, Pipeline
from kleene.plan.rules.drop_constant_tests import drop_constant_tests
from kleene.plan.rules.find_contradictions import find_contradictions
from kleene.plan.rules.fold_constants import fold_constants
from kleene.plan.rules.imply_equivalence_tests import imply_equivalence_tests
from kleene.plan.rules.index_negation import index_negation
from kleene.plan.rules.push_equivalence_tests import push_equivalence_tests
from kleene.plan.rules.push_negation import push_negation
from kleene.plan.rules.push_parameterized_predicates import push_parameterized_predicates
from kleene.plan.rules.push_simple_predicates import push_simple_predicates
from kleene.plan.rules.push_windows import push_windows

Rule = Callable[[Pipeline, Facts], Pipeline]

LOGICAL: tuple[Rule, ...] = (fold_constants, find_contradictions, drop_constant_tests, imply_equivalence_tests)
"""What the query means, said with less. These must come first: the others place what is left."""
PHYSICAL: tuple[Rule, ...] = (
    push_simple_predicates,
    push_equivalence_tests,  # before the rest: it chooses the stacks
    push_parameterized_predicates,
    push_windows,
    index_negation,
    push_negation,
)
OF_RUNS: tuple[Rule, ...] = (fold_constants, find_contradictions, index_negation, push_negation)
"""Runs have predicates and windows in the automaton already."""


def optimized(plan: Pipeline, facts: Facts) -> Pipeline:
    for rule in (*LOGICAL, *PHYSICAL) if plan.is_sequence else OF_RUNS:
        if plan.is_empty:
            break
        plan = rule(plan, facts)
    return plan
