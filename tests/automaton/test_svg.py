"""Pictures of automata: everything is in them, nothing is cut or covered, and what users write stays text."""

from __future__ import annotations

from itertools import combinations
from unicodedata import east_asian_width
from xml.etree import ElementTree

import pytest

import kleene
from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.automaton.model import AllOf, Automaton, Edge, Move, State, TypeIs
from kleene.automaton.nfa import nfa_of
from kleene.automaton.positions import positions_of
from kleene.automaton.svg import automaton_svg
from kleene.automaton.text import formula_text
from paper_queries import QUERY_3

NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = "a\"b'<&>]]>\x07\n\u202e\ud800"
TEN = "PATTERN SEQ({}) WHERE skip_till_next_match({}) {{ [id] AND v3.price > v2.price }} WITHIN 3 hours".format(
    ", ".join(f"T{n}+ v{n}[]" if n % 3 == 1 else f"T{n} v{n}" for n in range(10)),
    ", ".join(f"v{n}[]" if n % 3 == 1 else f"v{n}" for n in range(10)),
)
QUERIES = [
    "PATTERN SEQ(A a, B b)",
    "PATTERN SEQ(A F, B+ b[])",
    "PATTERN SEQ(A a, !(N n), B b) WHERE [id] AND n.x > 1 WITHIN 5 events",
    "PATTERN SEQ(A a, B b) WHERE " + " AND ".join(f"b.x{n} > a.y{n} + {n}" for n in range(20)),
    f"PATTERN SEQ(A {'long' * 20}, B b) WHERE b.s = '{'word ' * 30}' OR b.s = '{'漢字' * 60}'",
    QUERY_3,
    TEN,
]
PATTERNS = [
    "()",
    "A B+ C",
    "^A (B | C)+ D? {- E -} PERMUTE(G, H)$",
    "((A B{1,3}){2,} | C*? D)+ E",
    "(A | B | C | D | E)* X",
    "PERMUTE(A, B, C)",
    f"{'LONG' * 20}+ B",
]


def automaton_of(text: str) -> Automaton:
    return nfa_of(analyze(kleene.sase(text).definition))


def row_picture(pattern: str, rest: str = "") -> str:
    query = kleene.match_recognize(f"ORDER BY t PATTERN ({pattern}) {rest}")
    return automaton_svg(positions_of(analyze_row_pattern(query.definition)))


def types(*names: str) -> AllOf:
    return AllOf(tuple(TypeIs((name,)) for name in names))


# No query becomes this: arcs over and under states, several edges between the same states, texts everywhere.
TANGLE = Automaton(
    (State("p", "p", 0), State("q", "q", 1), State("r", "r", 2), State("F")),
    (
        (
            Edge(Move.BEGIN, 1, types("Alpha", "Beta")),
            Edge(Move.PROCEED, 1, types("Gamma", "Delta")),
            Edge(Move.BEGIN, 2, types("over", "the state between")),
        ),
        (
            Edge(Move.BEGIN, 2),
            *(Edge(move, 1, types("a type with a long name", "another")) for move in Move),
            Edge(Move.BEGIN, 3, types("to the end")),
            Edge(Move.IGNORE, 0, types("back")),
        ),
        (
            Edge(Move.IGNORE, 0, types("back", "to the start")),
            Edge(Move.TAKE, 2, types("a type with a long name", "another")),
            Edge(Move.BEGIN, 3),
        ),
        (Edge(Move.IGNORE, 3, types("a type with a long name", "another")),),
    ),
)
PICTURES = [
    *(automaton_svg(automaton_of(text)) for text in QUERIES),
    *(row_picture(pattern) for pattern in PATTERNS),
    row_picture("A B+", f"DEFINE B AS B.x > PREV(B.x) AND B.s <> '{'word ' * 200}'"),
    automaton_svg(TANGLE),
]

Box = tuple[float, float, float, float]


def element_texts(picture: str, tag: str, kind: str = "") -> list[str]:
    groups = (
        group for group in ElementTree.fromstring(picture).iter(f"{NAMESPACE}g") if kind in group.get("class", "")
    )
    return [element.text or "" for group in groups for element in group.iter(NAMESPACE + tag)]


def text_boxes(picture: str) -> list[Box]:
    """Left, top, right and bottom of every text, at the width of the letters of common fonts of fixed width."""
    boxes = []
    for element in ElementTree.fromstring(picture).iter(f"{NAMESPACE}text"):
        x, y = float(element.get("x", "")), float(element.get("y", ""))
        width = 6.63 * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in element.text or "")
        left = x - width / 2 if element.get("text-anchor") == "middle" else x
        boxes.append((left, y - 9, left + width, y + 2))
    return boxes


def path_boxes(picture: str) -> list[Box]:
    """The straight stretches of lines; round corners and loops are left out."""
    boxes = []
    for element in ElementTree.fromstring(picture).iter(f"{NAMESPACE}path"):
        x = y = 0.0
        for letter, *numbers in steps(element.get("d", "") if element.get("transform") is None else ""):
            new_x = numbers[0] if letter == "H" else x if letter == "V" else numbers[-2]
            new_y = y if letter == "H" else numbers[-1]
            if letter in "HV":
                boxes.append((min(x, new_x), min(y, new_y), max(x, new_x), max(y, new_y)))
            x, y = new_x, new_y
    return boxes


def steps(line: str) -> list[tuple]:
    for letter in "MHVQC":
        line = line.replace(letter, f"|{letter} ")
    return [(part[0], *map(float, part[1:].split())) for part in line.split("|")[1:]]


def overlap(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


@pytest.mark.parametrize("picture", PICTURES, ids=range(len(PICTURES)))
def test_no_text_leaves_the_canvas(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    assert (root.get("width"), root.get("height")) == (f"{width}", f"{height}")
    for box in text_boxes(picture):
        assert left < box[0]
        assert top < box[1]
        assert box[2] < left + width
        assert box[3] < top + height


@pytest.mark.parametrize("picture", PICTURES, ids=range(len(PICTURES)))
def test_no_text_is_covered_by_a_text_or_a_line(picture: str) -> None:
    texts = text_boxes(picture)
    assert not [pair for pair in combinations(texts, 2) if overlap(*pair)]
    assert not [(text, line) for line in path_boxes(picture) for text in texts if overlap(text, line)]


@pytest.mark.parametrize("text", QUERIES, ids=range(len(QUERIES)))
def test_every_state_and_formula_is_in_the_picture(text: str) -> None:
    automaton = automaton_of(text)
    picture = automaton_svg(automaton)
    assert element_texts(picture, "title", "state") == [*(s.name for s in automaton.states[:-1]), "F: a match"]
    titles = "\n".join(element_texts(picture, "title", "edge")).split("\n")
    for source, edges in enumerate(automaton.edges):
        for edge in edges:
            assert f"{edge.move.value}: {formula_text(edge.formula, automaton, source)}" in titles
    assert max(map(len, element_texts(picture, "text", "edge"))) <= 36


def test_short_formulas_are_written_out_and_long_ones_shortened() -> None:
    texts = element_texts(automaton_svg(automaton_of(QUERIES[3])), "text", "edge")
    assert texts[:3] == ["begin", "A", "begin"]
    assert texts[3:10] == ["B", *(f"AND b.x{n} > a.y{n} + {n}" for n in range(5)), "…"]
    texts = element_texts(automaton_svg(automaton_of(QUERY_3)), "text", "edge")
    assert texts[texts.index("proceed") :][1:3] == ["begin(b)", "OR (NOT take AND NOT ignore)"]


def test_edges_between_the_same_states_are_one_group_with_a_loop_for_each_move() -> None:
    root = ElementTree.fromstring(automaton_svg(automaton_of("PATTERN SEQ(A+ a[], B b)")))
    titles = [group.findtext(f"{NAMESPACE}title", "").split("\n") for group in root.findall(f"{NAMESPACE}g")]
    assert ["a[i] → a[i]", "take: A", "ignore: TRUE"] in titles
    loops = root.findall(f"{NAMESPACE}g")[1].findall(f"{NAMESPACE}path[@stroke]")
    assert [loop.get("stroke-dasharray") for loop in loops] == [None, "5 4"]


@pytest.mark.parametrize("picture", PICTURES, ids=range(len(PICTURES)))
def test_the_accepting_state_alone_has_a_double_border(picture: str) -> None:
    states = [g for g in ElementTree.fromstring(picture).iter(f"{NAMESPACE}g") if "state" in g.get("class", "")]
    assert [len(state.findall(f"{NAMESPACE}rect")) for state in states] == [1] * (len(states) - 1) + [2]
    assert states[-1].get("class") == "accepting state"
    assert states[-1].findtext(f"{NAMESPACE}text") == "F"


def test_legend_has_the_moves_that_occur() -> None:
    assert element_texts(automaton_svg(automaton_of(QUERIES[0])), "text", "legend")[::2] == ["begin", "ignore"]
    assert element_texts(automaton_svg(automaton_of(QUERY_3)), "text", "legend")[::2] == [m.value for m in Move]
    assert element_texts(row_picture("A B"), "text", "legend")[::2] == ["1"]


def test_negations_and_conditions_are_notes() -> None:
    (note,) = element_texts(automaton_svg(automaton_of(QUERIES[2])), "title", "note")
    assert note == "no N n between a and b, where n.id = a.id AND n.x > 1"
    picture = row_picture("A B", "DEFINE B AS B.x < 3")
    assert element_texts(picture, "text", "note") == ["B when B.x < 3"]
    assert element_texts(picture, "title", "state") == ["start", "A", "B when B.x < 3", "F: a match"]


def test_row_edges_are_numbered_by_preference_with_their_anchors() -> None:
    picture = row_picture("^A (B | {- C -})*$")
    assert element_texts(picture, "text", "state") == ["start", "A", "B", "{-C-}", "F"]
    titles = element_texts(picture, "title", "edge")
    assert "start → A\nchoice 1, at the first row" in titles
    assert "B → F\nchoice 3, after the last row" in titles
    assert len(titles) == 10
    assert picture.count('stroke-dasharray="4 3"') == 1
    assert {"1^", "1", "2", "3$"} == set(element_texts(picture, "text", "edge"))


def test_what_users_write_stays_text() -> None:
    states = (State(HOSTILE, HOSTILE, 0), State("F"))
    picture = automaton_svg(Automaton(states, ((Edge(Move.BEGIN, 1, types("<script>", HOSTILE)),), ())))
    shown = "a\"b'<&>]]>␇␊\ufffd\ufffd"
    assert picture.encode()
    assert element_texts(picture, "text", "state") == [shown, "F"]
    assert element_texts(picture, "text", "edge") == ["begin", "<script>", f"AND {shown}"]
    assert element_texts(picture, "title", "edge") == [f"{shown} → F\nbegin: <script> AND {shown}"]
    assert {element.tag.removeprefix(NAMESPACE) for element in ElementTree.fromstring(picture).iter()} == {
        *("svg", "g", "title", "text", "rect", "path")
    }


@pytest.mark.parametrize("picture", PICTURES, ids=range(len(PICTURES)))
def test_pictures_stand_alone_on_a_white_ground(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    ground = root[0]
    assert (ground.tag, ground.get("fill")) == (f"{NAMESPACE}rect", "#ffffff")
    assert (ground.get("width"), ground.get("height")) == (root.get("width"), root.get("height"))
    assert "href" not in picture
    assert "url(" not in picture


def test_the_same_automaton_gives_the_same_picture() -> None:
    assert automaton_svg(automaton_of(TEN)) == automaton_svg(automaton_of(TEN))
    assert row_picture(PATTERNS[3]) == row_picture(PATTERNS[3])
