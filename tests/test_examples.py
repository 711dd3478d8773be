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
