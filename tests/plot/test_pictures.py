"""Pictures as values: what they can become, what they leave alone, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import kleene
from kleene.markup.themes import DARK, LIGHT, THEMES, Theme, following, theme_of
from pictured import groups, marks, texts, tree_of

EVENTS = pa.table(
    {"type": ["A", "B"] * 3, "t": range(6), "k": ["x", "x", "y", "y", "z", "z"], "v": [1.5, 2, 3, 4, 5, 6]}
)
PAIRS = kleene.sase("EVENT SEQ(A a, B b) WHERE [k]")
HOSTILE = [
    "</svg><script>alert(1)</script>",
    "$\\frac{1}{0}$",
    '"><img src=x onerror=alert(1)>',
    "a\x00\x1b[31m\u202e\ufffe",
]
KINDS = ("timeline", "values", "near_misses", "automaton", "lengths", "durations", "over_time")


def picture(kind: str, events: pa.Table = EVENTS, **options) -> kleene.Picture:
    return PAIRS.plot(events, kind, y="v" if kind == "values" else None, order_by="t", **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_kind_is_svg_in_both_themes_and_always_the_same(kind: str, theme: str) -> None:
    first, second = picture(kind, theme=theme), picture(kind, theme=theme)
    assert first == second
    assert first.svg() == second.svg()
    root = tree_of(first.svg())
    assert root.get("role") == "img"
    assert first.caption in root.get("aria-label", "")
    assert theme_of(theme).paper in first.svg()
    assert theme_of("dark" if theme == "light" else "light").ink not in first.svg()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_png_of_its_size(kind: str) -> None:
    made = picture(kind, size=480)
    png = made.png(scale=1)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert made.size[0] == 480
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == made.size


def test_a_picture_is_saved_by_the_ending_of_its_name(tmp_path: Path) -> None:
    made = picture("timeline")
    assert made.save(tmp_path / "a.svg").read_text(encoding="utf-8").endswith(made.svg())
    assert made.save(str(tmp_path / "a.PNG")).read_bytes() == made.png()
    assert made.save(tmp_path / "a.html").read_text(encoding="utf-8") == made.html()
    with pytest.raises(kleene.UnsupportedError, match=r"it ends in \.svg, \.png or \.html"):
        made.save(tmp_path / "a.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.PNG", "a.html", "a.svg"]


def test_a_picture_is_a_value() -> None:
    made = picture("timeline")
    with pytest.raises(AttributeError):
        made.caption = "other"  # type: ignore[misc]
    assert made != picture("timeline", theme="dark")
    assert made._repr_svg_() == made.svg()
    assert "<svg" not in repr(made)


def test_a_page_follows_light_and_dark_and_reaches_for_nothing() -> None:
    for theme in THEMES:
        page = picture("timeline", theme=theme).html()
        assert "prefers-color-scheme:dark" in page
        assert "default-src 'none'" in page
        assert f"var(--kleene-ink,{theme_of(theme).ink})" in page
        assert "http" not in page.replace("http://www.w3.org/", "").replace("http-equiv", "")


def test_colours_in_texts_stay_as_they_are() -> None:
    odd = [f'style="fill: {LIGHT.ink}"', '<g id="font-family: x"']
    events = EVENTS.set_column(2, "k", pa.array([odd[0], odd[0], odd[1], odd[1], "z", "z"]))
    assert set(odd) <= set(texts(following(picture("timeline", events).svg(), "light")))


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_values_are_text_whatever_they_say(kind: str) -> None:
    keys = [text for text in HOSTILE for _ in range(2)]
    columns = {text: range(len(keys)) for text in HOSTILE}
    events = pa.table(
        {"type": ["A", "B"] * len(HOSTILE), "t": range(len(keys)), "k": keys, "v": range(len(keys)), **columns}
    )
    made = picture(kind, events)
    svg = made.svg()
    assert not list(tree_of(svg).iter("{http://www.w3.org/2000/svg}script"))
    assert "<script" not in made.html()
    assert "<img" not in made.html()
    assert "\x1b" not in svg
    if kind == "timeline":
        assert HOSTILE[1] in texts(svg)  # dollars are no mathematics
    assert made.png(scale=0.5)[:4] == b"\x89PNG"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(160, 160), (4_000, 170)])
def test_sizes_that_leave_no_room_are_drawn_all_the_same(kind: str, size: tuple[int, int]) -> None:
    long = EVENTS.set_column(2, "k", pa.array([letter * 300 for letter in "xxyyzz"]))
    assert picture(kind, long, size=size).size == size


def test_hostile_columns_can_be_drawn() -> None:
    name = "</title><script>alert(1)</script>$x_1$"
    events = EVENTS.append_column(name, EVENTS.column("v"))
    made = PAIRS.plot(events, "values", y=name, order_by="t")
    assert "<script" not in made.svg()
    assert "<script" not in made.html()


def test_drawing_changes_nothing_of_matplotlib() -> None:
    code = """
import sys
import matplotlib
matplotlib.rcParams["text.usetex"] = True
matplotlib.rcParams["lines.linewidth"] = 17
def settings():
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}  # it imports pyplot
before = settings()
import pyarrow as pa, kleene
events = pa.table({"type": ["A", "B"], "t": [1, 2]})
made = kleene.sase("EVENT SEQ(A a, B b)").plot(events, order_by="t")
made.png()
print(settings() == before, "matplotlib.pyplot" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False"]


def test_missing_matplotlib_is_reported_with_its_install_line() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
import pyarrow as pa, kleene
events = pa.table({"type": ["A", "B"], "t": [1, 2]})
found = kleene.sase("EVENT SEQ(A a, B b)").find(events, order_by="t")
print(len(found), len(found._repr_html_()) > 100)
for use in (found.plot, lambda: found.report("x.html")):
    try:
        use()
    except kleene.UnsupportedError as error:
        print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message = ["pictures need the package 'matplotlib'", "Install it: pip install 'kleene[plot]'"]
    assert found.stdout.splitlines() == ["1 True", *message, *message]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "timelines"}, "Did you mean 'timeline'?"),
        ({"kind": "values"}, 'plot(events, "values", y="price")'),
        ({"kind": "values", "y": "vv"}, "Did you mean 'v'?"),
        ({"kind": "values", "y": "k"}, "Columns of numbers: t, v."),
        ({"kind": "values", "y": 7}, "y is the name of a column"),
        ({"y": "v"}, 'y is for kind="values"'),
        ({"theme": "blue"}, "It can be: light, dark"),
        ({"limit": 0}, "limit is a whole number from 1 up"),
        ({"limit": 5_000}, "limit is 200 at most"),
        ({"size": (10, 10)}, "in pixels from 160 to 4,000"),
        ({"size": "large"}, "size is a width"),
        ({"keys": "w"}, "no event has the key"),
        ({"kind": "lengths", "keys": "x"}, "keys chooses what a timeline and values draw"),
    ],
)
def test_wrong_arguments_are_errors_with_a_way_out(options: dict, says: str) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        PAIRS.plot(EVENTS, order_by="t", **options)
    assert says in str(caught.value)


def test_a_wrong_scale_is_an_error() -> None:
    with pytest.raises(kleene.UnsupportedError, match="scale is a number"):
        picture("timeline").png(scale=100)


def test_histograms_have_a_bar_for_each_length() -> None:
    events = pa.table({"type": ["A", "A", "B", "A", "B"], "t": [1, 2, 3, 10, 30], "k": [1, 1, 1, 2, 2]})
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] }")
    lengths = query.plot(events, "lengths", order_by="t")
    assert groups(lengths.svg())["bar"] == 2  # of two events and of three
    assert lengths.caption.endswith("median 2, longest 3 events")
    assert "longest 20 units of t" in query.plot(events, "durations", order_by="t").caption
    assert groups(query.plot(events, "over_time", order_by="t").svg())["bar"] == 2


def test_the_automaton_says_how_many_runs_came_where() -> None:
    svg = PAIRS.plot(EVENTS, "automaton", order_by="t").svg()
    assert "begin: 3 runs" in texts(svg)
    assert [text for text in texts(svg) if text == "3"] == ["3"]  # matches, at F
    rows = kleene.match_recognize("ORDER BY t MEASURES A.v AS v PATTERN (A B) DEFINE B AS B.v > 3")
    svg = rows.plot(EVENTS, "automaton").svg()
    assert {"4", "2"} <= set(texts(svg))
    steps = kleene.begin("a", type="A").next("b", type="B").plot(EVENTS, "automaton", order_by="t")
    assert groups(steps.svg())["state"] == 2
    relaxed = kleene.begin("a", type="A").followed_by("b", type="B")
    taken = [text for text in texts(relaxed.plot(EVENTS, "automaton", order_by="t").svg()) if "take: " in text]
    reached = relaxed.why(EVENTS, order_by="t").reached
    assert taken == [f"take: {one.runs} {'run' if one.runs == 1 else 'runs'}" for one in reached]
    loop = kleene.begin("a", type="A").followed_by("b", type="B").one_or_more().optional()
    assert "Σ is a count for all states of a variable together" in loop.plot(EVENTS, "automaton", order_by="t").caption


def test_runs_that_a_negation_stopped_are_shown_where_it_counted() -> None:
    events = pa.table({"type": ["A", "N", "B", "N"], "t": [1, 2, 3, 9], "k": [1] * 4, "v": [1, 5, 1, 1]})
    query = kleene.sase("EVENT SEQ(A a, !(N n), B b) WHERE [k] AND n.v > 2")
    svg = query.plot(events, order_by="t").svg()
    assert groups(svg)["stopped"] == 1
    assert marks(svg, "stopping") == 1
    assert marks(svg, "forbidden") == 1  # the other N is none that the negation forbids
    assert marks(svg, "nearly variable-1") == marks(svg, "nearly variable-2") == 1


def test_pictures_do_not_need_what_the_query_returns() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] RETURN 1 / 0 AS nothing")
    assert groups(query.plot(EVENTS, order_by="t").svg())["match"] == 3
    total = kleene.sase("PATTERN SEQ(A a, B b) WHERE [k] RETURN count(*) AS n")
    assert groups(total.plot(EVENTS, order_by="t").svg())["match"] == 3


def test_events_of_every_kind_of_input_are_drawn() -> None:
    by_type = {
        "A": EVENTS.filter(pa.compute.equal(EVENTS["type"], "A")).drop_columns(["type"]),
        "B": EVENTS.filter(pa.compute.equal(EVENTS["type"], "B")).drop_columns(["type"]),
    }
    for events in (EVENTS.to_pandas(), EVENTS.to_pylist(), by_type):
        assert groups(PAIRS.plot(events, order_by="t").svg())["match"] == 3


def test_scans_and_spark_are_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(EVENTS, tmp_path / "e.parquet")
    for call in (PAIRS.plot, PAIRS.find):
        with pytest.raises(kleene.UnsupportedError, match="in this process"):
            call(kleene.scan(str(tmp_path / "e.parquet")), order_by="t")


def test_a_query_with_too_many_matches_is_cut_and_says_so(monkeypatch) -> None:
    monkeypatch.setattr("kleene.plot.sight.MOST_MATCHES", 100)
    events = pa.table({"type": ["A"] * 40 + ["B"], "t": range(41)})
    made = kleene.sase("EVENT SEQ(A a, A b, B c)").plot(events, order_by="t")
    assert made.caption.startswith("more matches than are looked at, of which 100 matches are, among 41 events")
    rows = kleene.match_recognize("ORDER BY t ALL ROWS PER MATCH PATTERN (X) DEFINE X AS TRUE")
    events = pa.table({"t": range(12_000)})
    assert rows.plot(events).caption.startswith("more matches than are looked at")


def test_windows_whose_matches_have_too_many_rows_are_refused(monkeypatch) -> None:
    monkeypatch.setattr("kleene.plot.sight.MOST_SELECTED", 1_000)
    window = kleene.pattern_window(
        "ORDER BY t MEASURES A.t AS a ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING "
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) DEFINE B AS B.t > PREV(B.t)"
    )
    with pytest.raises(kleene.LimitError, match="the matches have 5,049 rows together"):
        window.plot(pa.table({"t": range(100)}))
    assert groups(window.plot(pa.table({"t": range(20)})).svg())["match"] == 19


@pytest.mark.parametrize("kind", ["timeline", "values"])
def test_many_matches_are_thinned_evenly_and_counted(kind: str) -> None:
    count = 4_000
    events = pa.table({"type": ["A", "B"] * count, "t": range(2 * count), "v": range(2 * count)})
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE A AS A.type = 'A'")
    made = query.plot(events, kind, y="v" if kind == "values" else None)
    assert "3,400 matches so that others can be told apart" in made.caption
    assert marks(made.svg(), "selected variable-1") == 600
    assert len(made.svg()) < 1_000_000


def test_contrast_of_what_carries_meaning() -> None:
    """Texts have 4.5 to 1 on paper and in boxes, and marks 3 to 1, as WCAG 2.2 asks."""
    for theme in (LIGHT, DARK):
        for color in (theme.ink, theme.pale, *theme.variables, theme.forbidden):
            for ground in (theme.paper, theme.box):
                assert contrast(color, ground) >= 4.5, (color, ground)
        assert contrast(theme.line, theme.paper) >= 3
        assert len(set(colors(theme))) == len(colors(theme))


def colors(theme: Theme) -> list[str]:
    return [getattr(theme, name) for name in Theme.__dataclass_fields__]


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_found_keeps_what_it_has_found() -> None:
    found = PAIRS.find(EVENTS, order_by="t")
    assert found.table == PAIRS.match(EVENTS, order_by="t")
    assert found.long == PAIRS.match(EVENTS, order_by="t", long=True)
    assert len(found) == 3
    assert repr(found) == "<kleene.Found: 3 matches of PATTERN SEQ(A a, B b)>"
    assert found.plot() == PAIRS.plot(EVENTS, order_by="t")
    assert "3 matches; all of them" in found._repr_html_()


def test_found_counts_matches_and_not_rows() -> None:
    rows = kleene.match_recognize("PARTITION BY k ORDER BY t ALL ROWS PER MATCH PATTERN (A B) DEFINE A AS TRUE")
    found = rows.find(EVENTS.to_pandas())
    assert (len(found), len(found.table)) == (3, 6)
    timed = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] WITHIN 1").find(EVENTS, order_by="t", timeouts=True)
    assert (len(timed), timed.table.num_rows) == (0, 3)
    assert timed.long.num_rows == 0


def test_found_shows_hostile_values_as_text() -> None:
    events = EVENTS.set_column(2, "k", pa.array(["<img src=x onerror=alert(1)>"] * 6))
    html = PAIRS.find(events, order_by="t")._repr_html_()
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_found_shows_the_first_rows_of_many() -> None:
    events = pa.table({"type": ["A"] * 50, "t": range(50)})
    html = kleene.sase("EVENT A a").find(events, order_by="t")._repr_html_()
    assert "50 matches; the first 10 of 50 rows" in html
    assert html.count("<tr>") == 11


def test_a_reader_that_can_be_read_once_is_enough() -> None:
    found = PAIRS.find(EVENTS.to_reader(), order_by="t")
    assert groups(found.plot().svg())["match"] == len(found) == 3
    for kind in KINDS:
        by_type = {name: EVENTS.filter(pa.compute.equal(EVENTS["type"], name)).to_reader() for name in ("A", "B")}
        assert picture(kind, EVENTS.to_reader()).caption == picture(kind).caption
        assert picture(kind, by_type).caption == picture(kind).caption


def test_near_misses_show_what_was_bound_and_what_stopped_it():
    events = pa.table(
        {"type": ["A", "C", "B", "A", "B"], "t": [1, 2, 3, 4, 5], "x": [5, 5, 4, 5, 9]},
    )
    query = kleene.sase("EVENT SEQ(A a, !(C c), B b) WHERE b.x < a.x")
    picture = query.plot(events, "near_misses", order_by="t")
    told = query.why(events, order_by="t").misses
    drawn = groups(picture.svg())
    assert drawn["near miss"] == drawn["stopping"] == len(told) == 2
    assert picture.caption.startswith("2 near misses; ")
    assert "b.x = 9" in picture.svg()


def test_near_misses_are_bounded_and_the_caption_says_so():
    events = pa.table({"type": ["A", "B"] * 40, "t": range(80), "x": range(80)})
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE b.x < a.x WITHIN 2")
    picture = query.plot(events, "near_misses", order_by="t")
    assert groups(picture.svg())["near miss"] == 24
    assert picture.caption.startswith(f"24 of {len(query.why(events, order_by='t').misses)} near misses; ")
    small = query.plot(events, "near_misses", order_by="t", size=(300, 200))
    assert groups(small.svg())["near miss"] == 1


def test_near_misses_of_a_row_pattern_without_a_match_have_names():
    query = kleene.match_recognize("ORDER BY t MEASURES A.x AS a PATTERN (A B{3}) DEFINE B AS B.x < PREV(B.x)")
    picture = query.plot(pa.table({"t": [1, 2, 3, 4], "x": [9, 8, 7, 8]}), "near_misses")
    assert all(f">{name}<" in picture.svg() for name in ("A", "B"))
