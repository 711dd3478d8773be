"""What a pattern window means, by the pseudo-code of ROW_PATTERNS_MORE.md, part A, and by backtracking.

Written from that page alone (the sections in brackets), sharing nothing with the engines it checks. Clear, and
exponential in the number of rows. A window is a small tree, which can also be written as the text of a specification.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

Row = Mapping[str, Any]
Labels = tuple[tuple[int, str], ...]  # the rows of a match so far, by position in the partition, with their variables
Found = tuple[str, int | None, tuple[str, ...]]  # status, first row of the match as an index of the input, variables

SKIPPED, UNMATCHED, EMPTY, MATCH = "skipped", "unmatched", "empty", "match"


class RunError(Exception):
    """What a window may only find at run time [A7]: a skip that leads nowhere or does not move, a bad frame end."""

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(f"{reason} at row {row}")
        self.reason, self.row = reason, row


# ------------------------------------------------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Var:
    name: str

    def text(self) -> str:
        return self.name


@dataclass(frozen=True)
class Empty:
    def text(self) -> str:
        return "()"


@dataclass(frozen=True)
class Seq:
    parts: tuple[Pattern, ...]

    def text(self) -> str:
        return " ".join(_grouped(part, Alt) for part in self.parts)


@dataclass(frozen=True)
class Alt:
    parts: tuple[Pattern, ...]

    def text(self) -> str:
        return " | ".join(part.text() for part in self.parts)


@dataclass(frozen=True)
class Rep:
    part: Pattern
    low: int
    high: int | None
    greedy: bool = True

    def text(self) -> str:
        known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        bounds = f"{{{self.low},{'' if self.high is None else self.high}}}"
        return _grouped(self.part, Alt, Seq, Rep) + known.get((self.low, self.high), bounds) + "?" * (not self.greedy)


@dataclass(frozen=True)
class Permute:
    parts: tuple[Pattern, ...]

    def text(self) -> str:
        return f"PERMUTE({', '.join(part.text() for part in self.parts)})"


Pattern = Var | Empty | Seq | Alt | Rep | Permute


def _grouped(part: Pattern, *kinds: type) -> str:
    return f"({part.text()})" if isinstance(part, kinds) else part.text()


def variables_of(pattern: Pattern) -> list[str]:
    """The variables of a pattern, each once, in the order of their first appearance."""
    match pattern:
        case Var(name):
            return [name]
        case Empty():
            return []
        case Rep(part):
            return variables_of(part)
    return list(dict.fromkeys(name for part in pattern.parts for name in variables_of(part)))


def preferred(
    pattern: Pattern, at: int, end: int, labels: Labels, holds: Callable[[Labels], bool]
) -> Iterator[tuple[int, Labels]]:
    """The ways to match from position `at`, the preferred one first: the next position, and the labels up to it.

    `holds` tells whether the last label's condition is TRUE. No row beyond position `end` is taken.
    """
    match pattern:
        case Var(name):
            tried = (*labels, (at, name))
            if at <= end and holds(tried):
                yield at + 1, tried
        case Empty():
            yield at, labels
        case Alt(parts):
            for part in parts:
                yield from preferred(part, at, end, labels, holds)
        case Permute(parts):
            yield from preferred(Alt(tuple(map(Seq, permutations(parts)))), at, end, labels, holds)
        case Seq(()):
            yield at, labels
        case Seq((first, *rest)):
            for after, taken in preferred(first, at, end, labels, holds):
                yield from preferred(Seq(tuple(rest)), after, end, taken, holds)
        case Rep():
            yield from _rounds(pattern, 0, at, end, labels, holds)


def _rounds(
    rep: Rep, done: int, at: int, end: int, labels: Labels, holds: Callable[[Labels], bool]
) -> Iterator[tuple[int, Labels]]:
    """A round beyond the lower bound that takes no row is the last."""
    enough = done >= rep.low
    if enough and not rep.greedy:
        yield at, labels
    if rep.high is None or done < rep.high:
        for after, taken in preferred(rep.part, at, end, labels, holds):
            if enough and after == at:
                yield after, taken
            else:
                yield from _rounds(rep, done + 1, after, end, taken, holds)
    if enough and rep.greedy:
        yield at, labels


# ---------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Const:
    value: Any

    def text(self) -> str:
        if isinstance(self.value, str):
            return f"'{self.value}'"
        return "NULL" if self.value is None else str(self.value)


@dataclass(frozen=True)
class Col:
    name: str
    variable: str | None = None

    def text(self) -> str:
        return self.name if self.variable is None else f"{self.variable}.{self.name}"


@dataclass(frozen=True)
class Classifier:
    variable: str | None = None

    def text(self) -> str:
        return f"CLASSIFIER({self.variable or ''})"


@dataclass(frozen=True)
class Nav:
    """FIRST or LAST (logical, the n-th row of the variable), then PREV or NEXT (physical) from there; either may be
    left out, and LAST is then meant.
    """

    what: Col | Classifier
    logical: str | None = None
    nth: int = 0
    physical: str | None = None
    steps: int = 1

    def text(self) -> str:
        inner = self.what.text()
        if self.logical:
            inner = f"{self.logical}({inner}{f', {self.nth}' if self.nth else ''})"
        if self.physical:
            inner = f"{self.physical}({inner}{'' if self.steps == 1 else f', {self.steps}'})"
        return inner


@dataclass(frozen=True)
class Agg:
    """count, sum, min, max or array_agg; `what` None is count(*), and count(v.*) with a variable."""

    function: str
    what: Col | Classifier | None = None
    variable: str | None = None

    def text(self) -> str:
        star = "*" if self.variable is None else f"{self.variable}.*"
        return f"{self.function}({star if self.what is None else self.what.text()})"


@dataclass(frozen=True)
class Op:
    """A comparison, or + or - of numbers."""

    sign: str
    left: Expression
    right: Expression

    def text(self) -> str:
        return f"{_inner(self.left)} {self.sign} {_inner(self.right)}"


@dataclass(frozen=True)
class And:
    parts: tuple[Expression, ...]

    def text(self) -> str:
        return " AND ".join(f"({part.text()})" for part in self.parts)


@dataclass(frozen=True)
class Or:
    parts: tuple[Expression, ...]

    def text(self) -> str:
        return " OR ".join(f"({part.text()})" for part in self.parts)


@dataclass(frozen=True)
class Not:
    part: Expression

    def text(self) -> str:
        return f"NOT ({self.part.text()})"


@dataclass(frozen=True)
class IsNull:
    part: Expression

    def text(self) -> str:
        return f"{_inner(self.part)} IS NULL"


@dataclass(frozen=True)
class Coalesce:
    parts: tuple[Expression, ...]

    def text(self) -> str:
        return f"coalesce({', '.join(part.text() for part in self.parts)})"


Expression = Const | Col | Classifier | Nav | Agg | Op | And | Or | Not | IsNull | Coalesce


def _inner(part: Expression) -> str:
    return f"({part.text()})" if isinstance(part, Op | And | Or | Not | IsNull) else part.text()


_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
}


@dataclass(frozen=True)
class Sight:
    """What an expression can see [A3]: the full frame, and the rows of the match (so far)."""

    rows: Sequence[Row]  # of the partition, in order
    first: int  # the full frame: the current row …
    last: int  # … to its end
    labels: Labels
    unions: Mapping[str, tuple[str, ...]]

    def rows_of(self, variable: str | None) -> list[int]:
        if variable is None:
            return [position for position, _ in self.labels]
        members = self.unions.get(variable, (variable,))
        return [position for position, label in self.labels if label in members]

    def value_at(self, what: Col | Classifier, position: int) -> Any:
        if isinstance(what, Classifier):
            return dict(self.labels).get(position)
        return self.rows[position][what.name] if self.first <= position <= self.last else None


def evaluate(expression: Expression, sight: Sight) -> Any:
    """The value under three-valued logic, None being NULL and unknown."""
    match expression:
        case Const(value):
            return value
        case Col() | Classifier():
            return _navigated(Nav(expression), sight)
        case Nav():
            return _navigated(expression, sight)
        case Agg():
            return _aggregated(expression, sight)
        case Op(sign, left, right):
            values = evaluate(left, sight), evaluate(right, sight)
            return None if None in values else _SIGNS[sign](*values)
        case And(parts):
            return _all([evaluate(part, sight) for part in parts])
        case Or(parts):
            return _not(_all([_not(evaluate(part, sight)) for part in parts]))
        case Not(part):
            return _not(evaluate(part, sight))
        case IsNull(part):
            return evaluate(part, sight) is None
        case Coalesce(parts):
            return next((value for part in parts if (value := evaluate(part, sight)) is not None), None)


def _all(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _navigated(nav: Nav, sight: Sight) -> Any:
    rows = sight.rows_of(nav.what.variable)
    if nav.nth >= len(rows):
        return None
    position = rows[nav.nth] if nav.logical == "FIRST" else rows[-1 - nav.nth]
    if nav.physical:
        position += -nav.steps if nav.physical == "PREV" else nav.steps
    return sight.value_at(nav.what, position)


def _aggregated(agg: Agg, sight: Sight) -> Any:
    if agg.what is None:
        return len(sight.rows_of(agg.variable))
    values = [sight.value_at(agg.what, position) for position in sight.rows_of(agg.what.variable)]
    return aggregate(agg.function, values)


def aggregate(function: str, values: list[Any]) -> Any:
    if function == "array_agg":
        return values or None
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    return {"sum": sum, "min": min, "max": max}[function](known) if known else None


# -------------------------------------------------------------------------------------------------------- windows


@dataclass(frozen=True)
class Window:
    pattern: Pattern
    define: Mapping[str, Expression] = field(default_factory=dict)
    measures: Mapping[str, Expression] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ("t",)
    end: Expression | None = None  # n of n FOLLOWING, an expression of the current row; None is UNBOUNDED FOLLOWING
    one_row: bool = False  # CURRENT ROW AND CURRENT ROW
    skip: str = "PAST LAST ROW"  # or TO NEXT ROW, TO FIRST v, TO LAST v, TO v
    seek: bool = False
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def text(self) -> str:
        """The specification between the parentheses of a window [A1]."""
        end = "UNBOUNDED FOLLOWING" if self.end is None else f"{self.end.text()} FOLLOWING"
        lines = [
            f"PARTITION BY {', '.join(self.partition_by)}" if self.partition_by else "",
            f"ORDER BY {', '.join(self.order_by)}" if self.order_by else "",
            _listed("MEASURES", [f"{what.text()} AS {name}" for name, what in self.measures.items()]),
            f"ROWS BETWEEN CURRENT ROW AND {'CURRENT ROW' if self.one_row else end}",
            f"AFTER MATCH SKIP {self.skip}",
            "SEEK" if self.seek else "INITIAL",
            f"PATTERN ({self.pattern.text()})",
            _listed("SUBSET", [f"{name} = ({', '.join(members)})" for name, members in self.unions.items()]),
            _listed("DEFINE", [f"{name} AS {condition.text()}" for name, condition in self.define.items()]),
        ]
        return "\n".join(line for line in lines if line)


def _listed(word: str, items: list[str]) -> str:
    return f"{word} {', '.join(items)}" if items else ""


def partitions(rows: Sequence[Row], window: Window) -> list[list[int]]:
    """The indices of the rows by partition, in order; equal keys stay in the order of the input."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(tuple(row[name] for name in window.partition_by), []).append(index)

    def key(index: int) -> list[Any]:
        return [rows[index][name] for name in window.order_by]

    return [sorted(group, key=key) for group in groups.values()]


def walk(rows: Sequence[Row], window: Window) -> list[Found]:
    """For each row of the input its status, the first row of its match, and the variables of its match [A2]."""
    found: list[Found] = [(UNMATCHED, None, ())] * len(rows)
    for group in partitions(rows, window):
        for index, (status, labels, _) in zip(group, _walk([rows[index] for index in group], window), strict=True):
            start = group[labels[0][0]] if labels else None
            found[index] = status, start, tuple(variable for _, variable in labels)
    return found


def _walk(rows: Sequence[Row], window: Window) -> list[tuple[str, Labels, int]]:
    """One partition: for each row its status, the labels of its match, the last row of its full frame."""
    skipped_to = 0
    found: list[tuple[str, Labels, int]] = []
    for current in range(len(rows)):
        if current < skipped_to:
            found.append((SKIPPED, (), current))
            continue
        last = _frame_end(rows, current, window)
        labels = _sought(rows, current, last, window)
        found.append((UNMATCHED if labels is None else MATCH if labels else EMPTY, labels or (), last))
        if labels:
            skipped_to = _skip(current, labels, window)
    return found


def _frame_end(rows: Sequence[Row], current: int, window: Window) -> int:
    if window.one_row:
        return current
    if window.end is None:
        return len(rows) - 1
    here = Sight(rows, current, current, ((current, ""),), {})
    reach = evaluate(window.end, here)
    if reach is None or reach < 0:
        raise RunError("frame end", current)
    return min(current + reach, len(rows) - 1)


def _sought(rows: Sequence[Row], current: int, last: int, window: Window) -> Labels | None:
    """The labels of the preferred match at the first start that has one; none at all is None, no rows is ()."""

    def holds(labels: Labels) -> bool:
        condition = window.define.get(labels[-1][1], Const(True))
        return evaluate(condition, Sight(rows, current, last, labels, window.unions)) is True

    for start in range(current, last + 1 if window.seek else current + 1):
        for _, labels in preferred(window.pattern, start, last, (), holds):
            return labels
    return None


def _skip(current: int, labels: Labels, window: Window) -> int:
    if window.skip == "PAST LAST ROW":
        return labels[-1][0] + 1
    if window.skip == "TO NEXT ROW":
        return current + 1
    _, *way, variable = window.skip.split()
    members = window.unions.get(variable, (variable,))
    rows = [position for position, label in labels if label in members]
    if not rows:
        raise RunError("no row of the variable", current)
    to = rows[0] if way == ["FIRST"] else rows[-1]
    if to == labels[0][0]:
        raise RunError("start of the match", current)
    return to


def measured(rows: Sequence[Row], window: Window) -> list[dict[str, Any]]:
    """The measures of each row of the input [A4]."""
    found: list[dict[str, Any]] = [{}] * len(rows)
    for group in partitions(rows, window):
        ordered = [rows[index] for index in group]
        for current, (index, (status, labels, last)) in enumerate(zip(group, _walk(ordered, window), strict=True)):
            sight = Sight(ordered, current, last, labels, window.unions)
            known = status in (MATCH, EMPTY)
            found[index] = {name: evaluate(what, sight) if known else None for name, what in window.measures.items()}
    return found


def framed(rows: Sequence[Row], window: Window) -> list[list[Row]]:
    """The reduced frame of each row of the input: what a window function over the window sees [A5]."""
    found: list[list[Row]] = [[]] * len(rows)
    for group in partitions(rows, window):
        for index, (_, labels, _) in zip(group, _walk([rows[index] for index in group], window), strict=True):
            found[index] = [rows[group[position]] for position, _ in labels]
    return found


def over(rows: Sequence[Row], window: Window, function: str, column: str | None = None) -> list[Any]:
    """`function(column) OVER window` for each row; first_value and last_value too; no column is count(*)."""
    return [_applied(function, column, frame) for frame in framed(rows, window)]


def _applied(function: str, column: str | None, frame: list[Row]) -> Any:
    if column is None:
        return len(frame)
    values = [row[column] for row in frame]
    if function in ("first_value", "last_value"):
        return None if not values else values[0 if function == "first_value" else -1]
    return aggregate(function, values)


# ----------------------------------------------------------------------------------------- windows and rows at random

NAMES = ("A", "B", "C")


def random_rows(chance: random.Random) -> list[dict[str, Any]]:
    """Up to 10 rows (p, t, x, n): one or two partitions, x of 0 to 3 or NULL, n of 0 to 3 for ends of frames."""
    parts = chance.choice([["u"], ["u", "v"]])
    rows = [
        {"p": chance.choice(parts), "t": t, "x": chance.choice([0, 1, 1, 2, 2, 3, None]), "n": chance.randint(0, 3)}
        for t in range(1, chance.choice([0, 1, 4, 6, 8, 8, 10]) + 1)
    ]
    chance.shuffle(rows)
    return rows


def random_window(chance: random.Random) -> Window:
    """A window over such rows; what it may come upon at run time is a RunError of `walk` and `measured`."""
    pattern = random_pattern(chance, chance.choice([1, 1, 2, 2, 3]))
    names = variables_of(pattern)
    unions = {"U": tuple(chance.sample(names, 2))} if len(names) > 1 and chance.random() < 0.4 else {}
    scope = [*names, *unions]
    defined = [name for name in names if chance.random() < 0.6]
    skips = ["PAST LAST ROW", "PAST LAST ROW", "TO NEXT ROW", "TO NEXT ROW"]
    if scope:
        skips += [f"TO {way}{chance.choice(scope)}" for way in ("", "FIRST ", "LAST ")]
    ends = [*[None] * 4, Const(chance.randint(0, 5)), Col("n"), Op("+", Col("n"), Const(1)), _nullable_end()]
    return Window(
        pattern,
        {name: random_condition(chance, [name, *scope], name, 1) for name in defined},
        {f"m{number}": random_measure(chance, scope) for number in range(1, chance.randint(1, 3) + 1)},
        chance.choice([(), ("p",)]),
        ("t",),
        chance.choice(ends),
        chance.random() < 0.05,
        chance.choice(skips),
        chance.random() < 0.5,
        unions,
    )


def _nullable_end() -> Expression:
    return Coalesce((Col("x"), Const(2)))


def random_pattern(chance: random.Random, depth: int) -> Pattern:
    kind = chance.choice(["variable", *["sequence"] * 3, *["repeat"] * 2, "choice", "permute", "none"])
    if depth == 0 or kind == "variable":
        return Var(chance.choice(NAMES))
    if kind == "none":
        return Empty() if chance.random() < 0.3 else Var(chance.choice(NAMES))
    if kind == "repeat":
        low, high = chance.choice([(0, None), (1, None), (0, 1), (2, 2), (0, 2), (1, 3), (2, None)])
        return Rep(random_pattern(chance, depth - 1), low, high, chance.random() < 0.7)
    parts = tuple(random_pattern(chance, depth - 1) for _ in range(chance.randint(2, 3 if depth > 1 else 2)))
    return {"sequence": Seq, "choice": Alt, "permute": Permute}[kind](parts)


def random_condition(chance: random.Random, scope: list[str], own: str, depth: int) -> Expression:
    """A condition of the variable `own`, which the scope may name more than once to make it more frequent.

    Half of them hold for most rows, since a pattern that nothing matches shows little.
    """
    if chance.random() < 0.5:
        simple = Op(
            chance.choice(["<>", ">=", "<="]), Col("x", chance.choice([None, own])), Const(chance.randint(1, 2))
        )
        if chance.random() < 0.5:
            return simple
        return Or((simple, Op(">", Col("x", own), Nav(Col("x", own), None, 0, chance.choice(["PREV", "NEXT"])))))
    kind = chance.randint(0, 9)
    if depth and kind == 0:
        return Or(tuple(random_condition(chance, scope, own, 0) for _ in range(2)))
    if depth and kind == 1:
        return And(tuple(random_condition(chance, scope, own, 0) for _ in range(2)))
    if depth and kind == 2:
        return Not(random_condition(chance, scope, own, 0))
    sign = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    if kind == 3:
        return Op(chance.choice(["=", "<>"]), _random_classifier(chance, scope), Const(chance.choice(NAMES)))
    if kind == 4:
        return IsNull(_random_number(chance, scope))
    if kind < 7:
        return Op(sign, Col("x", chance.choice([None, own])), _random_number(chance, scope))
    return Op(sign, _random_number(chance, scope), Const(chance.randint(0, 3)))


def random_measure(chance: random.Random, scope: list[str]) -> Expression:
    kind = chance.randint(0, 7)
    if kind == 0:
        return Const(chance.choice(["hit", 1]))
    if kind == 1:
        return _random_classifier(chance, scope)
    if kind == 2:
        return Agg("array_agg", chance.choice([Col("x"), Col("t"), Classifier()]))
    if kind == 3:
        return Op("-", _random_number(chance, scope), _random_number(chance, scope))
    return _random_number(chance, scope)


def _random_classifier(chance: random.Random, scope: list[str]) -> Expression:
    what = Classifier(chance.choice([None, None, *scope]))
    logical = chance.choice([None, "FIRST", "LAST"])
    physical = chance.choice([None, None, "PREV", "NEXT"])
    return Nav(what, logical, chance.randint(0, 1) if logical else 0, physical) if logical or physical else what


def _random_number(chance: random.Random, scope: list[str]) -> Expression:
    variable = chance.choice([None, *scope])
    column = Col("x", variable)
    kind = chance.randint(0, 6)
    if kind == 0:
        return column
    if kind == 1:
        return Agg("count", None, variable)
    if kind == 2:
        return Agg(chance.choice(["count", "sum", "min", "max"]), column)
    if kind in (3, 4):
        return Nav(column, None, 0, chance.choice(["PREV", "NEXT"]), chance.randint(1, 2))
    logical, nth = chance.choice(["FIRST", "LAST"]), chance.randint(0, 1)
    physical = chance.choice([None, "PREV", "NEXT"]) if kind == 6 else None
    return Nav(column, logical, nth, physical, chance.randint(1, 2) if physical else 1)
