"""The public face: strings the stages together, nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pyarrow as pa

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import analyze_row_pattern, is_row_pattern, warn
from kleene.analysis.value_types import FUNCTIONS
from kleene.engine import compressed
from kleene.engine import progress as engine_progress
from kleene.engine.choice import SMALL
from kleene.engine.columns_read import columns_read
from kleene.engine.inputs import OrderKey, attributes_of, check_order_columns, make_order_key, read_events, read_rows
from kleene.engine.rows import sorted_rows, with_computed_keys
from kleene.engine.run import Runner, result_schema, run
from kleene.engine.sampling import sampled_statistics
from kleene.engine.ties import tie_notes
from kleene.errors import SchemaError, UnsupportedError
from kleene.explain import explain_code, explain_dot, explain_svg, explain_text
from kleene.ir.query import QueryDefinition
from kleene.ir.row_text import row_query_text
from kleene.ir.text import query_text
from kleene.lang import match_recognize as match_recognize_language
from kleene.lang import regex as regex_language
from kleene.lang import sase as sase_language
from kleene.plan.limits import checked_limits
from kleene.plan.plan import DEFAULT_RUN_LIMIT, Plan, make_plan
from kleene.plan.statistics import checked_statistics
from kleene.schema import Schema
from kleene.visible import visible

BUCKETS = 16
"""Groups that the keys of a stream are put together in, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, whatever language it was written in. Queries that say the same are equal."""

    definition: QueryDefinition

    def __repr__(self) -> str:
        return visible(f"<kleene.Query\n{definition_text(self.definition)}>", keep="\n")

    def match(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        format: str = "all",
        mode: str = "verbose",
        engine: str = "auto",
        algorithm: str = "auto",
        run_limit: int = DEFAULT_RUN_LIMIT,
        memory_limit: int | str | None = None,
        match_limit: int | None = None,
        time_limit: float | None = None,
        match_order: bool = False,
        match_id: bool = False,
        plan: Mapping[str, str] | None = None,
        statistics: Mapping[str, Mapping[str, float]] | None = None,
        pushdown: bool = True,
        presorted: bool = False,
        ranges: str | int = "auto",
        range_size: int | None = None,
        order: str = "time",
        unbounded_state: str = "refuse",
        timeouts: bool = False,
        buckets: int = BUCKETS,
        watermark: str | None = None,
        max_ahead: str | None = None,
    ) -> Any:
        """The matches among the events: Arrow in, Arrow out; Spark in, Spark out.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["Shelf", "Exit"], "t": [1, 5], "id": [7, 7]})
        >>> sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [id]").match(events, order_by="t").num_rows
        1

        events: a pyarrow.Table, anything with the Arrow C stream protocol (pandas, polars, DuckDB), a Spark DataFrame,
            or a dict of such things by event type.
        order_by: the column, or columns, that order the events; the first is the time that WITHIN measures. Needed by
            SASE queries; row patterns and the regular-expression operator say it themselves.
        type_column: the column that tells the type of an event; None if the input has none.
        tie_break: further columns that decide between events of equal order keys. Without them, such events are in
            the order of the input in process, and in that of their other values on Spark; where the query can tell, a
            `KleeneWarning` counts them, or on Spark `kleene.last_notes`.
        format: "all" matches, or "non_overlapping" ones only.
        mode: "verbose", a row for each match; or "compressed", for SASE queries, a row for each event that completes
            matches: in process a `CompressedMatches`, which counts and expands them; on Spark rows with a count and a
            structure that `kleene.expand` makes matches of.
        engine: "auto", "compiled" (machine code), "generated" (the same code as plain Python, to look into), or
            "reference", the plain interpreter.
        algorithm: for SASE queries on the compiled engine, "auto", "basic", "merge" or "backtrack" (SASE+ 2008 §5.2).
        run_limit: the most partial matches that a partition may have at once, or sequences that one event may complete,
            before an error is raised.
        memory_limit: how much the matches, buffers and results of the call may hold, in bytes or as a text like
            "2 GB"; by default half of the memory that the process may use. On Spark it is that of a task.
        match_limit: the most matches of the call; on Spark of a task, on a stream of a task in a micro-batch.
        time_limit: the most seconds of the call, the making of machine code included; on Spark of a task's piece of
            work. Beyond any of these limits an error says what grew, and how far the call came.
        plan: hints for SASE queries, by name, such as {"operators": "nfa"} or {"scan": "ais"}; see docs/plans.md.
        statistics: {"events": {type: count}, "distinct": {attribute: count}}, by which a plan is chosen; for tables in
            this process they are measured on a sample.
        match_order: on Spark, adds a column of that name; sorting by it restores the order that Arrow results have.
        match_id: for SASE queries, adds a column of that name that depends on nothing but the events of the match, so
            that it is the same in every run, in process and on Spark.
        pushdown: on Spark, whether events that the query cannot use are left out by Spark, before they travel.
        presorted: on Spark, says that the events of a key stand together in one Spark partition, in order, so that
            nothing is shuffled or sorted; it is checked, and an error if it is not so.
        ranges: on Spark, "auto" cuts the events of heavy keys, or all of them where there is no key, into ranges that
            are matched apart (RIP 2013); "off" does not; a number cuts each key into so many; "in place" says that the
            files of the input follow one another in time, so that they are matched where they lie; it is checked.
        range_size: about how many events a range has.
        order: on a stream, "time" lets events wait until the watermark has passed them; "arrival" trusts the order in
            which they arrive, and matches them at once.
        unbounded_state: on a stream, "allow" accepts a query that may hold ever more; by default it is refused.
        timeouts: on a stream, also gives out what a run had bound when it left its window, as rows of their own.
        buckets: on a stream, how many groups the keys are put together in, each with a state of its own. Each costs
            time in every micro-batch, and no more tasks than that can work at once.
        watermark: on a stream, how long to wait for events that are late, such as "10 minutes": Kleene sets Spark's
            watermark itself. Leave it out if the stream has one.
        max_ahead: on a stream, how far the time of an event may be ahead of the machine's clock, such as "1 hour".
            Events beyond that are set aside and counted, and never move the watermark, which needs `watermark`.
        """
        options = {"format": format, "engine": engine, "run_limit": run_limit, "algorithm": algorithm, "mode": mode}
        options |= {"plan": plan, "statistics": statistics}
        options["limits"] = checked_limits(memory_limit, match_limit, time_limit)
        if is_row_pattern(self.definition):
            refuse_order(order_by, tie_break, format, match_order, match_id)
            key = OrderKey(())
        else:
            key = make_order_key(() if order_by is None else order_by, tie_break)
        if is_spark(events):
            on_spark = spark_module("job")
            given = on_spark.SparkOptions(pushdown, presorted, ranges, range_size, match_id)
            on_stream = on_spark.StreamOptions(order, unbounded_state, timeouts, buckets, watermark, max_ahead)
            job = on_spark.make_job(
                self.definition, events, key, type_column, options, given, on_stream, match_order=match_order
            )
            return job.matches()
        refuse_clock(watermark, max_ahead)
        table, chosen = self._prepared(events, key, type_column, options)
        warn(tie_notes(chosen, table, bool(key.tie_break)))
        if mode == "compressed":
            return Runner(chosen).compressed(table)
        return run(chosen, table, id_columns=id_columns(chosen, table, key) if match_id else None)

    def match_batches(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        format: str = "all",
        engine: str = "auto",
        algorithm: str = "auto",
        run_limit: int = DEFAULT_RUN_LIMIT,
        memory_limit: int | str | None = None,
        match_limit: int | None = None,
        time_limit: float | None = None,
        match_id: bool = False,
        plan: Mapping[str, str] | None = None,
        statistics: Mapping[str, Mapping[str, float]] | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of `match`, in the same order, in batches that are made while they are read.

        Memory does not grow with the number of matches: where rows must wait to be put in order, they wait on disk.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["A"] * 200, "t": range(200)})
        >>> pairs = sase("PATTERN SEQ(A a, A b) RETURN a.t AS a, b.t AS b")
        >>> [batch.num_rows for batch in pairs.match_batches(events, order_by="t")]
        [1000, 10000, 8900]

        The arguments are those of `match`; events are in this process.
        """
        options = {"format": format, "engine": engine, "run_limit": run_limit, "algorithm": algorithm}
        options |= {"plan": plan, "statistics": statistics}
        options["limits"] = checked_limits(memory_limit, match_limit, time_limit)
        if is_spark(events):
            raise UnsupportedError(
                "match_batches reads events in this process, and Spark DataFrames were given",
                hint="Use match, which gives back a DataFrame: Spark makes its rows as they are read, too.",
            )
        if is_row_pattern(self.definition):
            refuse_order(order_by, tie_break, format, False, match_id)
        key = make_order_key(() if order_by is None else order_by, tie_break)
        table, chosen = self._prepared(events, key, type_column, options)
        warn(tie_notes(chosen, table, bool(key.tie_break)))
        names = id_columns(chosen, table, key) if match_id else None
        batches = (
            batch for found in Runner(chosen).batches(table, id_columns=names) for batch in found.table.to_batches()
        )
        return pa.RecordBatchReader.from_batches(result_schema(chosen, table.schema, id_columns=names), batches)

    def progress(
        self,
        like: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        format: str = "all",
        engine: str = "auto",
        algorithm: str = "auto",
        run_limit: int = DEFAULT_RUN_LIMIT,
        memory_limit: int | str | None = None,
        match_limit: int | None = None,
        time_limit: float | None = None,
        plan: Mapping[str, str] | None = None,
        statistics: Mapping[str, Mapping[str, float]] | None = None,
        snapshot: bytes | None = None,
    ) -> Progress:
        """The query on its way through events that come piece by piece, in this process.

        >>> import pyarrow as pa
        >>> pieces = [pa.table({"type": ["A", "B"], "t": [1, 2]}), pa.table({"type": ["B", "A"], "t": [3, 4]})]
        >>> progress = sase("PATTERN SEQ(A a, B b) RETURN a.t AS a, b.t AS b").progress(pieces[0], order_by="t")
        >>> [progress.feed(piece).to_pylist() for piece in pieces]
        [[{'a': 1, 'b': 2}], [{'a': 1, 'b': 3}]]

        like: a table with the columns of the pieces; its rows do not matter.
        snapshot: what `Progress.snapshot()` of the same query gave; it goes on from there.
        The other arguments are those of `match`; limits of matches and of time are those of each piece.
        """
        options = {"format": format, "engine": engine, "run_limit": run_limit, "algorithm": algorithm}
        options |= {"plan": plan, "statistics": statistics}
        options["limits"] = checked_limits(memory_limit, match_limit, time_limit)
        if is_row_pattern(self.definition):
            refuse_order(order_by, tie_break, format, False)
            table, chosen = prepare_rows(self.definition, like, options)
            return Progress(chosen, table, lambda piece: prepare_rows(self.definition, piece, options)[0], snapshot)
        order = make_order_key(() if order_by is None else order_by, tie_break)
        table, schema = read_events(like, order, type_column)
        chosen = plan_events(self.definition, schema, order, options)
        return Progress(chosen, table, lambda piece: read_events(piece, order, type_column)[0], snapshot, order.columns)

    def explain(
        self,
        events: Any = None,
        *,
        order_by: str | Sequence[str] = (),
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        plan: Mapping[str, str] | None = None,
        statistics: Mapping[str, Mapping[str, float]] | None = None,
        engine: str = "auto",
        algorithm: str = "auto",
        dot: bool = False,
        svg: bool = False,
        code: bool = False,
        analyze: bool = False,
        pushdown: bool = True,
        presorted: bool = False,
        ranges: str | int = "auto",
        range_size: int | None = None,
        order: str = "time",
        unbounded_state: str = "refuse",
        buckets: int = BUCKETS,
        watermark: str | None = None,
        max_ahead: str | None = None,
    ) -> str:
        """How the query is understood and will be run: its plan with reasons, its automaton, how the input is split.

        >>> print(sase("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 12 hours").explain())  # doctest: +ELLIPSIS
        PATTERN SEQ(Shelf a, Exit b)
        ...
        plan
          TF transformation
          │  id, a, b, match_start, match_end
          └─ SC← sequence construction
             │  within 12 hours: the walk back ends there
             └─ SS→ sequence scan
                   (Shelf a, Exit b)
                   active instance stacks partitioned by value (PAIS), by [id]
                   within 12 hours: events out of reach are not kept
        ...

        With events attributes and types are checked too; with a Spark DataFrame it also says what travels to the tasks
        and how. `plan`, `statistics`, `engine`, `algorithm`, on Spark `pushdown`, `presorted`, `ranges` and
        `range_size`, and on a stream `order`, `unbounded_state`, `buckets`, `watermark` and `max_ahead`, are those of
        `match`. `analyze` runs the query on the events (Arrow, or what converts to it) and adds what went through each
        operator and how long it took. `dot` and `svg` give the automaton instead, for Graphviz or as a picture; `code`,
        which needs events, the code that is compiled for the query.
        """
        options = {"plan": plan, "statistics": statistics, "engine": engine, "algorithm": algorithm}
        key, on_spark = make_order_key(order_by, tie_break), None
        if events is not None and is_spark(events):
            jobs = spark_module("job")
            given = jobs.SparkOptions(pushdown, presorted, ranges, range_size)
            on_stream = jobs.StreamOptions(order, unbounded_state, False, buckets, watermark, max_ahead)
            job = jobs.make_job(self.definition, events, key, type_column, options, given, on_stream)
            table, chosen, on_spark = None, job.plan, job.explanation()
        elif events is None:
            table, chosen = None, self._planned(options)
        else:
            table, chosen = self._prepared(events, key, type_column, options)
        if code:
            return explain_code(chosen)
        if dot or svg:
            return explain_dot(chosen.query) if dot else explain_svg(chosen.query)
        if analyze and table is None:
            raise UnsupportedError(
                "explain(analyze=True) runs the query in this process, on events in Arrow's form",
                hint="Give it a table: explain(table, order_by=…, analyze=True); of a DataFrame, df.toArrow().",
            )
        ties = tie_notes(chosen, table, bool(key.tie_break)) if analyze and table is not None else ()
        return visible(explain_text(chosen, table if analyze else None, on_spark, ties), keep="\n")

    def _planned(self, options: Mapping[str, Any]) -> Plan:
        """The plan for events of which nothing is known."""
        if is_row_pattern(self.definition):
            return make_plan(analyze_row_pattern(self.definition, None), **options)
        return make_plan(analyze(self.definition), **options)

    def _prepared(
        self, events: Any, order: OrderKey, type_column: str | None, options: Mapping[str, Any]
    ) -> tuple[pa.Table, Plan]:
        """The events in their order, and the plan for them."""
        if is_row_pattern(self.definition):
            return prepare_rows(self.definition, events, options)
        return prepare(self.definition, events, order, type_column, options)


class Progress:
    """A query on its way through a stream of events, in process. `Query.progress` makes it.

    Pieces are fed in order: within a piece events are sorted, and no event of a piece comes before one of an earlier.
    """

    def __init__(
        self,
        plan: Plan,
        like: pa.Table,
        read: Callable[[Any], pa.Table],
        snapshot: bytes | None,
        sort_columns: Sequence[str] = (),
    ) -> None:
        self._read = read
        query, make = engine_progress.ProgressQuery(plan, like.schema, sort_columns), engine_progress.Progress
        self._progress = make(query) if snapshot is None else make.restore(query, snapshot)

    def feed(self, events: Any) -> pa.Table:
        """The matches that can be given out now."""
        return self._progress.feed(self._read(events))

    def finish(self) -> pa.Table:
        """The matches that waited for the end; after that nothing can be fed."""
        return self._progress.finish()

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, also in another process, as bytes."""
        return self._progress.snapshot()


def refuse_clock(watermark: str | None, max_ahead: str | None) -> None:
    """A table has no clock that could be wrong."""
    for name, value in (("watermark", watermark), ("max_ahead", max_ahead)):
        if value is not None:
            raise UnsupportedError(f"{name} is for streams, and the input is a table", hint=f"Leave {name} out.")


def definition_text(definition: QueryDefinition) -> str:
    return row_query_text(definition) if is_row_pattern(definition) else query_text(definition)


def prepare(
    definition: QueryDefinition, events: Any, order: OrderKey, type_column: str | None, options: Mapping[str, Any]
) -> tuple[pa.Table, Plan]:
    """The events in their order, and the plan for them."""
    table, schema = read_events(events, order, type_column)
    is_large = table.num_rows > SMALL and options.get("engine") != "reference"
    return table, plan_events(definition, schema, order, options, table if is_large else None)


def plan_events(
    definition: QueryDefinition,
    schema: Schema,
    order: OrderKey,
    options: Mapping[str, Any],
    sample: pa.Table | None = None,
) -> Plan:
    """The plan for events of the schema; statistics that were not given are measured on the sample, if there is one."""
    query = analyze(definition, schema, order.order_by)
    if sample is not None:
        measured, given = sampled_statistics(sample, query), checked_statistics(options.get("statistics"))
        known = measured if given is None else replace(given, ranges=measured.ranges, in_window=measured.in_window)
        options = {**options, "statistics": known}
    plan = make_plan(query, **options)
    warn(() if plan.pipeline is None else plan.pipeline.warnings)
    return plan


def id_columns(plan: Plan, table: pa.Table, order: OrderKey) -> list[str]:
    """The columns that ids of matches are made of."""
    assert isinstance(plan.query, AnalyzedQuery)
    return columns_read(plan.query, table.column_names, order.columns)


def prepare_rows(definition: QueryDefinition, events: Any, options: Mapping[str, Any]) -> tuple[pa.Table, Plan]:
    """The rows in their order, with the keys that are computed, and the plan for them."""
    table = read_rows(events)
    query = analyze_row_pattern(definition, Schema(attributes_of(table.schema)))
    plan = make_plan(query, **options)
    return sorted_rows(query, with_computed_keys(query, table)), plan


def refuse_order(order_by: object, tie_break: object, format: str, match_order: bool, match_id: bool = False) -> None:
    if match_id:
        raise SchemaError(
            "match_id is for SASE queries",
            hint="Give out the partition's columns and MATCH_NUMBER(), which together name a match.",
        )
    if match_order:
        raise SchemaError(
            "match_order is for SASE queries", hint="Give out what to order by: a measure, or ALL ROWS PER MATCH."
        )
    if order_by is not None or tie_break is not None:
        raise SchemaError(
            "this query says its own order, and order_by or tie_break was given too", hint="Leave them out of match."
        )
    if format != "all":
        raise SchemaError("format is for SASE queries", hint="A row pattern says it with AFTER MATCH SKIP.")


def expand(structure: bytes) -> pa.Table:
    """The matches that a structure of compressed output holds, as verbose mode gives them out.

    >>> events = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 3]})
    >>> rows = sase("PATTERN SEQ(A+ a[], B b) RETURN collect(a[].t) AS a").match(
    ...     events, order_by="t", mode="compressed"
    ... ).to_table()
    >>> [expand(row["structure"]).to_pylist() for row in rows.to_pylist()]
    [[{'a': [1, 2]}, {'a': [1]}, {'a': [2]}]]
    """
    return compressed.expand(structure, sase_language.parse)


def match_recognize(clause: str) -> Query:
    """The query that a MATCH_RECOGNIZE clause says: what stands between its parentheses, or all of it.

    >>> import pyarrow as pa
    >>> trades = pa.table({"t": [1, 2, 3, 4], "price": [10, 8, 7, 9]})
    >>> falls = match_recognize('''ORDER BY t
    ...     MEASURES A.price AS top, LAST(B.price) AS bottom
    ...     PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)''')
    >>> falls.match(trades).to_pylist()
    [{'top': 10, 'bottom': 7}]
    """
    definition = match_recognize_language.parse(clause)
    analyze_row_pattern(definition)
    return Query(definition)


def sql(spark: Any, text: str, args: dict[str, Any] | list[Any] | None = None, *, allow_jvm_calls: bool = False) -> Any:
    """The result of a Spark SQL query in which table factors may carry MATCH_RECOGNIZE, as a DataFrame.

    Everything outside of the clauses is left to Spark: its dialect, its functions, its errors.

        kleene.sql(spark, '''
            SELECT symbol, top - bottom AS fall
            FROM trades MATCH_RECOGNIZE (
                PARTITION BY symbol ORDER BY ts
                MEASURES A.price AS top, LAST(B.price) AS bottom
                PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)
            )
            WHERE top - bottom > 10''')

    args: values of Spark's parameters (`:name` or `?`) outside of the clauses, as in `spark.sql`.
    allow_jvm_calls: accepts a text that runs code which is not Spark's own, such as a call of `reflect`; by default it
        is refused. See SECURITY.md.
    """
    return spark_module("sql").sql(spark, text, args, allow_jvm_calls)


def stream_metrics(query: Any, earlier: Any = None) -> Any:
    """How a stream of matches is doing: its last micro-batches, what they read and found, and what is held in state.

        running = unpaid.match(readings, order_by="ts").writeStream.format("parquet")…start()
        print(kleene.stream_metrics(running))

    The result prints as a table; `batches`, `events`, `matches`, `late`, `waiting`, `runs`, `state_bytes` and others
    are its numbers. Spark remembers the last hundred micro-batches of a run.

    query: the pyspark StreamingQuery, of a classic session or of Spark Connect.
    earlier: what was returned before; then it goes on from there, and counts what Spark has forgotten since too.
    """
    return spark_module("monitor").stream_metrics(query, earlier)


def last_notes(matches: Any) -> tuple[str, ...]:
    """What Spark's tasks had to tell when an action ran on the DataFrame that `match` or `sql` returned; () before.

        found = query.match(events, order_by="ts")
        found.write.parquet("found")
        for note in kleene.last_notes(found):
            print(note)

    There is a note where events tie: they have the same key and the same order key, no `tie_break` was given, and the
    query can tell which comes first.
    """
    return tuple(spark_module("notes").last_notes(matches))


def regex(
    *,
    pattern: str,
    order_by: str | Sequence[str],
    predicates: Mapping[str, str],
    output: Mapping[str, str],
    partition_by: str | Sequence[str] = (),
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Query:
    """The regular-expression operator: a pattern over named predicates, matched event by event (MatchRegex 2012).

    >>> import pyarrow as pa
    >>> trades = pa.table({"t": [1, 2, 3, 4], "price": [10, 12, 15, 9]})
    >>> peak = regex(
    ...     pattern=". rise+ drop",
    ...     order_by="t",
    ...     predicates={"rise": "price > Last(price)", "drop": "price < First(price)"},
    ...     output={"top": "Max(price)", "events": "Count()"},
    ... )
    >>> peak.match(trades).to_pylist()
    [{'top': 15, 'events': 4}]

    pattern: id . concatenation | * + ? and parentheses over the names of predicates.
    predicates: conditions on the current event, by bare names, and on the match so far, by the aggregates Count First
        Last Max Min Sum Average Delta Collect.
    output: values of the match, the completing event included.
    functions: Python functions, by name, that predicates may call; they must be pure.
    """
    definition = regex_language.parse(pattern, partition_by, order_by, predicates, output, functions or {}, FUNCTIONS)
    warn(analyze_row_pattern(definition).warnings)
    return Query(definition)


def sase(text: str, parameters: Mapping[str, str | int] | None = None) -> Query:
    """The SASE or SASE+ query in the text.

    >>> print(sase("event seq(Shelf a, Exit b) where [id] within 12 hours"))
    <kleene.Query
    PATTERN SEQ(Shelf a, Exit b)
    WHERE [id]
    WITHIN 12 hours>

    parameters: values of names that stand after WITHIN, such as {"T": "12 hours"}.
    """
    definition = sase_language.parse(text, parameters)
    analyze(definition)
    return Query(definition)


def check(query: Query, schema: Schema, order_by: Sequence[str]) -> tuple[str, ...]:
    """The warnings about the query for an input of the schema; an error if it does not fit."""
    if order_by:
        check_order_columns(make_order_key(list(order_by), None), list(schema), "the schema")
    return analyze(query.definition, schema, tuple(order_by)).warnings


def is_spark(events: Any) -> bool:
    """Whether the events, or those of a dict, are Spark DataFrames (classic or Connect)."""
    if isinstance(events, Mapping):
        kinds = {is_spark(part) for part in events.values()}
        if len(kinds) > 1:
            raise SchemaError(
                "some inputs are Spark DataFrames and some are not",
                hint="Give all of them as Spark DataFrames: spark.createDataFrame(arrow_table).",
            )
        return True in kinds
    # By name, so that asking does not import Spark.
    bases = type(events).__mro__
    return any(base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame" for base in bases)


def spark_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"kleene.spark.{name}")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"matching on Spark needs the package '{(error.name or '').split('.')[0]}'",
            hint="Install it: pip install 'pyspark[sql]>=4,<5'",
        ) from None
