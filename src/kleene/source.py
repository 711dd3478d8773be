"""Where in a query's text a construct stands, and how to show it to a person."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

_WIDEST_EXCERPT = 100


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text, by the offsets of its first character and of the one after its last."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


NO_SPAN = Span(-1, -1)
"""The span of a node that no text was written for."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of a query or of a file of queries."""

    text: str

    def locate(self, span: Span) -> Location | None:
        return None if span == NO_SPAN else Location(self, span)


@dataclass(frozen=True, slots=True)
class Location:
    """A span in a text; prints as line and column, and draws the excerpt with a caret.

    >>> location = Location(SourceText("EVENT A a\\nWHERE a.prize > 3"), Span(18, 23))
    >>> print(location)
    line 2, column 9
    >>> print(location.excerpt())
        WHERE a.prize > 3
                ^^^^^
    """

    source: SourceText
    span: Span

    @property
    def line(self) -> int:
        return self.source.text.count("\n", 0, self.span.start) + 1

    @property
    def column(self) -> int:
        return self.span.start - self._line_start() + 1

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    def excerpt(self) -> str:
        """The line with the offender underlined; of a very long line only the part around it."""
        text = self.source.text
        start = self._line_start()
        end = text.find("\n", start)
        line = text[start : len(text) if end < 0 else end].rstrip("\r")
        offset = self.span.start - start
        length = max(1, min(self.span.end, start + len(line)) - self.span.start)
        before, after = "", ""
        if len(line) > _WIDEST_EXCERPT:
            cut = max(0, offset - _WIDEST_EXCERPT // 2)
            before, after = ("…" if cut else ""), ("…" if cut + _WIDEST_EXCERPT < len(line) else "")
            line, offset = line[cut : cut + _WIDEST_EXCERPT], offset - cut
            length = min(length, len(line) - offset) or 1
        shown = "".join(character if character.isprintable() else " " for character in line)
        margin = " " * (len(before) + _width(shown[:offset]))
        carets = "^" * max(1, _width(shown[offset : offset + length]))
        return f"    {before}{shown}{after}\n    {margin}{carets}"

    def _line_start(self) -> int:
        return self.source.text.rfind("\n", 0, self.span.start) + 1


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
