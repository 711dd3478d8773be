"""Arguments of the builder's calls, checked: what a call gives becomes a part of a step, or an error that names it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from kleene.errors import AnalysisError, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import Window, WindowUnit
from kleene.ir.steps import ConditionKind, Step
from kleene.ir.text import duration_text
from kleene.lang.sase import parse_window
from kleene.lang.step_condition import parse_condition
from kleene.source import SourceText


def called(step: Step) -> str:
    return f"group {printable(step.label)}" if step.group else f"step '{printable(step.name)}'"


def illegal(message: str, hint: str) -> AnalysisError:
    return AnalysisError(message, hint=hint)


def step_name(given: object, call: str) -> str:
    if not isinstance(given, str) or not given.strip():
        what = "an empty name" if isinstance(given, str) else shown(given)
        raise illegal(
            f"{call} takes the name of a step or a pattern, but {what} was given",
            f"Write: {call}('b'), or {call}(kleene.begin('b')…) for a group.",
        )
    if re.search(r"[()\[\],#]", given):
        raise illegal(f"a step cannot be called '{printable(given)}'", "A name has none of the signs ( ) [ ] , #.")
    return given


def type_names(given: object, call: str) -> tuple[str, ...]:
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
        raise illegal(
            f"the type in {call} is the name of an event type or several, but {shown(wrong if flat else given)} was "
            "given",
            "Write: type='Shelf', or type=['Shelf', 'Exit'].",
        )
    return tuple(dict.fromkeys(name for name in flat if isinstance(name, str)))


def parsed_condition(given: object, what: str, kind: ConditionKind) -> tuple[ir.Expr, SourceText | None]:
    if isinstance(given, str):
        return parse_condition(given, what)
    if callable(given):
        return ir.RowFunction(given), None
    raise illegal(
        f"{what} is text or a function f(row, bound), but {shown(given)} was given",
        f"Write: {kind.value}('price > 10').",
    )


def counts(step: Step, call: str, least: object, most: object) -> tuple[int, int | None, bool]:
    """The least and the most number of events, and whether none will do as well."""
    for number in (least, most):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise illegal(
                f"{call} of {called(step)} takes whole numbers, but {shown(number)} was given", "Write: times(2)."
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
        raise illegal(
            f"times({least}, {most}) of {called(step)} is an empty range",
            "The second number is positive, and not smaller than the first.",
        )
    return max(least, 1), most, least == 0


def _check_count(step: Step, call: str, number: int, smallest: int) -> None:
    if number < smallest:
        raise illegal(
            f"{call}({number}) of {called(step)}: a count is positive",
            "Write times(0, m) or optional() for a step that may be missing.",
        )


def time_bound(given: object, what: str) -> Window:
    """A window between two events, which is a length of time."""
    found = window_of(given, what)
    if found.unit is WindowUnit.EVENTS:
        raise illegal(
            f"{what} counts events, but only the window of the whole pattern can", "Write a time: '5 minutes'."
        )
    return found


def window_of(given: object, what: str) -> Window:
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
        raise illegal(f"{what} is {shown(given)}, but a window is positive", "Write: '5 minutes', or 10.")
    window = None if text is None else parse_window(text)
    if window is None:
        raise illegal(
            f"{what} is {shown(given)}, which is not a window", "Windows look like: '5 minutes', '500 events', 10."
        )
    return replace(window, span=Window(1, WindowUnit.EVENTS).span)


def smallest_of_each(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The smallest window of each unit; those in time come first."""
    order = (WindowUnit.TIME, WindowUnit.ORDER_KEY, WindowUnit.EVENTS)
    sizes = {unit: [window for window in windows if window.unit is unit] for unit in order}
    return tuple(min(own, key=lambda window: window.size) for own in sizes.values() if own)
