"""Functions of strings. Characters are code points, and positions count from 1."""

from __future__ import annotations

from kleene.errors import ExecutionError

MOST_PADDING = 1_000_000
"""Characters that lpad and rpad make a string long."""
_TO_THE_END = 2**31 - 1


def substring(text: str, position: int, length: int = _TO_THE_END) -> str:
    """From the position on; a negative one counts from the end, and may lie before the beginning.

    >>> substring("abc", 2), substring("abc", -5, 3), substring("abc", 0, 2), substring("abc", 2, -1)
    ('bc', 'a', 'ab', '')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def left(text: str, count: int) -> str:
    return text[: max(count, 0)]


def right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def trim(text: str) -> str:
    return text.strip(" ")


def ltrim(text: str) -> str:
    return text.lstrip(" ")


def rtrim(text: str) -> str:
    return text.rstrip(" ")


def replace(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


def instr(text: str, part: str) -> int:
    return text.find(part) + 1


def locate(part: str, text: str, start: int = 1) -> int:
    """Where the part is, from the start on; 0 if it is nowhere.

    >>> locate("b", "abcb"), locate("b", "abcb", 3), locate("x", "abc"), locate("", "abc", 3), locate("b", "abc", 0)
    (2, 4, 0, 1, 0)
    """
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def contains(text: str, part: str) -> bool:
    return part in text


def startswith(text: str, part: str) -> bool:
    return text.startswith(part)


def endswith(text: str, part: str) -> bool:
    return text.endswith(part)


def lpad(text: str, length: int, pad: str = " ") -> str:
    return _padding(text, length, pad) + text[: max(length, 0)]


def rpad(text: str, length: int, pad: str = " ") -> str:
    return text[: max(length, 0)] + _padding(text, length, pad)


def _padding(text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not pad:
        return ""
    if length > MOST_PADDING:
        raise ExecutionError(f"a string is padded to {length:,} characters; {MOST_PADDING:,} are allowed")
    return (pad * (missing // len(pad) + 1))[:missing]


def split_part(text: str, delimiter: str, number: int) -> str:
    """The part of that number between delimiters, from the end if it is negative; empty where there is none."""
    if number == 0:
        raise ExecutionError(
            "split_part counts parts from 1, or from the end with -1, but was asked for part 0",
            hint="The first part is split_part(s, ',', 1).",
        )
    parts = text.split(delimiter) if delimiter else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""
