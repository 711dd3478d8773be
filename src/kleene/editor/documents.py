"""A query text under way -> what an editor asks about it: its words, its variables, and where they stand.

The text need not be a query yet: it is read word by word, and what cannot be made sense of is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kleene.sqltext.tokens import Token, closing, tokens_of

SASE, SQL = "sase", "sql"
LANGUAGES = (SASE, SQL)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the pattern, with the event types that it may have; none in a row pattern."""

    name: str
    types: tuple[str, ...] = ()
    is_kleene: bool = False
    is_negative: bool = False


@dataclass(frozen=True)
class Document:
    """A text and its language: "sase", or "sql" for MATCH_RECOGNIZE, alone or inside a query."""

    text: str
    language: str

    @cached_property
    def tokens(self) -> list[Token]:
        return tokens_of(self.text)

    def token_at(self, offset: int) -> Token | None:
        """The word or sign that the offset is in, or right behind."""
        near = [token for token in self.tokens if token.start <= offset <= token.end]
        words = [token for token in near if token.text[0].isalnum() or token.text[0] in "_`"]
        return next(iter(words or near), None)

    def owner_before(self, offset: int) -> str | None:
        """The name before a dot that stands right before the word at the offset: `b` where the text is at `b.pri`."""
        before = re.search(r"([^\W\d]\w*|`[^`]+`)(?:\[[^\[\]]*\])?\s*\.\s*\w*$", self.text[:offset])
        return before[1].strip("`") if before else None

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        found = _row_variables(self.tokens) if self.language == SQL else _components(self.tokens)
        return tuple({variable.name.casefold(): variable for variable in found}.values())

    def variable(self, name: str) -> Variable | None:
        wanted = name.casefold() if self.language == SQL else name
        return next(
            (one for one in self.variables if (one.name.casefold() if self.language == SQL else one.name) == wanted),
            None,
        )


def _pattern_tokens(tokens: list[Token], words: tuple[str, ...]) -> Iterator[list[Token]]:
    """What stands in the parentheses behind one of the words, or on to the end where they are not closed yet."""
    for number, token in enumerate(tokens[:-1]):
        if token.word in words and tokens[number + 1].text == "(":
            end = closing(tokens, number + 1)
            yield tokens[number + 2 : end]


def _components(tokens: list[Token]) -> Iterator[Variable]:
    """Of SEQ( … ): `Shelf a`, `ANY(D, E) a`, `Stock+ a[]`, `!(Register r)`."""
    for inside in _pattern_tokens(tokens, ("SEQ",)):
        types: list[str] = []
        is_kleene = is_negative = False
        for number, token in enumerate(inside):
            following = inside[number + 1].text if number + 1 < len(inside) else ""
            if token.text in "!~":
                is_negative = True
            elif token.text == "+":
                is_kleene = True
            elif token.text == "," and not (types and _is_in_any(inside, number)):
                types, is_kleene, is_negative = [], False, False
            elif not _is_name(token) or (token.word == "ANY" and following == "("):
                continue
            elif types and not _is_in_any(inside, number):
                yield Variable(token.text.strip("`"), tuple(types), is_kleene, is_negative)
            else:
                types.append(token.text.strip("`"))


def _is_in_any(tokens: list[Token], number: int) -> bool:
    """Whether the token is one of the types in ANY( … )."""
    depth = tokens[number].depth
    opening = next((n for n in range(number - 1, 0, -1) if tokens[n].text == "(" and tokens[n].depth < depth), None)
    return opening is not None and tokens[opening - 1].word == "ANY"


def _row_variables(tokens: list[Token]) -> Iterator[Variable]:
    """Of PATTERN ( … ), and of DEFINE and SUBSET, where a name may stand that the pattern does not have yet."""
    for inside in _pattern_tokens(tokens, ("PATTERN",)):
        for token in inside:
            if _is_name(token) and token.word != "PERMUTE":
                yield Variable(token.text.strip('"`'))
    for number, token in enumerate(tokens[:-1]):
        if token.word in ("DEFINE", "SUBSET") and _is_name(tokens[number + 1]):
            yield Variable(tokens[number + 1].text.strip('"`'))


def _is_name(token: Token) -> bool:
    return bool(re.match(r"[^\W\d]|[`\"]", token.text)) and len(token.text.strip('`"')) > 0
