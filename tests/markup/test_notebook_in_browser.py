"""What a notebook shows, in a real browser: light or dark as the notebook is, and it folds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import kleene
from browsers import browser, needs_browser, open_tab

pytestmark = [needs_browser(), pytest.mark.slow]

EVENTS = pa.table({"type": ["A", "B"], "t": [1, 2], "k": ["<img src=x onerror=alert(1)>"] * 2})
PAIRS = kleene.sase("EVENT SEQ(A a, B b) WHERE [k]")


def test_queries_results_and_explanations_follow_the_notebook(tmp_path: Path) -> None:
    found = PAIRS.find(EVENTS, order_by="t", engine="reference")
    parts = [PAIRS._repr_html_(), found._repr_html_(), found.explain()._repr_html_(), found.plot()._repr_svg_()]
    with browser() as opened:
        for theme, paper in (("true", "rgb(255, 255, 255)"), ("false", "rgb(13, 17, 23)")):
            path = tmp_path / f"{theme}.html"
            shown = f"<!DOCTYPE html><meta charset=utf-8><body data-jp-theme-light={theme}>{''.join(parts)}"
            path.write_text(shown, encoding="utf-8")
            tab = open_tab(opened, path)
            assert tab.complaints == []
            grounds = "Array.from(document.querySelectorAll('.kleene'), (one) => getComputedStyle(one).backgroundColor)"
            assert set(tab.page.evaluate(grounds)) == {paper}
            drawn = "getComputedStyle(document.querySelector('.kleene svg > rect')).fill"
            assert tab.page.evaluate(drawn) == paper
            assert tab.page.locator("td", has_text="<img src=x onerror=alert(1)>").count() > 0
            summary = tab.page.locator("details > summary", has_text="plan").first
            operator = tab.page.locator("summary", has_text="TF transformation")
            assert operator.is_visible()
            summary.click()
            assert not operator.is_visible()
