"""Step patterns and events as immutable values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

STRICT, RELAXED, ANY = "strict", "relaxed", "any"
MODES = ("no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last")


@dataclass(frozen=True)
class Condition:
    """What a step or an until demands: one of the letters (None: any), and the texts joined from left to right by
    AND and OR.
    """

    letters: str | None = None
    texts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Quantifier:
    low: int = 1
    high: int | None = 1
    inner: str = RELAXED
    optional: bool = False
    greedy: bool = False
    until: Condition | None = None
    gap: int | None = None

    @property
    def repeated(self) -> bool:
        return (self.low, self.high) != (1, 1)


@dataclass(frozen=True)
class Step:
    name: str
    condition: Condition
    contiguity: str = STRICT
    quantifier: Quantifier = Quantifier()
    since: int | None = None


@dataclass(frozen=True)
class Group:
    parts: tuple["Part", ...]
    contiguity: str = STRICT
    quantifier: Quantifier = Quantifier()


@dataclass(frozen=True)
class Negation:
    """not_next where the contiguity is strict, otherwise not_followed_by."""

    name: str
    condition: Condition
    contiguity: str = STRICT
    since: int | None = None


Part = Step | Group | Negation


@dataclass(frozen=True)
class Pattern:
    parts: tuple[Part, ...]
    within: int | None = None
    within_events: int | None = None
    mode: str = "no_skip"
    target: str | None = None
    missing_error: bool = False
    partition: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    name: str
    letter: str
    time: int
    price: float | None = None
    key: str | None = None
    position: int = 0

    def attribute(self, name: str) -> Any:
        return {"type": self.letter, "t": self.time, "price": self.price, "id": self.name, "key": self.key}[name]


def positive_steps(parts: tuple[Part, ...]) -> Iterator[Step]:
    """The positive steps in the order of the pattern, those of groups included."""
    for part in parts:
        if isinstance(part, Step):
            yield part
        elif isinstance(part, Group):
            yield from positive_steps(part.parts)
