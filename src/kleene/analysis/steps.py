"""A pattern in steps, and the input it is asked of, to an `AnalyzedSteps`, or to an error that names the step.

What engines may rely on: conditions are typed and refer only to what exists, every window fits the order key, and a
pattern that ends with an absence says how long to wait for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kleene.analysis.analyzed import (
    MATCH_END,
    MATCH_START,
    AnalyzedQuery,
    Component,
    Conjunct,
    NegativeComponent,
)
from kleene.analysis.scope import Scope
from kleene.analysis.value_types import condition
from kleene.errors import AnalysisError, SchemaError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.options import Strategy, Window, WindowUnit
from kleene.ir.query import Definition, QueryDefinition
from kleene.ir.steps import (
    AfterSteps,
    ConditionKind,
    Contiguity,
    Negative,
    Step,
    StepCondition,
    Steps,
    all_steps,
    many_of,
    steps_of,
)
from kleene.ir.text import window_text
from kleene.schema import BOOLEAN, UNKNOWN, EventSchema, Type, a_type, advice_on, is_numeric, is_plain
from kleene.source import SourceText
from kleene.wording import said


@dataclass(frozen=True, slots=True)
class AnalyzedSteps(AnalyzedQuery):
    """`components` are the positive steps; `conditions` and `untils` are by the labels of steps and groups.

    A step without a condition accepts every event of its types.
    """

    conditions: tuple[tuple[str, ir.Expr], ...] = ()
    untils: tuple[tuple[str, ir.Expr], ...] = ()

    @property
    def pattern(self) -> Steps:
        return steps_of(self.definition)

    @property
    def strategy(self) -> Strategy:
        """Whether events that are of no step's type can be left out: then none has to be a neighbour of another.

        A run in a loop that ignores an event can no longer leave it, which shows where an absence in last place would
        let it: it times out beside its match.
        """
        steps = list(all_steps(self.pattern.steps))
        is_typed = all(step.types for step in steps) and not self.untils
        is_bounded = any(window.unit is WindowUnit.EVENTS for window in self.pattern.windows) or any(
            step.since_previous or (step.repetition is not None and step.repetition.gap) for step in steps
        )
        is_open = self.pattern.steps[-1].negative is not None
        is_loose = is_typed and not (is_bounded or is_open or _has_neighbours(self.pattern.steps))
        return Strategy.SKIP_TILL_NEXT_MATCH if is_loose else Strategy.PARTITION_CONTIGUITY

    @property
    def after(self) -> AfterSteps:
        return self.pattern.after

    @property
    def calls_python(self) -> bool:
        """Whether a condition is a function, which sees whole events."""
        said_ = (expression for _, expression in (*self.conditions, *self.untils))
        return any(isinstance(node, ir.RowFunction) for one in said_ for node in ir.walk(one))


def analyze_steps(
    definition: QueryDefinition, schema: EventSchema | None, order_by: tuple[str, ...], time_type: Type
) -> AnalyzedSteps:
    """What the pattern means for events of the schema; without one, all that does not depend on it is checked."""
    pattern = steps_of(definition)
    analysis = _Analysis(pattern, schema)
    analysis.check_types()
    analysis.check_windows(time_type)
    analysis.check_ending()
    analysis.check_after()
    key = tuple(test.attribute for test in definition.equivalence_tests)
    analysis.check_key(key)
    analysis.check_output_names(key)
    conditions, untils = analysis.conditions(definition.definitions)
    return AnalyzedSteps(
        definition,
        schema,
        order_by,
        time_type,
        tuple(
            Component(step.name, True, step.types, is_many, _conjuncts(conditions, step))
            for step, is_many in analysis.positive.values()
        ),
        tuple(_negations(pattern, conditions)),
        key,
        None,
        None,
        (),
        tuple(conditions.items()),
        tuple(untils.items()),
    )


def _has_neighbours(steps: tuple[Step, ...]) -> bool:
    """Whether two events of a match, or an event and an absence, must be neighbours."""
    return any(
        step.negative is Negative.NOT_NEXT
        or step.inside is Contiguity.STRICT
        or (number > 0 and step.negative is None and step.contiguity is Contiguity.STRICT)
        or _has_neighbours(step.group)
        for number, step in enumerate(steps)
    )


def _conjuncts(conditions: dict[str, ir.Expr], step: Step) -> tuple[Conjunct, ...]:
    return (Conjunct(conditions[step.label]),) if step.label in conditions else ()


def _negations(pattern: Steps, conditions: dict[str, ir.Expr]) -> Iterator[NegativeComponent]:
    gap = 0
    for step in all_steps(pattern.steps):
        if step.negative is None:
            gap += 1
        else:
            yield NegativeComponent(step.name, step.types, gap, _conjuncts(conditions, step))


class _Analysis:
    def __init__(self, pattern: Steps, schema: EventSchema | None) -> None:
        self.pattern, self.schema = pattern, schema
        self.positive = {step.name: (step, is_many) for step, is_many in many_of(pattern.steps)}
        self.negative = [step.name for step in all_steps(pattern.steps) if step.negative is not None]

    # --- types, keys and names ---------------------------------------------------------------------------------------

    def check_types(self) -> None:
        types = {name: step for step in all_steps(self.pattern.steps) for name in step.types}
        known = None if self.schema is None else self.schema.event_types
        for name, step in types.items():
            if known is not None and name not in known:
                raise _fail(
                    f"step '{printable(step.name)}' is of the unknown event type '{printable(name)}'",
                    f"Event types of the input: {listed(known)}.{did_you_mean(name, known)}",
                )
        if self.schema is not None and self.schema.type_column is None and len(types) > 1:
            way_out = said(
                python="Name such a column with type_column=…, or give a dict of inputs by event type.",
                shell="Name such a column with --type-column, or give each type its own --input TYPE=PATH.",
            )
            raise SchemaError(
                f"the pattern names several event types ({listed(sorted(types))}), but no column of the input tells "
                "them apart",
                hint=f"{way_out} Columns: {listed(self.schema)}.",
            )

    def check_key(self, key: Sequence[str]) -> None:
        if self.schema is None:
            return
        for name in key:
            if name not in self.schema:
                raise _fail(
                    f"partition_by names the attribute '{printable(name)}', which no event has",
                    f"Attributes: {listed(self.schema)}.{did_you_mean(name, self.schema)}",
                )
            found = self.schema.type_of(name)
            if not is_plain(found):
                raise SchemaError(f"cannot compare values of type {found.name}", hint=advice_on(found))

    def check_output_names(self, key: Sequence[str]) -> None:
        taken = {**dict.fromkeys(key, "the partition"), MATCH_START: "the match", MATCH_END: "the match"}
        for name in self.positive:
            if name in taken:
                raise _fail(
                    f"the output would have two columns '{printable(name)}': the step and a column of {taken[name]}",
                    "Rename the step.",
                )
        twice = next((name for name, count in Counter((*key, MATCH_START, MATCH_END)).items() if count > 1), None)
        if twice is not None:
            raise _fail(f"the output would have two columns '{printable(twice)}'", "Rename the column of the input.")

    # --- windows -----------------------------------------------------------------------------------------------------

    def check_windows(self, time_type: Type) -> None:
        for window in self.pattern.windows:
            _check_unit(window, time_type, "the window of the pattern")
        for step in all_steps(self.pattern.steps):
            bounds = [(step.since_previous, "since='previous'")]
            bounds += [(None if step.repetition is None else step.repetition.gap, "gap")]
            for bound, what in bounds:
                if bound is not None:
                    whose = f"{what} of step '{printable(step.name)}'"
                    _check_unit(bound, time_type, whose)
                    self._check_smaller(bound, whose)

    def _check_smaller(self, bound: Window, whose: str) -> None:
        for window in self.pattern.windows:
            if window.unit is bound.unit and bound.size > window.size:
                raise _fail(
                    f"{whose} is {window_text(bound)}, larger than the window of the pattern, {window_text(window)}: "
                    "the smaller bound already holds",
                    "Leave it out, or make it smaller.",
                )

    def check_ending(self) -> None:
        last = self.pattern.steps[-1]
        if last.negative is not Negative.NOT_FOLLOWED_BY:
            return
        name = printable(last.name)
        has_window = any(window.unit is not WindowUnit.EVENTS for window in self.pattern.windows)
        if last.since_previous is None and not has_window:
            raise _fail(
                f"not_followed_by('{name}') stands last, and nothing says when to stop waiting",
                "Add .within('10 minutes') for the whole pattern, or since='previous' for this step.",
            )
        before = next(step for step in reversed(self.pattern.steps) if step.negative is None)
        if last.since_previous is not None and _may_go_on(before):
            raise _fail(
                f"since='previous' of not_followed_by('{name}') counts from the event before, but {_called(before)} "
                "could still go on, which would change it",
                "Use within('10 minutes') without since, which is fixed by the first event.",
            )

    def check_after(self) -> None:
        step = self.pattern.after.step
        if step is not None and step not in self.positive:
            what = "is a negative step: a match has no event of it" if step in self.negative else "is not a step"
            raise _fail(
                f"after_match names '{printable(step)}', which {what}",
                f"Steps: {listed(self.positive)}.{did_you_mean(step, self.positive)}",
            )

    # --- conditions --------------------------------------------------------------------------------------------------

    def conditions(self, items: Sequence[Definition]) -> tuple[dict[str, ir.Expr], dict[str, ir.Expr]]:
        """What events of each step satisfy, and what ends each loop, by the labels of steps and groups."""
        found, untils = dict[str, ir.Expr](), dict[str, ir.Expr]()
        for item in items:
            assert isinstance(item, StepCondition)
            own = self._typed(item)
            if item.kind is ConditionKind.UNTIL:
                untils[item.variable] = own
            elif item.variable not in found:
                found[item.variable] = own
            else:
                both = (found[item.variable], own)
                found[item.variable] = (ir.And if item.kind is ConditionKind.AND else ir.Or)(both, type=BOOLEAN)
        return found, untils

    def _typed(self, item: StepCondition) -> ir.Expr:
        if isinstance(item.condition, ir.RowFunction):
            return replace(item.condition, type=BOOLEAN)
        scope = Scope(item.source or SourceText(""), self.schema, {}, None)
        try:
            return condition(self._resolved(item.condition, scope), scope)
        except AnalysisError as error:
            what = "until condition" if item.kind is ConditionKind.UNTIL else "condition"
            raise AnalysisError(
                f"in the {what} of {printable(item.variable)}: {error.message}", error.location, error.hint
            ) from None

    def _resolved(self, expression: ir.Expr, scope: Scope) -> ir.Expr:
        """The expression, whose references are those of the event being tried and of steps."""
        match expression:
            case ir.Aggregate():
                self._check_aggregate(expression, scope)
                return expression
            case ir.Attribute(variable=None, name=name):
                if name in self.positive and (self.schema is not None and name not in self.schema):
                    raise scope.fail(
                        f"'{printable(name)}' is a step, not a value",
                        expression.span,
                        f"Name an attribute of it: LAST({name}.price)",
                    )
                self._check_exists(expression, scope)
                return expression
            case ir.Attribute(variable=str() as variable, name=name):
                if self._is_many(variable, expression, scope):
                    raise scope.fail(
                        f"'{printable(variable)}.{printable(name)}' is many values: step '{printable(variable)}' can "
                        "have several events",
                        expression.span,
                        f"An aggregate says which one is meant: LAST({variable}.{name}), or FIRST, MIN, MAX, AVG, SUM.",
                    )
                self._check_exists(expression, scope)
                return expression
        return ir.with_children(expression, lambda child: self._resolved(child, scope))

    def _check_aggregate(self, aggregate: ir.Aggregate, scope: Scope) -> None:
        nodes = [node for node in ir.walk(aggregate.argument) if isinstance(node, (ir.Attribute, ir.Events))]
        word = aggregate.function.upper()
        if not nodes or any(node.variable is None for node in nodes) or len({node.variable for node in nodes}) > 1:
            raise scope.fail(
                f"{word} is over the events of one step",
                aggregate.span,
                f"Write: {word}(s.x), where s is a step: {listed(self.positive)}.",
            )
        for node in nodes:
            self._is_many(node.variable or "", node, scope)
            if isinstance(node, ir.Attribute):
                self._check_exists(node, scope)

    def _is_many(self, name: str, node: ir.Attribute | ir.Events, scope: Scope) -> bool:
        """Whether the step can have several events; an error if there is no such step."""
        if name in self.positive:
            return self.positive[name][1]
        span = node.variable_span
        if name in self.negative:
            raise scope.fail(
                f"'{printable(name)}' is a negative step and has no events",
                span,
                "An attribute of the event being tried is written by its bare name.",
            )
        raise scope.fail(
            f"unknown step '{printable(name)}'",
            span,
            f"Steps: {listed(self.positive)}.{did_you_mean(name, self.positive)}",
        )

    def _check_exists(self, attribute: ir.Attribute, scope: Scope) -> None:
        if self.schema is None or attribute.name in self.schema:
            return
        owner = attribute.name.split(".")[0]
        if "." in attribute.name and owner not in self.schema and attribute.variable is None:
            raise scope.fail(
                f"'{printable(owner)}' is neither a step nor an attribute",
                attribute.span,
                f"Steps: {listed(self.positive)}. Attributes: {listed(self.schema)}."
                f"{did_you_mean(owner, [*self.positive, *self.schema])}",
            )
        raise scope.fail(
            f"no event has the attribute '{printable(attribute.name)}'",
            attribute.name_span,
            f"Attributes: {listed(self.schema)}.{did_you_mean(attribute.name, self.schema)}",
        )


def _may_go_on(step: Step) -> bool:
    """Whether the step could still take an event once it has enough of them."""
    if step.repetition is not None and not step.repetition.is_fixed:
        return True
    inner = [own for own in step.group if own.negative is None]
    return bool(inner) and (_may_go_on(inner[-1]) or inner[-1].can_be_skipped)


def _check_unit(window: Window, time_type: Type, whose: str) -> None:
    if time_type == UNKNOWN or window.unit is WindowUnit.EVENTS:
        return
    size = window_text(window)
    if window.unit is WindowUnit.ORDER_KEY and not is_numeric(time_type):
        raise _fail(
            f"{whose} is {size}, which has no unit, but the order key is {a_type(time_type)}",
            f"Write '{size} seconds' (or minutes, hours, days).",
        )
    if window.unit is WindowUnit.TIME and is_numeric(time_type):
        raise _fail(
            f"{whose} is {size}, a duration, but the order key is {a_type(time_type)}",
            "Write a number, in the units of the order key: within(100).",
        )


def _called(step: Step) -> str:
    return f"group {printable(step.label)}" if step.group else f"step '{printable(step.name)}'"


def _fail(message: str, hint: str) -> AnalysisError:
    return AnalysisError(message, hint=hint)
