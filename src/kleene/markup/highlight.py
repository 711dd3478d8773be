"""The text of a query with its syntax marked, as HTML: the same letters, each in its place."""

from __future__ import annotations

import re
from html import escape

_WORDS = (
    "PATTERN SEQ EVENT ANY WHERE AND OR NOT WITHIN HAVING RETURN FROM INTO AS IN IS NULL LIKE BETWEEN CASE WHEN THEN "
    "ELSE END TRUE FALSE PARTITION BY ORDER MEASURES ONE ALL ROW ROWS PER MATCH MATCHES AFTER SKIP TO PAST LAST FIRST "
    "NEXT DEFINE SUBSET PERMUTE RUNNING FINAL ASC DESC NULLS CURRENT UNBOUNDED FOLLOWING INITIAL SEEK SHOW OMIT EMPTY "
    "WITH UNMATCHED MAXLENGTH COLLECT DISTINCT TIMESTAMP DATE TIME INTERVAL CAST EXISTS MATCH_RECOGNIZE "
    "skip_till_next_match skip_till_any_match strict_contiguity partition_contiguity"
)
_KINDS = (
    ("comment", r"--[^\n]*|/\*.*?\*/"),
    ("string", r"'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\""),
    ("number", r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?%?"),
    ("param", r":[A-Za-z_]\w*"),
    ("keyword", rf"\b(?:{'|'.join(_WORDS.split())})\b"),
    ("call", r"\b[A-Za-z_]\w*(?=\()"),
)
_TOKEN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _KINDS), re.DOTALL)


def highlighted(text: str) -> str:
    """The text with its words in spans.

    >>> highlighted("WHERE a.x < 5")
    '<span class="k-keyword">WHERE</span> a.x &lt; <span class="k-number">5</span>'
    """
    found, at = [], 0
    for token in _TOKEN.finditer(text):
        found.append(escape(text[at : token.start()]))
        found.append(f'<span class="k-{token.lastgroup}">{escape(token.group())}</span>')
        at = token.end()
    return "".join([*found, escape(text[at:])])
