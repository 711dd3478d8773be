"""Patterns: which events, in which order, how often.

SASE's patterns are a sequence of variables, of variables repeated once or more, and of negated variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.source import NO_SPAN, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable(Pattern):
    """One event of any of the types. A variable without a name cannot be referred to."""

    name: str | None
    types: tuple[str, ...]
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    type_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Repeat(Pattern):
    """The element again and again; `most` is None where nothing bounds it. Kleene plus is `Repeat(v, 1, None)`."""

    element: Variable
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Negation(Pattern):
    """No such event in this place."""

    element: Variable


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    elements: tuple[Variable | Repeat | Negation, ...]


def variable_of(element: Variable | Repeat | Negation) -> Variable:
    return element if isinstance(element, Variable) else element.element
