"""A query of RIP 2013 as numbers: what the compiled loops of `rip_units` read, the same for every technique.

The query is parsed and analyzed by Kleene. What may come out is what the paper's queries are made of (§2): a sequence
of variables, some of them with + or *, each with a conjunction of comparisons of its price with a constant, with the
price before, or with the price of an earlier variable that stands for one event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import kleene
from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.engine.column_types import attributes_of
from kleene.ir import expr as ir
from kleene.ir.pattern import Pattern, Repeat, Sequence, Variable
from kleene.schema import EventSchema
from rip_units import (
    CONSTANT,
    END_FACTOR,
    FOLDED,
    MATCH_FACTOR,
    OPERATORS,
    PATH_FACTOR,
    PREVIOUS,
    REPEATED,
    START_FACTOR,
    WORD,
    Numbers,
)


class Machine(NamedTuple):
    """The automaton: a state for each variable of the pattern, in order (§2, Figure 3)."""

    variables: Numbers
    """A row for each variable: may it be left out, may it be repeated, its conditions, where its price is kept."""
    conditions: Numbers
    """A row for each condition: its operator, and a kept price, PREVIOUS or CONSTANT."""
    constants: Numbers
    kept: int
    """How many prices a partial match keeps: those that a later variable compares with."""
    max_length: int


@dataclass(frozen=True, slots=True)
class RipQuery:
    name: str
    clause: str
    names: tuple[str, ...]
    machine: Machine

    @property
    def longest(self) -> int:
        """The most events that a match can have; one less of them must be shared between batches (§4.2)."""
        is_fixed = not self.machine.variables[:, REPEATED].any()
        return min(len(self.names), self.machine.max_length) if is_fixed else self.machine.max_length


def rip_query(name: str, clause: str, max_length: int) -> RipQuery:
    """The query of a MATCH_RECOGNIZE clause over a table with the columns t and price, as numbers."""
    like = pa.schema({"t": pa.int64(), "price": pa.float64()})
    analyzed = analyze_row_pattern(kleene.match_recognize(clause).definition, EventSchema(attributes_of(like)))
    parts = [_part(element) for element in _elements(analyzed.definition.pattern)]
    names = tuple(part[0] for part in parts)
    if any(optional or repeated for _, optional, repeated in (parts[0], parts[-1])):
        raise ValueError("the first and the last variable must stand for one event each")
    conditions = {variable: list(_comparisons(condition)) for variable, condition in analyzed.conditions}
    singles = {variable for variable, _, repeated in parts if not repeated}
    read = {other for own in conditions.values() for _, other in own if isinstance(other, str)}
    if not read <= singles:
        raise ValueError("conditions may read variables of one event only")
    places = {variable: place for place, variable in enumerate(v for v in names if v in read)}
    if any(other == PREVIOUS for _, other in conditions.get(names[0], [])):
        raise ValueError("the first variable cannot look at the event before")
    return RipQuery(name, clause, names, _machine(parts, conditions, places, max_length))


def _elements(pattern: Pattern) -> tuple[Pattern, ...]:
    return pattern.elements if isinstance(pattern, Sequence) else (pattern,)


def _part(pattern: Pattern) -> tuple[str, bool, bool]:
    """A variable's name, and whether it may be left out and repeated."""
    match pattern:
        case Variable(name=str(name)):
            return name, False, False
        case Repeat(element=Variable(name=str(name)), least=0 | 1 as least, most=None):
            return name, least == 0, True
    raise ValueError(f"a pattern of variables, V+ and V* is wanted, not {pattern}")


def _comparisons(condition: ir.Expr) -> Iterable[tuple[str, str | int | float]]:
    """The operator of each comparison, with a variable, PREVIOUS, or the constant as a float."""
    match condition:
        case ir.And(operands=operands):
            for operand in operands:
                yield from _comparisons(operand)
        case ir.Comparison(operator=operator, left=ir.Attribute(variable=own), right=right) if operator in OPERATORS:
            match right:
                case ir.Literal(value=float(value)):
                    yield operator, value
                case ir.Navigation(variable=variable, offset=0, shift=-1) if variable == own:
                    yield operator, PREVIOUS
                case ir.Attribute(variable=str(variable)) if variable != own:
                    yield operator, variable
                case _:
                    raise ValueError(f"cannot compare with {right}")
        case _:
            raise ValueError(f"comparisons of prices are wanted, not {condition}")


def _machine(
    parts: list[tuple[str, bool, bool]],
    conditions: Mapping[str, list[tuple[str, str | int | float]]],
    places: Mapping[str, int],
    max_length: int,
) -> Machine:
    variables: list[tuple[int, ...]] = []
    rows: list[tuple[int, int]] = []
    constants: list[float] = []
    for name, optional, repeated in parts:
        begin = len(rows)
        for operator, other in conditions.get(name, []):
            reference = places[other] if isinstance(other, str) else PREVIOUS if other == PREVIOUS else CONSTANT
            rows.append((OPERATORS.index(operator), reference))
            constants.append(float(other) if reference == CONSTANT else 0.0)
        variables.append((optional, repeated, begin, len(rows), places.get(name, -1)))
    return Machine(
        np.array(variables, np.int64),
        np.array(rows, np.int64).reshape(-1, 2),
        np.array(constants, np.float64),
        len(places),
        max_length,
    )


def checksum_of(query: RipQuery, matches: Iterable[tuple[int, int, Iterable[str]]]) -> int:
    """What the units sum up over their matches, from first and last event and path; the order does not count."""
    numbers = {name: number for number, name in enumerate(query.names, 1)}
    total = 0
    for start, end, path in matches:
        mixed = 0
        for variable in path:
            mixed = mixed * PATH_FACTOR + numbers[variable]
        mixed = (mixed + start * START_FACTOR + end * END_FACTOR) & WORD
        # Were all steps linear, a start too late in one match could make up for one too early in another.
        mixed ^= mixed >> FOLDED
        total += mixed * MATCH_FACTOR
    return total & WORD
