"""Bars of long work: they appear after a while, tell how far the work is, and go."""

import io

import pyarrow as pa
import pytest
import rich.console

import kleene
from kleene import watching

EVENTS = pa.table({"type": ["A", "B"] * 2_000, "t": range(4_000)})
QUERY = kleene.sase("PATTERN SEQ(A a, B b) WITHIN 20 RETURN a.t AS a")


@pytest.fixture
def screen(monkeypatch):
    """A terminal on standard error, and nobody patient in front of it."""
    text, console = io.StringIO(), rich.console.Console
    monkeypatch.setattr(rich.console, "Console", lambda stderr: console(file=text, force_terminal=True, width=100))
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    monkeypatch.setattr(watching, "OFTEN", 0.0)
    yield text
    kleene.show_progress(False)


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_a_long_match_shows_a_bar(engine, screen):
    with kleene.show_progress():
        QUERY.match(EVENTS, order_by="t", engine=engine)
    assert "matching" in screen.getvalue()
    assert "matches so far" in screen.getvalue()


def test_nothing_is_shown_unless_it_is_asked_for(screen):
    with kleene.show_progress():
        pass
    QUERY.match(EVENTS, order_by="t")
    assert screen.getvalue() == ""


def test_short_work_shows_nothing(screen, monkeypatch):
    monkeypatch.setattr(watching, "PATIENCE", 60.0)
    with kleene.show_progress():
        QUERY.match(EVENTS, order_by="t")
    assert screen.getvalue() == ""


def test_it_can_be_switched_on_and_off():
    kleene.show_progress()
    assert watching.is_shown()
    kleene.show_progress(False)
    assert not watching.is_shown()


def test_an_error_takes_the_bar_away(screen):
    with kleene.show_progress(), pytest.raises(kleene.LimitError):
        QUERY.match(EVENTS, order_by="t", engine=kleene.EngineOptions(match_limit=10))
    assert watching.watcher() is None
