"""The examples do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import kleene
from kleene.datasets import retail_store

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_demo_finds_what_was_planted_and_leaves_its_results(tmp_path: Path, spark, capsys, monkeypatch) -> None:
    monkeypatch.setattr(spark, "stop", lambda: None)  # the session of all tests goes on
    demo = runpy.run_path(str(EXAMPLES / "retail_store.py"))
    assert demo["main"](tmp_path, items=200)
    shown = capsys.readouterr().out
    assert "Planted and found" in shown
    for name in ("shoplifting", "misplaced", "carried_around"):
        assert list((tmp_path / f"{name}.parquet").glob("*.parquet"))
        assert (tmp_path / "queries" / f"{name}.sase").exists()


def test_planted_items_are_found_in_process_too() -> None:
    store = retail_store(items=400, seed=3)
    planted = {"shoplifting": store.stolen, "misplaced": store.misplaced, "carried_around": store.carried_around}
    for name, expected in planted.items():
        query = kleene.sase((EXAMPLES / "queries" / f"{name}.sase").read_text())
        found = query.match(store.readings, order_by="ts")
        assert set(found.column("id").to_pylist()) == expected
        assert expected


def test_flights_have_chains_of_growing_delays_and_missed_turn_arounds(capsys) -> None:
    example = runpy.run_path(str(EXAMPLES / "flights.py"))
    growing, missed = example["main"](until="2013-01-07")
    flights = example["departures"]("2013-01-07").sort_values(["at", "flight"])
    keys = [flights[name] for name in ("tailnum", "month", "day")]
    is_worse = flights["dep_delay"].groupby(keys).diff() >= 30
    is_third = is_worse & is_worse.groupby(keys).shift(1, fill_value=False)
    assert set(growing["tailnum"]) == set(flights.loc[is_third, "tailnum"])
    assert len(growing) == 3
    was_good = (flights["arr_delay"] <= 0).groupby(keys).shift(1, fill_value=False)
    assert sorted(missed["tailnum"]) == sorted(flights.loc[was_good & (flights["dep_delay"] > 180), "tailnum"])
    assert len(missed) == 3
    assert "chains of growing delays" in capsys.readouterr().out


def test_stocks_fell_and_came_back(tmp_path: Path, capsys) -> None:
    falls, bottoms = runpy.run_path(str(EXAMPLES / "stocks.py"))["main"](tmp_path)
    deepest = falls.nlargest(1, "percent").iloc[0]
    assert (deepest["symbol"], deepest["low"], deepest["percent"]) == ("AMZN", 5.97, 91)
    assert falls["back"].isna().sum() == 4
    assert len(bottoms)
    assert "<svg" in (tmp_path / "falls.svg").read_text()
    assert "double bottoms" in capsys.readouterr().out


def test_visits_and_orders_are_found_as_planted(capsys) -> None:
    assert runpy.run_path(str(EXAMPLES / "visits_and_orders.py"))["main"](visitors=80, orders=120)
    assert "NOT" not in capsys.readouterr().out
