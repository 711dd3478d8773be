"""Texts in double quotes. In a clause they are names; what is no name there is a string, as in Spark's SQL.

With `spark.sql.ansi.doubleQuotedIdentifiers` they are names to Spark too, and none is a string.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from kleene.ir import expr as ir
from kleene.ir.paths import mentions
from kleene.ir.pattern import variables_in
from kleene.ir.query import QueryDefinition
from kleene.schema import STRING
from kleene.source import SourceText


def with_strings(definition: QueryDefinition, frame: DataFrame) -> QueryDefinition:
    """The clause with strings for texts in double quotes that are neither columns nor variables."""
    if not any(_is_quoted(item.name, item.span.start, definition.source) for item in mentions(definition)):
        return definition
    if _are_names(frame.sparkSession):
        return definition
    variables = {variable.name for variable in variables_in(definition.pattern)}
    subsets = {subset.name for subset in definition.subsets}
    names = {name.lower() for name in (*frame.columns, *variables, *subsets) if name}

    def changed(expression: ir.Expr) -> ir.Expr:
        match expression:
            case ir.Attribute(variable=None, name=name) if name.lower() not in names:
                if _is_quoted(name, expression.name_span.start, definition.source):
                    return ir.Literal(name, STRING, span=expression.span)
        return ir.with_children(expression, changed)

    return replace(
        definition,
        definitions=tuple(replace(item, condition=changed(item.condition)) for item in definition.definitions),
        measures=None
        if definition.measures is None
        else tuple(replace(item, expression=changed(item.expression)) for item in definition.measures),
    )


def _is_quoted(name: str, start: int, source: SourceText) -> bool:
    """Whether the name stands there in double quotes, with nothing behind it."""
    return source.text.startswith('"' + name.replace('"', '""') + '"', start)


def _are_names(spark: SparkSession) -> bool:
    settings = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")
    return all(spark.conf.get(setting, "false") == "true" for setting in settings)
