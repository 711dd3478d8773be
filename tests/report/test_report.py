"""The report as text: what stands in it, and what may not."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import kleene
from kleene.report.contents import report_html

EVENTS = pa.table(
    {
        "type": ["Shelf", "Shelf", "Register", "Exit", "Exit", "Exit"],
        "t": [1, 2, 3, 4, 5, 20],
        "tag": [7, 8, 7, 7, 8, 8],
        "weight": [5, 9, 1, 4, 6, 1],
    }
)
THEFT = kleene.sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] AND b.weight < a.weight WITHIN 10")
QUICK = "reference"  # no machine code is made for these
VOID = {"meta", "input", "br", "path", "use", "rect", "link", "img"}


class Page(HTMLParser):
    """Checks that tags close in order, and gathers ids, sections and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        assert not [name for name in given if name.startswith("on")], given
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def test_a_report_has_all_its_parts_and_is_well_formed() -> None:
    text = report_html(THEFT.find(EVENTS, order_by="t", engine=QUICK), "Thefts", y="weight")
    page = Page(text)
    sections = ["query", "matches", "timeline", "values", "counts", "automaton", "why", "near-misses", "plan"]
    assert [one for one in page.ids if one in sections] == sections
    assert set(page.links) == {"#main", *(f"#{one}" for one in sections)}
    assert page.tags.count("script") == 1
    assert page.tags.count("svg") == 6
    assert page.tags.count("h1") == 1
    assert "row 2 Register at 3 is r, which must not be there; else a match" in text
    assert "begin: 2 runs" in text
    assert "<summary>plan</summary>" in text
    for count, name in (("6", "events"), ("1", "matches"), ("2", "keys")):
        assert f"<dt>{name}</dt><dd>{count}</dd>" in text


def test_ids_of_the_page_are_there_once() -> None:
    page = Page(report_html(THEFT.find(EVENTS, order_by="t", engine=QUICK)))
    own = [one for one in page.ids if not re.fullmatch(r"[mp][0-9a-f]{10}", one)]
    assert len(own) == len(set(own))


def test_the_page_reaches_for_nothing() -> None:
    text = report_html(THEFT.find(EVENTS, order_by="t", engine=QUICK))
    assert "default-src &#x27;none&#x27;; script-src &#x27;sha256-" in text
    assert "http" not in text.replace("http://www.w3.org/", "").replace("http-equiv", "")
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")


@pytest.mark.parametrize(
    "query",
    [
        kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.weight > A.weight"),
        kleene.match_recognize("ORDER BY t ALL ROWS PER MATCH PATTERN (A B) DEFINE B AS B.weight > A.weight"),
        kleene.pattern_window(
            "ORDER BY t MEASURES A.t AS a ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A B) "
            "DEFINE B AS B.weight > A.weight"
        ),
        kleene.regex(pattern=". up", order_by="t", predicates={"up": "weight > Last(weight)"}, output={"n": "Count()"}),
    ],
    ids=["one row", "all rows", "window", "regex"],
)
def test_every_language_has_a_report(query: kleene.Query) -> None:
    found = query.find(EVENTS, engine=QUICK)
    text = report_html(found)
    Page(text)
    assert len(found) > 0
    assert f"<dt>matches</dt><dd>{len(found)}</dd>" in text


def test_steps_have_a_report_that_says_what_it_lacks() -> None:
    pattern = kleene.begin("a", type="Shelf").followed_by("b", type="Exit").partition_by("tag")
    text = report_html(pattern.find(EVENTS, order_by="t", engine=QUICK))
    Page(text)
    assert "<dt>matches</dt><dd>2</dd>" in text


def test_without_a_match_the_report_tells_what_nearly_matched() -> None:
    nothing = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND b.weight > 100").find(
        EVENTS, order_by="t", engine=QUICK
    )
    text = report_html(nothing)
    Page(text)
    assert "There is no match." in text
    assert "b.weight &gt; 100 is FALSE (b.weight = 4)" in text
    Page(report_html(THEFT.find(EVENTS.slice(0, 0), order_by="t", engine=QUICK)))


def test_a_report_is_written_beside_and_renamed(tmp_path: Path) -> None:
    found = THEFT.find(EVENTS, order_by="t", engine=QUICK)
    assert found.report(tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(kleene.UnsupportedError, match=r"the name ends in \.html"):
        found.report(tmp_path / "r.pdf")


def test_the_table_is_bounded_and_says_so() -> None:
    events = pa.table({"type": ["A"] * 700, "t": range(700)})
    text = report_html(kleene.sase("EVENT A a").find(events, order_by="t", engine=QUICK))
    assert "The first 500 of 700 rows." in text
    assert len(text) < 2_000_000
