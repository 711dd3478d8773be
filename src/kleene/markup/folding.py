"""EXPLAIN's text to a tree that folds: operators stand in one another, and each section opens and closes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from kleene.markup.highlight import highlighted
from kleene.markup.notebook import in_notebook

_BRANCH = re.compile(r"^( *)└─ (.*)$")
_OPEN = ("plan", "run", "scan", "on Spark")


class Explanation(str):
    """EXPLAIN's text. It prints as it is, and in a notebook it is a tree that folds."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return in_notebook(explanation_html(self))


def explanation_html(text: str, with_query: bool = True) -> str:
    """The query, the facts about it, and the sections behind them."""
    blocks = text.split("\n\n")
    query, rest = [blocks[0]], blocks[1:]
    while rest and not _is_facts(rest[0]):  # a query may have empty lines of its own
        query.append(rest.pop(0))
    facts = rest.pop(0) if rest else ""
    shown = f'<pre class="kleene-query">{highlighted(chr(10).join(query))}</pre>' if with_query else ""
    return "".join([shown, _facts_html(facts), *(_section_html("\n".join(block)) for block in _sections(rest))])


def _is_facts(block: str) -> bool:
    return re.match(r"[a-z]+ +\S", block) is not None


def _sections(blocks: Sequence[str]) -> list[list[str]]:
    """Blocks by their headings: one that is indented goes on with the section before."""
    found: list[list[str]] = []
    for block in blocks:
        if found and (block.startswith(" ") or not block):
            found[-1].append(block)
        else:
            found.append([block])
    return found


def _facts_html(block: str) -> str:
    rows = []
    for line in block.splitlines():
        name, _, fact = line.partition(" ")
        rows.append(f'<tr><th scope="row">{escape(name)}</th><td>{escape(fact.strip())}</td></tr>')
    return f'<table class="kleene-facts"><tbody>{"".join(rows)}</tbody></table>' if rows else ""


def _section_html(block: str) -> str:
    heading, _, body = block.partition("\n")
    lines = [line.removeprefix("  ") for line in body.splitlines()]
    inner = plan_html(lines) if heading == "plan" else f"<pre>{escape(chr(10).join(lines))}</pre>"
    is_open = " open" if heading in _OPEN else ""
    return f"<details{is_open}><summary>{escape(heading)}</summary>{inner}</details>"


def plan_html(lines: Sequence[str]) -> str:
    """The operators of a plan, each inside of the one that reads it.

    >>> print(plan_html(["TF transformation", "│  tag", "└─ SS→ sequence scan", "      (A a, B b)"]))
    <details open><summary>TF transformation</summary><ul><li>tag</li></ul><details open><summary>SS→ sequence scan\
</summary><ul><li>(A a, B b)</li></ul></details></details>
    """
    operators: list[tuple[str, list[str]]] = []
    for line in lines:
        branch = _BRANCH.match(line)
        if branch is not None or not operators:
            operators.append((line if branch is None else branch.group(2), []))
        else:
            operators[-1][1].append(line.strip(" │"))
    html = ""
    for name, details in reversed(operators):
        listed = "".join(f"<li>{escape(detail)}</li>" for detail in details if detail)
        inner = (f"<ul>{listed}</ul>" if listed else "") + html
        html = f"<details open><summary>{escape(name)}</summary>{inner}</details>"
    return html
