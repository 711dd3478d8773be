"""What notebooks show: every letter is there, and none of it is obeyed."""

from __future__ import annotations

import re
from html import unescape

import pyarrow as pa
import pytest

import kleene
from case_files import load_all
from kleene.markup.folding import explanation_html
from kleene.markup.highlight import highlighted

EVENTS = pa.table({"type": ["A", "B"], "t": [1, 2], "k": [1, 1]})
SASE = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] } WITHIN 5")
ROWS = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B+) DEFINE B AS B.t > PREV(B.t)")
STEPS = kleene.begin("a", type="A").next("b").where("k > 0")


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^<>]*>", "", html))


def test_highlighting_changes_no_letter() -> None:
    for case in load_all():
        assert text_of(highlighted(case.query)) == case.query


def test_words_are_marked_by_their_kind() -> None:
    html = highlighted("WHERE a.x > 5 AND b.s = 'PATTERN' AND f(:least) -- WHERE")
    assert re.findall(r'<span class="k-(\w+)">([^<]*)</span>', html) == [
        ("keyword", "WHERE"),
        ("number", "5"),
        ("keyword", "AND"),
        ("string", "&#x27;PATTERN&#x27;"),
        ("keyword", "AND"),
        ("call", "f"),
        ("param", ":least"),
        ("comment", "-- WHERE"),
    ]


@pytest.mark.parametrize("query", [SASE, ROWS, STEPS], ids=["sase", "rows", "steps"])
def test_a_query_shows_its_text_and_its_automaton(query: kleene.Query) -> None:
    html = query._repr_html_()
    assert 'class="kleene-query"' in html
    assert html.count("<svg") == 1
    assert "var(--kleene-ink,#24292f)" in html
    assert "<style>" in html


def test_a_query_that_cannot_be_drawn_shows_its_text() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE a.k > :least")
    assert "k-param" in query._repr_html_()


def test_hostile_names_in_a_query_are_text() -> None:
    query = kleene.match_recognize(
        "ORDER BY t MEASURES A.t AS `</pre><script>alert(1)</script>` PATTERN (A) "
        "DEFINE A AS s = '<img src=x onerror=a()>'"
    )
    html = query._repr_html_()
    assert "<script" not in html
    assert "<img" not in html


@pytest.mark.parametrize("query", [SASE, ROWS, STEPS], ids=["sase", "rows", "steps"])
@pytest.mark.parametrize("analyze", [False, True])
def test_explain_folds_and_loses_no_word(query: kleene.Query, analyze: bool) -> None:
    order = {"engine": "reference"} | ({} if query is ROWS else {"order_by": "t"})
    told = query.explain(EVENTS, analyze=analyze, **order)
    assert isinstance(told, str)
    html = told._repr_html_()
    words = re.findall(r"[^\s│└─]+", told)
    shown = text_of(explanation_html(told))
    missing = [word for word in words if word not in shown]
    assert not missing
    assert html.count("<details") == html.count("</details>") >= 4
    operators = [line for line in told.partition("\nplan\n")[2].partition("\n\n")[0].splitlines() if "└─" in line]
    nested = re.search(r"<summary>plan</summary>(.*?)<summary>(run|automaton|stacks)", html, re.DOTALL)
    assert nested is not None
    assert nested[1].count("<summary>") == len(operators) + 1


def test_explain_prints_as_before() -> None:
    told = SASE.explain()
    assert f"{told}" == str.__str__(told)
    assert repr(told).startswith('"PATTERN SEQ')
    assert type(SASE.explain(svg=True)) is str
