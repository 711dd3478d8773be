"""Patterns in steps: `kleene.begin(…)` and what can be called on it.

A pattern is a query that says how it goes on: every call returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kleene.api import Query
from kleene.ir.query import QueryDefinition
from kleene.ir.steps import ConditionKind, Contiguity, Negative
from kleene.ir.steps_text import steps_text
from kleene.lang import steps as language
from kleene.visible import visible

Condition = str | Callable[[dict[str, Any], Mapping[str, list[dict[str, Any]]]], Any]
"""Text, or a function of the event being tried and the rows that the run has bound to each step."""
Types = str | Sequence[str] | None
Size = Any
"""A window: "5 minutes", a timedelta, or a number in the units of the order key."""


def begin(step: str | StepPattern, type: Types = None) -> StepPattern:
    """The first step of a pattern that is said step by step, in the manner of Flink CEP.

    >>> import pyarrow as pa
    >>> events = pa.table({"type": ["Shelf", "Move", "Exit"], "t": [1, 2, 5], "price": [12, 12, 12]})
    >>> pattern = begin("a", type="Shelf").where("price > 10").followed_by("c", type="Exit").within(10)
    >>> [(row["a"]["t"], row["c"]["t"]) for row in pattern.match(events, order_by="t").to_pylist()]
    [(1, 5)]

    step: a name, or a whole pattern, which is then used as one step.
    type: the type of its events, or several; None if the type does not matter.
    The result has the calls that add steps and say more of them, and `match`, `match_batches`, `find`, `plot`,
    `progress` and `explain` of every query. See docs/steps.md.
    """
    return StepPattern(language.begin(_given(step), type))


def _given(step: Any) -> Any:
    return step.definition if isinstance(step, StepPattern) else step


@dataclass(frozen=True, slots=True, repr=False)
class StepPattern(Query):
    """A pattern that was said step by step; `kleene.begin` makes it. Patterns that say the same are equal.

    >>> begin("a").next("b").one_or_more()
    kleene.begin('a').next('b').one_or_more()
    """

    def __repr__(self) -> str:
        return visible(steps_text(self.definition), keep="\n")

    # --- further steps ---------------------------------------------------------------------------------------------

    def next(self, step: str | StepPattern, type: Types = None) -> StepPattern:
        """A step whose first event comes directly after the event before."""
        return self._followed(step, Contiguity.STRICT, type, "next")

    def followed_by(self, step: str | StepPattern, type: Types = None) -> StepPattern:
        """A step that begins with the first event that satisfies it; others in between are skipped."""
        return self._followed(step, Contiguity.RELAXED, type, "followed_by")

    def followed_by_any(self, step: str | StepPattern, type: Types = None) -> StepPattern:
        """A step that begins with any later event that satisfies it: each of them gives a match of its own."""
        return self._followed(step, Contiguity.ANY, type, "followed_by_any")

    def not_next(self, name: str, type: Types = None) -> StepPattern:
        """A step that the event right after the one before must not satisfy."""
        return self._with(language.absent(self.definition, name, Negative.NOT_NEXT, type))

    def not_followed_by(self, name: str, type: Types = None) -> StepPattern:
        """A step that no event may satisfy until the next one is selected; in last place, until the window ends."""
        return self._with(language.absent(self.definition, name, Negative.NOT_FOLLOWED_BY, type))

    # --- the last step ---------------------------------------------------------------------------------------------

    def where(self, condition: Condition) -> StepPattern:
        """A condition on the events of the last step, besides what it has so far."""
        return self._with(language.with_condition(self.definition, ConditionKind.AND, condition))

    def or_where(self, condition: Condition) -> StepPattern:
        """A condition on the events of the last step that will do instead of what it has so far."""
        return self._with(language.with_condition(self.definition, ConditionKind.OR, condition))

    def of_type(self, *types: str) -> StepPattern:
        """The types of the events of the last step; they count whatever its conditions say."""
        return self._with(language.with_types(self.definition, types))

    def times(self, n: int, m: int | None = None, *, gap: Size = None) -> StepPattern:
        """The last step occurs n times, or n to m times. `gap`: neighbouring events are less than so far apart."""
        return self._with(language.repeated(self.definition, "times", n, m, gap))

    def times_or_more(self, n: int, *, gap: Size = None) -> StepPattern:
        """The last step occurs n times or more."""
        return self._with(language.repeated(self.definition, "times_or_more", n, None, gap))

    def one_or_more(self, *, gap: Size = None) -> StepPattern:
        """The last step occurs once or more."""
        return self._with(language.repeated(self.definition, "one_or_more", 1, None, gap))

    def optional(self) -> StepPattern:
        """The last step may be passed over."""
        return self._with(language.optional(self.definition))

    def greedy(self) -> StepPattern:
        """The step after the last one gets no event that the last one could take."""
        return self._with(language.greedy(self.definition))

    def until(self, condition: Condition) -> StepPattern:
        """From the first event that satisfies the condition, the loop of the last step takes nothing more."""
        return self._with(language.with_condition(self.definition, ConditionKind.UNTIL, condition))

    def consecutive(self) -> StepPattern:
        """Nothing may lie between two events of the last step."""
        return self._with(language.with_inside(self.definition, Contiguity.STRICT, "consecutive"))

    def allow_combinations(self) -> StepPattern:
        """Anything may lie between two events of the last step, also events that it could take."""
        return self._with(language.with_inside(self.definition, Contiguity.ANY, "allow_combinations"))

    # --- the whole pattern -----------------------------------------------------------------------------------------

    def within(self, window: Size, since: str = "first") -> StepPattern:
        """The last event of a match comes less than the window after the first.

        since: "previous" bounds the last step alone: its first event comes less than that after the event before.
        """
        return self._with(language.within(self.definition, window, since))

    def after_match(self, mode: str, step: str | None = None, *, missing: str = "ignore") -> StepPattern:
        """Which runs and matches a match drops that is given out.

        mode: "no_skip", "skip_to_next", "skip_past_last_event", or "skip_to_first" and "skip_to_last" with a step.
        missing: "error" if a match without an event of the step is an error.
        """
        return self._with(language.after_match(self.definition, mode, step, missing))

    def partition_by(self, *columns: str) -> StepPattern:
        """Events match only with events that agree on these columns; a NULL agrees with nothing."""
        return self._with(language.partitioned(self.definition, columns))

    def _followed(self, step: Any, contiguity: Contiguity, type: Types, call: str) -> StepPattern:
        return self._with(language.followed(self.definition, _given(step), contiguity, type, call))

    def _with(self, definition: QueryDefinition) -> StepPattern:
        return StepPattern(definition)
