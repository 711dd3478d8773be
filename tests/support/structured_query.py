"""A SASE+ query as a small value that the generators make and the independent checker reads, and its text for kleene.

Every component has a variable here; `is_named` says whether the text declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# Where a reference to a Kleene variable looks: every event, the first, one after the first, the one before that, the
# last. A variable of one event has only "every".
Place = Literal["every", "first", "i", "i-1", "last"]
PLACE_TEXT = {"every": "", "first": "[1]", "i": "[i]", "i-1": "[i-1]"}


@dataclass(frozen=True, slots=True)
class Constant:
    value: int | float | str

    def __str__(self) -> str:
        return f"'{self.value}'" if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class Attribute:
    variable: str
    place: Place
    name: str

    def __str__(self) -> str:
        place = f"[{self.variable}.LEN]" if self.place == "last" else PLACE_TEXT[self.place]
        return f"{self.variable}{place}.{self.name}"


@dataclass(frozen=True, slots=True)
class Length:
    variable: str

    def __str__(self) -> str:
        return f"{self.variable}.LEN"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Over the events before a[i], or over all of them; without a name it counts events."""

    function: str
    variable: str
    is_so_far: bool
    name: str | None

    def __str__(self) -> str:
        events = f"{self.variable}[{'..i-1' if self.is_so_far else ''}]"
        return f"{self.function}({events}{f'.{self.name}' if self.name else ''})"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: str
    left: Value
    right: Value

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


Value = Constant | Attribute | Length | Aggregate | Arithmetic


@dataclass(frozen=True, slots=True)
class Comparison:
    sign: str
    left: Value
    right: Value

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Value
    is_negated: bool

    def __str__(self) -> str:
        return f"{self.operand} IS {'NOT ' if self.is_negated else ''}NULL"


@dataclass(frozen=True, slots=True)
class Between:
    operand: Value
    low: Value
    high: Value

    def __str__(self) -> str:
        return f"{self.operand} BETWEEN {self.low} AND {self.high}"


@dataclass(frozen=True, slots=True)
class Not:
    operand: Condition

    def __str__(self) -> str:
        return f"NOT ({self.operand})"


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Condition, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({operand})" for operand in self.operands)


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Condition, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({operand})" for operand in self.operands)


Condition = Comparison | IsNull | Between | Not | And | Or


@dataclass(frozen=True, slots=True)
class Component:
    variable: str
    types: tuple[str, ...]
    is_kleene: bool = False
    is_negative: bool = False
    is_named: bool = True

    def __str__(self) -> str:
        types = self.types[0] if len(self.types) == 1 else f"ANY({', '.join(self.types)})"
        declared = f"{types}{'+' if self.is_kleene else ''}{f' {self.listed}' if self.is_named else ''}"
        return f"!({declared})" if self.is_negative else declared

    @property
    def listed(self) -> str:
        return f"{self.variable}[]" if self.is_kleene else self.variable


@dataclass(frozen=True, slots=True)
class Key:
    """An equivalence test: [name], or [name = constant]."""

    name: str
    constant: int | str | None = None

    def __str__(self) -> str:
        return self.name if self.constant is None else f"{self.name} = {Constant(self.constant)}"


@dataclass(frozen=True, slots=True)
class Window:
    size: int
    is_events: bool

    def __str__(self) -> str:
        return f"{self.size} events" if self.is_events else str(self.size)


@dataclass(frozen=True, slots=True)
class StructuredQuery:
    components: tuple[Component, ...]
    strategy: str | None = None
    keys: tuple[Key, ...] = ()
    predicates: tuple[Condition, ...] = ()
    window: Window | None = None
    having: Condition | None = None
    format: str = "all"

    def __str__(self) -> str:
        return "\n".join(self._clauses())

    __repr__ = __str__

    def _clauses(self) -> Iterator[str]:
        yield f"PATTERN SEQ({', '.join(map(str, self.components))})"
        tests = [f"[{', '.join(map(str, self.keys))}]"] if self.keys else []
        where = " AND ".join(tests + [f"({predicate})" for predicate in self.predicates])
        if self.strategy is not None:
            listed = ", ".join(component.listed for component in self.positives if component.is_named)
            yield f"WHERE {self.strategy}({listed}) {{ {where} }}"
        elif where:
            yield f"WHERE {where}"
        if self.window is not None:
            yield f"WITHIN {self.window}"
        if self.having is not None:
            yield f"HAVING {self.having}"

    @property
    def positives(self) -> tuple[Component, ...]:
        return tuple(component for component in self.components if not component.is_negative)

    @property
    def negatives(self) -> tuple[Component, ...]:
        return tuple(component for component in self.components if component.is_negative)


def references(node: Value | Condition) -> Iterator[Attribute | Length | Aggregate]:
    """Every mention of a variable, from left to right."""
    match node:
        case Attribute() | Length() | Aggregate():
            yield node
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            yield from references(left)
            yield from references(right)
        case IsNull(operand, _) | Not(operand):
            yield from references(operand)
        case Between(operand, low, high):
            for part in (operand, low, high):
                yield from references(part)
        case And(operands) | Or(operands):
            for part in operands:
                yield from references(part)


def variables(node: Value | Condition) -> set[str]:
    return {reference.variable for reference in references(node)}


def is_indexed(reference: Attribute | Length | Aggregate) -> bool:
    """Whether the reference speaks of the i-th event: a[i], a[i-1], a[..i-1]."""
    match reference:
        case Attribute(_, place, _):
            return place in ("i", "i-1")
        case Aggregate(_, _, is_so_far, _):
            return is_so_far
    return False


def is_completion(reference: Attribute | Length | Aggregate) -> bool:
    """Whether the reference has a value only when its Kleene variable is complete: a[a.LEN], a.LEN, sum(a[].x)."""
    match reference:
        case Attribute(_, place, _):
            return place == "last"
        case Aggregate(_, _, is_so_far, _):
            return not is_so_far
    return True
