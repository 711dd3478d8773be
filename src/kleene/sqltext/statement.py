"""A SQL text on its way to what runs it, and the parts of it that are run on their own."""

from __future__ import annotations

import re
import secrets
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kleene.ir.own import NO_FUNCTIONS, Own
from kleene.ir.written import Written, as_written
from kleene.source import Location, SourceText, Span
from kleene.sqltext.tokens import Token, tokens_of

Args = dict[str, Any] | list[Any] | None
"""Values of parameters: by name where they are written as :name, or in their order where they are written as ?."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A SELECT that is made of parts of a statement, and what is needed to run it.

    Where a name of `frames` stands in backquotes, the frame is meant.
    """

    text: str
    args: Args
    frames: Mapping[str, Any]
    original: SourceText
    origins: tuple[tuple[int, int], ...]  # offsets in the text where a part begins, and in the original

    def locate(self, start: int, end: int) -> Location | None:
        """Where a stretch of the text stands in the user's; None if the user did not write it."""
        number = bisect_left(self.origins, (start + 1,)) - 1
        if number < 0:
            return None
        part, origin = self.origins[number]
        if origin < 0:
            return None
        return self.original.locate(Span(origin + start - part, origin + end - part))


@dataclass(frozen=True, slots=True)
class Statement:
    """A text in which constructs of Kleene's have been replaced, one after the other, by the names of their results.

    What replaces a construct is made as long as the construct was, so that offsets stay those of the user's text. The
    names hold random digits: no text can have been written to look like one.
    """

    original: SourceText
    text: str
    args: Args = None
    functions: Mapping[str, Own] = field(default_factory=lambda: NO_FUNCTIONS)
    frames: dict[str, Any] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_hex(8))

    def excerpt(self, *parts: str | Span) -> Excerpt:
        """A text made of stretches of this one and of text of our own, with the parameters of the stretches."""
        texts, origins, position = [], [], 0
        for part in parts:
            texts.append(part if isinstance(part, str) else self.text[part.start : part.end])
            origins.append((position, -1 if isinstance(part, str) else part.start))
            position += len(texts[-1])
        args = self._args_in([part for part in parts if isinstance(part, Span)])
        return Excerpt("".join(texts), args, self.frames, self.original, tuple(origins))

    def whole(self) -> Excerpt:
        return Excerpt(self.text, _outside(self.args), self.frames, self.original, ((0, 0),))

    def without(self, spans: Iterable[Span]) -> Statement:
        """The statement with blanks where the spans are."""
        return replace(self, text=blanked(self.text, spans))

    def replaced(self, span: Span, frame: Any, before: str = "") -> Statement:
        """The statement with a stand-in for the frame where the span is, behind a few words; parameters are gone."""
        name = f"kleene_{len(self.frames)}_{self.secret}"
        stand_in = f"{before}`{name}`"
        # Blanks keep what follows where the user wrote it, and line breaks keep its line.
        gone = blank(self.text[span.start : span.end])
        return replace(
            self,
            text=self.text[: span.start] + stand_in + gone[len(stand_in) :] + self.text[span.end :],
            args=self._args_without(span),
            frames={**self.frames, name: frame},
        )

    def _args_in(self, spans: list[Span]) -> Args:
        if not isinstance(self.args, list):
            return _outside(self.args)
        tokens = tokens_of(self.text)
        return [value for span in spans for value in self.args[_places(tokens, span)]] or None

    def _args_without(self, span: Span) -> Args:
        if not isinstance(self.args, list):
            return self.args
        places = _places(tokens_of(self.text), span)
        return self.args[: places.start] + self.args[places.stop :]


def _outside(args: Args) -> Args:
    """The values for plain SQL, which cannot see how values of a command line are used."""
    if not isinstance(args, Mapping):
        return args
    return {name: as_written(value) if isinstance(value, Written) else value for name, value in args.items()}


def _places(tokens: list[Token], span: Span) -> slice:
    """Which of the parameters that are written as ? stand in the span."""
    marks = [token.start for token in tokens if token.text == "?"]
    return slice(bisect_left(marks, span.start), bisect_left(marks, span.end))


def blank(text: str) -> str:
    """The text with blanks for its letters; lines stay lines."""
    return re.sub(r"[^\n]", " ", text)


def blanked(text: str, spans: Iterable[Span]) -> str:
    for span in spans:
        text = text[: span.start] + blank(text[span.start : span.end]) + text[span.end :]
    return text
