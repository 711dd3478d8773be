"""Formulas of steps on the events of a table: what a run may do with an event."""

from __future__ import annotations

from typing import Any

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import AllOf, AnyOf, Defined, Formula, FormulaClass, NotFormula, SoonAfter
from kleene.automaton.steps import StepsAutomaton, class_of
from kleene.engine.events import Events, window_size
from kleene.errors import ExecutionError, printable, shown
from kleene.ir import expr as ir
from kleene.ir.evaluate import aggregated, evaluate
from kleene.ir.steps import all_steps

Bound = tuple[tuple[int, int], ...]
"""The events of a run in their order: of each, the number of its step and its row."""


class Conditions:
    """The conditions of a query on the events of one table. Those about one event alone are decided once for it."""

    def __init__(self, query: AnalyzedSteps, automaton: StepsAutomaton, events: Events) -> None:
        self.query, self.events = query, events
        self.times = events.times()
        self._type_column = events.types()
        self._types = {step.name: frozenset(step.types) for step in all_steps(query.pattern.steps) if step.types}
        self._said = dict(query.conditions) | {f"until {label}": until for label, until in query.untils}
        self._of_one_event = {name for name, said in self._said.items() if class_of(said) is FormulaClass.SINGLE_EVENT}
        self._sizes = {window: window_size(window, query.time_type) for window in _windows(automaton)}
        self._known: dict[tuple[str, int], bool] = {}
        self._rows: list[dict[str, Any]] | None = None

    def holds(self, formula: Formula, row: int, bound: Bound) -> bool:
        """Whether the formula holds for the event, for a run that has bound these."""
        match formula:
            case Defined(variable=name):
                return self.satisfies(name, row, bound)
            case NotFormula(part=part):
                return not self.holds(part, row, bound)
            case AllOf(parts=parts):
                return all(self.holds(part, row, bound) for part in parts)
            case AnyOf(parts=parts):
                return any(self.holds(part, row, bound) for part in parts)
            case SoonAfter(window=window):
                return not bound or self.times[row] - self.times[bound[-1][1]] < self._sizes[window]
        raise AssertionError(f"no rule for {type(formula).__name__}")

    def satisfies(self, name: str, row: int, bound: Bound) -> bool:
        """Whether the event satisfies what the name stands for: a step, or the until condition of one."""
        if name not in self._of_one_event and name in self._said:
            return self.is_of_type(name, row) and self._is_true(name, row, bound)
        key = (name, row)
        if key not in self._known:
            self._known[key] = self.is_of_type(name, row) and (name not in self._said or self._is_true(name, row, ()))
        return self._known[key]

    def said(self, name: str) -> ir.Expr | None:
        """The condition that the name stands for, besides the types of its events."""
        return self._said.get(name)

    def types_of(self, name: str) -> tuple[str, ...]:
        return tuple(sorted(self._types.get(name, ())))

    def is_of_type(self, name: str, row: int) -> bool:
        types = self._types.get(name)
        return types is None or self._type_column is None or self._type_column[row] in types

    def _is_true(self, name: str, row: int, bound: Bound) -> bool:
        return evaluate(self._said[name], StepBindings(self, row, bound)) is True

    def rows(self) -> list[dict[str, Any]]:
        """The events as functions see them."""
        if self._rows is None:
            names = [name for name in self.events.schema if name in self.events.table.column_names]
            self._rows = self.events.table.select(names).to_pylist()
        return self._rows


def _windows(automaton: StepsAutomaton) -> set[Any]:
    bounds = [window for window in automaton.waits if window is not None]
    edges = (edge for edges in automaton.automaton.edges for edge in edges)
    parts = [
        part for edge in edges for part in (edge.formula.parts if isinstance(edge.formula, AllOf) else (edge.formula,))
    ]
    return {*bounds, *(part.window for part in parts if isinstance(part, SoonAfter))}


class StepBindings:
    """The event being tried, and the events that the run has bound before it."""

    def __init__(self, conditions: Conditions, row: int, bound: Bound) -> None:
        self._conditions, self.current_row, self._bound = conditions, row, bound
        self._numbers = {own.name: number for number, own in enumerate(conditions.query.components)}

    def value(self, expression: ir.Expr) -> Any:
        events = self._conditions.events
        match expression:
            case ir.Attribute(variable=None, name=name):
                return events.values(name)[self.current_row]
            case ir.Attribute(variable=str() as variable, name=name):
                rows = self.rows_of(variable)
                return events.values(name)[rows[-1]] if rows else None
            case ir.Aggregate():
                return self._aggregate(expression)
            case ir.RowFunction():
                return self._called(expression)
        raise AssertionError(f"no rule to evaluate {type(expression).__name__}")

    def rows_of(self, step: str) -> list[int]:
        number = self._numbers[step]
        return [row for own, row in self._bound if own == number]

    def _aggregate(self, aggregate: ir.Aggregate) -> Any:
        step = next(
            node.variable for node in ir.walk(aggregate.argument) if isinstance(node, (ir.Attribute, ir.Events))
        )
        assert step is not None
        rows = self.rows_of(step)
        if isinstance(aggregate.argument, ir.Events):
            return len(rows)
        if aggregate.function in ("first", "last"):
            rows = rows[:1] if aggregate.function == "first" else rows[-1:]
            return self._value_at(aggregate.argument, step, rows[0]) if rows else None
        return aggregated(aggregate, [self._value_at(aggregate.argument, step, row) for row in rows])

    def _value_at(self, argument: ir.Expr, step: str, row: int) -> Any:
        """The argument of an aggregate for one event of the step."""
        return evaluate(argument, StepBindings(self._conditions, self.current_row, ((self._numbers[step], row),)))

    def _called(self, call: ir.RowFunction) -> bool | None:
        rows = self._conditions.rows()
        bound: dict[str, list[dict[str, Any]]] = {name: [] for name in self._numbers}
        names = list(self._numbers)
        for number, row in self._bound:
            bound[names[number]].append(dict(rows[row]))
        try:
            found = call.function(dict(rows[self.current_row]), bound)
        except Exception as error:
            raise ExecutionError(
                f"the function '{printable(call.name)}' failed at row {self.current_row + 1:,}: "
                f"{type(error).__name__}: {printable(str(error), 200)}"
            ) from error
        if found is None:
            return None
        try:
            return bool(found)
        except Exception:
            raise ExecutionError(
                f"the function '{printable(call.name)}' returned {shown(found)}, which is neither true nor false"
            ) from None
