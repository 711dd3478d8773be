"""A call, its events and a kind to a picture."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.api import prepare
from kleene.call import Call, is_scan, is_spark
from kleene.engine.event_types import type_notes
from kleene.engine.sources import held
from kleene.engine.ties import tie_notes
from kleene.errors import KleeneWarning, SchemaError, UnsupportedError, shown
from kleene.markup.themes import THEMES
from kleene.options.checks import checked_choice, checked_count
from kleene.plot.drawing import checked_size
from kleene.plot.figures import check_installed
from kleene.plot.finding import sight_of
from kleene.plot.forbidden import forbidden_of
from kleene.plot.histograms import durations_of, lengths_of, over_time_of
from kleene.plot.near_misses import near_misses_of
from kleene.plot.picture import Picture
from kleene.plot.series import series_of
from kleene.plot.sheet import WIDTH
from kleene.plot.sight import Sight
from kleene.plot.states import automaton_picture, why_for
from kleene.plot.thinning import check_limit, chosen_keys, plural, sentence
from kleene.plot.timeline import timeline_of
from kleene.why.answer import Why

KINDS = ("timeline", "values", "near_misses", "automaton", "lengths", "durations", "over_time")
_MOST_FOLLOWED = 5_000  # events and runs, for pictures of matches
_COUNTED = {"lengths": lengths_of, "durations": durations_of, "over_time": over_time_of}
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
    room, most = checked_size(size, 0 if kind_ == "automaton" else WIDTH), check_limit(checked_count("limit", limit))
    if kind_ == "values" and y is None:
        raise SchemaError(
            "a picture of values needs the attribute to draw", hint='Name it: plot(events, "values", y="price").'
        )
    if kind_ != "values" and y is not None:
        raise UnsupportedError(f'y is for kind="values", but the kind is "{kind_}"', hint="Leave y out.")
    if kind_ not in ("timeline", "values") and keys is not None:
        raise UnsupportedError(
            f'keys chooses what a timeline and values draw, but the kind is "{kind_}"',
            hint="Leave keys out, or give the events of these keys alone.",
        )
    check_in_process(events)
    events = held(events)  # `why` reads them again
    if kind_ == "automaton":
        return automaton_picture(prepare(call, events)[1], why_for(call, events), theme_, room)
    sight = see(call, events, () if y is None else (check_name(y),))
    if see is sight_of:
        _warn(call, sight)
    if kind_ == "near_misses":
        return near_misses_of(sight, _followed(call, events), room).picture(kind_, theme_)
    if kind_ in _COUNTED:
        return _COUNTED[kind_](sight, room).picture(kind_, theme_)
    chosen, note = chosen_keys(sight.seen, keys, most)
    if kind_ == "values":
        forbidden = forbidden_of(sight, chosen, None)
        return series_of(sight, check_name(y), chosen, note, forbidden, room).picture(kind_, theme_)
    why = _stopping(call, events, sight)
    notes = sentence([note, None if why is None else _cut(why)])
    return timeline_of(sight, chosen, notes, forbidden_of(sight, chosen, why), room).picture(kind_, theme_)


def _warn(call: Call, sight: Sight) -> None:
    """What `match` warns of: events that tie, and types that no event is of."""
    table, plan = sight.seen.table, sight.plan
    ties = tie_notes(plan, table, bool(call.order.tie_break))
    for note in (*ties, *type_notes(plan, table, is_empty=not len(sight.seen.matches))):
        warnings.warn(note, KleeneWarning, stacklevel=4)  # where Query.plot was called


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


def _stopping(call: Call, events: Any, sight: Sight) -> Why | None:
    """What tells of runs that negations stopped, where there are any."""
    has_negations = isinstance(sight.query, AnalyzedQuery) and bool(sight.query.negations)
    return why_for(call, events, _MOST_FOLLOWED, _MOST_FOLLOWED) if has_negations else None


def _followed(call: Call, events: Any) -> Why:
    why = why_for(call, events)
    if why is None:
        raise UnsupportedError(
            "near misses are runs that why follows, but it does not follow those of this query",
            hint='Draw its matches: plot(events, "timeline").',
        )
    return why


def _cut(why: Why) -> str | None:
    """What to say where not all runs were followed that a negation may have stopped."""
    if all(note.endswith("are told") for note in why.notes):
        return None
    looked = f"{plural(why.runs_followed, 'run')} among {plural(why.events, 'event')}"
    return f"runs that negations stopped were looked for: {looked}"
