"""WHERE to conjuncts, each in its place.

SEMANTICS §3 "Predicate placement", after SASE+ 2008 §3.2 step 2: conjunctive normal form, then every conjunct goes to
the variable that is bound last. Where OR over AND would make too many conjuncts, those of a variable stand together as
one condition, which says the same (`_by_moment`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import product
from math import prod

from kleene.analysis.analyzed import Conjunct
from kleene.analysis.scope import Scope
from kleene.errors import listed, printable
from kleene.ir import expr as ir
from kleene.ir.expr import Position

MANY_CONJUNCTS = 64  # what is distributed in any case
MOST_CONJUNCTS = 1_000  # of a condition that cannot be left together


class Moment(IntEnum):
    """When in the life of a variable a predicate can be decided."""

    BEGIN = 0  # its first or only event
    TAKE = 1  # each later event
    COMPLETE = 2  # when it is left


_MOMENT_OF_POSITION = {
    Position.EACH: Moment.BEGIN,
    Position.FIRST: Moment.BEGIN,
    Position.CURRENT: Moment.TAKE,
    Position.PREVIOUS: Moment.TAKE,
    Position.SO_FAR: Moment.TAKE,
    Position.LAST: Moment.COMPLETE,
    Position.ALL: Moment.COMPLETE,
}
_INDEXED_BY_I = (Position.CURRENT, Position.PREVIOUS, Position.SO_FAR)


@dataclass(frozen=True, slots=True)
class Placed:
    """A conjunct with the variable it belongs to; `moments` has two members where it stands on begin and on take."""

    conjunct: Conjunct
    variable: str
    moments: tuple[Moment, ...]


def conjuncts(predicates: Iterable[ir.Expr], order: dict[str, int], scope: Scope) -> list[ir.Expr]:
    """The predicates in conjunctive normal form, each conjunct once; `order` says when variables are bound.

    Atoms whose attributes can be missing are wrapped in `IfPresent`, after NOT has been pushed inward.
    """
    found: dict[ir.Expr, None] = {}
    for predicate in predicates:
        for condition in _parts(inverted_inward(predicate, scope)):
            found |= dict.fromkeys(_conjuncts(condition, order, scope))
    return list(found)


def _conjuncts(condition: ir.Expr, order: dict[str, int], scope: Scope) -> Iterable[ir.Expr]:
    count = _clause_count(condition)
    if count > MANY_CONJUNCTS and _can_stay_together(condition, scope):
        return _by_moment(condition, order)
    if count > MOST_CONJUNCTS:
        raise scope.fail(
            f"the condition has more than {MOST_CONJUNCTS:,} conjuncts when OR is distributed over AND",
            condition.span,
            "Write it as a conjunction of smaller conditions, or as several queries.",
        )
    clauses = (tuple(dict.fromkeys(clause)) for clause in _clauses(condition))
    return [atoms[0] if len(atoms) == 1 else _or(atoms) for atoms in clauses]


def _parts(condition: ir.Expr) -> Iterable[ir.Expr]:
    if isinstance(condition, ir.And):
        for operand in condition.operands:
            yield from _parts(operand)
    else:
        yield condition


def _clause_count(expression: ir.Expr) -> int:
    match expression:
        case ir.And(operands=operands):
            return sum(map(_clause_count, operands))
        case ir.Or(operands=operands):
            return prod(map(_clause_count, operands))
    return 1


def _can_stay_together(condition: ir.Expr, scope: Scope) -> bool:
    """Whether no conjunct of the condition is about each event of a Kleene variable, or about a negation.

    Those are decided one by one: where there is no a[i], a conjunct that mentions it holds, and others need not.
    """
    variables = scope.variables
    return not any(
        variables[name].is_negative
        or position in _INDEXED_BY_I
        or (position is Position.EACH and variables[name].is_kleene)
        for name, position in _references(condition)
    )


def _by_moment(condition: ir.Expr, order: dict[str, int]) -> list[ir.Expr]:
    """For each moment at which a part is decided, all conjuncts decided by then, as one condition.

    A conjunct that needs more contains a part that is not decided yet; with that part TRUE it says nothing. So the
    condition with all such parts TRUE is the conjunction of the others, however many they are:
    (a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4) is (a.x = 1 OR a.x = 3) when a is bound.
    """
    moments = {atom: _decided_at(atom, order) for atom in _atoms(condition)}
    found: dict[ir.Expr, None] = {}
    for moment in sorted(set(moments.values())):
        known = _with_later_true(condition, {atom for atom, when in moments.items() if when <= moment})
        if known is not None:
            found |= dict.fromkeys(_parts(known))
    return list(found)


def _with_later_true(condition: ir.Expr, known: set[ir.Expr]) -> ir.Expr | None:
    """The condition with all atoms TRUE that are not known; None where that makes it TRUE."""
    match condition:
        case ir.And(operands=operands):
            left = [part for part in (_with_later_true(operand, known) for operand in operands) if part is not None]
            return left[0] if len(left) == 1 else replace(condition, operands=tuple(left)) if left else None
        case ir.Or(operands=operands):
            parts = [_with_later_true(operand, known) for operand in operands]
            sure = tuple(part for part in parts if part is not None)
            return replace(condition, operands=sure) if len(sure) == len(parts) else None
    return condition if condition in known else None


def _atoms(condition: ir.Expr) -> Iterable[ir.Expr]:
    match condition:
        case ir.And(operands=operands) | ir.Or(operands=operands):
            for operand in operands:
                yield from _atoms(operand)
        case _:
            yield condition


def _decided_at(atom: ir.Expr, order: dict[str, int]) -> tuple[int, Moment]:
    moments = [(order[name], _MOMENT_OF_POSITION[position]) for name, position in _references(atom)]
    return max(moments, default=(0, Moment.BEGIN))


def _or(atoms: tuple[ir.Expr, ...]) -> ir.Or:
    return ir.Or(atoms, span=atoms[0].span, type=atoms[0].type)


def inverted_inward(expression: ir.Expr, scope: Scope, negated: bool = False) -> ir.Expr:
    """The same condition with NOT only on atoms that cannot absorb it, and `IfPresent` around atoms that need it."""
    match expression:
        case ir.Not(operand=operand):
            return inverted_inward(operand, scope, not negated)
        case ir.And(operands=operands) | ir.Or(operands=operands):
            parts = tuple(inverted_inward(operand, scope, negated) for operand in operands)
            kind = ir.And if isinstance(expression, ir.And) != negated else ir.Or
            return kind(parts, span=expression.span, type=expression.type)
        case ir.Comparison(operator=operator) if negated:
            atom: ir.Expr = ir.Comparison(
                ir.NEGATED_COMPARISON[operator],
                expression.left,
                expression.right,
                span=expression.span,
                type=expression.type,
            )
        case _ if negated:
            atom = ir.Not(expression, span=expression.span, type=expression.type)
        case _:
            atom = expression
    if any(isinstance(node, ir.Attribute) and scope.may_be_missing(node) for node in _outside_aggregates(atom)):
        return ir.IfPresent(atom, span=atom.span, type=atom.type)
    return atom


def _outside_aggregates(expression: ir.Expr) -> Iterable[ir.Expr]:
    """Nodes that are not inside an aggregate, which skips the events that lack its attribute."""
    if isinstance(expression, ir.Aggregate):
        return
    yield expression
    for child in ir.children(expression):
        yield from _outside_aggregates(child)


def _clauses(expression: ir.Expr) -> list[tuple[ir.Expr, ...]]:
    """Conjunctive normal form: a list of alternatives of which, for each item, one must hold."""
    match expression:
        case ir.And(operands=operands):
            return [clause for operand in operands for clause in _clauses(operand)]
        case ir.Or(operands=operands):
            choices = map(_clauses, operands)
            return [tuple(atom for part in combination for atom in part) for combination in product(*choices)]
    return [(expression,)]


def place(conjunct: ir.Expr, order: dict[str, int], scope: Scope) -> Placed:
    """Where the conjunct belongs; `order` says when the pattern binds each positive variable."""
    references = list(_references(conjunct))
    negative = sorted({name for name, _ in references if scope.variables[name].is_negative})
    if len(negative) > 1:
        raise scope.fail(
            f"one predicate mentions two negative components, {listed(negative)}",
            conjunct.span,
            "Each negation is judged alone; compare each of them with a positive component.",
        )
    indexed = _indexed(conjunct, references, scope)
    if negative:
        return Placed(Conjunct(conjunct, indexed), negative[0], (Moment.BEGIN,))
    if not references:
        return Placed(Conjunct(conjunct), next(iter(order)), (Moment.BEGIN,))
    last, moment = max(
        ((name, _MOMENT_OF_POSITION[position]) for name, position in references),
        key=lambda item: (order[item[0]], item[1]),
    )
    speaks_of_each = (last, Position.EACH) in references and scope.variables[last].is_kleene
    if moment is Moment.BEGIN and speaks_of_each:
        return Placed(Conjunct(conjunct, indexed), last, (Moment.BEGIN, Moment.TAKE))
    return Placed(Conjunct(conjunct, indexed), last, (moment,))


def _references(expression: ir.Expr) -> Iterable[tuple[str, Position]]:
    for node in ir.walk(expression):
        match node:
            case ir.Attribute(variable=str() as variable, position=position):
                yield variable, position
            case ir.Events(variable=str() as variable, position=position):
                yield variable, position
            case ir.Length(variable=variable):
                yield variable, Position.ALL


def _indexed(conjunct: ir.Expr, references: list[tuple[str, Position]], scope: Scope) -> tuple[tuple[str, int], ...]:
    by_i = sorted({name for name, position in references if position in _INDEXED_BY_I})
    each = sorted({n for n, position in references if position is Position.EACH and scope.variables[n].is_kleene})
    if len(by_i) > 1:
        raise scope.fail(
            f"one predicate indexes two Kleene variables with i, '{printable(by_i[0])}' and '{printable(by_i[1])}'",
            conjunct.span,
            f"Use {by_i[0]}[i] with {by_i[1]}[1], {by_i[1]}[{by_i[1]}.LEN] or an aggregate over {by_i[1]}[].",
        )
    for name in by_i:
        if name in each:
            raise scope.fail(
                f"one predicate mentions '{printable(name)}' both with the index i and without an index",
                conjunct.span,
                f"Without an index every event is meant; write {name}[1] for the first, {name}[i] for those after it.",
            )
    return tuple(sorted([(name, 1) for name in by_i] + [(name, 0) for name in each]))
