"""Paths into nested columns: `payload.user.id`, `tags[0]`, `scores['home']`.

A path is an attribute whose name is the path's own text. What reads the input makes a column of that name for it, so
that nothing behind it knows of nesting. A column that has such a name already is what the path means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleene.ir import expr as ir
from kleene.ir.query import QueryDefinition
from kleene.remembered import remembered
from kleene.source import NO_SPAN, SourceText, Span

Step = str | int
"""A field of a struct or a key of a map, or a position in a list, from 0, or a key that is a number."""

_NAME = r"[^\W\d]\w*"
_FIRST = re.compile(rf"({_NAME})|`((?:[^`]|``)+)`")
_STEP = re.compile(rf"\.({_NAME})|\.`((?:[^`]|``)+)`|\[(\d{{1,9}})\]|\['((?:[^']|'')*)'\]")


@dataclass(frozen=True, slots=True)
class Path:
    column: str
    steps: tuple[Step, ...]


def path_text(column: str, steps: Sequence[Step]) -> str:
    """How a path is written; a column alone is called as it is.

    >>> path_text("payload", ["user", "first name", 0]), path_text("a column", ["id"]), path_text("a column", [])
    ("payload.user['first name'][0]", '`a column`.id', 'a column')
    """
    if not steps:
        return column
    first = column if re.fullmatch(_NAME, column) else f"`{column.replace('`', '``')}`"
    return first + "".join(map(_step_text, steps))


def _step_text(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if re.fullmatch(_NAME, step) else "['" + step.replace("'", "''") + "']"


def path_of(name: str) -> Path | None:
    """The path that the name of an attribute writes, if it writes one.

    >>> path_of("payload.user['first name'][0]")
    Path(column='payload', steps=('user', 'first name', 0))
    >>> path_of("price")
    """
    first = _FIRST.match(name)
    if first is None or first.end() == len(name):
        return None
    steps: list[Step] = []
    at = first.end()
    while at < len(name):
        step = _STEP.match(name, at)
        if step is None:
            return None
        field, quoted, index, key = step.groups()
        steps.append(int(index) if index is not None else _unquoted(field, quoted, key))
        at = step.end()
    return Path(first[1] or first[2].replace("``", "`"), tuple(steps))


def _unquoted(field: str | None, quoted: str | None, key: str | None) -> str:
    if quoted is not None:
        return quoted.replace("``", "`")
    return field if field is not None else (key or "").replace("''", "'")


def last_name(path: Path) -> str:
    """What a value is called that has no other name: the innermost field, as in SQL."""
    return next((step for step in reversed(path.steps) if isinstance(step, str)), path.column)


@dataclass(frozen=True, slots=True)
class Mention:
    """The name of a column, where it was written, and whether only that spelling will do."""

    name: str
    exact: bool = True
    span: Span = NO_SPAN
    source: SourceText | None = None


@remembered
def mentions(definition: QueryDefinition) -> tuple[Mention, ...]:
    """Every column that the query names."""
    return tuple(_mentioned(definition))


def _mentioned(definition: QueryDefinition) -> Iterator[Mention]:
    for test in definition.equivalence_tests:
        yield Mention(test.attribute, True, test.span, definition.source)
    for expression, source in spoken(definition):
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute):
                yield Mention(node.name, node.exact, node.name_span, source)


def spoken(definition: QueryDefinition) -> list[tuple[ir.Expr, SourceText]]:
    """Every expression of the query, with the text that it stands in."""
    keys = [*definition.partition_by, *(item.expression for item in definition.order_by)]
    if definition.frame is not None and definition.frame.end is not None:
        keys.append(definition.frame.end)
    single = (*definition.predicates, *keys, *([] if definition.having is None else [definition.having]))
    found = [(expression, definition.source) for expression in single]
    found += [(item.condition, item.source or definition.source) for item in definition.definitions]
    found += [(item.expression, item.source or definition.source) for item in definition.measures or ()]
    return found
