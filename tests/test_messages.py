"""Messages put together from parts read as one sentence, and the command line hears of its own options.

`make messages` writes down all messages that the quick tests meet, to be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.engine.choice import Choice, choose
from kleene.engine.compiled.code import NotExpressibleError
from kleene.errors import KleeneError
from kleene.options import EngineOptions, SparkOptions, StreamOptions
from kleene.wording import speaking_to_shell

EVENTS = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 3], "x": [1, 2, 3], "s": ["p", "q", "r"]})
PAIR = kleene.sase("EVENT SEQ(A a, B b)")
KLEENE_PLUS = kleene.sase("EVENT SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x")
WALKS = kleene.sase("EVENT SEQ(A+ a[], B b) WHERE a[i].x < b.x")
HALVES = kleene.sase("EVENT SEQ(A a, B b) WHERE a.x = 1 AND a.x = 2")
ROWS = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.t > A.t")
CLASSIFIED = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS CLASSIFIER() LIKE '_'")
CALLS = kleene.regex(
    pattern=". odd", order_by="t", predicates={"odd": "f(Collect(x))"}, output={"n": "Count()"}, functions={"f": bool}
)

# A name may come first, and what it is called decides its first letter.
NAMES = r"(AFTER MATCH|CAST|KLEENE_|MATCH_NUMBER|MAXLENGTH|PREV|NEXT|RUNNING|DISTINCT|COUNT|PySpark|Spark)"


def check_clause(text: str) -> None:
    """Fits behind a colon, and before what may follow."""
    assert "  " not in text
    assert not re.search(r"[.,:;] ?[.,:;]|\{\w*\}|\bNone\b| ,", text), text
    assert not text.endswith((".", ",", ":", " ")), text
    assert text[0].islower() or not text[0].isalpha() or re.match(NAMES, text), text


def check_hint(text: str) -> None:
    """Sentences; an example after a colon may come last, and has no period that could be taken for a part of it."""
    assert "  " not in text
    assert not re.search(r"[.,:;] ?[.,:;](?!\.)|\{\w*\}| ,", text.replace("…", "")), text
    assert text[0].isupper(), text
    assert text.endswith((".", "?")) or ": " in text, text


def raised_by(call: Callable[[], Any]) -> KleeneError:
    with pytest.raises(KleeneError) as raised:
        call()
    return raised.value


def matched(query: kleene.Query, **options: Any) -> Callable[[], Any]:
    return lambda: query.match(EVENTS, order_by="t", **options)


PROVOKED: dict[str, Callable[[], Any]] = {
    "no code, rows": lambda: CLASSIFIED.match(EVENTS, engine="generated"),
    "no code, a function": lambda: CALLS.match(EVENTS, engine="generated"),
    "no code to show": lambda: CALLS.explain(EVENTS, code=True),
    "no code, reference": lambda: PAIR.explain(EVENTS, order_by="t", engine="reference", code=True),
    "no code, no match": lambda: HALVES.explain(EVENTS, order_by="t", code=True),
    "piece by piece": lambda: PAIR.progress(EVENTS, order_by="t", engine="reference"),
    "piece by piece, a function": lambda: CALLS.progress(EVENTS),
    "compressed, reference": lambda: PAIR.compressed(EVENTS, order_by="t", engine="reference"),
    "compressed, backtrack": lambda: KLEENE_PLUS.compressed(
        EVENTS, order_by="t", engine=EngineOptions(algorithm="backtrack")
    ),
    "sequences, Kleene": matched(KLEENE_PLUS, engine=EngineOptions(plan={"operators": "sequence"})),
    "sequences, strategy": matched(
        kleene.sase("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) {a.x > 0}"),
        engine=EngineOptions(plan={"operators": "sequence"}),
    ),
    "sequences, compressed": lambda: PAIR.compressed(
        EVENTS, order_by="t", engine=EngineOptions(plan={"operators": "sequence"})
    ),
    "sequences, algorithm": matched(PAIR, engine=EngineOptions(algorithm="basic", plan={"operators": "sequence"})),
    "merge": matched(WALKS, engine=EngineOptions(algorithm="merge")),
    "scan": matched(PAIR, engine=EngineOptions(plan={"scan": "pais"})),
    "engine": lambda: EngineOptions("compild"),
    "as_": matched(PAIR, as_="excel"),
    "spark in process": matched(PAIR, spark=SparkOptions()),
    "stream in process": matched(PAIR, stream=StreamOptions()),
    "order column": lambda: PAIR.match(EVENTS, order_by="tt"),
    "order type": lambda: PAIR.match(EVENTS.append_column("b", pa.array([b"x"] * 3)), order_by="b"),
    "type column": matched(PAIR, type_column="x"),
    "no type column": matched(PAIR, type_column=None),
    "no file": lambda: PAIR.match("no/such/file.csv", order_by="t"),
    "input": lambda: PAIR.match(5, order_by="t"),
    "names of inputs": lambda: PAIR.match({5: EVENTS}, order_by="t"),
    "parameter": matched(kleene.sase("EVENT SEQ(A a, B b) WITHIN T")),
    "row pattern": lambda: ROWS.match(EVENTS, order_by="t"),
    "snapshot": lambda: PAIR.progress(EVENTS, order_by="t", snapshot=b"no"),
    "max_ahead": lambda: StreamOptions(max_ahead="1 hour"),
    "watermark": lambda: StreamOptions(watermark="soon"),
    "syntax": lambda: kleene.sase("EVENT SEQ(A a B b)"),
    "string": lambda: kleene.sase("EVENT A a WHERE a.s = 'x"),
    "variable": lambda: kleene.sase("EVENT A a WHERE b.x = 1"),
    "function": lambda: kleene.sase("EVENT A a WHERE abs() = 1"),
}


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("call", PROVOKED.values(), ids=PROVOKED)
def test_message_is_a_clause_and_hint_is_sentences(call: Callable[[], Any]) -> None:
    error = raised_by(call)
    check_clause(error.message)
    if error.hint:
        check_hint(error.hint)


# --- reasons, in every sentence that they are put into ---------------------------------------------------------------


def choice_of(query: kleene.Query, **options: Any) -> Choice:
    from kleene.api import prepare
    from kleene.call import read_call

    ordered = None if query in (CLASSIFIED, CALLS, ROWS) else "t"
    given = {"type_column": "type", "tie_break": None, "params": None, "spark": None, "stream": None}
    call = read_call(query.definition, order_by=ordered, **{**given, "engine": None, **options})
    return choose(prepare(call, EVENTS)[1])


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize(
    ("query", "options", "begin"),
    [
        (PAIR, {}, "machine code made for this query; "),
        (PAIR, {"engine": "compiled"}, "machine code made for this query, as requested"),
        (PAIR, {"engine": "generated"}, "the code made for this query, "),
        (PAIR, {"engine": "reference"}, "the plain interpreter, as requested"),
        (
            CALLS,
            {},
            "the plain interpreter, since the compiled engine has no code for f(collect(x)), which looks into values",
        ),
        (CLASSIFIED, {}, "the plain interpreter, since the compiled engine has no code for LIKE over several events"),
        (HALVES, {}, "an empty engine: no match can exist"),
    ],
)
def test_reason_of_a_choice_is_what_runs_the_query(query: kleene.Query, options: dict, begin: str) -> None:
    choice = choice_of(query, **options)
    assert choice.reason.startswith(begin)
    check_clause(f"the query is run by {choice.reason}")
    check_clause(choice.reason)


def test_missing_code_is_a_noun_phrase() -> None:
    """Of every text that is raised: it begins with an article, a name or a plural, and not with a clause."""
    from pathlib import Path

    folder = Path(kleene.__file__).parent / "engine" / "compiled"
    raised = re.compile(rf'(?:{NotExpressibleError.__name__}|_NeedsColumnError)\(\s*f?"([^"]*)"')
    texts = [text for path in folder.rglob("*.py") for text in raised.findall(path.read_text(encoding="utf-8"))]
    assert len(texts) > 20
    for text in texts:
        assert not re.match(r"(it|there|this|no|that|if|since|when|because)\b", text), text
        assert not text.endswith((".", ",", ":")), text


# --- who is spoken to ------------------------------------------------------------------------------------------------

OF_PYTHON = re.compile(r"type_column|tie_break|max_ahead|watermark=|StreamOptions|params|\{'|order=")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("type column", "--type-column"),
        ("no type column", "--input TYPE=PATH"),
        ("names of inputs", "--input Shelf=shelf.csv"),
        ("parameter", "12 hours"),
        ("max_ahead", '--watermark "10 minutes" --max-ahead "1 hour"'),
        ("watermark", '--watermark "10 minutes"'),
    ],
)
def test_the_command_line_hears_of_its_own_options(name: str, option: str) -> None:
    plain = raised_by(PROVOKED[name])
    assert OF_PYTHON.search(str(plain))
    with speaking_to_shell():
        error = raised_by(PROVOKED[name])
    assert option in str(error)
    assert not OF_PYTHON.search(str(error))
    check_clause(error.message)
    check_hint(error.hint or "")


def test_ties_name_the_option_of_who_asked() -> None:
    tied = pa.table({"type": ["A", "A", "B"], "t": [1, 1, 2], "x": [1, 2, 3]})
    with pytest.warns(kleene.KleeneWarning, match=r"Use tie_break to name a column that decides\.$"):
        KLEENE_PLUS.match(tied, order_by="t")
    with speaking_to_shell(), pytest.warns(kleene.KleeneWarning, match="Use --tie-break to name a column"):
        KLEENE_PLUS.match(tied, order_by="t")
