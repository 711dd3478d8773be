"""Names for columns that the text gives none: those that Spark would give them, as far as they are simple."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import exp

Node: TypeAlias = Any


def name_columns(tree: Node, dialect: Any) -> Node:
    """The tree with an alias for every expression in a SELECT list that has no name of its own."""
    for select in tree.find_all(exp.Select):
        select.set("expressions", [item if _has_name(item) else _named(item, dialect) for item in select.expressions])
    return tree


def written_names(tree: Node) -> list[str] | None:
    """The names of the result's columns as the text writes them; None if they are those of tables."""
    select = _first_select(tree)
    items = [] if select is None else select.expressions
    if not items or any(item.is_star or _makes_rows(item) for item in items):
        return None
    return [item.alias_or_name for item in items]


def _has_name(item: Node) -> bool:
    return isinstance(item, (exp.Alias, exp.Aliases, exp.Column, exp.Dot)) or item.is_star or _makes_rows(item)


def _named(item: Node, dialect: Any) -> Node:
    return exp.alias_(item.copy(), _name(item, dialect), quoted=True)


def _first_select(tree: Node) -> Node | None:
    """The SELECT that names the columns of the result."""
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None


def _makes_rows(item: Node) -> bool:
    return item.find(exp.Explode, exp.Posexplode) is not None


def _name(item: Node, dialect: Any) -> str:
    def plain(node: Node) -> Node:
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return exp.Count(this=exp.Literal.number(1))
        if isinstance(node, exp.Paren):
            return node.this
        if isinstance(node, exp.Literal) and node.is_string:
            return exp.to_identifier(node.name)
        return node

    shown = item.copy().transform(plain, copy=False)
    for node in reversed(list(shown.find_all(exp.Binary, exp.Not))):  # from the inside out
        if not isinstance(node, exp.Dot):
            group = exp.Paren()
            if node is shown:
                shown = group
            else:
                node.replace(group)
            group.set("this", node)
    return str(shown.sql(dialect=dialect, normalize_functions="lower", comments=False))
