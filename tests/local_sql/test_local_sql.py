"""SQL without Spark: what tables can be, what comes out, and what errors say."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import kleene

TRADES = pa.table({"symbol": ["x"] * 4 + ["y"] * 4, "t": [1, 2, 3, 4] * 2, "price": [10, 8, 7, 9, 5, 4, 6, 1]})
CLAUSE = """MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY t MEASURES A.price AS top, LAST(B.price) AS bottom
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price))"""
FALLS = f"SELECT symbol, top, bottom FROM trades {CLAUSE} ORDER BY symbol, top"
FOUND = [("x", 10, 7), ("y", 5, 4), ("y", 6, 1)]


def rows(table: pa.Table) -> list[tuple]:
    return [tuple(row.values()) for row in table.to_pylist()]


def run(text: str, **more) -> list[tuple]:
    return rows(kleene.sql(text, tables={"trades": TRADES}, **more))


def files(folder: Path) -> list[object]:
    pq.write_table(TRADES, folder / "trades.parquet")
    TRADES.to_pandas().to_csv(folder / "trades.csv", index=False)
    TRADES.to_pandas().to_json(folder / "trades.jsonl", orient="records", lines=True)
    return [folder / "trades.parquet", str(folder / "trades.csv"), folder / "trades.jsonl"]


CONNECTION = duckdb.connect()
KINDS = {
    "table": lambda: TRADES,
    "batch": lambda: TRADES.combine_chunks().to_batches()[0],
    "reader": TRADES.to_reader,
    "dataset": lambda: ds.dataset(TRADES),
    "pandas": TRADES.to_pandas,
    "polars": lambda: pl.from_arrow(TRADES),
    "lazy polars": lambda: pl.from_arrow(TRADES).lazy(),
    "duckdb": lambda: CONNECTION.from_arrow(TRADES),
    "dicts": TRADES.to_pylist,
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_table(kind: str) -> None:
    assert rows(kleene.sql(FALLS, tables={"trades": KINDS[kind]()}, as_="arrow")) == FOUND


def test_files(tmp_path: Path) -> None:
    for path in files(tmp_path):
        assert rows(kleene.sql(FALLS, tables={"trades": path})) == FOUND


def test_result_is_of_the_kind_of_all_tables() -> None:
    frame, polars = TRADES.to_pandas(), pl.from_arrow(TRADES)
    assert isinstance(kleene.sql(FALLS, tables={"trades": frame}), pd.DataFrame)
    assert isinstance(kleene.sql(FALLS, tables={"trades": polars}), pl.DataFrame)
    assert isinstance(kleene.sql(FALLS, tables={"trades": polars.lazy(), "b": polars}), pl.DataFrame)
    assert isinstance(kleene.sql(FALLS, tables={"trades": frame, "b": polars}), pa.Table)
    assert isinstance(kleene.sql(FALLS, tables={"trades": TRADES}, as_="pandas"), pd.DataFrame)
    assert isinstance(kleene.sql("SELECT 1 AS a", tables={}), pa.Table)


def test_tables_that_the_text_does_not_name_are_not_read() -> None:
    assert rows(kleene.sql(FALLS, tables={"trades": TRADES, "other": "/no/such/file.parquet"})) == FOUND


def test_names_are_the_same_in_any_case() -> None:
    text = FALLS.replace("trades", "TRADES").replace("symbol,", "SYMBOL,")
    assert rows(kleene.sql(text, tables={"Trades": TRADES})) == FOUND
    assert kleene.sql("SELECT PRICE, t.Symbol FROM trades t", tables={"trades": TRADES}).column_names == [
        "PRICE",
        "Symbol",
    ]
    with pytest.raises(kleene.SchemaError, match="'Trades' and 'trades' have the same name"):
        kleene.sql(FALLS, tables={"Trades": TRADES, "trades": TRADES})
    with pytest.raises(kleene.SchemaError, match="columns 'a' and 'A', which are the same name in SQL"):
        kleene.sql("SELECT * FROM t", tables={"t": pa.table({"a": [1], "A": [2]})})


def test_names_with_quotes_blanks_and_reserved_words() -> None:
    odd = pa.table({'a "b`': [1], "order": [2], "end": [3]})
    found = kleene.sql('SELECT `a "b```, `order`, end FROM `my; DROP TABLE x`', tables={"my; DROP TABLE x": odd})
    assert rows(found) == [(1, 2, 3)]


def test_parameters_by_name_and_by_place() -> None:
    text = f"SELECT symbol, top FROM (SELECT * FROM trades WHERE price > :least) {CLAUSE} WHERE top > :top"
    assert run(text, args={"least": 1, "top": 5, "unused": 0}) == [("x", 10)]
    text = f"SELECT ? AS a, symbol FROM (SELECT * FROM trades WHERE price > ?) {CLAUSE} WHERE top < ?"
    assert run(text, args=["a'; DROP TABLE trades --", 1, 6]) == [("a'; DROP TABLE trades --", "y")]
    text = f"WITH c AS (SELECT * FROM trades WHERE t < ?) SELECT symbol FROM c {CLAUSE} WHERE top > ?"
    assert run(text, args=[3, 5]) == [("x",)]
    assert run("SELECT :a AS a, :a AS b", args={"a": dt.date(2024, 1, 1)}) == [(dt.date(2024, 1, 1),) * 2]


def test_parameters_that_do_not_fit() -> None:
    with pytest.raises(kleene.AnalysisError, match="the parameter ':least' has no value") as caught:
        run("SELECT * FROM trades WHERE price > :least", args={"leest": 1})
    assert (caught.value.line, caught.value.column) == (1, 37)
    assert "Did you mean 'leest'?" in str(caught.value)
    with pytest.raises(kleene.AnalysisError, match="the text has 1 parameters, but args has 2 values"):
        run("SELECT * FROM trades WHERE price > ?", args=[1, 2])


def test_types_of_results_are_those_of_spark() -> None:
    text = "SELECT sum(price) AS s, count(*) AS n, avg(price) AS a, max(ts) - min(ts) AS took, max(ts) AS ts FROM t"
    times = pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, 1)], pa.timestamp("us", "UTC"))
    found = kleene.sql(text, tables={"t": pa.table({"price": [1, 2], "ts": times})})
    expected = [pa.int64(), pa.int64(), pa.float64(), pa.duration("us"), pa.timestamp("us", "UTC")]
    assert found.schema.types == expected
    assert found.to_pylist()[0]["took"] == dt.timedelta(days=1, hours=1)


def test_types_that_duckdb_has_not() -> None:
    table = pa.table(
        {
            "category": pa.array(["b", "a", "b"]).dictionary_encode(),
            "half": pa.array(np.array([1.0, 2.0, 3.0], np.float16)),
            "nothing": pa.nulls(3),
            "took": pa.array([1, None, 3], pa.duration("us")),
            "small": pa.array([1, 2, 3], pa.uint8()),
        }
    )
    found = kleene.sql("SELECT * FROM t WHERE category > 'a' AND cast(small AS int) > 1", tables={"t": table})
    assert rows(found) == [("b", 3.0, None, dt.timedelta(microseconds=3), 3)]
    months = kleene.sql("SELECT INTERVAL 2 MONTHS AS m", tables={})
    assert months.num_rows == 1


def test_order_of_equal_keys_is_that_of_the_table() -> None:
    table = pa.table({"t": [1] * 5000, "n": range(5000)})
    text = "SELECT * FROM (SELECT * FROM t WHERE n >= 0) MATCH_RECOGNIZE (ORDER BY t MEASURES A.n AS n PATTERN (A))"
    assert kleene.sql(text, tables={"t": table}).column("n").to_pylist() == list(range(5000))


def test_clause_reads_only_the_columns_that_it_needs() -> None:
    odd = TRADES.append_column("bad", pa.array(["1"] * 7 + ["x"]))
    text = f"SELECT symbol, top, bottom FROM (SELECT *, cast(bad AS int) AS number FROM trades) {CLAUSE} ORDER BY 1, 2"
    assert rows(kleene.sql(text, tables={"trades": odd})) == FOUND


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "the function 'read_csv' is not known"),
        ("SELECT * FROM read_text('/etc/passwd')", "the function 'read_text' is not known"),
        ("SELECT * FROM glob('/etc/*')", "not SQL here"),
        ("SELECT * FROM `/etc/passwd`", "there is no table '/etc/passwd'"),
        ("SELECT * FROM csv.`/etc/passwd`", "there is no table 'csv./etc/passwd'"),
        ("SELECT * FROM 'file.parquet'", "not SQL here|no table"),
        ("SELECT * FROM information_schema.tables", "there is no table 'information_schema.tables'"),
        ("SELECT * FROM duckdb_settings()", "the function 'duckdb_settings' is not known"),
        ("SELECT * FROM duckdb_settings", "there is no table 'duckdb_settings'"),
        ("SELECT * FROM arrow_scan(1, 2, 3)", "the function 'arrow_scan' is not known"),
        ("SELECT * FROM query('SELECT 1')", "the function 'query' is not known"),
        ("SELECT current_setting('temp_directory')", "the function 'current_setting' is not known"),
        ("SELECT getenv('HOME')", "the function 'getenv' is not known"),
        ("SELECT * FROM TRADES_OF_PYTHON", "there is no table"),
        ("COPY trades TO '/tmp/kleene_copied.csv'", "one SELECT"),
        ("COPY (SELECT 1) TO '/tmp/kleene_copied.csv'", "one SELECT"),
        ("ATTACH '/tmp/kleene_attached.db'", "one SELECT"),
        ("INSTALL httpfs", "one SELECT"),
        ("LOAD httpfs", "one SELECT"),
        ("PRAGMA version", "one SELECT"),
        ("SET threads = 1", "one SELECT"),
        ("SET VARIABLE x = 1", "one SELECT"),
        ("EXPORT DATABASE '/tmp/kleene_exported'", "one SELECT"),
        ("CREATE TABLE x AS SELECT 1", "one SELECT"),
        ("CREATE VIEW x AS SELECT 1", "one SELECT"),
        ("INSERT INTO trades VALUES ('x', 1, 1)", "one SELECT"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1", "one SELECT|not SQL"),
        ("DELETE FROM trades", "one SELECT"),
        ("DROP TABLE trades", "one SELECT"),
        ("DESCRIBE trades", "one SELECT"),
        ("EXPLAIN SELECT 1", "one SELECT"),
        ("CALL pragma_version()", "one SELECT|not SQL"),
        ("USE x", "one SELECT"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "one SELECT"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT 1; DROP TABLE trades", "2 statements"),
        ("", "one SELECT"),
        ("-- nothing", "one SELECT"),
        ("SELECT reflect('java.lang.System', 'exit', 1)", "the function 'reflect' is not known"),
        ("SELECT ${x}", "."),
        ("SELECT @x", "."),
    ],
)
def test_text_can_do_nothing_but_read_its_tables(text: str, words: str) -> None:
    with pytest.raises(kleene.KleeneError, match=words):
        run(text)
    assert not list(Path("/tmp").glob("kleene_*ed*"))


def test_database_itself_is_closed() -> None:
    """Behind the check of the text: nothing gets out even if it were let through."""
    from kleene.local_sql.database import closed_database
    from kleene.options import EngineOptions

    trades_of_python = TRADES  # noqa: F841
    with closed_database(EngineOptions()) as database:
        database.register("trades", TRADES)
        for text in [
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "SELECT * FROM glob('/etc/*')",
            "SELECT * FROM trades_of_python",
            "COPY trades TO '/tmp/kleene_copied.csv'",
            "ATTACH '/tmp/kleene_attached.db'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "RESET lock_configuration",
        ]:
            with pytest.raises(duckdb.Error):
                database.connection.execute(text)


def test_errors_have_their_place_in_the_whole_text() -> None:
    with pytest.raises(kleene.AnalysisError, match="there is no table 'trade'") as caught:
        run(f"SELECT *\nFROM (SELECT * FROM trade) {CLAUSE}")
    assert (caught.value.line, caught.value.column) == (2, 21)
    assert "Tables: trades. Did you mean 'trades'?" in str(caught.value)
    with pytest.raises(kleene.AnalysisError, match='"prize" not found') as caught:
        run(f"SELECT *\nFROM trades {CLAUSE} WHERE\n prize > 1")
    assert caught.value.line == 5
    with pytest.raises(kleene.QuerySyntaxError, match="not SQL here") as caught:
        run(f"SELECT *\nFROM trades {CLAUSE} WHERE (1")
    assert caught.value.line == 4
    with pytest.raises(kleene.AnalysisError, match="prize"):
        run("SELECT * FROM trades MATCH_RECOGNIZE (ORDER BY t PATTERN (A) DEFINE A AS A.prize > 1)")
    with pytest.raises(kleene.UnsupportedError, match="the function 'soundex' is not known") as caught:
        run("SELECT soundex(symbol) FROM trades")
    assert caught.value.column == 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT price / (t - t) FROM trades", "division by zero"),
        ("SELECT cast('abc' AS int)", "no whole number"),
        ("SELECT cast('abc' AS date)", "abc"),
        ("SELECT sum(9223372036854775807) FROM trades", "64 bits"),
        ("SELECT cast(300 AS tinyint)", "300"),
    ],
)
def test_values_that_cannot_be_computed(text: str, words: str) -> None:
    with pytest.raises(kleene.ExecutionError, match=words):
        run(text)


def test_errors_are_kleenes_own_without_a_traceback_of_others() -> None:
    for text in ["SELECT nothing FROM trades", "SELECT (((", "SELECT sum(sum(price)) FROM trades", "SELECT 'a", "\x00"]:
        with pytest.raises(kleene.KleeneError) as caught:
            run(text)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None or caught.value.__suppress_context__
        assert "kleene_" not in str(caught.value)


@pytest.mark.parametrize(
    "call", ["date_trunc()", "map('k', 1, 'l')", "regexp_replace('a', 'b',)", "dayofyear()", "last_day()", "year()"]
)
def test_call_that_lacks_arguments(call: str) -> None:
    with pytest.raises(kleene.KleeneError):
        run(f"SELECT {call} AS a FROM trades")


def test_star_has_no_name() -> None:
    with pytest.raises(kleene.QuerySyntaxError, match="cannot have a name"):
        run("SELECT * bottom FROM trades")


def test_deep_and_long_texts() -> None:
    with pytest.raises(kleene.KleeneError):
        run("SELECT " + "(" * 5000 + "1" + ")" * 5000)
    assert run("SELECT " + " + ".join(["1"] * 200) + " AS n") == [(200,)]


def test_arguments_that_do_not_go_together() -> None:
    with pytest.raises(kleene.SchemaError, match="no tables were given"):
        kleene.sql("SELECT 1")
    with pytest.raises(kleene.SchemaError, match="takes arguments by name"):
        kleene.sql("SELECT 1", {"trades": TRADES})
    with pytest.raises(kleene.SchemaError, match="tables is a dict"):
        kleene.sql("SELECT 1", tables=[TRADES])
    with pytest.raises(kleene.UnsupportedError, match="allow_jvm_calls is for Spark"):
        kleene.sql("SELECT 1", tables={}, allow_jvm_calls=True)
    with pytest.raises(kleene.UnsupportedError, match="as_"):
        kleene.sql("SELECT 1", tables={}, as_="spark")
    with pytest.raises(kleene.QuerySyntaxError, match="a query is text"):
        kleene.sql(text=7, tables={})
    with pytest.raises(kleene.UnsupportedError, match="tables is for SQL in this process"):
        kleene.sql(object(), "SELECT 1", tables={})
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    with pytest.raises(kleene.SchemaError, match="a table is a Spark DataFrame"):
        kleene.sql("SELECT 1", tables={"t": frame})
    with pytest.raises(kleene.SchemaError, match="cannot read"):
        kleene.sql("SELECT * FROM t", tables={"t": 7})
    with pytest.raises(kleene.SchemaError, match="has no columns"):
        kleene.sql("SELECT * FROM t", tables={"t": []})


def test_limits_hold_for_the_clause_and_around_it() -> None:
    slow = "SELECT count(*) AS n FROM range(100000) a, range(1000000) b WHERE a.id * b.id % 7 = 3"
    with pytest.raises(kleene.LimitError, match="time limit"):
        run(slow, engine=kleene.EngineOptions(time_limit=0.2))
    with pytest.raises(kleene.LimitError, match="match"):
        run(FALLS, engine=kleene.EngineOptions(match_limit=1))
    large = "SELECT count(DISTINCT concat(a.id, b.id)) AS n FROM range(3000) a, range(3000) b"
    with pytest.raises(kleene.LimitError, match="memory limit"):
        run(
            large.replace("count(DISTINCT concat(a.id, b.id))", "collect_list(concat(a.id, '-----------', b.id))"),
            engine=kleene.EngineOptions(memory_limit="50 MB"),
        )


def test_missing_package_is_reported_with_its_install_line() -> None:
    code = """
import sys
sys.modules["duckdb"] = None
import kleene
try:
    kleene.sql("SELECT 1", tables={})
except kleene.UnsupportedError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == [
        "SQL without Spark needs the package 'duckdb'",
        "Install it: pip install 'kleene[sql]'",
    ]


@pytest.mark.parametrize(("package", "old"), [("duckdb", "1.3.2"), ("sqlglot", "29.9.9")])
def test_package_that_is_too_old_is_refused(package: str, old: str, monkeypatch) -> None:
    monkeypatch.setattr(f"{package}.__version__", old)
    with pytest.raises(kleene.UnsupportedError, match=f"needs {package} .* or newer, but {old} is installed"):
        kleene.sql("SELECT 1", tables={})


def test_pattern_window() -> None:
    text = """SELECT symbol, t, low OVER w AS low FROM trades WINDOW w AS (
        PARTITION BY symbol ORDER BY t MEASURES LAST(B.price) AS low ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)) ORDER BY symbol, t"""
    assert [row[2] for row in run(text)] == [7, None, None, None, 4, None, 1, None]


def test_decimals_and_sums() -> None:
    table = pa.table({"d": pa.array([Decimal("1.10"), Decimal("2.20")], pa.decimal128(10, 2))})
    assert rows(kleene.sql("SELECT sum(d) AS s FROM t", tables={"t": table})) == [(Decimal("3.30"),)]


@pytest.mark.parametrize("unit", ["ns", "us"])
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("date_trunc('day', since)", pd.Timestamp("2024-05-06", tz="UTC")),
        ("hour(since)", 8),
        ("since + INTERVAL 1 DAY", pd.Timestamp("2024-05-07 08:00", tz="UTC")),
        ("max(since) OVER () - min(since) OVER ()", pd.Timedelta(0)),
        ("unix_seconds(since)", 1_714_982_400),
    ],
)
def test_times_with_a_zone_as_pandas_makes_them(unit: str, expression: str, value: object) -> None:
    times = pd.to_datetime(["2024-05-06 10:00", "2024-05-06 11:00"]).tz_localize("Europe/Berlin").as_unit(unit)
    text = f"""SELECT {expression} AS v FROM t MATCH_RECOGNIZE (
        ORDER BY at MEASURES FIRST(at) AS since PATTERN (A B) DEFINE B AS at - PREV(at) < INTERVAL '2' HOUR)"""
    found = kleene.sql(text, tables={"t": pd.DataFrame({"at": times})})
    assert found["v"].tolist() == [value]
