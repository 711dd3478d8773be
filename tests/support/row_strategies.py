"""Random MATCH_RECOGNIZE clauses, legal for every table of `row_tables`.

The choices, tables and expressions that they are made of are those of regex_strategies.py, the simpler language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from regex_strategies import (
    COLUMNS,
    NUMBERS,
    TEMPLATES,
    TYPES,
    Choose,
    Expressions,
    by_hypothesis,
    by_random,
    likely,
    listed,
    make_table,
)
from regex_strategies import outcome as outcome
from regex_strategies import same_result as same_result

# References to rows.

_TEMPLATES = TEMPLATES | {"string": (*TEMPLATES["string"], "({string} || {string})")}


@dataclass(frozen=True)
class RowReferences:
    """Values of rows as DEFINE and MEASURES name them; `names` are the variables and subsets."""

    choose: Choose
    names: Sequence[str]
    in_define: bool

    def __call__(self, type_: str) -> str:
        makers: list[Callable[[str], str]] = [self._plain, self._plain, self._aggregate, self._aggregate]
        makers += [self._physical, self._logical, self._nested]
        if type_ in ("int", "string"):
            makers.append(self._of_the_match)
        if type_ == "duration":
            makers.append(lambda _: f"({self('timestamp')} - {self('timestamp')})")
        return self.choose.choice(makers)(type_)

    def _variable(self) -> str:
        """A variable, or nothing for the universal one."""
        return self.choose.choice(("", *self.names))

    def _plain(self, type_: str) -> str:
        return self._of_variable(self._variable(), type_)

    def _of_variable(self, variable: str, type_: str) -> str:
        prefix = f"{variable}." if variable else ""
        if type_ == "duration":
            return f"({prefix}ts - {prefix}dd)"
        if type_ == "string" and self.choose.chance(0.15):
            return f"CLASSIFIER({variable})"
        return prefix + self.choose.choice(COLUMNS[type_])

    def inside(self, type_: str) -> str:
        """What may stand in a navigation or an aggregate: a value of one variable's rows."""
        variable = self._variable()
        values = Expressions(self.choose, lambda kind: self._of_variable(variable, kind), _TEMPLATES, False)
        return values.value(type_, int(self.choose.chance(0.25)))

    def _semantics(self) -> str:
        return self.choose.choice(("", "", "", "RUNNING ") if self.in_define else ("", "", "RUNNING ", "FINAL "))

    def _physical(self, type_: str) -> str:
        return self._shifted(self.inside(type_))

    def _shifted(self, value: str) -> str:
        return f"{self.choose.choice(('PREV', 'NEXT'))}({value}{self.choose.choice(('', '', ', 0', ', 1', ', 2'))})"

    def _logical(self, type_: str) -> str:
        offset = self.choose.choice(("", "", ", 1", ", 2", ", 0"))
        return f"{self._semantics()}{self.choose.choice(('FIRST', 'LAST'))}({self.inside(type_)}{offset})"

    def _nested(self, type_: str) -> str:
        return self._shifted(self._logical(type_))

    def _aggregate(self, type_: str) -> str:
        if type_ == "int" and self.choose.chance(0.6):
            return self._semantics() + self._count()
        distinct = "DISTINCT " if self.choose.chance(0.2) else ""
        if type_ == "float" and self.choose.chance(0.4):
            return f"{self._semantics()}avg({distinct}{self.inside(self.choose.choice(NUMBERS))})"
        functions = ("sum", "min", "max") if type_ in (*NUMBERS, "duration") else ("min", "max")
        return f"{self._semantics()}{self.choose.choice(functions)}({distinct}{self.inside(type_)})"

    def _count(self) -> str:
        if self.choose.chance(0.6):
            variable = self._variable()
            return f"count({variable}.*)" if variable else "count(*)"
        distinct = "DISTINCT " if self.choose.chance(0.5) else ""
        return f"count({distinct}{self.inside(self.choose.choice(TYPES))})"

    def _of_the_match(self, type_: str) -> str:
        return "MATCH_NUMBER()" if type_ == "int" else f"{self._semantics()}CLASSIFIER({self._variable()})"

    def array(self) -> str:
        distinct = "DISTINCT " if self.choose.chance(0.3) else ""
        values = "g" if self.choose.chance(0.1) else self.inside(self.choose.choice(TYPES))
        return f"{self._semantics()}array_agg({distinct}{values})"


# Patterns.

_LOOPS = ("+", "*", "+", "*", "{1,}", "{2,}")
_BOUNDED = ("?", "{1,2}", "{,2}", "{2}", "{1,3}")


@dataclass
class PatternWriter:
    """Writes a pattern, and weighs it: of a heavy one there are too many ways to try, unless matches are kept short."""

    choose: Choose
    variables: Sequence[str]
    loops: int = 0
    weight: int = 0

    def pattern(self) -> str:
        if self.choose.chance(0.02):
            return "()"
        before, after = (self._anchor(sign) if self.choose.chance(0.05) else "" for sign in "^$")
        written = self._alternatives(2) if self.choose.chance(0.1) else self._sequence(2, 3)
        return f"{before}({written}){after}" if (before or after) else written

    def _anchor(self, sign: str) -> str:
        return f" {sign}{self.choose.choice(('', '', '?', '+', '{2}?'))} "

    def _sequence(self, depth: int, most: int) -> str:
        return " ".join(self._element(depth) for _ in range(self.choose.integer(1, most)))

    def _element(self, depth: int) -> str:
        makers = [self._variable, self._variable, self._repeated, self._repeated, self._repeated]
        if depth:
            makers += [self._group, self._repeated_group, self._permutation, self._exclusion]
        return self.choose.choice(makers)(depth)

    def _variable(self, _: int) -> str:
        return self.choose.choice(self.variables)

    def _repeated(self, depth: int) -> str:
        return self._variable(depth) + self._quantifier()

    def _quantifier(self) -> str:
        quantifier = self.choose.choice(self.choose.choice((_LOOPS, _BOUNDED)))
        self.loops += quantifier in _LOOPS
        return quantifier + ("?" if self.choose.chance(0.25) else "")

    def _alternatives(self, depth: int) -> str:
        written = [self._sequence(depth - 1, 2) for _ in range(self.choose.integer(2, 3))]
        if self.choose.chance(0.15):
            written[self.choose.integer(0, len(written) - 1)] = self.choose.choice(("()", "^ A", "A $"))
        return " | ".join(written)

    def _group(self, depth: int) -> str:
        return f"({self._alternatives(depth) if self.choose.chance(0.6) else self._sequence(depth - 1, 2)})"

    def _repeated_group(self, depth: int) -> str:
        return self._repeated_unless_heavy(self._group(depth))

    def _exclusion(self, depth: int) -> str:
        excluded = f"{{- {self._sequence(depth - 1, 2)} -}}"
        return self._repeated_unless_heavy(excluded) if self.choose.chance(0.2) else excluded

    def _repeated_unless_heavy(self, part: str) -> str:
        """A loop over one way to match has as many ways as it has rounds; over several, powers of that."""
        if self.weight > 1:
            return part
        self.weight += re.fullmatch(r"[-(){A-E }]*", part) is None
        return part + self._quantifier()

    def _permutation(self, depth: int) -> str:
        if self.weight > 1:
            return self._group(depth)
        self.weight += 1
        return f"PERMUTE({', '.join(self._sequence(depth - 1, 1) for _ in range(self.choose.integer(2, 3)))})"


# Clauses.

_ORDERS = {
    "number": listed("""t; t; t; t; t; t; t DESC; f; f DESC, t; t, x DESC NULLS LAST; y NULLS LAST; d NULLS FIRST;
        t % 4, t DESC; t + x NULLS LAST"""),
    "time": listed("ts NULLS LAST; ts DESC NULLS LAST; ts NULLS FIRST, t; ts; dd NULLS LAST; dd DESC NULLS FIRST, t"),
    "other": listed("s NULLS FIRST, t; b DESC NULLS LAST, t"),
}
_WINDOWS = {
    "number": listed("3; 2.5; 1; 6"),
    "time": listed("5 seconds; INTERVAL '1' DAY; 2 days; 1 minute"),
    "other": (),
}
_PARTITIONS = listed("; ; g; g; g, b; x % 2; coalesce(s, 'p') = 'p'; s IS NULL, g; b; y")
_ROWS_PER_MATCH = listed("""; ONE ROW PER MATCH; ONE ROW PER MATCH; ALL ROWS PER MATCH;
    ALL ROWS PER MATCH SHOW EMPTY MATCHES; ALL ROWS PER MATCH OMIT EMPTY MATCHES;
    ALL ROWS PER MATCH WITH UNMATCHED ROWS""")
_OFTEN_TRUE = listed("""{own}.x >= 1; {own}.x < 3; x IS NOT NULL; s <> 'q'; ({own}.b OR x > 0); {own}.y < 3; d > -1;
    coalesce({own}.x >= PREV({own}.x), TRUE); {own}.x <= NEXT({own}.x); coalesce({own}.x <> PREV({own}.x, 2), TRUE);
    {own}.t - FIRST({own}.t) < 5; count({own}.*) <= 3; count(*) < 5; sum({own}.x) <= 6;
    coalesce(avg({other}.x) < 3, TRUE); coalesce(min(y) < 1, TRUE); sum(d) <= 5; max(x) >= {own}.x;
    coalesce({own}.ts - PREV({own}.ts) <= 10 seconds, TRUE); coalesce({own}.x >= {other}.x, TRUE); dd >= FIRST(dd);
    coalesce({own}.x <> LAST({other}.x, 1), TRUE); coalesce(PREV(LAST({other}.x, 1), 2) < 3, TRUE);
    coalesce(NEXT(FIRST({other}.x)) >= 1, TRUE); CLASSIFIER() = '{own}'; MATCH_NUMBER() <= 4;
    coalesce(PREV(CLASSIFIER()) <> 'B', TRUE)""")
_MAY_FAIL = listed("""(CAST({string} AS integer) > 0); (CAST({float} AS integer) >= 0); (x * 9223372036854775807 > 0);
    (sum(x * 4611686018427387904) > 0); (CAST(d * 1000 AS decimal(5, 2)) > 0)""")


def make_clause(choose: Choose) -> str:
    writer = PatternWriter(choose, "ABCDE"[: choose.integer(1, 5)])
    pattern = writer.pattern()
    variables = sorted(set(re.findall(r"\b[A-E]\b", pattern)))
    subsets = _subsets(choose, variables)
    names = [*variables, *subsets]
    partition = choose.choice(_PARTITIONS)
    order_kind = choose.choice(("number", "number", "time", "number", "time", "other"))
    rows_per_match = choose.choice(_ROWS_PER_MATCH[:-1] if "{-" in pattern else _ROWS_PER_MATCH)
    all_matches = choose.chance(0.12)
    weight = writer.weight + writer.loops // 4 + (all_matches and writer.loops > 1)
    parts = [
        ("PARTITION BY", [partition] if partition else []),
        ("ORDER BY", [choose.choice(_ORDERS[order_kind])]),
        ("MEASURES", _measures(choose, names, least=0 if "ALL ROWS" in rows_per_match else 1)),
        (rows_per_match, [""]),
        ("ALL MATCHES" if all_matches else _after_match(choose, names), [""]),
        ("PATTERN", [f"({pattern})"]),
        ("SUBSET", [f"{name} = ({', '.join(members)})" for name, members in subsets.items()]),
        (_bounds(choose, order_kind, weight), [""]),
        ("DEFINE", _definitions(choose, variables, names)),
    ]
    return "\n".join(f"{word} {', '.join(items)}".strip() for word, items in parts if word and items)


def _subsets(choose: Choose, variables: Sequence[str]) -> dict[str, list[str]]:
    if not variables or not choose.chance(0.35):
        return {}
    names = ("U", "W")[: choose.integer(1, 2)]
    return {name: [item for item in variables if choose.chance(0.6)] or [variables[0]] for name in names}


def _measures(choose: Choose, names: Sequence[str], least: int) -> list[str]:
    references = RowReferences(choose, names, in_define=False)
    values = Expressions(choose, references, _TEMPLATES)

    def measure() -> str:
        if choose.chance(0.01):
            return values.filled(choose.choice(_MAY_FAIL), 0)
        return references.array() if choose.chance(0.15) else values.value(choose.choice(TYPES))

    return [f"{measure()} AS m{number}" for number in range(choose.integer(least, 4))]


def _after_match(choose: Choose, names: Sequence[str]) -> str:
    if choose.chance(0.35):
        return ""
    if not names or choose.chance(0.7):
        return "AFTER MATCH SKIP " + choose.choice(("PAST LAST ROW", "TO NEXT ROW"))
    return f"AFTER MATCH SKIP TO {choose.choice(('LAST ', 'FIRST ', ''))}{choose.choice(names[::-1])}"


def _bounds(choose: Choose, order_kind: str, weight: int) -> str:
    rows = choose.integer(3, max(4, 6 - weight)) if weight else choose.integer(3, 9)
    window, length = "", ""
    if choose.chance(0.35):
        window = f"WITHIN {choose.choice((*_WINDOWS[order_kind], f'{rows} ROWS'))}"
    if weight and choose.chance(0.4):
        window = f"WITHIN {rows} ROWS"
    elif weight or choose.chance(0.1):
        length = f"MAXLENGTH {rows}"
    return f"{window} {length}".strip()


def _definitions(choose: Choose, variables: Iterable[str], names: Sequence[str]) -> list[str]:
    return [f"{name} AS {_condition(choose, name, names)}" for name in variables if choose.chance(0.75)]


def _condition(choose: Choose, own: str, names: Sequence[str]) -> str:
    values = Expressions(choose, RowReferences(choose, (own, *names), in_define=True), _TEMPLATES)
    if choose.chance(0.01):
        return values.filled(choose.choice(_MAY_FAIL), 0)
    often = choose.choice(_OFTEN_TRUE).replace("{own}", own).replace("{other}", choose.choice(names))
    return likely(choose, often, values)


# Cases.


@st.composite
def row_tables(draw: st.DrawFn) -> pa.Table:
    return make_table(by_hypothesis(draw))


@st.composite
def row_clauses(draw: st.DrawFn) -> str:
    return make_clause(by_hypothesis(draw))


def random_row_case(random: Random) -> tuple[str, pa.Table]:
    """A clause and a table, much faster than Hypothesis draws them."""
    choose = by_random(random)
    return make_clause(choose), make_table(choose)
