"""Whether runs of a query can run out of time, with the reason where they cannot."""

from __future__ import annotations

from kleene.errors import UnsupportedError
from kleene.ir.options import RowsPerMatch, Selection, WindowUnit
from kleene.ir.query import QueryDefinition
from kleene.ir.steps import all_steps, is_steps, steps_of

MARK = "timed_out"
"""The column that tells matches from what is out of time."""


def check_timeouts(definition: QueryDefinition) -> None:
    """An error if timeouts mean nothing for the query, whose parameters are bound."""
    if definition.selection is Selection.FIRST_COMPLETED:
        raise UnsupportedError(
            "the regular-expression operator has no window, so nothing of it ever runs out of time",
            hint="Leave timeouts out, or write the query as a row pattern with WITHIN INTERVAL '1' HOUR.",
        )
    if definition.frame is not None:
        raise UnsupportedError(
            "a window with a pattern gives out each row of the input once, so it has no rows for what is out of time",
            hint="Leave timeouts out, or use MATCH_RECOGNIZE.",
        )
    if definition.rows_per_match is not RowsPerMatch.ONE:
        raise UnsupportedError(
            "timeouts are given out as one row for a start, but the query gives out all rows of a match: a row may "
            "belong to many starts that are out of time",
            hint="Use ONE ROW PER MATCH; array_agg in MEASURES collects what rows hold.",
        )
    if is_steps(definition):
        _check_steps(definition)
        return
    _check_window(definition)
    for measure in definition.measures or ():
        if measure.name.lower() == MARK:
            raise UnsupportedError(
                f"'{MARK}' is the column that marks timeouts",
                (measure.source or definition.source).locate(measure.span),
                "Choose another name after AS.",
            )


def _check_steps(definition: QueryDefinition) -> None:
    """A run of steps times out by the window of the whole, or by what bounds a step."""
    pattern = steps_of(definition)
    bounds = [step.since_previous for step in all_steps(pattern.steps)]
    bounds += [step.repetition.gap for step in all_steps(pattern.steps) if step.repetition is not None]
    if not pattern.windows and not any(bounds):
        raise UnsupportedError(
            "a run times out when its time is over, but the pattern has no window", hint="Add .within('10 minutes')."
        )


def _check_window(definition: QueryDefinition) -> None:
    window = definition.window
    if window is not None and window.unit is not WindowUnit.EVENTS:
        return
    is_sase = definition.selection is Selection.EVERY_RUN
    example = "WITHIN 12 hours" if is_sase else "WITHIN INTERVAL '1' HOUR"
    if window is None:
        raise UnsupportedError(
            "a run times out when its time is over, but the query has no WITHIN in time", hint=f"Add it: {example}"
        )
    what = "events" if is_sase else "rows"
    raise UnsupportedError(
        f"a run times out when its time is over, but the window counts {what}",
        definition.source.locate(window.span),
        f"Write a length of time: {example}",
    )
