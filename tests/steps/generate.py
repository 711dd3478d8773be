"""Random legal step patterns and random short streams, the same for the same seed."""

import random
from dataclasses import dataclass, replace

from steps_legality import illegal, left_open
from steps_model import (
    ANY,
    MODES,
    RELAXED,
    STRICT,
    Condition,
    Event,
    Group,
    Negation,
    Part,
    Pattern,
    Quantifier,
    Step,
    positive_steps,
)

LETTERS = "abc"
_NAMES = (*"pqrsvwyz", *(f"p{number}" for number in range(40)))
_NEGATIVE_NAMES = (*"klmn",)


@dataclass(frozen=True)
class Wishes:
    """What the generator may use."""

    groups: bool = True
    negations: bool = True
    windows: bool = True
    modes: bool = True
    conditions: bool = True
    partitions: bool = True
    unsettled: bool = False


ALL = Wishes()


@dataclass
class _Names:
    positive: list[str]
    negative: list[str]
    used: list[str]


def random_pattern(source: random.Random, wishes: Wishes = ALL) -> Pattern:
    """A legal pattern of up to about five steps, with groups up to two deep."""
    while True:
        names = _Names(list(_NAMES), list(_NEGATIVE_NAMES), [])
        parts = _parts(source, wishes, names, source.choice((1, 2, 2, 3, 3, 3, 4, 4)), 0)
        pattern = _with_settings(source, wishes, Pattern(parts))
        if (
            len(list(positive_steps(parts))) <= 5
            and not illegal(pattern)
            and (wishes.unsettled or not left_open(pattern))
        ):
            return pattern


def random_stream(source: random.Random, pattern: Pattern, longest: int = 9) -> list[Event]:
    """A short stream that more often than not goes along with the steps of the pattern."""
    steps = [step.condition.letters or LETTERS for step in positive_steps(pattern.parts)]
    reached = 0
    counts: dict[str, int] = {}
    events: list[Event] = []
    time = 0
    for position in range(source.randint(1, longest)):
        letter = source.choice(steps[reached] if source.random() < 0.6 else LETTERS * 2 + "xu")
        reached = (reached + source.choice((0, 1, 1))) % len(steps)
        counts[letter] = counts.get(letter, 0) + 1
        price = None if source.random() < 0.15 else float(source.randint(0, 5))
        key = source.choice((None, "k1", "k1", "k1", "k2", "k2")) if pattern.partition else None
        events.append(Event(f"{letter}{counts[letter]}", letter, time, price, key, position))
        time += source.choice((0, 1, 1, 1, 1, 2, 3))
    return events


def _parts(source: random.Random, wishes: Wishes, names: _Names, count: int, depth: int) -> tuple[Part, ...]:
    parts: list[Part] = []
    for index in range(count):
        if wishes.groups and depth < 2 and source.random() < 0.22:
            inner = _parts(source, wishes, names, source.choice((1, 2, 2, 3)), depth + 1)
            parts.append(Group(inner, _contiguity(source, index), _quantifier(source, wishes, group=True)))
        elif wishes.negations and index and names.negative and source.random() < 0.2:
            kind = source.choice((STRICT, RELAXED))
            parts.append(
                Negation(names.negative.pop(0), Condition(source.choice(("a", "b", "c", "x", "u", "ab"))), kind)
            )
        else:
            parts.append(_step(source, wishes, names, index))
    return tuple(parts)


def _contiguity(source: random.Random, index: int) -> str:
    return source.choice((STRICT, RELAXED, RELAXED, ANY)) if index else STRICT


def _step(source: random.Random, wishes: Wishes, names: _Names, index: int) -> Step:
    name = names.positive.pop(0)
    letters = source.choice(("a", "b", "c", "a", "b", "c", "ab", "bc", "ac", "abu", None))
    texts: tuple[tuple[str, str], ...] = ()
    if wishes.conditions and source.random() < 0.25:
        texts = (("AND", _text(source, name, names.used)),)
        if source.random() < 0.3:
            texts += ((source.choice(("AND", "OR")), _text(source, name, names.used)),)
    names.used.append(name)
    since = source.choice((2, 3, 4)) if wishes.windows and index and source.random() < 0.08 else None
    return Step(
        name, Condition(letters, texts), _contiguity(source, index), _quantifier(source, wishes, group=False), since
    )


def _text(source: random.Random, name: str, earlier: list[str]) -> str:
    other = source.choice([*earlier, name])
    return source.choice(
        (
            "price > 2",
            "price < 4",
            "price IS NULL OR price < 3",
            "NOT price = 1",
            f"COUNT({name}.*) = 0 OR price > LAST({name}.price)",
            f"price >= FIRST({other}.price)",
            f"COUNT({other}.*) < 2",
            f"price + COALESCE(SUM({name}.price), 0) < 6",
            f"price >= COALESCE(MIN({other}.price), 0)",
            f"COUNT({other}.price) = COUNT({other}.*)",
        )
    )


def _quantifier(source: random.Random, wishes: Wishes, group: bool) -> Quantifier:
    low, high = source.choice(((1, 1), (1, 1), (1, 1), (1, None), (1, None), (2, None), (2, 2), (1, 2), (1, 3), (2, 3)))
    repeated = (low, high) != (1, 1)
    inner = source.choice((RELAXED, RELAXED, STRICT, ANY)) if repeated else RELAXED
    greedy = repeated and not group and inner != ANY and source.random() < 0.35
    until = Condition(source.choice("uuabcx")) if high is None and source.random() < 0.3 else None
    gap = source.choice((1, 2, 3)) if wishes.windows and repeated and not group and source.random() < 0.12 else None
    return Quantifier(low, high, inner, source.random() < 0.25, greedy, until, gap)


def _with_settings(source: random.Random, wishes: Wishes, pattern: Pattern) -> Pattern:
    last = pattern.parts[-1]
    needs_window = isinstance(last, Negation) and last.contiguity == RELAXED
    if isinstance(last, Negation) and needs_window and source.random() < 0.3:
        parts = (*pattern.parts[:-1], replace(last, since=source.choice((2, 3))))
        pattern = replace(pattern, parts=parts)
    elif needs_window or (wishes.windows and source.random() < 0.25):
        pattern = replace(pattern, within=source.choice((2, 4, 5, 6, 8)))
    elif wishes.windows and source.random() < 0.1:
        pattern = replace(pattern, within_events=source.choice((2, 3, 4, 6)))
    if wishes.partitions and source.random() < 0.08:
        pattern = replace(pattern, partition=("key",))
    if wishes.modes and source.random() < 0.5:
        pattern = _with_mode(source, pattern)
    return pattern


def _with_mode(source: random.Random, pattern: Pattern) -> Pattern:
    mode = source.choice(MODES)
    if mode not in ("skip_to_first", "skip_to_last"):
        return replace(pattern, mode=mode)
    target = source.choice([step.name for step in positive_steps(pattern.parts)] or [""])
    return replace(pattern, mode=mode, target=target, missing_error=source.random() < 0.1)
