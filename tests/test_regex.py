"""Every case of the regular-expression operator, its errors, and Python functions in predicates."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import kleene
from row_cases import RowCase, check_rows, load_rows

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def query_of(case: RowCase) -> kleene.Query:
    item = case.item
    return kleene.regex(
        pattern=item["pattern"],
        partition_by=item.get("partition_by", []),
        order_by=item.get("order_by", "t"),
        predicates=item.get("predicates", {}),
        output=item["output"],
    )


@pytest.mark.parametrize("case", load_rows("regex"), ids=lambda case: case.name)
def test_regex_case_on_arrow(case: RowCase) -> None:
    check_rows(case, query_of(case).match(case.table))


@pytest.mark.parametrize("case", load_rows("regex", errors=True), ids=lambda case: case.name)
def test_regex_error(case: RowCase) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        query_of(case).match(case.table)
    assert type(caught.value).__name__ == case.item["error"], str(caught.value)
    for fragment in case.item["says"]:
        assert fragment in str(caught.value)


TWEETS = pa.table(
    {
        "author": ["ann", "ann", "bob", "ann", "ann", "ann", "ann", "bob"],
        "t": [1, 2, 3, 4, 5, 6, 7, 8],
        "content": ["#a #b", "#b #a", "#a", "x #a #b", "#b y #a", "#a #b", "#a#b", "#c"],
    }
)


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
