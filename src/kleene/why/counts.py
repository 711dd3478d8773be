"""What every walk counts: the events that passed a predicate, how runs ended, and what stopped them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from kleene.ir.expr import Expr
from kleene.why.model import Count, PredicateCount


@dataclass(slots=True)
class _Counted:
    """The rows that a predicate was asked of, those that passed, and how often both was so."""

    asked: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    tries: int = 0
    held: int = 0
    stopped: int = 0


class Counts:
    """The counts of a whole walk, over all partitions that it looks at; `keys` name the predicates where they stand."""

    def __init__(self, keys: Iterable[Hashable]) -> None:
        self.events, self.runs, self.tries = 0, 0, 0
        self.ends: Counter[str] = Counter()
        self._counted = {key: _Counted() for key in keys}

    def note(self, key: Hashable, row: int, holds: bool) -> None:
        """The predicate was decided for the event of a row, whether or not a run came to it."""
        counted = self._counted[key]
        counted.asked.add(row)
        if holds:
            counted.passed.add(row)

    def note_try(self, key: Hashable, row: int, holds: bool) -> None:
        self.note(key, row, holds)
        counted = self._counted[key]
        counted.tries += 1
        counted.held += holds

    def stopped(self, by: Iterable[Hashable]) -> None:
        """A run went no further; each predicate that refused it an event counts once."""
        for key in set(by):
            self._counted[key].stopped += 1

    def count(
        self, key: Hashable, variable: str, move: str, predicate: Expr, types: tuple[str, ...] = ()
    ) -> PredicateCount:
        one = self._counted[key]
        numbers = (len(one.asked), len(one.passed), one.tries, one.held, one.stopped)
        return PredicateCount(variable, move, predicate, types, *numbers)

    def predicates(self) -> tuple[PredicateCount, ...]:
        raise NotImplementedError

    def states(self) -> tuple[Count, ...]:
        raise NotImplementedError

    def endings(self) -> tuple[Count, ...]:
        found = sorted(self.ends.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Count(name, runs) for name, runs in found)
