"""Programs: several queries, of which one may read what another gives out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import MATCH_END, MATCH_START
from kleene.analysis.row_pattern import warn
from kleene.api import Functions, Query, checked_functions, explain_call, prepare
from kleene.call import (
    Call,
    Input,
    as_spark,
    input_of,
    is_pandas_on_spark,
    is_spark,
    like_events,
    read_call,
    spark_module,
)
from kleene.engine.event_types import type_notes
from kleene.engine.inputs import check_input_names, read_rows
from kleene.engine.threads import run
from kleene.engine.ties import tie_notes
from kleene.engine.together import ReadStream, Together, check_given, within, without_composite
from kleene.errors import AnalysisError, SchemaError, did_you_mean, listed, printable
from kleene.ir.pattern import variables_in
from kleene.ir.query import QueryDefinition
from kleene.lang.parameters import bind
from kleene.lang.sase import parse_program
from kleene.options import EngineOptions, Schema, SparkOptions, StreamOptions
from kleene.plan.plan import Plan
from kleene.watching import watched

ONLY_INPUT = "events"
"""What the input of a program is called, whatever else it is called."""


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
        schema: Schema | None = None,
    ) -> dict[str, Any]:
        """The result of every query, by the name of its INTO (or query_1, query_2, …); arguments as in Query.match.

        A query without FROM reads the events. `FROM name` reads the stream that another query makes under the name,
        else the input of that name in a dict of inputs, else the events, which are also called `events`. A query reads
        several streams together, in the order of time, if FROM names them: `FROM Theft, events`. The layout of `spark`
        is that of the input: it says nothing about the streams that queries make.

        >>> import pyarrow as pa
        >>> events = pa.table({"type": ["A", "A", "A"], "t": [1, 2, 3]})
        >>> pairs = program('''EVENT SEQ(A x, A y) WITHIN 2 RETURN x.t AS begun INTO Pair;
        ...                    FROM Pair EVENT SEQ(Pair p, Pair q) RETURN p.begun AS first, q.begun AS second''')
        >>> pairs.match(events, order_by="t")["query_2"].to_pylist()
        [{'first': 1, 'second': 2}]

        A composite event's type is the name of its stream, and its time is the end of the match.

        >>> after = program('''EVENT SEQ(A x, A y) WITHIN 2 INTO Pair;
        ...                    FROM Pair, events EVENT SEQ(Pair p, A a) RETURN p.match_end AS pair, a.t AS next''')
        >>> after.match(events, order_by="t")["query_2"].to_pylist()
        [{'pair': 2, 'next': 3}]
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
            schema=schema,
        )
        place = input_of(_flat(events))
        _check_fits(calls, place)
        runner: _ArrowRunner | _SparkRunner = _ArrowRunner() if place is Input.TABLE else _SparkRunner()
        # A stream can be read once only, and several queries may want it.
        given = _tables(events) if place is Input.TABLE else as_spark(events)
        _check_schema(schema, given)
        made: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for name, definition in _in_order(self.queries, self.names):
            found = runner.find(*self._reading(calls[name], given, made))
            if definition.into_stream is not None:
                made[name] = found
            results[name] = runner.result(found, definition)
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
        schema: Schema | None = None,
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
            schema=schema,
            is_over_all=True,
        )
        given = events
        if events is not None:
            place = input_of(_flat(events))
            _check_fits(calls, place)
            given = _tables(events) if place is Input.TABLE else as_spark(events)
            _check_schema(schema, given)
        shown = []
        for name, query in zip(self.names, self.queries, strict=True):
            is_fed = not set(query.definition.from_streams).isdisjoint(self.names)
            if is_fed or events is None:
                is_bare = events is None
                shown.append(explain_call(calls[name], None, dot, svg, is_bare and code, is_bare and analyze))
            else:
                call, read = self._reading(calls[name], given, {})
                shown.append(explain_call(call, read, dot, svg, code, analyze))
        return "\n\n".join(shown)

    def _calls(self, params: object, **arguments: Any) -> dict[str, Call]:
        """The call of each query, by the name of its result."""
        bound = bind(tuple(query.definition for query in self.queries), params)
        return {
            name: read_call(definition, params=None, **arguments)
            for name, definition in zip(self.names, bound, strict=True)
        }

    def _reading(self, call: Call, given: Any, made: Mapping[str, Any]) -> tuple[Call, Any]:
        """The call of a query, and the events that it reads; `made` are the streams that are made by now."""
        definition = call.definition
        streams: list[ReadStream] = []
        for number, name in enumerate(definition.from_streams):
            location = definition.source.locate(definition.from_spans[number])
            if name in made:
                streams.append(ReadStream(name, made[name], self.names.index(name), location))
                continue
            events = self._input(definition, number, given)
            if any(stream.events is events for stream in streams):
                raise SchemaError(
                    f"'{printable(name)}' is another name of an input that FROM names already",
                    location,
                    "Name each stream once; or give several inputs as a dict by stream name.",
                )
            streams.append(ReadStream(name, events, None, location))
        if len(streams) > 1 or any(stream.is_composite for stream in streams):
            return call, Together(tuple(streams))
        events = streams[0].events if streams else given
        return (_with_schema_of(call, events) if isinstance(given, Mapping) and streams else call), events

    def _input(self, definition: QueryDefinition, number: int, events: Any) -> Any:
        """The input that FROM names in that place."""
        name, is_dict = definition.from_streams[number], isinstance(events, Mapping)
        if is_dict and name in events:
            return events[name]
        outside = {name for query in self.queries for name in query.definition.from_streams}
        outside -= {*self.names, ONLY_INPUT}
        if name == ONLY_INPUT or (not is_dict and len(outside) == 1):
            return events
        made = [query.definition.into_stream for query in self.queries]
        names = [*filter(None, made), *(events if is_dict else (ONLY_INPUT,))]
        raise SchemaError(
            f"the stream '{printable(name)}' is neither an input nor made by a query",
            definition.source.locate(definition.from_spans[number]),
            f"Streams: {listed(names)}.{did_you_mean(name, names)} Give the inputs as a dict by stream name.",
        )


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
    _check_types(by_name)


def _check_types(by_name: Mapping[str, QueryDefinition]) -> None:
    """An error if a type of the input's events is also the name of a stream that is read beside these events."""
    beside_input = {
        name
        for query in by_name.values()
        if not by_name.keys() >= set(query.from_streams)
        for name in query.from_streams
        if name in by_name
    }
    for query in by_name.values():
        primitive = {type_ for variable in variables_in(query.pattern) for type_ in variable.types}
        for name in beside_input & primitive - set(query.from_streams):
            made = by_name[name]
            raise AnalysisError(
                f"'{printable(name)}' is the name of a stream and, in another query, a type of the input's events, "
                "which are read together",
                made.source.locate(made.into_span),
                "Choose another name after INTO.",
            )


def _in_order(queries: tuple[Query, ...], names: tuple[str, ...]) -> Iterator[tuple[str, QueryDefinition]]:
    """Each query after those whose streams it reads."""
    waiting = dict(zip(names, (query.definition for query in queries), strict=True))
    while waiting:
        ready = next((name for name, query in waiting.items() if waiting.keys().isdisjoint(query.from_streams)), None)
        if ready is None:
            raise _cycle(waiting)
        yield ready, waiting.pop(ready)


def _cycle(waiting: Mapping[str, QueryDefinition]) -> AnalysisError:
    """The error about queries of which each reads a stream of another one."""
    circle = [next(iter(waiting))]
    while circle.count(circle[-1]) < 2:
        circle.append(next(name for name in waiting[circle[-1]].from_streams if name in waiting))
    circle = circle[circle.index(circle[-1]) :]
    query = waiting[circle[0]]
    return AnalysisError(
        f"the streams form a cycle: {' reads '.join(map(printable, circle))}",
        query.source.locate(query.from_spans[query.from_streams.index(circle[1])]),
        "A query can only read streams that do not depend on it.",
    )


def _check_schema(schema: Schema | None, given: Any) -> None:
    """An error if the schema names an attribute that none of several inputs has; that of one is checked with it."""
    if schema is not None and isinstance(given, Mapping):
        parts = [part for part in given.values() if not isinstance(part, Mapping)]
        check_given(schema, [_columns_of(part) for part in parts])


def _with_schema_of(call: Call, events: Any) -> Call:
    """The call with what its schema says of one of several inputs."""
    if call.schema is None or isinstance(events, Mapping):
        return replace(call, schema=None)
    columns = _columns_of(events)
    return replace(call, schema=within(call.schema, columns) if call.type_column in columns else None)


def _columns_of(events: Any) -> list[str]:
    return list(events.columns if is_spark(events) else events.column_names)


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
    def find(self, call: Call, events: Any) -> Any:
        table, plan = prepare(call, events)
        warn(_tie_notes(call, plan, table, events))
        with watched("matching"):
            found = run(plan, table, with_times=call.definition.into_stream is not None)
        warn(type_notes(plan, table, is_empty=not found.num_rows))
        return found

    def result(self, found: Any, definition: QueryDefinition) -> Any:
        hidden = [] if definition.measures is None or not definition.into_stream else [MATCH_START, MATCH_END]
        return found.drop_columns(hidden)


def _tie_notes(call: Call, plan: Plan, table: Any, events: Any) -> tuple[str, ...]:
    """What is to be told of ties among the events of the input; composite events have an order of their own."""
    if not isinstance(events, Together):
        return tie_notes(plan, table, bool(call.order.tie_break))
    primitive = without_composite(table, events)
    return tie_notes(plan, primitive, len(call.order.columns) > 1, call.order.order_by)


@dataclass(frozen=True, slots=True)
class _SparkRunner:
    """Finds jobs; on streams a job must know those whose matches it reads."""

    def find(self, call: Call, events: Any) -> Any:
        if isinstance(events, Together) and call.spark is not None:
            call = replace(call, spark=SparkOptions(pushdown=call.spark.pushdown))
        is_read = call.definition.into_stream is not None
        return spark_module("job").make_job(call, events, is_read=is_read)

    def result(self, found: Any, definition: QueryDefinition) -> Any:
        matches = found.matches()
        if definition.into_stream is None:
            return matches
        hidden = [spark_module("output").MATCH_ORDER]
        shown = matches.drop(*(hidden if definition.measures is None else [*hidden, MATCH_START, MATCH_END]))
        return spark_module("notes").with_notes_of([matches], shown)
