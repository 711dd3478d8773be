"""The MATCH_RECOGNIZE clause to `QueryDefinition`: what stands between its parentheses, as in ISO SQL:2016.

Rules about where a function may stand are the grammar's in all but form, and are checked here; names are checked by
analysis, which knows the columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lark import Token, Tree
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError, QuerySyntaxError, printable
from kleene.ir import expr as ir
from kleene.ir.aggregates import AGGREGATES, SPARK_AGGREGATES, SYNONYMS
from kleene.ir.options import AfterMatch, RowsPerMatch, Selection, Skip, Strategy, WindowUnit
from kleene.ir.own import NO_FUNCTIONS, Own, OwnAggregate
from kleene.ir.paths import Path, Step, path_of, path_text
from kleene.ir.pattern import Pattern
from kleene.ir.query import Definition, Measure, QueryDefinition, SortKey, Subset
from kleene.lang.expressions import (
    Children,
    Name,
    build,
    check_is_text,
    inverted,
    span_of,
    static_steps,
    window_parameter,
    with_steps,
)
from kleene.lang.row_pattern import PatternBuilder
from kleene.schema import BOOLEAN, INTEGER, NULL
from kleene.source import NO_SPAN, SourceText, Span

MOST_PARAMETERS = 3
_NAVIGATION = ("first", "last", "next", "prev")
_WITHOUT_ARGUMENTS = ("match_number", "match_sequence_number")
_GRAMMARS = ("expressions", "row_pattern", "match_recognize")


def parse(text: str, functions: Mapping[str, Own] = NO_FUNCTIONS) -> QueryDefinition:
    """The clause; `MATCH_RECOGNIZE ( … )` may stand around it.

    >>> parse("PARTITION BY id ORDER BY t PATTERN (A B+) DEFINE B AS B.x > PREV(B.x)").definitions[0].variable
    'B'
    """
    check_is_text(text)
    return parse_within(SourceText(text), within_parentheses(text, "MATCH_?RECOGNIZE"), functions=functions)


def within_parentheses(text: str, word: str) -> str:
    """What stands in the parentheses around the text, if there are some, behind the word or alone; else all of it."""
    blank = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    before = rf"({blank}(?:{word}{blank})?\()"
    around = re.fullmatch(rf"{before}(.*)\){blank};?{blank}", text, re.IGNORECASE | re.DOTALL)
    return re.sub(r"[^\n]", " ", around[1]) + around[2] if around else text


@dataclass(frozen=True, slots=True)
class HiddenColumn:
    """A column of the input that a name in the text stands for: the value of a subquery, or a list of its values.

    Where it is `of_rows`, it has a value of its own in each row.
    """

    name: str
    is_list: bool = False
    of_rows: bool = False
    span: Span = NO_SPAN  # of the subquery


def parse_within(
    source: SourceText,
    text: str,
    hidden: Mapping[str, HiddenColumn] | None = None,
    functions: Mapping[str, Own] = NO_FUNCTIONS,
) -> QueryDefinition:
    """The clause in `text`, which is the source with everything before the clause made blank, and cut after it.

    `hidden` are names in it that stand for columns which were added to the input.
    """
    if not text.strip():
        raise QuerySyntaxError(
            "the clause is empty",
            hint="A clause has at least an order and a pattern: ORDER BY ts PATTERN (A B+) DEFINE B AS B.x > PREV(B.x)",
        )
    definition: QueryDefinition = build(ClauseBuilder(source, hidden, functions), _GRAMMARS, "clause", text)
    return definition


def _is_token(value: object) -> bool:
    return isinstance(value, Token) and value.type in ("NAME", "QUOTED_NAME")


def folded(name: Name) -> str:
    """SQL: a name without quotes is the same in any case, and is shown in capitals."""
    return str(name) if name.quoted else name.upper()


@v_args(meta=True)
class ClauseBuilder(PatternBuilder):
    """A method per rule of match_recognize.lark."""

    clauses: tuple[str, ...] = (
        *("PARTITION BY", "ORDER BY", "MEASURES", "ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL MATCHES"),
        *("AFTER MATCH SKIP", "PATTERN", "SUBSET", "WITHIN", "MAXLENGTH", "DEFINE"),
    )

    def __init__(
        self,
        source: SourceText,
        hidden: Mapping[str, HiddenColumn] | None = None,
        functions: Mapping[str, Own] = NO_FUNCTIONS,
    ) -> None:
        super().__init__(source, functions)
        self._hidden = hidden or {}
        self._lists = {column.name for column in self._hidden.values() if column.is_list}

    def look_through(self, tree: Tree[Token]) -> None:
        named = [node for wanted in ("pattern_name", "subset") for node in tree.find_data(wanted)]
        self._pattern_names = {folded(Name(next(node.scan_values(_is_token)))) for node in named}

    def variable_name(self, name: Name) -> str:
        return folded(name)

    def clause(self, _: Meta, children: Children) -> QueryDefinition:
        definition = QueryDefinition(
            Pattern(),
            strategy=Strategy.PARTITION_CONTIGUITY,
            selection=Selection.PREFERRED,
            measures=(),
            hidden=self.hidden_columns,
            source=self.source,
        )
        for part in children:
            if part is not None:
                definition = replace(definition, **part)
        return self._with_skip(definition)

    @property
    def hidden_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._hidden.values())

    def _with_skip(self, definition: QueryDefinition) -> QueryDefinition:
        after = definition.after_match
        if definition.selection is Selection.ALL_MATCHES:
            if after is not None:
                raise self.illegal(
                    "ALL MATCHES gives every match, so there is nothing to skip",
                    after.span,
                    "Leave AFTER MATCH out.",
                )
            return definition
        return definition if after else replace(definition, after_match=AfterMatch())

    def illegal(self, message: str, span: Span, hint: str | None = None) -> AnalysisError:
        return AnalysisError(message, self.source.locate(span), hint)

    # --- clauses -----------------------------------------------------------------------------------------------

    def partition_by(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"partition_by": tuple(self._key(child) for child in children if isinstance(child, ir.Expr))}

    def order_by(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"order_by": tuple(child for child in children if isinstance(child, SortKey))}

    def sort_key(self, _: Meta, children: Children) -> SortKey:
        expression, *words = children
        said = {word.type for word in words if word is not None}
        nulls_first = None if "NULLS" not in said else "FIRST_WORD" in said
        return SortKey(self._key(expression), "DESC" in said, nulls_first)

    def _key(self, expression: ir.Expr) -> ir.Expr:
        for node in ir.walk(expression):
            if isinstance(node, ir.InputConstant):
                raise self.illegal(
                    "a subquery may stand in MEASURES and DEFINE, not in a key",
                    node.span,
                    "Compute the key as a column of the table first.",
                )
        return self.checked(expression)

    def measures(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"measures": tuple(child for child in children if isinstance(child, Measure))}

    def measure(self, meta: Meta, children: Children) -> Measure:
        expression, *_, name = children
        if name is None:
            raise self.fail("a measure needs a name", span_of(meta), "Write: MEASURES expression AS name")
        return Measure(str(name), self.checked(expression), name.span)

    def one_row(self, *_: object) -> dict[str, Any]:
        return {"rows_per_match": RowsPerMatch.ONE}

    def all_rows(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"rows_per_match": children[-1] or RowsPerMatch.ALL_SHOW_EMPTY}

    def empty_matches(self, _: Meta, children: Children) -> RowsPerMatch:
        words = {"SHOW": RowsPerMatch.ALL_SHOW_EMPTY, "OMIT": RowsPerMatch.ALL_OMIT_EMPTY}
        return words.get(children[0].type, RowsPerMatch.ALL_WITH_UNMATCHED)

    def all_matches(self, *_: object) -> dict[str, Any]:
        return {"selection": Selection.ALL_MATCHES}

    def after_match(self, meta: Meta, children: Children) -> dict[str, Any]:
        after: AfterMatch = children[-1]
        return {"after_match": after if after.variable else replace(after, span=span_of(meta))}

    def skip_past_last(self, *_: object) -> AfterMatch:
        return AfterMatch(Skip.PAST_LAST_ROW)

    def skip_to_next(self, *_: object) -> AfterMatch:
        return AfterMatch(Skip.TO_NEXT_ROW)

    def skip_to(self, _: Meta, children: Children) -> AfterMatch:
        which, name = children[1], children[-1]
        first = isinstance(which, Token) and which.type == "FIRST_WORD"
        return AfterMatch(Skip.TO_FIRST if first else Skip.TO_LAST, folded(name), name.span)

    def seeking(self, meta: Meta, children: Children) -> dict[str, Any]:
        raise self.fail(
            f"{children[0].upper()} is a word of windows, and means nothing in MATCH_RECOGNIZE",
            span_of(meta),
            "Leave it out, or move the pattern into a window: OVER ( … ROWS BETWEEN CURRENT ROW AND … PATTERN ( … )).",
        )

    def pattern_clause(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"pattern": children[-1]}

    def subsets(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"subsets": tuple(child for child in children if isinstance(child, Subset))}

    def subset(self, _: Meta, children: Children) -> Subset:
        name, equals, *members = children
        if equals != "=":
            raise self.fail(f"unexpected '{equals}'", span_of(equals), "Write: SUBSET u = (A, B)")
        return Subset(folded(name), tuple(map(folded, members)), name.span, tuple(member.span for member in members))

    def within_time(self, meta: Meta, children: Children) -> dict[str, Any]:
        return {"window": self.window(children[1].value, WindowUnit.TIME, span_of(meta))}

    def within_rows(self, meta: Meta, children: Children) -> dict[str, Any]:
        return {"window": self.window(self.whole(children[1]), WindowUnit.EVENTS, span_of(meta))}

    def within_number(self, meta: Meta, children: Children) -> dict[str, Any]:
        return {"window": self.number_window(children[1], span_of(meta))}

    def within_parameter(self, meta: Meta, children: Children) -> dict[str, Any]:
        return {"window_parameter": window_parameter(children[1], span_of(children[1]))}

    def max_length(self, _: Meta, children: Children) -> dict[str, Any]:
        if children[1].type == "PARAMETER":
            raise self.illegal("MAXLENGTH must be written as a number, not as a parameter", span_of(children[1]))
        length = self.whole(children[1])
        if length < 1:
            raise self.illegal("MAXLENGTH is at least 1", span_of(children[1]))
        return {"max_length": length}

    def definitions(self, _: Meta, children: Children) -> dict[str, Any]:
        return {"definitions": tuple(child for child in children if isinstance(child, Definition))}

    def definition(self, _: Meta, children: Children) -> Definition:
        name, _, condition = children
        # Here there is always a row: the one that is tried.
        return Definition(folded(name), self.checked(_of_variable(condition, None)), name.span)

    # --- references and functions --------------------------------------------------------------------------------

    def bare(self, meta: Meta, children: Children) -> ir.Expr:
        name, *steps = children
        hidden = self._hidden.get(name)
        if hidden is not None:
            return hidden_reference(hidden, None)
        return _attribute(None, name, steps, span_of(meta))

    def in_list(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, *choices = children
        match choices:
            case [ir.InputConstant(name=name) as values] if name in self._lists:
                return inverted(negated is not None, _in_values(operand, values, span_of(meta)))
        return super().in_list(meta, children)

    def attribute(self, meta: Meta, children: Children) -> ir.Expr:
        """A column of a variable; where the first name is no variable, a part of the column of that name."""
        first, name, *steps = children
        if name in self._hidden:
            return hidden_reference(self._hidden[name], folded(first))
        if folded(first) in self._pattern_names:
            return _attribute(first, name, steps, span_of(meta))
        return _attribute(None, first, [str(name), *steps], span_of(meta))

    def array(self, meta: Meta, children: Children) -> ir.Function:
        word, *elements = children
        values = tuple(element for element in elements if element is not None)
        return ir.Function("array", values, span_of(word), span=span_of(meta))

    def lambda_(self, meta: Meta, children: Children) -> ir.Lambda:
        *names, body = children
        parameters = {name.upper(): str(name) for name in names}
        if len(parameters) < len(names) or len(names) > MOST_PARAMETERS:
            raise self.fail(f"a lambda has one to {MOST_PARAMETERS} parameters, each of another name", span_of(meta))
        return ir.Lambda(tuple(parameters.values()), _bound(body, parameters), span=span_of(meta))

    def all_events(self, meta: Meta, _: Children) -> ir.Events:
        return ir.Events(None, ir.Position.EACH, span=span_of(meta))

    def variable_events(self, meta: Meta, children: Children) -> ir.Events:
        return ir.Events(folded(children[0]), ir.Position.EACH, children[0].span, span=span_of(meta))

    def arguments(self, _: Meta, children: Children) -> _Arguments:
        keys = next((child for child in children if isinstance(child, _Order)), None)
        return _Arguments([child for child in children if isinstance(child, ir.Expr)], keys)

    def order_inside(self, meta: Meta, children: Children) -> _Order:
        keys = (child for child in children if isinstance(child, SortKey))
        return _Order(
            tuple(
                ir.OrderKey(key.expression, key.descending, bool(key.nulls_first), span=key.expression.span)
                for key in keys
            ),
            span_of(meta),
        )

    def within_group(self, meta: Meta, children: Children) -> _Order:
        return replace(self.order_inside(meta, children), is_within_group=True)

    def filter(self, meta: Meta, children: Children) -> _Filter:
        return _Filter(children[-1], span_of(meta))

    def call(self, meta: Meta, children: Children) -> ir.Expr:
        return self._call(None, children, span_of(meta))

    def call_with_semantics(self, meta: Meta, children: Children) -> ir.Expr:
        return self._call(children[0], children[1:], span_of(meta))

    def _call(self, semantics: Token | None, children: Children, span: Span) -> ir.Expr:
        name, distinct, given, *behind = children
        arguments: Children = given.values
        orders = [part for part in (given.order, *behind) if isinstance(part, _Order)]
        condition = next((part for part in behind if isinstance(part, _Filter)), None)
        function = SYNONYMS.get(name.lower(), name.lower())
        final = semantics is not None and semantics.upper() == "FINAL"
        own = self.own(name)
        if isinstance(own, OwnAggregate):
            self.check_one_argument(own, name, arguments)
            called = ir.Aggregate(own.name, ir.Expr(), distinct is not None, final, name.span, own=own, span=span)
            return self._aggregate(called, name, arguments, orders, condition)
        if own is None and (function in AGGREGATES or function in SPARK_AGGREGATES):
            called = ir.Aggregate(function, ir.Expr(), distinct is not None, final, name.span, span=span)
            return self._aggregate(called, name, arguments, orders, condition)
        words = [("DISTINCT", span_of(distinct))] if distinct is not None else []
        words += [("WITHIN GROUP" if order.is_within_group else "ORDER BY", order.span) for order in orders]
        words += [("FILTER", condition.span)] if condition is not None else []
        for word, where in words:
            raise self.illegal(f"{word} belongs to aggregates, but {printable(name)} is not one", where)
        if function in _NAVIGATION:
            return self._navigation(function, arguments, semantics, final, name, span)
        if function == "classifier":
            return self._classifier(arguments, semantics, final, name, span)
        if semantics is not None:
            raise self.illegal(
                f"{semantics.upper()} belongs to FIRST, LAST and aggregates, but {printable(name)} is none of these",
                span_of(semantics),
            )
        for argument in arguments:
            if isinstance(argument, ir.Events):
                raise self.illegal(f"only COUNT takes *, but this is {printable(name)}", argument.span)
        if function in _WITHOUT_ARGUMENTS and arguments:
            word = function.upper()
            raise self.illegal(f"{word} takes no arguments", name.span, f"Write: {word}()")
        if function == "match_number":
            return ir.MatchNumber(span=span)
        if function == "match_sequence_number":
            return _row_number(name.span, span)
        if own is not None:
            return self.own_call(own, name, arguments, span)
        return ir.Function(function, tuple(arguments), name.span, span=span)

    def _classifier(
        self, arguments: Children, semantics: Token | None, final: bool, name: Name, span: Span
    ) -> ir.Classifier:
        match arguments:
            case []:
                return ir.Classifier(None, final, span=span)
            case [ir.Attribute(variable=None, name=variable, exact=exact)]:
                return ir.Classifier(variable if exact else variable.upper(), final, span=arguments[0].span)
        raise self.illegal("CLASSIFIER takes a variable or nothing", name.span, "Write: CLASSIFIER() or CLASSIFIER(A)")

    def _navigation(
        self, function: str, arguments: Children, semantics: Token | None, final: bool, name: Name, span: Span
    ) -> ir.Navigation:
        if not 1 <= len(arguments) <= 2:
            raise self.illegal(f"{name.upper()} takes a value and an optional offset", name.span)
        physical = function in ("prev", "next")
        if physical and semantics is not None:
            raise self.illegal(
                f"{semantics.upper()} belongs to FIRST, LAST and aggregates, not to {name.upper()}", span_of(semantics)
            )
        argument = arguments[0]
        distance = self._offset(arguments[1], name) if len(arguments) == 2 else int(physical)
        if isinstance(argument, ir.Navigation) and physical and argument.shift is None:
            return replace(argument, shift=-distance if function == "prev" else distance, span=span)
        self._check_inside(argument, name.upper(), span)
        variable = self._one_variable(argument, name.upper(), span)
        argument = _of_variable(argument, variable)
        if physical:
            shift = -distance if function == "prev" else distance
            return ir.Navigation(argument, variable, shift=shift, span=span)
        return ir.Navigation(argument, variable, function == "last", distance, None, final, span=span)

    def _offset(self, offset: ir.Expr, name: Name) -> int:
        match offset:
            case ir.Literal(value=int() as value) if value >= 0 and not isinstance(value, bool):
                return value
            case ir.Parameter():
                raise self.illegal(
                    f"the offset of {name.upper()} must be written as a number, not as a parameter",
                    offset.span,
                    "It says how many rows the match needs, before any value is known.",
                )
        raise self.illegal(f"the offset of {name.upper()} must be a literal whole number from 0 up", offset.span)

    def _check_inside(self, argument: ir.Expr, function: str, span: Span) -> None:
        for node in ir.walk(argument):
            match node:
                case ir.Navigation():
                    raise self.illegal(
                        f"{function} cannot contain another navigation here",
                        node.span,
                        "Only PREV and NEXT may stand around FIRST or LAST: PREV(LAST(A.x, 1), 2)",
                    )
                case ir.Aggregate():
                    raise self.illegal(f"{function} cannot contain an aggregate", node.span)
                case ir.Events():
                    raise self.illegal(f"{function} needs a value, not rows", node.span)
                case ir.MatchNumber():
                    raise self.illegal(f"{function} needs a value from a row", node.span)
        if not any(_is_of_row(node) for node in ir.walk(argument)):
            raise self.illegal(f"{function} needs a column or CLASSIFIER() inside", span)

    def _one_variable(self, argument: ir.Expr, function: str, span: Span) -> str | None:
        nodes = (node for node in ir.walk(argument) if not isinstance(node, ir.InputConstant))
        found = {node.variable for node in nodes if isinstance(node, (ir.Attribute, ir.Classifier, ir.Events))}
        if len(found) > 1:
            names = sorted(name or "the universal variable" for name in found)
            raise self.illegal(f"{function} is about one variable, but {' and '.join(names)} are named", span)
        return next(iter(found), None)

    def _aggregate(
        self, called: ir.Aggregate, name: Name, arguments: Children, orders: list[_Order], condition: _Filter | None
    ) -> ir.Aggregate:
        self._check_count(called.function, name, len(arguments))
        first, *others = arguments or [ir.Events(None, ir.Position.EACH, span=called.span)]
        for argument in arguments:
            self._check_argument(called, argument, name, len(arguments))
        aggregate = replace(
            called,
            argument=first,
            others=tuple(others),
            condition=None if condition is None else condition.expression,
            order=self._order(called, name, orders),
        )
        for node in ir.walk(aggregate):
            if isinstance(node, ir.Navigation):
                raise self.illegal(f"{name.upper()} cannot contain a navigation", node.span)
            if isinstance(node, ir.Aggregate) and node is not aggregate:
                raise self.illegal("an aggregate cannot contain another", node.span)
            if isinstance(node, ir.Events) and node is not first:
                raise self.illegal(f"{name.upper()} needs a value here, not rows", node.span)
        variable = self._one_variable(aggregate, name.upper(), called.span)
        found = _of_variable(aggregate, variable)
        assert isinstance(found, ir.Aggregate)
        return found

    def _check_count(self, function: str, name: Name, given: int) -> None:
        least, most = AGGREGATES.get(function, (1, None))
        if given < least or (most is not None and given > most):
            words = {1: "one argument", 2: "two arguments"}
            wanted = words.get(least, f"{least} arguments")
            wanted = wanted if least == most else f"{least} or {most} arguments" if most else f"at least {wanted}"
            are = "none is" if not given else "1 is" if given == 1 else f"{given} are"
            raise self.illegal(f"{printable(name.lower())} takes {wanted}, but {are} given", name.span)

    def _check_argument(self, called: ir.Aggregate, argument: ir.Expr, name: Name, given: int) -> None:
        if not isinstance(argument, ir.Events):
            return
        if called.function != "count" or given > 1:
            raise self.illegal(f"only COUNT takes *, but this is {printable(name.upper())}", argument.span)
        if called.distinct:
            raise self.illegal("COUNT(DISTINCT …) needs a value, not rows", argument.span)

    def _order(self, called: ir.Aggregate, name: Name, orders: list[_Order]) -> tuple[ir.OrderKey, ...]:
        """The keys of ORDER BY, which stand inside of the call or, of listagg, behind it."""
        if not orders:
            return ()
        *_, last = orders
        if last.is_within_group and called.function != "listagg":
            raise self.illegal(
                f"WITHIN GROUP belongs to listagg, but this is {printable(name)}",
                last.span,
                f"Write: {printable(name)}(x ORDER BY y)",
            )
        if len(orders) > 1:
            raise self.illegal("the order is given twice", last.span, "Leave one of them out.")
        return last.keys


@dataclass(frozen=True, slots=True)
class _Order:
    """ORDER BY of an aggregate."""

    keys: tuple[ir.OrderKey, ...]
    span: Span
    is_within_group: bool = False


@dataclass(frozen=True, slots=True)
class _Filter:
    expression: ir.Expr
    span: Span


@dataclass(frozen=True, slots=True)
class _Arguments:
    values: Children
    order: _Order | None


def _row_number(name_span: Span, span: Span) -> ir.Expr:
    """MATCH_SEQUENCE_NUMBER(), as Snowflake has it: RUNNING count(*), but NULL where there is no row to number."""
    rows = ir.Aggregate("count", ir.Events(None, ir.Position.EACH, span=span), name_span=name_span, span=span)
    none = ir.Comparison("=", rows, ir.Literal(0, INTEGER, span=span), span=span)
    return ir.Case(((none, ir.Literal(None, NULL, span=span)),), rows, span=span)


def hidden_reference(hidden: HiddenColumn, variable: str | None) -> ir.Attribute:
    kind = ir.Attribute if hidden.of_rows else ir.InputConstant
    return kind(variable, hidden.name, variable_span=hidden.span, name_span=hidden.span, span=hidden.span)


def _is_of_row(node: ir.Expr) -> bool:
    return isinstance(node, (ir.Attribute, ir.Classifier)) and not isinstance(node, ir.InputConstant)


def _of_variable(expression: ir.Expr, variable: str | None) -> ir.Expr:
    """The expression, which is about rows of the variable, with constants of the input as columns of these rows."""
    if isinstance(expression, ir.InputConstant):
        span = expression.span
        return ir.Attribute(variable, expression.name, variable_span=span, name_span=span, span=span)
    return ir.with_children(expression, lambda child: _of_variable(child, variable))


def _in_values(operand: ir.Expr, values: ir.Expr, span: Span) -> ir.Expr:
    """Whether the value is among those of an array; of none, nothing is, not even NULL."""
    size = ir.Function("size", (values,), span, span=span)
    is_empty = ir.Comparison("=", size, ir.Literal(0, INTEGER, span=span), span=span)
    contains = ir.Function("array_contains", (values, operand), span, span=span)
    return ir.Case(((is_empty, ir.Literal(False, BOOLEAN, span=span)),), contains, span=span)


def _attribute(variable: Name | None, name: Name, steps: list[Step | ir.Expr], span: Span) -> ir.Expr:
    path, behind = static_steps(steps)
    column = ir.Attribute(
        None if variable is None else folded(variable),
        path_text(str(name), path),
        variable_span=name.span if variable is None else variable.span,
        name_span=name.span,
        exact=name.quoted,
        span=span,
    )
    return with_steps(column, behind)


def _bound(expression: ir.Expr, parameters: Mapping[str, str]) -> ir.Expr:
    """The body of a lambda with its parameters, which are known by their names in capitals, in the place of columns."""
    match expression:
        case ir.Attribute(variable=None, name=name):
            path = path_of(name) or Path(name, ())
            own = parameters.get(path.column.upper())
            if own is not None:
                return with_steps(ir.LambdaVariable(own, span=expression.span), list(path.steps))
        case ir.Attribute(variable=str() as variable, name=name) if variable.upper() in parameters:
            path = path_of(name) or Path(name, ())
            parameter = ir.LambdaVariable(parameters[variable.upper()], span=expression.span)
            return with_steps(parameter, [path.column, *path.steps])
    return ir.with_children(expression, lambda child: _bound(child, parameters))
