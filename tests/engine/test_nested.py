"""Parts of nested columns in every language, every clause and every engine."""

import pyarrow as pa
import pytest

import kleene

USER = pa.struct([("id", pa.int64()), ("Name", pa.string())])
PAYLOAD = pa.struct([("user", USER), ("ts", pa.int64()), ("price", pa.float64())])
ROWS = [
    ("A", 1, 7, "ann", 10.0, ["x", "y"], [("home", 1)]),
    ("B", 2, 8, "bob", 12.0, [], []),
    ("B", 3, 7, "ann", 11.0, ["y"], [("home", 3), ("away", 4)]),
    ("B", 4, 7, "ann", 15.0, None, None),
]
EVENTS = pa.table(
    {
        "type": [row[0] for row in ROWS],
        "payload": pa.array(
            [{"user": {"id": row[2], "Name": row[3]}, "ts": row[1], "price": row[4]} for row in ROWS], PAYLOAD
        ),
        "tags": pa.array([row[5] for row in ROWS], pa.list_(pa.string())),
        "scores": pa.array([row[6] for row in ROWS], pa.map_(pa.string(), pa.int64())),
    }
)
ENGINES = ["reference", "generated"]


@pytest.mark.parametrize("engine", ENGINES)
def test_sase_reads_parts_in_every_clause(engine):
    query = kleene.sase(
        """PATTERN SEQ(A a, B b) WHERE [payload.user.id] AND b.payload.price > a.payload.price AND b.tags[0] = 'y'
           HAVING b.scores['away'] = 4
           RETURN a.payload.user.id, b.payload.ts AS ts, b.scores.home AS home, b.tags[5] AS none"""
    )
    found = query.match(EVENTS, order_by="payload.ts", engine=engine)
    assert found.to_pylist() == [{"id": 7, "ts": 3, "home": 3, "none": None}]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kleene_variable_has_parts(engine):
    query = kleene.sase(
        """PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) {
               [payload.user.id] AND b[i].payload.price > b[i-1].payload.price }
           HAVING avg(b[].payload.price) > 12 RETURN collect(b[].payload.ts) AS ts, b[1].tags[0] AS tag"""
    )
    found = query.match(EVENTS, order_by="payload.ts", engine=engine)
    assert found.to_pylist() == [{"ts": [3, 4], "tag": "y"}]


@pytest.mark.parametrize("engine", ENGINES)
def test_whole_events_have_no_further_columns(engine):
    [row] = (
        kleene.sase("PATTERN SEQ(A a, B b) WHERE [payload.user.id] AND b.payload.price > 12")
        .match(EVENTS, order_by="payload.ts", engine=engine)
        .to_pylist()
    )
    assert list(row) == ["payload.user.id", "a", "b", "match_start", "match_end"]
    assert list(row["a"]) == EVENTS.column_names
    assert (row["payload.user.id"], row["match_start"], row["match_end"]) == (7, 1, 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_row_patterns_read_parts_in_every_clause(engine):
    query = kleene.match_recognize(
        """PARTITION BY payload.user.id ORDER BY payload.ts
           MEASURES LAST(UP.payload.price) AS top, FIRST(tags[0]) AS tag, LAST(PAYLOAD.User.name) AS name
           PATTERN (S UP+) DEFINE UP AS UP.payload.price > PREV(payload.price) AND UP.tags[1] IS NULL"""
    )
    found = query.match(EVENTS, engine=engine)
    assert found.to_pylist() == [{"payload.user.id": 7, "top": 15.0, "tag": "x", "name": "ann"}]


def test_all_rows_show_the_columns_of_the_input():
    clause = "ORDER BY payload.ts MEASURES payload.ts AS ts ALL ROWS PER MATCH PATTERN (A+)"
    assert set(kleene.match_recognize(clause).match(EVENTS).column_names) == {*EVENTS.column_names, "ts"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_regular_expression_operator_reads_parts(engine):
    query = kleene.regex(
        pattern=". rise+",
        partition_by="payload.user.id",
        order_by="payload.ts",
        predicates={"rise": "payload.price > Last(payload.price) AND scores['home'] IS NOT NULL"},
        output={"top": "Max(payload.price)", "tags": "Collect(tags[0])"},
    )
    assert query.match(EVENTS, engine=engine).to_pylist() == [{"top": 11.0, "tags": ["x", "y"]}]


def test_progress_takes_parts_of_each_piece():
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [payload.user.id] RETURN b.payload.ts AS ts")
    progress = query.progress(EVENTS, order_by="payload.ts")
    found = [row for at in range(4) for row in progress.feed(EVENTS.slice(at, 1)).to_pylist()]
    assert found == [{"ts": 3}, {"ts": 4}]


def test_inputs_by_type_have_parts():
    inputs = {"A": EVENTS.slice(0, 1).drop_columns("type"), "B": EVENTS.slice(1).drop_columns("type")}
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [payload.user.id] RETURN b.payload.ts AS ts")
    assert query.match(inputs, order_by="payload.ts").to_pylist() == [{"ts": 3}, {"ts": 4}]


def test_a_composite_event_has_the_events_of_its_match_as_parts():
    program = kleene.program(
        """EVENT SEQ(A x, B y) WHERE [payload.user.id] INTO Pair;
           FROM Pair EVENT Pair p WHERE p.y.payload.ts = 3 RETURN p.x.payload.user.`Name` AS who"""
    )
    assert program.match(EVENTS, order_by="payload.ts")["query_2"].to_pylist() == [{"who": "ann"}]


def test_a_column_that_is_called_like_a_path_is_meant():
    flat = pa.table({"type": ["A"], "payload.ts": [5], "payload": pa.array([{"ts": 1}])})
    query = kleene.sase("EVENT A a RETURN a.payload.ts AS ts")
    assert query.match(flat, order_by="payload.ts").to_pylist() == [{"ts": 5}]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("payload.usr", ["'payload' has no field 'usr'", "Fields: user, ts, price", "Did you mean 'user'"]),
        ("payload[0]", ["'payload' has no field 0"]),
        ("payload.user.id.x", ["'payload.user.id' is of type int64", "no part 'x'"]),
        ("tags.x", ["'tags' is of type list", "positions from 0"]),
        ("scores[1]", ["'scores' has keys of type string, not 1"]),
        ("payload.user", ["struct"]),
        ("nope.x", ["no attribute 'nope.x'"]),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error_that_points(path, says):
    with pytest.raises(kleene.KleeneError) as caught:
        kleene.sase(f"EVENT A a WHERE a.{path} = 1").match(EVENTS, order_by="payload.ts")
    for words in says:
        assert words in str(caught.value)
    assert "line 1" in str(caught.value)


def test_encoded_values_inside_are_read():
    inner = pa.array(["x", "y", "x", None]).dictionary_encode()
    table = EVENTS.append_column("s", pa.StructArray.from_arrays([inner], names=["word"]))
    query = kleene.sase("EVENT B b WHERE b.s.word = 'x' RETURN b.payload.ts AS ts")
    assert query.match(table, order_by="payload.ts").to_pylist() == [{"ts": 3}]


def test_lists_of_every_kind_have_positions():
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)):
        values = pa.array([[1, 2], None, [5, 6]], kind)
        table = pa.table({"t": [1, 2, 3], "x": pa.chunked_array([values.slice(1), values.slice(0, 1)])})
        found = kleene.match_recognize("ORDER BY t MEASURES x[1] AS x PATTERN (A)").match(table)
        assert found.to_pylist() == [{"x": None}, {"x": 6}, {"x": 2}]
