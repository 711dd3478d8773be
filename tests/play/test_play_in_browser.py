"""The playground in a real browser: type a query, see where it is wrong, mend it, see what it finds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from browsers import browser, needs_browser
from kleene.play.server import Playground
from kleene.play.serving import playground
from kleene.play.tables import given_table, samples

pytestmark = [needs_browser(), pytest.mark.slow]

HOSTILE = "</script><img src=x onerror=alert(1)>"
EVENTS = pa.table({"type": ["A", "B", "B"], "t": [1, 2, 3], "x": [5, 3, 7], HOSTILE: [HOSTILE, "b", HOSTILE]})


@dataclass
class Visit:
    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def wait(self, selector: str, text: str) -> None:
        self.page.locator(selector, has_text=text).wait_for(timeout=30_000)


@pytest.fixture(scope="module")
def server() -> Iterator[Playground]:
    with playground([*samples(), given_table(HOSTILE, EVENTS, "t", "type")]) as one:
        threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
        yield one
        one.shutdown()


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with browser() as one:
        yield one


def visit(opened: Any, server: Playground, theme: str = "light", width: int = 1280) -> Visit:
    page = opened.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.set_default_timeout(30_000)
    found = Visit(page)
    page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (found.complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: found.requests.append(request.url))
    page.goto(server.address)
    found.wait("#count", "match")
    return found


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 600), ("dark", 600)])
def test_the_page_shows_an_answer_at_once_and_nothing_complains(
    opened: Any, server: Playground, theme: str, width: int
) -> None:
    tab = visit(opened, server, theme, width)
    assert tab.text("#count") == "6 matches"
    assert tab.page.locator("#rows tbody tr").count() == 6
    assert tab.page.locator("#timeline svg").bounding_box()["width"] > 300
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if theme == "light" else "rgb(13, 17, 23)")
    assert tab.complaints == []
    assert all(url.startswith((server.address, "data:")) for url in tab.requests)


def test_an_error_is_shown_where_it_is_and_goes_when_it_is_mended(opened: Any, server: Playground) -> None:
    tab = visit(opened, server)
    query = tab.page.input_value("#query")
    tab.page.fill("#query", query.replace("[id]", "[id] AND b.dor_id > 2"))
    tab.wait("#message", "line 2, column 18: event type Exit has no attribute 'dor_id'")
    assert tab.text("#hint").endswith("Did you mean 'door_id'?")
    assert tab.page.locator("#under mark").inner_text() == "dor_id"
    assert tab.page.get_attribute("#query", "aria-invalid") == "true"
    tab.page.click("#goto")
    assert tab.page.evaluate("document.getSelection().toString()") == "dor_id"
    tab.page.keyboard.type("door_id")
    tab.wait("#status", "2 matches")
    assert tab.page.locator("#error").is_hidden()
    assert tab.page.locator("#under mark").count() == 0
    assert tab.page.locator("#rows tbody tr").count() == 2
    assert tab.complaints == []


def test_the_keyboard_reaches_everything(opened: Any, server: Playground) -> None:
    tab = visit(opened, server)
    tab.page.focus("#tab-matches")
    for panel, text in (
        ("why", "runs that reached a state"),
        ("automaton", ""),
        ("plan", "strategy"),
        ("events", "events"),
    ):
        tab.page.keyboard.press("ArrowRight")
        assert tab.page.locator(f"#{panel}").is_visible()
        assert text in tab.text(f"#{panel}")
        assert tab.page.locator("[role=tabpanel]:visible").count() == 1
    assert tab.page.locator("#states svg").count() == 1
    tab.page.keyboard.press("Home")
    assert tab.page.locator("#matches").is_visible()
    tab.page.focus("#query")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.id") == "run"
    tab.page.keyboard.press("Control+Enter")
    tab.wait("#status", "6 matches")
    assert tab.complaints == []


def test_why_tells_the_runs_of_the_events_that_are_asked_for(opened: Any, server: Playground) -> None:
    tab = visit(opened, server)
    tab.page.click("#tab-why")
    tab.page.fill("#at", "id = 'tag-00062'")
    tab.wait("#why-text", "runs, step by step")
    assert "→ match 1" in tab.text("#why-text")


def test_another_language_and_another_table_bring_their_example(opened: Any, server: Playground) -> None:
    tab = visit(opened, server)
    tab.page.select_option("#table", "trades")
    tab.page.select_option("#language", "sql")
    assert "DEFINE B AS" in tab.page.input_value("#query")
    assert tab.page.locator("#order-label").is_hidden()
    tab.wait("#count", "70 matches")
    assert "price int64" in tab.text("#columns")
    assert tab.complaints == []


def test_hostile_names_and_values_are_text(opened: Any, server: Playground) -> None:
    tab = visit(opened, server)
    tab.page.select_option("#table", "given")
    tab.page.fill("#query", f"PATTERN SEQ(A a, B b) WHERE b.x > 1 -- {HOSTILE}")
    tab.wait("#count", "2 matches")
    assert tab.page.locator("#rows tbody tr").count() == 2
    assert HOSTILE in tab.text("#rows")
    tab.page.fill("#query", f"PATTERN SEQ(A a, B b) WHERE b.`{HOSTILE}x` > 1")
    tab.wait("#message", HOSTILE[:20])
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("script").count() == 1
    assert tab.complaints == []


def test_answers_that_come_late_are_dropped(opened: Any, server: Playground) -> None:
    """While one answer is on its way the query changes; only the answer to what is written then is shown."""
    tab = visit(opened, server)
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/ask") else None)
    query = tab.page.input_value("#query")
    for door in ("1", "2", "9"):
        tab.page.fill("#query", query.replace("[id]", f"[id] AND b.door_id = {door}"))
        tab.page.keyboard.press("Control+Enter")
    tab.wait("#status", "0 matches")
    assert len(asked) <= 2  # the first, and the newest of those that waited
    assert tab.page.locator("#rows tbody tr").count() == 0
