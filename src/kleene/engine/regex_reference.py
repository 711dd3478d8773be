"""The plain engine for the regular-expression operator (MatchRegex 2012 §2.3, SEMANTICS §5).

A partial match is where it began, what of the pattern is left, and its aggregates. Matches are contiguous and all their
events count, so that partial matches that began at the same event have the same aggregates and are kept together.

A sum that only outputs read may go too far in a partial match that is never reported: it is an error once it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget, too_many_partial_matches
from kleene.engine.row_output import POSITION, OutputRow, evaluated_measures
from kleene.errors import ExecutionError, printable
from kleene.ir import expr as ir
from kleene.ir.calls import finished, started, stepped
from kleene.ir.evaluate import PlainValue, average_of, evaluate, in_range, sum_of, vectorized_key, where
from kleene.ir.pattern import Alternation, Pattern, Repeat, Variable
from kleene.ir.pattern import Sequence as PatternSequence

Todo = tuple[Pattern, int] | None  # what to match next, and the number of what comes after that
Columns = Mapping[str, Sequence[PlainValue]]


def regex_rows(
    query: AnalyzedRowPattern,
    columns: Columns,
    positions: Sequence[int],
    run_limit: int,
    key: Mapping[str, Any],
    budget: Budget,
) -> Iterator[OutputRow]:
    """A row for each match in one partition, at the event that completes it."""
    conditions, measures = dict(query.conditions), evaluated_measures(query)
    columns = {**columns, POSITION: positions}
    read = aggregates_of(conditions.values())
    outputs = (measure.expression for measure in query.measures)
    aggregates = {each: each in read for each in aggregates_of([*conditions.values(), *outputs])}
    states = _States()
    start = states.number_of(query.definition.pattern, 0)
    partial: list[_PartialMatch] = []  # the oldest first
    for row in range(len(positions)):
        tried = [*partial, _PartialMatch({start}, Aggregates(aggregates))]
        budget.reach(positions[row])
        if len(tried) > run_limit:
            raise too_many_partial_matches(run_limit, key)
        partial = []
        for match in tried:
            here = AggregateBindings(columns, row, match.aggregates)
            names = {name: _holds(name, conditions.get(name), here) for name in states.names_after(match.left)}
            left = states.after(match.left, names)
            if left:
                match.aggregates.add(here)
                partial.append(_PartialMatch(left, match.aggregates))
        complete = next((match for match in partial if states.is_complete(match.left)), None)
        if complete is not None:
            budget.count(1)
            complete.aggregates.require_sums()
            here = AggregateBindings(columns, row, complete.aggregates)
            values = tuple(evaluate(expression, here) for expression in measures)
            yield OutputRow(positions[row], values, (positions[row],))
            partial = []


def _holds(name: str, condition: ir.Expr | None, bindings: AggregateBindings) -> bool:
    try:
        return condition is None or evaluate(condition, bindings) is True
    except (TypeError, AttributeError) as error:  # only what a Python function gave can be of a wrong type
        raise ExecutionError(
            f"the predicate '{printable(name)}' cannot use the result of a function: {printable(str(error), 200)}",
            hint="Let the function return the type that the predicate needs.",
        ) from None


def aggregates_of(expressions: Iterable[ir.Expr]) -> list[ir.Aggregate]:
    found = (node for expression in expressions for node in ir.walk(expression) if isinstance(node, ir.Aggregate))
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class _PartialMatch:
    left: set[int]  # what of the pattern may be left, by number
    aggregates: Aggregates


class _States:
    """What may be left of a pattern, each known by a number, so that it is looked into once only.

    What is left is a part of the pattern and the number of what comes after it; 0 is nothing. Parts are known by who
    they are: comparing them would go through all that is nested in them.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self._todos: list[Todo] = [None]
        self._found: dict[int, tuple[list[tuple[str, int]], bool]] = {}
        self._loops: dict[int, Repeat] = {}

    def number_of(self, item: Pattern, rest: int) -> int:
        key = (id(item), rest)
        if key not in self._numbers:
            self._numbers[key] = len(self._todos)
            self._todos.append((item, rest))
        return self._numbers[key]

    def names_after(self, left: set[int]) -> set[str]:
        """The predicates that can come next."""
        return {name for number in left for name, _ in self._look(number)[0]}

    def after(self, left: set[int], holds: Mapping[str, bool]) -> set[int]:
        """What is left after an event for which these predicates hold."""
        return {rest for number in left for name, rest in self._look(number)[0] if holds[name]}

    def is_complete(self, left: set[int]) -> bool:
        return any(self._look(number)[1] for number in left)

    def _look(self, number: int) -> tuple[list[tuple[str, int]], bool]:
        """The predicates that can come next, with what is left after each, and whether none needs to come."""
        if number not in self._found:
            waiting, seen, moves = [number], {number}, list[tuple[str, int]]()
            while waiting:
                todo = self._todos[waiting.pop()]
                if todo is None:
                    continue
                item, rest = todo
                if isinstance(item, Variable):
                    moves.append((item.name or "", rest))
                new = [choice for choice in self._choices(item, rest) if choice not in seen]
                seen.update(new)
                waiting += new
            self._found[number] = (moves, 0 in seen)
        return self._found[number]

    def _choices(self, item: Pattern, rest: int) -> list[int]:
        """What can stand in place of a part of the pattern and the rest after it, without an event."""
        match item:
            case PatternSequence(elements=elements):
                for element in reversed(elements):
                    rest = self.number_of(element, rest)
                return [rest]
            case Alternation(alternatives=alternatives):
                return [self.number_of(alternative, rest) for alternative in alternatives]
            case Repeat(element=element, least=least, most=most):
                again = rest if most == 1 else self.number_of(self._loop(element), rest)
                once = self.number_of(element, again)
                return [once] if least else [once, rest]
        return []

    def _loop(self, element: Pattern) -> Repeat:
        return self._loops.setdefault(id(element), Repeat(element, 0, None))


@dataclass(slots=True)
class Aggregates:
    """The aggregates of a partial match, brought up to date by each event; events themselves are not kept."""

    wanted: Mapping[ir.Aggregate, bool]  # and whether predicates read it
    count: int = 0
    values: dict[ir.Aggregate, Any] = field(default_factory=dict)
    failed: ExecutionError | None = None

    def add(self, bindings: AggregateBindings) -> None:
        self.count += 1
        for aggregate, is_read in self.wanted.items():
            if isinstance(aggregate.argument, ir.Events):
                continue
            value = evaluate(aggregate.argument, bindings)
            try:
                self._add(aggregate, value)
            except ExecutionError as error:
                if is_read or aggregate.own is not None:
                    raise
                self.failed = self.failed or error

    def require_sums(self) -> None:
        if self.failed is not None:
            raise self.failed

    def _add(self, aggregate: ir.Aggregate, value: Any) -> None:
        is_first, before = aggregate not in self.values, self.values.get(aggregate)
        match aggregate.function:
            case "first" | "delta":
                self.values[aggregate] = value if is_first else before
            case "last":
                self.values[aggregate] = value
            case "collect":
                self.values[aggregate] = [*(before or []), value]
            case _ if value is None:
                self.values.setdefault(aggregate, None)
            case _ if aggregate.own is not None:
                # A state may be None: it stands in a tuple, so that it is not taken for "nothing yet".
                state = started(aggregate.own) if before is None else before[0]
                self.values[aggregate] = (stepped(aggregate.own, state, value, aggregate.argument.type),)
            case "max" | "min" if value == value:  # NaN is neither
                choose = max if aggregate.function == "max" else min
                self.values[aggregate] = value if before is None else choose(before, value)
            case "sum":
                self.values[aggregate] = value if before is None else sum_of(aggregate, before, value)
            case "avg":
                total, count = before or (None, 0)
                self.values[aggregate] = (value if total is None else sum_of(aggregate, total, value), count + 1)


@dataclass(frozen=True, slots=True)
class AggregateBindings:
    """The current event, and the aggregates of the match: before the event in a predicate, with it in an output."""

    columns: Columns
    row: int
    aggregates: Aggregates

    @property
    def current_row(self) -> int:
        return self.row

    def value(self, expression: ir.Expr) -> Any:
        match expression:
            case ir.Attribute(name=name):
                return self.columns[name][self.row]
            case ir.PythonCall():
                return self.columns[vectorized_key(expression)][self.row]
            case ir.Aggregate(own=own) if own is not None:
                held = self.aggregates.values.get(expression)
                return None if held is None else finished(own, held[0], expression.type, where(self))
            case ir.Aggregate(argument=ir.Events()):
                return self.aggregates.count
            case ir.Aggregate(function="delta", argument=argument):
                first, now = self.aggregates.values.get(expression), evaluate(argument, self)
                return None if first is None or now is None else in_range(now - first, expression)
            case ir.Aggregate(function="avg"):
                total, count = self.aggregates.values.get(expression) or (None, 0)
                return None if total is None else average_of(expression, total, count)
            case ir.Aggregate():
                return self.aggregates.values.get(expression)
        raise AssertionError(f"no rule to evaluate {type(expression).__name__}")
