"""Row patterns and the regular-expression operator: a definition and a schema to an `AnalyzedRowPattern`.

Afterwards every name refers to a variable, a subset or a column that exists, every expression has its type, and the
rules of ISO SQL:2016 that make a clause illegal have been checked.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace

from kleene.analysis.conversions import type_of
from kleene.analysis.own_calls import check_vectorized, output
from kleene.analysis.scope import Scope
from kleene.analysis.value_types import condition, typed
from kleene.errors import (
    AnalysisError,
    KleeneWarning,
    SchemaError,
    did_you_mean,
    listed,
    printable,
)
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection, WindowUnit
from kleene.ir.paths import path_of
from kleene.ir.pattern import Exclusion, Pattern, Repeat, can_be_empty, first_variables, variables_in
from kleene.ir.query import Measure, QueryDefinition
from kleene.ir.text import expression_text
from kleene.schema import (
    DATE,
    INTEGER,
    UNKNOWN,
    EventSchema,
    TimestampType,
    Type,
    a_type,
    advice_on,
    fits_everywhere,
    is_numeric,
    is_plain,
)
from kleene.source import NO_SPAN, SourceText, Span

FRAME_END = "__kleene_frame_end"
FRAME_END_HINT = "Give a number from 0 up, for example coalesce(n, 0) FOLLOWING."
_OF_SEVERAL_ROWS = (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column to order by. `nulls_first` is None where the user said nothing about NULLs: then there are none."""

    name: str
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True, slots=True)
class AnalyzedFrame:
    """How many rows behind its own the match of a row may see: so many, as many as a column says, or all of them."""

    rows: int | None
    column: str | None
    seeks: bool
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def is_bounded(self) -> bool:
        return self.rows is not None or self.column is not None


@dataclass(frozen=True, slots=True)
class AnalyzedRowPattern:
    """`computed` are the keys that are not columns: they are added to the input under the names given here.

    `hidden` are columns that were added to the input for the query's sake, and are not part of its rows.
    `order_by` has each column once; it is empty where the query gives no order. `partition_columns` and
    `order_columns` are what the items of these clauses give out, repeated where they are repeated.
    """

    definition: QueryDefinition
    schema: EventSchema | None
    computed: tuple[tuple[str, ir.Expr], ...]
    partition_by: tuple[str, ...]
    order_by: tuple[SortColumn, ...]
    time_type: Type
    conditions: tuple[tuple[str, ir.Expr], ...]
    measures: tuple[Measure, ...]
    warnings: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    frame: AnalyzedFrame | None = None  # of a window
    partition_columns: tuple[str, ...] = ()
    order_columns: tuple[str, ...] = ()

    @property
    def measured_column(self) -> str | None:
        """The column whose values the window bounds; None where there is no window, or where it counts rows."""
        window = self.definition.window
        return None if window is None or window.unit is WindowUnit.EVENTS else self.order_by[0].name

    @property
    def rows_per_match(self) -> RowsPerMatch:
        return self.definition.rows_per_match

    @property
    def expressions(self) -> list[ir.Expr]:
        """All that is computed from the rows of a match: conditions and measures."""
        return [*(condition for _, condition in self.conditions), *(item.expression for item in self.measures)]

    @property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The variables that a name stands for: itself, or those of a subset."""
        own = {variable.name or "": (variable.name or "",) for variable in variables_in(self.definition.pattern)}
        return own | {subset.name: subset.variables for subset in self.definition.subsets}


def analyze_row_pattern(
    definition: QueryDefinition,
    schema: EventSchema | None = None,
    hidden: Iterable[str] = (),
    key_names: Mapping[ir.Expr, str] | None = None,
) -> AnalyzedRowPattern:
    """What the clause means for rows of the schema; without one, all that does not depend on it is checked.

    `hidden` are columns of the schema that were added for the query's sake; `key_names` is what keys are called that do
    not look any more as the user wrote them.
    """
    analysis = _Analysis(definition, schema)
    names = dict(key_names or {})
    analysis.check_names()
    analysis.check_options()
    keys = {analysis.key_name(item, names): analysis.key(item) for item in definition.partition_by}
    sort_keys = {
        analysis.key_name(item.expression, names): analysis.key(item.expression) for item in definition.order_by
    }
    computed = {name: key for name, key in (keys | sort_keys).items() if not isinstance(key, ir.Attribute)}
    frame, end = analysis.frame()
    if end is not None:
        computed[FRAME_END] = end
    named = [(analysis.key_name(item.expression, names), item) for item in definition.order_by]
    order_by: dict[str, SortColumn] = {}
    for name, item in named:  # among equals of the first, a second item has nothing to decide
        order_by.setdefault(name, SortColumn(name, item.descending, item.nulls_first))
    time_type = type_of(sort_keys[named[0][0]]) if named else UNKNOWN
    analysis.check_window(time_type)
    conditions = tuple(
        (item.variable, analysis.said_in(item.source).condition(item.condition)) for item in definition.definitions
    )
    measures = tuple(
        replace(measure, expression=analysis.said_in(measure.source).measure(measure.expression))
        for measure in definition.measures or ()
    )
    partition_by = tuple(keys)
    analysis.check_output(partition_by, set(computed) - set(hidden))
    unseen = frozenset([*hidden, *computed, *definition.hidden])
    return AnalyzedRowPattern(
        definition,
        schema,
        tuple(computed.items()),
        partition_by,
        tuple(order_by.values()),
        time_type,
        conditions,
        measures,
        tuple(analysis.unused_predicates()),
        unseen,
        frame,
        tuple(analysis.key_name(item, names) for item in definition.partition_by),
        tuple(name for name, _ in named if name not in unseen),
    )


def check_measure_names(definition: QueryDefinition, schema: EventSchema, partition_by: tuple[str, ...]) -> None:
    """That the measures, as the user calls them, can stand beside the other columns of the output."""
    _Analysis(definition, schema).check_output(partition_by, set())


def wrong_frame_end(value: object) -> str:
    return "the end of a frame is NULL" if value is None else f"the end of a frame is negative: {value} rows"


class _Analysis:
    def __init__(self, definition: QueryDefinition, schema: EventSchema | None) -> None:
        self.definition, self.schema = definition, schema
        sql = definition.selection is not Selection.FIRST_COMPLETED
        self.scope = Scope(definition.source, schema, {}, None, functions_of_spark=sql)
        self._variables = {variable.name or "" for variable in variables_in(definition.pattern)}
        self._subsets = {subset.name for subset in definition.subsets}

    def fail(self, message: str, span: Span, hint: str | None = None) -> AnalysisError:
        return self.scope.fail(message, span, hint)

    def said_in(self, source: SourceText | None) -> _Analysis:
        """The same, for an expression that stands in a text of its own."""
        if source is None:
            return self
        other = copy(self)
        other.scope = replace(self.scope, source=source)
        return other

    def condition(self, expression: ir.Expr) -> ir.Expr:
        found = condition(self.resolved(expression, in_define=True), self.scope)
        for predicate in found.operands if isinstance(found, ir.And) else (found,):
            check_vectorized(predicate, self.scope, _OF_SEVERAL_ROWS)
        return found

    def measure(self, expression: ir.Expr) -> ir.Expr:
        return output(self.resolved(expression), self.scope)

    # --- names and options ---------------------------------------------------------------------------------------

    def check_names(self) -> None:
        """Variables, subsets, definitions and the skip target fit together."""
        definition, defined = self.definition, set[str]()
        may_be_unused = definition.selection is Selection.FIRST_COMPLETED  # there it is a warning
        for item in definition.definitions:
            if not may_be_unused and item.variable not in self._variables:
                raise self.fail(
                    f"'{printable(item.variable)}' is defined, but the pattern does not have it",
                    item.span,
                    self._variables_hint(item.variable),
                )
            if item.variable in defined:
                raise self.fail(
                    f"'{printable(item.variable)}' is defined twice", item.span, "Join the conditions with AND."
                )
            defined.add(item.variable)
        self._check_subsets()
        after = definition.after_match
        if after is not None and after.variable is not None:
            self._known(after.variable, after.span)

    def _check_subsets(self) -> None:
        names: set[str] = set()
        for subset in self.definition.subsets:
            if subset.name in self._variables:
                raise self.fail(f"the subset '{printable(subset.name)}' has the name of a variable", subset.span)
            if subset.name in names:
                raise self.fail(f"two subsets are called '{printable(subset.name)}'", subset.span)
            names.add(subset.name)
            for member, span in zip(subset.variables, subset.variable_spans, strict=True):
                if member not in self._variables:
                    raise self.fail(
                        f"'{printable(member)}' is not a variable of the pattern", span, self._variables_hint(member)
                    )

    def _variables_hint(self, name: str) -> str:
        return f"Variables of the pattern: {listed(sorted(self._variables))}.{did_you_mean(name, self._variables)}"

    def _known(self, name: str, span: Span) -> None:
        known = self._variables | self._subsets
        if name not in known:
            raise self.fail(
                f"unknown variable '{printable(name)}'",
                span,
                f"Variables and subsets: {listed(sorted(known))}.{did_you_mean(name, known)}",
            )

    def check_options(self) -> None:
        definition = self.definition
        if definition.selection is Selection.FIRST_COMPLETED:
            self._check_regular_expression()
        if definition.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED:
            for exclusion in _exclusions(definition.pattern):
                raise self.fail(
                    "an exclusion {- -} is not allowed with ALL ROWS PER MATCH WITH UNMATCHED ROWS",
                    exclusion.span,
                    "Nothing could tell an excluded row from an unmatched one; use SHOW or OMIT EMPTY MATCHES.",
                )

    def _check_regular_expression(self) -> None:
        """MatchRegex 2012 §4: a match has at least one event, and nothing is aggregated before there is one."""
        pattern = self.definition.pattern
        if can_be_empty(pattern):
            raise self.fail(
                "the pattern can match the empty sequence, which would be found everywhere",
                pattern.span,
                "Make at least one part of it necessary: + instead of *",
            )
        conditions = {item.variable: item.condition for item in self.definition.definitions}
        for variable in first_variables(pattern):
            first = conditions.get(variable.name or "")
            if first is not None and any(isinstance(node, ir.Aggregate) for node in ir.walk(first)):
                raise self.fail(
                    f"a match can begin with '{printable(variable.name or '')}', which aggregates earlier events",
                    variable.span,
                    "There are none yet; begin the pattern with a dot or with a predicate on the event alone.",
                )

    def unused_predicates(self) -> Iterable[str]:
        for item in self.definition.definitions:
            if item.variable not in self._variables:
                yield f"the predicate '{printable(item.variable)}' is not used in the pattern"

    def check_window(self, time_type: Type) -> None:
        window = self.definition.window
        if window is None or window.unit is WindowUnit.EVENTS:
            return
        if not self.definition.order_by:
            raise self.fail(
                "WITHIN measures the first column of ORDER BY, but there is no ORDER BY",
                window.span,
                "Add ORDER BY, or count rows: WITHIN 100 ROWS.",
            )
        if time_type == UNKNOWN:
            return
        is_time = isinstance(time_type, TimestampType) or time_type == DATE
        if window.unit is WindowUnit.TIME and not is_time:
            raise self.fail(
                f"the window is a duration, but the first order column is {a_type(time_type)}",
                window.span,
                "Write WITHIN and a number in the units of the order column, or WITHIN n ROWS.",
            )
        if window.unit is WindowUnit.ORDER_KEY and not is_numeric(time_type):
            raise self.fail(
                f"the window {window.size} has no unit, but the first order column is {a_type(time_type)}",
                window.span,
                f"Write WITHIN {window.size} seconds (or minutes, hours, days), or WITHIN {window.size} ROWS.",
            )

    def check_output(self, partition_by: tuple[str, ...], computed: set[str]) -> None:
        """No two columns of the output have one name, in any case of letters, since Spark sees no difference."""
        definition = self.definition
        has_columns = definition.partition_by or definition.measures
        if self.schema is not None and definition.rows_per_match is RowsPerMatch.ONE and not has_columns:
            raise self.fail(
                "the result would have no columns: ONE ROW PER MATCH gives the partition columns and the measures",
                definition.pattern.span,
                "Add MEASURES, for example MEASURES count(*) AS n, or ask for ALL ROWS PER MATCH.",
            )
        columns = {name.lower() for name in self.schema or ()}
        for name in computed:
            if name.lower() in columns:
                raise self.fail(
                    f"the key '{printable(name)}' has the name of a column of the input", NO_SPAN, "Rename the column."
                )
        taken: dict[str, str] = {}
        if self.definition.selection is not Selection.FIRST_COMPLETED:
            taken |= {name.lower(): "a partition column" for name in partition_by}
        if self.definition.rows_per_match is not RowsPerMatch.ONE:
            taken |= dict.fromkeys(columns, "a column of the input")
        for measure in self.definition.measures or ():
            if measure.name.lower() in taken:
                raise self.fail(
                    f"the measure '{printable(measure.name)}' has the name of {taken[measure.name.lower()]}",
                    measure.span,
                    "Choose another name after AS.",
                )
            taken[measure.name.lower()] = "another measure"

    # --- expressions ---------------------------------------------------------------------------------------------

    def key_name(self, expression: ir.Expr, names: Mapping[ir.Expr, str]) -> str:
        """What a key is called: its column, or its own text."""
        if isinstance(expression, ir.Attribute):
            return self._column(expression)
        return names.get(expression) or expression_text(expression)

    def key(self, expression: ir.Expr, what: str = "a key") -> ir.Expr:
        """An expression of PARTITION BY, of ORDER BY or of a frame: of the row alone."""
        for node in ir.walk(expression):
            if isinstance(node, (ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber)):
                raise self.fail(f"{what} is computed from the row alone", node.span)
            if isinstance(node, ir.Attribute) and node.variable is not None:
                raise self.fail(
                    f"{what} has no variables, but '{printable(node.variable)}' looks like one",
                    node.variable_span,
                    f"Write: {printable(node.name)}. The clause does not know aliases of the table.",
                )
        key = typed(self._with_columns(expression), self.scope)
        found = type_of(key)
        if not is_plain(found):
            location = self.scope.source.locate(key.span)
            raise SchemaError(f"cannot compare values of type {found.name}", location, advice_on(found))
        return key

    def frame(self) -> tuple[AnalyzedFrame | None, ir.Expr | None]:
        """The frame of a window; and its end, if that is to be computed for each row."""
        frame = self.definition.frame
        if frame is None or frame.end is None:
            return None if frame is None else AnalyzedFrame(None, None, frame.seeks, frame.span), None
        end = self.key(frame.end, "the end of a frame")
        if end.type != INTEGER and not fits_everywhere(type_of(end)):
            raise self.fail(
                f"a frame ends a whole number of rows further, but this is {a_type(type_of(end))}", end.span
            )
        if isinstance(end, ir.Literal):
            if not isinstance(end.value, int) or end.value < 0:
                raise self.fail(wrong_frame_end(end.value), end.span, FRAME_END_HINT)
            return AnalyzedFrame(end.value, None, frame.seeks, frame.span), None
        if isinstance(end, ir.Attribute):
            return AnalyzedFrame(None, end.name, frame.seeks, frame.span), None
        return AnalyzedFrame(None, FRAME_END, frame.seeks, frame.span), end

    def resolved(self, expression: ir.Expr, in_define: bool = False) -> ir.Expr:
        for node in ir.walk(expression):
            match node:
                case ir.Attribute(variable=str() as name, variable_span=span):
                    self._known(name, span)
                case ir.Events(variable=str() as name, variable_span=span):
                    self._known(name, span)
                case ir.Classifier(variable=str() as name):
                    self._known(name, node.span)
            if in_define and getattr(node, "final", False):
                raise self.fail(
                    "FINAL has no meaning in DEFINE, where the match is not complete", node.span, "Leave FINAL out."
                )
        return self._with_columns(expression)

    def _with_columns(self, expression: ir.Expr) -> ir.Expr:
        """The expression with the names of columns as the input spells them."""
        if isinstance(expression, ir.Attribute):
            return replace(expression, name=self._column(expression), exact=True)
        return ir.with_children(expression, self._with_columns)

    def _column(self, attribute: ir.Attribute) -> str:
        schema, name = self.schema, attribute.name
        if schema is None or name in schema:
            return name
        alike = [] if attribute.exact else [column for column, _ in schema.attributes if column.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        if alike:
            raise self.fail(
                f"'{printable(name)}' could be any of {listed(alike)}",
                attribute.name_span,
                f'Write it in quotes: "{alike[0]}"',
            )
        if attribute.variable is None and name.upper() in self._variables | self._subsets:
            raise self.fail(
                f"'{printable(name)}' is a variable, not a value",
                attribute.name_span,
                f"Name a column of it: {printable(name)}.x; or count its rows: count({printable(name)}.*)",
            )
        message, hint = (
            f"the input has no column '{printable(name)}'",
            f"Columns: {listed(schema)}.{did_you_mean(name, schema)}",
        )
        path = path_of(name)
        if path is not None:  # whether its first name was meant for a variable, nobody knows
            known = sorted(self._variables | self._subsets)
            message = f"'{printable(path.column)}' is neither a variable of the pattern nor a column of the input"
            hint = (
                f"Variables and subsets: {listed(known)}. Columns: {listed(schema)}."
                f"{did_you_mean(path.column, [*known, *schema])} "
                "The clause does not know aliases of the table."
            )
        if attribute.name_span == NO_SPAN:  # an argument of the call, not a word of the query
            raise SchemaError(message, hint=hint)
        raise self.fail(message, attribute.name_span, hint)


def _exclusions(pattern: Pattern) -> Iterable[Exclusion]:
    if isinstance(pattern, Exclusion):
        yield pattern
    parts = getattr(pattern, "elements", ()) or getattr(pattern, "alternatives", ())
    for part in (*parts, *([pattern.element] if isinstance(pattern, (Repeat, Exclusion)) else ())):
        yield from _exclusions(part)


def warn(messages: Iterable[str]) -> None:
    for message in messages:
        python_warnings.warn(message, KleeneWarning, stacklevel=3)


def is_row_pattern(definition: QueryDefinition) -> bool:
    return definition.selection is not Selection.EVERY_RUN
