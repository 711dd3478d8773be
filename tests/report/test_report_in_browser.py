"""The report in a real browser: what is drawn, the keyboard, contrast, sizes, and values made to break it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kleene
from browsers import browser, needs_browser, open_tab

pytestmark = [needs_browser(), pytest.mark.slow]

HOSTILE = "</script><script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
EVENTS = pa.table(
    {
        "type": ["Shelf", "Register", "Exit"] + ["Shelf", "Exit"] * 11,
        "t": range(25),
        "tag": [HOSTILE] * 3 + [f"{IMAGE} {number:02}" for number in range(11) for _ in range(2)],
        "weight": [9, 1, 1] + [weight for number in range(11) for weight in (number + 5, 30 - 2 * number)],
    }
)
THEFT = kleene.sase("""EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] AND b.weight > 11
    RETURN b.tag AS tag, a.weight AS before, b.weight AS weight""")


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with browser() as one:
        yield one


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return THEFT.find(EVENTS, order_by="t", engine="reference").report(path, title=f"Thefts {HOSTILE}", y="weight")


@pytest.mark.parametrize(("theme", "width"), [("light", 1200), ("dark", 1200), ("light", 420), ("dark", 420)])
def test_everything_is_drawn_and_nothing_complains(opened: Any, report: Path, theme: str, width: int) -> None:
    tab = open_tab(opened, report, theme, width)
    assert tab.complaints == []
    assert tab.requests == [report.as_uri()]
    for picture in tab.page.query_selector_all("svg"):
        box = picture.bounding_box()
        assert box["width"] > 150
        assert box["height"] > 100
    assert tab.page.locator("svg .match").count() == tab.page.locator("#matches tbody tr").count() == 10
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width  # wide parts scroll by themselves
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if theme == "light" else "rgb(13, 17, 23)")
    drawn = tab.page.evaluate("getComputedStyle(document.querySelector('#timeline svg .paper path')).fill")
    assert drawn == paper
    box = tab.page.evaluate("getComputedStyle(document.querySelector('#automaton svg > rect')).fill")
    assert box == paper


def test_hostile_values_are_text(opened: Any, report: Path) -> None:
    tab = open_tab(opened, report)
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("script").count() == 1
    assert HOSTILE in tab.page.locator("h1").inner_text()
    assert IMAGE in tab.page.locator("#matches tbody tr").first.inner_text()
    assert IMAGE[:20] in tab.page.locator("#timeline svg").first.text_content()
    assert tab.complaints == []


def test_the_policy_refuses_what_a_stranger_might_add(opened: Any, report: Path) -> None:
    tab = open_tab(opened, report)
    added = """() => { const one = document.createElement("script"); one.textContent = "window.added = 1";
        document.body.append(one); return window.added ?? null; }"""
    assert tab.page.evaluate(added) is None
    fetched = "() => fetch('http://127.0.0.1:9/').then(() => 'there', (error) => 'refused')"
    assert tab.page.evaluate(fetched) == "refused"
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)


def column(tab: Any, number: int) -> list[str]:
    return tab.page.locator(f"#matches tbody tr:not([hidden]) td:nth-child({number})").all_inner_texts()


def test_headings_sort_by_keyboard_and_tell_so(opened: Any, report: Path) -> None:
    tab = open_tab(opened, report)
    head = tab.page.locator("#matches thead th", has_text="weight")
    button = head.locator("button")
    assert head.get_attribute("aria-sort") == "none"
    button.focus()
    tab.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    numbers = [int(text) for text in column(tab, 3)]
    assert numbers == sorted(numbers)
    assert numbers != sorted(map(str, numbers))
    tab.page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert [int(text) for text in column(tab, 3)] == numbers[::-1]
    other = tab.page.locator("#matches thead button", has_text="tag")
    other.click()
    assert head.get_attribute("aria-sort") == "none"
    assert column(tab, 1) == sorted(column(tab, 1))


def test_the_filter_keeps_rows_that_have_all_words(opened: Any, report: Path) -> None:
    tab = open_tab(opened, report)
    box = tab.page.locator("#matches input")
    box.focus()
    tab.page.keyboard.type("IMG 07")
    assert tab.page.locator("#matches [role=status]").inner_text() == "1 of 10 rows"
    assert len(column(tab, 1)) == 1
    tab.page.keyboard.type(" nowhere")
    assert tab.page.locator("#matches [role=status]").inner_text() == "0 of 10 rows"
    box.fill("")
    assert len(column(tab, 1)) == 10


def test_the_keyboard_reaches_everything_and_shows_where_it_is(opened: Any, report: Path) -> None:
    tab = open_tab(opened, report)
    tab.page.keyboard.press("Tab")
    skip = tab.page.locator(".skip")
    assert tab.page.evaluate("document.activeElement.className") == "skip"
    assert skip.bounding_box()["x"] >= 0
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "main"
    seen = set()
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        seen.add(tab.page.evaluate("document.activeElement.tagName + '.' + (document.activeElement.role || '')"))
        if tab.page.evaluate("document.activeElement === document.body"):
            break
        outline = tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", "")
    assert {"INPUT.", "BUTTON.", "SUMMARY.", "DIV.region"} <= seen


def test_details_open_and_close_by_keyboard(opened: Any, report: Path) -> None:
    tab = open_tab(opened, report)
    tab.page.locator("#plan summary", has_text=re.compile("^(automaton|stacks)$")).focus()
    details = tab.page.locator("#plan > details").last
    assert details.get_attribute("open") is None
    tab.page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || node.closest("script, style, title")) continue;
    const style = getComputedStyle(node);
    const isDrawn = node.closest("svg") !== null;
    const ink = parse(isDrawn ? style.fill : style.color);
    if (ink.length < 3) continue;
    const [low, high] = [light(ink), light(ground(isDrawn ? node.closest("figure") : node))].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), node.tagName + ": " + walker.currentNode.textContent.trim()]);
  }
  return found;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_enough_contrast(opened: Any, report: Path, theme: str) -> None:
    found = open_tab(opened, report, theme).page.evaluate(CONTRAST)
    assert len(found) > 200
    assert [item for item in found if item[0] < 4.5] == []


def test_a_picture_is_a_page_of_its_own(opened: Any, tmp_path: Path) -> None:
    for kind in ("timeline", "automaton", "lengths"):
        path = THEFT.plot(EVENTS, kind, order_by="t").save(tmp_path / f"{kind}.html")
        tab = open_tab(opened, path, "dark")
        assert tab.complaints == []
        assert tab.requests == [path.as_uri()]
        assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
        assert tab.page.locator("svg").bounding_box()["width"] > 300
