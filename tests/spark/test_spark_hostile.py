"""Texts, literals and names of strangers on Spark: they compute, and nothing else."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene
from kleene.files import find_files
from kleene.spark.files import read_spark
from kleene.spark.session import kleene_error
from kleene.sqltext.tokens import tokens_of

HOSTILE_LITERALS = [
    "it's",
    "'; DROP TABLE trades; --",
    "' || (SELECT max(w) FROM secret) || '",
    "__kleene_part0x",
    "__kleene_part1x",
    "\\",
    "\\' OR 1 = 1 -- ",
    "\\u0041\\n\\0%_",
    "line\nbreak\r\ttab",
    '"double" `back` {braces} {{twice}} {0} ${spark.app.name} :name ? $$x$$',
    "/* no comment */ -- nor this",
    "`kleene_matches_0` {kleene_matches_0} {found}",
    "ünï → 漢字 😀 \u2028",
    "\x00\x01\x7f",
]
HOSTILE_NAMES = ["a b", "a.b", "a`b", 'a"b', "a'b", "`", "x) FROM secret --", "{found}", "sélect", "value_0", "\\"]


@pytest.fixture(scope="module", autouse=True)
def tables(classic_spark):
    classic_spark.sql("SELECT 'the secret' AS w").createOrReplaceTempView("secret")
    classic_spark.sql("SELECT 1 AS t, 'x' AS s UNION ALL SELECT 2, 'y'").createOrReplaceTempView("letters")
    yield
    for name in ("secret", "letters"):
        classic_spark.catalog.dropTempView(name)


def letters(spark):
    return spark.createDataFrame([(1, "x"), (2, "y")], "t INT, s STRING")


def in_clause(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def in_spark(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_literal_that_looks_like_a_placeholder_reads_no_other_table(spark) -> None:
    clause = """ORDER BY t
        MEASURES concat_ws('__kleene_part1x', ' || (SELECT max(w) FROM secret) || ', A.s) AS m PATTERN (A)"""
    found = kleene.match_recognize(clause).match(letters(spark)).collect()
    assert sorted(row.m for row in found) == [
        f" || (SELECT max(w) FROM secret) || __kleene_part1x{letter}" for letter in "xy"
    ]


def test_hostile_literals_stay_what_they_are_before_matching_and_after(either_spark) -> None:
    measures, tests = [], []
    for number, text in enumerate(HOSTILE_LITERALS):
        own = in_clause(text)
        measures += [
            f"concat_ws({own}, A.s, {own}) AS row_{number}",
            f"concat_ws({own}, LAST(A.s), CAST(count(*) AS string)) AS match_{number}",
            f"max_by({own}, A.t) AS aggregate_{number}",
            f"if(LAST(A.s) = {own} OR LAST(A.s) LIKE {own}, {own}, reverse({own})) AS condition_{number}",
        ]
        tests.append(f"length(replace(A.s, 'x', {own})) = {len(text)}")
    clause = f"ORDER BY t MEASURES {', '.join(measures)} PATTERN (A) DEFINE A AS A.s = 'x' AND {' AND '.join(tests)}"
    (found,) = kleene.match_recognize(clause).match(letters(either_spark)).collect()
    for number, text in enumerate(HOSTILE_LITERALS):
        assert found[f"row_{number}"] == f"x{text}{text}"
        assert found[f"match_{number}"] == f"x{text}1"
        assert found[f"aggregate_{number}"] == text
        assert found[f"condition_{number}"] == text[::-1]


def test_hostile_names_of_columns_and_measures(either_spark) -> None:
    frame = either_spark.createDataFrame([(1, *HOSTILE_NAMES)], ["t", *HOSTILE_NAMES])
    quoted = ["`" + name.replace("`", "``") + "`" for name in HOSTILE_NAMES]
    measures = [
        *(f"max_by(A.{name}, A.{name}) AS {name}" for name in quoted),
        *(f"reverse(LAST(A.{name})) AS `r{name[1:]}" for name in quoted),
    ]
    tests = [f"hash(A.{name}) = hash(A.{name})" for name in quoted]
    clause = f"ORDER BY t MEASURES {', '.join(measures)} PATTERN (A) DEFINE A AS {' AND '.join(tests)}"
    found = kleene.match_recognize(clause).match(frame)
    assert found.columns == [*HOSTILE_NAMES, *(f"r{name}" for name in HOSTILE_NAMES)]
    assert list(found.collect()[0]) == [*HOSTILE_NAMES, *(name[::-1] for name in HOSTILE_NAMES)]


@pytest.mark.parametrize("name", ["upper(s) --", "a.b", "`", "(SELECT max(w) FROM secret)", "system.builtin.upper"])
@pytest.mark.parametrize("call", ["{}(A.s)", "{}(LAST(A.s))", "{}(LAST(A.s), median(A.t))"])
def test_hostile_name_of_a_function_is_one_name(name: str, call: str, either_spark) -> None:
    quoted = '"' + name + '"'
    query = kleene.match_recognize(f"ORDER BY t MEASURES {call.format(quoted)} AS m PATTERN (A)")
    with pytest.raises(kleene.AnalysisError, match=r"Spark cannot compute this.*UNRESOLVED_ROUTINE") as error:
        query.match(letters(either_spark))
    assert error.value.line == 1


def test_wrong_call_among_several_measures_is_the_one_that_is_shown(either_spark) -> None:
    clause = "ORDER BY t\nMEASURES median(A.t) AS a,\n reverse(LAST(A.s)) AS b,\n nope(LAST(A.s)) AS c PATTERN (A)"
    with pytest.raises(kleene.AnalysisError, match="nope") as error:
        kleene.match_recognize(clause).match(letters(either_spark))
    assert error.value.line == 4


def test_key_may_not_take_the_place_of_a_column(spark) -> None:
    frame = spark.createDataFrame([(1, "x", 5)], ["t", "s", "SOUNDEX(s)"])
    with pytest.raises(kleene.AnalysisError, match="the input has a column with the name of this key"):
        kleene.match_recognize("PARTITION BY soundex(s) ORDER BY t PATTERN (A)").match(frame)


def nested(levels: int) -> kleene.Query:
    text = "A.t"
    for level in range(levels):
        text = f"bit_count({text} = 1)" if level % 2 else f"bit_count({text} IN (1, 5))"
    return kleene.match_recognize(f"ORDER BY t MEASURES {text} AS m PATTERN (A)")


def test_comparisons_inside_comparisons_are_planned_in_time(spark, in_time) -> None:
    assert sorted(row.m for row in nested(9).match(letters(spark)).collect()) == [0, 1]


def test_what_is_nested_too_deep_for_spark_connect_is_told(remote_spark, monkeypatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(kleene.AnalysisError, match="Spark cannot compute this"):
        nested(45).match(letters(remote_spark))


def test_long_chains_are_not_nested_deep(remote_spark, monkeypatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    choices, tests = ", ".join(map(str, range(70))), " OR ".join(f"A.t = {n}" for n in range(70))
    values = ", ".join(f"A.t + {n}" for n in range(70))
    query = kleene.match_recognize(
        f"ORDER BY t MEASURES format_string('%s%s%s', A.t IN ({choices}), {tests}, A.t IN ({values})) AS m PATTERN (A)"
    )
    assert [row.m for row in query.match(letters(remote_spark)).collect()] == ["truetruetrue"] * 2


CLAUSE = "MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(A.s) AS s PATTERN (A+))"


def test_strings_and_comments_around_a_clause_stay_what_they_are(spark) -> None:
    texts = [text for text in HOSTILE_LITERALS if "${" not in text]
    texts += ["{kleene_0_.sparkSession}", "{kleene_0_}", "{", "}", "MATCH_RECOGNIZE ("]
    names = ["`" + text.replace("`", "``").replace("\x00", "") + "`" for text in texts]
    comments = [" ".join(text.split()).replace("*/", "").replace("/*", "") + " ." for text in texts]
    one = ", ".join(map(in_spark, texts))
    two = ", ".join(f"{in_spark(text)} AS {name}" for text, name in zip(texts, names, strict=True))
    said = "\n".join(f"-- {comment}\n/* {comment} */" for comment in comments)
    query = f"""WITH e AS (SELECT *, array({one}) AS one FROM letters) {said}
        SELECT s, {two} {said} FROM (SELECT * FROM e WHERE one = array({one})) {CLAUSE} {said} WHERE '{{x}}' <> ''
        {said}"""
    assert [tuple(row) for row in kleene.sql(spark, query).collect()] == [("y", *texts)]


def test_positional_parameters_go_where_they_stand(spark) -> None:
    query = f"""WITH e AS (SELECT *, ? AS one FROM letters)
        SELECT s, ? AS two, 'why?' AS three FROM (SELECT * FROM e WHERE t < ? AND 1::int = one) {CLAUSE} WHERE ? = 4"""
    assert [tuple(row) for row in kleene.sql(spark, query, [1, 2, 3, 4]).collect()] == [("y", 2, "why?")]


@pytest.mark.parametrize(
    "text",
    [
        "a -- x\rb c",
        "a -- x\\\n b\n c",
        "a /* /*+ */ b */ c",
        "a /* /* */ b */ c",
        "a /* /* */ b",
        "'a\\' b' c 'd''e' \"f\"\"g\" r'h\\' i",
        "a AS abc://x--y, z",
        "$$ ' $$ a ' b",
        "$a$ ' $$ a $a$ b",
        "/*/ a */ b /**/ c",
        "/* 'x */ a ' b",
        "-- 'x\n a ' b",
        "`a``b` X'1F' é_1 a\u2028b",
        "/*\\*/ a */ b",
    ],
)
def test_names_and_strings_are_where_sparks_lexer_sees_them(text: str, classic_spark) -> None:
    if classic_spark.version < "4.1" and ("$" in text or "''" in text):
        pytest.skip("strings in dollar signs, and doubled quotes inside of strings, came with Spark 4.1")
    jvm = classic_spark._jvm
    parser, streams = jvm.org.apache.spark.sql.catalyst.parser, jvm.org.antlr.v4.runtime.CharStreams
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(streams.fromString(text)))
    lexer.removeErrorListeners()
    sparks = {(token.getStartIndex(), token.getText()) for token in lexer.getAllTokens() if token.getChannel() == 0}
    assert {one for one in sparks if one[1][0] in "abcdefghixzérX`'\""} == {
        (one.start, one.text) for one in tokens_of(text) if one.text[0] in "abcdefghixzérX`'\""
    }


def test_names_of_files_are_no_patterns(spark, tmp_path) -> None:
    names = [
        "x*.parquet",
        "xy.parquet",
        "{a,b}.parquet",
        "a.parquet",
        "[z].parquet",
        "z.parquet",
        "q?.parquet",
        "b\\s.parquet",
    ]
    for number, name in enumerate(names):
        pq.write_table(pa.table({"n": [number]}), tmp_path / name)
    for number, name in enumerate(names):
        frame = read_spark(spark, find_files(tmp_path / name))
        assert [row.n for row in frame.collect()] == [number]


@pytest.mark.parametrize("name", ["printable", "KleeneError", "annotations", "Nothing", "listed"])
def test_error_of_a_task_that_names_no_error_of_ours(name: str) -> None:
    found = kleene_error(RuntimeError(f"kleene.errors.{name}: something happened\nDo this."))
    assert isinstance(found, kleene.KleeneError)
    assert found.hint == "Do this."
