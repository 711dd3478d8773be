"""A plan and a sorted table of events to the table of matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine import reference, rows
from kleene.engine.choice import SMALL, TINY, Choice, access_of, choose, ending_of, planned_query
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.compiled.code import NotExpressibleError
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.jit import is_cached, is_loaded
from kleene.engine.compiled.measures import MeasureProgram, computed_measures
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.regex_engine import RegexProgram, find_regex
from kleene.engine.compiled.row_engine import RowProgram, find_row_matches
from kleene.engine.compiled.sase_engine import SaseProgram, find_matches
from kleene.engine.compiled.sequence_engine import SequenceProgram, find_sequences
from kleene.engine.compressed import CompressedMatches, compressed_schema
from kleene.engine.events import Events
from kleene.engine.match_ids import MATCH_ID, match_ids
from kleene.engine.matches import FlatMatches, flat_matches
from kleene.engine.output import output_schema, output_table
from kleene.engine.regex_columns import regex_table
from kleene.engine.row_columns import one_row_table
from kleene.engine.row_output import OutputRow, row_output_schema, row_output_table
from kleene.errors import ExecutionError, UnsupportedError
from kleene.ir.options import Format, RowsPerMatch, Selection
from kleene.plan.choice import choose_algorithm
from kleene.plan.operators import RunScan
from kleene.plan.plan import Plan

ROWS_PER_BATCH = 10_000
Found = TypeVar("Found")


def run(plan: Plan, table: pa.Table, with_times: bool = False, id_columns: Sequence[str] | None = None) -> pa.Table:
    """The matches as rows, in output order; with the columns that ids are made of, each with its id."""
    parts = Runner(plan).batches(table, with_times)
    batches = [part.table if id_columns is None else part.with_ids(plan, id_columns) for part in parts]
    return batches[0] if len(batches) == 1 else pa.concat_tables(batches)


def result_schema(plan: Plan, columns: pa.Schema, with_times: bool = False) -> pa.Schema:
    if isinstance(plan.query, AnalyzedRowPattern):
        return row_output_schema(plan.query, columns)
    if plan.mode == "compressed":
        return compressed_schema(plan.query, columns)
    return output_schema(plan.query, columns, with_times)


@dataclass(frozen=True, slots=True)
class ResultBatch:
    """Some thousand rows of the result; for SASE, with the matches that they stand for, and their events."""

    table: pa.Table
    matches: FlatMatches | None = None
    events: pa.Table | None = None

    def with_ids(self, plan: Plan, names: Sequence[str]) -> pa.Table:
        return with_match_ids(self.table, self.events, self.matches, plan, names)


def with_match_ids(
    table: pa.Table, events: pa.Table | None, matches: FlatMatches | None, plan: Plan, names: Sequence[str]
) -> pa.Table:
    """The rows with a column of the matches' ids; where an event stands twice in the input, so may a match."""
    assert events is not None
    assert matches is not None
    assert plan.query.schema is not None
    return table.append_column(MATCH_ID, match_ids(events, matches, names, plan.query.schema))


PATIENCE = 20_000  # steps of the interpreter from one row


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

    def batches(self, table: pa.Table, with_times: bool = False) -> Iterator[ResultBatch]:
        """The result in pieces of bounded size; of no rows, one empty piece."""
        query = self.plan.query
        if isinstance(query, AnalyzedQuery) and self.plan.mode == "compressed":
            whole = self.compressed(table).to_table() if table.num_rows else None
            yield from table_batches(
                whole if whole is not None else compressed_schema(query, table.schema).empty_table()
            )
        elif isinstance(query, AnalyzedRowPattern):
            whole = self._row_table(query, table)
            if whole is not None:
                yield from table_batches(whole)
            else:
                yield from row_batches(query, table, self._rows(query, table))
        else:
            yield from match_batches(query, table, self.find(table), self.measures, with_times, self.meter)

    def compressed(self, table: pa.Table) -> CompressedMatches:
        """The matches of a SASE query as the graph that they share."""
        query, program = self.plan.query, self._program
        assert isinstance(query, AnalyzedQuery)
        if self.choice.engine == "nothing":
            program, table = self._program_for_nothing(query), table.slice(0, 0)
        if not isinstance(program, SaseProgram) or program.algorithm == "backtrack":
            engine = self.choice.reason if program is None else "the backtrack algorithm, which shares nothing"
            raise UnsupportedError(
                f"compressed mode needs the shared match buffer, and the query is run by {engine}",
                hint="Leave out mode, or choose another engine or algorithm.",
            )
        if program.jit and not self._is_worth_compiling(program, table):
            program = program_of(self.plan, jit=False)
            assert isinstance(program, SaseProgram)
        return CompressedMatches(query, program, table, self.plan.run_limit)

    def _program_for_nothing(self, query: AnalyzedQuery) -> SaseProgram:
        """Compressed output is made by runs, be there none."""
        try:
            program = SaseProgram(query, choose_algorithm(query, "auto")[0], jit=False)
            program.generated(frozenset())
        except NotExpressibleError as reason:
            raise UnsupportedError(f"compressed mode cannot be used for {reason}", hint="Leave out mode.") from None
        return program

    def _row_table(self, query: AnalyzedRowPattern, table: pa.Table) -> pa.Table | None:
        """The result of ONE ROW PER MATCH column by column; None where rows are made one by one."""
        program, limit = self._rows_program, self.plan.run_limit
        if isinstance(program, RegexProgram):
            return self._by_either(
                program,
                table,
                lambda: regex_table(query, find_regex(program, table, limit)),
                lambda: row_output_table(query, table, rows.find_rows(query, table, limit)),
            )
        if program is None or query.rows_per_match is not RowsPerMatch.ONE or not table.num_rows:
            return None
        if not self._is_worth_compiling(program, table):
            return None
        self._seen -= table.num_rows  # it is asked again where rows are made one by one
        try:
            return one_row_table(query, find_row_matches(program, table, limit), program.jit)
        except GaveUpError:
            return None

    def _rows(self, query: AnalyzedRowPattern, table: pa.Table) -> list[OutputRow]:
        program, limit = self._rows_program, self.plan.run_limit
        if program is None:
            return rows.find_rows(query, table, limit)

        def compiled() -> list[OutputRow]:
            assert isinstance(program, RowProgram)
            return rows.rows_of_matches(query, table, find_row_matches(program, table, limit))

        def interpreted() -> list[OutputRow]:
            try:
                # Where it goes around in ways that fail, machine code, which remembers them, is there sooner.
                return rows.find_rows(query, table, min(limit, PATIENCE))
            except ExecutionError:
                with suppress(GaveUpError):
                    return compiled()
                return rows.find_rows(query, table, limit)

        return self._by_either(program, table, compiled, interpreted)

    def find(self, table: pa.Table) -> FlatMatches:
        """The matches of a SASE query."""
        query, plan = self.plan.query, self.plan
        assert isinstance(query, AnalyzedQuery)
        program = self._program
        if self.choice.engine == "nothing":
            return flat_matches([], len(query.components))
        if program is None:
            return _interpreted(query, table, plan.format, plan.run_limit)
        return self._by_either(
            program,
            table,
            lambda: self._found(program, table),
            lambda: _interpreted(query, table, plan.format, plan.run_limit),
        )

    def _found(self, program: SaseProgram | SequenceProgram, table: pa.Table) -> FlatMatches:
        if isinstance(program, SequenceProgram):
            return find_sequences(program, table, self.plan.format, self.plan.run_limit, self.meter)
        return find_matches(program, table, self.plan.format, self.plan.run_limit, self.meter)

    def _by_either(
        self,
        program: SaseProgram | SequenceProgram | RowProgram | RegexProgram,
        table: pa.Table,
        compiled: Callable[[], Found],
        interpreted: Callable[[], Found],
    ) -> Found:
        """What the compiled engine finds, or, where that is not worth its start, the interpreter."""
        if self._is_worth_compiling(program, table):
            try:
                return compiled()
            except GaveUpError:
                return interpreted()  # it knows whether this is an error, and says which
        try:
            return interpreted()
        except ExecutionError as error:
            # It may have met a limit that merged runs, or shared failures, do not come near.
            try:
                return compiled()
            except GaveUpError:
                raise error from None

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


def table_batches(whole: pa.Table) -> Iterator[ResultBatch]:
    for start in range(0, whole.num_rows or 1, ROWS_PER_BATCH):
        yield ResultBatch(whole.slice(start, ROWS_PER_BATCH))


def row_batches(query: AnalyzedRowPattern, table: pa.Table, rows: Sequence[OutputRow]) -> Iterator[ResultBatch]:
    for start in range(0, len(rows) or 1, ROWS_PER_BATCH):
        yield ResultBatch(row_output_table(query, table, rows[start : start + ROWS_PER_BATCH]))


def match_batches(
    query: AnalyzedQuery,
    table: pa.Table,
    matches: FlatMatches,
    measures: MeasureProgram | None,
    with_times: bool,
    meter: Meter,
) -> Iterator[ResultBatch]:
    assert query.schema is not None
    events, started = Events(table, query.schema, query.order_by), perf_counter()
    computed = {} if measures is None else computed_measures(measures, table, matches)
    for start in range(0, len(matches) or 1, ROWS_PER_BATCH):
        part = matches[start : start + ROWS_PER_BATCH]
        here = {number: column.slice(start, ROWS_PER_BATCH) for number, column in computed.items()}
        made = output_table(query, events, part, table.schema, with_times, here)
        meter.add("Transformation", len(part), made.num_rows, perf_counter() - started)
        yield ResultBatch(made, part, table)
        started = perf_counter()


def program_of(plan: Plan, jit: bool) -> SaseProgram | SequenceProgram:
    """The plan of a SASE query made into kernels."""
    query, pipeline = plan.query, plan.pipeline
    assert isinstance(query, AnalyzedQuery)
    assert pipeline is not None
    if pipeline.is_sequence:
        return SequenceProgram(query, pipeline, jit)
    own = planned_query(query, pipeline)
    return SaseProgram(own, pipeline.get(RunScan).algorithm, jit, access_of(pipeline), ending_of(pipeline))


def _interpreted(query: AnalyzedQuery, table: pa.Table, format_: Format, run_limit: int) -> FlatMatches:
    assert query.schema is not None
    events = Events(table, query.schema, query.order_by)
    return flat_matches(reference.find_matches(query, events, format_, run_limit), len(query.components))
