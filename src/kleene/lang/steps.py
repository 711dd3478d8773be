"""The fluent builder: each call turns a pattern into a longer one, or into an error that says what to do instead.

What later stages may rely on: every pattern that comes out of here is legal, but for what depends on the whole of it or
on the input; that is checked when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kleene.errors import AnalysisError, did_you_mean, listed, printable, shown
from kleene.ir.options import Strategy
from kleene.ir.query import Definition, EquivalenceTest, QueryDefinition
from kleene.ir.steps import (
    AfterSteps,
    ConditionKind,
    Contiguity,
    Negative,
    Repetition,
    SkipMode,
    Step,
    StepCondition,
    Steps,
    all_steps,
    steps_of,
)
from kleene.lang.step_arguments import (
    called,
    counts,
    illegal,
    parsed_condition,
    smallest_of_each,
    step_name,
    time_bound,
    type_names,
    window_of,
)

MOST_STEPS = 1_000
_EVERY_EVENT_COUNTS = Strategy.PARTITION_CONTIGUITY


def begin(step: object, types: object) -> QueryDefinition:
    """The pattern of one step, or of one group."""
    empty = QueryDefinition(Steps(()), strategy=_EVERY_EVENT_COUNTS)
    return followed(empty, step, Contiguity.STRICT, types, "begin")


def followed(
    definition: QueryDefinition, step: object, contiguity: Contiguity, types: object, call: str
) -> QueryDefinition:
    """The pattern with one step more: a name, or the definition of a pattern that becomes a group."""
    if isinstance(step, QueryDefinition):
        return _with_group(definition, step, contiguity, types, call)
    return _added(definition, Step(step_name(step, call), contiguity, type_names(types, call)))


def absent(definition: QueryDefinition, name: object, negative: Negative, types: object) -> QueryDefinition:
    """The pattern with a step that must not occur."""
    last = _last(definition)
    if last.is_optional:
        raise illegal(
            f"{negative.value}({shown(name)}) stands right after the optional {called(last)}",
            "Two patterns say it: one with the optional step, and one without.",
        )
    return _added(
        definition,
        Step(step_name(name, negative.value), Contiguity.RELAXED, type_names(types, negative.value), negative),
    )


def with_condition(definition: QueryDefinition, kind: ConditionKind, condition: object) -> QueryDefinition:
    """The last step with a further condition, or with the one that ends its loop."""
    last = _last(definition)
    if kind is ConditionKind.UNTIL:
        _check_until(last)
    elif last.group:
        raise illegal(f"{kind.value} is about one event, but {called(last)} has several steps", _INSIDE)
    what = f"the {'until condition' if kind is ConditionKind.UNTIL else 'condition'} of {called(last)}"
    expression, source = parsed_condition(condition, what, kind)
    item = StepCondition(last.label, expression, source=source, kind=kind)
    changed = _with_last(definition, replace(last, has_until=True)) if kind is ConditionKind.UNTIL else definition
    return replace(changed, definitions=_with_item(definition.definitions, item))


def _with_item(definitions: tuple[Definition, ...], item: StepCondition) -> tuple[Definition, ...]:
    """The item joins the others; what ends the loop of its step comes last, whichever was said first."""
    if definitions and item.kind is not ConditionKind.UNTIL:
        *before, last = definitions
        if isinstance(last, StepCondition) and last.kind is ConditionKind.UNTIL and last.variable == item.variable:
            return (*before, item, last)
    return (*definitions, item)


def with_types(definition: QueryDefinition, types: tuple[object, ...]) -> QueryDefinition:
    last = _last(definition)
    if last.group:
        raise illegal(f"of_type is about one event, but {called(last)} has several steps", _INSIDE)
    found = type_names(types, "of_type")
    if not found:
        raise illegal(f"of_type of {called(last)} names no type", "Write: of_type('Shelf')")
    return _with_last(definition, replace(last, types=found))


def repeated(definition: QueryDefinition, call: str, least: object, most: object, gap: object) -> QueryDefinition:
    """The last step occurring so often; `most` is None where it may be any number, `least` where it is a range."""
    last = _last(definition)
    _check_positive(last, call)
    if last.repetition is not None:
        raise illegal(
            f"{called(last)} is repeated already, and {call} would repeat it again",
            "Leave one of the two out; to repeat a repetition, make the step a group: followed_by(kleene.begin(…)).",
        )
    low, high, is_optional = counts(last, call, least, most)
    if gap is not None and last.group:
        raise illegal(f"gap is between events of one step, but {called(last)} has several steps", _INSIDE)
    if high is None and last.group and all(step.can_be_skipped for step in last.group if step.negative is None):
        raise illegal(
            f"{call} on {called(last)}, all of whose steps can be passed over: it could go round for ever",
            "Make one of its steps necessary, or bound the rounds: times(1, 10).",
        )
    if is_optional:
        definition = optional(definition, call)
        last = _last(definition)
    window = None if gap is None else time_bound(gap, f"the gap of {called(last)}")
    return _with_last(definition, replace(last, repetition=Repetition(low, high, window)))


def optional(definition: QueryDefinition, call: str = "optional") -> QueryDefinition:
    last = _last(definition)
    _check_positive(last, call)
    if last.is_optional:
        raise illegal(f"{called(last)} is optional already", f"Leave {call} out.")
    _check_not_after_greedy(steps_of(definition).steps[:-1], last, is_optional=True)
    return _with_last(definition, replace(last, is_optional=True))


def greedy(definition: QueryDefinition) -> QueryDefinition:
    last = _last(definition)
    _check_positive(last, "greedy")
    if last.group:
        raise illegal(
            f"greedy is not defined for {called(last)}: a round is not one condition",
            "Make a step inside the group greedy.",
        )
    _check_repeated(last, "greedy")
    if last.is_greedy:
        raise illegal(f"{called(last)} is greedy already", "Leave the second greedy out.")
    if last.inside is Contiguity.ANY:
        raise _greedy_combinations(last)
    return _with_last(definition, replace(last, is_greedy=True))


def with_inside(definition: QueryDefinition, inside: Contiguity, call: str) -> QueryDefinition:
    """The last step with the contiguity inside its repetition."""
    last = _last(definition)
    _check_positive(last, call)
    _check_repeated(last, call)
    if last.inside is inside:
        raise illegal(f"{called(last)} has {call} already", f"Leave the second {call} out.")
    if last.inside is not None:
        raise illegal(
            f"{called(last)} cannot be consecutive and allow combinations: they exclude each other",
            "Leave one of them out.",
        )
    if last.is_greedy and inside is Contiguity.ANY:
        raise _greedy_combinations(last)
    return _with_last(definition, replace(last, inside=inside))


def within(definition: QueryDefinition, window: object, since: object) -> QueryDefinition:
    """The pattern with a window of the whole, or of the last step since the event before."""
    if since == "first":
        found = window_of(window, "the window of the pattern")
        return _with_pattern(definition, windows=smallest_of_each([*steps_of(definition).windows, found]))
    if since != "previous":
        raise illegal(f"since is 'first' or 'previous', but {shown(since)} was given", "Write: within('5 minutes').")
    last = _last(definition)
    if last.group:
        raise illegal(f"since='previous' is about one step, but {called(last)} has several", _INSIDE)
    if len(steps_of(definition).steps) == 1:
        raise illegal(
            f"since='previous' on {called(last)}, which is the first: nothing comes before it",
            "Put it on a later step, or bound the whole pattern: within('5 minutes').",
        )
    found = time_bound(window, f"the window of {called(last)}")
    [smallest] = smallest_of_each([found, *([] if last.since_previous is None else [last.since_previous])])[:1]
    return _with_last(definition, replace(last, since_previous=smallest))


def after_match(definition: QueryDefinition, mode: object, step: object, missing: object) -> QueryDefinition:
    modes = [known.value for known in SkipMode]
    if not isinstance(mode, str) or mode not in modes:
        guess = did_you_mean(mode, modes) if isinstance(mode, str) else ""
        raise illegal(f"after_match has no mode {shown(mode)}", f"Modes: {listed(modes)}.{guess}")
    if missing not in ("ignore", "error"):
        raise illegal(f"missing is 'ignore' or 'error', but {shown(missing)} was given", "Write: missing='error'.")
    found = SkipMode(mode)
    if found.needs_step and not (isinstance(step, str) and step):
        raise illegal(f"after_match({mode!r}) needs the name of a step", f"Write: after_match({mode!r}, 'b').")
    if not found.needs_step and step is not None:
        raise illegal(
            f"after_match({mode!r}) takes no step, but {shown(step)} was given",
            "Leave it out, or use 'skip_to_first' or 'skip_to_last'.",
        )
    after = AfterSteps(found, step if isinstance(step, str) else None, missing == "error", is_given=True)
    return _with_pattern(definition, after=after)


def partitioned(definition: QueryDefinition, columns: tuple[object, ...]) -> QueryDefinition:
    names = [column for column in columns if isinstance(column, str) and column]
    if len(names) != len(columns):
        wrong = next(column for column in columns if not (isinstance(column, str) and column))
        raise illegal(
            f"partition_by takes names of columns, but {shown(wrong)} was given", "Write: partition_by('item')."
        )
    tests = tuple(EquivalenceTest(name) for name in dict.fromkeys(names))
    return replace(definition, equivalence_tests=tests)


# --- the parts of a pattern ----------------------------------------------------------------------------------------


_INSIDE = "It belongs to the steps inside the group."


def _last(definition: QueryDefinition) -> Step:
    return steps_of(definition).steps[-1]


def _with_pattern(definition: QueryDefinition, **changes: Any) -> QueryDefinition:
    pattern = replace(steps_of(definition), **changes)
    window = next(iter(pattern.windows), None)
    return replace(definition, pattern=pattern, window=window)


def _with_last(definition: QueryDefinition, step: Step) -> QueryDefinition:
    return _with_pattern(definition, steps=(*steps_of(definition).steps[:-1], step))


def _added(definition: QueryDefinition, step: Step) -> QueryDefinition:
    steps = steps_of(definition).steps
    known = {own.name for own in all_steps(steps)}
    names = [own.name for own in all_steps((step,))]
    twice = next((name for name in names if name in known), None)
    if twice is not None:
        raise illegal(
            f"two steps are called '{printable(twice)}': events are looked up by the names of their steps",
            "Give each step a name of its own, also those inside of groups.",
        )
    if len(known) + len(names) > MOST_STEPS:
        raise illegal(f"the pattern has more than {MOST_STEPS:,} steps", "Repeat a step with times(n) instead.")
    _check_not_after_greedy(steps, step, is_optional=_begins_optionally(step))
    return _with_pattern(definition, steps=(*steps, step))


def _with_group(
    definition: QueryDefinition, inner: QueryDefinition, contiguity: Contiguity, types: object, call: str
) -> QueryDefinition:
    pattern = steps_of(inner)
    group = Step("", contiguity, group=pattern.steps)
    given = {
        "within": bool(pattern.windows),
        "after_match": pattern.after.is_given,
        "partition_by": bool(inner.equivalence_tests),
    }
    name = next((name for name, is_given in given.items() if is_given), None)
    if name is not None:
        raise illegal(
            f"{called(group)} has {name}, which belongs to the whole pattern",
            f"Call {name} on the pattern that the group is a part of.",
        )
    if types is not None:
        raise illegal(f"type= in {call} is about one step, but {called(group)} has several", _INSIDE)
    last = pattern.steps[-1]
    if last.negative is not None:
        raise illegal(
            f"{called(group)} ends with the negative step '{printable(last.name)}'",
            f"Let it stand after the group instead: {last.negative.value}({last.name!r}).",
        )
    added = _added(definition, group)
    return replace(added, definitions=(*definition.definitions, *inner.definitions))


def _begins_optionally(step: Step) -> bool:
    return step.is_optional or (bool(step.group) and _begins_optionally(step.group[0]))


def _check_not_after_greedy(before: Sequence[Step], step: Step, *, is_optional: bool) -> None:
    if is_optional and before and before[-1].is_greedy:
        raise illegal(
            f"{called(step)} stands right after the greedy {called(before[-1])} and can be passed over: what greedy "
            "forbids would have to reach past it",
            "Make it necessary, or leave greedy out.",
        )


def _check_positive(step: Step, call: str) -> None:
    if step.negative is not None:
        raise illegal(
            f"{call} on the negative {called(step)}: an absence does not repeat, and cannot be optional",
            f"Leave {call} out, or put it on a positive step.",
        )


def _check_repeated(step: Step, call: str) -> None:
    if step.repetition is None:
        raise illegal(
            f"{call} on {called(step)}, which is not repeated: there is nothing between events of a single step",
            f"Repeat it first: one_or_more().{call}().",
        )


def _check_until(step: Step) -> None:
    _check_positive(step, "until")
    if step.has_until:
        raise illegal(f"{called(step)} has an until condition already", "Join the two with OR.")
    if not step.is_loop:
        raise illegal(
            f"until on {called(step)}, which is not an unbounded loop: only that needs a stop",
            "Repeat it with one_or_more() or times_or_more(n) first.",
        )


def _greedy_combinations(step: Step) -> AnalysisError:
    return illegal(
        f"{called(step)} cannot be greedy and allow combinations: taking as much as possible contradicts leaving out "
        "what could be taken",
        "Leave one of them out.",
    )
