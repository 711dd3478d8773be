"""A pattern in steps as the calls that build it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from kleene.ir import expr as ir
from kleene.ir.options import Window, WindowUnit
from kleene.ir.query import QueryDefinition
from kleene.ir.steps import AfterSteps, Contiguity, Step, StepCondition, Steps, steps_of
from kleene.ir.text import expression_text, window_text

_FOLLOWS = {Contiguity.STRICT: "next", Contiguity.RELAXED: "followed_by", Contiguity.ANY: "followed_by_any"}
_WIDTH = 100


def steps_text(definition: QueryDefinition) -> str:
    """The calls; on lines of their own, in parentheses, where one line would be too long."""
    pattern, said = steps_of(definition), dict[str, list[StepCondition]]()
    for item in definition.definitions:
        assert isinstance(item, StepCondition)
        said.setdefault(item.variable, []).append(item)
    calls = list(_calls(pattern.steps, said))
    calls += [f"within({_window(window)})" for window in pattern.windows]
    calls += _after_calls(pattern)
    columns = [repr(test.attribute) for test in definition.equivalence_tests]
    calls += [f"partition_by({', '.join(columns)})"] if columns else []
    return _joined(calls)


def _joined(calls: Sequence[str]) -> str:
    line = f"kleene.{'.'.join(calls)}"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    first, *rest = calls
    return "\n".join([f"(kleene.{first}", *(f"    .{call}" for call in rest)]) + ")"


def _calls(steps: tuple[Step, ...], said: Mapping[str, list[StepCondition]]) -> Iterator[str]:
    for number, step in enumerate(steps):
        way = step.negative.value if step.negative is not None else _FOLLOWS[step.contiguity]
        arguments = [_joined(list(_calls(step.group, said))) if step.group else repr(step.name)]
        if step.types:
            arguments.append(f"type={step.types[0]!r}" if len(step.types) == 1 else f"type={list(step.types)!r}")
        yield f"{way if number else 'begin'}({', '.join(arguments)})"
        yield from _repetition_calls(step)
        for item in said.get(step.label, ()):
            yield f"{item.kind.value}({_condition(item.condition)})"
        if step.is_optional:
            yield "optional()"
        if step.since_previous is not None:
            yield f"within({_window(step.since_previous)}, since='previous')"


def _repetition_calls(step: Step) -> Iterator[str]:
    found = step.repetition
    if found is not None:
        gap = [] if found.gap is None else [f"gap={_window(found.gap)}"]
        match found.least, found.most:
            case 1, None:
                yield f"one_or_more({', '.join(gap)})"
            case least, None:
                yield f"times_or_more({', '.join([str(least), *gap])})"
            case least, most:
                numbers = [str(least)] if least == most else [str(least), str(most)]
                yield f"times({', '.join(numbers + gap)})"
    if step.inside is Contiguity.STRICT:
        yield "consecutive()"
    if step.inside is Contiguity.ANY:
        yield "allow_combinations()"
    if step.is_greedy:
        yield "greedy()"


def _condition(condition: ir.Expr) -> str:
    return condition.name if isinstance(condition, ir.RowFunction) else repr(expression_text(condition))


def _window(window: Window) -> str:
    if window.unit is not WindowUnit.ORDER_KEY:
        return repr(window_text(window))
    is_float = isinstance(window.size, Decimal) and window.size != window.size.to_integral_value()
    return repr(float(window.size)) if is_float else str(int(window.size))


def _after_calls(pattern: Steps) -> list[str]:
    after = pattern.after
    if after == AfterSteps():
        return []
    step = "" if after.step is None else f", {after.step!r}"
    missing = ", missing='error'" if after.fails else ""
    return [f"after_match({after.mode.value!r}{step}{missing})"]
