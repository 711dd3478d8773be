"""Random queries for the regular-expression operator, and what row_strategies.py shares with it.

Shared are the choices that generators are written over, the tables, the expressions, and the comparison of what two
engines did.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from kleene import KleeneError

T = TypeVar("T")
Outcome: TypeAlias = pa.Table | KleeneError


# Choices: drawn by Hypothesis, which shrinks them, or made by `random`, which makes thousands of cases in seconds.


class Choose(Protocol):
    """What a generator asks for. Options stand with the simplest first, which is what Hypothesis shrinks to."""

    def integer(self, low: int, high: int) -> int: ...

    def choice(self, options: Sequence[T]) -> T: ...

    def chance(self, probability: float) -> bool: ...


@dataclass(frozen=True)
class ChooseBy:
    """Choices by a function that gives a whole number between two others."""

    integer: Callable[[int, int], int]

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, probability: float) -> bool:
        return self.integer(0, 99) >= 100 * (1 - probability)


def by_random(random: Random) -> Choose:
    return ChooseBy(lambda low, high: low + int(random.random() * (high - low + 1)))


def by_hypothesis(draw: st.DrawFn) -> Choose:
    return ChooseBy(lambda low, high: draw(st.integers(low, high)))


# Tables. All have the same columns, so that every query fits every table; t and f order the rows, and are never NULL.

_START = datetime(2024, 1, 1)
_COLUMNS: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "t": (pa.int64(), tuple(range(10))),
    "f": (pa.float64(), (0.0, 0.25, 0.5, 1.5, 2.0, 2.75, 4.0, -1.0, -0.0)),
    "g": (pa.int64(), (1, 1, 2)),
    "x": (pa.int64(), (1, 2, 2, 3, 3, 0, 1, -1)),
    "y": (pa.float64(), (1.0, 2.5, 0.5, 0.1, -1.5, 0.0, -0.0, float("nan"), float("inf"))),
    "s": (pa.string(), ("p", "q", "pq", "P", "1", "", "ß")),
    "d": (pa.decimal128(10, 2), tuple(map(Decimal, ("1.00", "0.25", "2.50", "-1.75", "0.00")))),
    "b": (pa.bool_(), (True, True, False)),
    "ts": (pa.timestamp("us"), tuple(_START + timedelta(seconds=step) for step in (0, 1, 2, 3.5, 5, 8, 13, 90_000))),
    "dd": (pa.date32(), tuple(date(2024, 1, day) for day in (1, 1, 2, 3, 5))),
}
_OTHER_TYPES = {"x": pa.int32(), "y": pa.float32(), "s": pa.large_string(), "ts": pa.timestamp("ms"), "dd": pa.date64()}


def make_table(choose: Choose) -> pa.Table:
    """Up to 14 rows in any order; in half of the tables nothing is NULL. `g` holds integers or strings."""
    size = choose.integer(6, 14) if choose.chance(0.85) else choose.integer(0, 5)
    has_nulls, g_is_text = choose.chance(0.5), choose.chance(0.4)
    columns = {}
    for name, (type_, values) in _COLUMNS.items():
        if name == "g" and g_is_text:
            type_, values = pa.string(), ("a", "a", "b")
        if has_nulls and name not in ("t", "f"):
            values = values * 3 + (None,) * (len(values) // 2)
        column = pa.array([choose.choice(values) for _ in range(size)], type_)
        columns[name] = column.cast(_OTHER_TYPES[name]) if name in _OTHER_TYPES and choose.chance(0.1) else column
    table = pa.table(columns)
    cut = choose.integer(0, size) if choose.chance(0.2) else 0
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)]) if cut else table


# Expressions, by templates: {int} stands for an expression of that type. Arithmetic with times is written with casts,
# since a query is checked before there is a table, and guesses the types of columns then.


def listed(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(";"))


NUMBERS = ("int", "float", "decimal")
COLUMNS = {
    "int": ("x", "x", "t"),
    "float": ("y", "y", "f"),
    "decimal": ("d",),
    "string": ("s",),
    "bool": ("b",),
    "timestamp": ("ts",),
    "date": ("dd",),
}
TYPES = (*COLUMNS, "duration")
_WORDS = {
    "number": NUMBERS,
    "any": TYPES,
    "sign": ("=", "<>", "<", "<=", ">", ">=", "<=", ">="),
    "regex": ("'^p'", "'q$'", "'[a-q]+'", "'(?i)p|1'", "'^.?$'"),
    "like": ("'p%'", "'%q'", "'_'", "'%'", "'p_'", r"'\%'"),
}
_LITERALS = {
    "int": listed("1; 0; 2; 3; (-1); NULL"),
    "float": listed("1.0; 0.5; 2.5; (-1.5); 1e1; 50%"),
    "decimal": listed("1.0; 0.25; 2.50; (-1.75)"),
    "string": listed("'p'; 'q'; 'pq'; ''; 'A'"),
    "bool": listed("TRUE; FALSE; NULL"),
    "timestamp": listed("TIMESTAMP '2024-01-01 00:00:03'; TIMESTAMP '2024-01-02'"),
    "date": listed("DATE '2024-01-02'; DATE '2024-01-01'"),
    "duration": listed("5 seconds; INTERVAL '1' MINUTE; 1 day; 500 ms"),
}
_OF_EVERY_TYPE = """coalesce({here}, {here}); least({here}, {here}); greatest({here}, {here});
    if({bool}, {here}, {here}); nvl({here}, {here}); nvl2({any}, {here}, {here}); nullif({here}, {here});
    CASE WHEN {bool} THEN {here} ELSE {here} END; CASE {int} WHEN 1 THEN {here} WHEN {int} THEN {here} END"""
_OF_NUMBERS = """({here} + {here}); ({here} - {here}); ({here} * {here}); ({here} % {here}); (- {here}); abs({here});
    round({here}); pmod({here}, {here}); mod({here}, {here})"""
_OF_TYPE = {
    "int": """length({string}); floor({float}); floor({decimal}); ceil({decimal}); CAST({bool} AS integer);
        CAST({decimal} AS integer); instr({string}, {string}); date_diff({date}, {date}); year({date});
        day({timestamp}); hour({timestamp}); second({timestamp}); unix_timestamp({timestamp});
        locate({string}, {string}, {int}); TRY_CAST({string} AS integer);
        EXTRACT(MINUTE FROM {timestamp}); nullif({int}, {number})""",
    "float": """({number} / {number}); ({float} + {int}); ({decimal} * {float}); ({duration} / {duration});
        sign({number}); {int}::float; sqrt({number}); ln({number}); exp({int}); power({number}, {int});
        round({float}, 1); CAST({int} AS float)""",
    "decimal": "({decimal} + {int}); ({decimal} * 1.5); CAST({int} AS decimal(10, 2))",
    "string": """concat({string}, {string}, '-'); upper({string}); lower({string}); CAST({int} AS string);
        CAST({decimal} AS string); CAST({float} AS string); CAST({bool} AS string); CAST({date} AS string);
        CAST({timestamp} AS string); substring({string}, {int}, 1); left({string}, {int}); replace({string}, {string});
        trim({string}); reverse({string}); concat_ws('-', {string}, {string}); lpad({string}, 2, 'x'); {int}::string;
        split_part({string}, 'p', 1)""",
    "bool": """({int} {sign} {int}); ({number} {sign} {number}); ({number} {sign} {number}); ({float} {sign} {number});
        ({decimal} {sign} {number}); ({int} {sign} {number}); ({string} {sign} {string});
        ({timestamp} {sign} {timestamp}); ({date} {sign} {date}); ({duration} {sign} {duration});
        ({date} {sign} {timestamp}); ({bool} = {bool}); ({any} IS NULL); ({any} IS NOT NULL);
        ({int} IN ({int}, 2, 3)); ({string} IN ('p', {string})); ({int} NOT IN ({int}, 3));
        ({number} BETWEEN {number} AND {number}); ({int} NOT BETWEEN 2 AND {int}); ({string} LIKE {like});
        ({string} NOT LIKE {like}); ({string} RLIKE {regex}); ({string} NOT RLIKE {regex});
        contains({string}, {string}); startswith({string}, {string}); endswith({string}, {string});
        ({bool} AND {bool}); ({bool} OR {bool}); (NOT {bool}); CAST({int} AS boolean)""",
    "timestamp": """(CAST({timestamp} AS timestamp) + {duration}); (CAST({timestamp} AS timestamp) - {duration});
        CAST({date} AS timestamp); date_trunc('HOUR', {timestamp}); date_trunc('WEEK', {timestamp})""",
    "date": "CAST({timestamp} AS date); date_add({date}, {int}); date_sub({timestamp}, {int})",
    "duration": """(CAST({timestamp} AS timestamp) - CAST({timestamp} AS timestamp)); abs({duration});
        (CAST({date} AS date) - CAST({date} AS date)); ({duration} + {duration}); ((0 seconds + {duration}) * {int})""",
}


def _templates(type_: str) -> tuple[str, ...]:
    texts = [_OF_TYPE[type_], _OF_EVERY_TYPE, *([_OF_NUMBERS] if type_ in NUMBERS else [])]
    return listed(";".join(texts).replace("{here}", f"{{{type_}}}"))


TEMPLATES = {type_: _templates(type_) for type_ in TYPES}


@dataclass(frozen=True)
class Expressions:
    """Expressions of a language; `reference` writes one of the given type that depends on rows."""

    choose: Choose
    reference: Callable[[str], str]
    templates: Mapping[str, Sequence[str]]
    has_literals: bool = True

    def value(self, type_: str, depth: int = 2) -> str:
        if depth and self.choose.chance(0.5):
            return self.filled(self.choose.choice(self.templates[type_]), depth - 1)
        if self.has_literals and self.choose.chance(0.2):
            return self.choose.choice(_LITERALS[type_])
        return self.reference(type_)

    def condition(self, depth: int = 2) -> str:
        return self.filled(self.choose.choice(self.templates["bool"]), depth - 1)

    def filled(self, template: str, depth: int) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self._part(found[1], depth), template)

    def _part(self, word: str, depth: int) -> str:
        word = self.choose.choice(_WORDS[word]) if word in _WORDS else word
        return self.value(word, depth) if word in self.templates else word


def likely(choose: Choose, often_true: str, values: Expressions) -> str:
    """A condition of any kind, more often true than not."""
    forms = listed("""{often}; {often}; coalesce({some}, TRUE); coalesce({some}, TRUE); ({some} OR {often});
        ({some} OR {often}); {some}; NOT ({some} AND {often})""")
    form = choose.choice(forms)
    return form.replace("{often}", often_true).replace("{some}", values.condition() if "{some}" in form else "")


# Patterns of the operator.


@dataclass(frozen=True)
class Piece:
    """A part of a pattern: whether it can be empty, and the predicates that it can begin with."""

    text: str
    can_be_empty: bool = False
    first: frozenset[str] = frozenset()


def _atom(choose: Choose, names: Sequence[str]) -> Piece:
    name = choose.choice((*names, *names, "."))
    return Piece(name, False, frozenset({name} - {"."}))


def _in_sequence(left: Piece, right: Piece) -> Piece:
    first = left.first | right.first if left.can_be_empty else left.first
    return Piece(f"{left.text} {right.text}", left.can_be_empty and right.can_be_empty, first)


def _part(choose: Choose, names: Sequence[str], depth: int) -> Piece:
    part = _group(choose, names, depth) if depth and choose.chance(0.3) else _atom(choose, names)
    if choose.chance(0.5):
        return part
    sign = choose.choice(("+", "*", "+", "?", "+?"))
    return Piece(part.text + sign, part.can_be_empty or sign != "+", part.first)


def _sequence(choose: Choose, names: Sequence[str], depth: int, most: int = 3) -> Piece:
    sequence = _part(choose, names, depth)
    for _ in range(choose.integer(0, most - 1)):
        sequence = _in_sequence(sequence, _part(choose, names, depth))
    return sequence


def _group(choose: Choose, names: Sequence[str], depth: int) -> Piece:
    parts = [_sequence(choose, names, depth - 1, 2) for _ in range(choose.integer(1, 3))]
    first = frozenset[str]().union(*(part.first for part in parts))
    return Piece(f"({' | '.join(part.text for part in parts)})", any(part.can_be_empty for part in parts), first)


def _pattern(choose: Choose, names: Sequence[str]) -> Piece:
    pattern = _sequence(choose, names, depth=2)
    pattern = _in_sequence(Piece("."), pattern) if choose.chance(0.4) else pattern
    return _in_sequence(pattern, _atom(choose, names)) if pattern.can_be_empty else pattern


# Queries of the operator.

_REGEX_TEMPLATES = TEMPLATES | {
    "bool": TEMPLATES["bool"] + listed("({bool} && {bool}); ({bool} || {bool}); (! {bool}); (Collect(x) IS NOT NULL)")
}
_OFTEN_TRUE_ALONE = listed("x >= 1; x < 3; x IS NOT NULL; s != 'q'; (b || x > 0); y < 3; (d > 0 && x >= 0); dd = dd")
_OFTEN_TRUE = listed("""x >= Last(x); x <= Max(x); x >= Min(x); Count() < 4; Delta(t) <= 6; Sum(x) < 8; Average(x) <= 2;
    x != First(x); (x > Last(x) || x = First(x)); Delta(ts) < 20 seconds; Sum(d) + d < 6; Max(s) >= s;
    (b && Count() > 0)""")
_MAY_FAIL = listed("(CAST(s AS integer) > 0); (CAST(y AS integer) >= 0); (x * 9223372036854775807 > 0)")
_ORDERS: tuple[str | list[str], ...] = ("t", "t", "t", "t", "f", ["f", "t"], ["t", "f"], "f", "ts", "dd")
_PARTITIONS: tuple[str | list[str], ...] = ([], [], "g", "g", ["g", "b"], "s", "y")


@dataclass(frozen=True)
class RegexReferences:
    """The current event's values, and, unless it is to be seen alone, aggregates of the match."""

    choose: Choose
    is_alone: bool = False

    def __call__(self, type_: str) -> str:
        if self.is_alone or self.choose.chance(0.4):
            return self._column(type_)
        if type_ == "int" and self.choose.chance(0.25):
            return "Count()"
        if type_ == "duration":
            return f"Delta({self.choose.choice(('ts', 'dd'))})"
        functions = ("First", "Last", "Max", "Min", *(("Sum", "Delta") if type_ in NUMBERS else ()))
        if type_ == "float" and self.choose.chance(0.3):
            return f"Average({self.inside(self.choose.choice(NUMBERS))})"
        return f"{self.choose.choice(functions)}({self.inside(type_)})"

    def _column(self, type_: str) -> str:
        return "(ts - dd)" if type_ == "duration" else self.choose.choice(COLUMNS[type_])

    def inside(self, type_: str) -> str:
        return Expressions(self.choose, self._column, TEMPLATES, False).value(type_, int(self.choose.chance(0.2)))


def make_query(choose: Choose) -> dict[str, Any]:
    """The arguments of kleene.regex."""
    pattern = _pattern(choose, ("rise", "drop", "flat", "peak")[: choose.integer(2, 4)])
    names = sorted(set(re.findall(r"\w+", pattern.text)))
    return {
        "pattern": pattern.text,
        "order_by": choose.choice(_ORDERS),
        "partition_by": choose.choice(_PARTITIONS),
        "predicates": {name: _predicate(choose, is_alone=name in pattern.first) for name in names},
        "output": {f"o{number}": _output(choose) for number in range(choose.integer(1, 4))},
    }


def _predicate(choose: Choose, is_alone: bool) -> str:
    if choose.chance(0.01):
        return choose.choice(_MAY_FAIL)
    often = choose.choice(_OFTEN_TRUE_ALONE if is_alone else _OFTEN_TRUE + _OFTEN_TRUE_ALONE)
    templates = TEMPLATES if is_alone else _REGEX_TEMPLATES
    return likely(choose, often, Expressions(choose, RegexReferences(choose, is_alone), templates))


def _output(choose: Choose) -> str:
    references = RegexReferences(choose)
    if choose.chance(0.15):
        return f"Collect({references.inside(choose.choice(TYPES))})"
    return Expressions(choose, references, _REGEX_TEMPLATES).value(choose.choice(TYPES))


@st.composite
def regex_tables(draw: st.DrawFn) -> pa.Table:
    return make_table(by_hypothesis(draw))


@st.composite
def regex_queries(draw: st.DrawFn) -> dict[str, Any]:
    return make_query(by_hypothesis(draw))


def random_regex_case(random: Random) -> tuple[dict[str, Any], pa.Table]:
    """The arguments of kleene.regex and a table, much faster than Hypothesis draws them."""
    choose = by_random(random)
    return make_query(choose), make_table(choose)


# What comes of a case.


def outcome(run: Callable[[], pa.Table]) -> Outcome:
    """The table, or the error that Kleene raised on purpose."""
    try:
        return run()
    except KleeneError as error:
        return error


def same_result(left: Outcome, right: Outcome) -> bool:
    """Whether two engines did the same: the same rows in the same order, NaN being NaN, or the same error."""
    if isinstance(left, KleeneError) or isinstance(right, KleeneError):
        return type(left) is type(right) and left.message == right.message
    if not left.schema.equals(right.schema, check_metadata=True):
        return False
    return left.equals(right) or same_value(left.to_pylist(), right.to_pylist())


def same_value(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    return bool(left == right or (left != left and right != right))
