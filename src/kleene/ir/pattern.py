"""Patterns: which events, in which order, how often.

SASE's patterns are a sequence of variables, of variables repeated once or more, and of negated variables. Row patterns
have no negation, but all the rest, nested as one likes; what comes first is preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kleene.source import NO_SPAN, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable(Pattern):
    """One event of any of the types, or, where there are none, of any type. Without a name it cannot be referred to."""

    name: str | None
    types: tuple[str, ...] = ()
    name_span: Span = field(default=NO_SPAN, compare=False, repr=False)
    type_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Repeat(Pattern):
    """The element again and again; `most` is None where nothing bounds it. Kleene plus is `Repeat(v, 1, None)`.

    Greedy: more repetitions are preferred; else fewer.
    """

    element: Pattern
    least: int
    most: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Negation(Pattern):
    """No such event in this place."""

    element: Variable


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """One after the other; of no elements, the empty pattern."""

    elements: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation(Pattern):
    """One of them; an earlier one is preferred."""

    alternatives: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Permutation(Pattern):
    """All of them in any order; orders are preferred as they would stand in a lexicon of the elements' places."""

    elements: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Exclusion(Pattern):
    """`{- … -}`: matched, but its rows are not given out by ALL ROWS PER MATCH."""

    element: Pattern


@dataclass(frozen=True, slots=True)
class Anchor(Pattern):
    """`^`, the start of the partition, or `$`, its end."""

    at_start: bool


def variable_of(element: Pattern) -> Variable:
    """The variable of a component of a SASE pattern."""
    if isinstance(element, (Repeat, Negation)):
        element = element.element
    assert isinstance(element, Variable)
    return element


def has_anchor(pattern: Pattern, at_start: bool) -> bool:
    """Whether the pattern has a `^`, or a `$`."""
    return any(anchor.at_start == at_start for anchor in anchors_in(pattern))


def anchors_in(pattern: Pattern) -> Iterator[Anchor]:
    match pattern:
        case Anchor():
            yield pattern
        case Repeat(element=element) | Exclusion(element=element) | Negation(element=element):
            yield from anchors_in(element)
        case Sequence(elements=parts) | Permutation(elements=parts) | Alternation(alternatives=parts):
            for part in parts:
                yield from anchors_in(part)


def can_be_empty(pattern: Pattern) -> bool:
    """Whether the pattern can match no event at all."""
    match pattern:
        case Repeat(element=element, least=least):
            return least == 0 or can_be_empty(element)
        case Sequence(elements=parts) | Permutation(elements=parts):
            return all(map(can_be_empty, parts))
        case Alternation(alternatives=parts):
            return any(map(can_be_empty, parts))
        case Exclusion(element=element):
            return can_be_empty(element)
    return isinstance(pattern, Anchor)


def has_one_way(elements: Iterable[Pattern]) -> bool:
    """Whether each element can match given rows in one way only, so that there is nothing to prefer inside it.

    >>> a = Variable("A")
    >>> has_one_way([a, Repeat(a, 2, 2)]), has_one_way([a, Repeat(a, 0, 1)])
    (True, False)
    """
    for element in elements:
        match element:
            case Variable() | Anchor():
                pass
            case Sequence(elements=parts):
                if not has_one_way(parts):
                    return False
            case Exclusion(element=inner):
                if not has_one_way([inner]):
                    return False
            case Repeat(element=inner, least=least, most=most):
                if least != most or not has_one_way([inner]):
                    return False
            case _:
                return False
    return True


def longest(pattern: Pattern) -> int | None:
    """The most events that a match of the pattern can have; None if nothing bounds them.

    >>> a = Variable("A")
    >>> longest(Sequence((a, Repeat(a, 0, 3)))), longest(Repeat(a, 1, None))
    (4, None)
    """
    match pattern:
        case Variable():
            return 1
        case Repeat(element=element, most=most):
            inside = longest(element)
            if inside == 0 or most == 0:
                return 0
            return None if inside is None or most is None else inside * most
        case Exclusion(element=element):
            return longest(element)
        case Sequence(elements=parts) | Permutation(elements=parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else sum(length or 0 for length in lengths)
        case Alternation(alternatives=parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else max((length or 0 for length in lengths), default=0)
    return 0


def has_exclusion(pattern: Pattern) -> bool:
    match pattern:
        case Exclusion():
            return True
        case Repeat(element=element):
            return has_exclusion(element)
        case Sequence(elements=parts) | Permutation(elements=parts) | Alternation(alternatives=parts):
            return any(map(has_exclusion, parts))
    return False


def first_variables(pattern: Pattern) -> Iterator[Variable]:
    """The variables that a match of the pattern can begin with."""
    match pattern:
        case Variable():
            yield pattern
        case Repeat(element=element) | Exclusion(element=element):
            yield from first_variables(element)
        case Alternation(alternatives=parts) | Permutation(elements=parts):
            for part in parts:
                yield from first_variables(part)
        case Sequence(elements=parts):
            for part in parts:
                yield from first_variables(part)
                if not can_be_empty(part):
                    return


def variables_in(pattern: Pattern) -> Iterator[Variable]:
    """The variables of a pattern from left to right, each as often as it stands there."""
    match pattern:
        case Variable():
            yield pattern
        case Repeat(element=element) | Negation(element=element) | Exclusion(element=element):
            yield from variables_in(element)
        case Sequence(elements=parts) | Permutation(elements=parts) | Alternation(alternatives=parts):
            for part in parts:
                yield from variables_in(part)
