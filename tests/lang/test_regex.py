"""The regular-expression operator: its arguments, and Python functions in predicates."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import kleene
from tweets import TWEETS

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def tags(tweet: str) -> list[str]:
    return sorted(re.findall(r"#\w+", tweet))


def test_hash_tag_example_of_the_paper_calls_a_python_function() -> None:
    # Figure 2 of the paper. Its Count() == 5 counts the events before the current one.
    query = kleene.regex(
        pattern=". sameTags+ sameTags5th",
        partition_by="author",
        order_by="t",
        predicates={
            "sameTags": "tagsEq(content, First(content))",
            "sameTags5th": "Count() == 5 && tagsEq(content, First(content))",
        },
        output={"count": "Count()", "all": "Collect(content)"},
        functions={"tagsEq": lambda left, right: tags(left) == tags(right)},
    )
    found = query.match(TWEETS).to_pylist()
    assert found == [{"count": 6, "all": ["#a #b", "#b #a", "x #a #b", "#b y #a", "#a #b", "#a#b"]}]


def test_function_that_fails_is_named_with_what_it_was_called_with() -> None:
    query = kleene.regex(
        pattern=". odd",
        order_by="t",
        predicates={"odd": "broken(content)"},
        output={"n": "Count()"},
        functions={"broken": lambda text: text / 2},
    )
    with pytest.raises(kleene.ExecutionError, match="the function 'broken' failed: TypeError") as caught:
        query.match(TWEETS)
    assert "'#b #a'" in str(caught.value)


def test_unused_predicate_is_a_warning() -> None:
    with pytest.warns(kleene.KleeneWarning, match="predicate 'b' is not used"):
        kleene.regex(pattern="a", order_by="t", predicates={"a": "x > 1", "b": "x > 2"}, output={"n": "Count()"})


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("z", "returned 'z', but a condition is True or False"),
        (1, "returned 1, but a condition"),
        ([], "returned \\[\\]"),
    ],
)
def test_condition_that_a_function_gives_is_true_or_false(result: object, words: str) -> None:
    query = kleene.regex(
        pattern=". odd",
        order_by="t",
        predicates={"odd": "f(t) AND t > 0"},
        output={"n": "Count()"},
        functions={"f": lambda t: result},
    )
    with pytest.raises(kleene.ExecutionError, match=words):
        query.match(TWEETS)


def test_scalars_of_numpy_are_values() -> None:
    numpy = pytest.importorskip("numpy")
    query = kleene.regex(
        pattern=". odd",
        order_by="t",
        predicates={"odd": "f(t) AND g(t) > 3"},
        output={"n": "Count()"},
        functions={"f": lambda t: numpy.bool_(True), "g": lambda t: numpy.int64(5)},
    )
    assert query.match(TWEETS).num_rows == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"predicates": None}, "predicates is a dict by name"),
        ({"output": ["Count()"]}, "output is a dict by name"),
        ({"predicates": {"a": lambda t: True}}, "functions={…}"),
        ({"predicates": {".": "t > 1"}}, "is not a name"),
        ({"functions": {"f": 5}}, "but must be a function"),
        ({"output": {"n": "f(t)"}, "functions": {"f": abs}}, "can only be called in predicates"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused(change: dict, words: str) -> None:
    arguments = {"pattern": "a", "order_by": "t", "predicates": {"a": "t > 1"}, "output": {"n": "Count()"}} | change
    with pytest.raises(kleene.KleeneError) as caught:
        kleene.regex(**arguments)
    assert words in str(caught.value)


@pytest.mark.slow
def test_pattern_of_a_thousand_predicates_is_matched() -> None:
    table = pa.table({"t": list(range(1_000))})
    query = kleene.regex(
        pattern=" ".join(["a"] * 1_000), order_by="t", predicates={"a": "t >= 0"}, output={"n": "Count()"}
    )
    assert query.match(table).to_pylist() == [{"n": 1_000}]
