"""What is counted while rows are tried for the variables of a pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.ir import expr as ir
from kleene.ir.pattern import variables_in
from kleene.why.checking import parts_of
from kleene.why.counts import Counts
from kleene.why.model import Check, Count, PredicateCount


class RowTally(Counts):
    def __init__(self, query: AnalyzedRowPattern) -> None:
        names = dict.fromkeys(variable.name or "" for variable in variables_in(query.definition.pattern))
        conditions = dict(query.conditions)
        self.parts: Mapping[str, Sequence[ir.Expr]] = {
            name: tuple(parts_of(conditions[name])) if name in conditions else () for name in names
        }
        super().__init__((name, part) for name, parts in self.parts.items() for part in parts)
        self._reached: Counter[str] = Counter()
        self._bound: dict[str, set[int]] = {name: set() for name in names}

    def tried(self, variable: str, checks: Sequence[Check], row: int) -> None:
        self.tries += 1
        for check in checks:
            self.note_try((variable, check.predicate), row, check.holds)
        if all(check.holds for check in checks):
            self._bound[variable].add(row)

    def reached(self, variables: Iterable[str]) -> None:
        """A run is over that has bound these at one time or another."""
        self.runs += 1
        self._reached.update(set(variables))

    def predicates(self) -> tuple[PredicateCount, ...]:
        found: list[PredicateCount] = []
        for name, parts in self.parts.items():
            if not parts:
                bound = len(self._bound[name])
                found.append(PredicateCount(name, "row", None, (), bound, bound, bound, bound, 0))
            found += [self.count((name, part), name, "row", part) for part in parts]
        return tuple(found)

    def states(self) -> tuple[Count, ...]:
        return tuple(Count(name, self._reached[name]) for name in self.parts)
