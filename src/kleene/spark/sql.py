"""MATCH_RECOGNIZE inside Spark SQL.

Each clause is cut out of the text together with the table factor before it, from left to right; its result takes the
place of both, as a DataFrame that Spark's own `sql` puts in. Everything else is left to Spark, word for word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.errors import QuerySyntaxError
from kleene.lang import match_recognize
from kleene.source import SourceText, Span
from kleene.spark.batch import match_rows

_TOKENS = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*(?s:.*?)\*/)
       |(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`)
       |(?P<word>\w+)
       |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_FACTOR_BEGINS = {"FROM", "JOIN"}
_FACTOR_SEPARATORS = {","}


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    depth: int  # how many parentheses are open before it

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        return self.text.upper()


def tokens_of(text: str) -> list[Token]:
    """Words, quoted names and strings, and signs, without blanks and comments."""
    found: list[Token] = []
    depth = 0
    for match in _TOKENS.finditer(text):
        if match.lastgroup == "blank":
            continue
        if match[0] == ")":
            depth -= 1
        found.append(Token(match[0], match.start(), depth))
        if match[0] == "(":
            depth += 1
    return found


def sql(spark: SparkSession, text: str) -> DataFrame:
    """The result of a Spark SQL query in which table factors may carry MATCH_RECOGNIZE."""
    if not isinstance(text, str):
        raise QuerySyntaxError(f"a query is text, and a {type(text).__name__} was given")
    original, frames = SourceText(text), dict[str, DataFrame]()
    # What replaces a clause is made as long as the clause was, so that offsets stay those of the user's text.
    while True:
        tokens = tokens_of(text)
        place = _first_clause(tokens)
        if place is None:
            return _spark_sql(spark, text, frames)
        text = _replaced(spark, original, text, tokens, place, frames)


def _first_clause(tokens: list[Token]) -> int | None:
    """The first clause of the text: another one can only be in its table factor, which stands before it."""
    for number, token in enumerate(tokens[:-1]):
        if token.word == "MATCH_RECOGNIZE" and tokens[number + 1].text == "(":
            return number
    return None


def _replaced(
    spark: SparkSession, original: SourceText, text: str, tokens: list[Token], place: int, frames: dict[str, DataFrame]
) -> str:
    """The text with the clause and its table factor replaced by a stand-in for the matches."""
    word = tokens[place]
    opening = tokens[place + 1]
    closing = next((t for t in tokens[place + 2 :] if t.text == ")" and t.depth == opening.depth), None)
    if closing is None:
        raise QuerySyntaxError(
            "the parenthesis of MATCH_RECOGNIZE is never closed",
            original.locate(Span(opening.start, opening.end)),
            "Close it with ')'.",
        )
    factor_start = _start_of_factor(tokens, place, original)
    clause = re.sub(r"[^\n]", " ", text[: opening.end]) + text[opening.end : closing.start]
    definition = match_recognize.parse_within(original, clause)
    analyze_row_pattern(definition)
    factor = text[factor_start : word.start]
    common = _common_tables(text, tokens, factor_start)
    source = _spark_sql(spark, f"{common}SELECT * FROM {factor}", frames)
    name = f"kleene_matches_{len(frames)}"
    frames[name] = match_rows(definition, source, {})
    stand_in = _stand_in(name)
    # Blanks keep what follows where the user wrote it, and line breaks keep its line.
    gone = re.sub(r"[^\n]", " ", text[factor_start : closing.end])
    return text[:factor_start] + stand_in + gone[len(stand_in) :] + text[closing.end :]


def _stand_in(name: str) -> str:
    return f"`{name}`"


def _start_of_factor(tokens: list[Token], place: int, original: SourceText) -> int:
    """Where the table factor before the clause begins: after FROM, JOIN or a comma at the same depth."""
    depth = tokens[place].depth
    begin = place
    values = None
    for number in range(place - 1, -1, -1):
        token = tokens[number]
        if token.depth < depth:
            break
        if token.depth > depth or (token.depth == depth and token.text == ")"):
            begin = number
            continue
        if token.word in _FACTOR_BEGINS:
            break
        if token.word == "VALUES":
            values = number
        if token.text not in _FACTOR_SEPARATORS:
            begin = number
            continue
        if values is None and not _is_in_values(tokens, number, depth):
            break
        begin = number
    if begin == place:
        raise QuerySyntaxError(
            "MATCH_RECOGNIZE stands behind no table",
            original.locate(Span(tokens[place].start, tokens[place].end)),
            "Write: FROM trades MATCH_RECOGNIZE ( … )",
        )
    return tokens[begin].start


def _is_in_values(tokens: list[Token], comma: int, depth: int) -> bool:
    """Whether the comma stands between the rows of an inline VALUES, not between two tables."""
    for token in reversed(tokens[:comma]):
        if token.depth < depth or (token.depth == depth and token.word in _FACTOR_BEGINS):
            return False
        if token.depth == depth and token.word == "VALUES":
            return True
    return False


def _common_tables(text: str, tokens: list[Token], position: int) -> str:
    """The WITH clauses that are in scope at the position, as a prefix for a query of its own.

    A table is in scope behind its definition, inside the query that the WITH begins.
    """
    definitions: list[str] = []
    number = 0
    while number < len(tokens) and tokens[number].start < position:
        if tokens[number].word == "WITH" and _begins_query(tokens, number):
            number, found = _definitions_before(text, tokens, number + 1, position)
            definitions += found
            continue
        number += 1
    return f"WITH {', '.join(definitions)} " if definitions else ""


def _begins_query(tokens: list[Token], number: int) -> bool:
    return number == 0 or tokens[number - 1].text in ("(", ";")


def _definitions_before(text: str, tokens: list[Token], number: int, position: int) -> tuple[int, list[str]]:
    """The definitions of a WITH that end before the position, and where to look on."""
    found: list[str] = []
    depth = tokens[number].depth
    while number < len(tokens):
        start = number
        while number < len(tokens) and not (tokens[number].word == "AS" and tokens[number].depth == depth):
            number += 1
        body = number + 1
        end = next(
            (n for n in range(body + 1, len(tokens)) if tokens[n].text == ")" and tokens[n].depth == depth), None
        )
        if end is None or tokens[end].end > position:
            return body, found  # the position is inside this definition: look on in its body
        found.append(text[tokens[start].start : tokens[end].end])
        number = end + 1
        if number >= len(tokens) or tokens[number].text != ",":
            return number, _if_in_scope(tokens, number, depth, position, found)
        number += 1
    return number, found


def _if_in_scope(tokens: list[Token], number: int, depth: int, position: int, found: list[str]) -> list[str]:
    """The definitions, unless the query that they belong to has ended before the position."""
    ended = any(token.depth < depth and token.start < position for token in tokens[number:])
    return [] if ended else found


def _spark_sql(spark: SparkSession, text: str, frames: dict[str, DataFrame]) -> DataFrame:
    """The text as Spark runs it, stand-ins replaced by the DataFrames they stand for."""
    used: dict[str, Any] = {name: frame for name, frame in frames.items() if _stand_in(name) in text}
    if not used:
        return spark.sql(text)
    escaped = text.replace("{", "{{").replace("}", "}}")
    for name in used:
        escaped = escaped.replace(_stand_in(name), f"{{{name}}}")
    return spark.sql(escaped, **used)
