"""A query block of a SQL text, by its tokens: SELECT … FROM … WHERE … WINDOW … and what follows."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.source import Span
from kleene.sqltext.tokens import Token

SET_OPERATIONS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
_ENDING = frozenset({"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"})
_BY = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
CLAUSES = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", *_ENDING})
"""The words that begin a clause."""


@dataclass(frozen=True, slots=True)
class Block:
    """Tokens from `first`, the word SELECT, to before `last`."""

    tokens: list[Token]
    first: int
    last: int

    @property
    def depth(self) -> int:
        return self.tokens[self.first].depth

    @property
    def span(self) -> Span:
        return Span(self.tokens[self.first].start, self.tokens[self.last - 1].end)

    def clause_of(self, number: int) -> str:
        """The word of the clause that a token of the block stands in."""
        before = range(number, self.first - 1, -1)
        return next((self.tokens[n].word for n in before if self.begins_clause(n)), "SELECT")

    def begins_clause(self, number: int) -> bool:
        token = self.tokens[number]
        if token.depth != self.depth or number < self.first:
            return False
        if token.word == "WINDOW":  # a column may be called so
            return self._word(number + 2) == "AS" and self._word(number + 3) == "("
        if token.word in _BY and self._word(number + 1) != "BY":  # WITHIN GROUP ( … )
            return False
        return token.word in CLAUSES and self.tokens[number - 1].text != "."

    def clause(self, word: str) -> int | None:
        """The number of the token that begins the clause."""
        numbers = range(self.first, self.last)
        return next((n for n in numbers if self.tokens[n].word == word and self.begins_clause(n)), None)

    def owns(self, number: int) -> bool:
        """Whether the token is the block's own, not one of a query inside it."""
        return self.first <= number < self.last and _select_before(self.tokens, number) == self.first

    def _word(self, number: int) -> str:
        return self.tokens[number].word if number < len(self.tokens) else ""


def block_around(tokens: list[Token], number: int) -> Block | None:
    """The innermost block that the token stands in."""
    first = _select_before(tokens, number)
    if first is None:
        return None
    depth = tokens[first].depth
    is_operand = any(_is_set_operation(tokens, n) for n in _same_level(tokens, first, depth, -1))
    last = first + 1
    while last < len(tokens):
        token = tokens[last]
        if token.depth < depth or (token.depth == depth and (_is_set_operation(tokens, last) or token.text == ";")):
            break
        # The order of a union is not that of its last query.
        if is_operand and token.depth == depth and token.word in _ENDING:
            break
        last += 1
    return Block(tokens, first, last)


def _select_before(tokens: list[Token], number: int) -> int | None:
    depth = tokens[number].depth
    for n in range(number, -1, -1):
        depth = min(depth, tokens[n].depth)
        if tokens[n].depth == depth and tokens[n].word == "SELECT":
            return n
    return None


def _same_level(tokens: list[Token], number: int, depth: int, step: int) -> list[int]:
    """The tokens of the depth on one side, up to the parenthesis around them."""
    found = []
    number += step
    while 0 <= number < len(tokens) and tokens[number].depth >= depth:
        if tokens[number].depth == depth:
            found.append(number)
        number += step
    return found


def _is_set_operation(tokens: list[Token], number: int) -> bool:
    is_of_star = number > 0 and tokens[number - 1].text == "*"  # SELECT * EXCEPT (a)
    return tokens[number].word in SET_OPERATIONS and not is_of_star
