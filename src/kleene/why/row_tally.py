"""What is counted while rows are tried for the variables of a pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.ir import expr as ir
from kleene.ir.pattern import variables_in
from kleene.why.checking import parts_of
from kleene.why.model import Check, Count, PredicateCount


@dataclass(slots=True)
class _Counted:
    asked: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    tries: int = 0
    held: int = 0
    stopped: int = 0


class RowTally:
    def __init__(self, query: AnalyzedRowPattern) -> None:
        self.events, self.runs, self.tries = 0, 0, 0
        self.ends: Counter[str] = Counter()
        names = dict.fromkeys(variable.name or "" for variable in variables_in(query.definition.pattern))
        conditions = dict(query.conditions)
        self.parts: Mapping[str, Sequence[ir.Expr]] = {
            name: tuple(parts_of(conditions[name])) if name in conditions else () for name in names
        }
        self._reached: Counter[str] = Counter()
        self._bound: dict[str, set[int]] = {name: set() for name in names}
        self._counted = {(name, part): _Counted() for name, parts in self.parts.items() for part in parts}

    def tried(self, variable: str, checks: Sequence[Check], row: int) -> None:
        self.tries += 1
        for check in checks:
            counted = self._counted[(variable, check.predicate)]
            counted.asked.add(row)
            counted.tries += 1
            if check.holds:
                counted.passed.add(row)
                counted.held += 1
        if all(check.holds for check in checks):
            self._bound[variable].add(row)

    def reached(self, variables: Iterable[str]) -> None:
        """A run is over that has bound these at one time or another."""
        self.runs += 1
        self._reached.update(set(variables))

    def stopped(self, by: Iterable[tuple[str, ir.Expr]]) -> None:
        for key in set(by):
            self._counted[key].stopped += 1

    def predicates(self) -> tuple[PredicateCount, ...]:
        found: list[PredicateCount] = []
        for name, parts in self.parts.items():
            if not parts:
                bound = len(self._bound[name])
                found.append(PredicateCount(name, "row", None, (), bound, bound, bound, bound, 0))
            for part in parts:
                one = self._counted[(name, part)]
                asked, passed = len(one.asked), len(one.passed)
                found.append(PredicateCount(name, "row", part, (), asked, passed, one.tries, one.held, one.stopped))
        return tuple(found)

    def states(self) -> tuple[Count, ...]:
        return tuple(Count(name, self._reached[name]) for name in self.parts)

    def endings(self) -> tuple[Count, ...]:
        found = sorted(self.ends.items(), key=lambda item: (-item[1], item[0]))
        return tuple(Count(name, runs) for name, runs in found)
