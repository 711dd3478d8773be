"""Shares of a table in threads give the rows of the whole, in the same order; errors, limits and Ctrl-C too."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import kleene
from case_files import Case, load_all
from flat_options import call_of
from kleene.api import prepare
from kleene.engine import budget, layouts, shares, threads
from kleene.engine.threads import run, why_together
from kleene.plan.plan import Plan
from plain_windows import random_rows, random_window
from row_cases import RowCase, load_rows, params_of, regex_of

SCHEMA = pa.schema([("p", pa.string()), ("t", pa.int64()), ("x", pa.int64()), ("n", pa.int64())])
pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


@pytest.fixture(autouse=True)
def _small_tables_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(shares, "MANY_OF_A_KEY", 1)
    monkeypatch.setattr(threads, "LEAST_ROWS", 2)


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_case_in_threads(case: Case) -> None:
    if case.is_program:
        pytest.skip("a program is several queries")
    check(kleene.sase(case.query), case.inputs, **case.options)


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case_in_threads(case: RowCase) -> None:
    check(kleene.match_recognize(case.item["clause"]), case.table, **params_of(case))


def test_generated_windows_in_threads() -> None:
    cut = 0
    for seed in range(120):
        chance = random.Random(seed)
        window, rows = random_window(chance), random_rows(chance)
        given = pa.Table.from_pylist(rows, SCHEMA)
        table, plan = prepare(call_of(kleene.pattern_window(window.text()).definition, engine="generated"), given)
        if why_together(plan, table.num_rows) is None:
            expected = outcome(replace(plan, engine="reference"), table)
            assert outcome(replace(plan, threads=2), table) == expected, window.text()
            cut += 1
    assert cut > 30


@pytest.mark.parametrize("case", load_rows("regex"), ids=lambda case: case.name)
def test_regex_case_in_threads(case: RowCase) -> None:
    check(regex_of(case), case.table, **params_of(case))


def check(query: kleene.Query, events: object, **arguments: object) -> None:
    table, plan = prepared(query, events, **arguments)
    try:
        reason = why_together(plan, table.num_rows)
    except kleene.UnsupportedError as no_code:
        reason = str(no_code).splitlines()[0]
    if reason is not None:
        pytest.skip(reason)
    expected = outcome(replace(plan, engine="reference"), table)
    for count in (1, 2, 3):
        assert outcome(replace(plan, threads=count), table) == expected


def prepared(query: kleene.Query, events: object, **arguments: object) -> tuple[pa.Table, Plan]:
    try:
        return prepare(call_of(query.definition, engine="generated", **arguments), events)
    except kleene.UnsupportedError as reason:
        pytest.skip(str(reason).splitlines()[0])


def outcome(plan: Plan, table: pa.Table) -> object:
    try:
        return run(plan, table).to_pylist()
    except kleene.UnsupportedError as reason:
        pytest.skip(str(reason).splitlines()[0])
    except kleene.KleeneError as error:
        return str(error)


# --- larger tables ---


def trades(rows: int = 3_000, keys: int = 50) -> pa.Table:
    chance = np.random.default_rng(3)
    names = pa.array([f"symbol {number}" for number in range(keys)])
    return pa.table(
        {
            "symbol": names.take(pa.array(chance.integers(0, keys, rows))),
            "t": np.arange(rows),
            "price": pa.array(chance.integers(0, 20, rows), mask=chance.random(rows) < 0.01),
            "type": pa.array(["A", "B", "C", "other"]).take(pa.array(chance.integers(0, 4, rows))),
        }
    )


QUERIES = {
    "falls": kleene.match_recognize(
        """PARTITION BY symbol ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b, count(*) AS n, MATCH_NUMBER() AS m
           PATTERN (A B{2,}) DEFINE B AS B.price < PREV(B.price)"""
    ),
    "all rows": kleene.match_recognize(
        """PARTITION BY symbol ORDER BY t MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH WITH UNMATCHED ROWS
           PATTERN (A B{2,}) DEFINE B AS B.price < PREV(B.price)"""
    ),
    "sequence": kleene.sase("EVENT SEQ(A a, !(B b), C c) WHERE [symbol] AND a.price < c.price WITHIN 300"),
    "runs": kleene.sase(
        """PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match(a[], c) { [symbol] AND a[i].price > a[i-1].price }
           WITHIN 300 RETURN c.t AS t, collect(a[].t) AS ts, avg(a[].price) AS mean, c.symbol AS symbol"""
    ),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_machine_code_in_threads(name: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    query, table = QUERIES[name], trades()
    order = "t" if name in ("sequence", "runs") else None
    expected = query.match(table, order_by=order, engine="reference")
    monkeypatch.setattr(shares, "ROWS_AT_ONCE", 200)
    cuts = []
    monkeypatch.setattr(layouts, "cut_by_key", lambda *given: cuts.append(found := shares.cut_by_key(*given)) or found)
    found = query.match(table, order_by=order, engine=kleene.EngineOptions("compiled", threads=count))
    assert found.equals(expected)
    assert cuts[0] is not None


def test_a_key_that_has_nearly_all_events_is_not_cut() -> None:
    table = trades(keys=1)
    _, plan = prepared(QUERIES["falls"], table)
    assert shares.cut_by_key(plan, table, False, threads._OneThread()) is None


def test_events_of_other_types_are_left_out() -> None:
    table = trades()
    table, plan = prepare(call_of(QUERIES["sequence"].definition, order_by="t", engine="generated"), table)
    cut = shares.cut_by_key(plan, table, False, threads._OneThread())
    assert cut is not None
    types = [type_ for number in range(len(cut)) for type_ in cut.share(number).table.column("type").to_pylist()]
    assert set(types) == {"A", "B", "C"}
    assert len(types) == sum(type_ != "other" for type_ in table.column("type").to_pylist())


def test_of_two_errors_that_of_the_partition_that_comes_first_is_told_in_threads() -> None:
    events = pa.table({"t": [1, 2, 3, 4], "g": [1, 1, 0, 0], "k": ["A", "C", "B", "B"]})
    query = kleene.match_recognize(
        """PARTITION BY g ORDER BY t MEASURES FIRST(t) AS t AFTER MATCH SKIP TO FIRST B
           PATTERN (B B | A C) DEFINE A AS k = 'A', B AS k = 'B', C AS k = 'C'"""
    )
    with pytest.raises(kleene.KleeneError, match="the match has no such row"):
        query.match(events, engine=kleene.EngineOptions("compiled", threads=2))


def test_limits_hold_for_all_threads_together() -> None:
    query, table = QUERIES["falls"], trades()
    found = query.match(table).num_rows
    for count in (1, 2):
        options = kleene.EngineOptions("compiled", threads=count, match_limit=found)
        assert query.match(table, engine=options).num_rows == found
        options = kleene.EngineOptions("compiled", threads=count, match_limit=found - 1)
        with pytest.raises(kleene.LimitError, match="match limit"):
            query.match(table, engine=options)


def test_what_threads_hold_twice_is_told_to_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, int] = {}
    hold = budget.Budget.hold

    def told(own: budget.Budget, what: str, size: int) -> None:
        held[what] = max(held.get(what, 0), size)
        hold(own, what, size)

    monkeypatch.setattr(budget.Budget, "hold", told)
    table = trades()
    QUERIES["all rows"].match(table, engine=kleene.EngineOptions("generated", threads=2))
    assert held["the events by share"] >= table.num_rows * (4 + 8 + 4)  # positions, times, codes of symbols
    found = QUERIES["falls"].match(table, engine=kleene.EngineOptions("generated", threads=2))
    assert held["its result, put in order"] >= 8 * 3 * found.num_rows  # begins, ends and lengths, besides symbols


def test_shares_that_do_not_fit_into_memory_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    query, table, made = QUERIES["falls"], trades(), []
    expected = query.match(table, engine="reference")
    cut = layouts.cut_by_key
    monkeypatch.setattr(layouts, "cut_by_key", lambda *given: made.append(found := cut(*given)) or found)
    hold = budget.Budget.hold

    def full(own: budget.Budget, what: str, size: int) -> None:
        hold(own, what, own.memory + 1 if what == "the events by share" else size)

    monkeypatch.setattr(budget.Budget, "hold", full)
    for count in (1, 2):
        assert query.match(table, engine=kleene.EngineOptions("generated", threads=count)).equals(expected)
    assert not made


def test_an_error_in_one_thread_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def made(layout: layouts.InShares, number: int, budget: threads.Budget) -> object:
        if number == 0:
            raise ZeroDivisionError
        while not ended.is_set():
            try:
                budget.check_time()
            except threads.EndedError:
                ended.set()
                raise
        raise AssertionError

    monkeypatch.setattr(shares, "ROWS_AT_ONCE", 1_500)
    monkeypatch.setattr(layouts.InShares, "made", made)
    with pytest.raises(ZeroDivisionError):
        QUERIES["all rows"].match(trades(), engine=kleene.EngineOptions("compiled", threads=2))
    assert ended.is_set()


# --- what a review found ---


def counts(query: kleene.Query, table: pa.Table, order: str | None = None, **options: object) -> list[int]:
    found = []
    for count in (1, 2, 3):
        engine = kleene.EngineOptions(**{"name": "compiled", "threads": count, **options})
        found.append(query.match(table, order_by=order, engine=engine).num_rows)
    return found


def test_shares_with_more_matches_than_are_held_at_once_lose_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_MOST_OF_A_WHOLE", 1 << 16)
    table = pa.table({"t": range(6_000), "k": [number // 2 % 4 for number in range(6_000)]})
    query = kleene.match_recognize(
        """PARTITION BY k ORDER BY t MEASURES FIRST(A.t) AS f ALL MATCHES PATTERN (A+) MAXLENGTH 20 DEFINE A AS TRUE"""
    )
    expected = 4 * sum(min(20, 1_500 - start) for start in range(1_500))
    assert counts(query, table) == [expected] * 3


def _wide(a: int, b: int) -> bool:
    return a + b > 0


@pytest.mark.parametrize("wide", [{0}, {0, 1, 2, 3}])
def test_shares_that_the_interpreter_answers_lose_no_rows(wide: set[int]) -> None:
    keys = [number // 2 % 4 for number in range(40)]
    values = [2**55 if key in wide else 1 for key in keys]
    table = pa.table({"type": ["A", "B"] * 20, "t": range(40), "k": keys, "x": values})
    query = kleene.sase(
        "EVENT SEQ(A a, B b) WHERE [k] AND wide(a.x, b.x) WITHIN 20 RETURN a.t AS a, b.t AS b",
        functions={"wide": _wide},
    )
    expected = query.match(table, order_by="t", engine="reference").num_rows
    assert expected == 48
    assert counts(query, table, "t") == [expected] * 3
    with pytest.raises(kleene.LimitError):
        query.match(table, order_by="t", engine=kleene.EngineOptions("compiled", threads=2, match_limit=30))


@pytest.mark.parametrize(("begin", "window"), [(0, 2**63 - 1), (2**63 - 100, 1_000)])
def test_ranges_near_the_ends_of_64_bits_lose_no_rows(begin: int, window: int) -> None:
    table = pa.table({"type": ["A", "B"] * 30, "t": [begin + number for number in range(60)]})
    query = kleene.sase(f"EVENT SEQ(A a, B b) WHERE skip_till_next_match(a, b) {{ }} WITHIN {window} RETURN a.t AS a")
    assert counts(query, table, "t", name="generated") == [30] * 3


def test_keys_that_are_texts_stay_texts() -> None:
    table = pa.table({"t": range(40), "k": [f"k{number % 4}" for number in range(40)]})
    query = kleene.match_recognize(
        "PARTITION BY k ORDER BY t MEASURES COUNT(*) AS c ALL ROWS PER MATCH PATTERN (A B) DEFINE A AS A.t < 5"
    )
    for count in (1, 2):
        found = query.match(table, engine=kleene.EngineOptions("generated", threads=count))
        assert found.schema.field("k").type == pa.string()


INTERRUPTED = """
import sys, threading, time
import kleene, pyarrow as pa
from kleene.engine import layouts, threads

def made(layout, number, budget):
    sys.stdout.write("running\\n")
    sys.stdout.flush()
    while True:
        time.sleep(0.001)
        budget.check_time()

threads.LEAST_ROWS, layouts.ByEnds.made = 2, made
table = pa.table({"k": [1, 2, 3, 4] * 10, "t": range(40)})
query = kleene.match_recognize("PARTITION BY k ORDER BY t PATTERN (A)")
try:
    query.match(table, engine=kleene.EngineOptions("generated", threads=2))
except KeyboardInterrupt:
    print("interrupted", threading.active_count(), flush=True)
"""


def test_ctrl_c_ends_all_threads() -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "running" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0].split("\n")
    assert "interrupted 1" in said
