"""The fluent builder: each call turns a pattern into a longer one, or into an error that says what to do instead.

What later stages may rely on: every pattern that comes out of here is legal, but for what depends on the whole of it or
on the input; that is checked when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from kleene.errors import AnalysisError, did_you_mean, listed, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import Strategy, Window, WindowUnit
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
from kleene.ir.text import duration_text
from kleene.lang.sase import parse_window
from kleene.lang.step_condition import parse_condition
from kleene.source import SourceText

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
    return _added(definition, Step(_name(step, call), contiguity, _types(types, call)))


def absent(definition: QueryDefinition, name: object, negative: Negative, types: object) -> QueryDefinition:
    """The pattern with a step that must not occur."""
    last = _last(definition)
    if last.is_optional:
        raise _fail(
            f"{negative.value}({shown(name)}) stands right after the optional {_called(last)}",
            "Two patterns say it: one with the optional step, and one without.",
        )
    return _added(
        definition, Step(_name(name, negative.value), Contiguity.RELAXED, _types(types, negative.value), negative)
    )


def with_condition(definition: QueryDefinition, kind: ConditionKind, condition: object) -> QueryDefinition:
    """The last step with a further condition, or with the one that ends its loop."""
    last = _last(definition)
    if kind is ConditionKind.UNTIL:
        _check_until(last)
    elif last.group:
        raise _fail(f"{kind.value} is about one event, but {_called(last)} has several steps", _INSIDE)
    what = f"the {'until condition' if kind is ConditionKind.UNTIL else 'condition'} of {_called(last)}"
    expression, source = _condition(condition, what, kind)
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
        raise _fail(f"of_type is about one event, but {_called(last)} has several steps", _INSIDE)
    found = _types(types, "of_type")
    if not found:
        raise _fail(f"of_type of {_called(last)} names no type", "Write: of_type('Shelf')")
    return _with_last(definition, replace(last, types=found))


def repeated(definition: QueryDefinition, call: str, least: object, most: object, gap: object) -> QueryDefinition:
    """The last step occurring so often; `most` is None where it may be any number, `least` where it is a range."""
    last = _last(definition)
    _check_positive(last, call)
    if last.repetition is not None:
        raise _fail(
            f"{_called(last)} is repeated already, and {call} would repeat it again",
            "Leave one of the two out; to repeat a repetition, make the step a group: followed_by(kleene.begin(…)).",
        )
    low, high, is_optional = _numbers(last, call, least, most)
    if gap is not None and last.group:
        raise _fail(f"gap is between events of one step, but {_called(last)} has several steps", _INSIDE)
    if high is None and last.group and all(step.can_be_skipped for step in last.group if step.negative is None):
        raise _fail(
            f"{call} on {_called(last)}, all of whose steps can be passed over: it could go round for ever",
            "Make one of its steps necessary, or bound the rounds: times(1, 10).",
        )
    if is_optional:
        definition = optional(definition, call)
        last = _last(definition)
    window = None if gap is None else _bound(gap, f"the gap of {_called(last)}")
    return _with_last(definition, replace(last, repetition=Repetition(low, high, window)))


def optional(definition: QueryDefinition, call: str = "optional") -> QueryDefinition:
    last = _last(definition)
    _check_positive(last, call)
    if last.is_optional:
        raise _fail(f"{_called(last)} is optional already", f"Leave {call} out.")
    _check_not_after_greedy(steps_of(definition).steps[:-1], last, is_optional=True)
    return _with_last(definition, replace(last, is_optional=True))


def greedy(definition: QueryDefinition) -> QueryDefinition:
    last = _last(definition)
    _check_positive(last, "greedy")
    if last.group:
        raise _fail(
            f"greedy is not defined for {_called(last)}: a round is not one condition",
            "Make a step inside the group greedy.",
        )
    _check_repeated(last, "greedy")
    if last.is_greedy:
        raise _fail(f"{_called(last)} is greedy already", "Leave the second greedy out.")
    if last.inside is Contiguity.ANY:
        raise _greedy_combinations(last)
    return _with_last(definition, replace(last, is_greedy=True))


def with_inside(definition: QueryDefinition, inside: Contiguity, call: str) -> QueryDefinition:
    """The last step with the contiguity inside its repetition."""
    last = _last(definition)
    _check_positive(last, call)
    _check_repeated(last, call)
    if last.inside is inside:
        raise _fail(f"{_called(last)} has {call} already", f"Leave the second {call} out.")
    if last.inside is not None:
        raise _fail(
            f"{_called(last)} cannot be consecutive and allow combinations: they exclude each other",
            "Leave one of them out.",
        )
    if last.is_greedy and inside is Contiguity.ANY:
        raise _greedy_combinations(last)
    return _with_last(definition, replace(last, inside=inside))


def within(definition: QueryDefinition, window: object, since: object) -> QueryDefinition:
    """The pattern with a window of the whole, or of the last step since the event before."""
    if since == "first":
        found = _window(window, "the window of the pattern")
        return _with_pattern(definition, windows=_smallest([*steps_of(definition).windows, found]))
    if since != "previous":
        raise _fail(f"since is 'first' or 'previous', but {shown(since)} was given", "Write: within('5 minutes').")
    last = _last(definition)
    if last.group:
        raise _fail(f"since='previous' is about one step, but {_called(last)} has several", _INSIDE)
    if len(steps_of(definition).steps) == 1:
        raise _fail(
            f"since='previous' on {_called(last)}, which is the first: nothing comes before it",
            "Put it on a later step, or bound the whole pattern: within('5 minutes').",
        )
    found = _bound(window, f"the window of {_called(last)}")
    [smallest] = _smallest([found, *([] if last.since_previous is None else [last.since_previous])])[:1]
    return _with_last(definition, replace(last, since_previous=smallest))


def after_match(definition: QueryDefinition, mode: object, step: object, missing: object) -> QueryDefinition:
    modes = [known.value for known in SkipMode]
    if not isinstance(mode, str) or mode not in modes:
        guess = did_you_mean(mode, modes) if isinstance(mode, str) else ""
        raise _fail(f"after_match has no mode {shown(mode)}", f"Modes: {listed(modes)}.{guess}")
    if missing not in ("ignore", "error"):
        raise _fail(f"missing is 'ignore' or 'error', but {shown(missing)} was given", "Write: missing='error'.")
    found = SkipMode(mode)
    if found.needs_step and not (isinstance(step, str) and step):
        raise _fail(f"after_match({mode!r}) needs the name of a step", f"Write: after_match({mode!r}, 'b').")
    if not found.needs_step and step is not None:
        raise _fail(
            f"after_match({mode!r}) takes no step, but {shown(step)} was given",
            "Leave it out, or use 'skip_to_first' or 'skip_to_last'.",
        )
    after = AfterSteps(found, step if isinstance(step, str) else None, missing == "error", is_given=True)
    return _with_pattern(definition, after=after)


def partitioned(definition: QueryDefinition, columns: tuple[object, ...]) -> QueryDefinition:
    names = [column for column in columns if isinstance(column, str) and column]
    if len(names) != len(columns):
        wrong = next(column for column in columns if not (isinstance(column, str) and column))
        raise _fail(
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
        raise _fail(
            f"two steps are called '{printable(twice)}': events are looked up by the names of their steps",
            "Give each step a name of its own, also those inside of groups.",
        )
    if len(known) + len(names) > MOST_STEPS:
        raise _fail(f"the pattern has more than {MOST_STEPS:,} steps", "Repeat a step with times(n) instead.")
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
        raise _fail(
            f"{_called(group)} has {name}, which belongs to the whole pattern",
            f"Call {name} on the pattern that the group is a part of.",
        )
    if types is not None:
        raise _fail(f"type= in {call} is about one step, but {_called(group)} has several", _INSIDE)
    last = pattern.steps[-1]
    if last.negative is not None:
        raise _fail(
            f"{_called(group)} ends with the negative step '{printable(last.name)}'",
            f"Let it stand after the group instead: {last.negative.value}({last.name!r}).",
        )
    added = _added(definition, group)
    return replace(added, definitions=(*definition.definitions, *inner.definitions))


def _begins_optionally(step: Step) -> bool:
    return step.is_optional or (bool(step.group) and _begins_optionally(step.group[0]))


def _check_not_after_greedy(before: Sequence[Step], step: Step, *, is_optional: bool) -> None:
    if is_optional and before and before[-1].is_greedy:
        raise _fail(
            f"{_called(step)} stands right after the greedy {_called(before[-1])} and can be passed over: what greedy "
            "forbids would have to reach past it",
            "Make it necessary, or leave greedy out.",
        )


def _check_positive(step: Step, call: str) -> None:
    if step.negative is not None:
        raise _fail(
            f"{call} on the negative {_called(step)}: an absence does not repeat, and cannot be optional",
            f"Leave {call} out, or put it on a positive step.",
        )


def _check_repeated(step: Step, call: str) -> None:
    if step.repetition is None:
        raise _fail(
            f"{call} on {_called(step)}, which is not repeated: there is nothing between events of a single step",
            f"Repeat it first: one_or_more().{call}().",
        )


def _check_until(step: Step) -> None:
    _check_positive(step, "until")
    if step.has_until:
        raise _fail(f"{_called(step)} has an until condition already", "Join the two with OR.")
    if not step.is_loop:
        raise _fail(
            f"until on {_called(step)}, which is not an unbounded loop: only that needs a stop",
            "Repeat it with one_or_more() or times_or_more(n) first.",
        )


def _greedy_combinations(step: Step) -> AnalysisError:
    return _fail(
        f"{_called(step)} cannot be greedy and allow combinations: taking as much as possible contradicts leaving out "
        "what could be taken",
        "Leave one of them out.",
    )


def _called(step: Step) -> str:
    return f"group {printable(step.label)}" if step.group else f"step '{printable(step.name)}'"


def _fail(message: str, hint: str) -> AnalysisError:
    return AnalysisError(message, hint=hint)


# --- arguments -----------------------------------------------------------------------------------------------------


def _name(given: object, call: str) -> str:
    if not isinstance(given, str) or not given.strip():
        what = "an empty name" if isinstance(given, str) else shown(given)
        raise _fail(
            f"{call} takes the name of a step or a pattern, but {what} was given",
            f"Write: {call}('b'), or {call}(kleene.begin('b')…) for a group.",
        )
    if re.search(r"[()\[\],#]", given):
        raise _fail(f"a step cannot be called '{printable(given)}'", "A name has none of the signs ( ) [ ] , #.")
    return given


def _types(given: object, call: str) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else given
    flat = (
        [item for one in names for item in (one if isinstance(one, (list, tuple)) else [one])]
        if (isinstance(names, (list, tuple, set, frozenset)))
        else [given]
    )
    wrong = next((name for name in flat if not isinstance(name, str) or not name), None)
    if wrong is not None or not flat:
        raise _fail(
            f"the type in {call} is the name of an event type or several, but {shown(wrong if flat else given)} was "
            "given",
            "Write: type='Shelf', or type=['Shelf', 'Exit'].",
        )
    return tuple(dict.fromkeys(name for name in flat if isinstance(name, str)))


def _condition(given: object, what: str, kind: ConditionKind) -> tuple[ir.Expr, SourceText | None]:
    if isinstance(given, str):
        return parse_condition(given, what)
    if callable(given):
        return ir.RowFunction(given), None
    raise _fail(
        f"{what} is text or a function f(row, bound), but {shown(given)} was given",
        f"Write: {kind.value}('price > 10').",
    )


def _numbers(step: Step, call: str, least: object, most: object) -> tuple[int, int | None, bool]:
    """The least and the most number of events, and whether none will do as well."""
    for number in (least, most):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise _fail(
                f"{call} of {_called(step)} takes whole numbers, but {shown(number)} was given", "Write: times(2)."
            )
    assert isinstance(least, int)
    if call != "times":
        _check_count(step, call, least, 1)
        return least, None, False
    if most is None:
        _check_count(step, call, least, 1)
        return least, least, False
    assert isinstance(most, int)
    _check_count(step, call, least, 0)
    if most < max(least, 1):
        raise _fail(
            f"times({least}, {most}) of {_called(step)} is an empty range",
            "The second number is positive, and not smaller than the first.",
        )
    return max(least, 1), most, least == 0


def _check_count(step: Step, call: str, number: int, smallest: int) -> None:
    if number < smallest:
        raise _fail(
            f"{call}({number}) of {_called(step)}: a count is positive",
            "Write times(0, m) or optional() for a step that may be missing.",
        )


def _bound(given: object, what: str) -> Window:
    """A window between two events, which is a length of time."""
    found = _window(given, what)
    if found.unit is WindowUnit.EVENTS:
        raise _fail(f"{what} counts events, but only the window of the whole pattern can", "Write a time: '5 minutes'.")
    return found


def _window(given: object, what: str) -> Window:
    if type(given).__module__ == "numpy" and hasattr(given, "item"):
        given = given.item()
    text = None
    if isinstance(given, timedelta):
        text = duration_text(given // timedelta(microseconds=1)) if given > timedelta(0) else "0"
    elif isinstance(given, str):
        text = given.strip()
    elif isinstance(given, (int, float, Decimal)) and not isinstance(given, bool):
        text = f"{Decimal(repr(given) if isinstance(given, float) else given):f}" if given == given else None
    if text is not None and re.match(r"-|(?=[\d.])0*(\.0*)?(?![\d.])", text):
        raise _fail(f"{what} is {shown(given)}, but a window is positive", "Write: '5 minutes', or 10.")
    window = None if text is None else parse_window(text)
    if window is None:
        raise _fail(
            f"{what} is {shown(given)}, which is not a window", "Windows look like: '5 minutes', '500 events', 10."
        )
    return replace(window, span=Window(1, WindowUnit.EVENTS).span)


def _smallest(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The smallest window of each unit; those in time come first."""
    order = (WindowUnit.TIME, WindowUnit.ORDER_KEY, WindowUnit.EVENTS)
    sizes = {unit: [window for window in windows if window.unit is unit] for unit in order}
    return tuple(min(own, key=lambda window: window.size) for own in sizes.values() if own)
