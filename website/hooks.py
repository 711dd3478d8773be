"""What MkDocs calls while it builds the site: see the other files of this folder for what is done."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files
from site_links import ROOT, ROOT_PAGES, with_site_links
from site_pictures import pictures_css, with_pictures, with_places
from site_reference import reference_page
from site_tabs import with_prompts, with_tabs

ASSETS = ("site.css", "iframe-worker.js")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are not in docs/, and what pages need."""
    for file, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / file).read_text(encoding="utf-8")))
    files.append(File.generated(config, "reference.md", content=reference_page()))
    files.append(File.generated(config, "assets/pictures.css", content=pictures_css()))
    for name in ASSETS:
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(ROOT / "website" / "assets" / name)))
    config.nav[-1]["More"] += unlisted_pages(files, config.nav)
    return files


def unlisted_pages(files: Files, nav: Any) -> list[str]:
    """Pages that mkdocs.yml does not list: they come last, so that a new page is never missing."""
    listed = str(nav)
    return sorted(file.src_uri for file in files.documentation_pages() if f"'{file.src_uri}'" not in listed)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Makes links of the project links of the site, tabs of languages, and places for pictures."""
    place = page.file.src_uri
    if config.extra["pictures"]:
        markdown, page.meta["pictures"] = with_places(markdown)
    markdown = with_prompts(with_site_links(markdown, place))
    return with_tabs(markdown) if place.startswith("cookbook/") else markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Puts pictures where they belong: so late, that the search does not index the text in them."""
    return with_pictures(output, page.meta.get("pictures", []))
