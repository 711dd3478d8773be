"""Text as it may be shown: what a terminal would obey, or nobody would see, is written out."""

from __future__ import annotations

import unicodedata

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters by their category, and blank."""


def visible(text: str, keep: str = "") -> str:
    """The text with control characters, invisible ones and those that turn its direction escaped; some may be kept.

    >>> print(visible("red \\x1b[31m, back \\u202e, line\\n"))
    red \\x1b[31m, back \\u202e, line\\n
    """
    if text.isprintable() and not any(letter in text for letter in _BLANK):
        return text
    return "".join(letter if letter in keep or _is_seen(letter) else _escaped(letter) for letter in text)


def _is_seen(letter: str) -> bool:
    return unicodedata.category(letter) not in _HIDDEN and letter not in _BLANK


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii") if letter not in _BLANK else f"\\u{ord(letter):04x}"
