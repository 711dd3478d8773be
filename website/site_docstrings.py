"""Docstrings of the project, as mkdocstrings wants them: examples in fences, and arguments in a section.

A docstring here says `name: what it is` for an argument, at the beginning of a line, and goes on with deeper lines.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

_DOCS = Path(__file__).parent.parent / "docs"
_ENTRY = re.compile(r"(?P<names>\w+(, \w+)*): (?P<text>\S.*)")


class Docstrings(griffe.Extension):
    """Rewrites the docstring of every function and class that is read."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        _rewrite(func, [parameter.name for parameter in func.parameters])

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        _rewrite(cls, list(cls.members))


def _rewrite(described: griffe.Object, names: list[str]) -> None:
    if described.docstring is not None:
        described.docstring.value = with_sections(with_fences(with_links(described.docstring.value)), names)


def with_links(text: str) -> str:
    """The text, with links to the pages that it names.

    >>> with_links("See docs/all_matches.md and SECURITY.md.")
    'See [all matches](all_matches.md) and [security](security.md).'
    """

    def link(page: re.Match[str]) -> str:
        name = page[1]
        return f"[{name.replace('_', ' ')}]({name}.md)" if (_DOCS / f"{name}.md").exists() else page[0]

    text = re.sub(r"docs/(\w+)\.md", link, text)
    return text.replace("SECURITY.md", "[security](security.md)")


def with_fences(text: str) -> str:
    """The text, with its examples in fences.

    >>> with_fences("One.\\n\\n>>> 1 + 1\\n2\\n\\nTwo.").split("\\n")
    ['One.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'Two.']
    """
    blocks = re.split(r"\n{2,}", text)
    return "\n\n".join(f"```pycon\n{block}\n```" if block.startswith(">>> ") else block for block in blocks)


def with_sections(text: str, names: list[str]) -> str:
    """The text, with what it says of arguments moved into a section at its end.

    >>> print(with_sections("Finds.\\n\\nevents: a table,\\n    or a file.\\nIt is quick.", ["events"]))
    Finds.
    <BLANKLINE>
    It is quick.
    <BLANKLINE>
    Args:
        events: a table,
            or a file.
    """
    kept, moved, is_entry, is_code = [], [], False, False
    for line in text.split("\n"):
        is_code ^= line.startswith("```")
        entry = None if is_code else _ENTRY.match(line)
        is_entry = (entry is not None and entry["names"] in names) or (is_entry and line.startswith("    "))
        (moved if is_entry else kept).append(line)
    body = "\n".join(kept).strip("\n")
    return f"{body}\n\nArgs:\n" + "\n".join(f"    {line}" for line in moved) if moved else body
