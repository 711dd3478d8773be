"""Aggregates over all matches to what is added up along the way: numbers that events bring into a match.

A *sum* brings a whole number for each event of a variable; over all matches these are added. A *peak* brings a rank, of
which the largest counts; -1 is none. Everything is made of these: a minimum is a peak of ranks in falling order, and
floats are whole numbers times a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.columns import Array, OneRow
from kleene.engine.events import Events
from kleene.engine.totals.cells import Cell, Sum
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate, of_one_event
from kleene.ir.query import Measure
from kleene.schema import FLOAT

NAN, INFINITE, MINUS_INFINITE, FAILED = 1, 2, 4, 8
"""What may be wrong with the value of an event: each is a peak of its own, and more than 0 if any match has it."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Of each group: how many matches there are, and what the channels add up to."""

    matches: Array  # whole numbers of any size
    sums: list[Array]  # the same, for each sum
    peaks: list[Array]


@dataclass(slots=True)
class Channels:
    """`sums` and `peaks` have a component, and what each event of the table brings to it."""

    sums: list[tuple[int, Array]] = field(default_factory=list)
    peaks: list[tuple[int, Array]] = field(default_factory=list)
    cells: list[Callable[[Sums, int], Cell]] = field(default_factory=list)
    """For each aggregate: its cell for a group."""


def channels_of(query: AnalyzedQuery, table: pa.Table, used: Sequence[Array]) -> Channels:
    """What the events bring; `used` are, for each component, the positions of the events that it may select."""
    found = Channels()
    made: dict[tuple[int, ir.Expr], _Quantity] = {}
    assert query.schema is not None
    events = Events(table, query.schema, query.order_by)
    names = [component.name for component in query.components]
    for measure in query.measures or ():
        aggregate = measure.expression
        assert isinstance(aggregate, ir.Aggregate)
        if isinstance(aggregate.argument, ir.Events) and aggregate.argument.variable is None:
            found.cells.append(lambda sums, group: int(sums.matches[group]))
            continue
        component = names.index(variable_of_total(measure))
        argument = of_one_event(aggregate.argument)
        quantity = made.get((component, argument))
        if quantity is None:
            values = _values(aggregate.argument, events, used[component])
            quantity = made[component, argument] = _Quantity(found, component, aggregate.argument, len(events), values)
        found.cells.append(quantity.cell(aggregate.function))
    return found


def variable_of_total(measure: Measure) -> str:
    references = (node for node in ir.walk(measure.expression) if isinstance(node, (ir.Attribute, ir.Events)))
    name = next(references).variable
    assert name is not None
    return name


def _values(argument: ir.Expr, events: Events, used: Array) -> dict[int, Any]:
    """The value of each event that may count, where it is not NULL; an error, where it cannot be computed."""
    if isinstance(argument, ir.Events):
        return dict.fromkeys(used.tolist(), 1)
    names = {node.name for node in ir.walk(argument) if isinstance(node, ir.Attribute)}
    columns = {name: events.values(name) for name in names}
    if isinstance(argument, ir.Attribute):
        column = columns[argument.name]
        return {at: column[at] for at in used.tolist() if column[at] is not None}
    found: dict[int, Any] = {}
    for at in used.tolist():
        try:
            value = evaluate(argument, OneRow(columns, at))
        except ExecutionError as error:
            value = error
        if value is not None:
            found[at] = value
    return found


class _Quantity:
    """A value that the events of a component have, and the channels that were made for it."""

    def __init__(
        self, channels: Channels, component: int, argument: ir.Expr, events: int, values: dict[int, Any]
    ) -> None:
        self._channels, self._component, self._events = channels, component, events
        self._is_float = argument.type == FLOAT
        self._failures = [value for value in values.values() if isinstance(value, ExecutionError)]
        failed = {at: 1 for at, value in values.items() if isinstance(value, ExecutionError)}
        self._flags = {FAILED: self._peak(failed)} if failed else {}
        self._values = {at: value for at, value in values.items() if at not in failed}
        self._made: dict[str, int] = {}
        self._exponent = 0

    def cell(self, function: str) -> Callable[[Sums, int], Cell]:
        own = self._own_cell(function)

        def checked(sums: Sums, group: int) -> Cell:
            if FAILED in self._flags and sums.peaks[self._flags[FAILED]][group] > 0:
                raise self._failures[0]
            return own(sums, group)

        return checked

    def _own_cell(self, function: str) -> Callable[[Sums, int], Cell]:
        if function in ("min", "max"):
            return self._extreme(function)
        count = self._once("count", lambda: self._sum(dict.fromkeys(self._values, 1)))
        if function == "count":
            return lambda sums, group: int(sums.sums[count][group])
        total = self._once("sum", self._total)
        flags = {flag: channel for flag, channel in self._flags.items() if flag != FAILED}

        def cell(sums: Sums, group: int) -> Cell:
            special = sum(flag for flag, channel in flags.items() if sums.peaks[channel][group] > 0)
            return Sum(int(sums.sums[total][group]), self._exponent, int(sums.sums[count][group]), special)

        return cell

    def _once(self, name: str, make: Callable[[], int]) -> int:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _sum(self, numbers: dict[int, int]) -> int:
        self._channels.sums.append((self._component, _spread(numbers, self._events, 0)))
        return len(self._channels.sums) - 1

    def _peak(self, ranks: dict[int, int]) -> int:
        self._channels.peaks.append((self._component, _spread(ranks, self._events, -1)))
        return len(self._channels.peaks) - 1

    def _total(self) -> int:
        if not self._is_float:
            return self._sum({at: int(value) for at, value in self._values.items()})
        finite = {at: value for at, value in self._values.items() if math.isfinite(value)}
        odd = {at: value for at, value in self._values.items() if at not in finite}
        tests: dict[int, Callable[[float], bool]] = {
            NAN: math.isnan,
            INFINITE: lambda value: value > 0,
            MINUS_INFINITE: lambda value: value < 0,
        }
        for flag, holds in tests.items():
            marked = {at: 1 for at, value in odd.items() if holds(value)}
            if marked:
                self._flags[flag] = self._peak(marked)
        ratios = {at: value.as_integer_ratio() for at, value in finite.items()}
        most = max((denominator for _, denominator in ratios.values()), default=1)
        self._exponent = 1 - most.bit_length()
        return self._sum({at: number * (most // denominator) for at, (number, denominator) in ratios.items()})

    def _extreme(self, function: str) -> Callable[[Sums, int], Cell]:
        ordered = sorted({value for value in self._values.values() if value == value}, reverse=function == "min")
        ranks = {value: rank for rank, value in enumerate(ordered)}
        known = {at: ranks[value] for at, value in self._values.items() if value == value}
        channel = self._once(function, lambda: self._peak(known))

        def cell(sums: Sums, group: int) -> Cell:
            rank = int(sums.peaks[channel][group])
            return None if rank < 0 else ordered[rank]

        return cell


def _spread(numbers: dict[int, int], events: int, rest: int) -> Array:
    """The numbers in the places of their events; those that do not fit 64 bits as Python's."""
    places, values = list(numbers), list(numbers.values())
    is_small = all(-(2**62) < value < 2**62 for value in values)
    found = np.full(events, rest, np.int64 if is_small else object)
    found[places] = np.array(values, found.dtype)
    return found
