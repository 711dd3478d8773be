"""Hypothesis strategies: small event tables, and SASE+ queries that the language allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from independent_checker import conjuncts
from structured_query import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Component,
    Condition,
    Constant,
    IsNull,
    Key,
    Length,
    Not,
    Or,
    StructuredQuery,
    Value,
    Window,
    is_indexed,
    references,
    variables,
)

EVENT_SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "t": pa.int64(),
        "id": pa.int64(),
        "x": pa.int64(),
        "y": pa.float64(),
        "s": pa.string(),
        "n": pa.int64(),
    }
)
TYPES = ("A", "B", "C", "D")
UNMATCHED_TYPE = "Z"
STRATEGIES = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match")
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
NUMBERS = ("x", "y", "t", "id")
WORDS = ("s", "type")

Events = list[dict[str, Any]]


def event_table(events: Events) -> pa.Table:
    return pa.Table.from_pylist(events, schema=EVENT_SCHEMA)


# Events.


@st.composite
def event_lists(draw: st.DrawFn, types: Sequence[str] = TYPES) -> Events:
    """Events in no order of time, with ties; `n` is their number in the input."""
    event = st.fixed_dictionaries(
        {
            # The types of the query stand first and more than once, so that most tables hold matches.
            "type": st.sampled_from([*types, *types, *types, *types, "D", UNMATCHED_TYPE]),
            "t": st.integers(0, 9),
            "id": st.sampled_from([1, 1, 1, 1, 2, 2, None]),
            "x": st.sampled_from([0, 1, 1, 2, 2, 3, 3, -1, None]),
            "y": st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.5, 2.5, -1.5, float("nan"), None]),
            "s": st.sampled_from(["p", "q", "", None]),
        }
    )
    # Large tables first: what Hypothesis draws most is the first, and an empty table tells little.
    large = st.lists(event, min_size=6, max_size=8)
    events = draw(st.one_of(large, large, st.lists(event, max_size=5)))
    return [event | {"n": number} for number, event in enumerate(events)]


# Queries.


@st.composite
def queries(draw: st.DrawFn, format: str | None = None, all_named: bool = False) -> StructuredQuery:
    """Queries that obey the rules of the language; those that break one are for tests/cases/errors.toml."""
    components = draw(component_lists())
    keys = draw(st.sampled_from([(), (), (Key("id"),), (Key("id"),), (Key("id", 1),), (Key("id"), Key("s"))]))
    strategy = draw(st.sampled_from([None, *STRATEGIES]))
    if strategy == "partition_contiguity" and not keys:
        keys = (Key("id"),)
    count = draw(st.sampled_from([0, 1, 1, 1, 2, 3]))
    predicates = draw(st.lists(conditions(components), min_size=count, max_size=count))
    predicates = [predicate for predicate in predicates if all(map(is_legal_among(components), conjuncts(predicate)))]
    positives = [component for component in components if not component.is_negative]
    having = draw(match_conditions(positives)) if draw(st.integers(0, 4)) == 4 else None
    mentioned = {name for condition in [*predicates, *([having] if having else [])] for name in variables(condition)}
    return StructuredQuery(
        tuple(
            Component(
                component.variable,
                component.types,
                component.is_kleene,
                component.is_negative,
                all_named or component.variable in mentioned or draw(st.integers(0, 3)) > 0,
            )
            for component in components
        ),
        strategy,
        keys,
        tuple(predicates),
        draw(windows(needs_time=components[0].is_negative or components[-1].is_negative)),
        having,
        format or draw(st.sampled_from(["all", "non_overlapping"])),
    )


@st.composite
def component_lists(draw: st.DrawFn) -> list[Component]:
    """One to three positive components, and at most two negative ones anywhere among them."""
    count = draw(st.integers(1, 3))
    kinds = draw(st.lists(st.sampled_from(["single", "kleene"]), min_size=count, max_size=count))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        kinds.insert(draw(st.integers(0, len(kinds))), "negative")
    return [
        Component(name, draw(type_choices()), is_kleene=kind == "kleene", is_negative=kind == "negative")
        for name, kind in zip("abcde", kinds, strict=False)
    ]


def type_choices() -> st.SearchStrategy[tuple[str, ...]]:
    one = st.sampled_from(["A", "A", "B", "B", "C", "D"]).map(lambda name: (name,))
    several = st.lists(st.sampled_from(TYPES), min_size=2, max_size=3, unique=True).map(tuple)
    return one | one | several


def windows(needs_time: bool) -> st.SearchStrategy[Window | None]:
    sizes = st.sampled_from([1, 2, 3, 5, 6, 8, 10, 20])
    times = sizes.map(lambda size: Window(size, is_events=False))
    return times if needs_time else st.none() | times | sizes.map(lambda size: Window(size, is_events=True))


# Conditions of WHERE.


def conditions(components: Sequence[Component]) -> st.SearchStrategy[Condition]:
    choices = [comparisons(components), null_tests(components), ranges(components)]
    if len(components) > 1:
        choices.append(links(components))
    kleene = [component.variable for component in components if component.is_kleene]
    if kleene:
        choices += [steps(kleene), running_aggregates(kleene), completions(kleene)]
    return combinations_of(st.one_of(*choices))


def combinations_of(atoms: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(atoms, min_size=2, max_size=2).map(tuple)
    pairs = several.map(Or) | several.map(And)
    return st.one_of(
        atoms,
        atoms,
        atoms,
        atoms.map(Not),
        pairs,
        pairs.map(Not),
        st.tuples(atoms, pairs).map(Or),
        st.tuples(atoms.map(Not), pairs).map(And).map(Not),
    )


@st.composite
def comparisons(draw: st.DrawFn, components: Sequence[Component]) -> Condition:
    """Of one event with a constant, of two events, of an aggregate with either."""
    sign = draw(st.sampled_from(SIGNS))
    if draw(st.integers(0, 5)) == 0:
        word = st.sampled_from(["p", "q", "A", "B", ""]).map(Constant) | attributes(components, WORDS)
        return Comparison(sign, draw(attributes(components, WORDS)), draw(word))
    left = draw(numbers(components))
    return Comparison(sign, left, draw(constants() | numbers(components)))


@st.composite
def null_tests(draw: st.DrawFn, components: Sequence[Component]) -> Condition:
    return IsNull(draw(attributes(components, ("id", "x", "y", "s")) | numbers(components)), draw(st.booleans()))


@st.composite
def ranges(draw: st.DrawFn, components: Sequence[Component]) -> Condition:
    low, high = draw(constants() | attributes(components)), draw(constants() | attributes(components))
    return Between(draw(numbers(components)), low, high)


@st.composite
def links(draw: st.DrawFn, components: Sequence[Component]) -> Condition:
    """b.x > a.x and its like, of one event with another, or with every event of a Kleene variable."""
    earlier, later = draw(st.lists(st.sampled_from(components), min_size=2, max_size=2, unique=True))
    name = draw(st.sampled_from(NUMBERS))
    return Comparison(
        draw(st.sampled_from(SIGNS)),
        Attribute(later.variable, "every", name),
        Attribute(earlier.variable, "every", name),
    )


@st.composite
def steps(draw: st.DrawFn, kleene: Sequence[str]) -> Condition:
    """a[i].x > a[i-1].x and its like."""
    variable, name = draw(st.sampled_from(kleene)), draw(st.sampled_from(NUMBERS))
    earlier = draw(st.sampled_from(["i-1", "first"]))
    return Comparison(draw(st.sampled_from(SIGNS)), Attribute(variable, "i", name), Attribute(variable, earlier, name))


@st.composite
def running_aggregates(draw: st.DrawFn, kleene: Sequence[str]) -> Condition:
    """a[i].x >= avg(a[..i-1].x) and its like."""
    variable = draw(st.sampled_from(kleene))
    left = draw(constants() | st.sampled_from(NUMBERS).map(lambda name: Attribute(variable, "i", name)))
    return Comparison(draw(st.sampled_from(SIGNS)), left, draw(aggregates(variable, is_so_far=True)))


@st.composite
def completions(draw: st.DrawFn, kleene: Sequence[str]) -> Condition:
    """a.LEN >= 2, sum(a[].x) < 3, a[a.LEN].x = 1 and their like."""
    return Comparison(
        draw(st.sampled_from(SIGNS)), draw(completed_numbers(draw(st.sampled_from(kleene)))), draw(constants())
    )


def completed_numbers(variable: str) -> st.SearchStrategy[Value]:
    last = st.sampled_from(NUMBERS).map(lambda name: Attribute(variable, "last", name))
    return st.just(Length(variable)) | last | aggregates(variable, is_so_far=False)


def numbers(components: Sequence[Component]) -> st.SearchStrategy[Value]:
    plain = attributes(components)
    kleene = [component.variable for component in components if component.is_kleene]
    if kleene:
        completed = st.sampled_from(kleene).flatmap(completed_numbers)
        so_far = st.sampled_from(kleene).flatmap(lambda variable: aggregates(variable, is_so_far=True))
        plain = st.one_of(plain, plain, plain, completed, so_far)
    return st.one_of(plain, plain, plain, calculations(plain))


def calculations(operands: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.builds(Arithmetic, st.sampled_from("+-*/%"), operands, constants() | operands)


@st.composite
def attributes(draw: st.DrawFn, components: Sequence[Component], names: Sequence[str] = NUMBERS) -> Attribute:
    component = draw(st.sampled_from(components))
    places = ["every", "first", "i", "i-1", "last"] if component.is_kleene else ["every"]
    return Attribute(component.variable, draw(st.sampled_from(places)), draw(st.sampled_from(names)))


@st.composite
def aggregates(draw: st.DrawFn, variable: str, is_so_far: bool) -> Aggregate:
    function = draw(st.sampled_from(["count", "sum", "avg", "min", "max", "first", "last"]))
    # What min and max make of NaN, SEMANTICS.md does not say.
    names = ["x", "t", "id"] if function in ("min", "max") else [*NUMBERS]
    if function == "count":
        names = [None, "x", "s"]
    return Aggregate(function, variable, is_so_far, draw(st.sampled_from(names)))


def constants() -> st.SearchStrategy[Value]:
    return st.sampled_from([1, 0, 2, 3, 5, 0.5, 1.5]).map(Constant)


def is_legal_among(components: Sequence[Component]) -> Callable[[Condition], bool]:
    """Whether a conjunct mentions at most one negative variable, and indexes as the language allows."""
    negative = {component.variable for component in components if component.is_negative}

    def is_legal(conjunct: Condition) -> bool:
        indexed = {reference.variable for reference in references(conjunct) if is_indexed(reference)}
        every = {
            reference.variable
            for reference in references(conjunct)
            if isinstance(reference, Attribute) and reference.place == "every"
        }
        return len(variables(conjunct) & negative) <= 1 and len(indexed) <= 1 and not every & indexed

    return is_legal


# Conditions of HAVING.


def match_conditions(positives: Sequence[Component]) -> st.SearchStrategy[Condition]:
    """Conditions on values that a match has one of."""

    def values(component: Component) -> st.SearchStrategy[Value]:
        if not component.is_kleene:
            return st.sampled_from(NUMBERS).map(lambda name: Attribute(component.variable, "every", name))
        first = st.sampled_from(NUMBERS).map(lambda name: Attribute(component.variable, "first", name))
        return first | completed_numbers(component.variable)

    value = st.sampled_from(positives).flatmap(values)
    comparison = st.builds(Comparison, st.sampled_from(SIGNS), value | calculations(value), constants() | value)
    return combinations_of(comparison | st.builds(IsNull, value, st.booleans()))


# Both.


@st.composite
def queries_with_events(
    draw: st.DrawFn, format: str | None = None, all_named: bool = False
) -> tuple[StructuredQuery, Events]:
    query = draw(queries(format, all_named))
    types = sorted({name for component in query.positives for name in component.types})
    return query, draw(event_lists(types))


class EnoughError(Exception):
    """Ends the drawing of examples."""


def some_examples(
    strategy: st.SearchStrategy[Any], wanted: Callable[[Any], bool], count: int, number: int = 0
) -> list[Any]:
    """The first `count` values that the strategy draws, from the seed `number`, among those that are wanted."""
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=2000,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        if len(found) == count:
            raise EnoughError
        if wanted(example):
            found.append(example)

    with suppress(EnoughError):
        collect()
    assert len(found) == count, f"only {len(found)} of {count} wanted examples were drawn"
    return found
