"""A row pattern to its position automaton, edges in order of preference.

A state is "this occurrence of a variable was matched last"; an edge leads to the occurrence that may come next, or to
the final state. There are no ε-moves (Glushkov's construction, with lists where it has sets): the order of a state's
edges is the order in which the standard prefers what follows. Repetitions with bounds are written out; those without
go back to where they began. PERMUTE is the alternation of its orders, which share what they have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from math import factorial

from kleene.analysis.analyzed import Conjunct
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.model import (
    Accepting,
    AtEnd,
    AtStart,
    Automaton,
    Defined,
    Edge,
    Formula,
    FormulaClass,
    Move,
    Policy,
    State,
    all_of,
    classified,
)
from kleene.errors import UnsupportedError
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Selection
from kleene.ir.pattern import (
    Alternation,
    Anchor,
    Exclusion,
    Pattern,
    Permutation,
    Repeat,
    Sequence,
    Variable,
    has_one_way,
)
from kleene.ir.query import QueryDefinition

MOST_STATES = 20_000
MOST_EDGES = 500_000


def positions_of(query: AnalyzedRowPattern) -> Automaton:
    definition = query.definition
    if state_count(definition.pattern) > MOST_STATES:
        raise UnsupportedError(f"the automaton of the pattern has more than {MOST_STATES:,} states")
    builder = _Builder()
    part = builder.part(definition.pattern, False)
    final = len(builder.states) + 1
    made: dict[Way, Edge] = {}
    ways = [part.first, *(builder.following[number] for number in range(len(builder.states)))]
    edges = tuple(tuple(_edge(way, builder, final, made) for way in own) for own in ways)
    return Automaton(
        (State("start"), *_labelled(builder.states), State("F")),
        (*edges, ()),
        _policy(definition),
        tuple((name, _definition(name, condition, query)) for name, condition in query.conditions),
    )


def _policy(definition: QueryDefinition) -> Policy:
    match definition.selection:
        case Selection.ALL_MATCHES:
            return Policy(Accepting.EVERY_RUN)
        case Selection.FIRST_COMPLETED:
            return Policy(Accepting.LONGEST)
    return Policy(Accepting.MOST_PREFERRED, definition.after_match or AfterMatch())


def _definition(name: str, condition: ir.Expr, query: AnalyzedRowPattern) -> Formula:
    """What DEFINE says of the variable, in parts that must all hold."""
    parts = classified(map(Conjunct, _conjuncts(condition)), lambda part: _class_of(part, name, query.members))
    return all_of(parts)


def _conjuncts(condition: ir.Expr) -> list[ir.Expr]:
    if isinstance(condition, ir.And):
        return [part for operand in condition.operands for part in _conjuncts(operand)]
    return [condition]


def _class_of(expression: ir.Expr, own: str, members: Mapping[str, Collection[str]]) -> FormulaClass:
    """What it takes to decide an expression about the row that is tried for the variable `own`."""
    found, unread = FormulaClass.SINGLE_EVENT, [expression]
    while unread:
        match node := unread.pop():
            case ir.Attribute(variable=variable) | ir.Classifier(variable=variable):
                if variable is not None and own not in members[variable]:
                    return FormulaClass.RUN
            case ir.Navigation(variable=variable, from_last=True, offset=0, shift=shift) if (
                variable is None or own in members[variable]
            ):
                found = FormulaClass.NEIGHBOUR if shift else found
            case ir.Navigation() | ir.Aggregate() | ir.MatchNumber() | ir.Events() | ir.PythonCall():
                return FormulaClass.RUN
            case _:
                unread += ir.children(node)
    return found


def state_count(pattern: Pattern) -> int:
    """How many states the automaton of the pattern has.

    >>> state_count(Permutation(tuple(map(Variable, "ABCDEFGH"))))
    1024
    """
    match pattern:
        case Variable():
            return 1
        case Sequence(elements=parts) | Alternation(alternatives=parts):
            return sum(map(state_count, parts))
        case Permutation(elements=parts):
            copies = 2 ** (len(parts) - 1) if has_one_way(pattern.elements) else factorial(len(parts))
            return copies * sum(map(state_count, parts))
        case Repeat(element=element, least=least, most=most):
            return state_count(element) * (max(least, 1) if most is None else most)
        case Exclusion(element=element):
            return state_count(element)
    return 0


Way = tuple[int | None, bool, bool]
"""To a state, or (None) through the part without a row; and whether the partition must begin or end there."""
_THROUGH: Way = (None, False, False)


@dataclass(slots=True)
class _Part:
    """A piece of the pattern: the ways into it, most preferred first, and the states it is made of."""

    first: list[Way]
    states: list[int] = field(default_factory=list)


class _Builder:
    """Builds parts from the leaves up; `following` of a state has `_THROUGH` where its part is left."""

    def __init__(self) -> None:
        self.states: list[tuple[str, bool]] = []  # the variable, and whether it is excluded
        self.following: dict[int, list[Way]] = {}
        self._edges = 0

    def part(self, pattern: Pattern, excluded: bool) -> _Part:
        match pattern:
            case Variable(name=name):
                return self._variable(name or "", excluded)
            case Sequence(elements=elements):
                return self._sequence([self.part(element, excluded) for element in elements])
            case Alternation(alternatives=alternatives):
                return self._alternation([self.part(choice, excluded) for choice in alternatives])
            case Permutation(elements=elements) if has_one_way(elements):
                return self._permutation(elements, excluded)
            case Permutation(elements=elements):
                return self._alternation([self.part(Sequence(order), excluded) for order in permutations(elements)])
            case Repeat():
                return self._repeat(pattern, excluded)
            case Exclusion(element=element):
                return self.part(element, True)
            case Anchor(at_start=at_start):
                return _Part([(None, at_start, not at_start)])
        raise AssertionError(f"no rule for {type(pattern).__name__}")

    def _variable(self, name: str, excluded: bool) -> _Part:
        number = len(self.states)
        self.states.append((name, excluded))
        self.following[number] = [_THROUGH]
        return _Part([(number, False, False)], [number])

    def _sequence(self, parts: list[_Part]) -> _Part:
        whole = _Part([_THROUGH])
        for part in reversed(parts):
            self._continue(part, whole.first)
            whole = _Part(_spliced(part.first, whole.first), part.states + whole.states)
        return whole

    def _alternation(self, parts: list[_Part]) -> _Part:
        return _Part(
            _distinct(way for part in parts for way in part.first), [state for part in parts for state in part.states]
        )

    def _repeat(self, repeat: Repeat, excluded: bool) -> _Part:
        """X{2,} is X X+, and X{1,3} is X (X (X)?)?."""
        if repeat.most is None:
            before = [self.part(repeat.element, excluded) for _ in range(repeat.least - 1)]
            return self._sequence([*before, self._loop(self.part(repeat.element, excluded), repeat)])
        required = [self.part(repeat.element, excluded) for _ in range(repeat.least)]
        optional = _Part([_THROUGH])
        for _ in range(repeat.most - repeat.least):
            more = self._sequence([self.part(repeat.element, excluded), optional])
            optional = _Part(_optional(more.first, repeat.greedy), more.states)
        return self._sequence([*required, optional])

    def _loop(self, part: _Part, repeat: Repeat) -> _Part:
        """X* and X+: each round goes through the same states, so that nested loops are as small as what they repeat."""
        # A round that consumes nothing leaves the loop, which is what going through the part means here.
        again = _optional(part.first, repeat.greedy)
        self._continue(part, again)
        return _Part(part.first if repeat.least else again, part.states)

    def _permutation(self, elements: tuple[Pattern, ...], excluded: bool) -> _Part:
        """The orders of elements that match in one way only: what is left decides, not the order of what went before.

        PERMUTE(A, B, C) is A (B C | C B) | B (A C | C A) | C (A B | B A), which is the same preference.
        """
        made: dict[int, list[Way]] = {0: [_THROUGH]}
        states: list[int] = []

        def ways_into(left: int) -> list[Way]:  # a bit for each element
            if left not in made:
                ways: list[Way] = []
                for number in [number for number in range(len(elements)) if left >> number & 1]:
                    part = self.part(elements[number], excluded)
                    after = ways_into(left & ~(1 << number))
                    self._continue(part, after)
                    ways += _spliced(part.first, after)
                    states.extend(part.states)
                made[left] = _distinct(ways)
            return made[left]

        return _Part(ways_into(2 ** len(elements) - 1), states)

    def _continue(self, part: _Part, after: list[Way]) -> None:
        """Where a state leaves the part, it goes on with the ways after."""
        if after == [_THROUGH]:
            return
        for state in part.states:
            before = self.following[state]
            self.following[state] = _spliced(before, after)
            self._edges += len(self.following[state]) - len(before)
            if self._edges > MOST_EDGES:
                raise UnsupportedError(f"the automaton of the pattern has more than {MOST_EDGES:,} edges")


def _optional(first: list[Way], greedy: bool) -> list[Way]:
    return _distinct([*first, _THROUGH] if greedy else [_THROUGH, *first])


def _spliced(ways: list[Way], after: list[Way]) -> list[Way]:
    """The ways, with those that lead through continued by the ways after; anchors on the path add up."""
    found: list[Way] = []
    for target, at_start, at_end in ways:
        if target is None:
            found += [(state, at_start or start, at_end or end) for state, start, end in after]
        else:
            found.append((target, at_start, at_end))
    return _distinct(found)


def _distinct(ways: Iterable[Way]) -> list[Way]:
    """Each way once; a way that is open already needs no anchored copy behind it."""
    found: dict[Way, None] = {}
    for way in ways:
        if (way[0], False, False) not in found:
            found.setdefault(way)
    return list(found)


def _edge(way: Way, builder: _Builder, final: int, made: dict[Way, Edge]) -> Edge:
    """The edge for a way; equal ways share it, since patterns may have very many."""
    if way not in made:
        target, at_start, at_end = way
        anchors: list[Formula] = [*[AtStart()] * at_start, *[AtEnd()] * at_end]
        if target is None:
            made[way] = Edge(Move.PROCEED, final, all_of(anchors))
        else:
            defined = Defined(builder.states[target][0])
            made[way] = Edge(Move.BEGIN, target + 1, all_of([*anchors, defined]))
    return made[way]


def _labelled(states: list[tuple[str, bool]]) -> Iterator[State]:
    """The states by their variables, numbered where one stands in the pattern more than once."""
    total = Counter(variable for variable, _ in states)
    seen: Counter[str] = Counter()
    for variable, is_excluded in states:
        seen[variable] += 1
        label = variable if total[variable] == 1 else f"{variable}·{seen[variable]}"
        yield State(f"{{-{label}-}}" if is_excluded else label, variable, None, is_excluded)
