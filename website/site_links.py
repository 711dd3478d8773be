"""Pages of the site that are files at the top of the project, and links that lead to them and from them.

A link in Markdown leads from file to file of the project. On the site some of these files have other places, and some
are not there at all: a link to one of those becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOT_PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files at the top of the project, and where they are on the site."""

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def project_path(page: str) -> str:
    """The file of a page of the site in the project.

    >>> project_path("security.md"), project_path("cookbook/fraud.md")
    ('SECURITY.md', 'docs/cookbook/fraud.md')
    """
    return next((file for file, place in ROOT_PAGES.items() if place == page), f"docs/{page}")


def site_path(file: str) -> str | None:
    """The place of a file of the project on the site, if it has one.

    >>> site_path("SECURITY.md"), site_path("docs/steps.md"), site_path("Makefile")
    ('security.md', 'steps.md', None)
    """
    if file in ROOT_PAGES:
        return ROOT_PAGES[file]
    return file.removeprefix("docs/") if file.startswith("docs/") else None


def with_site_links(markdown: str, page: str) -> str:
    """The text of a page, with links that lead from page to page of the site.

    >>> with_site_links("[a](../SECURITY.md#x) [b](steps.md) [c](../Makefile)", "cookbook/fraud.md")
    '[a](../SECURITY.md#x) [b](steps.md) [c](../Makefile)'
    >>> with_site_links("[a](../SECURITY.md#x) [b](steps.md) [c](../Makefile)", "regex.md")
    '[a](security.md#x) [b](steps.md) c'
    """
    folder = posixpath.dirname(project_path(page))

    def rewritten(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        file = posixpath.normpath(posixpath.join(folder, target))
        if not (ROOT / file).exists():
            return link[0]  # MkDocs says so
        place = site_path(file)
        if place is None:
            return link["text"]
        moved = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"{link['image']}[{link['text']}]({moved}{'#' if anchor else ''}{anchor})"

    return _LINK.sub(rewritten, markdown)
