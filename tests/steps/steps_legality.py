"""What is illegal in a step pattern (STEPS.md section 7), as far as the shorthand can say it, and what the document
leaves open.
"""

from collections.abc import Iterator
from itertools import pairwise

from steps_model import ANY, RELAXED, STRICT, Group, Negation, Part, Pattern, Quantifier, Step, positive_steps

Parts = tuple[Part, ...]


def illegal(pattern: Pattern) -> list[str]:
    """Why the pattern is refused; empty if it is legal."""
    return [
        *_names(pattern),
        *_sequence(pattern.parts, outermost=True),
        *_ending(pattern),
        *_bounds(pattern),
        *_mode(pattern),
    ]


def left_open(pattern: Pattern) -> list[str]:
    """Constructs whose meaning the document does not settle beyond doubt."""
    last, *before = reversed(pattern.parts)
    hidden = isinstance(last, Negation) and last.since is not None and before and isinstance(before[0], Negation)
    return [*_open_in(pattern.parts), *(["since_previous on a last negation behind another one"] if hidden else [])]


def passable(part: Part) -> bool:
    """Whether a run can go past the part without an event of it."""
    if isinstance(part, Negation) or part.quantifier.optional:
        return True
    return isinstance(part, Group) and all(passable(each) for each in part.parts)


def last_leaf(part: Part) -> Part:
    return last_leaf(part.parts[-1]) if isinstance(part, Group) else part


def is_greedy(part: Part) -> bool:
    return isinstance(part, Step) and part.quantifier.greedy


def all_parts(parts: Parts) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Group):
            yield from all_parts(part.parts)


def _names(pattern: Pattern) -> Iterator[str]:
    names = [part.name for part in all_parts(pattern.parts) if not isinstance(part, Group)]
    if len(set(names)) < len(names):
        yield "two steps of one name"


def _sequence(parts: Parts, outermost: bool) -> Iterator[str]:
    if isinstance(parts[0], Negation) or (isinstance(parts[0], Step) and parts[0].since is not None):
        yield "the first step is negative, or has since_previous"
    if not outermost and isinstance(parts[-1], Negation):
        yield "a group ends with a negative step"
    for before, part in pairwise(parts):
        if isinstance(part, Negation) and not isinstance(before, Negation) and before.quantifier.optional:
            yield "a negative step right after an optional one"
        if is_greedy(before) and _begins_optional(part):
            yield "an optional step right after a greedy one"
    for part in parts:
        if not isinstance(part, Negation):
            yield from _quantifier(part, part.quantifier)
        elif part.since is not None and part is not parts[-1]:
            yield "since_previous on a negative step that is not the last"
        if isinstance(part, Group):
            yield from _sequence(part.parts, outermost=False)


def _begins_optional(part: Part) -> bool:
    if isinstance(part, Negation):
        return False
    return part.quantifier.optional or (isinstance(part, Group) and _begins_optional(part.parts[0]))


def _quantifier(part: Step | Group, quantifier: Quantifier) -> Iterator[str]:
    if not quantifier.repeated and (quantifier.greedy or quantifier.inner != RELAXED or quantifier.gap is not None):
        yield "greedy, consecutive, combinations or gap without repetition"
    if quantifier.low < 1 or (quantifier.high is not None and quantifier.high < quantifier.low):
        yield "an empty range"
    if quantifier.greedy and quantifier.inner == ANY:
        yield "greedy with combinations"
    if quantifier.until is not None and quantifier.high is not None:
        yield "until without an unbounded loop"
    if isinstance(part, Group) and (quantifier.greedy or quantifier.gap is not None):
        yield "greedy or gap on a group"
    if isinstance(part, Group) and quantifier.high is None and all(passable(each) for each in part.parts):
        yield "an unbounded group that can be passed over"


def _ending(pattern: Pattern) -> Iterator[str]:
    last = pattern.parts[-1]
    if not isinstance(last, Negation):
        return
    if last.contiguity == STRICT and last.since is not None:
        yield "since_previous on not_next"
    if last.contiguity != STRICT and pattern.within is None and last.since is None:
        yield "not_followed_by in last place without a window"
    before = next(part for part in reversed(pattern.parts) if not isinstance(part, Negation))
    if (
        last.contiguity != STRICT
        and last.since is not None
        and (isinstance(before, Group) or before.quantifier.repeated)
    ):
        yield "since_previous on not_followed_by after a step that could go on"


def _bounds(pattern: Pattern) -> Iterator[str]:
    for part in all_parts(pattern.parts):
        bounds = [] if isinstance(part, Group) else [part.since]
        bounds += [part.quantifier.gap] if isinstance(part, Step) else []
        for bound in bounds:
            if bound is not None and (bound <= 0 or (pattern.within is not None and bound > pattern.within)):
                yield "a bound that is not positive, or larger than within"
    if any(bound is not None and bound <= 0 for bound in (pattern.within, pattern.within_events)):
        yield "a window that is not positive"


def _mode(pattern: Pattern) -> Iterator[str]:
    needs = pattern.mode in ("skip_to_first", "skip_to_last")
    if needs != (pattern.target is not None) or (pattern.missing_error and not needs):
        yield "a step for a mode that takes none, or none for one that needs it"
    if pattern.target is not None and pattern.target not in {step.name for step in positive_steps(pattern.parts)}:
        yield "after_match names no positive step"


def _open_in(parts: Parts) -> Iterator[str]:
    for index, part in enumerate(parts):
        if isinstance(part, Group):
            yield from _open_in(part.parts)
            if part.quantifier.repeated and is_greedy(last_leaf(part)):
                yield "a repeated group that ends with a greedy step"
        following = next((each for each in parts[index + 1 :] if not isinstance(each, Negation)), None)
        if is_greedy(last_leaf(part)) and following is not None and _begins_optional(following):
            yield "an optional step after a greedy one, with a negation or the end of a group between"
        if isinstance(part, Negation) and isinstance(parts[index - 1], Group) and passable(parts[index - 1]):
            yield "a negation after a group all of whose steps can be passed over"
