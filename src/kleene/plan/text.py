"""A pipeline as a tree for people: the last operator on top, events at the bottom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from kleene.analysis.analyzed import Component, NegativeComponent
from kleene.ir import expr as ir
from kleene.ir.text import expression_text, name_text, window_text
from kleene.plan import operators as op

NAMES: dict[type, str] = {
    op.SequenceScan: "SS→ sequence scan",
    op.SequenceConstruction: "SC← sequence construction",
    op.RunScan: "NFA^b runs",
    op.RowScan: "row-pattern search",
    op.Selection: "σ selection",
    op.WindowFilter: "WD window",
    op.NegationFilter: "NG negation",
    op.Having: "σ having",
    op.Transformation: "TF transformation",
    op.Nothing: "∅ nothing",
}
ALGORITHMS = {
    "basic": "runtime stack, a cell for every event",
    "ais": "active instance stacks (AIS)",
    "pais": "active instance stacks partitioned by value (PAIS)",
}


def pipeline_text(pipeline: op.Pipeline, figures: Mapping[str, Sequence[str]] | None = None) -> str:
    """The tree; `figures` are lines to add to operators, by the names of their kinds."""
    lines: list[str] = []
    for depth, operator in enumerate(reversed(pipeline.operators)):
        indent = "   " * (depth - 1) + "└─ " if depth else ""
        lines.append(indent + NAMES[type(operator)])
        details = chain(details_of(operator), (figures or {}).get(type(operator).__name__, ()))
        has_child = depth + 1 < len(pipeline.operators)
        lines += ["   " * depth + ("│  " if has_child else "   ") + detail for detail in details]
    return "\n".join(lines)


def details_of(operator: object) -> Iterable[str]:
    """What the operator does, a line for each thing."""
    match operator:
        case op.SequenceScan():
            yield _pattern(operator.components)
            yield _stacks(operator)
        case op.RunScan():
            yield _pattern(operator.components)
            if operator.tests:
                yield f"partitioned by {_tests(operator.tests)}"
            yield from (f"{absence_text(item)}, which ends runs" for item in operator.negations)
        case op.NegationFilter():
            yield _access(operator.access)
        case op.RowScan():
            yield from operator.description
        case op.Having():
            yield expression_text(operator.condition)
        case op.Transformation():
            if operator.columns:
                yield ", ".join(operator.columns)
        case op.Nothing():
            yield operator.reason
    if isinstance(operator, (op.SequenceConstruction, op.Selection)) and operator.tests:
        how = " by dynamic filtering" if isinstance(operator, op.SequenceConstruction) else ""
        yield f"{_tests(operator.tests)}{how}"
    if isinstance(operator, (op.SequenceScan, op.SequenceConstruction, op.Selection)):
        yield from (_predicate(item) for item in operator.predicates)
    if isinstance(operator, (op.SequenceConstruction, op.NegationFilter)):
        yield from (absence_text(item) for item in operator.negations)
    if isinstance(operator, op.SequenceConstruction) and operator.negations:
        yield _access(operator.access)
    if (
        isinstance(operator, (op.SequenceScan, op.SequenceConstruction, op.WindowFilter, op.RunScan))
        and operator.window
    ):
        yield f"within {window_text(operator.window)}{_use(operator)}"


def _access(access: str) -> str:
    how = "a time-partitioned index" if access == "index" else "going through all such events"
    return f"forbidden events are found by {how}"


def _use(operator: object) -> str:
    match operator:
        case op.SequenceScan():
            return ": events out of reach are not kept"
        case op.SequenceConstruction():
            return ": the walk back ends there"
    return ""


def _pattern(components: Sequence[Component]) -> str:
    return f"({', '.join(component_text(item) for item in components)})"


def component_text(component: Component) -> str:
    of = _types(component.types)
    plus, brackets = ("+", "[]") if component.is_kleene else ("", "")
    return f"{of}{plus} {name_text(component.name)}{brackets}" if component.named else f"{of}{plus}"


def _types(types: Sequence[str]) -> str:
    names = [name_text(name, allow_dash=True) for name in types]
    return names[0] if len(names) == 1 else f"ANY({', '.join(names)})"


def _stacks(scan: op.SequenceScan) -> str:
    if len(scan.tests) > 1 and scan.is_combined:
        return f"{ALGORITHMS[scan.algorithm]}, by {_tests(scan.tests)} together"
    if len(scan.tests) > 1:
        return f"active instance stacks for each value of {_tests(scan.tests)} (Multi-PAIS)"
    by = f", by {_tests(scan.tests)}" if scan.tests else ""
    return f"{ALGORITHMS[scan.algorithm]}{by}"


def _tests(tests: Sequence[op.Equivalence]) -> str:
    return " ".join(map(str, tests))


def _predicate(predicate: op.Predicate) -> str:
    return expression_text(without_hidden_names(predicate.conjunct.expression))


def without_hidden_names(expression: ir.Expr) -> ir.Expr:
    """The expression with attributes of a variable that the user left without a name as bare names."""
    if isinstance(expression, ir.Attribute) and expression.variable is not None:
        return replace(expression, variable=None) if expression.variable.startswith("#") else expression
    return ir.with_children(expression, without_hidden_names)


def absence_text(negation: NegativeComponent) -> str:
    name = "" if negation.name.startswith("#") else f" {name_text(negation.name)}"
    where = " and ".join(expression_text(item.expression) for item in negation.predicates)
    return f"!({_types(negation.types)}{name})" + (f" with {where}" if where else "")
