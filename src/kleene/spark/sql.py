"""SQL texts on Spark: what is plain SQL in them is left to Spark, word for word, unless it would run foreign code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyspark
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from kleene.call import Call
from kleene.errors import AnalysisError, QuerySyntaxError, UnsupportedError, printable
from kleene.ir.own import NO_FUNCTIONS, Own
from kleene.ir.query import QueryDefinition
from kleene.options import EngineOptions
from kleene.source import Location, SourceText, Span
from kleene.spark.declared_match import matches_as_declared
from kleene.spark.foreign_code import check_tokens
from kleene.spark.job import make_job
from kleene.spark.notes import with_notes_of
from kleene.sqltext.plain import plain_statement
from kleene.sqltext.statement import Args, Excerpt
from kleene.sqltext.tokens import Token, tokens_of


@dataclass(slots=True)
class SparkBackend:
    """Runs a text in a Spark session. Frames are DataFrames."""

    spark: SparkSession
    allow_jvm_calls: bool
    engine: EngineOptions
    schema: Any = None  # that of the table before the clause, if Spark is not to be asked
    has_matched: bool = False

    def check(self, text: str, tokens: list[Token], original: SourceText, construct: str | None) -> None:
        """An error if Spark would run code of others, or keep the text without its constructs."""
        if construct is not None:
            _refuse_view(tokens, original, construct)
        if not self.allow_jvm_calls:
            substitutes = self.spark.conf.get("spark.sql.variable.substitute") != "false"
            check_tokens(text, tokens, original, substitutes)

    def table(self, excerpt: Excerpt) -> DataFrame:
        """The text as Spark runs it, stand-ins replaced by the DataFrames they stand for."""
        text, args = excerpt.text, excerpt.args or None
        names = {f"`{name}`": name for name in excerpt.frames}
        places = [token for token in tokens_of(text) if token.text in names]
        if not places:
            return self.spark.sql(text, args)
        # Spark puts a frame in where a name stands in braces; all other braces are the user's.
        parts, position = [], 0
        for token in places:
            parts += [_escaped(text[position : token.start]), f"{{{names[token.text]}}}"]
            position = token.end
        used = {names[token.text]: excerpt.frames[names[token.text]] for token in places}
        return self.spark.sql("".join([*parts, _escaped(text[position:])]), args, **used)

    def columns(self, frame: DataFrame) -> list[str]:
        return frame.columns

    def count_columns(self, excerpt: Excerpt, location: Location | None, hint: str) -> int:
        if self.schema is not None:
            raise UnsupportedError(
                "schema declares all columns of the table, so the clause cannot have subqueries",
                location,
                "Add what they compute to the table as a column, and declare it.",
            )
        try:
            return len(self.table(excerpt).columns)
        except PySparkException as error:
            said = printable(next(iter(str(error).strip().splitlines()), ""), 300)
            raise AnalysisError(f"Spark cannot compute the subquery: {said}", location, hint) from None

    def order_of(self, frame: DataFrame) -> list[str]:
        """All columns that have an order; maps have none."""
        return [field.name for field in frame.schema.fields if "map<" not in field.dataType.simpleString()]

    def matches(self, definition: QueryDefinition, frame: DataFrame, location: Location | None) -> DataFrame:
        call = Call(definition, engine=self.engine)
        if self.schema is None:
            return make_job(call, frame, allow_jvm_calls=self.allow_jvm_calls).matches()
        if self.has_matched:
            raise UnsupportedError(
                "schema declares the columns of one table, but the text has several MATCH_RECOGNIZE clauses",
                location,
                "Give each clause a text of its own; in a pipeline, a view of its own.",
            )
        self.has_matched = True
        return matches_as_declared(call, frame, self.schema)


def sql(
    spark: SparkSession,
    text: str,
    args: Args,
    allow_jvm_calls: bool,
    schema: Any,
    engine: EngineOptions,
    functions: Mapping[str, Own] = NO_FUNCTIONS,
) -> DataFrame:
    """The result of a Spark SQL query in which table factors may carry MATCH_RECOGNIZE."""
    backend = SparkBackend(spark, allow_jvm_calls, engine, schema)
    statement = plain_statement(text, args, backend, functions)
    return with_notes_of(statement.frames.values(), _around(backend, statement.whole()))


def _around(backend: SparkBackend, text: Excerpt) -> DataFrame:
    """The text in which all clauses have been replaced.

    Before 4.3, Spark analyzes a text that DataFrames are put into at once, and in a pipeline it knows no tables then.
    """
    try:
        return backend.table(text)
    except AnalysisException as error:
        is_old = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3)
        if backend.schema is None or not is_old or "TABLE_OR_VIEW_NOT_FOUND" not in str(error):
            raise
        said = printable(next(iter(str(error).strip().splitlines()), ""), 200)
        raise UnsupportedError(
            f"Spark analyzes the text around the clause at once: {said}",
            hint="In a pipeline, kleene.sql needs PySpark 4.3 or newer; with an older one write "
            "kleene.match_recognize(clause).match(spark.read.table(…), schema=…).",
        ) from None


def _refuse_view(tokens: list[Token], original: SourceText, construct: str) -> None:
    words = [token.word for token in tokens[:6]]
    if words[:1] == ["CREATE"] and "VIEW" in words:
        raise QuerySyntaxError(
            f"a view cannot contain {construct}: Spark keeps a view as text, and does not know the clause",
            original.locate(Span(tokens[0].start, tokens[0].end)),
            "Name the result instead: kleene.sql(spark, 'SELECT …').createOrReplaceTempView('name')",
        )


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
