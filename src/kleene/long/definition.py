"""A query to the same query that gives out whole events, of which the long form is made: a row for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kleene.analysis.row_pattern import is_row_pattern
from kleene.errors import UnsupportedError
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection
from kleene.ir.pattern import Negation, Pattern, Repeat, Variable, variable_of
from kleene.ir.pattern import Sequence as PatternSequence
from kleene.ir.query import Measure, QueryDefinition
from kleene.ir.steps import Step, is_steps, many_of, steps_of

MATCH_ID, VARIABLE, POSITION = "match_id", "match_variable", "match_position"
ADDED = (MATCH_ID, VARIABLE, POSITION)
_UNNAMED = "__kleene_unnamed_"


def long_definition(definition: QueryDefinition, columns: Sequence[str]) -> QueryDefinition:
    """The query without RETURN or MEASURES of its own: what its matches are stays, and what they give out is events.

    `columns` are those of the input; a regular expression collects the values of each.
    """
    if is_steps(definition):
        _check_rounds(steps_of(definition).steps)
        return definition
    if not is_row_pattern(definition):
        elements = tuple(_named(element, place) for place, element in enumerate(definition.components))
        return replace(definition, pattern=PatternSequence(elements), measures=None)
    if definition.frame is not None:
        raise UnsupportedError(
            "a window gives a row for each row of the input, and has no long form",
            hint="Use the same pattern with kleene.match_recognize, or leave long out.",
        )
    if definition.selection is Selection.FIRST_COMPLETED:
        collected = (Measure(name, ir.Aggregate("collect", ir.Attribute(None, name))) for name in columns)
        return replace(definition, measures=tuple(collected))
    measures = (
        Measure(MATCH_ID, ir.MatchNumber()),
        Measure(VARIABLE, ir.Classifier(None)),
        Measure(POSITION, ir.Aggregate("count", ir.Events(None, ir.Position.EACH))),
    )
    return replace(definition, measures=measures, rows_per_match=RowsPerMatch.ALL_OMIT_EMPTY)


def long_parts(definition: QueryDefinition) -> tuple[tuple[str, str | None], ...] | None:
    """The columns that hold the events of a long definition's matches, with the variables they are of.

    None where each row is an event already.
    """
    if is_steps(definition):
        return tuple((step.name, step.name) for step, _ in many_of(steps_of(definition).steps))
    if is_row_pattern(definition):
        return None
    names = [variable_of(one).name or "" for one in definition.components if not isinstance(one, Negation)]
    return tuple((name, None if name.startswith(_UNNAMED) else name) for name in names)


def _check_rounds(steps: tuple[Step, ...]) -> None:
    """In a group that is repeated, events of its steps take turns, but a match has them apart by step."""
    for step in steps:
        if step.group and step.is_many:
            raise UnsupportedError(
                f"a pattern that repeats the group {step.label} has no long form, since steps take turns in it",
                hint="Leave long out: each step has its events in a list.",
            )
        _check_rounds(step.group)


def _named(element: Pattern, place: int) -> Pattern:
    """The component with a name, without which its events would not be given out."""
    match element:
        case Variable(name=None):
            return replace(element, name=f"{_UNNAMED}{place}")
        case Repeat(element=inner):
            return replace(element, element=_named(inner, place))
    return element
