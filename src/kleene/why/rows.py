"""A partition of a row pattern to its searches: for each row where a match may begin, what was tried and why it failed.

The search goes along the edges of the automaton in order of preference, and back where a row does not fit. The
interpreter works from the pattern itself, so that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kleene.automaton.model import AtEnd, AtStart, Automaton, Edge, parts_of
from kleene.engine.row_reference import RowBindings, RowMatch, Visible
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Selection, Skip
from kleene.why.checking import decided, made_check, raise_first
from kleene.why.findings import EnoughError, Findings
from kleene.why.model import Check, Ending, Kind, Match, NearMiss, Run, Step, Try
from kleene.why.row_partition import RowPartition
from kleene.why.row_tally import RowTally

TRIES_PER_RUN = 20


@dataclass(frozen=True, slots=True)
class _Failed:
    """A row that could not be bound to a variable behind a path, and why: by its predicates, or by a bound."""

    path: tuple[str, ...]
    edge: Edge
    variable: str
    kind: Kind
    checks: tuple[Check, ...] = ()


@dataclass(slots=True)
class _Search:
    """The search from one row."""

    start: int
    visible: Visible
    steps: list[Step] = field(default_factory=list)
    failed: list[_Failed] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    longest: tuple[str, ...] = ()


class RowWalk:
    def __init__(self, partition: RowPartition, automaton: Automaton, findings: Findings, tally: RowTally) -> None:
        self.partition, self.automaton, self.findings, self.tally = partition, automaton, findings, tally
        self.query = partition.query
        self._members = self.query.members
        self._number = 0  # of the last match in the partition

    def follow(self, ends: Sequence[int] | None, resume: Callable[[RowMatch], int]) -> None:
        """Searches from row after row; `ends` are the rows behind the frames of a window."""
        self.tally.events += len(self.partition)
        try:
            if ends is not None:
                self._follow_frames(ends, resume)
            elif self.query.definition.selection is Selection.ALL_MATCHES:
                self._follow_all()
            else:
                self._follow_starts(resume)
        except EnoughError:
            self.findings.is_cut = True

    def _follow_starts(self, resume: Callable[[RowMatch], int]) -> None:
        visible, start = Visible(0, len(self.partition)), 0
        while start < len(self.partition):
            search = _Search(start, visible)
            found = next(self._ways(search, self._number + 1), None)
            self._end(search, [] if found is None else [found])
            following = start + 1
            if found is not None:
                following = resume(RowMatch(start, self._number, found, (False,) * len(found)))
            for skipped in range(start + 1, following):
                self._tell_skipped(skipped, resume_number=len(self.findings.matches))
            start = following

    def _follow_all(self) -> None:
        visible = Visible(0, len(self.partition))
        for start in range(len(self.partition)):
            search = _Search(start, visible)
            self._end(search, list(dict.fromkeys(self._ways(search, self._number + 1))))

    def _follow_frames(self, ends: Sequence[int], resume: Callable[[RowMatch], int]) -> None:
        assert self.query.frame is not None
        after = self.query.definition.after_match or AfterMatch()
        skipped_to = 0
        for row, end in enumerate(ends):
            if row < skipped_to:
                self._tell_skipped(row, len(self.findings.matches))
                continue
            found, at = None, row
            for at in range(row, end if self.query.frame.seeks else row + 1):
                search = _Search(at, Visible(row, end))
                found = next(self._ways(search, 0), None)
                self._end(search, [] if found is None else [found])
                if found is not None:
                    break
            if found:
                is_next = after.skip is Skip.TO_NEXT_ROW
                skipped_to = row + 1 if is_next else resume(RowMatch(at, 0, found, (False,) * len(found)))

    # --- one search --------------------------------------------------------------------------------------------------

    def _ways(self, search: _Search, number: int) -> Iterator[tuple[str, ...]]:
        """The ways to match, as the variables of the rows, most preferred first; all that is tried is noted."""
        untried: list[tuple[Edge, tuple[str, ...]]] = []
        self._push(0, (), search, untried)
        while untried:
            edge, path = untried.pop()
            if edge.target == self.automaton.final:
                yield path
                continue
            variable = self.automaton.states[edge.target].variable
            assert variable is not None
            if self._fits(search, path, edge, variable, number):
                longer = (*path, variable)
                search.bound.add(variable)
                search.longest = max(search.longest, longer, key=len)
                self._push(edge.target, longer, search, untried)

    def _push(
        self, state: int, path: tuple[str, ...], search: _Search, untried: list[tuple[Edge, tuple[str, ...]]]
    ) -> None:
        row = search.start + len(path)
        for edge in reversed(self.automaton.edges[state]):
            parts = parts_of(edge.formula)
            is_closed = (AtStart() in parts and row != 0) or (AtEnd() in parts and row != len(self.partition))
            if not is_closed:
                untried.append((edge, path))

    def _fits(self, search: _Search, path: tuple[str, ...], edge: Edge, variable: str, number: int) -> bool:
        if self.tally.tries >= TRIES_PER_RUN * self.findings.limits.runs:
            raise EnoughError
        row, length = search.start + len(path), self.query.definition.max_length
        if row >= search.visible.end:
            is_frame = search.visible.end < len(self.partition)
            search.failed.append(_Failed(path, edge, variable, Kind.LENGTH if is_frame else Kind.END))
            return False
        is_inside = self.partition.is_in_window(search.start, row) and (length is None or row - search.start < length)
        checks = self._checks(search, path, variable, number, raises=is_inside)
        if length is not None and row - search.start >= length:
            search.failed.append(_Failed(path, edge, variable, Kind.LENGTH, checks))
            return False
        if not self.partition.is_in_window(search.start, row):
            search.failed.append(_Failed(path, edge, variable, Kind.WINDOW, checks))
            return False
        self.tally.tried(variable, checks, self.partition.rows[row])
        one = Try("row", variable, (), checks)
        search.steps.append(Step(self.partition.event(row), (one,), bound=len(path)))
        if not one.holds:
            search.failed.append(_Failed(path, edge, variable, Kind.PREDICATE, checks))
        return one.holds

    def _checks(
        self, search: _Search, path: tuple[str, ...], variable: str, number: int, raises: bool
    ) -> tuple[Check, ...]:
        """The parts of what DEFINE says; `raises` an error that no FALSE before it hides, as every engine does."""
        rows, variables = range(search.start, search.start + len(path) + 1), (*path, variable)
        bindings = RowBindings(self.partition.columns, search.visible, self._members, rows, variables, number=number)
        parts = self.tally.parts[variable]
        results = [decided(part, bindings) for part in parts]
        if raises:
            raise_first(results)
        return tuple(
            made_check(part, bindings, result, lambda node: self._row_of(node, bindings))
            for part, result in zip(parts, results, strict=True)
        )

    def _row_of(self, part: ir.Expr, bindings: RowBindings) -> int | None:
        if not isinstance(part, ir.Attribute) or isinstance(part, ir.InputConstant):
            return None
        row = bindings.last_row(part.variable)
        return None if row is None else self.partition.rows[row]

    # --- its end -----------------------------------------------------------------------------------------------------

    def _end(self, search: _Search, ways: Sequence[tuple[str, ...]]) -> None:
        self.tally.reached(search.bound)
        run = self.tally.runs
        endings: list[Ending] = []
        for way in ways:
            self._number += 1
            match = Match(len(self.findings.matches) + 1, self.partition.bound(search.start, way))
            self.findings.matches.append(match)
            endings.append(Ending(Kind.MATCH, match=match.number))
        if not ways:
            endings = self._why_not(search)
            self._note_misses(search, run)
        self.tally.ends[endings[0].kind.value] += 1
        chosen = self.findings.chosen
        seen = range(search.start, min(search.start + len(search.longest) + 1, len(self.partition)))
        if any(self.partition.rows[row] in chosen for row in seen):
            bound = self.partition.bound(search.start, ways[0] if ways else search.longest)
            self.findings.tell(Run(run, None, self.partition.key, bound, tuple(search.steps), tuple(endings)))

    def _deepest(self, search: _Search) -> list[_Failed]:
        return [one for one in search.failed if len(one.path) == len(search.longest)]

    def _why_not(self, search: _Search) -> list[Ending]:
        """What stopped the search where it came furthest; nothing but anchors may have been in the way."""
        found: list[Ending] = []
        for failed in self._deepest(search):
            row = search.start + len(failed.path)
            by = self.partition.event(row) if row < len(self.partition) else None
            checks = tuple(check for check in failed.checks if not check.holds)
            is_predicate = failed.kind is Kind.PREDICATE
            ending = Ending(failed.kind, by, checks if is_predicate else (), failed.variable)
            if ending not in found:
                found.append(ending)
        return found or [Ending(Kind.ANCHOR)]

    def _note_misses(self, search: _Search, run: int) -> None:
        deepest = self._deepest(search)
        self.tally.stopped(
            (one.variable, check.predicate)
            for one in deepest
            if one.kind is Kind.PREDICATE
            for check in one.checks
            if not check.holds
        )
        bound = self.partition.bound(search.start, search.longest)
        noted: set[tuple[object, ...]] = set()
        for failed in deepest:
            lacking = [check for check in failed.checks if not check.holds]
            is_bound = failed.kind in (Kind.WINDOW, Kind.LENGTH)
            row = search.start + len(failed.path)
            if row >= len(self.partition) or len(lacking) != (0 if is_bound else 1):
                continue
            check = None if is_bound else lacking[0]
            key = (failed.kind, failed.variable, check and check.predicate)
            if key not in noted and (failed.kind is not Kind.LENGTH or row < search.visible.end):
                noted.add(key)
                event = self.partition.event(row)
                by = event if is_bound else None
                would = self._could_end(failed.edge.target, row + 1)
                self.findings.misses.append(
                    NearMiss(run, self.partition.key, bound, failed.kind, failed.variable, event, by, check, would)
                )

    def _could_end(self, state: int, row: int) -> bool:
        """Whether a match can end behind the state, the next row being this one."""
        for edge in self.automaton.edges[state]:
            if edge.target == self.automaton.final:
                parts = parts_of(edge.formula)
                if not (AtStart() in parts and row != 0) and not (AtEnd() in parts and row != len(self.partition)):
                    return True
        return False

    def _tell_skipped(self, row: int, resume_number: int) -> None:
        self.tally.ends[Kind.SKIPPED.value] += 1
        if self.partition.rows[row] in self.findings.chosen:
            event = self.partition.event(row)
            ending = Ending(Kind.SKIPPED, event, match=resume_number)
            self.findings.tell(Run(0, None, self.partition.key, (), (), (ending,)))
