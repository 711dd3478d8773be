"""Reasons that `why` gives, asked again: a predicate is decided once more, by nothing but the values that are told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate
from kleene.why.answer import Why
from kleene.why.model import Check


class Values:
    """The values of a check in the place of events, so that nothing else can decide its predicate."""

    def __init__(self, check: Check) -> None:
        self.values = {operand.expression: operand.value for operand in check.operands}

    def value(self, expression: ir.Expr) -> Any:
        if isinstance(expression, ir.IfPresent):
            return evaluate(expression.predicate, self)
        return self.values[expression]


def assert_true(check: Check, table: pa.Table | None) -> None:
    """The result is what the values give, and the values are those of the rows, if there is a table to look them up."""
    if check.operands or not check.holds:
        assert evaluate(check.predicate, Values(check)) is check.result
    for operand in check.operands:
        if operand.row is not None and table is not None:
            assert isinstance(operand.expression, ir.Attribute)
            value = table.column(operand.expression.name)[operand.row].as_py()
            assert value == operand.value or (value != value and operand.value != operand.value)


def checks_of(why: Why) -> list[Check]:
    in_steps = [check for run in why.runs for step in run.steps for one in step.tries for check in one.checks]
    in_ends = [check for run in why.runs for ending in run.endings for check in ending.checks]
    return [*in_steps, *in_ends, *(miss.check for miss in why.misses if miss.check is not None)]
