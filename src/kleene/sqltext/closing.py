"""Where a clause of Kleene's ends in a SQL text."""

from __future__ import annotations

import re

# Inside a clause strings are SQL's: a quote is doubled, and a backslash is a backslash.
_IN_CLAUSE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|(?P<open>\()|(?P<close>\))""", re.DOTALL
)


def end_of_clause(text: str, position: int) -> int | None:
    """The offset behind the parenthesis that closes the clause."""
    depth = 1
    for match in _IN_CLAUSE.finditer(text, position):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if not depth:
            return match.end()
    return None
