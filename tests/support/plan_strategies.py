"""Random SASE queries without Kleene plus, events for them, and hints: what plans of sequence operators are tried with.

All is made by `random`, which makes thousands of cases in seconds. A `PlanCase` keeps the parts of its query apart, so
that one that fails can be made smaller.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from kleene.options.hints import CHOICES
from regex_strategies import listed

T = TypeVar("T")
Events: TypeAlias = pa.Table | dict[str, pa.Table]
TYPES = ("A", "B", "C", "D")
POSITIVE, NEGATIVE = "abcde", "nm"


@dataclass(frozen=True)
class Part:
    """A component of the pattern; it has a name in the text only where something refers to it, or by chance."""

    name: str
    types: tuple[str, ...]
    is_negative: bool = False
    is_named: bool = True

    def __str__(self) -> str:
        of = self.types[0] if len(self.types) == 1 else f"ANY({', '.join(self.types)})"
        text = f"{of} {self.name}" if self.is_named else of
        return f"!({text})" if self.is_negative else text


@dataclass(frozen=True)
class PlanQuery:
    parts: tuple[Part, ...]
    tests: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    window: str | None = None
    having: str | None = None
    measures: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = [*(f"[{test}]" for test in self.tests), *self.predicates]
        clauses = [
            f"PATTERN SEQ({', '.join(map(str, self.parts))})",
            f"WHERE {' AND '.join(where)}" if where else "",
            f"WITHIN {self.window}" if self.window else "",
            f"HAVING {self.having}" if self.having else "",
            f"RETURN {', '.join(self.measures)}" if self.measures else "",
        ]
        return "\n".join(filter(None, clauses))

    @property
    def positive(self) -> list[Part]:
        return [part for part in self.parts if not part.is_negative]

    @property
    def negative(self) -> list[Part]:
        return [part for part in self.parts if part.is_negative]


@dataclass(frozen=True)
class PlanCase:
    query: PlanQuery
    options: dict[str, Any]
    events: Events


# Tables. The order key is `t`, of some type; what may be compared with each other stands in one family.

START = datetime(2024, 1, 1)
NAN = float("nan")
COLUMNS: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "id": (pa.int64(), (1, 1, 1, 2, 2, 3)),
    "j": (pa.int32(), (1, 1, 2, 2, 3)),
    "k": (pa.string(), ("u", "u", "u", "v", "v", "")),
    "s": (pa.string(), ("u", "u", "v", "v", "pq", "7")),
    "y": (pa.float64(), (0.0, -0.0, 0.0, 1.5, 1.5, NAN)),
    "w": (pa.float32(), (0.0, -0.0, 0.0, 1.5, 2.5, NAN)),
    "dec": (pa.decimal128(10, 2), tuple(map(Decimal, ("1.00", "1.00", "0.25", "-1.75")))),
    "exact": (pa.decimal128(12, 2), tuple(map(Decimal, ("1.00", "1.00", "0.25", "3.50")))),
    "ok": (pa.bool_(), (True, True, False)),
    "g": (pa.timestamp("us"), tuple(START + timedelta(seconds=step) for step in (0, 0, 5, 90))),
    "h": (pa.timestamp("ms"), tuple(START + timedelta(seconds=step) for step in (0, 0, 5, 60))),
    "x": (pa.int64(), (0, 1, 1, 2, 2, 3, 3, -1)),
    "z": (pa.int64(), (1, 2, 3, 4, 5)),
}
FAMILIES = (("id", "j"), ("id",), ("id",), ("k", "s"), ("k",), ("y", "w"), ("dec", "exact"), ("ok",), ("g", "h"))
KEYS = ("id", "id", "id", "j", "k", "k", "y", "ok", "dec", "g", "w")
CONSTANTS = {"id": "1", "j": "1", "k": "'u'", "y": "0.0", "ok": "TRUE", "dec": "1.0", "w": "-0.0"}
LACKABLE = ("id", "k", "x", "x", "s", "y", "j", "z")


@dataclass(frozen=True)
class Clock:
    """A type of order key: its values, by ticks, and windows on it."""

    type: pa.DataType
    ticks: Any
    windows: tuple[str, ...]


_NUMBERS = listed("1; 2; 2.5; 3; 5; 8; 8; 13; 21; 34")
EVENT_COUNTS = listed("1 events; 2 events; 3 events; 5 events; 8 events; 13 events; 21 events")
_DURATIONS = listed("1 seconds; 2500 ms; 3 seconds; 5 seconds; 8 seconds; 13 seconds; 21 seconds; 1 minutes")
CLOCKS = (
    Clock(pa.int64(), int, _NUMBERS),
    Clock(pa.int64(), int, _NUMBERS),
    Clock(pa.int32(), lambda tick: tick - 20, _NUMBERS),
    Clock(pa.float64(), lambda tick: tick / 10, listed("0.1; 0.3; 0.7; 0.8; 1.3; 2; 3.4")),
    Clock(pa.float64(), lambda tick: tick / 4 - 1, listed("0.25; 0.5; 1; 2; 3.25; 5")),
    Clock(pa.decimal128(8, 2), lambda tick: Decimal(tick) / 4, listed("0.25; 0.5; 0.755; 1; 2; 3.25; 5")),
    Clock(pa.timestamp("us"), lambda tick: START + timedelta(seconds=tick), _DURATIONS),
    Clock(pa.timestamp("ms", "Europe/Berlin"), lambda tick: START + timedelta(seconds=tick), _DURATIONS),
    Clock(
        pa.date32(), lambda tick: date(2024, 2, 20) + timedelta(days=tick), listed("2 days; 5 days; 1 weeks; 9 days")
    ),
)


def random_table(chance: Random, types: Sequence[str | None], clock: Clock) -> pa.Table:
    """Events of these types, in any order; `n` is their number in the input."""
    size = len(types)
    has_nulls, steps = chance.random() < 0.5, chance.choice([(0, 1), (0, 1, 1, 2), (1,), (0, 0, 0, 3), (1, 2, 3, 8)])
    narrow = chance.random()  # how likely a column has few values, so that events agree
    ticks, tick = [], 0
    for _ in range(size):
        tick += chance.choice(steps)
        ticks.append(tick)
    if chance.random() < 0.3:
        chance.shuffle(ticks)
    columns = {"type": pa.array(types, pa.string()), "t": pa.array(map(clock.ticks, ticks), clock.type)}
    for name, (type_, values) in COLUMNS.items():
        if chance.random() < narrow:
            values = values[: chance.randrange(1, 4)] * 3 + values
        weighted = values * 2 + (None,) if has_nulls else values
        columns[name] = pa.array([chance.choice(weighted) for _ in range(size)], type_)
    columns["n"] = pa.array(range(size), pa.int64())
    return pa.table(columns)


def random_types(chance: Random, query: PlanQuery, most: int) -> list[str | None]:
    """The types of events: mostly those of the pattern, and not so many that sequences are too many to go through."""
    wanted = [name for part in query.parts for name in part.types]
    others: list[str | None] = [*wanted, *wanted, *TYPES, "Z", None]
    size = chance.choice([0, 3, 8, 12, 16, 20, 25, 30, 35, 40, 40, 40])
    found = [chance.choice(wanted) if chance.random() < 0.8 else chance.choice(others) for _ in range(size)]
    while sequences_by_type(query, found) > most:
        del found[chance.randrange(len(found))]
    return found


def sequences_by_type(query: PlanQuery, types: Sequence[str | None]) -> int:
    """How many sequences, whole or begun, there are if nothing but types is looked at."""
    counts = [0] * len(query.positive)
    for name in types:
        for number in range(len(counts) - 1, -1, -1):
            if name in query.positive[number].types:
                counts[number] += counts[number - 1] if number else 1
    return sum(counts)


def by_type(chance: Random, table: pa.Table) -> dict[str, pa.Table]:
    """A table for each type, some of which lack an attribute."""
    found = {}
    names = table.column("type").to_pylist()
    for name in (*TYPES, "Z"):
        rows = [number for number, own in enumerate(names) if own == name]
        part = table.take(pa.array(rows, pa.int64())).drop_columns(["type"])
        lacks = {chance.choice(LACKABLE) for _ in range(chance.choice([0, 0, 1, 2]))} if name != "Z" else set()
        found[name] = part.drop_columns(sorted(lacks))
    return found


# Predicates, by templates: {v}, {w} and {u} are variables.

SIMPLE = listed("""{v}.x >= 1; {v}.x < 3; {v}.z > 1; {v}.x != 2; {v}.x IN (1, 2, 3); {v}.s NOT IN ('v', 'w');
    {v}.k IS NOT NULL; {v}.x IS NULL OR {v}.x > 0; {v}.s LIKE 'p%' OR {v}.ok; {v}.k LIKE '_'; {v}.ok;
    ({v}.x > 2 OR {v}.ok); {v}.x + {v}.z > 2; {v}.dec >= 0.25; {v}.g < TIMESTAMP '2024-01-01 00:01:00'; NOT ({v}.x = 2);
    {v}.x BETWEEN 0 AND 2; {v}.z % 2 = 1; {v}.x / {v}.z < 0.8; {v}.id = {v}.j OR {v}.x > 0; abs({v}.x) <= 2;
    length({v}.s) < 2; upper({v}.k) = 'U'; coalesce({v}.x, 1) = 1; {v}.y <= 1.5; {v}.w = 0.0;
    CASE WHEN {v}.ok THEN {v}.x ELSE {v}.z END > 0; {v}.k = {v}.s OR {v}.z >= 2; {v}.x * 2 < 7; 1 < 2; {v}.n >= 0;
    {v}.x IS NULL; NOT ({v}.x > 1 AND {v}.ok); {v}.dec < {v}.exact; {v}.z NOT BETWEEN 2 AND 3""")
PARAMETERIZED = listed("""{v}.x <= {w}.x; {v}.x != {w}.x; {v}.z < {w}.z OR {v}.ok; {v}.x + 1 >= {w}.x;
    {v}.dec <= {w}.exact; {v}.y <= {w}.w; {v}.s = {w}.k OR {v}.x = {w}.x; {v}.x + {w}.x < 4; {v}.x * {w}.z >= {u}.x;
    ({v}.x > {w}.x OR {w}.z > {u}.z); {v}.t <= {w}.t; NOT ({v}.x = {w}.x AND {v}.ok);
    {v}.z BETWEEN {w}.x AND {w}.z; {v}.x IN ({w}.x, {u}.x, 3); {v}.g <= {w}.h; {v}.z - {w}.z < 2; {v}.s >= {w}.s;
    {v}.x IS NULL OR {v}.x < {w}.z; least({v}.x, {w}.x) < {u}.z; {v}.x + {w}.x + {u}.x < 8; {v}.z / {w}.z > 0.4;
    {v}.ok OR {w}.ok; {v}.id + {w}.id > 2 OR {u}.x > 1; {v}.x = {w}.z OR {v}.z = {w}.x OR {v}.ok""")
RARE = listed("""{v}.x * 4611686018427387904 < 9; CAST({v}.s AS integer) < 9 OR {v}.ok;
    {v}.x * {w}.z * 1152921504606846976 < 9; CAST({v}.s AS integer) < {w}.z; {v}.z + {w}.x * 9223372036854775807 < 9""")
MEASURES = listed("""{v}.n AS {v}; {v}.x + {w}.z AS sum_{v}{w}; {v}.t AS t_{v}; coalesce({v}.k, {w}.s) AS k_{v};
    {v}.y AS y_{v}; {v}.x < {w}.x AS less_{v}{w}""")


@dataclass(frozen=True)
class Writer:
    """Predicates about the components of a pattern."""

    chance: Random
    positive: Sequence[str]
    negative: Sequence[str]

    def filled(self, template: str, names: Sequence[str] | None = None) -> str:
        """The template with variables: the given ones first, then any; each another one, as far as there are enough."""
        first = list(names or ())
        rest = [name for name in self.positive if name not in first]
        chosen = [*first, *self.chance.sample(rest, len(rest))]
        text = template
        for number, mark in enumerate(("{v}", "{w}", "{u}")):
            text = text.replace(mark, chosen[number % len(chosen)])
        return f"({text})" if " OR " in text else text

    def some(self) -> str:
        """A predicate on positive components."""
        template = self.chance.choice(SIMPLE if self.chance.random() < 0.5 else PARAMETERIZED)
        return self.filled(template)

    def on_negative(self, name: str) -> str:
        kind = self.chance.random()
        if kind < 0.4:
            return self.filled(self.chance.choice(SIMPLE), [name])
        other = self.chance.choice(self.positive)
        if kind < 0.7:
            return self.filled(self.chance.choice(PARAMETERIZED), self.chance.sample([name, other], 2))
        family = self.chance.choice(FAMILIES)
        return self.equality(name, self.chance.choice(family), other, self.chance.choice(family))

    def equality(self, left: str, left_name: str, right: str, right_name: str) -> str:
        sides = self.chance.sample([f"{left}.{left_name}", f"{right}.{right_name}"], 2)
        return " = ".join(sides)

    def chain(self) -> list[str]:
        """Equalities that tie all positive components, or some of them, and perhaps negative ones to those."""
        family, chance = self.chance.choice(FAMILIES), self.chance
        names = chance.sample(self.positive, len(self.positive))
        if chance.random() < 0.25:
            names = names[: max(2, len(names) - 1)]
        is_one = chance.random() < 0.6
        attribute = {name: family[0] if is_one else chance.choice(family) for name in (*names, *self.negative)}
        found = []
        for number, name in enumerate(names[1:], 1):
            other = names[chance.randrange(number)]
            own = attribute[other] if chance.random() < 0.9 else chance.choice(family)
            found.append(self.equality(name, attribute[name], other, own))
        for name in self.negative:
            if chance.random() < 0.6:
                other = chance.choice(names)
                found.append(self.equality(name, attribute[name], other, attribute[other]))
        return found


# Queries.


def random_query(chance: Random, clock: Clock, types: Sequence[str] = TYPES, may_fail: float = 0.05) -> PlanQuery:
    parts = _parts(chance, types)
    query = PlanQuery(tuple(parts))
    positive, negative = [part.name for part in query.positive], [part.name for part in query.negative]
    writer = Writer(chance, positive, negative)
    predicates = [writer.some() for _ in range(chance.choice([0, 0, 1, 1, 2, 3]))]
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2]) if len(positive) > 1 else 0):
        predicates += writer.chain()
    for name in negative:
        predicates += [writer.on_negative(name) for _ in range(chance.choice([0, 1, 1, 2]))]
    if chance.random() < may_fail:
        template = chance.choice(RARE)
        predicates.append(writer.filled(template, [chance.choice([*positive, *negative])]))
    chance.shuffle(predicates)
    needs_time = parts[0].is_negative or parts[-1].is_negative
    having = writer.filled(chance.choice(SIMPLE + PARAMETERIZED)) if chance.random() < 0.12 else None
    measures = _measures(writer) if chance.random() < 0.5 else ()
    query = replace(
        query,
        tests=tuple(_tests(chance)),
        predicates=tuple(predicates),
        window=_window(chance, clock, len(positive), needs_time),
        having=having,
        measures=measures,
    )
    return replace(query, parts=tuple(replace(part, is_named=_is_named(chance, part, query)) for part in parts))


def _parts(chance: Random, types: Sequence[str]) -> list[Part]:
    count = chance.choice([1, 2, 2, 2, 3, 3, 3, 4, 5])
    kinds = [False] * count
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        kinds.insert(chance.randrange(len(kinds) + 1), True)
    names = {False: iter(POSITIVE), True: iter(NEGATIVE)}
    few = chance.sample(types, min(len(types), chance.choice([1, 2, 3, 4])))
    return [Part(next(names[kind]), _types(chance, few if chance.random() < 0.9 else types), kind) for kind in kinds]


def _types(chance: Random, types: Sequence[str]) -> tuple[str, ...]:
    if len(types) == 1 or chance.random() < 0.75:
        return (chance.choice(types),)
    return tuple(chance.sample(types, 2))


def _tests(chance: Random) -> list[str]:
    names = list(dict.fromkeys(chance.choice(KEYS) for _ in range(chance.choice([0, 0, 0, 1, 1, 1, 2, 2, 3]))))
    tests = [f"{name} = {CONSTANTS[name]}" if name in CONSTANTS and chance.random() < 0.1 else name for name in names]
    return [", ".join(tests)] if len(tests) > 1 and chance.random() < 0.5 else tests


def _window(chance: Random, clock: Clock, count: int, needs_time: bool) -> str | None:
    """A window, the longer the more components there are."""
    kind = chance.random()
    if not needs_time and kind < 0.25:
        return None
    sizes = EVENT_COUNTS if not needs_time and kind < 0.45 else clock.windows
    return sizes[max(chance.randrange(len(sizes)) for _ in range(count))]


def _measures(writer: Writer) -> tuple[str, ...]:
    texts = [f"{name}.n AS {name}" for name in writer.positive]
    for _ in range(writer.chance.choice([0, 0, 1, 2])):
        texts.append(writer.filled(writer.chance.choice(MEASURES)))
    return tuple({text.rpartition(" AS ")[2]: text for text in texts}.values())


def _is_named(chance: Random, part: Part, query: PlanQuery) -> bool:
    text = " ".join([*query.predicates, query.having or "", *query.measures])
    return re.search(rf"\b{part.name}\.", text) is not None or chance.random() < 0.7


# Cases.


def random_plan(chance: Random, most: int = 300, may_fail: float = 0.05) -> PlanCase:
    """A query, options of `match`, and events, for which there are at most so many sequences by type alone."""
    clock = chance.choice(CLOCKS)
    shape = chance.random()
    is_untyped = shape < 0.04
    query = random_query(chance, clock, ("A",) if is_untyped else TYPES, may_fail)
    table = random_table(chance, random_types(chance, query, most), clock)
    events: Events = table
    if is_untyped:
        events = table.drop_columns(["type"])
    elif shape < 0.2:
        events = by_type(chance, table)
    options: dict[str, Any] = {"order_by": "t" if chance.random() < 0.9 else ["t", "n"]}
    if chance.random() < 0.1:
        options["tie_break"] = "g"
    if chance.random() < 0.3:
        options["format"] = "non_overlapping"
    return PlanCase(query, options, events)


def random_plan_case(chance: Random) -> tuple[str, dict[str, Any], Events]:
    """The text of a query, options of `match`, and events."""
    case = random_plan(chance)
    return str(case.query), case.options, case.events


# Hints.

OF_SEVERAL_TESTS = ("multi_pais", "combined")


def random_hints(chance: Random) -> dict[str, str]:
    """Hints for sequence operators, some of them left out; what cannot be for the query is an error there."""
    scan = chance.choice(CHOICES["scan"])
    second = chance.choice(CHOICES["second_test"] if scan == "pais" else ["selection", "dynamic"])
    found = {"scan": scan, "second_test": second, "window": chance.choice(CHOICES["window"])}
    found = {name: value for name, value in found.items() if chance.random() < 0.85 or value in OF_SEVERAL_TESTS}
    for name, values in CHOICES.items():
        if name not in ("operators", "scan", "second_test", "window") and chance.random() < 0.7:
            found[name] = chance.choice(values)
    return found or {"operators": "sequence"}


def random_statistics(chance: Random) -> dict[str, dict[str, float]] | None:
    """Numbers of values, true or not, by which a plan may choose its stacks."""
    if chance.random() < 0.7:
        return None
    return {"distinct": {name: chance.randrange(1, 100) for name in COLUMNS if chance.random() < 0.5}}
