"""Makes a pattern and a stream on which two answers differ as small as they can be."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from steps_legality import illegal
from steps_model import RELAXED, STRICT, Condition, Event, Group, Part, Pattern, Quantifier, Step

Differs = Callable[[Pattern, list[Event]], bool]


def shrink(pattern: Pattern, events: list[Event], differs: Differs) -> tuple[Pattern, list[Event]]:
    """A pair that still differs, from which nothing more can be dropped."""
    smaller: tuple[Pattern, list[Event]] | None = (pattern, events)
    while smaller is not None:
        pattern, events = smaller
        smaller = next((each for each in _smaller(pattern, events) if not illegal(each[0]) and differs(*each)), None)
    return pattern, events


def _smaller(pattern: Pattern, events: list[Event]) -> Iterator[tuple[Pattern, list[Event]]]:
    for index in range(len(events)):
        yield pattern, _renumbered(events[:index] + events[index + 1 :])
    for simpler in _simpler_settings(pattern):
        yield simpler, events
    for parts in _simpler_parts(pattern.parts):
        yield replace(pattern, parts=parts), events
    if any(event.price is not None for event in events):
        yield pattern, [replace(event, price=None) for event in events]
    regular = [replace(event, time=index) for index, event in enumerate(events)]
    if regular != events:
        yield pattern, regular


def _renumbered(events: list[Event]) -> list[Event]:
    return [replace(event, position=position) for position, event in enumerate(events)]


def _simpler_settings(pattern: Pattern) -> Iterator[Pattern]:
    if pattern.within is not None:
        yield replace(pattern, within=None)
    if pattern.within_events is not None:
        yield replace(pattern, within_events=None)
    if pattern.mode != "no_skip":
        yield replace(pattern, mode="no_skip", target=None, missing_error=False)
    if pattern.missing_error:
        yield replace(pattern, missing_error=False)
    if pattern.partition:
        yield replace(pattern, partition=())


def _simpler_parts(parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    for index, part in enumerate(parts):
        rest = (*parts[:index], *parts[index + 1 :])
        if rest:
            yield rest if index else (replace(rest[0], contiguity=STRICT), *rest[1:])
        for simpler in _simpler_part(part):
            yield (*parts[:index], simpler, *parts[index + 1 :])
        if isinstance(part, Group):
            first = replace(part.parts[0], contiguity=part.contiguity)
            yield (*parts[:index], first, *part.parts[1:], *parts[index + 1 :])


def _simpler_part(part: Part) -> Iterator[Part]:
    if isinstance(part, Group):
        for parts in _simpler_parts(part.parts):
            yield replace(part, parts=parts)
    elif part.condition.texts:
        yield replace(part, condition=replace(part.condition, texts=part.condition.texts[:-1]))
    if isinstance(part, Step) and part.condition.letters is not None and len(part.condition.letters) > 1:
        for letter in part.condition.letters:
            yield replace(part, condition=Condition(letter, part.condition.texts))
    if not isinstance(part, Group) and part.since is not None:
        yield replace(part, since=None)
    if isinstance(part, Step | Group):
        for quantifier in _simpler_quantifiers(part.quantifier):
            yield replace(part, quantifier=quantifier)


def _simpler_quantifiers(quantifier: Quantifier) -> Iterator[Quantifier]:
    if quantifier != Quantifier():
        yield Quantifier()
    for simpler in (
        replace(quantifier, optional=False),
        replace(quantifier, greedy=False),
        replace(quantifier, until=None),
        replace(quantifier, inner=RELAXED),
        replace(quantifier, gap=None),
        replace(quantifier, low=1),
    ):
        if simpler != quantifier and simpler.repeated:
            yield simpler
