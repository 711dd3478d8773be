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
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget, EndedError, table_bytes
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.compiled.columns import Array
from kleene.engine.output import values_at
from kleene.engine.range_shares import Ranges, cut_by_range, reach_or_reason
from kleene.engine.run import Runner, result_schema
from kleene.engine.shares import LEAST_ROWS, Cut, Item, Result, Workers, cut_by_key
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
        return call.in_shares(_OneThread())
    with ThreadPoolExecutor(plan.threads, "kleene") as pool:
        return call.in_shares(_Pool(pool, plan.threads, call.budget))


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
    def __init__(self, plan: Plan, table: pa.Table, with_times: bool, id_columns: Sequence[str] | None) -> None:
        self.plan, self.table, self.with_times, self.id_columns = plan, table, with_times, id_columns
        self.budget = Budget(plan.limits, table.num_rows, is_whole=True)
        self.nullable = nullable_names(table)
        self.schema = result_schema(plan, table.schema, with_times, id_columns)

    def together(self) -> pa.Table:
        made, _ = self._made(self.table, self.budget)
        return made

    def in_shares(self, pool: Workers) -> pa.Table:
        engine = Runner(self.plan, self.nullable).choice.compiled
        if engine is None:
            return self.together()
        engine.kernel(self.nullable, self.budget)  # before threads ask for it
        by_key = isinstance(self.plan.split, ByKey)
        cut = cut_by_key(self.plan, self.table, engine.jit, pool) if by_key else None
        ranges = self._ranges(pool) if cut is None else None
        if cut is not None:
            count, of_share = len(cut), partial(self._of_share, cut)
        elif ranges is not None:
            count, of_share = len(ranges), partial(self._of_range, ranges)
        else:
            return self.together()
        budgets = self.budget.for_threads(count)
        try:
            made = pool.map(lambda number: of_share(number, budgets[number]), range(count))
        except (KleeneError, EndedError) as error:
            if isinstance(error, LimitError) and self.budget.is_out_of_time:
                raise
            self.budget.restart()
            return self.together()
        if self._goes_by_partition:
            # Its rows come partition by partition; texts that are keys may still be codes.
            return pa.concat_tables([rows.cast(self.schema) for rows, _ in made])
        return self._merged([(rows, places) for rows, places in made if rows.num_rows], pool)

    @property
    def _goes_by_partition(self) -> bool:
        return isinstance(self.plan.query, AnalyzedRowPattern) and self.plan.query.frame is not None

    def _ranges(self, pool: Workers) -> Ranges | None:
        """Slices of the table, if there are several threads to match them."""
        if pool.count == 1 or self.id_columns is not None:
            return None
        found = cut_by_range(self.plan, self.table, pool.count, self.nullable)
        return found if isinstance(found, Ranges) else None

    def _of_range(self, ranges: Ranges, number: int, budget: Budget) -> tuple[pa.Table, Array]:
        tables, places = ranges.matched(number, self.with_times, budget)
        if not tables:
            return pa.Table.from_batches([], self.schema), np.empty(0, np.int64)
        return pa.concat_tables(tables), np.concatenate(places)

    def _of_share(self, cut: Cut, number: int, budget: Budget) -> tuple[pa.Table, Array]:
        share = cut.share(number)
        made, places = self._made(share.table, budget)
        return made, share.positions[places] if len(places) else places

    def _made(self, table: pa.Table, budget: Budget) -> tuple[pa.Table, Array]:
        """The rows of the matches in the table, and the position of the event that completes each."""
        runner, held, places = Runner(self.plan, self.nullable), list[pa.Table](), list[Array]()
        for batch in runner.batches(table, self.with_times, self.id_columns, budget=budget, holds_all=True):
            held.append(batch.table)
            if batch.places is not None:
                places.append(batch.places)
            else:
                assert self._goes_by_partition, "rows that are merged have places"
            budget.add("its result", table_bytes(batch.table))
        made = pa.concat_tables(held) if held else pa.Table.from_batches([], self.schema)
        return made, np.concatenate(places) if places else np.empty(0, np.int64)

    def _merged(self, made: list[tuple[pa.Table, Array]], pool: Workers) -> pa.Table:
        """The rows of all shares by the events that complete their matches.

        Those of one event are all of one share, which has them in order.
        """
        if not made:
            return pa.Table.from_batches([], self.schema)
        completing = np.concatenate([places for _, places in made])
        if len(made) == 1 and (completing[1:] >= completing[:-1]).all():
            return made[0][0].cast(self.schema)
        order = np.argsort(completing, kind="stable")
        columns = zip(*(rows.columns for rows, _ in made), strict=True)
        return pa.table(pool.map(partial(_in_order, order), columns), schema=self.schema)


def _in_order(order: Array, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
    return values_at(pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type), order)


class _OneThread:
    """The caller's own thread."""

    count = 1

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        return list(map(function, items))


class _Pool:
    """Threads of one call. If one of them meets an error, the others end, and it is raised here."""

    def __init__(self, pool: ThreadPoolExecutor, count: int, budget: Budget) -> None:
        self._pool, self.count, self._budget = pool, count, budget

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        tasks = [self._pool.submit(copy_context().run, function, item) for item in items]
        try:
            while wait(tasks, LOOK_AROUND, FIRST_EXCEPTION).not_done and not any(map(_has_failed, tasks)):
                pass  # so that Ctrl-C is noticed, whichever thread the system tells of it
        finally:
            if not all(task.done() for task in tasks) or any(map(_has_failed, tasks)):
                self._budget.end()  # also where the user has pressed Ctrl-C
                wait(tasks)
        failed = [error for task in tasks if (error := task.exception()) is not None]
        for error in sorted(failed, key=lambda error: isinstance(error, EndedError)):
            raise error
        return [task.result() for task in tasks]


def _has_failed(task: Future[Any]) -> bool:
    return task.done() and task.exception() is not None
