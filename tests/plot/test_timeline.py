"""Timelines and values: which marks a picture has, for every language, and what its caption says was left out."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import kleene
from pictured import groups, marks, texts

READINGS = pa.table(
    {
        "type": ["Shelf", "Shelf", "Register", "Shelf", "Exit", "Exit", "Other"],
        "t": [1, 2, 4, 5, 6, 7, 8],
        "tag": [7, 9, 7, 9, 7, 9, 9],
    }
)
THEFT = kleene.sase(
    "PATTERN SEQ(Shelf+ a[], !(Register r), Exit b) WHERE skip_till_next_match(a[], r, b) { [tag] } WITHIN 12"
)
TRADES = pa.table({"t": [4, 3, 2, 1, 5, 6], "symbol": ["x"] * 4 + ["y"] * 2, "price": [7.0, 8.0, 9.0, 10.0, 5.0, 4.0]})
FALLS = "PARTITION BY symbol ORDER BY t {} PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)"
LANGUAGES = {
    "row pattern": (kleene.match_recognize(FALLS.format("MEASURES A.price AS top")), 2, {1: 2, 2: 4}),
    "all rows": (kleene.match_recognize(FALLS.format("ALL ROWS PER MATCH")), 2, {1: 2, 2: 4}),
    "window": (
        kleene.pattern_window(
            FALLS.format(
                "MEASURES A.price AS top ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING AFTER MATCH SKIP TO NEXT ROW"
            )
        ),
        4,
        {1: 4, 2: 7},
    ),
    "regex": (
        kleene.regex(
            pattern=". fall+",
            order_by="t",
            partition_by="symbol",
            predicates={"fall": "price < Last(price)"},
            output={"n": "Count()"},
        ),
        3,
        {1: 6},
    ),
}


def test_each_match_is_a_line_with_a_mark_for_each_selected_event() -> None:
    picture = THEFT.plot(READINGS, order_by="t")
    svg = picture.svg()
    assert groups(svg)["match"] == 2
    assert marks(svg, "selected variable-1") == 3
    assert marks(svg, "selected variable-2") == 2
    assert {"a (Shelf)", "b (Exit)", "!r, forbidden", "7", "9"} <= set(texts(svg))
    assert picture.caption == "2 matches among 7 events in 2 keys"


def test_events_that_no_match_has_are_faint_and_negated_ones_are_marked() -> None:
    svg = THEFT.plot(READINGS, order_by="t").svg()
    assert marks(svg, "event") == 3  # the shelf and exit reading of tag 7, and the one of another type
    assert marks(svg, "forbidden") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_timeline(language: str) -> None:
    query, matches, marked = LANGUAGES[language]
    svg = query.plot(TRADES).svg()
    assert groups(svg)["match"] == matches
    for variable, count in marked.items():
        assert marks(svg, f"selected variable-{variable}") == count


def test_patterns_in_steps_have_a_timeline_also_with_groups_that_repeat() -> None:
    pair = kleene.begin("a", type="Shelf").followed_by("b", type="Exit")
    pattern = kleene.begin(pair).times(1, 2).partition_by("tag")
    svg = pattern.plot(READINGS, order_by="t").svg()
    assert groups(svg)["match"] == len(pattern.match(READINGS, order_by="t"))
    assert marks(svg, "selected variable-1") == 3


def test_values_have_a_panel_for_each_key_with_spans_shaded() -> None:
    query, matches, marked = LANGUAGES["row pattern"]
    picture = query.plot(TRADES, "values", y="price")
    svg = picture.svg()
    assert groups(svg)["panel"] == 2
    assert groups(svg)["span"] == matches
    assert groups(svg)["series"] == 2
    assert marks(svg, "selected variable-2") == marked[2]
    assert picture.caption == "price: 2 matches among 6 events in 2 keys"


def test_keys_are_chosen_by_their_number_of_matches_and_the_caption_says_so() -> None:
    events = pa.table(
        {"type": ["A", "B"] * 30 + ["A", "B", "B"], "t": range(63), "k": [n // 2 for n in range(60)] + [40] * 3}
    )
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE [k]")
    picture = query.plot(events, order_by="t", limit=3)
    assert "3 of 31 keys, those with most matches" in picture.caption
    assert {"40", "0", "1"} <= set(texts(picture.svg()))
    assert groups(picture.svg())["match"] == 4


def test_matches_that_overlap_too_much_are_left_out_and_counted() -> None:
    events = pa.table({"type": ["A"] * 20 + ["B"], "t": range(21)})
    picture = kleene.sase("EVENT SEQ(A a, A c, B b)").plot(events, order_by="t")
    drawn = groups(picture.svg())["match"]
    assert f"not drawn: {190 - drawn} matches where more than {drawn} overlap" in picture.caption


def test_asked_keys_are_drawn_and_unknown_ones_are_an_error() -> None:
    assert "9" not in texts(THEFT.plot(READINGS, order_by="t", keys=7).svg())
    with pytest.raises(kleene.SchemaError, match="no event has the key tag = 8"):
        THEFT.plot(READINGS, order_by="t", keys={"tag": 8})


def test_points_are_thinned_but_lowest_and_highest_stay() -> None:
    count = 6_000
    trades = pa.table({"t": range(count), "price": [0.0] * 3_000 + [500.0] + [1.0] * (count - 3_001)})
    query = kleene.match_recognize("ORDER BY t PATTERN (A) DEFINE A AS A.price > 400")
    picture = query.plot(trades, "values", y="price")
    assert "between the lowest and the highest of a moment" in picture.caption
    assert marks(picture.svg(), "event") < 2_000
    assert marks(picture.svg(), "selected variable-1") == 1


def test_times_are_shown_on_the_clock_of_their_zone() -> None:
    start = dt.datetime(2024, 1, 2, 9, tzinfo=dt.UTC)
    times = pa.array([start, start + dt.timedelta(hours=1)], pa.timestamp("us", "Asia/Tokyo"))
    picture = kleene.sase("EVENT SEQ(A a, B b)").plot(pa.table({"type": ["A", "B"], "ts": times}), order_by="ts")
    shown = texts(picture.svg())
    assert "ts (Asia/Tokyo)" in shown
    assert "18:00" in shown


@pytest.mark.parametrize("events", [READINGS.slice(0, 0), READINGS.slice(0, 1)])
def test_nothing_to_draw_is_drawn(events: pa.Table) -> None:
    assert groups(THEFT.plot(events, order_by="t").svg())["match"] == 0
    assert THEFT.plot(events, "values", y="tag", order_by="t").png()[:4] == b"\x89PNG"
