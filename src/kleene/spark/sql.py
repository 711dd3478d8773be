"""MATCH_RECOGNIZE inside Spark SQL.

Each clause is cut out of the text together with the table factor before it, from left to right; its result takes the
place of both, as a DataFrame that Spark's own `sql` puts in. Everything else is left to Spark, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.engine.inputs import OrderKey
from kleene.errors import QuerySyntaxError
from kleene.lang import match_recognize
from kleene.lang.expressions import check_is_text
from kleene.source import SourceText, Span
from kleene.spark.jobs import SparkOptions, StreamOptions, make_job
from kleene.spark.notes import with_notes_of

_TOKENS = re.compile(
    r"""(?P<comment>/\*)
       |(?P<blank>\s+|--[^\n]*)
       |(?P<quoted>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`)
       |(?P<word>\w+)
       |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
# Inside a clause strings are SQL's: a quote is doubled, and a backslash is a backslash.
_IN_CLAUSE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|(?P<open>\()|(?P<close>\))""", re.DOTALL
)
_FACTOR_BEGINS = {"FROM", "JOIN"}
_NO_FACTOR = {
    *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "ON", "USING", "UNION"),
    *("EXCEPT", "INTERSECT", "MINUS", "WINDOW", "QUALIFY", "VIEW"),
}


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
    """Words, quoted names and strings, and signs, as Spark sees them, without blanks and comments."""
    found: list[Token] = []
    depth = position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        assert match is not None
        position = match.end()
        if match.lastgroup == "comment":
            position = _end_of_comment(text, position)
        elif match.lastgroup != "blank":
            depth -= match[0] == ")"
            found.append(Token(match[0], match.start(), depth))
            depth += match[0] == "("
    return found


def _end_of_comment(text: str, position: int) -> int:
    """Where the comment that has begun ends; in Spark comments nest."""
    open_comments = 1
    for match in re.compile(r"/\*|\*/").finditer(text, position):
        open_comments += 1 if match[0] == "/*" else -1
        if not open_comments:
            return match.end()
    return len(text)


def sql(spark: SparkSession, text: str, args: dict[str, Any] | list[Any] | None = None) -> DataFrame:
    """The result of a Spark SQL query in which table factors may carry MATCH_RECOGNIZE."""
    check_is_text(text)
    original, frames = SourceText(text), dict[str, DataFrame]()
    # What replaces a clause is made as long as the clause was, so that offsets stay those of the user's text.
    while True:
        tokens = tokens_of(text)
        place = _first_clause(tokens)
        if place is None:
            return with_notes_of(frames.values(), _spark_sql(spark, text, frames, args))
        _refuse_view(tokens, original)
        text = _replaced(spark, original, text, tokens, place, frames, args)


def _first_clause(tokens: list[Token]) -> int | None:
    """The first clause of the text: another one can only be in its table factor, which stands before it."""
    for number, token in enumerate(tokens[:-1]):
        if token.word == "MATCH_RECOGNIZE" and tokens[number + 1].text == "(":
            return number
    return None


def _refuse_view(tokens: list[Token], original: SourceText) -> None:
    words = [token.word for token in tokens[:6]]
    if words[0] == "CREATE" and "VIEW" in words:
        raise QuerySyntaxError(
            "a view cannot hold MATCH_RECOGNIZE: Spark keeps a view as text, and would not know the clause",
            original.locate(Span(tokens[0].start, tokens[0].end)),
            "Name the result instead: kleene.sql(spark, 'SELECT …').createOrReplaceTempView('name')",
        )


def _replaced(
    spark: SparkSession,
    original: SourceText,
    text: str,
    tokens: list[Token],
    place: int,
    frames: dict[str, DataFrame],
    args: dict[str, Any] | list[Any] | None,
) -> str:
    """The text with the clause and its table factor replaced by a stand-in for the matches."""
    word, opening = tokens[place], tokens[place + 1]
    closing = _end_of_clause(text, opening.end)
    if closing is None:
        raise QuerySyntaxError(
            "the parenthesis of MATCH_RECOGNIZE is never closed",
            original.locate(Span(opening.start, opening.end)),
            "Close it with ')'.",
        )
    factor_start = _start_of_factor(tokens, place, original)
    clause = re.sub(r"[^\n]", " ", text[: opening.end]) + text[opening.end : closing - 1]
    definition = match_recognize.parse_within(original, clause)
    analyze_row_pattern(definition)
    query = f"SELECT * FROM {text[factor_start : word.start]}"
    for definitions in reversed(list(_common_tables(text, tokens, factor_start))):
        query = f"{definitions} SELECT * FROM ({query})"
    name = f"kleene_matches_{len(frames)}"
    frame = _spark_sql(spark, query, frames, args if ":" in query else None)
    job = make_job(definition, frame, OrderKey(()), None, {}, SparkOptions(), StreamOptions())
    frames[name] = job.matches()
    stand_in = _stand_in(name)
    # Blanks keep what follows where the user wrote it, and line breaks keep its line.
    gone = re.sub(r"[^\n]", " ", text[factor_start:closing])
    return text[:factor_start] + stand_in + gone[len(stand_in) :] + text[closing:]


def _end_of_clause(text: str, position: int) -> int | None:
    """The offset behind the parenthesis that closes the clause."""
    depth = 1
    for match in _IN_CLAUSE.finditer(text, position):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if not depth:
            return match.end()
    return None


def _stand_in(name: str) -> str:
    return f"`{name}`"


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
        behind = f"behind {wrong.word}, not behind a table" if wrong else "behind no table"
        raise QuerySyntaxError(
            f"MATCH_RECOGNIZE stands {behind}",
            original.locate(Span(tokens[place].start, tokens[place].end)),
            "Write it right behind the table: FROM trades MATCH_RECOGNIZE ( … ) WHERE …",
        )
    return tokens[begin].start


def _start_of_query(tokens: list[Token], place: int) -> int:
    """The first token of the innermost parenthesis, or of the text, that the token stands in."""
    depth = tokens[place].depth
    return next((number + 1 for number in range(place, -1, -1) if tokens[number].depth < depth), 0)


def _common_tables(text: str, tokens: list[Token], position: int) -> Iterator[str]:
    """The WITH clauses in scope at the position, outermost first, as far as they are defined before it."""
    number = 0
    while number < len(tokens) and tokens[number].start < position:
        if not _begins_common_tables(tokens, number):
            number += 1
            continue
        word, depth = tokens[number], tokens[number].depth
        number += 2 if tokens[number + 1].word == "RECURSIVE" else 1
        first, end = tokens[number].start, None
        while number < len(tokens):
            body = (
                next(n for n in range(number, len(tokens)) if tokens[n].word == "AS" and tokens[n].depth == depth) + 1
            )
            close = _closing(tokens, body)
            if close is None or tokens[close].end > position:
                number = body + 1  # the position is inside this definition: look on in its body
                break
            end, number = tokens[close].end, close + 1
            if number >= len(tokens) or tokens[number].text != ",":
                break
            number += 1
        in_scope = not any(token.depth < depth and token.start < position for token in tokens[number:])
        if end is not None and in_scope:
            yield text[word.start : first] + text[first:end]


def _begins_common_tables(tokens: list[Token], number: int) -> bool:
    """Whether here stands WITH [RECURSIVE] name [(columns)] AS (."""
    if tokens[number].word != "WITH" or number + 3 >= len(tokens):
        return False
    after = number + (3 if tokens[number + 1].word == "RECURSIVE" else 2)
    if after < len(tokens) and tokens[after].text == "(":
        after = (_closing(tokens, after) or len(tokens)) + 1
    return after + 1 < len(tokens) and tokens[after].word == "AS" and tokens[after + 1].text == "("


def _closing(tokens: list[Token], opening: int) -> int | None:
    depth = tokens[opening].depth
    return next(
        (n for n in range(opening + 1, len(tokens)) if tokens[n].text == ")" and tokens[n].depth == depth), None
    )


def _spark_sql(
    spark: SparkSession, text: str, frames: dict[str, DataFrame], args: dict[str, Any] | list[Any] | None
) -> DataFrame:
    """The text as Spark runs it, stand-ins replaced by the DataFrames they stand for."""
    used: dict[str, Any] = {name: frame for name, frame in frames.items() if _stand_in(name) in text}
    if not used:
        return spark.sql(text, args)
    escaped = text.replace("{", "{{").replace("}", "}}")
    for name in used:
        escaped = escaped.replace(_stand_in(name), f"{{{name}}}")
    return spark.sql(escaped, args, **used)
