"""The public face: strings the stages together, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import analyze_row_pattern, is_row_pattern, warn
from kleene.call import (
    KINDS,
    Call,
    Input,
    as_spark,
    check_reads_one,
    in_session,
    input_of,
    is_pandas_on_spark,
    is_scan,
    is_spark,
    is_spark_sql,
    like_events,
    local_sql_module,
    read_call,
    scan_module,
    spark_module,
)
from kleene.engine import compressed
from kleene.engine.choice import SMALL
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.event_types import type_notes
from kleene.engine.inputs import (
    AllNames,
    category_notes,
    check_order_columns,
    in_order,
    make_order_key,
    open_events,
    open_rows,
)
from kleene.engine.needs import codable_columns, columns_read
from kleene.engine.progress import PreparedQuery
from kleene.engine.progress_kinds import progress_of
from kleene.engine.rows import sorted_rows, with_computed_keys
from kleene.engine.run import Runner, result_schema
from kleene.engine.sampling import sampled_statistics
from kleene.engine.threads import run
from kleene.engine.ties import tie_notes
from kleene.engine.together import Together, open_together
from kleene.engine.totals.groups import totals_table
from kleene.engine.unencoded import with_texts
from kleene.errors import AnalysisError, UnsupportedError
from kleene.explain import explain_code, explain_dot, explain_svg, explain_text
from kleene.ir.options import Selection
from kleene.ir.own import Own, own_functions
from kleene.ir.purity import purity_notes
from kleene.ir.query import QueryDefinition
from kleene.ir.row_text import row_query_text
from kleene.ir.steps import is_steps
from kleene.ir.steps_text import steps_text
from kleene.ir.text import query_text
from kleene.lang import match_recognize as match_recognize_language
from kleene.lang import pattern_window as pattern_window_language
from kleene.lang import regex as regex_language
from kleene.lang import sase as sase_language
from kleene.lang.parameters import is_open
from kleene.long.definition import long_definition, long_parts
from kleene.long.tables import CollectedForm, LongForm
from kleene.options import EngineOptions, Schema, SparkOptions, StreamOptions
from kleene.options.checks import checked_choice, checked_flag
from kleene.options.engine import engine_options
from kleene.options.schema import schema_option
from kleene.plan.plan import Plan, make_plan
from kleene.remembered import remembered
from kleene.schema import EventSchema
from kleene.visible import visible
from kleene.watching import watched

if TYPE_CHECKING:
    from kleene.found import Found
    from kleene.plot.picture import Picture
    from kleene.why.answer import Why

Functions = Mapping[str, Any] | Sequence[Any] | None
"""Functions of the user's own: a dict by name, or a list of functions, `kleene.function` and `kleene.aggregate`."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, whatever language it was written in. Queries that say the same are equal."""

    definition: QueryDefinition

    def __repr__(self) -> str:
        return visible(f"<kleene.Query\n{definition_text(self.definition)}>", keep="\n")

    def _repr_html_(self) -> str:
        """What a notebook shows: the text with its syntax marked, and the automaton."""
        from kleene.markup.queries import query_html

        return query_html(definition_text(self.definition), lambda: self.explain(svg=True))

    def match(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        match_id: bool = False,
        match_order: bool = False,
        timeouts: bool = False,
        long: bool = False,
        as_: str | None = None,
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        schema: Any = None,
    ) -> Any:
        """The matches among the events, as a table of the kind that the events are.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["Shelf", "Exit"], "t": [1, 5], "id": [7, 7]})
        >>> sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [id]").match(events, order_by="t").num_rows
        1

        Given a pandas or polars frame, it returns a DataFrame of that kind. Given Spark DataFrames, it returns a lazy
        Spark DataFrame. Given anything else, it returns a pyarrow.Table. In pandas, whole numbers with NULLs
        among them are of its nullable types.

        events: a pyarrow Table, Dataset or RecordBatchReader, a pandas or polars frame, a DuckDB relation, a Spark
            DataFrame, a `kleene.scan` of files, a list of dicts, the path of a Parquet, Arrow, CSV or JSON file,
            anything else with the Arrow C stream protocol, or a dict of such things by event type.
            Columns that the query does not read do not matter.
        order_by: the column, or columns, that order the events; the first is the time that WITHIN measures. SASE
            queries need it; row patterns and the regular-expression operator say it themselves.
        type_column: the column that tells the type of an event; None if the input has none.
        tie_break: further columns that decide between events of equal order keys. Without them, the order of the input
            decides in process, and the events' other values decide on Spark; if the result can depend on that, a
            `KleeneWarning` says how many such events there are, or `kleene.last_notes` does on Spark.
        params: values of the parameters that the query leaves open: {"least": 100} for `:least`, {"T": "12 hours"} for
            WITHIN T. Values are Python's int, float, str, bool, Decimal, date, datetime, time, timedelta and None.
        format: "all" matches, or "non_overlapping" ones only.
        match_id: for SASE queries, adds a column of that name that depends on nothing but the events of the match, so
            that it is the same in every run, in process and on Spark.
        match_order: on Spark, adds a column of that name; sorting by it restores the order that Arrow results have.
        timeouts: whether runs that left their window incomplete come too, as rows with what they had bound. A column
            `timed_out` tells them from matches. See docs/streaming.md for what counts as such a run.
        long: whether there is a row for each selected event, in place of a row for each match: `match_id`,
            `match_variable`, `match_position` (from 1), and the columns of the event. What the query returns does not
            matter then. In a row pattern, `match_id` is the number of the match in its partition. See docs/language.md.
        as_: "arrow", "pandas" or "polars", if the result is to be of another kind than the events.
        engine: the name of an engine, or `kleene.EngineOptions`: the engine, its plan, and the limits of the call.
        spark: `kleene.SparkOptions`, for Spark DataFrames: how events come to the tasks; or, for a `kleene.scan`, the
            session whose tasks read the files.
        stream: `kleene.StreamOptions`, for streaming DataFrames: their order, and what they may hold.
        schema: `kleene.Schema`, for a table with a type column: which attributes the events of each type have. Or the
            columns of a Spark DataFrame in a pipeline, where Spark cannot be asked for them, as a pyspark StructType or
            a pyarrow.Schema: the query then runs as a table function. See docs/pipelines.md.
        An option that means nothing for the events is an error that says what to leave out.
        """
        types, columns = types_and_columns(schema)
        events, spark = in_session(events, spark)
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            match_id=match_id,
            match_order=match_order,
            timeouts=timeouts,
            as_=as_,
            engine=engine,
            spark=spark,
            stream=stream,
            schema=types,
        )
        form = None
        if checked_flag("long", long):
            call, form = long_call(call, events, columns)
        if columns is not None:
            return matches_as_declared(call, events, columns)
        place = input_of(events)
        call.check_fits(place)
        if is_scan(events) and place is Input.TABLE:
            scanned = scan_module("calls").match_scan(call, events)
            return like_events(scanned if form is None else form.table(scanned), events, call.kind)
        if place is not Input.TABLE:
            found = spark_module("job").make_job(call, as_spark(events)).matches()
            if form is not None:
                found = spark_module("long").long_frame(found, form)
            return found.pandas_api() if is_pandas_on_spark(events) else found
        table, plan = prepare(call, events, keeps_codes=True)
        warn(tie_notes(plan, table, bool(call.order.tie_break)))
        with watched("matching"):
            matches = run(plan, table, id_columns=id_columns(call, plan, table))
        warn(type_notes(plan, table, is_empty=not matches.num_rows))
        return like_events(matches if form is None else form.table(matches), events, call.kind)

    def match_batches(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        match_id: bool = False,
        timeouts: bool = False,
        long: bool = False,
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        schema: Schema | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of `match`, in the same order, in Arrow batches that are made while they are read.

        Memory does not grow with the number of matches: where rows must wait to be put in order, they wait on disk.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["A"] * 200, "t": range(200)})
        >>> pairs = sase("PATTERN SEQ(A a, A b) RETURN a.t AS a, b.t AS b")
        >>> [batch.num_rows for batch in pairs.match_batches(events, order_by="t")]
        [1000, 10000, 8900]

        The arguments are those of `match`; events are in this process.
        """
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            match_id=match_id,
            timeouts=timeouts,
            engine=engine,
            spark=spark,
            stream=stream,
            schema=schema,
        )
        if is_spark(events):
            raise UnsupportedError(
                "match_batches reads events in this process, but Spark DataFrames were given",
                hint="Use match, which returns a DataFrame: Spark, too, makes its rows only as they are read.",
            )
        form = None
        if checked_flag("long", long):
            call, form = long_call(call, events, None)
        call.check_fits(Input.TABLE)
        if is_scan(events):
            scanned = scan_module("calls").match_scan_batches(call, events)
            return scanned if form is None else form.reader(scanned.schema, scanned)
        table, plan = prepare(call, events)
        warn(tie_notes(plan, table, bool(call.order.tie_break)))
        warn(type_notes(plan, table, is_empty=False))
        names = id_columns(call, plan, table)
        batches = (
            batch for found in Runner(plan).batches(table, id_columns=names) for batch in found.table.to_batches()
        )
        result = result_schema(plan, table.schema, id_columns=names)
        return pa.RecordBatchReader.from_batches(result, batches) if form is None else form.reader(result, batches)

    def find(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        match_id: bool = False,
        timeouts: bool = False,
        as_: str | None = None,
        engine: EngineOptions | str | None = None,
        schema: Schema | None = None,
    ) -> Found:
        """The matches together with the events that they are among, to look at: a table, pictures and a report.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["Shelf", "Exit"], "t": [1, 5], "id": [7, 7]})
        >>> found = sase("EVENT SEQ(Shelf a, Exit b) WHERE [id]").find(events, order_by="t")
        >>> len(found), found.table.column_names
        (1, ['id', 'a', 'b', 'match_start', 'match_end'])

        `table` is what `match` returns, and `long` its long form. `plot` draws pictures, and `report` writes a page. In
        a notebook it shows its first rows. See docs/pictures.md.

        The arguments are those of `match`; events are in this process.
        """
        from kleene.found import found_of

        return found_of(
            self,
            events,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            match_id=match_id,
            timeouts=timeouts,
            as_=as_,
            engine=engine,
            schema=schema,
        )

    def plot(
        self,
        events: Any,
        kind: str = "timeline",
        *,
        y: str | None = None,
        keys: Any = None,
        limit: int = 12,
        theme: str = "light",
        size: int | tuple[int, int] | None = None,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        engine: EngineOptions | str | None = None,
        schema: Schema | None = None,
    ) -> Picture:
        """A picture of the matches among the events.

            theft.plot(readings, order_by="t").save("theft.svg")
            falls.plot(trades, "values", y="price")

        The result has `svg()`, `png()`, `html()`, `save(path)` and `caption`, and shows itself in a notebook. It needs
        pip install 'kleene[plot]'. See docs/pictures.md.

        kind: "timeline", matches on a timeline; "values", an attribute over time; "near_misses", with what stopped
            each; "automaton", with how many runs came where; "lengths" and "durations" of matches, as histograms;
            "over_time", how many matches ended when.
        y: for "values", the attribute.
        keys: the key, or a list of keys, to draw: {"tag": 7}, or 7 where there is one attribute.
        limit: how many keys are drawn, at most. What is left out stands in the caption.
        theme: "light" or "dark".
        size: the width, or the width and the height, in pixels.
        The other arguments are those of `match`; events are in this process.
        """
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            is_over_all=True,
            engine=engine,
            spark=None,
            stream=None,
            schema=schema,
        )
        from kleene.plot.plotting import plot_of

        return plot_of(call, events, kind, y, keys, limit, theme, size)

    def compressed(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        schema: Schema | None = None,
    ) -> Any:
        """The matches of a SASE query; those that one event completes are held together, as the graph that they share.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["A", "A", "A", "B"], "t": [1, 2, 3, 4]})
        >>> sase("PATTERN SEQ(A+ a[], B b)").compressed(events, order_by="t").count()
        7

        In process it returns a `CompressedMatches`, which counts and expands them. On Spark, batch or stream, it
        returns a DataFrame with a count and a structure for each event; `kleene.expand` turns a structure into matches.
        Of a query that returns aggregates over all matches, it returns those of each event. The arguments are those of
        `match`.
        """
        if self.definition.grouping is not None:
            return self.aggregate(
                events,
                per="event",
                order_by=order_by,
                type_column=type_column,
                tie_break=tie_break,
                params=params,
                engine=engine,
                spark=spark,
                stream=stream,
            )
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            is_compressed=True,
            engine=engine,
            spark=spark,
            stream=stream,
            schema=schema,
        )
        place = input_of(events)
        call.check_fits(place)
        if place is not Input.TABLE:
            return spark_module("job").make_job(call, as_spark(events)).matches()
        table, plan = prepare(call, events)
        warn(tie_notes(plan, table, bool(call.order.tie_break)))
        return Runner(plan).compressed(table)

    def aggregate(
        self,
        events: Any,
        aggregates: Mapping[str, str] | str | None = None,
        *,
        per: str | int | Sequence[str | int] | None = None,
        numbers: str = "text",
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        as_: str | None = None,
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        schema: Schema | None = None,
    ) -> Any:
        """Aggregates over all matches of a SASE query, which are not made: the graph that they share is walked once.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["A"] * 300 + ["B"], "t": range(301), "x": [1] * 301})
        >>> query = sase("PATTERN SEQ(A+ a[], B b)")
        >>> found = query.aggregate(events, {"n": "count(*)", "mean": "avg(a.x)"}, order_by="t")
        >>> int(found["n"][0].as_py()) == 2**300 - 1
        True

        aggregates: texts by name: count(*), and count, sum, min, max and avg of an attribute of one variable, or of an
            expression of several. An event counts once for each match that it is in, and NULLs do not count. Or one
            text, as after RETURN: "count(*) AS n, sum(b.weight) AS total". None: those that the query returns.
        per: None for one row over all matches, "event" for a row for each event that completes matches, "partition" for
            each key, a window such as "1 hour" (or a number, as the order key) for each such stretch of time in which
            matches are completed; or ["partition", "1 hour"].
        numbers: how counts, and sums of whole numbers and of decimals, are given out, which are exact and may have any
            number of digits: "text", "decimal" (up to 38 digits, more are an error) or "float" (the nearest one).
        The other arguments are those of `match`. On a stream, groups are events, windows of time, or windows of each
        partition; the row of a window comes once the watermark has passed it. See docs/all_matches.md.
        """
        if aggregates is None and self.definition.grouping is None:
            raise AnalysisError(
                "no aggregates were given, and the query returns none over all its matches",
                hint="Write: aggregate(events, {'n': 'count(*)'}, …), or RETURN count(*) AS n in the query.",
            )
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            as_=as_,
            aggregates=aggregates,
            is_over_all=True,
            per=per,
            numbers=numbers,
            engine=engine,
            spark=spark,
            stream=stream,
            schema=schema,
        )
        place = input_of(events)
        call.check_fits(place)
        if place is not Input.TABLE:
            return spark_module("totals").totals(call, as_spark(events))
        table, plan = prepare(call, events)
        assert isinstance(plan.query, AnalyzedQuery)
        warn(tie_notes(plan, table, bool(call.order.tie_break)))
        with watched("matching"):
            found = totals_table(plan.query, Runner(plan, nullable_names(table)).totals(table), table.schema)
        warn(type_notes(plan, table, is_empty=False))
        return like_events(found, events, call.kind)

    def progress(
        self,
        like: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        timeouts: bool = False,
        compressed: bool = False,
        as_: str | None = None,
        aggregates: Mapping[str, str] | str | None = None,
        per: str | int | Sequence[str | int] | None = None,
        numbers: str = "text",
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        schema: Schema | None = None,
        snapshot: bytes | None = None,
    ) -> Progress:
        """The query on its way through events that come piece by piece, in this process.

        >>> import pyarrow as pa
        >>> pieces = [pa.table({"type": ["A", "B"], "t": [1, 2]}), pa.table({"type": ["B", "A"], "t": [3, 4]})]
        >>> progress = sase("PATTERN SEQ(A a, B b) RETURN a.t AS a, b.t AS b").progress(pieces[0], order_by="t")
        >>> [progress.feed(piece).to_pylist() for piece in pieces]
        [[{'a': 1, 'b': 2}], [{'a': 1, 'b': 3}]]

        like: a table with the columns of the pieces; its rows do not matter. Results are of its kind, or as `as_` says.
        compressed: whether results are tables of compressed output, with a row for each event that completes matches.
        aggregates, per, numbers: as in `aggregate`. The rows of events come with their piece, those of windows of time
            once an event has come behind them, and all others in the end.
        snapshot: what `Progress.snapshot()` of the same query returned; matching goes on from there.
        The other arguments are those of `match`; limits of matches and of time hold for each piece.
        """
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            timeouts=timeouts,
            is_compressed=compressed,
            as_=as_,
            aggregates=aggregates,
            is_over_all=True,
            per=per,
            numbers=numbers,
            engine=engine,
            spark=spark,
            stream=stream,
            schema=schema,
        )
        if is_spark(like):
            raise UnsupportedError(
                "progress reads events in this process, but Spark DataFrames were given",
                hint="Use match, which takes streaming DataFrames.",
            )
        call.check_fits(Input.TABLE)
        if is_row_pattern(call.definition) and not call.definition.order_by:
            raise UnsupportedError(
                "pieces are put in the order of ORDER BY, but the query has none",
                hint="Add ORDER BY, or match the whole table: Query.match.",
            )
        return Progress(call, like, snapshot)

    def table_function(
        self,
        schema: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        match_id: bool = False,
        match_order: bool = False,
        engine: EngineOptions | str | None = None,
    ) -> Any:
        """The query as a table function of Spark, for SQL from any client and for `DataFrame.asTable`.

            spark.udtf.register("thefts", query.table_function(readings.schema, order_by="t"))
            spark.sql("SELECT * FROM thefts(TABLE(readings) PARTITION BY tag ORDER BY t)")

        Its rows have the columns that `match` returns. It needs PySpark 4.1 or newer.

        schema: the columns of the table: a pyspark StructType, a pyarrow.Schema, or text as 'tag STRING, t BIGINT'. The
            table may have further columns. Or `kleene.Schema(types, columns=…)`, where attributes differ by event type.
        The other arguments are those of `match`. PARTITION BY must keep the events of a key together, and ORDER BY must
        be the order of the query; a query without a key needs WITH SINGLE PARTITION. See docs/pipelines.md for what is
        checked.
        """
        types, columns = types_and_columns(schema)
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            match_id=match_id,
            match_order=match_order,
            engine=engine,
            spark=None,
            stream=None,
            schema=types,
        )
        return spark_module("table_function").table_function(call, columns)

    def why(
        self,
        events: Any,
        *,
        at: int | Sequence[int] | str | Mapping[str, int | Sequence[int]] | None = None,
        keys: Any = None,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        schema: Schema | None = None,
        max_events: int = 20_000,
        max_runs: int = 20_000,
        limit: int = 100,
    ) -> Why:
        """Why events match, and why they do not: what passed, what nearly matched, and the runs step by step.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["Shelf", "Exit"], "t": [1, 5], "tag": [7, 7], "weight": [3, 4]})
        >>> query = sase("EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND b.weight < a.weight")
        >>> for miss in query.why(events, order_by="t").near_misses.to_pylist():
        ...     print(miss["row"], miss["predicate"], miss["values"])
        1 b.weight < a.weight b.weight = 4, a.weight = 3

        Print the result, or read its tables: `summary`, `states`, `endings`, `near_misses`, `steps` and `matches`. Rows
        are those of the input, counted from 0. See docs/why.md.

        at: the events whose runs are told step by step: a row, a list of rows, or a filter such as "tag = 7". Or rows
            by variable, {"a": 3, "b": [5, 6]}: the answer is then whether just these are a match, and if not, why.
        keys: the key, or a list of keys, whose runs are told: {"tag": 7}, or 7 where there is one attribute.
        max_events: how many events are looked at: those of the keys that are asked for, or else of a sample of keys.
        max_runs: how many runs are followed. limit: how many runs and near misses are told. What is left out stands in
            the result's `notes`.
        The other arguments are those of `match`; events are in this process.
        """
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            is_over_all=True,
            engine=None,
            spark=None,
            stream=None,
            schema=schema,
        )
        if is_spark(events) or is_scan(events):
            raise UnsupportedError(
                "why follows runs in this process, over events in a table",
                hint='Give it the events in question: df.where("tag = 7").toArrow(), or a file.',
            )
        from kleene.why.asking import why_of

        return why_of(call, events, at, keys, max_events, max_runs, limit)

    def explain(
        self,
        events: Any = None,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        match_id: bool = False,
        match_order: bool = False,
        timeouts: bool = False,
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        schema: Schema | None = None,
        compressed: bool = False,
        aggregates: Mapping[str, str] | str | None = None,
        per: str | int | Sequence[str | int] | None = None,
        dot: bool = False,
        svg: bool = False,
        code: bool = False,
        analyze: bool = False,
    ) -> str:
        """How `match` with the same arguments runs: the plan with reasons, the automaton, how the input is split.

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

        Arguments that `match` refuses are refused here too, in the same words. Without events, nothing that depends on
        them is checked. With a Spark DataFrame it also says what travels to the tasks and how.

        compressed: explains `compressed` instead of `match`.
        aggregates, per: explain `aggregate` with these instead of `match`.
        analyze: runs the query on the events (Arrow, or what converts to it) and adds what went through each operator
            and how long it took.
        dot, svg: the automaton instead, for Graphviz or as a picture.
        code: the code that is compiled for the query instead; it needs events.
        """
        call = read_call(
            self.definition,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            params=params,
            format=format,
            match_id=match_id,
            match_order=match_order,
            timeouts=timeouts,
            is_compressed=compressed,
            aggregates=aggregates,
            is_over_all=True,
            per=per,
            engine=engine,
            spark=spark,
            stream=stream,
            schema=schema,
        )
        return explain_call(call, events, dot, svg, code, analyze)


class Progress:
    """A query on its way through a stream of events, in process. `Query.progress` makes it.

    Feed pieces in order: events are sorted within a piece, but no event may be earlier than one of an earlier piece.
    """

    def __init__(self, call: Call, like: Any, snapshot: bytes | None) -> None:
        self._call, self._like = call, like
        table, plan = prepare(call, like, samples=False)
        query = PreparedQuery(plan, table.schema, call.order.columns)
        self._names = table.column_names
        kind = progress_of(plan)
        self._progress = kind(query) if snapshot is None else kind.restore(query, snapshot)

    def feed(self, events: Any) -> Any:
        """The matches that are known now."""
        return like_events(self._progress.feed(self._read(events)), self._like, self._call.kind)

    def finish(self) -> Any:
        """The matches that waited for the end; nothing can be fed after that."""
        return like_events(self._progress.finish(), self._like, self._call.kind)

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, in this process or another, as bytes."""
        return self._progress.snapshot()

    def _read(self, events: Any) -> pa.Table:
        call = self._call
        if is_row_pattern(call.definition):
            return prepare(call, events)[0]
        source = open_events(events, call.order, call.type_column, call.definition, call.schema)
        there = [name for name in self._names if name in source.columns.names]
        return in_order(source.read(there), source.order)


def definition_text(definition: QueryDefinition) -> str:
    if is_steps(definition):
        return steps_text(definition)
    return row_query_text(definition) if is_row_pattern(definition) else query_text(definition)


_analyzed, _analyzed_rows = remembered(analyze), remembered(analyze_row_pattern)


def prepare(call: Call, events: Any, samples: bool = True, keeps_codes: bool = False) -> tuple[pa.Table, Plan]:
    """The events in their order, and the plan for them.

    Row patterns get the keys that they compute. For a large table, statistics that were not given are measured.
    `keeps_codes`: whether types and keys that come as dictionaries of texts may stay so.
    """
    is_coded = keeps_codes and call.schema is None and not call.match_id and call.engine.name != "reference"
    coded = AllNames() if is_coded else ()
    if is_row_pattern(call.definition):
        rows_source = open_rows(events, call.definition, call.threads, coded)
        rows = _analyzed_rows(call.definition, rows_source.schema, rows_source.schema.hidden)
        warn(category_notes(call.definition, call.order, rows_source.ordered))
        plan = call.plan(rows)
        there = rows_source.columns.names
        table = rows_source.read(columns_read(rows, there, ()) or there[:1])  # a column tells how many rows there are
        table = with_computed_keys(rows, with_texts(table, () if rows.computed else codable_columns(rows)))
        return sorted_rows(rows, table, call.threads), plan
    if isinstance(events, Together):
        source = open_together(events, call.order, call.type_column, call.definition, call.schema)
    else:
        source = open_events(events, call.order, call.type_column, call.definition, call.schema, call.threads, coded)
    query = _analyzed(call.definition, source.schema, source.order.order_by)
    warn(category_notes(call.definition, call.order, source.ordered))
    read = source.read(columns_read(query, source.columns.names, source.order.columns))
    may_stay = codable_columns(query).difference(source.order.columns)
    table = in_order(with_texts(read, may_stay), source.order, call.threads)
    is_planned = call.engine.name != "reference" and not is_steps(call.definition)
    is_sampled = samples and is_planned and table.num_rows > SMALL
    plan = call.plan(query, sampled_statistics(table, query) if is_sampled else None)
    warn(() if plan.pipeline is None else plan.pipeline.warnings)
    return table, plan


def types_and_columns(schema: Any) -> tuple[Schema | None, Any]:
    """What the argument says of event types, and of the columns of the input."""
    if isinstance(schema, Mapping):
        return schema_option(schema), None
    if not isinstance(schema, Schema):
        return None, schema
    return (Schema(dict(schema.types)) if schema.types else None), schema.columns


def matches_as_declared(call: Call, events: Any, schema: Any) -> Any:
    """The matches on a Spark DataFrame whose columns are declared: nothing is asked of it, not even if it streams."""
    if not is_spark(events):
        raise UnsupportedError(
            "schema is for Spark DataFrames, but the input is in this process", hint="Leave schema out."
        )
    return spark_module("declared_match").matches_as_declared(call, events, schema)


def long_call(call: Call, events: Any, columns: Any) -> tuple[Call, LongForm | CollectedForm]:
    """The call whose rows hold the events of matches, and what makes a row of each."""
    if call.timeouts or columns is not None:
        what = "timeouts are runs" if call.timeouts else "a schema declares the columns of a table function"
        raise UnsupportedError(
            f"long gives the events of matches, but {what}", hint="Leave long out, or ask for both apart."
        )
    if call.definition.selection is Selection.FIRST_COMPLETED:
        there = columns_of(events, call.definition)
        return replace(call, definition=long_definition(call.definition, there.names)), CollectedForm(there)
    definition = long_definition(call.definition, ())
    parts = long_parts(definition)
    return replace(call, definition=definition, match_id=parts is not None), LongForm(parts)


def columns_of(events: Any, definition: QueryDefinition) -> pa.Schema:
    """The columns of the input of a row pattern, as it has them."""
    if is_spark(events):
        return spark_module("long").columns_of(as_spark(events))
    if is_scan(events):
        return events.columns
    source = open_rows(events, definition)
    return pa.schema([column for column in source.columns if column.name not in source.schema.hidden])


def id_columns(call: Call, plan: Plan, table: pa.Table) -> list[str] | None:
    """The columns that ids of matches are made of, if they are wanted."""
    if not call.match_id:
        return None
    assert isinstance(plan.query, AnalyzedQuery)
    return columns_read(plan.query, table.column_names, call.order.columns)


def explain_call(call: Call, events: Any, dot: bool, svg: bool, code: bool, is_analyzed: bool) -> str:
    """What the call will do with the events; without them, what can be said without."""
    table, on_spark, scanned = None, None, None
    if events is None:
        is_rows = is_row_pattern(call.definition)
        plan = call.plan(analyze_row_pattern(call.definition, None) if is_rows else analyze(call.definition))
    else:
        place = input_of(events)
        call.check_fits(place)
        if is_scan(events) and place is Input.TABLE and not is_analyzed:
            plan, scanned = scan_module("calls").explained(call, events)
        elif place is Input.TABLE:
            table, plan = prepare(call, events)
            warn(type_notes(plan, table, is_empty=False))
        else:
            job = spark_module("job").make_job(call, as_spark(events))
            plan, on_spark = job.plan, job.explanation()
    if call.is_compressed:
        Runner(plan).compressed_engine()
    if code:
        return explain_code(plan)
    if dot or svg:
        return explain_dot(plan) if dot else explain_svg(plan)
    if is_analyzed and table is None:
        raise UnsupportedError(
            "explain(analyze=True) runs the query in this process, on events in an Arrow table",
            hint="Give it a table: explain(table, order_by=…, analyze=True); df.toArrow() makes one of a DataFrame.",
        )
    ties = tie_notes(plan, table, bool(call.order.tie_break)) if is_analyzed and table is not None else ()
    place_text = ("on Spark", on_spark) if scanned is None else ("scan", scanned)
    from kleene.markup.folding import Explanation

    return Explanation(visible(explain_text(plan, table if is_analyzed else None, place_text, ties), keep="\n"))


def scan(
    source: Any,
    *,
    format: str | None = None,
    filesystem: Any = None,
    partitioning: str | None = "hive",
    on_progress: Callable[[int, int, str], None] | None = None,
    spark: Any = None,
) -> Any:
    """Files of events, matched where they lie: `Query.match` reads what it needs of them, piece by piece.

        readings = kleene.scan("readings/*.parquet")
        query.match(readings, order_by="ts")

    Files that follow one another in time are matched one after the other, on all cores and in bounded memory; see
    docs/scans.md for what happens to others. Columns that the query does not need are not read, and neither are row
    groups that no event of use can be in.

    source: a path, a folder, a pattern such as "readings/*.parquet" (`**/` is any number of folders), an address such
        as "s3://bucket/readings", a list of those, or a pyarrow.dataset.Dataset of files.
    format: "parquet", "arrow" (also Feather), "csv" or "json" (lines); by default, what the files' names end in.
    filesystem: a pyarrow.fs.FileSystem that the paths are in.
    partitioning: "hive" makes columns of folders called name=value; None does not.
    on_progress: a function that is called now and then with how many events are done, how many there are, and a word
        on what was found.
    spark: a session of Spark, whose tasks then read the files. `match` returns a DataFrame.
    """
    return scan_module("scan").scan(
        source,
        format=format,
        filesystem=filesystem,
        partitioning=partitioning,
        on_progress=on_progress,
        spark=spark,
    )


def expand(structure: bytes, *, functions: Functions = None) -> pa.Table:
    """The matches that a structure of compressed output holds, as `match` returns them.

    >>> events = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 3]})
    >>> query = sase("PATTERN SEQ(A+ a[], B b) RETURN collect(a[].t) AS a")
    >>> rows = query.compressed(events, order_by="t").to_table()
    >>> [expand(row["structure"]).to_pylist() for row in rows.to_pylist()]
    [[{'a': [1, 2]}, {'a': [1]}, {'a': [2]}]]

    functions: those of the query, if it calls any: a structure holds their names alone.
    """
    own = own_functions(functions)
    return compressed.expand(structure, lambda text: sase_language.parse(text, own))


def match_recognize(clause: str, *, functions: Functions = None) -> Query:
    """The query of a MATCH_RECOGNIZE clause: the text between its parentheses, or the whole clause.

    >>> import pyarrow as pa
    >>> trades = pa.table({"t": [1, 2, 3, 4], "price": [10, 8, 7, 9]})
    >>> falls = match_recognize('''ORDER BY t
    ...     MEASURES A.price AS top, LAST(B.price) AS bottom
    ...     PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)''')
    >>> falls.match(trades).to_pylist()
    [{'top': 10, 'bottom': 7}]

    functions: Python functions and aggregates that the clause may call, by name; see docs/functions.md.
    """
    return _row_query(match_recognize_language.parse(clause, checked_functions(functions)))


def pattern_window(specification: str, *, functions: Functions = None) -> Query:
    """The query of a window with a row pattern: the text between the parentheses of `WINDOW w AS ( … )` (SQL's R020).

    Every row of the input comes out once, with the measures of its own match in further columns: NULL where it has
    none, or was skipped. Rows come partition by partition, each in the order of the window.

    >>> import pyarrow as pa
    >>> trades = pa.table({"t": [1, 2, 3, 4], "price": [10, 12, 15, 9]})
    >>> rises = pattern_window('''ORDER BY t
    ...     MEASURES LAST(UP.price) AS top
    ...     ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ...     AFTER MATCH SKIP TO NEXT ROW
    ...     PATTERN (A UP+) DEFINE UP AS UP.price > PREV(UP.price)''')
    >>> rises.match(trades).column("top").to_pylist()
    [15, 15, None, None]

    functions: Python functions and aggregates that the window may call, by name; see docs/functions.md.
    """
    return _row_query(pattern_window_language.parse(specification, checked_functions(functions)))


def _row_query(definition: QueryDefinition) -> Query:
    analyze_row_pattern(definition)
    return Query(definition)


def checked_functions(functions: Functions) -> Mapping[str, Own]:
    """The functions by name; a warning for each that does not look pure."""
    found = own_functions(functions)
    warn(purity_notes(found.values()))
    return found


@overload
def sql(
    spark: Any,
    text: str,
    args: dict[str, Any] | list[Any] | None = None,
    *,
    engine: EngineOptions | str | None = None,
    allow_jvm_calls: bool = False,
    schema: Any = None,
    functions: Functions = None,
) -> Any: ...


@overload
def sql(
    text: str,
    /,
    *,
    tables: Mapping[str, Any],
    args: dict[str, Any] | list[Any] | None = None,
    as_: str | None = None,
    engine: EngineOptions | str | None = None,
    functions: Functions = None,
) -> Any: ...


def sql(
    spark: Any = None,
    text: Any = None,
    args: dict[str, Any] | list[Any] | None = None,
    *,
    tables: Mapping[str, Any] | None = None,
    as_: str | None = None,
    engine: EngineOptions | str | None = None,
    allow_jvm_calls: bool = False,
    schema: Any = None,
    functions: Functions = None,
) -> Any:
    """The result of a SQL query in which table factors may carry MATCH_RECOGNIZE, on Spark or in this process.

    With a session of Spark first, it returns a DataFrame. Everything outside the clauses is left to Spark: its dialect,
    its functions, its errors.

        kleene.sql(spark, '''
            SELECT symbol, top - bottom AS fall
            FROM trades MATCH_RECOGNIZE (
                PARTITION BY symbol ORDER BY ts
                MEASURES A.price AS top, LAST(B.price) AS bottom
                PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)
            )
            WHERE top - bottom > 10''')

    With a text first, the text reads the tables that are given, in this process, with DuckDB around the clauses. It is
    written in the same dialect, and returns the same rows; see docs/match_recognize.md for what differs. The result is
    a pandas or polars DataFrame if all tables are, and else a pyarrow.Table.

    >>> import pyarrow as pa
    >>> trades = pa.table({"t": [1, 2, 3, 4], "price": [10, 8, 7, 9]})
    >>> sql('''SELECT top - bottom AS fall FROM trades MATCH_RECOGNIZE (
    ...     ORDER BY t MEASURES A.price AS top, LAST(B.price) AS bottom
    ...     PATTERN (A B+) DEFINE B AS B.price < PREV(B.price))''', tables={"trades": trades}).to_pylist()
    [{'fall': 3}]

    In process, a text is one SELECT. It can read nothing but the tables: no file, no setting and no variable. It needs
    pip install 'kleene[sql]'.

    args: values of parameters (`:name` or `?`), as in `spark.sql`. Inside a clause a parameter is written `:name`; its
        value comes from the same dict, and is one of those that `Query.match` takes in `params`.
    tables: in process, the tables by name: whatever `Query.match` takes as events, but Spark DataFrames.
    as_: in process, "arrow", "pandas" or "polars", if the result is to be of another kind than the tables.
    engine: the engine of the clauses, and the limits of the call, as in `Query.match`.
    allow_jvm_calls: on Spark, whether the text may run code that is not Spark's own, such as a call of `reflect`; by
        default it may not. See SECURITY.md.
    schema: in a pipeline, the columns of the table before the clause, as in `Query.match`. The text then has one
        clause.
    functions: Python functions and aggregates that the clauses may call, by name; the SQL around them does not know
        them. See docs/functions.md.
    """
    options, own = engine_options(engine), checked_functions(functions)
    if is_spark_sql(spark, text, tables, as_, allow_jvm_calls, schema):
        return spark_module("sql").sql(spark, text, args, allow_jvm_calls, schema, options, own)
    kind = None if as_ is None else checked_choice("as_", as_, KINDS)
    return local_sql_module("backend").sql(text if spark is None else spark, args, tables, kind, options, own)


def register(spark: Any, name: str = "kleene_match", *, engine: EngineOptions | str | None = None) -> None:
    """Registers a table function for the session that takes any query as text, for clients that speak only SQL.

        kleene.register(spark)
        spark.sql('''SELECT * FROM kleene_match(
            TABLE(readings), 'EVENT SEQ(Shelf a, Exit b) WHERE [tag] WITHIN 12 hours', order_by => 't')''')

    The text is a SASE query or a MATCH_RECOGNIZE clause, and says how Spark splits and sorts the table. Its other
    arguments are named: order_by and tie_break (a name, or an array of names), type_column, and language ('sase' or
    'match_recognize'), which is needed only if the beginning of the text does not show it.

    engine: `kleene.EngineOptions` for all calls, such as limits for texts from strangers.
    """
    spark_module("polymorphic").register(spark, name, engine)


def stream_metrics(query: Any, earlier: Any = None) -> Any:
    """How a stream of matches is doing: its last micro-batches, what they read and found, and what is held in state.

        running = unpaid.match(readings, order_by="ts").writeStream.format("parquet")…start()
        print(kleene.stream_metrics(running))

    The result prints as a table; `batches`, `events`, `matches`, `late`, `waiting`, `runs`, `state_bytes` and others
    are its numbers. Spark remembers the last hundred micro-batches of a run.

    query: the pyspark StreamingQuery, of a classic session or of Spark Connect.
    earlier: an earlier result; the new one goes on from it, and so also counts what Spark has forgotten since.
    """
    return spark_module("monitor").stream_metrics(query, earlier)


def last_notes(matches: Any) -> tuple[str, ...]:
    """The notes of Spark's tasks, once an action has run on the DataFrame that `match` or `sql` returned; () before.

        found = query.match(events, order_by="ts")
        found.write.parquet("found")
        for note in kleene.last_notes(found):
            print(note)

    There is a note if events tie: they have the same key and the same order key, no `tie_break` was given, and the
    result can depend on which of them comes first.
    """
    return tuple(spark_module("notes").last_notes(matches))


def regex(
    *,
    pattern: str,
    order_by: str | Sequence[str],
    predicates: Mapping[str, str],
    output: Mapping[str, str],
    partition_by: str | Sequence[str] = (),
    functions: Functions = None,
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
    functions: Python functions and aggregates, by name, that predicates and outputs may call; they must be pure. See
        docs/functions.md.
    """
    own = checked_functions(functions)
    definition = regex_language.parse(pattern, partition_by, order_by, predicates, output, own)
    warn(analyze_row_pattern(definition).warnings)
    return Query(definition)


def sase(text: str, *, functions: Functions = None) -> Query:
    """The SASE or SASE+ query in the text.

    >>> print(sase("event seq(Shelf a, Exit b) where [id] within 12 hours"))
    <kleene.Query
    PATTERN SEQ(Shelf a, Exit b)
    WHERE [id]
    WITHIN 12 hours>

    A :name leaves a value open, and a name after WITHIN the window: `params` of each call gives values.

    >>> import pyarrow as pa
    >>> events = pa.table({"type": ["Shelf", "Exit"], "t": [1, 5]})
    >>> soon = sase("EVENT SEQ(Shelf a, Exit b) WHERE a.t >= :start WITHIN T")
    >>> [soon.match(events, order_by="t", params={"start": 1, "T": size}).num_rows for size in (4, 5)]
    [0, 1]

    functions: Python functions and aggregates that the text may call: a list, or a dict by name. They must be pure. See
        docs/functions.md.

    >>> def near(left: int, right: int) -> bool:
    ...     return abs(left - right) < 4
    >>> sase("EVENT SEQ(Shelf a, Exit b) WHERE near(a.t, b.t)", functions=[near]).match(events, order_by="t").num_rows
    0
    """
    definition = sase_language.parse(text, checked_functions(functions))
    analyze(definition)
    check_reads_one(definition)
    return Query(definition)


def check(query: Query, schema: EventSchema | None, order_by: Sequence[str]) -> tuple[str, ...]:
    """The warnings about the query, for an input of the schema if that is known; an error if it does not fit."""
    if order_by and schema is not None:
        check_order_columns(make_order_key(list(order_by), None), list(schema), "the schema")
    if is_row_pattern(query.definition):
        return analyze_row_pattern(query.definition, schema).warnings
    found = analyze(query.definition, schema, tuple(order_by))
    pipeline = None if is_open(query.definition) else make_plan(found).pipeline
    return (*found.warnings, *(() if pipeline is None else pipeline.warnings))
