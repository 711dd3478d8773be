"""The documentation site is built without a warning, is whole in itself, and can be searched without a network."""

from __future__ import annotations

import json
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import kleene

ROOT = Path(__file__).parent.parent.parent
COOKBOOK = ROOT / "docs" / "cookbook"
sys.path.append(str(ROOT / "website"))

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}
"""Tags that load what an attribute names; `a` only leads there."""


class _Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag in LOADS and named.get(LOADS[tag]):
            self.loaded.append(named[LOADS[tag]])
        if named.get("srcset"):
            self.loaded += [part.split()[0] for part in named["srcset"].split(",")]
        if tag == "a" and named.get("href"):
            self.links.append(named["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("material", reason="needs MkDocs Material: pip install 'kleene[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    config.extra["pictures"] = False  # their code is run by the tests of the pages
    build(config)
    return folder


def addresses_of(page: Path) -> _Addresses:
    found = _Addresses()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def is_outside(address: str) -> bool:
    return re.match(r"(?i)(https?:)?//", address) is not None


@pytest.mark.slow
def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 35
    assert not [(page.name, one) for page in pages for one in addresses_of(page).loaded if is_outside(one)]
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_links_lead_to_pages_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        for address in addresses_of(page).links + addresses_of(page).loaded:
            if not is_outside(address) and not address.startswith(("#", "data:", "mailto:")):
                assert (page.parent / unquote(address).split("#")[0].split("?")[0]).exists(), (page.name, address)


@pytest.mark.slow
def test_search_knows_questions_and_calls_but_no_markup(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = {entry["title"] for entry in entries}
    assert {"Card testing", "Head and shoulders", "Strategies"} <= titles
    assert any(entry["location"] == "reference.html#kleene.sase" for entry in entries)


@pytest.mark.slow
def test_reference_has_every_public_name(site: Path) -> None:
    text = (site / "reference.html").read_text(encoding="utf-8")
    assert not [name for name in kleene.__all__ if f'id="kleene.{name}"' not in text]
    assert "&gt;&gt;&gt;" in text
    assert "<blockquote>" not in text


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs a browser: apt-get install chromium")
def test_site_can_be_searched_as_files(site: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="needs pip install playwright")
    trouble: list[str] = []
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        page = browser.new_page()
        page.on("console", lambda line: trouble.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda asked: trouble.append(asked.url) if is_outside(asked.url) else None)
        page.goto((site / "index.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("shoplifting")
        found = page.locator("a.md-search-result__link").first
        found.wait_for(timeout=20_000)
        assert "goods.html" in (found.get_attribute("href") or "")
        for other in ("reference.html", "longest_run.html", "cookbook/fraud.html"):
            page.goto((site / other).as_uri())
        tabs = page.locator(".tabbed-labels").first
        tabs.get_by_text("Steps", exact=True).click()
        assert page.get_by_text('kleene.begin("tiny")').first.is_visible()
        browser.close()
    assert not trouble


def headings(page: Path) -> list[str]:
    return re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def test_index_of_the_cookbook_has_every_question() -> None:
    pages = sorted(path for path in COOKBOOK.glob("*.md") if path.name != "index.md")
    questions = [f"{page.name}#{anchor(heading)}" for page in pages for heading in headings(page)]
    index = (COOKBOOK / "index.md").read_text(encoding="utf-8")
    assert len(questions) >= 24
    assert sorted(re.findall(r"\((\w+\.md#[\w-]+)\)", index)) == sorted(questions)


@pytest.mark.parametrize("page", sorted(COOKBOOK.glob("[!i]*.md")), ids=lambda page: page.stem)
def test_every_question_has_data_answer_and_picture(page: Path) -> None:
    for text in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = text.split("\n")[0]
        assert re.search(r"^\*\*.+\?\*\*$", text, re.MULTILINE), title
        assert text.count("#### Answer") == 1, title
        answer = text.split("#### Answer")[1]
        assert "agree(" in answer, title
        assert ">>> picture = " in answer, title


def test_pictures_stand_below_the_code_that_draws_them() -> None:
    pytest.importorskip("matplotlib", reason="needs pip install 'kleene[plot]'")
    from site_pictures import with_pictures, with_places

    page = """Before.

```python
>>> import kleene, pyarrow as pa
>>> trades = pa.table({"t": [1, 2, 3], "price": [3, 2, 1]})
>>> falls = kleene.match_recognize("ORDER BY t PATTERN (A B+) DEFINE B AS price < PREV(price)")
>>> picture = falls.plot(trades, "values", y="price")

```

After.
"""
    text, drawn = with_places(page)
    assert re.search(r"```\n\n<div data-picture=\"0\"></div>\n\n\nAfter", text)
    shown = with_pictures(text, drawn)
    assert shown.count("<svg") == 1
    assert "var(--kleene-" in shown
    assert "data-picture" not in shown


def test_every_question_of_a_page_is_drawn() -> None:
    pytest.importorskip("matplotlib", reason="needs pip install 'kleene[plot]'")
    from site_pictures import with_places

    page = COOKBOOK / "shop.md"
    _, drawn = with_places(page.read_text(encoding="utf-8"))
    assert len(drawn) == len(headings(page))
    assert all("<svg" in figure and "http-equiv" not in figure for figure in drawn)


def test_page_whose_code_fails_is_an_error() -> None:
    pytest.importorskip("matplotlib", reason="needs pip install 'kleene[plot]'")
    from site_pictures import with_places

    with pytest.raises(ZeroDivisionError):
        with_places("```python\n>>> picture = 1 / 0\n```")
