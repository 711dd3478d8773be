"""Programs: several queries, of which one may read what another gives out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kleene.analysis.analyze import MATCH_END, MATCH_START, analyze
from kleene.analysis.row_pattern import warn
from kleene.api import Functions, Query, checked_functions, explain_call, prepare
from kleene.call import Call, Input, as_spark, input_of, is_pandas_on_spark, like_events, read_call, spark_module
from kleene.engine.event_types import type_notes
from kleene.engine.inputs import OrderKey, check_input_names, read_rows
from kleene.engine.run import run
from kleene.engine.ties import tie_notes
from kleene.errors import AnalysisError, SchemaError, did_you_mean, listed, printable
from kleene.ir.query import QueryDefinition
from kleene.lang.parameters import bind
from kleene.lang.sase import parse_program
from kleene.options import EngineOptions, SparkOptions, StreamOptions
from kleene.plan.plan import Plan
from kleene.watching import watched


@dataclass(frozen=True, slots=True)
class Program:
    """Several queries; one can make a stream with INTO that others read with FROM."""

    queries: tuple[Query, ...]

    def __repr__(self) -> str:
        return "<kleene.Program\n" + ";\n".join(str(query)[len("<kleene.Query\n") : -1] for query in self.queries) + ">"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each query's result: that of its INTO, or query_1, query_2, … by its place."""
        return tuple(query.definition.into_stream or f"query_{n}" for n, query in enumerate(self.queries, 1))

    def match(
        self,
        events: Any,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        as_: str | None = None,
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
    ) -> dict[str, Any]:
        """The result of every query, by the name of its INTO (or query_1, query_2, …); arguments as in Query.match.

        A query without FROM reads the events. `FROM name` reads the stream that another query makes under the name,
        else the input of that name in a dict of inputs, else the events. The layout of `spark` is that of the input: it
        says nothing about the streams that queries make.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["A", "A", "A"], "t": [1, 2, 3]})
        >>> pairs = program('''EVENT SEQ(A x, A y) WITHIN 2 RETURN x.t AS begun INTO Pair;
        ...                    FROM Pair EVENT SEQ(Pair p, Pair q) RETURN p.begun AS first, q.begun AS second''')
        >>> pairs.match(events, order_by="t")["query_2"].to_pylist()
        [{'first': 1, 'second': 2}]
        """
        calls = self._calls(
            params,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            format=format,
            as_=as_,
            engine=engine,
            spark=spark,
            stream=stream,
        )
        place = input_of(_flat(events))
        _check_fits(calls, place)
        runner: _ArrowRunner | _SparkRunner = _ArrowRunner() if place is Input.TABLE else _SparkRunner()
        # A stream can be read once only, and several queries may want it.
        given = _tables(events) if place is Input.TABLE else as_spark(events)
        made: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for name, definition in _in_order(self.queries, self.names):
            source, call = definition.from_stream, calls[name]
            if source in made:
                composite = runner.find_in_matches(call, source, made[source])
            else:
                composite = runner.find(call, self._input_of(definition, given))
            if definition.into_stream is not None:
                made[name] = composite
            results[name] = runner.result(composite, definition)
        if place is Input.TABLE:
            return {name: like_events(results[name], events, as_) for name in self.names}
        is_like_pandas = is_pandas_on_spark(events)
        return {name: results[name].pandas_api() if is_like_pandas else results[name] for name in self.names}

    def explain(
        self,
        events: Any = None,
        *,
        order_by: str | Sequence[str] | None = None,
        type_column: str | None = "type",
        tie_break: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        format: str = "all",
        engine: EngineOptions | str | None = None,
        spark: SparkOptions | None = None,
        stream: StreamOptions | None = None,
        dot: bool = False,
        svg: bool = False,
        code: bool = False,
        analyze: bool = False,
    ) -> str:
        """Each query's explanation, as `Query.explain` gives it; arguments as in `match`.

        With events, they are used only for queries that read the input: a query that reads another query's stream is
        explained without.
        """
        calls = self._calls(
            params,
            order_by=order_by,
            type_column=type_column,
            tie_break=tie_break,
            format=format,
            engine=engine,
            spark=spark,
            stream=stream,
        )
        given = events
        if events is not None:
            place = input_of(_flat(events))
            _check_fits(calls, place)
            given = _tables(events) if place is Input.TABLE else as_spark(events)
        shown = []
        for name, query in zip(self.names, self.queries, strict=True):
            if query.definition.from_stream in self.names or events is None:
                is_bare = events is None
                shown.append(explain_call(calls[name], None, dot, svg, is_bare and code, is_bare and analyze))
            else:
                shown.append(
                    explain_call(calls[name], self._input_of(query.definition, given), dot, svg, code, analyze)
                )
        return "\n\n".join(shown)

    def _calls(self, params: object, **arguments: Any) -> dict[str, Call]:
        """The call of each query, by the name of its result."""
        bound = bind(tuple(query.definition for query in self.queries), params)
        return {
            name: read_call(definition, params=None, **arguments)
            for name, definition in zip(self.names, bound, strict=True)
        }

    def _input_of(self, definition: QueryDefinition, events: Any) -> Any:
        source = definition.from_stream
        if source is None:
            return events
        if isinstance(events, Mapping) and source in events:
            return events[source]
        outside = {q.definition.from_stream for q in self.queries} - set(self.names) - {None}
        if isinstance(events, Mapping) or len(outside) > 1:
            names = [*self.names, *(events if isinstance(events, Mapping) else ())]
            raise SchemaError(
                f"the stream '{printable(source)}' is neither an input nor made by a query",
                definition.source.locate(definition.from_span),
                f"Streams: {listed(names)}.{did_you_mean(source, names)} Give the inputs as a dict by stream name.",
            )
        return events


def program(text: str, *, functions: Functions = None) -> Program:
    """The queries of a text, separated by `;`, checked on their own and together.

    functions: Python functions and aggregates that the text may call, by name; see docs/functions.md.
    """
    definitions = parse_program(text, checked_functions(functions))
    for definition in definitions:
        analyze(definition)
    found = Program(tuple(map(Query, definitions)))
    _check_streams(found)
    return found


def _check_fits(calls: Mapping[str, Call], place: Input) -> None:
    for call in calls.values():
        call.check_fits(place)


def _check_streams(found: Program) -> None:
    by_name: dict[str, QueryDefinition] = {}
    for name, query in zip(found.names, found.queries, strict=True):
        definition = query.definition
        if name in by_name:
            raise AnalysisError(
                f"two results would be called '{printable(name)}'",
                definition.source.locate(definition.into_span),
                "Give each its own name after INTO; a query without one is called query_1 or query_2, by its place.",
            )
        by_name[name] = definition
        for measure in definition.measures or ():
            if definition.into_stream and measure.name in (MATCH_START, MATCH_END):
                raise AnalysisError(
                    f"'{measure.name}' is the name of the composite event's own time",
                    definition.source.locate(measure.span),
                    "Choose another name after AS.",
                )
    list(_in_order(found.queries, found.names))


def _in_order(queries: tuple[Query, ...], names: tuple[str, ...]) -> Iterator[tuple[str, QueryDefinition]]:
    """Each query after the one whose stream it reads."""
    waiting = dict(zip(names, (query.definition for query in queries), strict=True))
    while waiting:
        ready = next((name for name, query in waiting.items() if query.from_stream not in waiting), None)
        if ready is None:
            circle = [next(iter(waiting))]
            while circle.count(circle[-1]) < 2:
                circle.append(str(waiting[circle[-1]].from_stream))
            circle = circle[circle.index(circle[-1]) :]
            query = waiting[circle[0]]
            raise AnalysisError(
                f"the streams form a cycle: {' reads '.join(map(printable, circle))}",
                query.source.locate(query.from_span),
                "A query can only read streams that do not depend on it.",
            )
        yield ready, waiting.pop(ready)


def _tables(events: Any) -> Any:
    if isinstance(events, Mapping):
        check_input_names(events)
        return {name: _tables(part) for name, part in events.items()}
    return read_rows(events)


def _flat(events: Any) -> Any:
    """A dict of dicts (inputs by type, by stream) as one dict, to ask what kind of inputs they are."""
    if not isinstance(events, Mapping):
        return events
    flat: dict[object, Any] = {}
    for name, part in events.items():
        flat |= {(name, inner): value for inner, value in part.items()} if isinstance(part, Mapping) else {name: part}
    return flat


def with_values(program: Program, params: Mapping[str, Any]) -> Program:
    """The program with values for its parameters, as a call gives them."""
    return Program(tuple(map(Query, bind(tuple(query.definition for query in program.queries), params))))


@dataclass(frozen=True, slots=True)
class _ArrowRunner:
    def find_in_matches(self, call: Call, name: str, made: Any) -> Any:
        call = replace(call, order=OrderKey((MATCH_END,)), type_column=None)
        table, plan = prepare(call, {name: made})
        return self._found(call, table, plan)

    def find(self, call: Call, events: Any) -> Any:
        table, plan = prepare(call, events)
        # Matches that are events in turn have an order of their own; only those of the input may tie.
        warn(tie_notes(plan, table, bool(call.order.tie_break)))
        found = self._found(call, table, plan)
        warn(type_notes(plan, table, is_empty=not found.num_rows))
        return found

    def _found(self, call: Call, table: Any, plan: Plan) -> Any:
        with watched("matching"):
            return run(plan, table, with_times=call.definition.into_stream is not None)

    def result(self, composite: Any, definition: QueryDefinition) -> Any:
        hidden = [] if definition.measures is None or not definition.into_stream else [MATCH_START, MATCH_END]
        return composite.drop_columns(hidden)


@dataclass(frozen=True, slots=True)
class _SparkRunner:
    """Finds jobs; on streams a job must know the one whose matches it reads."""

    def find_in_matches(self, call: Call, name: str, made: Any) -> Any:
        order = OrderKey((MATCH_END,), (spark_module("output").MATCH_ORDER,))
        options = None if call.spark is None else SparkOptions(pushdown=call.spark.pushdown)
        call = replace(call, order=order, type_column=None, spark=options)
        return self._job(call, {name: made.matches()}, made)

    def find(self, call: Call, events: Any) -> Any:
        return self._job(call, events, None)

    def _job(self, call: Call, events: Any, before: Any) -> Any:
        is_read = call.definition.into_stream is not None
        return spark_module("job").make_job(call, events, is_read=is_read, before=before)

    def result(self, composite: Any, definition: QueryDefinition) -> Any:
        found = composite.matches()
        if definition.into_stream is None:
            return found
        hidden = [spark_module("output").MATCH_ORDER]
        shown = found.drop(*(hidden if definition.measures is None else [*hidden, MATCH_START, MATCH_END]))
        return spark_module("notes").with_notes_of([found], shown)
