"""Constructs that no database knows, replaced in a SQL text one by one, until what is left is plain SQL.

A kind of construct is a function that finds the first of its kind in a text, one that contains no other of the same
kind. Of the kinds, the construct that ends first comes first: so none is replaced before those that it contains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kleene.ir.query import QueryDefinition
from kleene.source import Location, SourceText, Span
from kleene.sqltext.statement import Excerpt, Statement, blanked
from kleene.sqltext.tokens import Token, tokens_of


class Backend(Protocol):
    """What runs plain SQL, and finds matches in what it gives. A frame is whatever the backend makes of rows."""

    def check(self, text: str, tokens: list[Token], original: SourceText, construct: str | None) -> None:
        """An error if the text may not be run. It has the offsets of the original; what is not SQL in it is blank.

        `construct` names one that the text contains; None if all have been replaced.
        """

    def table(self, excerpt: Excerpt) -> Any:
        """The rows of a SELECT."""

    def columns(self, frame: Any) -> list[str]:
        """The names of a frame's columns."""

    def count_columns(self, excerpt: Excerpt, location: Location | None, hint: str) -> int:
        """How many columns a subquery has, which stands at the location; an error if it cannot be run alone."""

    def order_of(self, frame: Any) -> list[str]:
        """The columns that put rows in order where a text gives none; none if they have an order of their own."""

    def matches(self, definition: QueryDefinition, frame: Any, location: Location | None) -> Any:
        """The matches of a clause, which stands at the location, among the rows of the frame."""


@dataclass(frozen=True, slots=True)
class Construct:
    """What is to be replaced. An error in it is raised by `replace`, not before: others may have to come first.

    `own` are the parts that are not SQL, in which tokens mean nothing.
    """

    name: str
    end: int
    own: tuple[Span, ...]
    replace: Callable[[Statement, Backend], Statement]


Kind = Callable[[Statement, list[Token]], Construct | None]


def replace_constructs(statement: Statement, backend: Backend, kinds: tuple[Kind, ...]) -> Statement:
    """The statement with all constructs replaced; each text is checked before any part of it is run."""
    while True:
        tokens = tokens_of(statement.text)
        found = [construct for kind in kinds if (construct := kind(statement, tokens)) is not None]
        if not found:
            backend.check(statement.text, tokens, statement.original, None)
            return statement
        first = min(found, key=lambda construct: construct.end)
        begun = blanked(statement.text[: first.end], first.own)
        backend.check(begun, tokens_of(begun), statement.original, first.name)
        statement = first.replace(statement, backend)
