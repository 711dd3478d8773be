"""The plain engine for row patterns: tries what a pattern allows in order of preference, as the standard defines it.

No automaton, no sharing between attempts: a stack of what is still to be tried, most preferred on top. It is the oracle
for everything faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget
from kleene.engine.events import times_of, window_size
from kleene.engine.row_aggregates import aggregate_of_rows
from kleene.errors import ExecutionError, LimitError, printable
from kleene.ir import expr as ir
from kleene.ir.aggregates import aggregated_variable
from kleene.ir.evaluate import PlainValue, evaluate, vectorized_key
from kleene.ir.options import AfterMatch, Selection, Skip, WindowUnit
from kleene.ir.pattern import Alternation, Anchor, Exclusion, Pattern, Permutation, Repeat, Variable, has_one_way
from kleene.ir.pattern import Sequence as PatternSequence


@dataclass(frozen=True, slots=True)
class Bound:
    """A row matched to a variable, and the rows before it."""

    row: int
    variable: str
    is_excluded: bool
    before: Bound | None


@dataclass(frozen=True, slots=True)
class Visible:
    """The rows that conditions and measures may see: those of the partition, or of a row's frame."""

    begin: int
    end: int

    def __contains__(self, row: int) -> bool:
        return self.begin <= row < self.end


@dataclass(frozen=True, slots=True)
class RowMatch:
    """A match: the rows from `start` on, each with its variable; of no rows, an empty match."""

    start: int
    number: int
    variables: tuple[str, ...]
    is_excluded: tuple[bool, ...]

    @property
    def last(self) -> int:
        return self.start + len(self.variables) - 1 if self.variables else self.start


@dataclass(frozen=True, slots=True)
class _Round:
    """In a repetition: that many rounds are done, and the last of them began at the row."""

    repeat: Repeat
    done: int
    began: int


_END_OF_EXCLUSION = Pattern()
Todo = tuple[Any, Any] | None  # what to match next, and what after that


class PartitionMatcher:
    """Finds the matches in one partition; rows are known by their numbers in it."""

    def __init__(
        self,
        query: AnalyzedRowPattern,
        columns: Mapping[str, list[PlainValue]],
        count: int,
        run_limit: int,
        budget: Budget | None = None,
    ) -> None:
        self._query, self._columns, self._count, self._run_limit = query, columns, count, run_limit
        self._budget = Budget(events=count) if budget is None else budget
        self._conditions = dict(query.conditions)
        self._members = query.members
        self._all = Visible(0, count)
        measured = query.measured_column
        self._times = [] if measured is None else times_of(columns[measured], query.time_type)

    def matches(self) -> Iterator[RowMatch]:
        if self._query.definition.selection is Selection.ALL_MATCHES:
            yield from self._all_matches()
            return
        after = self._query.definition.after_match or AfterMatch()
        start, number = 0, 0
        while start < self._count:
            found = next(self._ways(start, 1 + number, self._all), None)
            if found is None:
                start += 1
                continue
            number += 1
            yield found
            start = self._resume(found, after)

    def _all_matches(self) -> Iterator[RowMatch]:
        """Every classification of every start row; one that is reached in several ways is one match."""
        number = 0
        for start in range(self._count):
            seen: set[tuple[str, ...]] = set()
            for found in self._ways(start, number + 1, self._all):
                if found.variables not in seen:
                    seen.add(found.variables)
                    number += 1
                    yield replace(found, number=number)

    def open_ways(self, start: int, number: int) -> tuple[RowMatch | None, list[RowMatch]]:
        """The match of the row, and the ways from it that bound all rows of its window and could have gone on.

        Where every classification is a match, so is every open one given; else only that of a row without a match, the
        most preferred one. Nothing is left out only if no row of the window is yet to come.
        """
        opened: list[RowMatch] = []
        ways = self._ways(start, number, self._all, opened)
        found = next(ways, None)
        if self._query.definition.selection is not Selection.ALL_MATCHES:
            return found, opened[:1] if found is None else []
        for _ in ways:
            pass
        return found, list({way.variables: way for way in opened}.values())

    def window_end(self, start: int) -> int:
        """The first row behind the window of the row, or the end of the partition."""
        return next((row for row in range(start, self._count) if not self._is_in_window(start, row)), self._count)

    def resume(self, found: RowMatch) -> int:
        """The row where matching goes on after a match."""
        if self._query.definition.selection is Selection.ALL_MATCHES:
            return found.start + 1
        return self._resume(found, self._query.definition.after_match or AfterMatch())

    def of_each_row(self, ends: Sequence[int]) -> Iterator[RowMatch | None]:
        """The match of each row in its frame, which the row at `ends` is behind; None if it has none, or is skipped."""
        frame, after = self._query.frame, self._query.definition.after_match or AfterMatch()
        assert frame is not None
        skipped_to = 0
        for row, end in enumerate(ends):
            found = None
            if row >= skipped_to:
                starts = range(row, end if frame.seeks else row + 1)
                ways = (next(self._ways(start, 0, Visible(row, end)), None) for start in starts)
                found = next((way for way in ways if way is not None), None)
            yield found
            if found is not None and found.variables:
                skipped_to = row + 1 if after.skip is Skip.TO_NEXT_ROW else self._resume(found, after)

    def _resume(self, found: RowMatch, after: AfterMatch) -> int:
        if not found.variables or after.skip is Skip.TO_NEXT_ROW:
            return found.start + 1
        if after.skip is Skip.PAST_LAST_ROW:
            return found.last + 1
        assert after.variable is not None
        wanted = self._members[after.variable]
        rows = [found.start + n for n, variable in enumerate(found.variables) if variable in wanted]
        if not rows:
            raise cannot_skip(after, "the match has no such row")
        target = rows[0] if after.skip is Skip.TO_FIRST else rows[-1]
        if target == found.start:
            raise cannot_skip(after, "that is the row where the match began, so the same match would be found forever")
        return target

    # --- one start row ---------------------------------------------------------------------------------------------

    def _ways(
        self, start: int, number: int, visible: Visible, opened: list[RowMatch] | None = None
    ) -> Iterator[RowMatch]:
        """The ways to match from the row on, most preferred first; `opened` gets those that run out of window."""
        pattern = self._query.definition.pattern
        untried: list[tuple[Todo, int, Bound | None, int]] = [((pattern, None), start, None, 0)]
        # A match takes some steps for each of its rows; what goes far beyond that is going around in ways that fail.
        steps_left = self._run_limit + 100 * self._count
        while untried:
            steps_left -= 1
            if steps_left % 1024 == 0:
                self._budget.check_time()
            if steps_left < 0:
                raise LimitError(
                    f"from one row, the pattern can match in too many ways: {self._run_limit:,} steps were not enough",
                    hint="Make its loops and alternatives exclude each other, bound it with WITHIN or MAXLENGTH, or "
                    "raise run_limit.",
                )
            todo, row, bound, excluded = untried.pop()
            if todo is None:
                yield _match(start, number, bound)
                continue
            item, rest = todo
            match item:
                case Variable(name=name):
                    tried = Bound(row, name or "", excluded > 0, bound)
                    if self._fits(tried, start, number, visible):
                        untried.append((rest, row + 1, tried, excluded))
                    elif opened is not None and self._runs_out(start, row):
                        opened.append(_match(start, number, bound))
                case PatternSequence(elements=elements):
                    for element in reversed(elements):
                        rest = (element, rest)
                    untried.append((rest, row, bound, excluded))
                case Alternation(alternatives=alternatives):
                    untried += [((choice, rest), row, bound, excluded) for choice in reversed(alternatives)]
                case Permutation(elements=elements) if has_one_way(elements):
                    # A (B C | C B) | B …: there is nothing to prefer inside an element, and failures are found early.
                    for n in reversed(range(len(elements))):
                        others = Permutation(elements[:n] + elements[n + 1 :])
                        left = (others, rest) if others.elements else rest
                        untried.append(((elements[n], left), row, bound, excluded))
                case Permutation(elements=elements):
                    orders = [PatternSequence(order) for order in permutations(elements)]
                    untried += [((order, rest), row, bound, excluded) for order in reversed(orders)]
                case Repeat():
                    untried.append(((_Round(item, 0, -1), rest), row, bound, excluded))
                case _Round(repeat=repeat, done=done, began=began):
                    # Beyond the required rounds, one that consumes nothing is the last: it could go on forever.
                    stuck = done > repeat.least and began == row
                    again = ((repeat.element, (_Round(repeat, done + 1, row), rest)), row, bound, excluded)
                    choices = [again] if (repeat.most is None or done < repeat.most) and not stuck else []
                    if done >= repeat.least:
                        choices.append((rest, row, bound, excluded))
                    untried += reversed(choices) if repeat.greedy else choices
                case Exclusion(element=element):
                    untried.append(((element, (_END_OF_EXCLUSION, rest)), row, bound, excluded + 1))
                case Anchor(at_start=at_start):
                    if row == (0 if at_start else self._count):
                        untried.append((rest, row, bound, excluded))
                case _:
                    assert item is _END_OF_EXCLUSION
                    untried.append((rest, row, bound, excluded - 1))

    def _fits(self, tried: Bound, start: int, number: int, visible: Visible) -> bool:
        """Whether the row can be the variable's: it exists, is within bounds, and the condition holds."""
        length = self._query.definition.max_length
        if tried.row >= visible.end or (length is not None and tried.row - start >= length):
            return False
        if not self._is_in_window(start, tried.row):
            return False
        condition = self._conditions.get(tried.variable)
        if condition is None:
            return True
        chain = _unrolled(tried)
        rows, variables = [item.row for item in chain], [item.variable for item in chain]
        bindings = RowBindings(self._columns, visible, self._members, rows, variables, number=number)
        return evaluate(condition, bindings) is True

    def _runs_out(self, start: int, row: int) -> bool:
        """Whether a way that has bound the rows before this one lacks nothing but time."""
        length = self._query.definition.max_length
        if row == start or (length is not None and row - start >= length):
            return False
        return row >= self._count or not self._is_in_window(start, row)

    def _is_in_window(self, start: int, row: int) -> bool:
        window = self._query.definition.window
        if window is None:
            return True
        if window.unit is WindowUnit.EVENTS:
            return row - start < window.size
        first, last = self._times[start], self._times[row]
        if first is None or last is None:
            return False
        return bool(abs(last - first) < window_size(window, self._query.time_type))


def cannot_skip(after: AfterMatch, reason: str) -> ExecutionError:
    return ExecutionError(
        f"AFTER MATCH SKIP {after.skip.value} {printable(after.variable or '')} is impossible: {reason}",
        hint="Skip to a variable that every match has, and that is not its first row; or use PAST LAST ROW.",
    )


def _match(start: int, number: int, bound: Bound | None) -> RowMatch:
    chain = _unrolled(bound)
    return RowMatch(start, number, tuple(item.variable for item in chain), tuple(item.is_excluded for item in chain))


def _unrolled(bound: Bound | None) -> list[Bound]:
    """The rows matched so far, the first one first."""
    chain: list[Bound] = []
    while bound is not None:
        chain.append(bound)
        bound = bound.before
    return chain[::-1]


@dataclass(frozen=True, slots=True)
class RowBindings:
    """What an expression of DEFINE or MEASURES is evaluated for.

    `rows` and `variables` are those of the match; the first `running` of them count where FINAL does not say
    otherwise. `row` is set inside a navigation or an aggregate, where columns are those of that row.
    """

    columns: Mapping[str, Sequence[PlainValue]]
    visible: Visible
    members: Mapping[str, tuple[str, ...]]
    rows: Sequence[int]
    variables: Sequence[str]
    running: int | None = None
    number: int | None = 0  # None: it is no match
    row: int | None = None

    @property
    def current_row(self) -> int | None:
        return self.row if self.row is not None else self.last_row(None)

    def value(self, expression: ir.Expr) -> Any:
        match expression:
            case ir.PythonCall():
                row = self.current_row
                return None if row is None else self.columns[vectorized_key(expression)][row]
            case ir.InputConstant(name=name):
                return self.columns[name][0]
            case ir.Attribute(variable=variable, name=name):
                row = self.row if self.row is not None else self.last_row(variable)
                return None if row is None else self.columns[name][row]
            case ir.Navigation():
                return self._navigate(expression)
            case ir.Aggregate():
                return self._aggregate(expression)
            case ir.Classifier(variable=variable, final=final):
                row = self.row if self.row is not None else self.last_row(variable, final)
                return self.variables[self.rows.index(row)] if row in self.rows else None
            case ir.MatchNumber():
                return self.number
        raise AssertionError(f"no rule to evaluate {type(expression).__name__}")

    def _rows_of(self, variable: str | None, final: bool = False) -> Sequence[int]:
        """The rows of the variable, of the subset, or, where it is None, of the match."""
        end = len(self.rows) if final or self.running is None else self.running
        if variable is None:
            return self.rows[:end]
        wanted = self.members[variable]
        return [row for row, name in zip(self.rows[:end], self.variables, strict=False) if name in wanted]

    def last_row(self, variable: str | None, final: bool = False) -> int | None:
        rows = self._rows_of(variable, final)
        return rows[-1] if rows else None

    def _navigate(self, navigation: ir.Navigation) -> Any:
        rows = self._rows_of(navigation.variable, navigation.final)
        if navigation.offset >= len(rows):
            return None
        row = rows[-1 - navigation.offset] if navigation.from_last else rows[navigation.offset]
        row += navigation.shift or 0
        if row not in self.visible:
            return None
        return evaluate(navigation.argument, replace(self, row=row))

    def _aggregate(self, aggregate: ir.Aggregate) -> Any:
        rows = self._rows_of(aggregated_variable(aggregate), aggregate.final)
        if isinstance(aggregate.argument, ir.Events) and aggregate.condition is None:
            return len(rows)
        return aggregate_of_rows(aggregate, [replace(self, row=row) for row in rows])
