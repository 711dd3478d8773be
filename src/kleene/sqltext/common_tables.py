"""The common tables (WITH) of a SQL text that a position can name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleene.source import Span
from kleene.sqltext.statement import Excerpt, Statement
from kleene.sqltext.tokens import Token, closing


def select_with_common_tables(
    statement: Statement, tokens: list[Token], factor: Span, own: Sequence[str | Span] = (), columns: str = ""
) -> Excerpt:
    """All rows of a table factor, which may name the common tables before it.

    `own` are common tables besides, from WITH on, and `columns` what the SELECT list has besides.
    """
    parts: list[str | Span] = [*own, f"SELECT *{columns} FROM ", factor]
    for definitions in reversed(list(common_tables(tokens, factor.start))):
        parts = [definitions, " SELECT * FROM (", *parts, ")"]
    return statement.excerpt(*parts)


def common_tables(tokens: list[Token], position: int) -> Iterator[Span]:
    """The WITH clauses in scope at the position, outermost first, as far as they are defined before it."""
    number = 0
    while number < len(tokens) and tokens[number].start < position:
        if not _begins(tokens, number):
            number += 1
            continue
        word, depth = tokens[number], tokens[number].depth
        number += 2 if tokens[number + 1].word == "RECURSIVE" else 1
        end: int | None = None
        while number < len(tokens):
            names = (n for n in range(number, len(tokens) - 1) if tokens[n].word == "AS" and tokens[n].depth == depth)
            body = next(names, len(tokens)) + 1
            close = closing(tokens, body)
            if close is None or tokens[close].end > position:
                number = body + 1  # the position is inside this definition: look on in its body
                break
            end, number = tokens[close].end, close + 1
            if number >= len(tokens) or tokens[number].text != ",":
                break
            number += 1
        in_scope = not any(token.depth < depth and token.start < position for token in tokens[number:])
        if end is not None and in_scope:
            yield Span(word.start, end)


def _begins(tokens: list[Token], number: int) -> bool:
    """Whether here stands WITH [RECURSIVE] name [(columns)] AS (."""
    if tokens[number].word != "WITH" or number + 3 >= len(tokens):
        return False
    after = number + (3 if tokens[number + 1].word == "RECURSIVE" else 2)
    if after < len(tokens) and tokens[after].text == "(":
        after = (closing(tokens, after) or len(tokens)) + 1
    return after + 1 < len(tokens) and tokens[after].word == "AS" and tokens[after + 1].text == "("
