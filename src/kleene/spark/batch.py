"""Spark DataFrames of events to a Spark DataFrame of matches.

The columns and events that the query can use are brought together by the key of the query where it has one, else they
form one stream; one `mapInArrow` pass sorts them and matches all keys of a Spark partition. DataFrame API only, so that
Spark Connect works. Nothing runs until the result is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import (
    AnalyzedRowPattern,
    SortColumn,
    analyze_row_pattern,
    check_measure_names,
    is_row_pattern,
    warn,
)
from kleene.analysis.value_types import type_of
from kleene.call import Call
from kleene.engine.columns_read import columns_read
from kleene.engine.inputs import attributes_of
from kleene.engine.match_ids import MATCH_ID
from kleene.engine.output import arrow_type
from kleene.engine.ranges import Reach, Uncut, reach_of
from kleene.engine.run import result_schema
from kleene.engine.ties import TieRule, tie_rule
from kleene.engine.useful_events import useful_event
from kleene.errors import SchemaError, UnsupportedError
from kleene.options import SparkOptions
from kleene.plan.plan import ByKey, Plan
from kleene.schema import Schema
from kleene.spark.choosing import CHOICE, Chooser, choice_order
from kleene.spark.foreign import Prepared, prepare_foreign
from kleene.spark.foreign_code import check_definition
from kleene.spark.gathering import GROUP, TaskOrder
from kleene.spark.handover import (
    Handover,
    Sorting,
    as_it_lies,
    brought_together,
    choose_sorting,
    handed_over,
    settings_text,
)
from kleene.spark.match_order import MATCH_ORDER, NO_EXTRA_COLUMNS, ExtraColumns, match_order_type
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.notes import counted_matches, keep_notes
from kleene.spark.pieces import InPlace
from kleene.spark.pieces_worker import EdgeMatcher, InPlaceMatcher, PieceMatcher, positional
from kleene.spark.ranges import Cutting, choose_cutting
from kleene.spark.schema import arrow_schema, has_map, spark_schema
from kleene.spark.source import check_frame_names, read_frames, session_zone
from kleene.spark.worker import KeyAdder, Matcher, no_rows

__all__ = ["MATCH_ORDER", "SparkJob", "job_of"]

SHOWN_MATCH_ORDER = "match_order"


@dataclass(frozen=True, slots=True)
class SparkJob:
    """A query on a DataFrame: what is handed over, and what the tasks make of it."""

    frame: DataFrame
    handover: Handover
    matcher: Matcher
    prepared: Prepared | None = None
    ties: TieRule | None = None  # what the tasks count, if they do

    @property
    def plan(self) -> Plan:
        return self.matcher.plan

    def explanation(self) -> str:
        """How events come to the tasks, for EXPLAIN, and which settings of the session bear on it."""
        return f"{self.handover}\n{settings_text(self.frame, self.handover)}"

    def handed_over(self) -> DataFrame:
        return handed_over(self.frame, self.handover)

    def matches(self) -> DataFrame:
        """The matches, lazily."""
        if self.plan.pipeline is not None:
            warn(self.plan.pipeline.warnings)
        notes = None
        if isinstance(self.handover.cutting, InPlace):
            found = self._found_in_place()
        else:
            if self.ties is None:
                found = self.handed_over().mapInArrow(self.matcher, spark_schema(self.matcher.output))
            else:
                found, notes = counted_matches(self.handed_over(), self.matcher, self.ties)
            if self.matcher.is_choosing:
                found = self._chosen(found)
        if self.handover.sorting is Sorting.PRESORTED and self.handover.key:
            found = found.union(self._keys_in_two_places(found))
        found = found if self.prepared is None else self.prepared.finished(found)
        return found if notes is None else keep_notes(found, notes)

    def _found_in_place(self) -> DataFrame:
        matcher = self.matcher
        chooses_at_once = matcher.is_choosing and not self.handover.key
        together = brought_together(self.travelled(), self.handover, len(matcher.output), chooses_at_once)
        edges = EdgeMatcher(self._in_place(), chooses_at_once)
        if chooses_at_once:  # all candidates meet in one task in any case: why not in this one
            return together.mapInArrow(edges, spark_schema(matcher.result))
        found = together.mapInArrow(edges, spark_schema(matcher.output))
        return self._chosen(found) if matcher.is_choosing else found

    def _in_place(self) -> InPlaceMatcher:
        return InPlaceMatcher(self.matcher, self.handover.key)

    def travelled(self) -> DataFrame:
        """What is found in the pieces of the input where they lie, and what must travel from there."""
        common = self._in_place()
        lying = as_it_lies(self.frame, self.handover)
        return lying.mapInArrow(PieceMatcher(common), spark_schema(positional(common.travelling)))

    def _chosen(self, candidates: DataFrame) -> DataFrame:
        """Of the candidates of ranges those that are matches: one pass in the order of each key."""
        key = quoted_column(CHOICE[0])
        by = [(quoted_column(column.name), column.descending) for column in choice_order(self.plan.query)]
        order = (column.desc() if is_descending else column.asc() for column, is_descending in by)
        place = F.when(key.isNull(), F.spark_partition_id().cast("long")).otherwise(F.xxhash64(key))
        together = candidates.repartition(place)
        in_order = together.sortWithinPartitions(key.asc(), *order)
        in_order = in_order.toDF(*plain_names(self.matcher.result.names), *CHOICE)
        chooser = Chooser(self.plan.query, self.matcher.result)
        return in_order.mapInArrow(chooser, spark_schema(self.matcher.result))

    def _keys_in_two_places(self, found: DataFrame) -> DataFrame:
        """No rows; an error if a key is in several Spark partitions, which no task can see."""
        places = self.handed_over().select(GROUP, F.spark_partition_id().alias("place")).distinct()
        counted = places.groupBy(GROUP).count()
        text = (
            "kleene.errors.ExecutionError: layout='presorted' was given, and the events of a key are in several Spark "
            "partitions\nLeave the layout out, or bring them together first: df.repartition(key).sortWithinPartitions"
            "(key, order).\n\n"
        )
        # As a condition: a column that nobody reads is not computed. Hashed: a cast would be taken for NULL.
        error = F.hash(F.raise_error(F.lit(text))) == 0
        wrong = counted.where(F.when(F.col("count") > 1, error).otherwise(False))
        # Behind a function, so that no filter of the user's is moved in front of the check.
        return wrong.select(GROUP).mapInArrow(no_rows, found.schema)


def job_of(
    call: Call,
    events: DataFrame | Mapping[str, DataFrame],
    *,
    with_times: bool = False,
    allow_jvm_calls: bool = False,
) -> SparkJob:
    """The job for the query, of which nothing runs yet.

    For composition, `with_times` and `match_order`, the result carries its order in a column that is not an attribute.
    """
    given, order = call.spark or SparkOptions(), call.order
    if is_row_pattern(call.definition):
        return _job_on_rows(call, events, given, allow_jvm_calls)
    source = read_frames(events, order, call.type_column)
    plan = call.plan(analyze(call.definition, source.schema, order.order_by))
    query, split = plan.query, plan.split
    assert not isinstance(query, AnalyzedRowPattern)
    columns = _selected(source.columns, columns_read(query, source.columns.names, order.columns))
    # Spark's input has no order of its own: the columns that the query reads decide between equal order keys.
    by = tuple(dict.fromkeys([*order.columns, *columns.names]))
    handover = _handover(
        Handover(
            columns,
            key=split.columns if isinstance(split, ByKey) else (),
            order=tuple(SortColumn(name, False, None) for name in by),
            strict=order.order_by,
            needs_key=True,
            useful=useful_event(query) if given.pushdown else None,
            sorting=Sorting.SPARK,
            why="",
        ),
        given,
        len(order.columns),
        source.frame,
        plan,
    )
    result = result_schema(plan, columns, with_times)
    id_columns = None
    if call.match_id:
        id_columns, result = tuple(columns.names), result.append(pa.field(MATCH_ID, pa.string()))
    carried = None
    if call.match_order:
        carried = tuple(name for name in by if not has_map(columns.field(name).type))
        name = MATCH_ORDER if with_times else SHOWN_MATCH_ORDER
        result = result.append(pa.field(name, match_order_type(columns, carried)))
    # A key that the query did not say forms no partitions: its engine sees one stream, which must be in order.
    # Time is enough: sorting is stable, and each key is in order already.
    mixed_by = order.order_by[:1] if isinstance(split, ByKey) and split.is_implied else ()
    return SparkJob(
        source.frame,
        handover,
        _matcher(plan, handover, result, ExtraColumns(id_columns, carried), with_times, mixed_by),
        ties=_ties(plan, handover, bool(order.tie_break)),
    )


def _ties(plan: Plan, handover: Handover, has_tie_break: bool) -> TieRule | None:
    """What tasks count. Presorted events are in the order that the user gave them; pieces in place are not counted."""
    if handover.sorting is Sorting.PRESORTED or isinstance(handover.cutting, InPlace):
        return None
    return tie_rule(plan, handover.columns.names, has_tie_break)


def _job_on_rows(
    call: Call, events: DataFrame | Mapping[str, DataFrame], given: SparkOptions, allow_jvm_calls: bool
) -> SparkJob:
    """The job for a row pattern, or for the regular-expression operator."""
    if not allow_jvm_calls:
        check_definition(call.definition)
    prepared, columns, plan = _prepare_rows(call, events)
    query = plan.query
    assert isinstance(query, AnalyzedRowPattern)
    computed = [name for name, _ in query.computed]
    columns = _selected(columns, columns_read(query, columns.names, [column.name for column in query.order_by]))
    frame = prepared.frame
    if computed:
        # Keys are computed by Kleene, so that they mean on Spark what they mean in process.
        wider = pa.schema([*columns, *(pa.field(name, arrow_type(type_of(key))) for name, key in query.computed)])
        plain = frame.select(*(quoted_column(name) for name in columns.names)).toDF(*plain_names(columns.names))
        with_keys = plain.mapInArrow(KeyAdder(query, columns), spark_schema(_renamed(wider)))
        frame, columns = with_keys.toDF(*wider.names), wider
    ordered = {column.name for column in query.order_by}
    ties = (SortColumn(name, False, False) for name in columns.names if name not in ordered)
    handover = _handover(
        Handover(
            columns,
            key=query.partition_by,
            order=(*query.order_by, *ties),
            strict=tuple(column.name for column in query.order_by if column.nulls_first is None),
            needs_key=False,
            useful=None,
            sorting=Sorting.SPARK,
            why="",
        ),
        given,
        len(query.order_by),
        frame,
        plan,
    )
    matcher = _matcher(plan, handover, result_schema(plan, columns))
    return SparkJob(frame, handover, matcher, prepared, _ties(plan, handover, False))


def _handover(handover: Handover, given: SparkOptions, key_columns: int, frame: DataFrame, plan: Plan) -> Handover:
    """The handover with what is to be decided: where events are sorted, and whether keys are cut into ranges."""
    sorting, why = choose_sorting(handover.columns, handover.order, handover.strict)
    if not given.is_presorted:
        first = handover.columns.field(handover.order[0].name).type
        if given.is_in_place:
            cutting: Cutting | InPlace | Uncut = in_place(plan, sorting, why)
        else:
            cutting = choose_cutting(frame, reach_of(plan), first, given, bool(handover.key))
        return replace(handover, sorting=sorting, why=why, cutting=cutting)
    if sorting is not Sorting.TASK:
        raise UnsupportedError(
            f"layout='presorted' is checked by numbers or times, and the sort would be {why}",
            hint="Leave the layout out.",
        )
    return replace(
        handover,
        sorting=Sorting.PRESORTED,
        order=handover.order[:key_columns],
        why="none: presorted, and checked",
        cutting=Uncut("presorted input stays where it is"),
    )


def in_place(plan: Plan, sorting: Sorting, why: str) -> InPlace:
    """How an input is matched where it lies; or an error that says why it cannot be."""
    reach = reach_of(plan)
    if sorting is not Sorting.TASK:
        reach = Uncut(f"pieces are sorted by numbers or times, and the sort would be {why}")
    elif isinstance(plan.query, AnalyzedQuery) and isinstance(reach, Reach) and reach.ahead.time is None:
        reach = Uncut("a SASE query needs a window in time for that")
    if isinstance(reach, Uncut):
        raise UnsupportedError(f"the query cannot be matched in place: {reach.reason}", hint="Leave the layout out.")
    return InPlace(reach)


def _matcher(
    plan: Plan,
    handover: Handover,
    result: pa.Schema,
    extra: ExtraColumns = NO_EXTRA_COLUMNS,
    with_times: bool = False,
    mixed_by: tuple[str, ...] = (),
) -> Matcher:
    return Matcher(
        plan,
        handover.columns,
        handover.sorting,
        TaskOrder(handover.order),
        handover.strict,
        result,
        with_times,
        mixed_by,
        handover.cutting.reach if isinstance(handover.cutting, (Cutting, InPlace)) else None,
        extra,
        bool(handover.key),
        isinstance(handover.cutting, InPlace),
    )


def _prepare_rows(call: Call, events: DataFrame | Mapping[str, DataFrame]) -> tuple[Prepared, pa.Schema, Plan]:
    """What Spark computes beforehand, the columns there are then, and the plan."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, and a dict was given", hint="Give the DataFrame itself.")
    check_frame_names(events, "the input")
    definition = call.definition
    prepared = prepare_foreign(definition, events)
    zone = session_zone(events)
    columns = arrow_schema(prepared.frame.schema, zone)
    query = analyze_row_pattern(
        prepared.definition, Schema(attributes_of(columns)), prepared.hidden, prepared.key_names
    )
    check_measure_names(definition, Schema(attributes_of(arrow_schema(events.schema, zone))), query.partition_by)
    return prepared, columns, call.plan(query)


def _selected(schema: pa.Schema, names: list[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _renamed(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(schema, plain_names(schema.names), strict=True)])
