"""A plan and a sorted table of events to batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.choice import SMALL, TINY, Choice, CompiledEngine, choose, compiled_engine, interpreter_of
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.compiled.failures import GaveUpError, NotExpressibleError
from kleene.engine.compiled.jit import is_cached, is_loaded
from kleene.engine.compiled.kept import KeepingProgress
from kleene.engine.compiled.measures import MeasureProgram
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.run_engine import RunEngine
from kleene.engine.compressed import CompressedMatches, compressed_schema
from kleene.engine.interpreter import Interpreter
from kleene.engine.match_order import RowOrder
from kleene.engine.matches import FlatMatches, FoundMatches, joined
from kleene.engine.output import output_schema
from kleene.engine.protocol import Engine, Progress
from kleene.engine.results import MATCH_ID, Part, ResultBatch, RowWriter, in_output_order, table_batches, without_first
from kleene.engine.row_output import row_output_schema
from kleene.engine.row_timeouts import RowTimeouts
from kleene.engine.timeouts import TIMED_OUT, EventTimeouts, mark_fields
from kleene.engine.totals.groups import Totals, grouping_of, totals_schema, totals_table
from kleene.engine.totals.partial import partial_table
from kleene.engine.totals.totals import totals_by_graph, totals_by_match, why_match_by_match
from kleene.errors import ExecutionError, LimitError, SchemaError, UnsupportedError
from kleene.ir.options import Timeouts
from kleene.plan.choice import choose_algorithm
from kleene.plan.plan import Plan

FEW_BYTES, FEW_SECONDS = 1 << 24, 2.0
"""What the interpreter may make of a small table, and how long it may take, before machine code is made after all."""


def result_schema(
    plan: Plan, columns: pa.Schema, with_times: bool = False, id_columns: Sequence[str] | None = None
) -> pa.Schema:
    if isinstance(plan.query, AnalyzedRowPattern):
        return _with_marks(row_output_schema(plan.query, columns), plan)
    if plan.mode == "compressed":
        return compressed_schema(plan.query, columns)
    if plan.mode == "totals":
        return totals_schema(plan.query, columns)
    schema = _with_marks(output_schema(plan.query, columns, with_times), plan)
    return schema if id_columns is None else schema.append(pa.field(MATCH_ID, pa.string()))


def _with_marks(schema: pa.Schema, plan: Plan) -> pa.Schema:
    marks = mark_fields(plan)
    if marks and TIMED_OUT in schema.names:
        raise SchemaError(
            f"timeouts are marked by the column '{TIMED_OUT}', but the result has another of that name",
            hint="Rename it, or choose other columns with RETURN or MEASURES.",
        )
    return pa.schema([*schema, *marks])


def timeouts_of(plan: Plan) -> EventTimeouts | RowTimeouts | None:
    """What finds the runs that are out of time, if they are wanted; of steps, the engine itself does."""
    if plan.timeouts is Timeouts.NONE or isinstance(plan.query, AnalyzedSteps):
        return None
    return RowTimeouts(plan) if isinstance(plan.query, AnalyzedRowPattern) else EventTimeouts(plan)


class Runner:
    """A plan with its engine, ready for any number of tables."""

    def __init__(self, plan: Plan, nullable: frozenset[str] | None = None) -> None:
        self.plan = plan
        self.choice: Choice = choose(plan, nullable)
        self._nullable = nullable or frozenset()  # columns that have NULLs elsewhere, if not in the table at hand
        self._seen = 0  # events so far: many small tables are worth as much as a large one
        self.meter = Meter()
        self.measures = measures_of(plan, self.choice, self._nullable)

    def load(self, table: pa.Table) -> bool:
        """Makes or loads the machine code for such a table now; False if there is none to be had."""
        engine = self.choice.compiled
        if engine is None or not engine.jit:
            return False
        engine.kernel(nullable_names(table))
        self._seen += SMALL + 1  # from here on it is at hand
        return True

    def batches(
        self,
        table: pa.Table,
        with_times: bool = False,
        id_columns: Sequence[str] | None = None,
        in_order: bool = True,
        budget: Budget | None = None,
        holds_all: bool = False,
        row_order: RowOrder | None = None,
    ) -> Iterator[ResultBatch]:
        """The result in pieces of bounded size, in output order or as they are found.

        Memory does not grow with the result, unless the caller holds all of it, so that nothing need wait on disk.
        """
        budget = Budget(self.plan.limits, table.num_rows) if budget is None else budget
        writer = RowWriter(self.plan, self.measures, self.meter, with_times, id_columns, row_order, is_whole=holds_all)
        given = 0
        try:
            parts = self._with_timeouts(self._parts(table, writer, budget), table, writer, budget)
            found = (batch for part in parts for batch in part.batches)
            for batch in in_output_order(parts, budget, holds_all) if in_order else found:
                given += batch.table.num_rows
                yield batch
        except GaveUpError as error:
            # The interpreter knows whether this is an error, and says which; what it finds comes in the same order.
            if given and not in_order:
                raise ExecutionError(error.message, hint=error.hint) from None
            budget.restart()
            parts = self._found(interpreter_of(self.plan), table, writer, budget)
            parts = self._with_timeouts(parts, table, writer, budget)
            yield from without_first(in_output_order(parts, budget, holds_all), given)

    def find(self, table: pa.Table, budget: Budget | None = None) -> FlatMatches:
        """The matches of a SASE query, all at once."""
        budget = Budget(self.plan.limits, table.num_rows) if budget is None else budget
        if self._asks_the_interpreter(table):
            try:
                return self._all_found(Interpreter(self.plan), table, budget)
            except LimitError:  # merged runs may not come near it
                budget.restart()
        try:
            return self._all_found(self.choice.engine, table, budget)
        except GaveUpError:
            budget.restart()
            return self._all_found(Interpreter(self.plan), table, budget)

    def _all_found(self, engine: Engine, table: pa.Table, budget: Budget) -> FlatMatches:
        assert isinstance(self.plan.query, AnalyzedQuery)
        found = self._started(engine, budget).feed(table, is_last=True)
        matches = [part.matches for part in found if isinstance(part, FoundMatches)]
        return joined(matches, len(self.plan.query.components))

    def compressed(self, table: pa.Table) -> CompressedMatches:
        """The matches of a SASE query as the graph that they share."""
        query, engine = self.plan.query, self.compressed_engine()
        assert isinstance(query, AnalyzedQuery)
        if self.choice.name == "nothing":
            table = table.slice(0, 0)
        else:
            engine = self.run_engine(table)
        return CompressedMatches.of_table(query, engine, table, Budget(self.plan.limits, table.num_rows))

    def totals(self, table: pa.Table) -> Totals:
        """Aggregates over all matches of a SASE query."""
        query, budget = self.plan.query, Budget(self.plan.limits, table.num_rows)
        assert isinstance(query, AnalyzedQuery)
        try:
            if self.choice.name == "nothing":
                return totals_by_match(query, self.choice.engine, table.slice(0, 0), budget)
            if why_match_by_match(self.plan, self.choice, nullable_names(table)) is not None:
                return self._totals_by_match(query, table, budget)
            return totals_by_graph(query, self.run_engine(table), table, budget)
        except GaveUpError:
            # The interpreter knows whether this is an error, and says which.
            budget.restart()
            return totals_by_match(query, Interpreter(self.plan), table, budget)

    def _totals_by_match(self, query: AnalyzedQuery, table: pa.Table, budget: Budget) -> Totals:
        if self._asks_the_interpreter(table):
            try:
                return totals_by_match(query, Interpreter(self.plan), table, budget)
            except LimitError:
                budget.restart()
        return totals_by_match(query, self.choice.engine, table, budget)

    def run_engine(self, table: pa.Table) -> RunEngine:
        """The engine of runs; as plain Python, where machine code is not worth making for the table."""
        engine = self.choice.compiled
        if engine is not None and engine.jit and not self._is_worth_compiling(engine, table):
            engine = compiled_engine(self.plan, jit=False)
        assert isinstance(engine, RunEngine)
        return engine

    def compressed_engine(self) -> RunEngine:
        """What makes compressed output; an error if the plan has nothing that could."""
        query, engine = self.plan.query, self.choice.compiled
        assert isinstance(query, AnalyzedQuery)
        if self.choice.name == "nothing":
            return self._engine_for_nothing(query)
        if not isinstance(engine, RunEngine) or engine.algorithm == "backtrack":
            why = self.choice.reason if engine is None else "the backtrack algorithm, which shares nothing"
            raise UnsupportedError(
                f"compressed output needs the match buffer that runs share, but the query is run by {why}",
                hint="Use match, or choose another engine or algorithm.",
            )
        return engine

    def _engine_for_nothing(self, query: AnalyzedQuery) -> RunEngine:
        """Compressed output is made by runs, be there none."""
        try:
            engine = RunEngine(query, choose_algorithm(query, "auto")[0], jit=False)
            engine.generated(frozenset())
        except NotExpressibleError as reason:
            raise UnsupportedError(
                f"compressed output cannot be made: the compiled engine has no code for {reason}", hint="Use match."
            ) from None
        return engine

    # --- parts of the result ---------------------------------------------------------------------------------------

    def _with_timeouts(
        self, parts: Iterator[Part], table: pa.Table, writer: RowWriter, budget: Budget
    ) -> Iterator[Part]:
        """The parts, and those of runs that are out of time among them, if they are wanted."""
        timeouts = timeouts_of(self.plan)
        if timeouts is None:
            yield from parts
            return
        yield from (Part(part.batches, False) for part in parts)
        yield from writer.parts(timeouts.closed(table, None, True, budget), budget)

    def _parts(self, table: pa.Table, writer: RowWriter, budget: Budget) -> Iterator[Part]:
        """What the engine finds; where that is not worth its start, and it is little, what the interpreter finds."""
        if not table.num_rows:
            return
        if self.plan.mode == "totals":
            assert isinstance(self.plan.query, AnalyzedQuery)
            made = partial_table if grouping_of(self.plan.query).is_partial else totals_table
            yield Part(table_batches(made(self.plan.query, self.totals(table), table.schema)), True)
            return
        if self.plan.mode == "compressed":
            yield Part(table_batches(self.compressed(table).to_table()), True)
            return
        few = self._few(table, writer, budget) if self._asks_the_interpreter(table) else None
        yield from self._found(self.choice.engine, table, writer, budget) if few is None else few

    def _found(self, engine: Engine, table: pa.Table, writer: RowWriter, budget: Budget) -> Iterator[Part]:
        return writer.parts(self._started(engine, budget).feed(table, is_last=True), budget)

    def _started(self, engine: Engine, budget: Budget) -> Progress:
        progress = engine.start(budget, self.meter)
        if isinstance(progress, KeepingProgress):
            progress.nullable = self._nullable
        return progress

    def _few(self, table: pa.Table, writer: RowWriter, budget: Budget) -> list[Part] | None:
        """What the interpreter finds; None if that is much, or it meets a limit that the engine may not come near."""
        budget.check_time()
        left = budget.seconds_left
        seconds = FEW_SECONDS if left is None else min(FEW_SECONDS, max(left, 1e-6))
        quick = Budget(replace(budget.limits, seconds=seconds), table.num_rows)
        found: list[Part] = []
        size = 0
        try:
            for part in self._found(interpreter_of(self.plan), table, writer, quick):
                batches = list(part.batches)
                found.append(Part(batches, part.is_settled))
                size += sum(table_bytes(batch.table) for batch in batches)
                if size > FEW_BYTES:
                    return None
        except LimitError:
            if quick.has_too_many_matches:
                raise
            return None
        return found

    def _asks_the_interpreter(self, table: pa.Table) -> bool:
        """Whether the interpreter is asked first, though there is another engine."""
        engine = self.choice.compiled
        return engine is not None and not self._is_worth_compiling(engine, table)

    def _is_worth_compiling(self, engine: CompiledEngine, table: pa.Table) -> bool:
        """Whether machine code is at hand, or will be sooner than the interpreter is done."""
        self._seen += table.num_rows
        if self.plan.engine != "auto" or self.plan.hints.given() or self._seen > SMALL:
            return True
        nullable = self._nullable | nullable_names(table)
        generated = engine.generated(nullable)
        if generated.layout.called:  # code that calls functions of the user's own is remembered by its engine alone
            return not engine.jit or engine.is_made(nullable)
        at_hand = is_loaded if self._seen <= TINY else is_cached
        return at_hand(generated.source, generated.signatures)


def measures_of(plan: Plan, choice: Choice, nullable: frozenset[str] = frozenset()) -> MeasureProgram | None:
    """Code for the values that a SASE query returns."""
    if not isinstance(plan.query, AnalyzedQuery) or choice.compiled is None:
        return None
    if isinstance(plan.query, AnalyzedSteps):
        return None
    program = MeasureProgram(plan.query, choice.compiled.jit, nullable)
    program.tier = choice.compiled.tier
    return program
