r"""Regular expressions, by RE2, which takes no longer than the text is long, whatever the pattern.

Patterns are Java's, as in Spark. What Java and RE2 mean differently is written out for RE2 (a dot leaves out more than
line feeds, \s has a vertical tab, (?i) is about ASCII, $ may stand before a last line end), or is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

MOST_CHARACTERS = 10_000
_SPACES, _NO_SPACES = r"\t\n\x0B\f\r ", r"\x00-\x08\x0E-\x1F!-\x{10FFFF}"
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LAST = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_FLAGS = re.compile(r"\(\?([is]+)\)")
_GROUP = re.compile(r"\((?:\?:|\?<([A-Za-z][A-Za-z0-9]*)>|(?!\?))")
_QUANTIFIER = re.compile(r"([*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})(\??)")
_CHARACTER = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4}))")
_CATEGORY = re.compile(r"\\[pP](?:[LMNPSZC]|\{[LMNPSZC][a-z]?\})")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class PatternError(ValueError):
    """The pattern is none, or not one that means the same everywhere."""


@lru_cache(maxsize=4_096)
def is_found(text: str, pattern: str) -> bool:
    """Whether some part of the text is like the pattern.

    >>> is_found("abc", "b.?$"), is_found("abc", "(?i)B"), is_found("abc", "^b")
    (True, True, False)
    """
    return bool(pc.match_substring_regex(pa.array([text], pa.string()), translated(pattern))[0].as_py())


@lru_cache(maxsize=256)
def translated(pattern: str) -> str:
    r"""The pattern as RE2 writes it.

    >>> translated(r"\d+\s[a-c]$")
    '\\d+[\\t\\n\\x0B\\f\\r ][a-c](?:\\r\\n|[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z'
    """
    if len(pattern) > MOST_CHARACTERS:
        raise PatternError(f"a regular expression may have {MOST_CHARACTERS:,} characters")
    written = _Translation(pattern).whole()
    try:
        pc.match_substring_regex(pa.array([], pa.string()), written)
        pc.match_substring_regex(pa.array([""], pa.string()), written)
    except pa.ArrowInvalid as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    return written


@dataclass(slots=True)
class _Translation:
    pattern: str
    at: int = 0
    any_case: bool = False
    all_lines: bool = False
    depth: int = 0

    def whole(self) -> str:
        flags = _FLAGS.match(self.pattern)
        if flags is not None:
            self.any_case, self.all_lines, self.at = "i" in flags[1], "s" in flags[1], flags.end()
        parts: list[str] = []
        while self.at < len(self.pattern):
            parts.append(self._next())
        if self.depth:
            raise PatternError("a group is not closed")
        return "".join(parts)

    def _next(self) -> str:
        sign = self.pattern[self.at]
        match sign:
            case "(":
                return self._group()
            case ")":
                if not self.depth:
                    raise PatternError("')' closes nothing")
                self.depth -= 1
                self.at += 1
                return ")" + self._quantifier()
            case "|":
                self.at += 1
                return "|"
            case "^":
                self.at += 1
                return "^"
            case "$":
                return self._end()
        return self._one_character(sign) + self._quantifier()

    def _group(self) -> str:
        found = _GROUP.match(self.pattern, self.at)
        if found is None:
            raise PatternError("of groups that begin with (? only (?:…) and (?<name>…) are taken, and (?i), (?s) first")
        self.at = found.end()
        self.depth += 1
        return "(?:"

    def _end(self) -> str:
        self.at += 1
        if self.depth or (self.at < len(self.pattern) and self.pattern[self.at] != "|"):
            raise PatternError("'$' is taken at the end of the pattern, or before a '|' outside of groups")
        return _LAST

    def _quantifier(self) -> str:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            return ""
        self.at = found.end()
        if self.at < len(self.pattern) and self.pattern[self.at] in "*+?{":
            raise PatternError(f"'{self.pattern[self.at]}' behind a quantifier is not taken")
        return found[0]

    def _one_character(self, sign: str) -> str:
        """What stands for one character."""
        if sign == ".":
            self.at += 1
            return "(?s:.)" if self.all_lines else f"[^{_LINE_ENDS}]"
        if sign == "[":
            return self._class()
        if sign in "*+?{":
            raise PatternError(f"'{sign}' repeats nothing")
        if sign == "\\":
            outside = {r"\s": f"[{_SPACES}]", r"\S": f"[{_NO_SPACES}]", r"\A": r"\A", r"\z": r"\z"}
            word = self.pattern[self.at : self.at + 2]
            if word in outside:
                self.at += 2
                return outside[word]
        found = self._set_or_character()
        return found if len(found) != 1 else self._literal(found)

    def _set_or_character(self) -> str:
        """A character, or the escape of a set of them, which is longer."""
        pattern, at = self.pattern, self.at
        if pattern[at] != "\\":
            self.at += 1
            return pattern[at]
        number = _CHARACTER.match(pattern, at)
        if number is not None:
            self.at = number.end()
            return _character(int(number[1] or number[2] or number[3], 16))
        category = _CATEGORY.match(pattern, at)
        if category is not None:
            self.at = category.end()
            return category[0]
        if at + 1 == len(pattern):
            raise PatternError("the pattern ends in a backslash")
        letter = pattern[at + 1]
        self.at += 2
        if letter in "dDwW":
            return f"\\{letter}"
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum():
            raise PatternError(f"'\\{letter}' is not taken, since it does not mean the same everywhere")
        return letter

    def _literal(self, character: str) -> str:
        if self.any_case and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return _escaped(character)

    def _class(self) -> str:
        self.at += 1
        pattern = self.pattern
        negated = pattern.startswith("^", self.at)
        self.at += negated
        parts: list[str] = []
        while self.at < len(pattern) and pattern[self.at] != "]":
            parts.append(self._member())
        if self.at >= len(pattern):
            raise PatternError("'[' is never closed")
        if not parts:
            raise PatternError("'[]' holds nothing; write \\] for the bracket itself")
        self.at += 1
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _member(self) -> str:
        pattern = self.pattern
        if pattern[self.at] == "[" or pattern.startswith("&&", self.at):
            raise PatternError(
                f"'{pattern[self.at]}' inside of [ ] is not taken; write \\{pattern[self.at]} for itself"
            )
        spaces = {r"\s": _SPACES, r"\S": _NO_SPACES}.get(pattern[self.at : self.at + 2])
        if spaces is not None:
            self.at += 2
            low = spaces
        else:
            low = self._set_or_character()
        if not (pattern.startswith("-", self.at) and pattern[self.at + 1 : self.at + 2] not in ("", "]")):
            return low if len(low) > 1 else self._range(low, low)
        self.at += 1
        high = self._set_or_character()
        if len(low) > 1 or len(high) > 1 or high == "[" or low > high:
            raise PatternError("a range in [ ] goes from one character to a later one")
        return self._range(low, high)

    def _range(self, low: str, high: str) -> str:
        text = _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"
        if self.any_case:
            for first, last, other in (("a", "z", "A"), ("A", "Z", "a")):
                begin, end = max(low, first), min(high, last)
                if begin <= end:
                    shift = ord(other) - ord(first)
                    text += f"{chr(ord(begin) + shift)}-{chr(ord(end) + shift)}"
        return text


def _character(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise PatternError(f"there is no character of the number {code:#x}")
    return chr(code)


def _escaped(character: str) -> str:
    return character if character.isalnum() or character == "_" else f"\\x{{{ord(character):X}}}"
