"""Row patterns without ORDER BY in process: the order of the table or file; and columns that are given out twice."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene

EVENTS = pa.table({"t": [3, 1, 2, 1], "k": ["x", "y", "x", "x"]})
PAIRS = kleene.match_recognize("MEASURES array_agg(t) AS ts PATTERN (A B) DEFINE A AS k = 'x', B AS k = 'y'")
ENGINES = ["reference", "generated"]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_in_the_order_of_the_table(engine: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no row ties with another
        assert PAIRS.match(EVENTS, engine=engine).to_pylist() == [{"ts": [3, 1]}]


def test_rows_are_in_the_order_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path, row_group_size=1)
    assert PAIRS.match(str(path)).to_pylist() == [{"ts": [3, 1]}]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_counted_where_no_column_is_read(engine: str) -> None:
    query = kleene.match_recognize("MEASURES count(*) AS n PATTERN (A{3})")
    assert query.match(EVENTS, engine=engine).to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_without_order(engine: str) -> None:
    window = kleene.pattern_window(
        "MEASURES array_agg(t) AS ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING PATTERN (A B) DEFINE B AS B.t < A.t"
    )
    found = window.match(EVENTS, engine=engine)
    assert found.column("ts").to_pylist() == [[3, 1], None, [2, 1], None]


def test_explain_says_which_order_it_is() -> None:
    assert "order      none is given: in process that of the input, on Spark by all columns" in PAIRS.explain(EVENTS)


def test_pieces_need_an_order() -> None:
    with pytest.raises(kleene.UnsupportedError, match="the order of ORDER BY, but the query has none"):
        PAIRS.progress(EVENTS)


TWICE = kleene.match_recognize("PARTITION BY k ORDER BY k, t, t ALL ROWS PER MATCH PATTERN (A{2})")


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_named_twice_is_there_twice(engine: str) -> None:
    found = TWICE.match(EVENTS, engine=engine)
    assert found.column_names == ["k", "k", "t", "t"]
    assert [column.to_pylist() for column in found.columns] == [["x", "x"], ["x", "x"], [1, 2], [1, 2]]
    batches = pa.Table.from_batches(TWICE.match_batches(EVENTS, engine=engine))
    assert batches.equals(found)


def test_a_column_named_twice_in_pandas_and_polars() -> None:
    assert list(TWICE.match(EVENTS, as_="pandas").columns) == ["k", "k", "t", "t"]
    with pytest.raises(kleene.SchemaError, match="the column 'k' twice, which polars does not allow"):
        TWICE.match(EVENTS, as_="polars")
