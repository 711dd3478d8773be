"""SASE and SASE+ text to `QueryDefinition`.

The grammar is `sase.lark`; this module turns its trees into the shared IR and its complaints into errors that point.
The next stage may rely on: no expression nests deeper than `MOST_NESTING`, no pattern has more than `MOST_COMPONENTS`
components, and every node knows its span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lark import Token
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError, KleeneError, QuerySyntaxError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.options import Grouping, Strategy, Window, WindowParameter, WindowUnit
from kleene.ir.own import NO_FUNCTIONS, Own, OwnAggregate, OwnFunction
from kleene.ir.paths import Step, last_name, path_of, path_text
from kleene.ir.pattern import Negation, Repeat, Sequence, Variable, variable_of
from kleene.ir.query import EquivalenceTest, Measure, QueryDefinition
from kleene.lang.expressions import (
    MOST_COMPONENTS,
    Children,
    ExpressionBuilder,
    Name,
    build,
    check_is_text,
    negative_literal,
    span_of,
    static_steps,
    window_parameter,
    with_steps,
)
from kleene.source import SourceText, Span

_GRAMMARS = ("expressions", "sase")

AGGREGATES = ("avg", "collect", "count", "first", "last", "max", "min", "sum")


def parse(text: str, functions: Mapping[str, Own] = NO_FUNCTIONS) -> QueryDefinition:
    """The one query in the text.

    >>> parse("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 12 hours").equivalence_tests
    (EquivalenceTest(attribute='id', constant=None),)
    """
    queries = parse_program(text, functions)
    if len(queries) > 1:
        raise QuerySyntaxError(
            f"the text holds {len(queries)} queries, but one was expected",
            hint="Use kleene.program(text) for several queries.",
        )
    return queries[0]


def parse_program(text: str, functions: Mapping[str, Own] = NO_FUNCTIONS) -> tuple[QueryDefinition, ...]:
    """The queries of a text, in which `;` separates them."""
    check_is_text(text)
    queries: list[QueryDefinition] = build(_Builder(SourceText(text), functions), _GRAMMARS, "program")
    if not queries:
        raise QuerySyntaxError(
            "the text is empty: it holds no query",
            hint="A query begins with EVENT or PATTERN: EVENT SEQ(Shelf a, Exit b) WHERE [id]",
        )
    return tuple(queries)


def parse_totals(text: str) -> tuple[Measure, ...]:
    """What is asked of all matches, written as after RETURN."""
    source = SourceText(text)
    found: tuple[Measure, ...] = build(_Builder(source), _GRAMMARS, "totals")
    return tuple(replace(total, source=source) for total in found)


def parse_total(name: str, text: str) -> Measure:
    """One of them, by its name."""
    source = SourceText(text)
    return Measure(name, build(_Builder(source), _GRAMMARS, "total"), Span(0, len(text)), source)


def parse_window(text: str) -> Window | None:
    """The window that a text such as 12 hours says; None where it says none."""
    try:
        window = build(_Builder(SourceText(text)), _GRAMMARS, "window")
    except KleeneError:
        return None
    return window if isinstance(window, Window) else None


class _Bracketed(ir.Expr):
    """Equivalence tests where an expression may stand; taken out again before the query leaves this module."""

    tests: tuple[EquivalenceTest, ...]

    def __init__(self, tests: tuple[EquivalenceTest, ...], span: Span) -> None:
        object.__setattr__(self, "tests", tests)
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "type", None)


@dataclass(frozen=True, slots=True)
class _Strategy:
    """A strategy with the variables that it lists."""

    strategy: Strategy
    span: Span
    listed: list[Name]


@v_args(meta=True)
class _Builder(ExpressionBuilder):
    """A method per rule of sase.lark."""

    clauses = ("FROM", "EVENT or PATTERN", "WHERE", "WITHIN", "HAVING", "RETURN", "INTO")

    # --- queries -----------------------------------------------------------------------------------------------

    def program(self, _: Meta, children: Children) -> list[QueryDefinition]:
        return [child for child in children if isinstance(child, QueryDefinition)]

    def query(self, _: Meta, children: Children) -> QueryDefinition:
        definition = QueryDefinition(Sequence(()), source=self.source)
        for clause in children:
            if isinstance(clause, dict):
                strategy = clause.pop("with_variables", None)
                definition = replace(definition, **clause)
                if strategy:
                    self._check_listed_variables(definition, strategy)
        return definition

    def from_clause(self, _: Meta, children: Children) -> dict[str, object]:
        names = children[1:]
        return {"from_streams": tuple(map(str, names)), "from_spans": tuple(name.span for name in names)}

    def into_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"into_stream": str(children[1]), "into_span": children[1].span}

    def where_clause(self, _: Meta, children: Children) -> dict[str, object]:
        strategy = next((child for child in children if isinstance(child, _Strategy)), None)
        body = next((child for child in children if isinstance(child, ir.Expr)), None)
        predicates, tests = self._without_tests(body)
        clause: dict[str, object] = {"predicates": predicates, "equivalence_tests": tests}
        if strategy:
            clause |= {"strategy": strategy.strategy, "strategy_span": strategy.span, "with_variables": strategy}
        return clause

    def strategy(self, _: Meta, children: Children) -> _Strategy:
        return _Strategy(Strategy(children[0].lower()), span_of(children[0]), [name for name in children[1:] if name])

    def listed_variable(self, _: Meta, children: Children) -> Name:
        name: Name = children[0]
        return name

    def _check_listed_variables(self, definition: QueryDefinition, strategy: _Strategy) -> None:
        declared = {variable_of(element).name: element for element in definition.components}
        names = [name for name in declared if name]
        for name in strategy.listed:
            if name not in declared:
                raise AnalysisError(
                    f"unknown variable '{printable(name)}' in the list of {strategy.strategy.value}",
                    self.source.locate(name.span),
                    f"Variables of the pattern: {listed(names)}.{did_you_mean(name, names)}",
                )
        for variable, element in declared.items():
            if variable and variable not in strategy.listed and not isinstance(element, Negation):
                raise AnalysisError(
                    f"the list of {strategy.strategy.value} lacks the variable '{printable(variable)}'",
                    self.source.locate(strategy.span),
                    f"A strategy holds for the whole pattern; list all its variables: {listed(names)}.",
                )

    def _without_tests(self, body: ir.Expr | None) -> tuple[tuple[ir.Expr, ...], tuple[EquivalenceTest, ...]]:
        predicates: list[ir.Expr] = []
        tests: list[EquivalenceTest] = []
        # Parentheses leave conjunctions inside conjunctions; an equivalence test may stand in any of them.
        waiting = [] if body is None else [body]
        while waiting:
            predicate = waiting.pop()
            if isinstance(predicate, _Bracketed):
                tests.extend(predicate.tests)
            elif isinstance(predicate, ir.And):
                waiting.extend(reversed(predicate.operands))
            else:
                predicates.append(self.checked(predicate))
        return tuple(predicates), tuple(tests)

    def checked(self, expression: ir.Expr) -> ir.Expr:
        """The expression, if it is not too deep and has no equivalence test where none can stand."""
        for node in ir.walk(super().checked(expression)):
            if isinstance(node, _Bracketed):
                raise self.fail(
                    "an equivalence test holds for the whole match and cannot be part of another expression",
                    node.span,
                    "Put it beside the other predicates, joined with AND, or write the comparison out: a.id = b.id",
                )
        return expression

    def within_clause(self, _: Meta, children: Children) -> dict[str, object]:
        window = children[1]
        return {"window_parameter" if isinstance(window, WindowParameter) else "window": window}

    def window_time(self, meta: Meta, children: Children) -> Window:
        return self.window(children[0].value, WindowUnit.TIME, span_of(meta))

    def window_events(self, meta: Meta, children: Children) -> Window:
        return self.window(self.whole(children[0]), WindowUnit.EVENTS, span_of(meta))

    def window_number(self, meta: Meta, children: Children) -> Window:
        return self.number_window(children[0], span_of(meta))

    def window_parameter(self, meta: Meta, children: Children) -> WindowParameter:
        return window_parameter(children[0], span_of(meta))

    def having_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"having": self.checked(children[1])}

    def return_clause(self, _: Meta, children: Children) -> dict[str, object]:
        measures = tuple(children[1:])
        is_over_all = any(_is_over_all_matches(measure.expression) for measure in measures)
        return {"measures": measures, "grouping": Grouping() if is_over_all else None}

    def measure(self, meta: Meta, children: Children) -> Measure:
        expression, _, name = children
        self.checked(expression)
        if name is not None:
            return Measure(str(name), expression, name.span)
        if isinstance(expression, ir.Attribute):
            path = path_of(expression.name) if expression.span.end > expression.name_span.end else None
            return Measure(expression.name if path is None else last_name(path), expression, span_of(meta))
        raise self.fail(
            "a value that is not a plain reference needs a name", span_of(meta), "Write: RETURN expression AS name"
        )

    def totals(self, _: Meta, children: Children) -> tuple[Measure, ...]:
        return tuple(children)

    def total(self, _: Meta, children: Children) -> ir.Expr:
        return self.checked(children[0])

    def star(self, meta: Meta, _: Children) -> Measure:
        return Measure("*", ir.Events(None, ir.Position.EACH, span=span_of(meta)), span_of(meta))

    def variable_star(self, meta: Meta, children: Children) -> Measure:
        name: Name = children[0]
        events = ir.Events(str(name), ir.Position.EACH, name.span, span=span_of(meta))
        return Measure(f"{name}.*", events, span_of(meta))

    # --- patterns ----------------------------------------------------------------------------------------------

    def pattern(self, meta: Meta, children: Children) -> dict[str, object]:
        elements = tuple(child for child in children if not isinstance(child, Token))
        if len(elements) > MOST_COMPONENTS:
            raise self.fail(
                f"the pattern has {len(elements):,} components; {MOST_COMPONENTS:,} are allowed",
                elements[MOST_COMPONENTS].span,
            )
        return {"pattern": Sequence(elements, span=span_of(meta))}

    def positive(self, meta: Meta, children: Children) -> Variable | Repeat:
        types, plus, declared = children
        name: Name | None = declared[0] if declared else None
        brackets = declared[1] if declared else None
        variable = Variable(
            None if name is None else str(name),
            tuple(str(type_name) for type_name in types),
            name.span if name else span_of(meta),
            tuple(type_name.span for type_name in types),
            span=span_of(meta),
        )
        if plus and name and not brackets:
            raise self.fail(
                f"the Kleene variable '{printable(name)}' is declared without brackets", name.span, f"Write: {name}[]"
            )
        if name and brackets and not plus:
            raise self.fail(
                f"'{printable(name)}[]' is a Kleene variable, but its type has no +",
                name.span,
                f"Write: {types[0]}+ {name}[]",
            )
        return Repeat(variable, 1, None, span=span_of(meta)) if plus else variable

    def declared(self, _: Meta, children: Children) -> Children:
        return children

    def types(self, _: Meta, children: Children) -> list[Name]:
        return [child for child in children if isinstance(child, Name)]

    def negative(self, meta: Meta, children: Children) -> Negation:
        element = children[1]
        if isinstance(element, Repeat):
            raise AnalysisError(
                "a negative component cannot be a Kleene plus",
                self.source.locate(span_of(meta)),
                "Leave the + out: the negation already says that not one such event occurs.",
            )
        return Negation(element, span=span_of(meta))

    # --- predicates --------------------------------------------------------------------------------------------

    def equivalence_tests(self, meta: Meta, children: Children) -> ir.Expr:
        return _Bracketed(tuple(children), span_of(meta))

    def equivalence(self, meta: Meta, children: Children) -> EquivalenceTest:
        name, *steps, operator, constant = children
        for step in steps:
            if isinstance(step, ir.Expr):
                raise self.fail("the place of an equivalence test must be written as a number or a string", step.span)
        if operator is not None and operator not in ("=", "=="):
            raise self.fail("an equivalence test compares with = only", span_of(operator), f"Write: [{name} = …]")
        return EquivalenceTest(path_text(str(name), steps), constant, span_of(meta))

    def constant(self, meta: Meta, children: Children) -> ir.Literal | ir.Parameter:
        literal: ir.Literal | ir.Parameter = children[1]
        if children[0] is None:
            return literal
        negative = negative_literal(literal, span_of(meta))
        if negative is None:
            raise self.fail("only a number can be negative", span_of(meta))
        return negative

    # --- values ------------------------------------------------------------------------------------------------

    def call(self, meta: Meta, children: Children) -> ir.Expr:
        name, *arguments = children
        arguments = [argument for argument in arguments if argument is not None]
        function, own = name.lower(), self.own(name)
        if isinstance(own, OwnFunction):
            return self.own_call(own, name, arguments, span_of(meta))
        if isinstance(own, OwnAggregate):
            self.check_one_argument(own, name, arguments)
            return ir.Aggregate(own.name, _so_far(arguments[0]), name_span=name.span, own=own, span=span_of(meta))
        if function in AGGREGATES:
            if len(arguments) != 1:
                raise self.fail(
                    f"{function} takes one argument, but {len(arguments)} are given",
                    name.span,
                    f"Write: {function}(a[].x) over all events of a, or {function}(a[..i-1].x) over those so far",
                )
            return ir.Aggregate(function, _so_far(arguments[0]), name_span=name.span, span=span_of(meta))
        return ir.Function(function, tuple(arguments), name.span, span=span_of(meta))

    def call_of_all(self, meta: Meta, children: Children) -> ir.Aggregate:
        """`count(*)`: the matches themselves. Analysis says where it can stand."""
        name, star = children
        if name.lower() != "count":
            raise self.fail(
                f"only count takes *, but {printable(name)} is given it", span_of(star), f"Write: {name}(a.x)"
            )
        everything = ir.Events(None, ir.Position.ALL, span=span_of(star))
        return ir.Aggregate("count", everything, name_span=name.span, span=span_of(meta))

    # --- references --------------------------------------------------------------------------------------------

    def bare(self, meta: Meta, children: Children) -> ir.Attribute:
        name: Name = children[0]
        return ir.Attribute(None, str(name), name_span=name.span, span=span_of(meta))

    def attribute(self, meta: Meta, children: Children) -> ir.Expr:
        variable, name, *steps = children
        return _attribute(meta, variable, ir.Position.EACH, name, steps)

    def events(self, meta: Meta, children: Children) -> ir.Events:
        return ir.Events(str(children[0]), ir.Position.ALL, children[0].span, span=span_of(meta))

    def events_attribute(self, meta: Meta, children: Children) -> ir.Expr:
        variable, _, name, *steps = children
        return _attribute(meta, variable, ir.Position.ALL, name, steps)

    def indexed(self, meta: Meta, children: Children) -> ir.Events:
        variable, index = children
        return ir.Events(str(variable), self._position(variable, index), variable.span, span=span_of(meta))

    def indexed_attribute(self, meta: Meta, children: Children) -> ir.Expr:
        variable, index, name, *steps = children
        return _attribute(meta, variable, self._position(variable, index), name, steps)

    def _position(self, variable: Name, index: tuple[str, Span]) -> ir.Position:
        written, span = index
        positions = {"1": ir.Position.FIRST, "i": ir.Position.CURRENT, "i-1": ir.Position.PREVIOUS}
        positions |= {"..i-1": ir.Position.SO_FAR, f"{variable}.LEN": ir.Position.LAST}
        if written not in positions:
            raise self.fail(
                f"'{printable(variable)}[{printable(written)}]' is not an index",
                span,
                "An index is one of: [1] the first event, [i] an event after the first, [i-1] the one before it, "
                f"[..i-1] those selected so far, [{printable(variable)}.LEN] the last.",
            )
        return positions[written]

    def index_number(self, meta: Meta, children: Children) -> tuple[str, Span]:
        return str(children[0]), span_of(meta)

    index_name = index_number

    def index_minus(self, meta: Meta, children: Children) -> tuple[str, Span]:
        return "".join(children), span_of(meta)

    index_so_far = index_minus

    def index_length(self, meta: Meta, children: Children) -> tuple[str, Span]:
        return ".".join(children), span_of(meta)

    type_name = ExpressionBuilder.name


def _attribute(meta: Meta, variable: Name, position: ir.Position, name: Name, steps: list[Step | ir.Expr]) -> ir.Expr:
    path, behind = static_steps(steps)
    whole = path_text(str(name), path)
    column = ir.Attribute(str(variable), whole, position, variable.span, name.span, span=span_of(meta))
    return with_steps(column, behind)


def _is_over_all_matches(expression: ir.Expr) -> bool:
    """Whether an aggregate is of all matches and not of one: count(*), or one of a.x, where one match has a[].x."""
    for aggregate in ir.walk(expression):
        if isinstance(aggregate, ir.Aggregate):
            for node in ir.walk(aggregate.argument):
                match node:
                    case ir.Events(variable=None) | ir.Attribute(position=ir.Position.EACH):
                        return True
    return False


def _so_far(argument: ir.Expr) -> ir.Expr:
    """Inside an aggregate `a[i-1]` means `a[..i-1]`, as SASE+ 2008 writes it in Query 3."""
    match argument:
        case ir.Attribute(position=ir.Position.PREVIOUS) | ir.Events(position=ir.Position.PREVIOUS):
            return replace(argument, position=ir.Position.SO_FAR)
    return ir.with_children(argument, _so_far)
