"""MATCH_RECOGNIZE inside Spark SQL.

Each clause is cut out of the text together with the table factor before it, from left to right; its result takes the
place of both, as a DataFrame that Spark's own `sql` puts in. Everything else is left to Spark, word for word, unless it
would run code that is not Spark's own.
"""

from __future__ import annotations

import re
import secrets
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.call import Call
from kleene.errors import QuerySyntaxError, UnsupportedError, printable
from kleene.ir.query import QueryDefinition
from kleene.lang import match_recognize
from kleene.lang.expressions import check_is_text
from kleene.source import SourceText, Span
from kleene.spark.declared_match import matches_as_declared
from kleene.spark.foreign_code import check_tokens
from kleene.spark.job import make_job
from kleene.spark.notes import with_notes_of
from kleene.spark.sql_tokens import Token, tokens_of

Args = dict[str, Any] | list[Any] | None

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
class _Text:
    """A text on its way to Spark: clauses from the left on have been replaced by the names of their results.

    What replaces a clause is made as long as the clause was, so that offsets stay those of the user's text. The names
    hold random digits: no text can have been written to look like one.
    """

    spark: SparkSession
    original: SourceText
    text: str
    args: Args
    allow_jvm_calls: bool
    schema: Any = None  # that of the table before the clause, if Spark is not to be asked
    frames: dict[str, DataFrame] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_hex(8))

    def check(self, tokens: list[Token], end: int | None = None) -> None:
        """An error if Spark would run code of others for the text up to its end."""
        if not self.allow_jvm_calls:
            substitutes = self.spark.conf.get("spark.sql.variable.substitute") != "false"
            check_tokens(self.text[:end], tokens, self.original, substitutes)


def sql(
    spark: SparkSession,
    text: str,
    args: Args = None,
    allow_jvm_calls: bool = False,
    schema: Any = None,
) -> DataFrame:
    """The result of a Spark SQL query in which table factors may carry MATCH_RECOGNIZE."""
    check_is_text(text)
    current = _Text(spark, SourceText(text), text, args, allow_jvm_calls, schema)
    while True:
        tokens = tokens_of(current.text)
        place = _first_clause(tokens)
        if place is None:
            current.check(tokens)
            return with_notes_of(current.frames.values(), _around(current))
        _refuse_view(tokens, current.original)
        current.check(tokens[:place], tokens[place].start)
        current = _replaced(current, tokens, place)


def _around(current: _Text) -> DataFrame:
    """The text in which all clauses have been replaced.

    Before 4.3, Spark analyzes a text that DataFrames are put into at once, and in a pipeline it knows no tables then.
    """
    try:
        return _spark_sql(current, current.text, current.args)
    except AnalysisException as error:
        is_old = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3)
        if current.schema is None or not is_old or "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
            raise
        said = printable(next(iter(str(error).strip().splitlines()), ""), 200)
        raise UnsupportedError(
            f"Spark analyzes the text around the clause at once: {said}",
            hint="In a pipeline, kleene.sql needs PySpark 4.3 or newer; with an older one write "
            "kleene.match_recognize(clause).match(spark.read.table(…), schema=…).",
        ) from None


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
            "a view cannot contain MATCH_RECOGNIZE: Spark keeps a view as text, and does not know the clause",
            original.locate(Span(tokens[0].start, tokens[0].end)),
            "Name the result instead: kleene.sql(spark, 'SELECT …').createOrReplaceTempView('name')",
        )


def _replaced(current: _Text, tokens: list[Token], place: int) -> _Text:
    """The text with the clause and its table factor replaced by a stand-in for the matches."""
    text, original = current.text, current.original
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
    common = list(_common_tables(tokens, factor_start))
    query = f"SELECT * FROM {text[factor_start : word.start]}"
    for definitions in reversed(common):
        query = f"{text[definitions.start : definitions.end]} SELECT * FROM ({query})"
    parameters = _args_in(current.args, tokens, [*common, Span(factor_start, word.start)])
    frame = _spark_sql(current, query, parameters)
    found = _matches(current, definition, frame, Span(word.start, word.end))
    name = f"kleene_{len(current.frames)}_{current.secret}"
    # Blanks keep what follows where the user wrote it, and line breaks keep its line.
    gone = re.sub(r"[^\n]", " ", text[factor_start:closing])
    stand_in = f"`{name}`"
    return replace(
        current,
        text=text[:factor_start] + stand_in + gone[len(stand_in) :] + text[closing:],
        args=_args_without(current.args, tokens, Span(factor_start, word.start)),
        frames={**current.frames, name: found},
    )


def _matches(current: _Text, definition: QueryDefinition, frame: DataFrame, clause: Span) -> DataFrame:
    if current.schema is None:
        return make_job(Call(definition), frame, allow_jvm_calls=current.allow_jvm_calls).matches()
    if current.frames:
        raise UnsupportedError(
            "schema declares the columns of one table, but the text has several MATCH_RECOGNIZE clauses",
            current.original.locate(clause),
            "Give each clause a text of its own; in a pipeline, a view of its own.",
        )
    return matches_as_declared(Call(definition), frame, current.schema)


def _end_of_clause(text: str, position: int) -> int | None:
    """The offset behind the parenthesis that closes the clause."""
    depth = 1
    for match in _IN_CLAUSE.finditer(text, position):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if not depth:
            return match.end()
    return None


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


def _common_tables(tokens: list[Token], position: int) -> Iterator[Span]:
    """The WITH clauses in scope at the position, outermost first, as far as they are defined before it."""
    number = 0
    while number < len(tokens) and tokens[number].start < position:
        if not _begins_common_tables(tokens, number):
            number += 1
            continue
        word, depth = tokens[number], tokens[number].depth
        number += 2 if tokens[number + 1].word == "RECURSIVE" else 1
        end: int | None = None
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
            yield Span(word.start, end)


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


def _places(tokens: list[Token], span: Span) -> slice:
    """Which of the parameters that are written as ? stand in the span."""
    marks = [token.start for token in tokens if token.text == "?"]
    return slice(bisect_left(marks, span.start), bisect_left(marks, span.end))


def _args_in(args: Args, tokens: list[Token], spans: list[Span]) -> Args:
    """The parameters of the parts of a text."""
    if not isinstance(args, list):
        return args
    return [value for span in spans for value in args[_places(tokens, span)]] or None


def _args_without(args: Args, tokens: list[Token], span: Span) -> Args:
    """The parameters of the text without a part."""
    if not isinstance(args, list):
        return args
    places = _places(tokens, span)
    return args[: places.start] + args[places.stop :]


def _spark_sql(current: _Text, text: str, args: Args) -> DataFrame:
    """The text as Spark runs it, stand-ins replaced by the DataFrames they stand for."""
    names = {f"`{name}`": name for name in current.frames}
    places = [token for token in tokens_of(text) if token.text in names]
    if not places:
        return current.spark.sql(text, args or None)
    # Spark puts a frame in where a name stands in braces; all other braces are the user's.
    parts, position = [], 0
    for token in places:
        parts += [_escaped(text[position : token.start]), f"{{{names[token.text]}}}"]
        position = token.end
    used = {names[token.text]: current.frames[names[token.text]] for token in places}
    formatted = "".join([*parts, _escaped(text[position:])])
    return current.spark.sql(formatted, args or None, **used)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
