"""The order of rows on Spark: `match_order` of row patterns and of the operator, and queries without ORDER BY."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import kleene

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def events(count: int = 400) -> pa.Table:
    """No two rows have the same t, or the same name."""
    chance = Random(7)
    times, names = list(range(count)), [f"{number:03}"[: 1 + number % 3] + f"-{number}" for number in range(count)]
    chance.shuffle(times)
    chance.shuffle(names)
    return pa.table(
        {
            "site": [chance.choice("nsew") for _ in range(count)],
            "t": times,
            "name": names,
            "x": [chance.choice([None, 1, 2, 3, 4]) for _ in range(count)],
            "f": [float(chance.randint(-50, 50)) + number / 1000 for number in range(count)],
        }
    )


EVENTS = events()
UP = "DEFINE UP AS UP.x > PREV(UP.x)"
QUERIES = {
    "one row": f"PARTITION BY site ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b PATTERN (S UP+) {UP}",
    "no partition": f"ORDER BY t MEASURES FIRST(t) AS a AFTER MATCH SKIP TO NEXT ROW PATTERN (S UP*) {UP}",
    "descending": f"PARTITION BY site ORDER BY t DESC MEASURES LAST(t) AS b PATTERN (S UP+) {UP}",
    "descending texts": f"PARTITION BY site ORDER BY name DESC MEASURES LAST(name) AS b PATTERN (S UP+) {UP}",
    "descending floats": f"PARTITION BY site ORDER BY f DESC MEASURES LAST(f) AS b PATTERN (S UP*) {UP}",
    "nulls first": f"PARTITION BY site ORDER BY x DESC NULLS FIRST, t MEASURES FIRST(t) AS a PATTERN (S UP*) {UP}",
    "nulls last": "ORDER BY x NULLS LAST, t DESC MEASURES count(*) AS n PATTERN (S{3})",
    "all rows": f"PARTITION BY site ORDER BY t MEASURES CLASSIFIER() AS k ALL ROWS PER MATCH PATTERN (UP*) {UP}",
    "unmatched": f"PARTITION BY site ORDER BY t ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (S UP+) {UP}",
    "every match": "PARTITION BY site ORDER BY t MEASURES array_agg(CLASSIFIER()) k ALL MATCHES PATTERN ((A | B){1,2})",
    "exclusion": f"PARTITION BY site ORDER BY t ALL ROWS PER MATCH PATTERN (S {{- UP -}} UP) {UP}",
}
CUT = {
    "one row": f"ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b PATTERN (S UP+) MAXLENGTH 5 {UP}",
    "all rows": f"ORDER BY t MEASURES CLASSIFIER() AS k ALL ROWS PER MATCH PATTERN (S UP+) MAXLENGTH 5 {UP}",
    "every match": "ORDER BY t MEASURES array_agg(CLASSIFIER()) AS k ALL MATCHES PATTERN ((A | B){1,2})",
}
OPERATOR = kleene.regex(
    pattern=". up+",
    partition_by="site",
    order_by="t",
    predicates={"up": "x > Last(x)"},
    output={"site": "site", "n": "Count()", "last": "Last(t)"},
)


def in_match_order(query: kleene.Query, frame, **options: object) -> list:
    found = query.match(frame, match_order=True, **options)
    assert found.columns[-1] == "match_order"
    return found.orderBy("match_order").drop("match_order").toArrow().to_pylist()


@pytest.fixture(scope="module")
def frame(classic_spark):
    return classic_spark.createDataFrame(EVENTS).repartition(3)


@pytest.mark.parametrize("name", QUERIES)
def test_match_order_restores_the_order_in_process(frame, name: str) -> None:
    query = kleene.match_recognize(QUERIES[name])
    expected = query.match(EVENTS).to_pylist()
    assert len(expected) > 20
    assert in_match_order(query, frame) == expected


@pytest.mark.parametrize("layout", ["ranges", "in place"])
@pytest.mark.parametrize("name", CUT)
def test_match_order_of_ranges(frame, name: str, layout: str) -> None:
    query = kleene.match_recognize(CUT[name])
    options = kleene.SparkOptions("ranges", range_size=60) if layout == "ranges" else kleene.SparkOptions(layout)
    ordered = frame.orderBy("t") if layout == "in place" else frame
    assert in_match_order(query, ordered, spark=options) == query.match(EVENTS).to_pylist()


def test_match_order_of_the_operator(frame) -> None:
    expected = OPERATOR.match(EVENTS).to_pylist()
    assert len(expected) > 20
    assert in_match_order(OPERATOR, frame) == expected


def test_match_order_with_measures_of_spark(frame) -> None:
    query = kleene.match_recognize(f"PARTITION BY site ORDER BY t DESC MEASURES hex(LAST(t)) AS h PATTERN (S UP+) {UP}")
    plain = kleene.match_recognize(f"PARTITION BY site ORDER BY t DESC MEASURES LAST(t) AS t PATTERN (S UP+) {UP}")
    expected = [f"{row['t']:X}" for row in plain.match(EVENTS).to_pylist()]
    assert [row["h"] for row in query.match(frame, match_order=True).orderBy("match_order").collect()] == expected


def test_match_order_beside_a_column_of_that_name(frame) -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES LAST(t) AS match_order PATTERN (A A)")
    with pytest.raises(kleene.SchemaError, match="the result has one called 'match_order'"):
        query.match(frame, match_order=True)


# --- no ORDER BY ----------------------------------------------------------------------------------------------------

ALL = kleene.match_recognize("MEASURES array_agg(t) AS ts PATTERN (A+)")


def test_without_order_a_map_decides_nothing(classic_spark) -> None:
    frame = classic_spark.sql("SELECT * FROM VALUES (map('a', 2), 3), (map('a', 1), 9), (map('b', 0), 1) AS m(m, t)")
    assert ALL.match(frame).first()["ts"] == [1, 3, 9]
    assert "order      by all columns: t\n" in ALL.explain(frame)
    assert "sort       in Spark, by all columns" in ALL.explain(frame)


def test_without_order_columns_that_are_not_read_decide(classic_spark) -> None:
    frame = classic_spark.sql("SELECT * FROM VALUES ('b', 1), ('a', 2), (NULL, 0), ('a', 1) AS m(k, t)")
    assert ALL.match(frame).first()["ts"] == [1, 2, 1, 0]


def test_without_order_nested_columns_decide(classic_spark) -> None:
    frame = classic_spark.sql("SELECT * FROM VALUES (array(2, 1), 1), (array(1, 5), 2), (NULL, 3) AS m(a, t)")
    assert ALL.match(frame).first()["ts"] == [2, 1, 3]


def test_without_order_it_does_not_matter_how_rows_are_split(frame) -> None:
    query = kleene.match_recognize("PARTITION BY site MEASURES array_agg(t) AS ts PATTERN (A+)")
    found = [sorted(map(str, query.match(frame.repartition(n)).collect())) for n in (1, 5)]
    assert found[0] == found[1]
    assert not kleene.last_notes(query.match(frame))


def test_without_order_and_without_a_column_that_has_one(classic_spark) -> None:
    query = kleene.match_recognize("MEASURES count(*) AS n PATTERN (A+)")
    with pytest.raises(kleene.AnalysisError, match="no column of the input has an order") as caught:
        query.match(classic_spark.sql("SELECT map('a', 1) AS m"))
    assert "Columns: m" in str(caught.value)


@pytest.mark.parametrize("layout", ["ranges", "in place", "presorted"])
def test_without_order_rows_are_neither_cut_nor_taken_as_they_come(frame, layout: str) -> None:
    with pytest.raises(kleene.UnsupportedError, match="no ORDER BY"):
        ALL.match(frame, spark=kleene.SparkOptions(layout))


def test_without_order_a_stream_is_refused(classic_spark) -> None:
    stream = classic_spark.readStream.format("rate").load()
    query = kleene.match_recognize("MEASURES count(*) AS n PATTERN (A+)")
    with pytest.raises(kleene.UnsupportedError, match="on a stream") as caught:
        query.match(stream)
    assert "Add ORDER BY" in str(caught.value)


def test_columns_given_twice_beside_measures_of_spark(either_spark) -> None:
    query = kleene.match_recognize("""PARTITION BY site ORDER BY t, t
        MEASURES hex(t) AS h ALL ROWS PER MATCH PATTERN (A)""")
    frame = either_spark.createDataFrame(pa.table({"site": ["n"], "t": [10], "x": [1]}))
    found = query.match(frame)
    assert found.columns == ["site", "t", "t", "h", "x"]
    assert [tuple(row) for row in found.collect()] == [("n", 10, 10, "A", 1)]
