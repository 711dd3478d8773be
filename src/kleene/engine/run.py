"""A plan and a sorted table of events to the table of matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine import reference
from kleene.engine.blocks import Block
from kleene.engine.budget import Budget
from kleene.engine.choice import SMALL, TINY, Choice, access_of, choose, ending_of, planned_query
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.compiled.code import NotExpressibleError
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.jit import is_cached, is_loaded
from kleene.engine.compiled.measures import MeasureProgram
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.regex_engine import RegexProgram, find_regex
from kleene.engine.compiled.row_engine import RowProgram, find_row_matches
from kleene.engine.compiled.sase_engine import SaseProgram, find_blocks
from kleene.engine.compiled.sequence_engine import SequenceProgram, find_sequences
from kleene.engine.compressed import CompressedMatches, compressed_schema
from kleene.engine.events import Events
from kleene.engine.match_ids import MATCH_ID
from kleene.engine.matches import FlatMatches, flat_matches, joined
from kleene.engine.output import output_schema
from kleene.engine.regex_columns import regex_table
from kleene.engine.results import (
    STATES_AT_ONCE,
    MatchRows,
    Part,
    ResultBatch,
    as_found,
    found_row_parts,
    in_output_order,
    interpreted_row_parts,
    table_batches,
    without_first,
)
from kleene.engine.row_output import row_output_schema
from kleene.engine.rows import row_parts
from kleene.errors import ExecutionError, LimitError, UnsupportedError
from kleene.ir.options import RowsPerMatch, Selection
from kleene.plan.choice import choose_algorithm
from kleene.plan.operators import RunScan
from kleene.plan.plan import Plan

MOST_STATES = 1 << 26
"""Bytes of the states of matches that are held together, of which each match gives one row."""
FEW_BYTES, FEW_SECONDS = 1 << 24, 2.0
"""What the interpreter may make of a small table, and how long it may take, before machine code is made after all."""


def run(plan: Plan, table: pa.Table, with_times: bool = False, id_columns: Sequence[str] | None = None) -> pa.Table:
    """The matches as rows, in output order; with the columns that ids are made of, each with its id."""
    budget = Budget(plan.limits, table.num_rows, is_whole=True)
    held: list[pa.Table] = []
    for batch in Runner(plan).batches(table, with_times, id_columns, budget=budget, holds_all=True):
        held.append(batch.table)
        budget.add("its result", batch.table.nbytes)
    schema = result_schema(plan, table.schema, with_times, id_columns)
    return pa.concat_tables(held) if held else pa.Table.from_batches([], schema)


def result_schema(
    plan: Plan, columns: pa.Schema, with_times: bool = False, id_columns: Sequence[str] | None = None
) -> pa.Schema:
    if isinstance(plan.query, AnalyzedRowPattern):
        return row_output_schema(plan.query, columns)
    if plan.mode == "compressed":
        return compressed_schema(plan.query, columns)
    schema = output_schema(plan.query, columns, with_times)
    return schema if id_columns is None else schema.append(pa.field(MATCH_ID, pa.string()))


class Runner:
    """A plan with its engine, ready for any number of tables."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.choice: Choice = choose(plan)
        self._seen = 0  # events so far: many small tables are worth as much as a large one
        self.meter = Meter()
        self._program: SaseProgram | SequenceProgram | None = None
        self.measures: MeasureProgram | None = None
        self._rows_program: RowProgram | RegexProgram | None = None
        if isinstance(plan.query, AnalyzedRowPattern) and self.choice.engine != "reference":
            is_regex = plan.query.definition.selection is Selection.FIRST_COMPLETED
            make = RegexProgram if is_regex else RowProgram
            self._rows_program = make(plan.query, self.choice.engine == "compiled")
        if isinstance(plan.query, AnalyzedQuery) and self.choice.engine in ("compiled", "generated"):
            self._program = program_of(plan, self.choice.engine == "compiled")
            self.measures = MeasureProgram(plan.query, self.choice.engine == "compiled")

    def load(self, table: pa.Table) -> bool:
        """Makes or loads the machine code for such a table now; False if there is none to be had."""
        program = self._program or self._rows_program
        if program is None or not program.jit:
            return False
        program.kernel(nullable_names(table))
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
    ) -> Iterator[ResultBatch]:
        """The result in pieces of bounded size, in output order or as they are found.

        Memory does not grow with the result, unless the caller holds all of it, so that nothing need wait on disk.
        """
        budget = Budget(self.plan.limits, table.num_rows) if budget is None else budget
        rows = MatchRows(self.plan, table, self.measures, self.meter, with_times, id_columns)
        given = 0
        try:
            parts = self._parts(table, rows, budget)
            for batch in in_output_order(parts, budget, holds_all) if in_order else as_found(parts):
                given += batch.table.num_rows
                yield batch
        except GaveUpError as error:
            # The interpreter knows whether this is an error, and says which; what it finds comes in the same order.
            if given and not in_order:
                raise ExecutionError(error.message, hint=error.hint) from None
            budget.restart()
            parts = self._interpreted(table, rows, budget)
            yield from without_first(in_output_order(parts, budget, holds_all), given)

    def find(self, table: pa.Table) -> FlatMatches:
        """The matches of a SASE query, all at once."""
        query, program, budget = self.plan.query, self._program, Budget(self.plan.limits, table.num_rows)
        assert isinstance(query, AnalyzedQuery)
        blocks: list[Block] | None = None
        if program is not None and not self._is_worth_compiling(program, table):
            try:
                blocks = list(self._interpreted_blocks(query, table, budget))
            except LimitError:  # merged runs may not come near it
                budget.restart()
        if blocks is None:
            try:
                blocks = list(self._compiled_blocks(table, budget))
            except GaveUpError:
                budget.restart()
                blocks = list(self._interpreted_blocks(query, table, budget))
        return joined([block.matches for block in blocks], len(query.components))

    def compressed(self, table: pa.Table) -> CompressedMatches:
        """The matches of a SASE query as the graph that they share."""
        query, program = self.plan.query, self.compressed_program()
        assert isinstance(query, AnalyzedQuery)
        if self.choice.engine == "nothing":
            table = table.slice(0, 0)
        if program.jit and not self._is_worth_compiling(program, table):
            made = program_of(self.plan, jit=False)
            assert isinstance(made, SaseProgram)
            program = made
        return CompressedMatches(query, program, table, self.plan.run_limit, Budget(self.plan.limits, table.num_rows))

    def compressed_program(self) -> SaseProgram:
        """What makes compressed output; an error if the plan has nothing that could."""
        query, program = self.plan.query, self._program
        assert isinstance(query, AnalyzedQuery)
        if self.choice.engine == "nothing":
            return self._program_for_nothing(query)
        if not isinstance(program, SaseProgram) or program.algorithm == "backtrack":
            engine = self.choice.reason if program is None else "the backtrack algorithm, which shares nothing"
            raise UnsupportedError(
                f"compressed output needs the shared match buffer, and the query is run by {engine}",
                hint="Use match, or choose another engine or algorithm.",
            )
        return program

    def _program_for_nothing(self, query: AnalyzedQuery) -> SaseProgram:
        """Compressed output is made by runs, be there none."""
        try:
            program = SaseProgram(query, choose_algorithm(query, "auto")[0], jit=False)
            program.generated(frozenset())
        except NotExpressibleError as reason:
            raise UnsupportedError(f"compressed output cannot be made for {reason}", hint="Use match.") from None
        return program

    # --- parts of the result ---------------------------------------------------------------------------------------

    def _parts(self, table: pa.Table, rows: MatchRows, budget: Budget) -> Iterator[Part]:
        """What the engine finds; where that is not worth its start, and it is little, what the interpreter finds."""
        query, program = self.plan.query, self._program or self._rows_program
        if isinstance(query, AnalyzedQuery) and self.plan.mode == "compressed":
            if table.num_rows:
                yield Part(table_batches(self.compressed(table).to_table()), True)
        elif self.choice.engine == "nothing" or not table.num_rows:
            return
        elif program is None:
            yield from self._interpreted(table, rows, budget)
        else:
            few = None if self._is_worth_compiling(program, table) else self._few(table, rows, budget)
            yield from self._compiled(table, rows, budget) if few is None else few

    def _few(self, table: pa.Table, rows: MatchRows, budget: Budget) -> list[Part] | None:
        """What the interpreter finds; None if that is much, or it meets a limit that the engine may not come near."""
        budget.check_time()
        left = budget.seconds_left
        seconds = FEW_SECONDS if left is None else min(FEW_SECONDS, max(left, 1e-6))
        quick = Budget(replace(budget.limits, seconds=seconds), table.num_rows)
        found: list[Part] = []
        size = 0
        try:
            for part in self._interpreted(table, rows, quick):
                batches = list(part.batches)
                found.append(Part(batches, part.is_settled))
                size += sum(batch.table.nbytes for batch in batches)
                if size > FEW_BYTES:
                    return None
        except LimitError:
            if quick.has_too_many_matches:
                raise
            return None
        return found

    def _interpreted(self, table: pa.Table, rows: MatchRows, budget: Budget) -> Iterator[Part]:
        query = self.plan.query
        if isinstance(query, AnalyzedQuery):
            return rows.parts(self._interpreted_blocks(query, table, budget))
        return interpreted_row_parts(query, table, row_parts(query, table, self.plan.run_limit, budget))

    def _interpreted_blocks(self, query: AnalyzedQuery, table: pa.Table, budget: Budget) -> Iterator[Block]:
        assert query.schema is not None
        events, components = Events(table, query.schema, query.order_by), len(query.components)
        for part in reference.match_parts(query, events, self.plan.format, self.plan.run_limit, budget):
            yield Block(flat_matches(part, components), is_settled=not query.partition_by)

    def _compiled(self, table: pa.Table, rows: MatchRows, budget: Budget) -> Iterator[Part]:
        query, program, limit = self.plan.query, self._rows_program, self.plan.run_limit
        if isinstance(query, AnalyzedQuery):
            yield from rows.parts(self._compiled_blocks(table, budget))
        elif isinstance(program, RegexProgram):
            yield Part(table_batches(regex_table(query, find_regex(program, table, limit, budget))), True)
        else:
            assert isinstance(program, RowProgram)
            is_one = query.rows_per_match is RowsPerMatch.ONE
            states = min(budget.at_once, MOST_STATES) // 8 if is_one else STATES_AT_ONCE
            found = find_row_matches(program, table, limit, budget, states)
            yield from found_row_parts(query, found, table, program.jit, budget)

    def _compiled_blocks(self, table: pa.Table, budget: Budget) -> Iterator[Block]:
        program, plan = self._program, self.plan
        if program is None:
            assert isinstance(plan.query, AnalyzedQuery)
            return iter(()) if self.choice.engine == "nothing" else self._interpreted_blocks(plan.query, table, budget)
        if isinstance(program, SequenceProgram):
            return find_sequences(program, table, plan.format, plan.run_limit, self.meter, budget)
        return find_blocks(program, table, plan.format, plan.run_limit, self.meter, budget)

    def _is_worth_compiling(
        self, program: SaseProgram | SequenceProgram | RowProgram | RegexProgram, table: pa.Table
    ) -> bool:
        """Whether machine code is at hand, or will be sooner than the interpreter is done."""
        self._seen += table.num_rows
        if self.plan.engine != "auto" or self.plan.hints.given() or self._seen > SMALL:
            return True
        generated = program.generated(nullable_names(table))
        at_hand = is_loaded if self._seen <= TINY else is_cached
        return at_hand(generated.source, generated.signatures)


def program_of(plan: Plan, jit: bool) -> SaseProgram | SequenceProgram:
    """The plan of a SASE query made into kernels."""
    query, pipeline = plan.query, plan.pipeline
    assert isinstance(query, AnalyzedQuery)
    assert pipeline is not None
    if pipeline.is_sequence:
        return SequenceProgram(query, pipeline, jit)
    own = planned_query(query, pipeline)
    return SaseProgram(own, pipeline.get(RunScan).algorithm, jit, access_of(pipeline), ending_of(pipeline))
