"""Tables of parsers are kept for the next process, and made anew where they cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

import kleene
from kleene.cache import sealed
from kleene.ir.options import Window, WindowUnit
from kleene.lang import grammar

QUERY = "EVENT SEQ(A a, B b) WHERE a.x > b.x + 1 WITHIN 5"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a machine on which nothing was parsed yet."""
    monkeypatch.setenv("KLEENE_CACHE_DIR", str(tmp_path / "code"))
    grammar.parser_of.cache_clear()
    return tmp_path / "code"


def made_anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which tables are made from now on."""
    starts: list[str] = []
    make = grammar.tables_of

    def recorded(text: str, start: str) -> bytes:
        starts.append(start)
        return make(text, start)

    monkeypatch.setattr(grammar, "tables_of", recorded)
    return starts


def test_the_next_process_reads_the_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kleene.sase(QUERY)
    starts = made_anew(monkeypatch)
    grammar.parser_of.cache_clear()
    assert kleene.sase(QUERY) == before
    assert starts == []


@pytest.mark.parametrize("damage", [b"", b"other", sealed(b""), sealed(b"\x80"), sealed(b"N")])
def test_damaged_tables_are_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    before = kleene.sase(QUERY)
    (stored,) = folder.glob("*.parser.bin")
    stored.write_bytes(damage)
    starts = made_anew(monkeypatch)
    grammar.parser_of.cache_clear()
    assert kleene.sase(QUERY) == before
    assert starts == ["program"]
    grammar.parser_of.cache_clear()
    assert kleene.sase(QUERY) == before
    assert starts == ["program"], "the second time, they are mended"


def test_without_a_folder_parsers_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "cache_folder", lambda: None)
    grammar.parser_of.cache_clear()
    assert kleene.sase(QUERY).definition.window == Window(5, WindowUnit.ORDER_KEY)
