"""Expressions of a query block in which some part is over a pattern: what can be computed before, and what is left.

Text with stand-ins for the calls is read by sqlglot. Of such an expression, each part that needs no call becomes a
column of the inner query; the outer query computes the rest from these columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from kleene.errors import QuerySyntaxError, printable
from kleene.source import Location

DIALECT = "spark"
Tree = exp.Expr


@dataclass(frozen=True, slots=True)
class Mixed:
    """An expression, and the name that the query gives it."""

    tree: Tree
    alias: str | None = None


def read_mixed(text: str, location: Location | None) -> Mixed:
    """The item of a SELECT list."""
    tree = _parsed(f"SELECT {text}", location).expressions[0]
    if isinstance(tree, exp.Alias):
        return Mixed(tree.this, tree.alias)
    return Mixed(tree)


def read_order(text: str, location: Location | None) -> list[exp.Ordered]:
    """The keys behind ORDER BY."""
    order = _parsed(f"SELECT 1 ORDER BY {text}", location).args.get("order")
    assert isinstance(order, exp.Order)
    return list(order.expressions)


def _parsed(text: str, location: Location | None) -> exp.Select:
    try:
        tree = sqlglot.parse_one(text, read=DIALECT)
    except (SqlglotError, RecursionError) as error:
        said = printable(next(iter(str(error).splitlines()), ""), 200)
        raise QuerySyntaxError(f"an expression around the pattern cannot be read: {said}", location) from None
    if not isinstance(tree, exp.Select):
        raise QuerySyntaxError("an expression around the pattern cannot be read", location)
    return tree


def sql_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@dataclass(slots=True)
class Pieces:
    """The columns of the inner query, each by the text that it is computed from."""

    secret: str
    known: dict[str, str]  # columns of the input that are there in any case, by their names in small letters
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)  # stand-ins of calls, and what the outer query writes for them

    def add(self, text: str) -> str:
        """The name of the column that the text is computed in."""
        return self.add_all(text, 1)[0]

    def add_all(self, text: str, count: int) -> tuple[str, ...]:
        """The names of the columns that the text stands for: several where it is a star."""
        if text.lower() in self.known:
            return (self.known[text.lower()],)
        if text not in self.names:
            number = len(self.names)
            self.names[text] = tuple(f"kleene_column{number}_{at}_{self.secret}" for at in range(count))
            if re.fullmatch(r"[^\W\d]\w*", text) and count == 1:  # messages may name it
                self.known[text.lower()] = text
                self.names[text] = (text,)
        return self.names[text]

    def texts(self) -> list[str]:
        return list(self.names)

    def columns(self) -> list[str]:
        return [name for names in self.names.values() for name in names]

    def stand_in(self, written: str) -> str:
        name = f"kleene_call{len(self.calls)}_{self.secret}"
        self.calls[name] = written
        return name

    def outer(self, tree: Tree, aliases: Mapping[str, str]) -> str:
        """What the outer query writes; `aliases` are names of its own that the expression may use."""
        return self._outer(tree, aliases).sql(dialect=DIALECT)

    def ordered(self, key: exp.Ordered, aliases: Mapping[str, str]) -> str:
        changed = key.copy()
        changed.set("this", self._outer(key.this, aliases))
        return changed.sql(dialect=DIALECT)

    def _outer(self, node: Tree, aliases: Mapping[str, str]) -> Tree:
        written = self._written(node, aliases)
        if written is not None:
            return sqlglot.parse_one(written, read=DIALECT)
        if not any(self._written(part, aliases) is not None for part in node.walk()):
            return self._computed_before(node, aliases)
        return _with_parts(node, lambda part: self._outer(part, aliases))

    def _written(self, node: Tree, aliases: Mapping[str, str]) -> str | None:
        if not isinstance(node, exp.Column) or node.table:
            return None
        return self.calls.get(node.name) or aliases.get(node.name.lower())

    def _computed_before(self, node: Tree, aliases: Mapping[str, str]) -> Tree:
        """A part without a call: a constant stays, all else is a column."""
        if not node.find(exp.Column, exp.AggFunc, exp.Window, exp.Subquery, exp.Star, exp.Anonymous):
            return node.copy()
        is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
        is_list = isinstance(node.parent, exp.In) and node.arg_key == "query"
        if isinstance(node, (exp.Condition, exp.Subquery)) and not is_branch and not is_list:
            return exp.column(exp.to_identifier(self.add(node.sql(dialect=DIALECT)), quoted=True))
        return node.copy() if is_list else _with_parts(node, lambda part: self._outer(part, aliases))


def _with_parts(node: Tree, change: Callable[[Tree], Tree]) -> Tree:
    changed = node.copy()
    for key, value in node.args.items():
        changed.set(key, _changed(value, change))
    return changed


def _changed(value: Any, change: Callable[[Tree], Tree]) -> Any:
    if isinstance(value, list):
        return [_changed(item, change) for item in value]
    if isinstance(value, Tree) and not isinstance(value, (exp.Identifier, exp.DataType, exp.Var)):
        return change(value)
    return value
