"""What a page asks, to an answer that it can show: errors where they are, matches, pictures, the plan and why not.

Everything in an answer comes from calls that users have: `find`, `plot`, `explain` and `why`. Texts are texts; the only
markup is that of the pictures.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.api import Query, match_recognize, sase
from kleene.errors import KleeneError, KleeneWarning, UnsupportedError
from kleene.found import Found
from kleene.markup.tables import cells_of
from kleene.options import EngineOptions
from kleene.play.tables import Offered
from kleene.show import value_text
from kleene.visible import visible

LANGUAGES = {"sase": "SASE", "sql": "MATCH_RECOGNIZE"}
MOST_LETTERS = 20_000
SHOWN_ROWS, SHOWN_LETTERS = 200, 200
_FEW = 10_000
"""Events that the interpreter answers for: it has nothing to make first, and each letter makes another query."""
MOST_FOLLOWED = 5_000  # events and runs that why follows, so that it answers soon
_COUNTED_UP_TO = 5_000  # events: in larger tables, the automaton has no counts
_WIDTH = 760


@dataclass(frozen=True, slots=True)
class Ask:
    """`at` chooses events whose runs are told step by step; empty, none."""

    table: str
    language: str
    query: str
    order_by: str = ""
    at: str = ""


def read_ask(given: object) -> Ask:
    """What a page has sent; an error if it is not of this kind."""
    names = ("table", "language", "query", "order_by", "at")
    if not isinstance(given, dict) or not all(isinstance(given.get(name, ""), str) for name in names):
        raise UnsupportedError("a question has a table, a language and a query, all of them texts")
    ask = Ask(*(given.get(name, "") for name in names))
    if ask.language not in LANGUAGES:
        raise UnsupportedError("the playground knows no such language", hint=f"It knows: {', '.join(LANGUAGES)}.")
    if len(ask.query) > MOST_LETTERS or len(ask.at) > MOST_LETTERS or len(ask.order_by) > MOST_LETTERS:
        raise UnsupportedError(f"the query is longer than {MOST_LETTERS:,} letters")
    return ask


def answer(ask: Ask, tables: Mapping[str, Offered]) -> dict[str, Any]:
    """What the page shows, ready for JSON."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KleeneWarning)
        try:
            found = _answer(ask, tables)
        except KleeneError as error:
            found = {"error": told(error, ask.query)}
        notes = [visible(str(one.message)) for one in caught if isinstance(one.message, KleeneWarning)]
    return found | {"notes": list(dict.fromkeys(notes))}


def _answer(ask: Ask, tables: Mapping[str, Offered]) -> dict[str, Any]:
    offered = tables.get(ask.table)
    if offered is None:
        raise UnsupportedError("there is no such table", hint=f"Tables: {', '.join(tables)}.")
    query = sase(ask.query) if ask.language == "sase" else match_recognize(ask.query)
    options = _options(ask, offered)
    found = query.find(offered.events, engine=engine_for(offered.events), **options)
    return {
        "matches": _matches(found),
        "timeline": _part(lambda: _picture(found)),
        "automaton": _part(lambda: _automaton(query, offered, options)),
        "plan": _part(lambda: {"text": visible(query.explain(offered.events, **options), keep="\n")}),
        "why": _part(lambda: _why(query, offered, options, ask.at)),
    }


def engine_for(events: pa.Table) -> EngineOptions:
    name = "reference" if events.num_rows <= _FEW else "auto"
    return EngineOptions(name, time_limit=10, memory_limit="1 GB", match_limit=50_000)


def _options(ask: Ask, offered: Offered) -> dict[str, Any]:
    if ask.language != "sase":
        return {}
    return {"order_by": ask.order_by or offered.order_by, "type_column": offered.type_column}


def _part(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A part of the answer; where it fails, the others are still there."""
    try:
        return make()
    except KleeneError as error:
        return {"error": told(error, "")}


def _matches(found: Found) -> dict[str, Any]:
    table = found.table
    assert isinstance(table, pa.Table)
    names, rows = cells_of(table.slice(0, SHOWN_ROWS))
    return {"count": len(found), "total": table.num_rows, **shown_rows(names, rows)}


def shown_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    return {
        "columns": [visible(name) for name in names],
        "rows": [[value_text(value)[:SHOWN_LETTERS] for value in row] for row in rows],
        "numeric": [any(isinstance(row[at], (int, float)) for row in rows) for at in range(len(names))],
    }


def _picture(found: Found) -> dict[str, Any]:
    picture = found.plot(size=_WIDTH, limit=6)
    return {"svg": picture.inline(), "note": ""}


def _automaton(query: Query, offered: Offered, options: Mapping[str, Any]) -> dict[str, Any]:
    few = offered.events.slice(0, _COUNTED_UP_TO)
    picture = query.plot(few, "automaton", **options)
    rest = (
        f"; counts are those of the first {_COUNTED_UP_TO:,} events" if few.num_rows < offered.events.num_rows else ""
    )
    return {"svg": picture.inline(), "caption": picture.caption + rest}


def _why(query: Query, offered: Offered, options: Mapping[str, Any], at: str) -> dict[str, Any]:
    most = MOST_FOLLOWED
    why = query.why(offered.events, at=at.strip() or None, max_events=most, max_runs=most, limit=50, **options)
    return {"text": str(why).partition("\n\n")[2]}


def told(error: KleeneError, text: str) -> dict[str, Any]:
    """An error, and where in the text it is, in the units that a browser counts letters by."""
    found: dict[str, Any] = {"message": visible(error.message), "hint": visible(error.hint or "", keep="\n")}
    location = error.location
    if location is not None:
        found["where"] = str(location)
        if location.source.text == text:
            start = min(location.span.start, len(text))
            end = max(min(location.span.end, len(text)), min(start + 1, len(text)))
            found |= {"start": utf16_length(text[:start]), "end": utf16_length(text[:end])}
        else:
            found["excerpt"] = location.excerpt()
    return found


def utf16_length(text: str) -> int:
    """How long the text is in a browser, where letters beyond the first plane count twice.

    >>> utf16_length("a😀")
    3
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def described(offered: Offered) -> dict[str, Any]:
    """A table as the page offers it, with its first rows."""
    names, rows = offered.events.column_names, offered.events.slice(0, 50)
    columns = [column.to_pylist() for column in rows.columns]
    cells = [list(row) for row in zip(*columns, strict=True)]
    return {
        "name": offered.name,
        "label": visible(offered.label),
        "order_by": offered.order_by or "",
        "types": [visible(str(field.type)) for field in offered.events.schema],
        "names": names,
        "count": offered.events.num_rows,
        "left_out": offered.left_out,
        "examples": dict(offered.examples),
        "first": shown_rows(names, cells),
    }
