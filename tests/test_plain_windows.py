"""The plain program of pattern windows gives the answers that were worked out by hand (ROW_PATTERNS_MORE.md, A9)."""

from __future__ import annotations

import random

import pytest

from plain_windows import (
    EMPTY,
    MATCH,
    SKIPPED,
    Agg,
    Alt,
    Classifier,
    Col,
    Const,
    Empty,
    Nav,
    Op,
    Permute,
    Rep,
    RunError,
    Seq,
    Var,
    Window,
    framed,
    measured,
    over,
    random_rows,
    random_window,
    walk,
)


def rows_of(names, *lines):
    return [dict(zip(names.split(), line, strict=True)) for line in lines]


H = rows_of("t c", (1, 20), (2, 24), (3, 27), (4, 23), (5, 22), (6, 25), (7, 25), (8, 19))
Z = rows_of("t c", (1, 5), (2, 7), (3, 6), (4, 4), (5, 8), (6, 9), (7, 3))
NORTH = [("n", t, c) for t, c in enumerate((3, 9, 1, 2), 1)]
SOUTH = [("s", t, c) for t, c in enumerate((9, 5, 7, 6), 1)]
G = rows_of("site t c", *NORTH, *SOUTH)
N = rows_of("t v", (1, None), (2, 4), (3, None), (4, 6), (5, None))

S, UP, DN, A, B, P, Q, X, Y = map(Var, ["S", "UP", "DN", "A", "B", "P", "Q", "X", "Y"])
NEXT_ROW = "TO NEXT ROW"


def prev(column):
    return Nav(column, None, 0, "PREV")


def rises(name):
    return Op(">", Col("c", name), prev(Col("c", name)))


def falls(name):
    return Op("<", Col("c", name), prev(Col("c", name)))


def plus(part, greedy=True):
    return Rep(part, 1, None, greedy)


UD = {"UP": rises("UP"), "DN": falls("DN")}
HILL = Seq((S, plus(UP), plus(DN)))
HOT = {"HOT": Op(">=", Col("c"), Const(25))}
PQ = {"P": Op(">", Col("c"), Const(24)), "Q": Op("<", Col("c", "Q"), Col("c", "P"))}


def frames(rows, window):
    """The reduced frame of each row as the page writes it: [1-5], and - for an empty one."""
    shown = []
    for frame in framed(rows, window):
        ts = [row["t"] for row in frame]
        shown.append("-" if not ts else f"[{ts[0]}]" if len(ts) == 1 else f"[{ts[0]}-{ts[-1]}]")
    return " ".join(shown)


def column(rows, window, name):
    return [values[name] for values in measured(rows, window)]


def test_measures():
    low, peak = Nav(Col("c"), "FIRST"), Nav(Col("c", "UP"), "LAST")
    window = Window(HILL, UD, {"low": low, "peak": peak, "fin": Col("c"), "k": Classifier()})
    first, *others = measured(H, window)
    assert first == {"low": 20, "peak": 27, "fin": 22, "k": "DN"}
    assert others == [dict.fromkeys(first)] * 7
    assert [status for status, _, _ in walk(H, window)] == [MATCH, *[SKIPPED] * 4, *["unmatched"] * 3]


def test_functions():
    window = Window(HILL, UD)
    assert over(H, window, "count") == [5, 0, 0, 0, 0, 0, 0, 0]
    asked = {"sum": 116, "max": 27, "first_value": 20, "last_value": 22, "array_agg": [20, 24, 27, 23, 22]}
    for function, value in asked.items():
        assert over(H, window, function, "c") == [value, *[None] * 7]


def test_to_next_row():
    assert frames(H, Window(HILL, UD, skip=NEXT_ROW)) == "[1-5] [2-5] - - - - - -"


@pytest.mark.parametrize(
    ("skip", "answer"),
    [
        ("PAST LAST ROW", "[1-4] - - - [5-7] - -"),
        ("TO LAST DN", "[1-4] - - [4-7] - - -"),
        ("TO FIRST DN", "[1-4] - - [4-7] - - -"),
        (NEXT_ROW, "[1-4] - - [4-7] [5-7] - -"),
        ("TO LAST F", "[1-4] - - [4-7] - - -"),
    ],
)
def test_skips(skip, answer):
    assert frames(Z, Window(HILL, UD, skip=skip, unions={"F": ("UP", "DN")})) == answer


def test_statuses_of_skips():
    def statuses(skip):
        return " ".join(status[0] for status, _, _ in walk(Z, Window(HILL, UD, skip=skip)))

    assert statuses("TO LAST DN") == "m s s m s s u"
    assert statuses("TO FIRST DN") == "m s u m s s u"


def test_errors_at_run_time():
    with pytest.raises(RunError, match="start of the match"):
        walk(Z, Window(HILL, UD, skip="TO S"))
    window = Window(Seq((S, plus(UP), plus(DN), Rep(X, 0, 1))), UD | {"X": Const(False)}, skip="TO X")
    with pytest.raises(RunError, match="no row"):
        walk(Z, window)
    with pytest.raises(RunError, match="frame end"):
        walk(N, Window(A, end=Col("v")))


def test_bounded_frames():
    assert frames(Z, Window(HILL, UD, end=Const(2), skip=NEXT_ROW)) == "[1-3] - - - [5-7] - -"
    k = rows_of("t span", (1, 1), (2, 0), (3, 4), (4, 1), (5, 0))
    end = Op("+", Col("span"), Col("span"))
    assert over(k, Window(plus(A), end=end, skip=NEXT_ROW), "count") == [3, 1, 3, 2, 1]
    assert over(k, Window(plus(A), end=end), "count") == [3, 0, 0, 2, 0]
    assert frames(H, Window(Var("HOT"), HOT, one_row=True)) == "- - [3] - - [6] [7] -"
    assert frames(H, Window(Seq((Var("HOT"), Var("HOT"))), HOT, one_row=True)) == "- - - - - - - -"


def test_navigation_stays_in_the_frame():
    assert frames(H, Window(Var("D"), {"D": falls("D")})) == "- - - - - - - -"
    assert frames(H, Window(Seq((A, Var("D"))), {"D": falls("D")}, skip=NEXT_ROW)) == "- - [3-4] [4-5] - - [7-8] -"
    ahead = {"D": Op(">", Col("c", "D"), Nav(Col("c", "D"), None, 0, "NEXT"))}
    assert frames(H, Window(Var("D"), ahead)) == "- - [3] [4] - - [7] -"
    assert frames(H, Window(Var("D"), ahead, one_row=True)) == "- - - - - - - -"


def test_seek():
    def asked(**options):
        return frames(H, Window(Seq((P, Q)), PQ, **options))

    assert asked(skip=NEXT_ROW, seek=True) == "[3-4] [3-4] [3-4] [7-8] [7-8] [7-8] [7-8] -"
    assert asked(skip=NEXT_ROW) == "- - [3-4] - - - [7-8] -"
    assert asked(seek=True) == "[3-4] - - - [7-8] - - -"
    assert asked(skip=NEXT_ROW, seek=True, end=Const(2)) == "- [3-4] [3-4] - - [7-8] [7-8] -"
    assert asked(skip="TO LAST Q", seek=True) == "[3-4] - - [7-8] - - - -"
    with pytest.raises(RunError, match="start of the match"):
        asked(skip="TO P", seek=True)
    window = Window(Q, {"Q": falls("Q")}, skip=NEXT_ROW, seek=True)
    assert frames(H, window) == "[4] [4] [4] [5] [8] [8] [8] -"
    assert [start for _, start, _ in walk(H, window)] == [3, 3, 3, 4, 7, 7, 7, None]


def test_measures_that_look_around():
    before, after = Nav(Col("c"), "FIRST", 0, "PREV"), Nav(Col("c", "Q"), None, 0, "NEXT")
    measures = {"fin": Col("c"), "before": before, "after": after}
    window = Window(Seq((P, Q)), PQ, measures, end=Const(3), skip=NEXT_ROW, seek=True)
    assert [tuple(values.values()) for values in measured(H, window)] == [
        (23, 24, None),
        (23, 24, 22),
        (23, None, 22),
        (None, None, None),
        (19, 25, None),
        (19, 25, None),
        (19, None, None),
        (None, None, None),
    ]


@pytest.mark.parametrize("seek", [False, True])
def test_empty_matches(seek):
    measures = {"m": Const("hit"), "n": Agg("count"), "last": Col("c"), "k": Classifier()}
    window = Window(Rep(Var("HOT"), 0, None), HOT, measures, seek=seek)
    empty, skipped = ("hit", 0, None, None), (None, None, None, None)
    assert [tuple(values.values()) for values in measured(H, window)] == [
        *[empty, empty, ("hit", 1, 27, "HOT"), empty, empty, ("hit", 2, 25, "HOT"), skipped, empty]
    ]
    assert over(H, window, "count") == [0, 0, 1, 0, 0, 2, 0, 0]


def test_empty_patterns():
    hit = {"m": Const("hit")}
    assert frames(H, Window(plus(Var("HOT")), HOT, seek=True)) == "[3] - - [6-7] - - - -"
    for pattern in (Empty(), Rep(Var("HOT"), 0, 1, False)):
        assert [status for status, _, _ in walk(H, Window(pattern, HOT))] == [EMPTY] * 8
        assert column(H, Window(pattern, HOT, hit), "m") == ["hit"] * 8
    window = Window(Alt((Var("HOT"), Empty())), HOT, hit)
    assert frames(H, window) == "- - [3] - - [6] [7] -"
    assert column(H, window, "m") == ["hit"] * 8


def test_variables_and_unions():
    labels = Agg("array_agg", Classifier())
    measures = {"a": Agg("array_agg", Col("c", "UP")), "b": Agg("count", None, "DN"), "d": labels}
    assert [tuple(values.values()) for values in measured(H, Window(HILL, UD, measures, skip=NEXT_ROW))] == [
        ([24, 27], 2, ["S", "UP", "UP", "DN", "DN"]),
        ([27], 2, ["S", "UP", "DN", "DN"]),
        *[(None, None, None)] * 6,
    ]
    measures = {"x": Nav(Col("c", "M"), "LAST"), "y": Classifier("M"), "z": Nav(Classifier(), "FIRST")}
    pattern = Seq((S, plus(UP), Rep(DN, 0, None)))
    found = measured(H, Window(pattern, UD, measures, skip=NEXT_ROW, unions={"M": ("S", "UP")}))
    assert [found[row]["x"] for row in (0, 1, 4)] == [27, 27, 25]
    assert [tuple(values.values())[1:] for values in found if values["x"]] == [("UP", "S")] * 3


def test_preference():
    assert frames(H, Window(Seq((S, plus(UP, False), plus(DN, False))), UD, skip=NEXT_ROW)) == "[1-4] [2-4] - - - - - -"
    fall = {"FALL": Op(">", Col("c"), Nav(Col("c"), None, 0, "NEXT")), "UP": rises("UP")}
    assert frames(H, Window(Alt((Var("FALL"), Seq((S, UP)))), fall)) == "[1-2] - [3] [4] [5-6] - [7] -"
    d = rows_of("t c", (1, 4), (2, 6), (3, 6), (4, 5))
    define = {"X": Op(">=", Col("c"), Const(6)), "Y": Op("<=", Col("c"), Const(5))}
    labels = [variables for _, _, variables in walk(d, Window(Permute((X, Y)), define, skip=NEXT_ROW))]
    assert labels == [("Y", "X"), (), ("X", "Y"), ()]


def test_aggregates_in_define():
    define = {"A": Op("<=", Agg("sum", Col("c")), Const(70))}
    assert frames(H, Window(plus(A), define)) == "[1-2] - [3-4] - [5-6] - [7-8] -"
    assert frames(H, Window(plus(A), define, skip=NEXT_ROW)) == "[1-2] [2-3] [3-4] [4-6] [5-6] [6-8] [7-8] [8]"


def test_partitions():
    window = Window(HILL, UD, {"peak": Nav(Col("c", "UP"), "LAST")}, ("site",))
    assert column(G, window, "peak") == [9, None, None, None, None, 7, None, None]
    assert frames(G, window) == "[1-3] - - - - [2-4] - -"
    window = Window(Seq((X, plus(DN))), UD, partition_by=("site",), skip=NEXT_ROW)
    assert over(G, window, "count") == [0, 2, 0, 0, 2, 0, 2, 0]


def test_nulls():
    window = Window(Seq((A, A, A)), skip=NEXT_ROW)
    assert over(N, window, "first_value", "v") == [None, 4, None, None, None]
    assert over(N, window, "last_value", "v") == [None, 6, None, None, None]
    assert over(N, window, "count", "v") == [1, 2, 1, 0, 0]
    assert over(N, window, "array_agg", "v") == [[None, 4, None], [4, None, 6], [None, 6, None], None, None]


def test_text():
    window = Window(
        Seq((A, Rep(Alt((B, Empty())), 1, 3, False), Permute((X, Y)))),
        {"B": Op("<", Col("x", "B"), Nav(Col("x", "A"), "LAST", 1, "PREV", 2))},
        {"m": Agg("count", None, "B")},
        ("p",),
        end=Op("+", Col("n"), Const(1)),
        skip="TO LAST U",
        seek=True,
        unions={"U": ("A", "B")},
    )
    assert window.text().splitlines() == [
        "PARTITION BY p",
        "ORDER BY t",
        "MEASURES count(B.*) AS m",
        "ROWS BETWEEN CURRENT ROW AND n + 1 FOLLOWING",
        "AFTER MATCH SKIP TO LAST U",
        "SEEK",
        "PATTERN (A (B | ()){1,3}? PERMUTE(X, Y))",
        "SUBSET U = (A, B)",
        "DEFINE B AS B.x < PREV(LAST(A.x, 1), 2)",
    ]


def test_random_windows_have_every_outcome():
    chance = random.Random(1)
    outcomes = set()
    for _ in range(800):
        window, rows = random_window(chance), random_rows(chance)
        assert window.text()
        try:
            assert len(measured(rows, window)) == len(rows)
            outcomes |= {status for status, _, _ in walk(rows, window)}
        except RunError as error:
            outcomes.add(error.reason)
    assert outcomes == {SKIPPED, "unmatched", EMPTY, MATCH, "no row of the variable", "start of the match"}
