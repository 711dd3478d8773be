"""`kleene warm` and `kleene cache`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from kleene.cache import cache_folder
from kleene.cli import app
from kleene.engine.compiled import warming


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KLEENE_CACHE_DIR", str(tmp_path / "code"))
    return cache_folder()


def test_cache_shows_and_clears_what_is_ours(folder) -> None:
    (folder / f"{'a' * 32}.search.bin").write_bytes(b"code")
    (folder / "notes.txt").write_text("not ours")
    shown = CliRunner().invoke(app, ["cache"])
    assert shown.exit_code == 0
    assert str(folder) in shown.output.replace("\n", "")
    assert "modules   1," in shown.output
    cleared = CliRunner().invoke(app, ["cache", "--clear"])
    assert "modules   0," in cleared.output
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_warm_makes_each_loop_once(folder, monkeypatch) -> None:
    monkeypatch.setattr(warming, "shared_names", lambda: ["group_rows"])
    monkeypatch.setattr(warming, "all_sources", dict)
    first = CliRunner().invoke(app, ["warm"])
    assert first.exit_code == 0, first.output
    assert "1 of 1 loops were compiled" in first.output.replace("\n", " ")
    assert "all is there already" in CliRunner().invoke(app, ["warm"]).output
