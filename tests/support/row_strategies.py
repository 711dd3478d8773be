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

_TEMPLATES = TEMPLATES | {
    "string": (*TEMPLATES["string"], "({string} || {string})", "array_join(array({string}, {string}), '-')"),
    "int": (*TEMPLATES["int"], *listed("array({int}, {int})[{int}]; size(array({any})); element_at(array({int}), 1)")),
    "float": (*TEMPLATES["float"], *listed("array_max(array({float}, {int})); named_struct('v', {float}).v")),
    "bool": (
        *TEMPLATES["bool"],
        *listed("""(array({int}, {number}) = array({int}, {int})); array_contains(array({string}), {string});
            (struct({int}, {string}) <> struct({int}, {string})); (map('k', {int})['k'] > 0)"""),
    ),
}
_NESTED = listed("array({any}); struct({int}, {string}); named_struct('a', {any}, 'b', array({int})); map('k', {int})")

_SPREADS = ("stddev", "stddev_pop", "variance", "var_pop", "std", "var_samp")
_OF_ANY_TYPE = (*("any_value", "arbitrary") * 2, *("max_by", "min_by") * 3, "mode")
_ARRAYS = ("collect_list", "collect_set", "max", "min", "max_by", "min_by")
_DIRECTIONS = ("", "", " DESC", " DESC NULLS FIRST", " NULLS FIRST", " ASC NULLS LAST")


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

    def inside(self, type_: str, variable: str | None = None, in_aggregate: bool = False) -> str:
        """What may stand in a navigation or an aggregate: a value of one variable's rows."""
        one = self._variable() if variable is None else variable

        def value(kind: str) -> str:
            if in_aggregate and kind == "int" and self.choose.chance(0.1):
                return "MATCH_NUMBER()"
            return self._of_variable(one, kind)

        return Expressions(self.choose, value, _TEMPLATES, False).value(type_, int(self.choose.chance(0.25)))

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
        variable = self._variable()
        if type_ == "int" and self.choose.chance(0.5):
            return self._semantics() + self._count(variable) + self._filter(variable)
        functions = {
            "int": ("sum", "min", "max", "count_if"),
            "float": (*("sum", "min", "max", "avg", "avg", "avg"), *_SPREADS, "median"),
            "decimal": ("sum", "min", "max"),
            "duration": ("sum", "min", "max"),
            "bool": ("min", "bool_and", "bool_and", "every", "bool_or", "any", "some", "max"),
            "string": ("min", "max", "listagg", "string_agg"),
        }.get(type_, ("min", "max"))
        function = self.choose.choice((*functions, *(() if self.choose.chance(0.5) else _OF_ANY_TYPE)))
        return f"{self._semantics()}{self._called(function, type_, variable)}"

    def _called(self, function: str, type_: str, variable: str) -> str:
        """A call of an aggregate that gives a value of the type."""
        of_number = function in (*_SPREADS, "avg", "median")
        kind = "bool" if function == "count_if" else self.choose.choice(NUMBERS) if of_number else type_
        distinct = "DISTINCT " if self.choose.chance(0.2) else ""
        further = ""
        if function in ("max_by", "min_by"):
            further = f", {self._inside(self.choose.choice(TYPES), variable)}"
        elif function in ("listagg", "string_agg"):
            further = self.choose.choice(("", ", '-'"))
        order = self._order(variable) if self.choose.chance(0.4 if "agg" in function else 0.03) else ""
        inside = f"{distinct}{self._inside(kind, variable)}{further}"
        if order and function == "listagg":
            call = f"{function}({inside}) WITHIN GROUP ({order.strip()})"
        else:
            call = f"{function}({inside}{order})"
        return call + self._filter(variable)

    def _inside(self, type_: str, variable: str) -> str:
        return self.inside(type_, variable, in_aggregate=True)

    def _filter(self, variable: str) -> str:
        return f" FILTER (WHERE {self._inside('bool', variable)})" if self.choose.chance(0.12) else ""

    def _order(self, variable: str) -> str:
        keys = [
            self._inside(self.choose.choice(TYPES), variable) + self.choose.choice(_DIRECTIONS)
            for _ in range(self.choose.integer(1, 2))
        ]
        return f" ORDER BY {', '.join(keys)}"

    def _count(self, variable: str) -> str:
        if self.choose.chance(0.6):
            return f"count({variable}.*)" if variable else self.choose.choice(("count(*)", "count(*)", "count()"))
        distinct = "DISTINCT " if self.choose.chance(0.5) else ""
        further = f", {self._inside(self.choose.choice(TYPES), variable)}" if self.choose.chance(0.1) else ""
        return f"count({distinct}{self._inside(self.choose.choice(TYPES), variable)}{further})"

    def _of_the_match(self, type_: str) -> str:
        return "MATCH_NUMBER()" if type_ == "int" else f"{self._semantics()}CLASSIFIER({self._variable()})"

    def array(self) -> str:
        variable = self._variable()
        distinct = "DISTINCT " if self.choose.chance(0.3) else ""
        values = self._inside(self.choose.choice(TYPES), variable)
        if not variable and self.choose.chance(0.1):
            values = "g"
        function = self.choose.choice(("array_agg", "array_agg", "array_agg", *_ARRAYS))
        further = f", {self._inside(self.choose.choice(TYPES), variable)}" if function.endswith("_by") else ""
        further += f", {self.choose.integer(1, 3)}" if function.startswith(("max", "min")) else ""
        order = self._order(variable) if self.choose.chance(0.25) else ""
        return f"{self._semantics()}{function}({distinct}{values}{further}{order}){self._filter(variable)}"


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
    coalesce(PREV(CLASSIFIER()) <> 'B', TRUE); bool_and({own}.x < 3); count_if(x >= 2) <= 2;
    count(*) FILTER (WHERE x >= 2) <= 2; coalesce(max_by(t, x) <= t, TRUE); count(DISTINCT x) <= 3;
    count(DISTINCT {other}.s) <= 2; coalesce(sum(DISTINCT {own}.x) <= 5, TRUE); count(DISTINCT CLASSIFIER()) <= 2;
    coalesce(stddev(x) < 1.5, TRUE); coalesce(min_by({other}.s, {other}.y) <> 'q', TRUE); sum(MATCH_NUMBER()) < 9;
    coalesce(any_value({other}.x) < 3, TRUE)""")
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
        if choose.chance(0.05):
            return values.filled(choose.choice(_NESTED), 1)
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


_WITH_MATCHES = listed("A B*; (A | B)+; A? B{,3}; A {- B+ -} C?; (A B?)+ C*; A B? C{1,3}; (A B* | C)+?; A{2} B*")
_ALL_SHAPES = listed("ONE ROW PER MATCH; ALL ROWS PER MATCH; ALL ROWS PER MATCH; ALL ROWS PER MATCH OMIT EMPTY MATCHES")


def random_measures_case(random: Random) -> tuple[str, pa.Table]:
    """Many measures over a pattern that nearly every table has matches of; U is a subset."""
    choose = by_random(random)
    measures = [item for _ in range(3) for item in _measures(choose, ("A", "B", "U"), least=1)]
    named = ", ".join(f"{item.rsplit(' AS ', 1)[0]} AS m{number}" for number, item in enumerate(measures))
    often = choose.choice(("B.x >= 1", "B.x IS NOT NULL", "B.b OR B.t > 3", "TRUE"))
    clause = f"""PARTITION BY {choose.choice(("g", "g", "b"))} ORDER BY {choose.choice(("t", "t", "f", "t DESC"))}
        MEASURES {named} {choose.choice(_ALL_SHAPES)} {choose.choice(("", "", "AFTER MATCH SKIP TO NEXT ROW"))}
        PATTERN ({choose.choice(_WITH_MATCHES)}) SUBSET U = (A, B) DEFINE B AS {often}, A AS x < 3 OR x IS NULL"""
    return clause, make_table(choose)
