"""What Spark computes for a row pattern before and after matching.

Before: functions that Kleene does not know, where they are about one row: each becomes a hidden column. After: measures
in which such a function, or an aggregate that only Spark has, stands over values of the match: the values become hidden
measures, and Spark computes the measure from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.value_types import FUNCTIONS
from kleene.errors import AnalysisError, printable
from kleene.ir import expr as ir
from kleene.ir.options import Selection
from kleene.ir.query import Measure, QueryDefinition
from kleene.ir.text import expression_text, literal_text
from kleene.schema import DURATION, FLOAT, INTEGER, STRING, DecimalType, Type
from kleene.source import SourceText
from kleene.spark.names import quoted, quoted_column

_HIDDEN = "__kleene_"

# Aggregates of Spark besides our own: a call of one of them is over many rows, of any other function over one.
# fmt: off
SPARK_AGGREGATES = frozenset(
    {
        "any", "any_value", "approx_count_distinct", "approx_percentile", "bit_and", "bit_or", "bit_xor",
        "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count_if", "covar_pop", "covar_samp",
        "every", "first_value", "histogram_numeric", "kurtosis", "last_value", "listagg", "max_by", "mean",
        "median", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont", "percentile_disc",
        "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
        "regr_sxy", "regr_syy", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp",
        "string_agg", "try_avg", "try_sum", "var_pop", "var_samp", "variance",
    }
)
# fmt: on
_OF_THE_MATCH = (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber)


def prepare_foreign(definition: QueryDefinition, frame: DataFrame) -> Prepared:
    """The query and the frame with everything that is Spark's to compute taken out of the query."""
    if definition.selection is Selection.FIRST_COMPLETED:
        return Prepared(definition, frame)
    prepared = Prepared(definition, frame)
    partition_by = tuple(prepared.key(key) for key in definition.partition_by)
    order_by = tuple(replace(key, expression=prepared.key(key.expression)) for key in definition.order_by)
    definitions = tuple(replace(item, condition=prepared.of_rows(item.condition)) for item in definition.definitions)
    measures = tuple(
        part
        for measure in definition.measures or ()
        for part in prepared.measure(replace(measure, expression=prepared.of_rows(measure.expression)))
    )
    prepared.definition = replace(
        definition, partition_by=partition_by, order_by=order_by, definitions=definitions, measures=measures
    )
    return prepared


@dataclass(slots=True)
class Prepared:
    """The definition that Kleene can run, the frame that it runs on, and what Spark still has to do."""

    definition: QueryDefinition
    frame: DataFrame
    hidden: list[str] = field(default_factory=list)
    key_names: dict[ir.Expr, str] = field(default_factory=dict)
    _measures: dict[str, _Afterwards] = field(default_factory=dict)
    _aggregates: list[tuple[str, str]] = field(default_factory=list)

    # --- before matching -----------------------------------------------------------------------------------------

    def key(self, expression: ir.Expr) -> ir.Expr:
        """A key, still called what the user wrote, with unknown functions replaced by columns."""
        if isinstance(expression, ir.Attribute):
            return expression
        name = expression_text(expression)
        if _is_foreign(expression) and not _mentions_a_match(expression) and not _has_aggregate(expression):
            return self._column(name, expression, None)
        changed = self.of_rows(expression)
        self.key_names[changed] = name
        return changed

    def of_rows(self, expression: ir.Expr) -> ir.Expr:
        """The expression with unknown functions of one row replaced by columns."""
        if _is_foreign(expression) and not _mentions_a_match(expression):
            variables = {node.variable for node in ir.walk(expression) if isinstance(node, ir.Attribute)}
            if len(variables) <= 1 and not _has_aggregate(expression):
                return self._column(f"{_HIDDEN}row_{len(self.hidden)}", expression, next(iter(variables), None))
        return ir.with_children(expression, self.of_rows)

    def _column(self, name: str, expression: ir.Expr, variable: str | None) -> ir.Attribute:
        if name not in self.hidden:
            text = _spark_text(expression, _without_variable)
            try:
                self.frame = self.frame.withColumn(name, F.expr(text))
            except PySparkException as error:
                # Spark speaks of our text; the user's own is what the error must point at.
                raise AnalysisError(
                    f"Spark cannot compute this: {printable(str(error).splitlines()[0], 300)}",
                    self.definition.source.locate(expression.span),
                ) from None
            self.hidden.append(name)
        return ir.Attribute(variable, name, span=expression.span, name_span=expression.span)

    # --- after matching ------------------------------------------------------------------------------------------

    def measure(self, measure: Measure) -> list[Measure]:
        """The measures that Kleene computes for this one: itself, or the values that Spark makes it from."""
        if not any(_is_foreign(node) for node in ir.walk(measure.expression)):
            return [measure]
        afterwards = _Afterwards(measure, len(self._measures), self._aggregates, self.definition.source)
        afterwards.text = afterwards.of(measure.expression)
        self._measures |= {part.name: afterwards for part in afterwards.parts}
        return afterwards.parts

    def finished(self, found: DataFrame) -> DataFrame:
        """The result with the measures that Spark computes, each in the place of the values it is made from."""
        if not self._measures:
            return found
        names = found.columns
        if self._aggregates:
            laterals = ", ".join(f"LATERAL ({query}) {quoted(name)}" for name, query in self._aggregates)
            columns = ", ".join(f"{quoted(name)}.value AS {quoted(name)}" for name, _ in self._aggregates)
            # Spark puts the frame in where the text says {found}; other braces are the user's.
            laterals = laterals.replace("{", "{{").replace("}", "}}")
            text = f"SELECT found.*, {columns} FROM {{found}} AS found, {laterals}"
            found = found.sparkSession.sql(text, found=found)
        columns_wanted, done = [], set[str]()
        for name in names:
            afterwards = self._measures.get(name)
            if afterwards is None:
                columns_wanted.append(quoted_column(name))
            elif afterwards.measure.name not in done:
                done.add(afterwards.measure.name)
                columns_wanted.append(F.expr(afterwards.text).alias(afterwards.measure.name))
        return found.select(*columns_wanted)


@dataclass(slots=True)
class _Afterwards:
    """A measure that Spark computes: `text` in its language, over the hidden measures in `parts`."""

    measure: Measure
    number: int
    aggregates: list[tuple[str, str]]
    source: SourceText
    parts: list[Measure] = field(default_factory=list)
    text: str = ""

    def of(self, expression: ir.Expr) -> str:
        """Spark's text for the expression; what holds no foreign function is a value that Kleene computes."""
        if isinstance(expression, ir.Literal):
            return _literal(expression)
        if not any(_is_foreign(node) for node in ir.walk(expression)):
            return quoted(self._part(expression))
        if isinstance(expression, ir.Function) and expression.name in SPARK_AGGREGATES:
            return self._aggregate(expression)
        return _with_texts(expression, self.of)

    def _part(self, expression: ir.Expr) -> str:
        name = f"{_HIDDEN}measure_{self.number}_{len(self.parts)}"
        self.parts.append(Measure(name, expression, expression.span))
        return name

    def _aggregate(self, call: ir.Function) -> str:
        """The aggregate of the values of all rows, which are handed over as arrays."""
        arrays: list[str] = []
        arguments: list[str] = []
        if all(isinstance(argument, ir.Literal) for argument in call.arguments):
            arrays.append(f"found.{quoted(self._part(ir.Aggregate('array_agg', ir.Classifier(None))))}")  # for its rows
        self._check_one_variable(call)
        for argument in call.arguments:
            if isinstance(argument, ir.Literal):
                arguments.append(_literal(argument))
            else:
                array = self._part(ir.Aggregate("array_agg", argument, span=argument.span))
                arguments.append(f"row.value_{len(arrays)}")
                arrays.append(f"found.{quoted(array)}")
        name = f"{_HIDDEN}aggregate_{len(self.aggregates)}"
        columns = ", ".join(f"value_{number}" for number in range(len(arrays)))
        source = f"LATERAL inline(arrays_zip({', '.join(arrays)})) AS row({columns})"
        query = f"SELECT {quoted(call.name)}({', '.join(arguments)}) AS value FROM {source}"
        self.aggregates.append((name, query))
        return quoted(name)

    def _check_one_variable(self, call: ir.Function) -> None:
        variables = {node.variable for node in ir.walk(call) if isinstance(node, ir.Attribute)}
        if len(variables) > 1:
            names = " and ".join(sorted(name or "the universal variable" for name in variables))
            raise AnalysisError(
                f"{call.name} is about one variable, and {names} are mentioned", self.source.locate(call.span)
            )


def _is_foreign(node: ir.Expr) -> bool:
    return isinstance(node, ir.Function) and node.name not in FUNCTIONS


def _has_aggregate(expression: ir.Expr) -> bool:
    return any(isinstance(node, ir.Function) and node.name in SPARK_AGGREGATES for node in ir.walk(expression))


def _mentions_a_match(expression: ir.Expr) -> bool:
    return any(isinstance(node, _OF_THE_MATCH) for node in ir.walk(expression))


def _without_variable(node: ir.Expr) -> str | None:
    return quoted(node.name) if isinstance(node, ir.Attribute) else None


def _spark_text(expression: ir.Expr, leaf: Callable[[ir.Expr], str | None]) -> str:
    if isinstance(expression, ir.Literal):
        return _literal(expression)
    return leaf(expression) or _with_texts(expression, lambda child: _spark_text(child, leaf))


def _with_texts(expression: ir.Expr, text_of: Callable[[ir.Expr], str]) -> str:
    """The expression in Spark's words around the texts of its parts, with our meaning where Spark's is another."""
    match expression:
        case ir.Comparison(operator=operator, left=left, right=right):
            one, other = text_of(left), text_of(right)
            unknown = " OR ".join(map(_is_nan, (one, other)))
            return f"CASE WHEN {unknown} THEN NULL ELSE ({one}) {operator} ({other}) END"
        case ir.Arithmetic(operator="/", left=left, right=right):
            return f"try_divide(CAST({text_of(left)} AS DOUBLE), CAST({text_of(right)} AS DOUBLE))"
        case ir.Arithmetic(operator="%", left=left, right=right):
            return f"try_mod({text_of(left)}, {text_of(right)})"
        case ir.Cast(operand=operand, to=to, digits=digits):
            return f"CAST({text_of(operand)} AS {_spark_type(to, digits)})"
    texts: dict[str, str] = {}

    def stand_in(child: ir.Expr) -> ir.Expr:
        name = f"{_HIDDEN}part{len(texts)}x"
        texts[name] = f"({text_of(child)})"
        return ir.Attribute(None, name)

    text = expression_text(ir.with_children(expression, stand_in))
    for name, part in texts.items():
        text = text.replace(name, part)
    return text


def _is_nan(text: str) -> str:
    return f"(typeof({text}) IN ('double', 'float') AND isnan(try_cast({text} AS DOUBLE)))"


def _spark_type(type_: Type, digits: int) -> str:
    if isinstance(type_, DecimalType):
        return f"DECIMAL({digits}, {type_.scale})"
    return {INTEGER: "BIGINT", FLOAT: "DOUBLE"}.get(type_, type_.name.upper())


def _literal(literal: ir.Literal) -> str:
    value = literal.value
    if literal.of_type == STRING and isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if literal.of_type == DURATION and isinstance(value, int):
        return f"INTERVAL '{value / 1_000_000:.6f}' SECOND"
    return literal_text(value, literal.of_type)
