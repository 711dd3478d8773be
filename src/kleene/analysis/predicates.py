"""WHERE to conjuncts, each in its place.

SEMANTICS §3 "Predicate placement", after SASE+ 2008 §3.2 step 2: conjunctive normal form, then every conjunct goes to
the variable that is bound last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

from kleene.analysis.analyzed import Conjunct
from kleene.analysis.scope import Scope
from kleene.errors import AnalysisError, listed, printable
from kleene.ir import expr as ir
from kleene.ir.expr import Position

MOST_CONJUNCTS = 5_000


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


def conjuncts(predicates: Iterable[ir.Expr], scope: Scope) -> list[ir.Expr]:
    """The predicates in conjunctive normal form, each conjunct once.

    Atoms whose attributes can be missing are wrapped in `IfPresent`, after NOT has been pushed inward.
    """
    found: dict[ir.Expr, None] = {}
    for predicate in predicates:
        for clause in _clauses(inverted_inward(predicate, scope), scope):
            atoms = tuple(dict.fromkeys(clause))
            found[atoms[0] if len(atoms) == 1 else _or(atoms)] = None
        if len(found) > MOST_CONJUNCTS:
            raise _too_many_conjuncts(predicate, scope)
    return list(found)


def _too_many_conjuncts(predicate: ir.Expr, scope: Scope) -> AnalysisError:
    return scope.fail(
        f"the condition has more than {MOST_CONJUNCTS:,} conjuncts when OR is distributed over AND",
        predicate.span,
        "Write it as a conjunction of smaller conditions, or as several queries.",
    )


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


def _clauses(expression: ir.Expr, scope: Scope) -> list[tuple[ir.Expr, ...]]:
    """Conjunctive normal form: a list of alternatives of which, for each item, one must hold."""
    match expression:
        case ir.And(operands=operands):
            return [clause for operand in operands for clause in _clauses(operand, scope)]
        case ir.Or(operands=operands):
            choices = [_clauses(operand, scope) for operand in operands]
            count = 1
            for choice in choices:
                count *= len(choice)
                if count > MOST_CONJUNCTS:
                    raise _too_many_conjuncts(expression, scope)
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
