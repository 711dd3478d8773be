"""All cores for one call: a plan and a sorted table of events to the table of matches.

Partitions have nothing to do with each other, so that each thread matches some of them and makes their rows. What all
threads have made is put together in output order, which is the same whatever their number: matches that end at one
event are of one partition. Kernels, Arrow and NumPy let other threads run while they compute.

Threads are a way to be quick, not another meaning. Where one of them meets an error, the call begins again without
them, so that it is told as always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any

import pyarrow as pa

from kleene.engine.budget import Budget, EndedError
from kleene.engine.choice import CompiledEngine
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.layouts import Maker, choose_layout
from kleene.engine.range_shares import NoNextRowError, reach_or_reason
from kleene.engine.run import Runner, result_schema
from kleene.engine.share_keys import Item, Result, Workers
from kleene.engine.shares import LEAST_ROWS
from kleene.engine.unencoded import with_texts, with_types_of_texts
from kleene.errors import KleeneError, LimitError
from kleene.ir.options import Timeouts
from kleene.plan.plan import ByKey, Plan

LOOK_AROUND = 0.1
"""Seconds after which a caller who waits for threads looks around."""


def run(plan: Plan, table: pa.Table, with_times: bool = False, id_columns: Sequence[str] | None = None) -> pa.Table:
    """The matches as rows, in output order; with the columns that ids are made of, each with its id."""
    call = _Call(plan, table, with_times, id_columns)
    if why_together(plan, table.num_rows) is not None:
        return call.together()
    if plan.threads == 1:
        return call.in_parts(_OneThread())
    with ThreadPoolExecutor(plan.threads, "kleene") as pool:
        return call.in_parts(Pool(pool, plan.threads, call.budget))


def run_behind(
    plan: Plan,
    table: pa.Table,
    first: int,
    nullable: frozenset[str],
    id_columns: Sequence[str] | None,
    pool: Pool,
    budget: Budget,
) -> pa.Table:
    """The rows of the matches that events from the row `first` on complete; what is found counts to the budget.

    `nullable` are columns that have NULLs, here or elsewhere.
    """
    call = _Call(plan, table, False, id_columns, budget, nullable, first)
    if why_together(plan, table.num_rows) is not None:
        return call.together()
    return call.in_parts(pool if pool.count > 1 else _OneThread())


def why_together(plan: Plan, rows: int | None = None) -> str | None:
    """Why the events of a table of so many rows are matched together; None if they are matched in shares."""
    if plan.mode != "verbose":
        return "matches that share a graph are found together"
    if plan.timeouts is not Timeouts.NONE:
        return "the last of all events tells which runs are out of time"
    if rows is not None and rows < LEAST_ROWS:
        return f"there are fewer than {LEAST_ROWS:,} events"
    if isinstance(plan.split, ByKey):
        return None
    reach = reach_or_reason(plan)
    return reach if isinstance(reach, str) else None


class _Call:
    def __init__(
        self,
        plan: Plan,
        table: pa.Table,
        with_times: bool,
        id_columns: Sequence[str] | None,
        budget: Budget | None = None,
        nullable: frozenset[str] | None = None,
        first: int = 0,
    ) -> None:
        self.table, self.budget = table, budget or Budget(plan.limits, table.num_rows, is_whole=True)
        schema = result_schema(plan, with_types_of_texts(table.schema), with_times, id_columns)
        there = nullable_names(table) if nullable is None else nullable
        self.maker = Maker(plan, there, schema, with_times, id_columns, first)

    def together(self) -> pa.Table:
        return self.maker.made(with_texts(self.table), self.budget).behind(self.maker.first).rows

    def in_parts(self, workers: Workers) -> pa.Table:
        """The rows that the parts of the table give, if it can be cut."""
        engine = Runner(self.maker.plan, self.maker.nullable).choice.compiled
        if engine is None:
            return self.together()
        engine.kernel(self.maker.nullable, self.budget)  # before threads ask for it
        try:
            rows = self._joined(engine, workers)
        except (KleeneError, EndedError, NoNextRowError) as error:
            if isinstance(error, LimitError) and self.budget.is_out_of_time:
                raise
            self.budget.restart()
            rows = None
        return self.together() if rows is None else rows

    def _joined(self, engine: CompiledEngine, workers: Workers) -> pa.Table | None:
        layout = choose_layout(self.maker, self.table, engine, workers, self.budget)
        if layout is None:
            return None
        budgets = self.budget.for_threads(len(layout))
        made = workers.map(lambda number: layout.made(number, budgets[number]), range(len(layout)))
        return layout.joined(made, workers, self.budget)


class _OneThread:
    """The caller's own thread."""

    count = 1

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        return list(map(function, items))


class Pool:
    """Threads of one call. If one of them meets an error, the others end, and it is raised here."""

    def __init__(self, pool: ThreadPoolExecutor, count: int, budget: Budget) -> None:
        self._pool, self.count, self._budget = pool, count, budget

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        tasks, are_done = list[Future[Result]](), False
        try:
            for item in items:
                tasks.append(self._pool.submit(copy_context().run, function, item))
            while wait(tasks, LOOK_AROUND, FIRST_EXCEPTION).not_done and not any(map(_has_failed, tasks)):
                pass  # so that Ctrl-C is noticed, whichever thread the system tells of it
            are_done = all(task.done() for task in tasks) and not any(map(_has_failed, tasks))
        finally:
            if not are_done:
                self._budget.end()  # also where the user has pressed Ctrl-C
                wait(tasks)
        failed = [error for task in tasks if (error := task.exception()) is not None]
        for error in sorted(failed, key=lambda error: isinstance(error, EndedError)):
            raise error
        return [task.result() for task in tasks]


def _has_failed(task: Future[Any]) -> bool:
    return task.done() and task.exception() is not None
