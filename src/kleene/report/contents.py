"""What was found to a report: the query, what it did with the events, and what it nearly found."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleene.api import prepare
from kleene.errors import UnsupportedError, printable
from kleene.files.replacing import replaced_file
from kleene.found import Found, rows_in
from kleene.markup.folding import explanation_html
from kleene.markup.highlight import highlighted
from kleene.markup.tables import cells_of, first_rows
from kleene.plot.figures import check_installed
from kleene.plot.states import WITHOUT_STEPS, automaton_picture, why_for
from kleene.report.page import Rows, Section, page_html, region_html
from kleene.visible import visible
from kleene.why.answer import Why
from kleene.why.text import counted, miss_text
from kleene.why.words import bound_text, key_text

if TYPE_CHECKING:
    from kleene.plot.picture import Picture
    from kleene.plot.seen import Seen

_WIDE = 1072  # pixels: as wide as the page
FIRST_ROWS = 500
"""Rows of the table of matches: more of them make a page slow, and nobody reads them."""


def write_report(found: Found, path: Any, title: str | None, y: str | None) -> Path:
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise UnsupportedError(
            f"a report cannot be written to '{printable(str(target))}'", hint="It is a page: the name ends in .html."
        )
    page = report_html(found, title, y)
    with replaced_file(target) as file:
        file.write(page.encode())
    return target


def report_html(found: Found, title: str | None = None, y: str | None = None) -> str:
    """The report as one page."""
    check_installed()
    why, matches, seen = why_for(found.call(), found.events), len(found), found.seen()
    plan = found.explain()
    text = str(plan).partition("\n\n")[0]
    timeline = found.plot(size=_WIDE)
    counts = [("events", f"{len(seen):,}"), ("matches", f"{matches:,}")]
    counts += [("keys", f"{len(seen.keys):,}")] if seen.keys.names else []
    counts += (
        []
        if why is None
        else [("runs followed", f"{why.runs_followed:,}"), ("near misses told", f"{len(why.misses):,}")]
    )
    sections = [
        Section("query", "Query", f'<pre class="kleene-query">{highlighted(text)}</pre>'),
        Section("matches", "Matches", _matches_html(found, matches)),
        Section("timeline", "On a timeline", _large("Matches on a timeline", timeline)),
        *(
            [
                Section(
                    "values", f"Values of {visible(y)}", _large(f"Values of {y}", found.plot("values", y=y, size=_WIDE))
                )
            ]
            if y
            else []
        ),
        *_distribution(found, matches),
        Section("automaton", "The automaton", _automaton_html(found, why)),
        Section("why", "What passed, and what stopped", _why_html(why)),
        Section("near-misses", "Near misses", _misses_html(why)),
        Section("plan", "The plan, and what each operator did", explanation_html(str(plan), with_query=False)),
    ]
    return page_html(title or "Report of a query", _lead(seen, matches), counts, sections)


def _lead(seen: Seen, matches: int) -> str:
    keys = f", in {counted(len(seen.keys), 'key')}" if seen.keys.names else ""
    return f"{counted(matches, 'match', 'matches')} among {counted(len(seen), 'event')}{keys}."


def _figure(picture: Picture) -> str:
    return f"<figure>{picture.inline()}</figure>"


def _large(label: str, picture: Picture) -> str:
    return region_html(label, _figure(picture))


def _matches_html(found: Found, matches: int) -> str:
    if not matches:
        return "<p>There is no match. The sections below tell what stopped the runs, and what nearly matched.</p>"
    first = first_rows(found.table, FIRST_ROWS)
    total = rows_in(found.table)
    which = "All rows." if first.num_rows == total else f"The first {first.num_rows:,} of {total:,} rows."
    names, rows = cells_of(first)
    return (
        f'<p class="pale">{which} Sort by a column\'s heading; a filter keeps rows that have all its words.</p>'
        + Rows("matches", names, rows).html()
    )


def _distribution(found: Found, matches: int) -> Iterator[Section]:
    if matches:
        pair = "".join(_figure(found.plot(kind, size=(520, 300))) for kind in ("lengths", "durations"))
        over = _large("Matches over time", found.plot("over_time", size=(_WIDE, 260)))
        yield Section("counts", "How long, and when", f'<div class="pair">{pair}</div>{over}')


def _automaton_html(found: Found, why: Why | None) -> str:
    plan = prepare(found.call(), found.events)[1]
    picture = automaton_picture(plan, why, "light", (0, None))
    return region_html("The automaton, with how many runs came where", _figure(picture), "wide")


def _why_html(why: Why | None) -> str:
    if why is None:
        return f"<p>{escape(WITHOUT_STEPS.capitalize())}.</p>"
    names = ("variable", "asked", "events asked", "passed", "runs stopped")
    rows = [
        [row["variable"], row["predicate"], row["events"], row["passed"], "–" if row["is_type"] else row["stopped"]]
        for row in why.summary.to_pylist()
    ]
    ended = ", ".join(f"{one.name} {one.runs:,}" for one in why.ended)
    notes = "".join(f"<p>{escape(visible(note))}.</p>" for note in why.notes)
    return (
        f"<p>Runs ended by: {escape(visible(ended)) or 'nothing'}.</p>{notes}" + Rows("predicates", names, rows).html()
    )


def _misses_html(why: Why | None) -> str:
    if why is None:
        return f"<p>{escape(WITHOUT_STEPS.capitalize())}.</p>"
    if not why.misses:
        return "<p>No run failed by one thing only.</p>"
    names = ("key", "bound so far", "what was missing", "else a match")
    rows = [
        [key_text(miss.key), bound_text(miss.bound), miss_text(miss), "yes" if miss.would_match else "no"]
        for miss in why.misses
    ]
    said = f"{counted(len(rows), 'run')} that failed by one thing only. Rows are those of the input, counted from 0."
    return f"<p>{said}</p>" + Rows("near misses", names, rows).html()
