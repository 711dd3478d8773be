"""What Spark computes for a row pattern before and after matching.

Before: functions that Kleene does not know, where they are about one row: each becomes a hidden column. After: measures
in which such a function, or an aggregate that only Spark has, stands over values of the match: the values become hidden
measures, and Spark computes the measure from them.

Spark gets trees of `Column` values, never text, so no literal or name is ever read as SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.errors import AnalysisError, KleeneError, UnsupportedError, printable
from kleene.ir import expr as ir
from kleene.ir.aggregates import aggregated_variable, is_of_spark
from kleene.ir.functions.names import is_known
from kleene.ir.options import Selection
from kleene.ir.query import Measure, QueryDefinition
from kleene.ir.text import expression_text
from kleene.source import SourceText
from kleene.spark.expressions import Columns, literal_column
from kleene.spark.functions import by_name
from kleene.spark.names import quoted_column

_HIDDEN = "__kleene_"

_OF_THE_MATCH = (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber)


def prepare_foreign(definition: QueryDefinition, frame: DataFrame) -> Prepared:
    """The query and the frame with everything that is Spark's to compute taken out of the query."""
    if definition.selection is Selection.FIRST_COMPLETED:
        return Prepared(definition, frame)
    prepared = Prepared(definition, frame)
    partition_by = tuple(prepared.key(key) for key in definition.partition_by)
    order_by = tuple(replace(key, expression=prepared.key(key.expression)) for key in definition.order_by)
    definitions = tuple(
        replace(item, condition=prepared.of_rows(item.condition, item.variable)) for item in definition.definitions
    )
    measures = tuple(
        part
        for measure in definition.measures or ()
        for part in prepared.measure(replace(measure, expression=prepared.of_rows(measure.expression)))
    )
    prepared.definition = replace(
        definition, partition_by=partition_by, order_by=order_by, definitions=definitions, measures=measures
    )
    return prepared


def refuse_foreign(definition: QueryDefinition) -> None:
    """An error at the first function that is Spark's to compute, for where Spark cannot be asked."""
    if definition.selection is Selection.FIRST_COMPLETED:
        return
    expressions = [
        *definition.partition_by,
        *(key.expression for key in definition.order_by),
        *(item.condition for item in definition.definitions),
        *(measure.expression for measure in definition.measures or ()),
    ]
    for call in (node for one in expressions for node in ir.walk(one) if _is_foreign(node)):
        name = call.function if isinstance(call, ir.Aggregate) else getattr(call, "name", "")
        raise UnsupportedError(
            f"'{printable(name)}' is not a function of Kleene, and a table function cannot ask Spark for it",
            definition.source.locate(call.span),
            "Compute it as a column of the table first, or from the measures afterwards.",
        )


@dataclass(slots=True)
class Prepared:
    """The definition that Kleene can run, the frame that it runs on, and what Spark still has to do."""

    definition: QueryDefinition
    frame: DataFrame
    hidden: list[str] = field(default_factory=list)
    key_names: dict[ir.Expr, str] = field(default_factory=dict)
    _measures: dict[str, _Afterwards] = field(default_factory=dict)

    # --- before matching -----------------------------------------------------------------------------------------

    def key(self, expression: ir.Expr) -> ir.Expr:
        """A key, still called what the user wrote, with unknown functions replaced by columns."""
        if isinstance(expression, ir.Attribute):
            return expression
        name = expression_text(expression)
        if _is_foreign(expression) and not _mentions_a_match(expression):
            return self._column(name, expression, None)
        changed = self.of_rows(expression)
        self.key_names[changed] = name
        return changed

    def of_rows(self, expression: ir.Expr, own: str | None = None) -> ir.Expr:
        """The expression with unknown functions of one row replaced by columns.

        In the condition of a variable, its `own` row is the one that a bare column means.
        """
        if _is_foreign(expression) and not _mentions_a_match(expression):
            attributes = (node for node in ir.walk(expression) if isinstance(node, ir.Attribute))
            variables = {None if node.variable == own else node.variable for node in attributes}
            if len(variables) <= 1:
                return self._column(f"{_HIDDEN}row_{len(self.hidden)}", expression, next(iter(variables), None))
        return ir.with_children(expression, lambda child: self.of_rows(child, own))

    def _column(self, name: str, expression: ir.Expr, variable: str | None) -> ir.Attribute:
        if name not in self.hidden:
            self._check_is_new(name, expression)
            self.frame = self._with_column(name, expression)
            self.hidden.append(name)
        return ir.Attribute(variable, name, span=expression.span, name_span=expression.span)

    def _check_is_new(self, name: str, expression: ir.Expr) -> None:
        """Spark would put the key in the place of a column that is called like it."""
        if name.lower() in (column.lower() for column in self.frame.columns):
            raise AnalysisError(
                f"the input has a column with the name of this key: '{printable(name)}'",
                self.definition.source.locate(expression.span),
                "Rename the column.",
            )

    def _with_column(self, name: str, expression: ir.Expr) -> DataFrame:
        try:
            frame = self.frame.withColumn(name, Columns(self.frame, self.definition.source).of(expression))
            _ = frame.schema  # by Spark Connect nobody knows before whether there is such a column
        except KleeneError:
            raise
        except Exception as error:  # what is nested too deep for Spark Connect is not one of PySpark's own errors
            raise self._refused_by_spark(error, expression) from None
        return frame

    def _refused_by_spark(self, error: Exception, expression: ir.Expr) -> AnalysisError:
        """Spark speaks of columns that the user never wrote; the user's own text is what the error must point at."""
        said = printable(next(iter(str(error).splitlines()), type(error).__name__), 300)
        return AnalysisError(f"Spark cannot compute this: {said}", self.definition.source.locate(expression.span))

    # --- after matching ------------------------------------------------------------------------------------------

    def measure(self, measure: Measure) -> list[Measure]:
        """The measures that Kleene computes for this one: itself, or the values that Spark makes it from."""
        if not any(_is_foreign(node) for node in ir.walk(measure.expression)):
            return [measure]
        afterwards = _Afterwards(measure, len(self._measures), measure.source or self.definition.source)
        afterwards.finished = afterwards.of(measure.expression)
        self._measures |= {part.name: afterwards for part in afterwards.parts}
        return afterwards.parts

    def finished(self, found: DataFrame) -> DataFrame:
        """The result with the measures that Spark computes, each in the place of the values it is made from."""
        measures = list({id(measure): measure for measure in self._measures.values()}.values())
        if not measures:
            return found
        error = self._error_in(found, measures)
        if error is None:
            return self._with_measures(found, measures)
        culprit = next((measure for measure in measures if self._error_in(found, [measure])), measures[0])
        raise self._refused_by_spark(error, culprit.measure.expression)

    def _error_in(self, found: DataFrame, measures: list[_Afterwards]) -> Exception | None:
        try:
            _ = self._with_measures(found, measures).schema
        except KleeneError:
            raise
        except Exception as error:
            return error
        return None

    def _with_measures(self, found: DataFrame, measures: list[_Afterwards]) -> DataFrame:
        wanted = {name: quoted_column(name) for name in found.columns}
        aggregates = [aggregate for measure in measures for aggregate in measure.aggregates]
        if aggregates:
            # Once: each lateral join makes Spark plan all that comes before it twice.
            found = found.lateralJoin(_aggregates_of_match(found, aggregates))
        columns = Columns(found, self.definition.source)
        for measure in measures:
            first, *others = (part.name for part in measure.parts)
            wanted[first] = columns.of(measure.finished).alias(measure.measure.name)
            for other in others:
                del wanted[other]
        return found.select(*wanted.values())


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """An aggregate that only Spark has, of the rows of a variable: each array holds a value for each of them."""

    name: str
    value: Column
    arrays: tuple[str, ...]
    written: ir.Aggregate

    @property
    def rows(self) -> tuple[str | None, bool, ir.Expr | None, tuple[ir.OrderKey, ...], tuple[str, ...]]:
        """What decides over which rows it is, and in which order; of distinct ones, also their values."""
        own = self.written
        values = self.arrays if own.distinct else ()
        return aggregated_variable(own), own.final, own.condition, own.order, values


def _aggregates_of_match(found: DataFrame, aggregates: Sequence[_Aggregate]) -> DataFrame:
    """One row with all aggregates, to be joined to each row of the matches."""
    rows = dict.fromkeys(aggregate.rows for aggregate in aggregates)
    apart = [_of_rows(found, [one for one in aggregates if one.rows == own]) for own in rows]
    return reduce(lambda one, other: one.crossJoin(other), apart)


def _of_rows(found: DataFrame, aggregates: Sequence[_Aggregate]) -> DataFrame:
    """Aggregates over the same rows."""
    arrays = list(dict.fromkeys(array for aggregate in aggregates for array in aggregate.arrays))
    zipped = F.arrays_zip(*(quoted_column(array).outer() for array in arrays))
    if aggregates[0].written.distinct:
        zipped = F.array_distinct(zipped)
    rows = found.sparkSession.tvf.inline(zipped).toDF(*arrays)
    return rows.select(*(aggregate.value.alias(aggregate.name) for aggregate in aggregates))


@dataclass(slots=True)
class _Afterwards:
    """A measure that Spark computes: `finished` is about the hidden measures in `parts`."""

    measure: Measure
    number: int
    source: SourceText
    parts: list[Measure] = field(default_factory=list)
    aggregates: list[_Aggregate] = field(default_factory=list)
    finished: ir.Expr = field(init=False)

    def of(self, expression: ir.Expr) -> ir.Expr:
        """What is left for Spark of the expression; what holds no foreign function is a value that Kleene computes."""
        if isinstance(expression, ir.Literal):
            return expression
        if any(isinstance(node, (ir.Lambda, ir.LambdaVariable)) for node in ir.walk(expression)):
            return ir.with_children(expression, self.of)  # only Spark knows what its parameters are
        if not any(_is_foreign(node) for node in ir.walk(expression)):
            return _attribute(self._part(expression))
        if isinstance(expression, ir.Aggregate) and is_of_spark(expression):
            return _attribute(self._aggregate(expression))
        if isinstance(expression, ir.Aggregate):
            call = next(node for node in ir.walk(expression) if _is_foreign(node))
            raise AnalysisError(
                "inside an aggregate, a function that only Spark has can be about columns, and not about CLASSIFIER() "
                "or MATCH_NUMBER()",
                self.source.locate(call.span),
                "Aggregate the values with array_agg, and transform the array afterwards.",
            )
        return ir.with_children(expression, self.of)

    def _part(self, expression: ir.Expr) -> str:
        name = f"{_HIDDEN}measure_{self.number}_{len(self.parts)}"
        self.parts.append(Measure(name, expression, expression.span))
        return name

    def _aggregate(self, aggregate: ir.Aggregate) -> str:
        """The aggregate of the values of all rows that count, which are handed over as arrays."""
        arrays: list[str] = []
        arguments: list[Column] = []
        given = (aggregate.argument, *aggregate.others)
        if all(isinstance(argument, ir.Literal) for argument in given):
            arrays.append(self._array(aggregate, ir.Classifier(aggregated_variable(aggregate))))  # for its rows
        for argument in given:
            if isinstance(argument, ir.Literal):
                arguments.append(literal_column(argument))
            else:
                arrays.append(self._array(aggregate, argument))
                arguments.append(quoted_column(arrays[-1]))
        name = f"{_HIDDEN}aggregate_{self.number}_{len(self.aggregates)}"
        self.aggregates.append(_Aggregate(name, by_name(aggregate.function, arguments), tuple(arrays), aggregate))
        return name

    def _array(self, aggregate: ir.Aggregate, argument: ir.Expr) -> str:
        """The values of the argument in the rows of the aggregate, as a measure."""
        values = replace(aggregate, function="array_agg", argument=argument, others=(), distinct=False)
        return self._part(replace(values, span=argument.span))


def _attribute(name: str) -> ir.Attribute:
    return ir.Attribute(None, name, exact=True)


def _is_foreign(node: ir.Expr) -> bool:
    return is_of_spark(node) or (isinstance(node, ir.Function) and not is_known(node))


def _mentions_a_match(expression: ir.Expr) -> bool:
    return any(isinstance(node, _OF_THE_MATCH) for node in ir.walk(expression))
