"""An input that is matched where it lies gives what it gives in one piece, whatever pieces it lies in."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from test_ranges_generated import outcome

import kleene
from flat_options import call_of
from in_place import in_place_task, longer, lying, matched_in_place, task_order
from kleene.api import prepare
from kleene.engine.compiled.batches import group
from kleene.engine.pieces import Bounds, Stretch, bounds_of, check_bounds, clean_cut, parts_of, shares_of
from kleene.engine.ranges import Extent, Reach, Uncut
from kleene.engine.threads import run
from kleene.ir.options import Window, WindowUnit
from kleene.spark.layouts import in_place as layout
from plan_strategies import random_plan
from row_strategies import random_row_case
from strategies import event_table, queries_with_events, some_examples

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def found_in_pieces(plan, table: pa.Table, order_columns: tuple[str, ...], random: Random) -> int:
    """How many matches were found in pieces; that all matches together are the same is checked."""
    order = task_order(plan, table, order_columns)
    try:
        common = in_place_task(plan, table, order)
    except kleene.UnsupportedError:
        return 0
    if isinstance(common, Uncut) or not table.num_rows:
        return 0
    in_order = order.sorted_by_time(table)
    expected = outcome(lambda: run(plan, in_order))
    if isinstance(expected, str) and "run_limit" in expected:
        return 0  # a piece has fewer runs at a time
    early = 0

    def in_pieces() -> pa.Table:
        nonlocal early
        rows, early = matched_in_place(common, lying(in_order, random), random)
        return rows

    found = outcome(in_pieces)
    if isinstance(expected, list):
        assert found == expected
        return early
    assert isinstance(found, str)  # which of several errors is the first, depends on the pieces
    return 0


def test_generated_sequences_in_place() -> None:
    random, early = Random(1), 0
    for _ in range(120):
        case = random_plan(random, most=60)
        early += sase_found(str(case.query), case.options, case.events, random)
    assert early > 100


@pytest.mark.slow
def test_generated_queries_with_all_strategies_in_place() -> None:
    random, early = Random(2), 0
    for query, events in some_examples(queries_with_events(), lambda _: True, 150, 3):
        early += sase_found(str(query), {"order_by": "t", "format": query.format}, event_table(events), random)
    assert early > 100


def sase_found(text: str, options: dict, events, random: Random) -> int:
    definition = kleene.sase(text).definition
    if definition.window is None or definition.window.unit is WindowUnit.EVENTS:
        definition = replace(definition, window=Window(random.choice([1, 2, 5]), WindowUnit.ORDER_KEY))
    try:
        call = call_of(definition, **options, engine="generated", run_limit=400)
        table = longer(prepare(call, events)[0], call.order.order_by[0], 12)
        table, plan = prepare(call, table)
    except kleene.KleeneError:
        return 0  # a window that is none for this order key, or events that come by type
    return found_in_pieces(plan, table, call.order.columns, random)


def test_generated_row_patterns_in_place() -> None:
    random, early = Random(5), 0
    for _ in range(250):
        clause, events = random_row_case(random)
        try:
            definition = kleene.match_recognize(clause).definition
            if definition.window is None and definition.max_length is None:
                definition = replace(definition, max_length=random.choice([1, 2, 3, 4]))
            _, plan = prepare(call_of(definition, engine="generated"), events)
            first = plan.query.order_by[0].name
            if first in events.column_names:
                events = longer(events, first, 30)
            table, plan = prepare(call_of(definition, engine="generated"), events)
        except kleene.KleeneError:
            continue  # rows that have no order, or a query that the generated engine cannot run
        early += found_in_pieces(plan, table, (), random)
    assert early > 100


def test_what_travels_by_rows() -> None:
    # Two keys of 20 and 3 events; a match reaches 2 rows ahead and 1 back. Times 0 and 22 may be another piece's, too.
    codes = np.array([0] * 10 + [1] * 3 + [0] * 10)
    grouped = group(codes, 2, jit=False)
    times = grouped.permuted(np.arange(23))
    shares = shares_of(times, grouped, Stretch(0, 22), Reach(Extent(rows=1), Extent(rows=2)))
    first = times[:20]
    assert first[shares.own[:20]].tolist() == [*range(2, 10), *range(13, 20)]
    assert first[shares.sent[:20]].tolist() == [0, 1, 2, 3, 19, 20, 21, 22]
    assert not shares.own[20:].any()
    assert shares.sent[20:].all()


def test_what_travels_by_time() -> None:
    times = np.arange(0, 100, 2)
    grouped = group(np.zeros(50, np.int64), 1, jit=False)
    shares = shares_of(times, grouped, Stretch(0, 98), Reach(Extent(), Extent(6)))
    assert times[shares.own].tolist() == list(range(2, 92, 2))
    assert times[shares.sent].tolist() == [0, 2, 4, 6, 92, 94, 96, 98]


def test_files_in_one_partition_are_told_apart() -> None:
    times = np.concatenate([np.arange(3_000, 4_000), np.arange(1_000, 2_000), np.arange(7_000, 8_000)])
    assert list(parts_of(times)) == [(0, 1_000), (1_000, 2_000), (2_000, 3_000)]
    assert list(parts_of(np.arange(5))) == [(0, 5)]
    assert list(parts_of(np.zeros(0, np.int64))) == [(0, 0)]


def test_late_events_leave_room_for_others() -> None:
    assert bounds_of(np.array([1, 5, 3, 9, 20])) == Bounds(1, 20, Stretch(5, 16), 2)
    assert bounds_of(np.array([9, 1])) == Bounds(1, 9, None, 8)
    told = bounds_of(np.array([0.5, 1.5, 2.5]))
    assert Bounds.read(told.text) == told


def test_a_late_event_is_no_file_of_its_own() -> None:
    times = np.concatenate([np.arange(500), [449], np.arange(500, 1_000)])
    parts = list(parts_of(times))
    assert parts == [(0, 501), (501, 1_001)]
    check_bounds([bounds_of(times[begin:end]) for begin, end in parts])


def test_many_small_files_in_any_order_are_told_apart() -> None:
    order = Random(3).sample(range(31), 31)
    times = np.concatenate([np.arange(500) + 1_000 * number for number in order])
    parts = list(parts_of(times))
    assert len(parts) == 31
    check_bounds([bounds_of(times[begin:end]) for begin, end in parts])


def test_pieces_are_cut_where_nothing_is_late() -> None:
    times = np.arange(1_000)
    times[[700, 860]] = times[[710, 880]]  # those in between come before earlier ones
    cut = clean_cut(times)
    assert 500 < cut <= 875
    assert times[:cut].max() <= times[cut:].min()
    assert clean_cut(np.arange(1_000)[::-1]) == 1_000


TWINS = pa.table({"t": [0, 1, *[2] * 6, *range(3, 40)], "x": [0] * 45})


@pytest.mark.parametrize("seed", range(5))
def test_events_that_are_equal_keep_their_places(seed: int) -> None:
    definition = kleene.match_recognize(
        "ORDER BY t MEASURES A.t AS a AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS B.x = 0"
    ).definition
    table, plan = prepare(call_of(definition, engine="generated"), TWINS)
    common = in_place_task(plan, table, task_order(plan, table, ()))
    rows, early = matched_in_place(common, [table], Random(seed))
    assert rows.num_rows == 44
    assert early > 30


def test_a_batch_of_several_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PIECE_ROWS", 1 << 8)
    definition = kleene.match_recognize(
        "ORDER BY t MEASURES A.t AS a, B.t AS b ALL MATCHES PATTERN (A B) DEFINE B AS B.t > A.t"
    ).definition
    table, plan = prepare(call_of(definition, engine="generated"), pa.table({"t": range(1_456)}))
    common = in_place_task(plan, table, task_order(plan, table, ()))
    batches = [*table.slice(0, 256).to_batches(), *table.slice(256).combine_chunks().to_batches()]
    travelled = list(common.of_partition(iter(batches), 0))
    assert sum(len(batch.column(batch.num_columns - 1).drop_null()) for batch in travelled) > 5  # pieces
    rows, _ = matched_in_place(common, [table], Random(1))
    assert rows.num_rows == 1_455


def test_bounds_are_checked() -> None:
    one, two = Bounds(0, 10, Stretch(0, 10)), Bounds(10, 20, Stretch(10, 20))
    check_bounds([two, one])
    check_bounds([])
    check_bounds([Bounds(0, 12, Stretch(2, 8)), Bounds(8, 20, Stretch(12, 16))])
    for others in ([Bounds(9, 20, Stretch(9, 20))], [two, Bounds(0, 30, None)], [two, Bounds(5, 5, None)]):
        with pytest.raises(kleene.KleeneError, match="do not follow one another in time"):
            check_bounds([one, *others])
