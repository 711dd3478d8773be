"""Names for columns that the text gives none: those that Spark would give them, as far as they are simple."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlglot import exp

Node: TypeAlias = Any


def name_columns(tree: Node, dialect: Any) -> Node:
    """The tree with an alias for every expression in a SELECT list that has no name of its own."""
    outermost = _first_select(tree)
    for select in tree.find_all(exp.Select):
        items = []
        for item in select.expressions:
            is_named = isinstance(item, (exp.Alias, exp.Aliases, exp.Star)) or item.is_star or _makes_rows(item)
            if is_named or (isinstance(item, (exp.Column, exp.Dot)) and select is not outermost):
                items.append(item)
            else:
                name = item.name if isinstance(item, (exp.Column, exp.Dot)) else _name(item, dialect)
                items.append(exp.alias_(item.copy(), name, quoted=True))
        select.set("expressions", items)
    return tree


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
    for node in reversed(list(shown.find_all(exp.Binary))):  # from the inside out
        if not isinstance(node, exp.Dot):
            group = exp.Paren()
            if node is shown:
                shown = group
            else:
                node.replace(group)
            group.set("this", node)
    return str(shown.sql(dialect=dialect, normalize_functions="lower", comments=False))
