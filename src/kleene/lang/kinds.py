"""Which language a text is written in, by the word it begins with."""

from __future__ import annotations

import re

_OF_CLAUSES = ("MATCH_RECOGNIZE", "MATCHRECOGNIZE", "PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER")
"""PATTERN, which a clause may begin with too, is SASE's."""


def language_of(text: str) -> str:
    """The name of the language: "sase", "match_recognize" for a clause, or "sql" for a whole query.

    >>> language_of("-- rises\\nORDER BY t PATTERN (A+)"), language_of("EVENT A a"), language_of("select 1")
    ('match_recognize', 'sase', 'sql')
    """
    first = re.match(r"(?:\s|\(|--[^\n]*(?:\n|$)|/\*.*?\*/)*(\w*)", text, re.DOTALL)
    word = "" if first is None else first[1].upper()
    if word in ("SELECT", "WITH"):
        return "sql"
    return "match_recognize" if word in _OF_CLAUSES else "sase"
