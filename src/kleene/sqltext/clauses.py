"""MATCH_RECOGNIZE in a SQL text: the clause and the table factor before it, replaced by the matches."""

from __future__ import annotations

import itertools
import re
from functools import partial

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.errors import QuerySyntaxError
from kleene.lang import match_recognize
from kleene.lang.parameters import bind_clause
from kleene.source import SourceText, Span
from kleene.sqltext.closing import end_of_clause
from kleene.sqltext.common_tables import common_tables, select_with_common_tables
from kleene.sqltext.constructs import Backend, Construct
from kleene.sqltext.statement import Statement, blank
from kleene.sqltext.subqueries import check_subqueries, without_subqueries
from kleene.sqltext.tokens import Token, tokens_of

NAME = "MATCH_RECOGNIZE"
_FACTOR_BEGINS = {"FROM", "JOIN"}
_NO_FACTOR = {
    *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "ON", "USING", "UNION"),
    *("EXCEPT", "INTERSECT", "MINUS", "WINDOW", "QUALIFY", "VIEW"),
}


def first_clause(statement: Statement, tokens: list[Token]) -> Construct | None:
    """The first clause of the text: another one can only be in its table factor, which stands before it."""
    for token, opening in itertools.pairwise(tokens):
        if token.word in (NAME, "MATCHRECOGNIZE") and opening.text == "(":
            end = end_of_clause(statement.text, opening.end)
            last = len(statement.text) if end is None else end
            replace = partial(_replaced, word=Span(token.start, token.end), opening=opening, end=end)
            return Construct(NAME, last, (Span(token.start, last),), replace)
    return None


def _replaced(statement: Statement, backend: Backend, word: Span, opening: Token, end: int | None) -> Statement:
    """The statement with the clause and its table factor replaced by a stand-in for the matches."""
    text, original = statement.text, statement.original
    if end is None:
        raise QuerySyntaxError(
            f"the parenthesis of {NAME} is never closed",
            original.locate(Span(opening.start, opening.end)),
            "Close it with ')'.",
        )
    tokens = tokens_of(text[: word.end])
    factor = Span(_start_of_factor(tokens, len(tokens) - 1, original), word.start)
    clause = Span(opening.end, end - 1)
    inside = without_subqueries(statement, clause)
    plain = inside.only_plain(statement, Span(word.start, end))
    if inside.subqueries:
        check_subqueries(inside, plain, backend, list(common_tables(tokens, factor.start)))
        rows = backend.table(select_with_common_tables(plain, tokens, factor))
        inside = without_subqueries(statement, clause, backend.columns(rows))
    definition = match_recognize.parse_within(
        original, blank(text[: opening.end]) + inside.text[opening.end :], inside.hidden, statement.functions
    )
    definition = bind_clause(definition, statement.args)
    analyze_row_pattern(definition)
    own, columns = inside.common_tables(statement.secret), inside.columns(statement.secret)
    frame = backend.table(select_with_common_tables(plain, tokens, factor, own, columns))
    found = backend.matches(definition, frame, original.locate(word))
    return plain.replaced(Span(factor.start, end), found)


def _start_of_factor(tokens: list[Token], place: int, original: SourceText) -> int:
    """Where the table factor before the clause begins: after FROM, JOIN or a comma between tables."""
    depth = tokens[place].depth
    begin: int | None = None
    wrong: Token | None = None
    in_values = False
    for number in range(_start_of_query(tokens, place), place):
        token = tokens[number]
        if token.depth != depth:
            continue
        if token.word in _FACTOR_BEGINS or (token.text == "," and begin is not None and not in_values):
            begin, wrong, in_values = number + 1, None, False
        elif token.word in _NO_FACTOR:
            wrong = wrong or token
        elif token.word == "VALUES":
            in_values = True
        elif token.text not in ("(", ")", ",") and not re.fullmatch(r"[\d.+-]+|'.*", token.text, re.DOTALL):
            in_values = False  # an alias: the rows have ended
    if begin is None or begin == place or wrong is not None:
        behind = f"after {wrong.word}, not after a table" if wrong else "after no table"
        raise QuerySyntaxError(
            f"MATCH_RECOGNIZE stands {behind}",
            original.locate(Span(tokens[place].start, tokens[place].end)),
            "Write it right after the table: FROM trades MATCH_RECOGNIZE ( … ) WHERE …",
        )
    return tokens[begin].start


def _start_of_query(tokens: list[Token], place: int) -> int:
    """The first token of the innermost parenthesis, or of the text, that the token stands in."""
    depth = tokens[place].depth
    return next((number + 1 for number in range(place, -1, -1) if tokens[number].depth < depth), 0)
