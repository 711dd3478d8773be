"""The engine of patterns in steps: it follows every run through the automaton, event by event.

It goes through a stream piece by piece. Between pieces it holds the events that runs have bound, and the runs by their
rows in the table of these events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import Automaton
from kleene.automaton.steps import StepsAutomaton, steps_automaton
from kleene.engine.budget import Budget, table_bytes, too_many_partial_matches
from kleene.engine.compiled.kernel_window import LAST_TIME
from kleene.engine.compiled.meter import Meter
from kleene.engine.events import Events
from kleene.engine.matches import FoundMatches
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import SavedParts, require
from kleene.engine.steps.conditions import Conditions
from kleene.engine.steps.matches import output_order, step_matches
from kleene.engine.steps.runs import NO_TIME, Matching, Partition
from kleene.engine.steps.saved import loaded_partitions, saved_partitions
from kleene.engine.timeouts import FoundTimeouts
from kleene.ir.evaluate import PlainValue
from kleene.ir.options import Timeouts
from kleene.ir.steps import SkipMode
from kleene.plan.plan import Plan

Key = tuple[PlainValue, ...]
_RUN_BYTES, _EVENT_BYTES = 120, 72


@dataclass(frozen=True)
class StepsInterpreter:
    plan: Plan

    @cached_property
    def steps(self) -> StepsAutomaton:
        assert isinstance(self.plan.query, AnalyzedSteps)
        return steps_automaton(self.plan.query)

    @property
    def automaton(self) -> Automaton:
        return self.steps.automaton

    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> StepsProgress:
        return StepsProgress(self.plan, self.steps, Budget() if budget is None else budget)


class StepsProgress:
    """`_kept` are the events that something alive refers to, in their order; partitions refer to them by row."""

    def __init__(self, plan: Plan, steps: StepsAutomaton, budget: Budget) -> None:
        assert isinstance(plan.query, AnalyzedSteps)
        self.plan, self.budget = plan, budget
        self._query, self._steps = plan.query, steps
        self._kept: pa.Table | None = None
        self._partitions: dict[Key, Partition] = {}
        self._wakes_at: Time | None = None

    def feed(
        self, events: pa.Table, now: Time | None = None, is_last: bool = False
    ) -> Iterator[FoundMatches | FoundTimeouts]:
        table = events if self._kept is None else pa.concat_tables([self._kept, events])
        matching = self._matching(table)
        self._go_through(matching, table.num_rows - events.num_rows, keys_of(matching, self._query))
        self._move_time(matching, now, is_last)
        self._compact(table, matching)
        yield from self._found(table, matching, is_last)

    def _move_time(self, matching: Matching, now: Time | None, is_last: bool) -> None:
        """Up to the time `now` all events are there; after the last piece, time is over."""
        for key in list(self._partitions) if now is not None or is_last else ():
            partition = self._partitions[key]
            if is_last:
                matching.finish(partition)
            else:
                matching.advance(partition, now)
            self._forget_if_empty(key)

    def _matching(self, table: pa.Table) -> Matching:
        assert self._query.schema is not None
        events = Events(table, self._query.schema, self._query.order_by)
        conditions = Conditions(self._query, self._steps, events)
        return Matching(self._query, self._steps, conditions, self.plan.timeouts is not Timeouts.NONE)

    def _go_through(self, matching: Matching, begin: int, keys: list[Key | None]) -> None:
        given = 0
        for row in range(begin, len(keys)):
            key = keys[row]
            if key is None:
                continue
            partition = self._partitions.setdefault(key, Partition())
            matching.event(partition, row)
            if len(partition.runs) > self.plan.run_limit:
                named = dict(zip(self._query.partition_by, key, strict=True))
                hint = "Narrow the pattern (a shorter within, stricter steps, more conditions), or raise run_limit."
                raise too_many_partial_matches(self.plan.run_limit, named, hint)
            self._forget_if_empty(key)
            self.budget.count(len(matching.found) + len(matching.timed_out) - given)
            given = len(matching.found) + len(matching.timed_out)
            if row % 64 == 0:
                self.budget.reach(row - begin)
                self.budget.hold("its runs", self._bytes())
        self.budget.check_time()

    def _forget_if_empty(self, key: Key) -> None:
        if self._partitions[key].is_empty:
            del self._partitions[key]

    def _compact(self, table: pa.Table, matching: Matching) -> None:
        """Keeps the events that something alive refers to, and no others."""
        deadlines = (matching.deadline(run) for own in self._partitions.values() for run in (*own.runs, *own.shadows))
        first = min(deadlines, default=NO_TIME)
        self._wakes_at = first if abs(first) < LAST_TIME else None
        rows = sorted({row for partition in self._partitions.values() for row in partition.rows()})
        numbers = {row: number for number, row in enumerate(rows)}
        self._partitions = {key: own.renumbered(numbers) for key, own in self._partitions.items()}
        self._kept = table.take(pa.array(rows, pa.int64())).combine_chunks() if rows else None

    def _is_settled(self, is_last: bool) -> bool:
        """Whether what is found later ends later: no match waits for an older run, or for the end of its window."""
        return is_last or (self._query.after.mode is SkipMode.NO_SKIP and not self._steps.pending)

    def _found(self, table: pa.Table, matching: Matching, is_last: bool) -> Iterator[FoundMatches | FoundTimeouts]:
        steps = len(self._query.components)
        matches = sorted(matching.found, key=output_order)
        has_timeouts = bool(matching.timed_out)
        if matches:
            yield FoundMatches(table, step_matches(matches, steps), not has_timeouts and self._is_settled(is_last))
        if has_timeouts:
            runs = sorted(matching.timed_out, key=lambda run: output_order(run[0]))
            closes = [0 if time is None else time for _, time in runs]
            yield FoundTimeouts(table, step_matches([bound for bound, _ in runs], steps), closes, is_last)

    # --- between pieces ----------------------------------------------------------------------------------------------

    def _bytes(self) -> int:
        partitions = self._partitions.values()
        runs = [run.bound for partition in partitions for run in (*partition.runs, *partition.shadows)]
        runs += [bound for partition in partitions for bound in partition.complete]
        return sum(_RUN_BYTES + _EVENT_BYTES * len(bound) for bound in runs)

    def held(self) -> Held:
        partitions = self._partitions.values()
        runs = sum(len(own.runs) + len(own.complete) + len(own.shadows) for own in partitions)
        events, size = (0, 0) if self._kept is None else (self._kept.num_rows, table_bytes(self._kept))
        return Held(runs, events, size + self._bytes(), self._wakes_at, not self._partitions)

    def saved(self) -> dict[str, Any]:
        return {"steps_table": self._kept, **saved_partitions(list(self._partitions.values()))}

    def load(self, parts: SavedParts) -> None:
        self._kept = parts.table("steps_table")
        rows = 0 if self._kept is None else self._kept.num_rows
        limits = (len(self._steps.automaton.states), len(self._query.components), rows)
        partitions = loaded_partitions(parts, *limits, self.plan.timeouts is not Timeouts.NONE)
        self._partitions = {}
        if self._kept is not None and partitions:
            require(not self._kept.column(self._query.order_by[0]).null_count, "steps_table")
            matching = self._matching(self._kept)
            keys = keys_of(matching, self._query)
            for own in partitions:
                require(
                    len({keys[row] for row in own.rows()}) == 1 and keys[next(own.rows())] is not None, "steps_bound"
                )
            self._partitions = {keys[next(own.rows())] or (): own for own in partitions}
            require(len(self._partitions) == len(partitions), "steps_bound")
            self._compact(self._kept, matching)


def keys_of(matching: Matching, query: AnalyzedSteps) -> list[Key | None]:
    """The partition of each event; None where its key has a NULL or NaN, and it is in none."""
    events = matching.events
    columns = [events.values(name) for name in query.partition_by]
    keys = zip(*columns, strict=True) if columns else (() for _ in range(len(events)))
    return [key if all(value is not None and value == value for value in key) else None for key in keys]
