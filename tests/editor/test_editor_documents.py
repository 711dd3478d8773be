from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kleene.editor.documents import Document, Variable
from kleene.editor.meanings import KEYWORDS, MEANINGS
from kleene.editor.pointing import Kind, completions_at, meaning_at
from kleene.editor.problems import problems_in
from kleene.schema_text import parse_schema

SCHEMA = parse_schema("type string, t int, tag int, price float")
THEFT = "EVENT SEQ(Shelf a, !(Register r), ANY(Exit, Gate) b, Scan+ s[])\nWHERE [tag] AND b.price < a.price"
FALLS = "ORDER BY t\nPATTERN (A B+)\nDEFINE B AS B.price < PREV(B.price)"


def words(document: Document, offset: int) -> list[str]:
    return [one.word for one in completions_at(document, offset, SCHEMA)]


def test_variables_of_a_sequence():
    assert Document(THEFT, "sase").variables == (
        Variable("a", ("Shelf",)),
        Variable("r", ("Register",), is_negative=True),
        Variable("b", ("Exit", "Gate")),
        Variable("s", ("Scan",), is_kleene=True),
    )


def test_variables_of_a_sequence_that_is_not_finished():
    assert Document("EVENT SEQ(Shelf a, Exit b, ", "sase").variables == (
        Variable("a", ("Shelf",)),
        Variable("b", ("Exit",)),
    )


def test_variables_of_a_row_pattern():
    assert [one.name for one in Document(FALLS, "sql").variables] == ["A", "B"]


def test_an_error_stands_where_the_offender_is():
    [problem] = problems_in(Document(THEFT.replace("b.price", "b.prize"), "sase"), SCHEMA)
    assert THEFT.replace("b.price", "b.prize")[problem.span.start : problem.span.end] == "prize"
    assert "Did you mean 'price'?" in problem.message
    assert not problem.is_warning


def test_without_a_schema_attributes_are_not_known():
    assert problems_in(Document(THEFT.replace("b.price", "b.prize"), "sase")) == ()


def test_a_syntax_error_stands_where_it_is():
    [problem] = problems_in(Document("EVENT SEQ(Shelf a Exit b)", "sase"))
    assert problem.span.start == 18


def test_a_warning_is_one():
    [problem] = problems_in(Document("EVENT SEQ(A a, B b) WHERE a.t > 5 AND a.t < 3", "sase"))
    assert problem.is_warning
    assert "no match" in problem.message


def test_an_empty_document_has_no_problems():
    assert problems_in(Document(" \n", "sase"), SCHEMA) == ()


def test_a_clause_is_checked():
    [problem] = problems_in(Document(FALLS.replace("PREV(B.price)", "PREV(B.prize)"), "sql"), SCHEMA)
    assert "prize" in problem.message


def test_each_clause_of_a_query_is_checked_where_it_stands():
    text = f"SELECT *\nFROM trades MATCH_RECOGNIZE ({FALLS.replace('<', '< <')}) AS m"
    [problem] = problems_in(Document(text, "sql"), SCHEMA)
    assert text[problem.span.start - 2 : problem.span.end] == "< <"


def test_streams_of_a_program_have_columns_of_their_own():
    text = "EVENT SEQ(A a, B b) RETURN a.t AS begun INTO Pair; FROM Pair EVENT SEQ(Pair p, Pair q) WHERE p.begun < 3"
    assert problems_in(Document(text, "sase"), SCHEMA) == ()


@pytest.mark.parametrize("before", ["b.", "b.pri", "s[i].", "s[1].p"])
def test_behind_a_dot_come_attributes(before):
    text = f"EVENT SEQ(Exit b, Scan+ s[]) WHERE {before}"
    found = completions_at(Document(text, "sase"), len(text), SCHEMA)
    assert [one.word for one in found if one.detail != "how many events"] == ["type", "t", "tag", "price"]
    assert {one.kind for one in found} == {Kind.ATTRIBUTE}


def test_a_kleene_variable_has_a_length():
    text = "EVENT SEQ(Exit b, Scan+ s[]) WHERE s."
    assert "LEN" in words(Document(text, "sase"), len(text))
    assert "LEN" not in words(Document(text.replace("s.", "b."), "sase"), len(text))


def test_elsewhere_come_variables_and_keywords():
    found = words(Document(THEFT, "sase"), len(THEFT) - 5 - len("a.p"))
    assert found[:4] == ["a", "r", "b", "s"]
    assert "WITHIN" in found
    assert "price" not in found


def test_in_a_clause_columns_stand_alone_too():
    assert {"A", "B", "price", "DEFINE"} <= set(words(Document(FALLS + " AND ", "sql"), len(FALLS) + 5))


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        (THEFT, "SEQ", "follow one another"),
        (THEFT, "r)", "no event of type Register"),
        (THEFT, "price", "**price**: float"),
        (THEFT, "b.price", "an event of type Exit or Gate"),
        (FALLS, "PREV", "rows before"),
        (FALLS, "B+", "variable of the pattern"),
    ],
)
def test_what_a_word_means(text, at, said):
    meaning = meaning_at(Document(text, "sql" if text == FALLS else "sase"), text.index(at), SCHEMA)
    assert meaning is not None
    assert said in meaning.text


def test_a_sign_means_nothing():
    assert meaning_at(Document(THEFT, "sase"), THEFT.index("<"), SCHEMA) is None


@pytest.mark.parametrize("language", ["sase", "sql"])
def test_most_keywords_have_a_meaning(language):
    plain = set("AND OR NOT IS NULL IN AS BY ROW ROWS PER MATCH MATCHES PAST TO WHEN THEN ELSE END".split())  # noqa: SIM905
    assert {word.upper() for word in KEYWORDS[language].split()} - plain <= MEANINGS.keys()


@given(st.text("SEQANY(),+!~ab.[]`'\"\n-*/ <x", max_size=40), st.sampled_from(["sase", "sql"]), st.integers(0, 40))
def test_any_text_can_be_pointed_into(text, language, offset):
    document = Document(text, language)
    completions_at(document, min(offset, len(text)), SCHEMA)
    meaning_at(document, min(offset, len(text)), SCHEMA)
    assert all(0 <= problem.span.start <= problem.span.end <= len(text) + 1 for problem in problems_in(document))
