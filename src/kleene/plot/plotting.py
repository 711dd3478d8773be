"""A call, its events and a kind to a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kleene.call import Call, is_scan, is_spark
from kleene.errors import SchemaError, UnsupportedError, shown
from kleene.options.checks import checked_choice, checked_count
from kleene.plot.drawing import Drawing, Size, checked_size
from kleene.plot.figures import check_installed
from kleene.plot.finding import Sight, sight_of
from kleene.plot.forbidden import forbidden_of
from kleene.plot.picture import Picture
from kleene.plot.series import series_of
from kleene.plot.sheet import WIDTH
from kleene.plot.themes import THEMES
from kleene.plot.thinning import check_limit, chosen_keys
from kleene.plot.timeline import timeline_of

KINDS = ("timeline", "values")
LIMIT = 12
See = Callable[[Call, Any, Sequence[str]], Sight]


def plot_of(
    call: Call,
    events: Any,
    kind: object,
    y: object,
    keys: object,
    limit: object,
    theme: object,
    size: object,
    see: See = sight_of,
) -> Picture:
    """The picture that the arguments ask for; `see` finds what it is made of."""
    check_installed()
    kind_, theme_ = checked_choice("kind", kind, KINDS), checked_choice("theme", theme, THEMES)
    room, most = checked_size(size, WIDTH), check_limit(checked_count("limit", limit))
    if kind_ == "values" and y is None:
        raise SchemaError(
            "a picture of values needs the attribute to draw", hint='Name it: plot(events, "values", y="price").'
        )
    if kind_ != "values" and y is not None:
        raise UnsupportedError(f'y is for kind="values", but the kind is "{kind_}"', hint="Leave y out.")
    check_in_process(events)
    sight = see(call, events, () if y is None else (check_name(y),))
    return _drawing(sight, kind_, y, keys, most, room).picture(kind_, theme_)


def check_name(y: object) -> str:
    if not isinstance(y, str):
        raise SchemaError(f"y is the name of a column, but {shown(y)} was given", hint='Write: y="price"')
    return y


def check_in_process(events: Any) -> None:
    if is_spark(events) or is_scan(events):
        raise UnsupportedError(
            "pictures are drawn in this process, of events in a table",
            hint='Give it the events in question: df.where("tag = 7").toArrow(), or a file.',
        )


def _drawing(sight: Sight, kind: str, y: Any, keys: object, limit: int, size: Size) -> Drawing:
    chosen, note = chosen_keys(sight.seen, keys, limit)
    forbidden = forbidden_of(sight, chosen)
    if kind == "values":
        return series_of(sight, y, chosen, note, forbidden, size)
    return timeline_of(sight, chosen, note, forbidden, size)
