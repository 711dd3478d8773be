"""What is asked of all matches of a query: aggregates, and groups, as arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kleene.errors import AnalysisError, shown
from kleene.ir.options import Grouping, Window, WindowUnit
from kleene.ir.query import Measure
from kleene.lang.sase import parse_total, parse_totals, parse_window


def totals(aggregates: object) -> tuple[Measure, ...]:
    """What is asked of all matches: a dict of texts by name, or one text as after RETURN.

    >>> [total.name for total in totals("count(*) AS n, sum(b.weight) AS weight")]
    ['n', 'weight']
    >>> totals({"n": "count(*)"}) == totals("count(*) AS n")
    True
    """
    if isinstance(aggregates, str):
        return parse_totals(aggregates)
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise AnalysisError(
            f"aggregates are a dict of texts by name, but {shown(aggregates)} was given",
            hint="Write: {'n': 'count(*)', 'total': 'sum(b.weight)'}",
        )
    return tuple(_total(name, text) for name, text in aggregates.items())


def _total(name: object, text: object) -> Measure:
    if not isinstance(name, str) or not name or not isinstance(text, str):
        raise AnalysisError(
            f"an aggregate is a text by its name, but {shown(name)}: {shown(text)} was given",
            hint="Write: {'n': 'count(*)'}",
        )
    return parse_total(name, text)


def grouping(per: object, numbers: str) -> Grouping:
    """What aggregates over all matches are grouped by; a list of several groups by all of them.

    >>> grouping(["partition", "1 hour"], "text")
    Grouping(by_event=False, by_partition=True, window=Window(size=3600000000, unit=<WindowUnit.TIME: 'time'>), \
numbers='text')
    """
    found = Grouping(numbers=numbers)
    for item in per if isinstance(per, (list, tuple)) else () if per is None else (per,):
        if item == "event":
            found = replace(found, by_event=True)
        elif item == "partition":
            found = replace(found, by_partition=True)
        else:
            found = replace(found, window=_tumbling(item, found.window))
    if found.by_event and found != Grouping(by_event=True, numbers=numbers):
        raise AnalysisError(
            "an event is in one partition and in one window, but per names another group besides it",
            hint="Write: per='event'",
        )
    return found


def _tumbling(item: object, earlier: Window | None) -> Window:
    window = parse_window(str(item)) if isinstance(item, str) or type(item) is int else None
    if window is None or window.unit is WindowUnit.EVENTS or earlier is not None:
        problem = "two windows of time" if earlier is not None else shown(item)
        raise AnalysisError(
            f"matches cannot be grouped per {problem}",
            hint="Groups are: 'event', 'partition', a window of time such as '1 hour' (or 100, in units of an order "
            "key that is a number), or ['partition', '1 hour'].",
        )
    return window
