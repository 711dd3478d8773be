"""A real browser for tests of pages: the one that is on the machine, without a window and without the network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def needs_browser() -> Any:
    found = any(shutil.which(name) for name in NAMES)
    return pytest.mark.skipif(not found, reason="no Chromium on the path; install it: apt-get install chromium")


@dataclass
class Tab:
    """A page, and what it complained of or asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next(path for path in map(shutil.which, NAMES) if path)
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            yield opened
        finally:
            opened.close()


def open_tab(opened: Any, path: Path, theme: str = "light", width: int = 1200, height: int = 800) -> Tab:
    page = opened.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.set_default_timeout(10_000)
    tab = Tab(page)
    page.on("console", lambda message: tab.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (tab.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: tab.requests.append(request.url))
    page.goto(path.as_uri())
    return tab
