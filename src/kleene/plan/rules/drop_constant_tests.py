"""An equivalence test with a constant is said already by comparing each event with the constant."""

from __future__ import annotations

from dataclasses import replace

from kleene.ir import expr as ir
from kleene.plan.operators import Facts, Pipeline, Selection
from kleene.schema import BOOLEAN, INTEGER, STRING


def drop_constant_tests(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan without equivalence tests that name the value: stacks for one value would tell nothing apart.

    >>> plan, facts = planned("EVENT SEQ(A a, B b) WHERE [name = 'John'] AND [x]")
    >>> print(plan.get(Selection))
    Selection
       [name] [x]
       a.name = 'John'
       b.name = 'John'
    >>> print(drop_constant_tests(plan, facts).get(Selection))
    Selection
       [x]
       a.name = 'John'
       b.name = 'John'
    """
    selection = plan.find(Selection)
    constant = {
        test.attribute
        for test in facts.query.definition.equivalence_tests
        if test.constant is not None and _is_one_value(test.attribute, test.constant, facts)
    }
    if selection is None or not constant:
        return plan
    kept = tuple(test for test in plan.tests if test.attributes[0] not in constant)
    return replace(plan.put(replace(selection, tests=kept)), tests=kept)


def _is_one_value(attribute: str, constant: ir.Expr, facts: Facts) -> bool:
    """Whether only one value equals the constant: if numbers are converted to be compared, two different ones may."""
    schema = facts.query.schema
    if schema is None:
        return True
    return isinstance(constant, ir.Literal) and constant.of_type == schema.type_of(attribute) in (
        STRING,
        INTEGER,
        BOOLEAN,
    )
