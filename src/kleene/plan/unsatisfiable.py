"""Predicates that no events can satisfy together, found before any event is read.

A predicate becomes facts about values: attributes, and other expressions, which are not looked into. With constants,
values form a graph, an edge from what is lower to what is higher. What is on a cycle is equal, so that a cycle with a
`<` or a `!=` in it is a contradiction. Of OR and IN every alternative is tried. What is not understood says nothing.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, NamedTuple

from kleene.errors import printable
from kleene.ir import expr as ir
from kleene.ir.expr import Expr
from kleene.ir.functions.names import is_known
from kleene.ir.text import expression_text
from kleene.schema import BOOLEAN, DATE, FLOAT, INTEGER, STRING, UNKNOWN, DecimalType, TimestampType, Type

_MOST_WORK = 50_000
_MOST_NAMED, _MOST_CHARACTERS = 3, 165
_DAY = 86_400_000_000
_STEPS = {INTEGER: 1, BOOLEAN: 1, DATE: _DAY}
_NO_PREDICATE = -1
_TRUE, _FALSE = (ir.Literal(value, BOOLEAN, type=BOOLEAN) for value in (True, False))

Constant = tuple[bool, Any]
"""Whether it is a string, and its value: times in microseconds, decimals as fractions."""
_NO_VALUE: Constant = (False, None)
"""NULL or NaN: no comparison with it is true."""
Node = int | Constant  # the number of a value, or a constant


class _Fact(NamedTuple):
    sign: str  # < <= != or, of one value, null present
    left: Node
    right: Node
    predicate: int  # its place in the list


Edges = dict[Node, list[_Fact]]
Clause = tuple[int, list[list[_Fact]]]
"""A predicate, and its alternatives: all facts in one of the lists must be true."""


def why_never(predicates: Sequence[Expr]) -> str | None:
    """Why no events satisfy all of these predicates, in words; None if some may (or if it cannot be told).

    >>> x = ir.Attribute("a", "x", type=INTEGER)
    >>> above, below = (ir.Comparison(sign, x, ir.Literal(5, INTEGER, type=INTEGER)) for sign in "><")
    >>> why_never([above, below])
    'a.x > 5 and a.x < 5 cannot both hold'
    """
    reader = _Reader()
    clauses = [(number, reader.alternatives(item, number)) for number, item in enumerate(predicates)]
    facts = [fact for _, parts in clauses if len(parts) == 1 for fact in parts[0]]
    # An alternative without facts may always be chosen.
    open_clauses = [clause for clause in clauses if len(clause[1]) != 1 and all(clause[1])]
    found = _Search().refutation(facts, sorted(open_clauses, key=lambda clause: len(clause[1])))
    return None if found is None else _reason([predicates[number] for number in sorted(found)])


def _reason(predicates: list[Expr]) -> str:
    most = _MOST_CHARACTERS // min(_MOST_NAMED, len(predicates))
    texts = [printable(expression_text(item), most) for item in predicates]
    texts = [f"({text})" if isinstance(item, ir.Or) else text for text, item in zip(texts, predicates, strict=True)]
    how = {1: "cannot", 2: "cannot both"}.get(len(texts), "cannot all")
    if len(texts) > _MOST_NAMED:
        texts[_MOST_NAMED:] = [f"{len(texts) - _MOST_NAMED} more"]
    return f"{', '.join(texts[:-1])}{' and ' if texts[1:] else ''}{texts[-1]} {how} hold"


class _Reader:
    """Makes facts of predicates. Values are numbered, equal expressions alike."""

    def __init__(self) -> None:
        self._numbers: dict[Expr, int] = {}
        self._types: list[Type] = []

    def alternatives(self, predicate: Expr, number: int) -> list[list[_Fact]]:
        atoms: Sequence[Expr] = [predicate]
        match predicate:
            case ir.Or(operands=operands):
                return [facts for operand in operands for facts in self.alternatives(operand, number)]
            case ir.In(operand=operand, choices=choices):
                atoms = [ir.Comparison("=", operand, choice) for choice in choices]
        return [facts for atom in atoms if (facts := self._facts(atom, number)) is not None]

    def _facts(self, atom: Expr, number: int) -> list[_Fact] | None:
        """What must be so for the atom to be true, as far as it is understood; None if it never is true."""
        match atom:
            case ir.IfPresent():
                return []
            case ir.Comparison(operator="!=", left=left, right=ir.Literal(value=bool() as value)):
                return self._compared("=", left, _FALSE if value else _TRUE, number)
            case ir.Comparison(operator=sign, left=left, right=right):
                return self._compared(sign, left, right, number)
            case ir.IsNull(operand=operand):
                node = self._node(operand)
                return [_Fact("null", node, node, number)] if isinstance(node, int) else []
            case ir.Not(operand=ir.IsNull(operand=operand)):
                return None if _constant(operand) == _NO_VALUE else self._present(operand, number)
            case ir.Not(operand=ir.In(operand=operand, choices=choices)):
                parts = [self._compared("!=", operand, choice, number) for choice in choices]
                return None if None in parts else [fact for part in parts for fact in part or ()]
            case ir.Not(operand=operand):
                return self._compared("=", operand, _FALSE, number)
        return self._compared("=", atom, _TRUE, number)

    def _compared(self, sign: str, left: Expr, right: Expr, number: int) -> list[_Fact] | None:
        if sign in (">", ">="):
            sign, left, right = sign.replace(">", "<"), right, left
        constants = {_constant(left), _constant(right)} - {None}
        if _NO_VALUE in constants:
            return None
        facts = self._present(left, number) + self._present(right, number) + self._ordered(sign, left, right, number)
        if ir.Cast in (type(left), type(right)) and constants and all(map(_is_exact_in_float, constants)):
            facts += self._ordered(sign, _bare(left, from_float=True), _bare(right, from_float=True), number)
        return facts

    def _present(self, operand: Expr, number: int) -> list[_Fact]:
        is_null_of_null = isinstance(operand, ir.Arithmetic | ir.Negate | ir.Cast | ir.Like)
        nodes = map(self._node, [operand, *(ir.children(operand) if is_null_of_null else ())])
        return [_Fact("present", node, node, number) for node in nodes if isinstance(node, int)]

    def _ordered(self, sign: str, left: Expr, right: Expr, number: int) -> list[_Fact]:
        low, high = self._node(left), self._node(right)
        if low is None or high is None:
            return []
        types = [self._types[node] for node in (low, high) if isinstance(node, int)]
        if UNKNOWN in types and not _compare_alike_in_every_type(left, right):
            return []
        if sign != "=":
            return [self._tightened(sign, low, high, number)]
        return [self._tightened("<=", low, high, number), self._tightened("<=", high, low, number)]

    def _tightened(self, sign: str, low: Node, high: Node, number: int) -> _Fact:
        """The fact, its constant moved to the nearest value that the type of the other side has."""
        match low, high:
            case int(), (_, bound) if sign != "!=" and (step := _step(self._types[low])):
                sign, high = "<=", (False, (bound // step - (sign == "<" and bound % step == 0)) * step)
            case (_, bound), int() if sign != "!=" and (step := _step(self._types[high])):
                sign, low = "<=", (False, (-(-bound // step) + (sign == "<" and bound % step == 0)) * step)
        return _Fact(sign, low, high, number)

    def _node(self, expression: Expr) -> Node | None:
        """The constant or the value; None where equal expressions may have different values."""
        bare = _bare(expression)
        type_ = _certain_type(bare)
        if type_ is None or isinstance(bare, ir.Literal):
            return _constant(bare)
        number = self._numbers.setdefault(bare, len(self._types))
        if number == len(self._types):
            self._types.append(type_)
        return number


def _certain_type(expression: Expr) -> Type | None:
    """The type, UNKNOWN where it follows from one that is; None where equal expressions may have different values."""
    if isinstance(expression, ir.Attribute | ir.Literal):
        return expression.type or UNKNOWN
    nodes = list(ir.walk(expression))
    if any(isinstance(n, ir.PythonCall) or (isinstance(n, ir.Function) and not is_known(n)) for n in nodes):
        return None
    floats = [node.value for node in nodes if isinstance(node, ir.Literal) and node.of_type == FLOAT]
    is_unknown = any(node.type in (None, UNKNOWN) for node in nodes)
    # -0.0 equals 0.0, but not as an operand; and next to a decimal, a float would be the decimal that was written.
    if any(str(value) == "-0.0" for value in floats) or (is_unknown and floats):
        return None
    return UNKNOWN if is_unknown else expression.type


def _bare(expression: Expr, from_float: bool = False) -> Expr:
    """The expression without conversions that keep every value as it is or, `from_float`, every integer below 2**53."""
    while isinstance(expression, ir.Cast):
        source, target = _certain_type(expression.operand), expression.to
        is_wider = isinstance(source, DecimalType) and isinstance(target, DecimalType) and source.scale <= target.scale
        is_exact = source in (INTEGER, DATE) and isinstance(target, DecimalType | TimestampType)
        if not (is_wider or is_exact or (from_float and (source, target) == (INTEGER, FLOAT))):
            break
        expression = expression.operand
    return expression


def _constant(expression: Expr) -> Constant | None:
    bare = _bare(expression)
    if not isinstance(bare, ir.Literal):
        return None
    value: Any = bare.value
    if value is None or value != value:
        return _NO_VALUE
    if isinstance(bare.of_type, DecimalType):
        return False, Fraction(value, 10**bare.of_type.scale)
    return isinstance(value, str), value * _DAY if bare.of_type == DATE else value


def _is_exact_in_float(constant: Constant | None) -> bool:
    """Whether an integer compares with the constant as it does after conversion to float."""
    return constant is not None and not constant[0] and abs(constant[1]) < 2**53


def _compare_alike_in_every_type(left: Expr, right: Expr) -> bool:
    """Whether conversions, which a type yet unknown may bring, keep comparisons like this one in agreement."""
    match left, right:
        case ir.Attribute(name=name), ir.Attribute(name=other):
            return name == other
        case (ir.Literal(of_type=type_) as literal, _) | (_, ir.Literal(of_type=type_) as literal):
            return type_ in (STRING, BOOLEAN) or (type_ == INTEGER and _is_exact_in_float(_constant(literal)))
    return False


def _step(type_: Type) -> int | Fraction | None:
    """The distance between neighbouring values of the type, where they are the multiples of one number."""
    return Fraction(1, 10**type_.scale) if isinstance(type_, DecimalType) else _STEPS.get(type_)


class _Search:
    """Tries alternatives until all are refuted, or some are not, or enough has been tried."""

    def __init__(self) -> None:
        self._work_left = _MOST_WORK

    def refutation(self, facts: list[_Fact], clauses: list[Clause]) -> set[int] | None:
        """Predicates that cannot all hold."""
        found = _conflict(facts)
        if found is not None or not clauses:
            return found
        (predicate, alternatives), *rest = clauses
        blamed = {predicate}
        for alternative in alternatives:
            self._work_left -= len(facts) + len(alternative)
            found = self.refutation(facts + alternative, rest) if self._work_left > 0 else None
            if found is None or predicate not in found:
                return found
            blamed |= found
        return blamed


def _conflict(facts: list[_Fact]) -> set[int] | None:
    """The predicates of facts that contradict each other."""
    nulls = {fact.left: fact.predicate for fact in facts if fact.sign == "null"}
    edges: Edges = defaultdict(list)
    constants = sorted({node for fact in facts for node in (fact.left, fact.right) if isinstance(node, tuple)})
    for fact in chain(facts, (_Fact("<", low, high, _NO_PREDICATE) for low, high in pairwise(constants))):
        if fact.sign in ("<", "<="):
            edges[fact.left].append(fact)
    classes = _classes(edges)
    for fact in chain(facts, *edges.values()):
        if fact.sign == "present" and fact.left in nulls:
            return {fact.predicate, nulls[fact.left]}
        if fact.sign in ("<", "!=") and classes.get(fact.left, fact.left) == classes.get(fact.right, fact.right):
            there = _path(edges, fact.left, fact.right) if fact.sign == "!=" else ()
            cycle = [fact, *there, *_path(edges, fact.right, fact.left)]
            return {item.predicate for item in cycle} - {_NO_PREDICATE}
    return None


def _classes(edges: Edges) -> dict[Node, Node]:
    """For each node one of those that it is on a cycle with, the same for all of them (Kosaraju's algorithm)."""
    backwards: dict[Node, list[Node]] = defaultdict(list)
    finished: list[Node] = []
    waiting = [(node, False) for node in edges]
    entered = set[Node]()
    while waiting:
        node, is_finished = waiting.pop()
        if is_finished:
            finished.append(node)
        elif node not in entered:
            entered.add(node)
            waiting += [(node, True), *((fact.right, False) for fact in edges.get(node, ()))]
            for fact in edges.get(node, ()):
                backwards[fact.right].append(node)
    classes: dict[Node, Node] = {}
    for member in reversed(finished):
        found = [member]
        while found:
            node = found.pop()
            if node not in classes:
                classes[node] = member
                found += backwards[node]
    return classes


def _path(edges: Edges, start: Node, goal: Node) -> Iterator[_Fact]:
    """The facts on a path that needs as few predicates as possible, from its end."""
    reached: dict[Node, _Fact | None] = {}
    waiting: deque[tuple[Node, _Fact | None]] = deque([(start, None)])
    while goal not in reached:
        node, fact = waiting.popleft()
        if node not in reached:
            reached[node] = fact
            for edge in edges.get(node, ()):
                (waiting.appendleft if edge.predicate == _NO_PREDICATE else waiting.append)((edge.right, edge))
    while (last := reached[goal]) is not None:
        yield last
        goal = last.left
