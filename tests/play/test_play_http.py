"""The playground over plain HTTP: what it answers, and whom and what it refuses."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.play.asking import MOST_LETTERS, Ask, read_ask, utf16_length
from kleene.play.server import MOST_BYTES, Playground
from kleene.play.serving import playground
from kleene.play.tables import MOST_ROWS, given_table, samples
from kleene.play.worker import Worker

HOSTILE = "</script><script>alert(1)</script>"
EVENTS = pa.table({"type": ["A", "B", "B"], "t": [1, 2, 3], "x": [5, 3, 7], "s": [HOSTILE, "b", HOSTILE]})
QUERY = "PATTERN SEQ(A a, B b) WHERE b.x > a.x"


@pytest.fixture(scope="module")
def server() -> Iterator[Playground]:
    with playground([given_table(f"{HOSTILE}.csv", EVENTS, "t", "type"), *samples()]) as one:
        threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
        yield one
        one.shutdown()


def sent(
    server: Playground, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def asked(server: Playground, **question: Any) -> dict[str, Any]:
    given = {"table": "given", "language": "sase", "query": QUERY, "page": "p", "number": 1} | question
    body = json.dumps(given).encode()
    status, _, found = sent(server, "POST", f"/{server.token}/ask", body, Content_Type="application/json")
    assert status == 200
    answer: dict[str, Any] = json.loads(found)
    return answer


# --- what it answers ---


def test_the_page_needs_nothing_from_elsewhere_and_says_so(server: Playground) -> None:
    status, headers, page = sent(server, "GET", f"/{server.token}/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert "Access-Control-Allow-Origin" not in headers
    assert b"http://" not in page
    assert b"https://" not in page
    for name in ("page.js", "page.css"):
        assert sent(server, "GET", f"/{server.token}/{name}")[0] == 200


def test_an_answer_is_that_of_the_calls(server: Playground) -> None:
    found = asked(server)
    expected = kleene.sase(QUERY).match(EVENTS, order_by="t")
    assert (found["matches"]["count"], found["number"]) == (expected.num_rows, 1)
    assert found["matches"]["columns"][:4] == ["a.type", "a.t", "a.x", "a.s"]
    assert found["matches"]["rows"][0][3] == HOSTILE
    assert found["why"]["text"].startswith("1 match among 3 events; 2 runs followed")
    assert "strategy   skip_till_any_match" in found["plan"]["text"]
    for picture in (found["timeline"], found["automaton"]):
        assert picture["svg"].startswith("<svg")
        assert "<script" not in picture["svg"]


def test_an_error_says_where_it_is_as_a_browser_counts(server: Playground) -> None:
    query = "-- 😀\nPATTERN SEQ(A a, B b) WHERE b.y > a.x"
    error = asked(server, query=query)["error"]
    letters = query.encode("utf-16-le")
    assert letters[2 * error["start"] : 2 * error["end"]].decode("utf-16-le") == "y"
    assert error["where"] == "line 2, column 31"
    assert "Attributes of B: type, t, x, s" in error["hint"]


def test_row_patterns_are_answered_too(server: Playground) -> None:
    clause = "ORDER BY t MEASURES A.x AS x PATTERN (A) DEFINE A AS x > 4"
    assert asked(server, language="sql", query=clause)["matches"]["rows"] == [["5"], ["7"]]
    error = asked(server, language="sql", query=clause.replace("PATTERN (A)", "PATTERN (A"))["error"]
    assert error["start"] >= clause.index("PATTERN")


@pytest.mark.parametrize("table", ["store", "trades"])
@pytest.mark.parametrize("language", ["sase", "sql"])
def test_every_example_finds_something(server: Playground, table: str, language: str) -> None:
    [offered] = [one for one in samples() if one.name == table]
    found = asked(server, table=table, language=language, query=offered.examples[language])
    assert 0 < found["matches"]["count"] < 2_000
    assert not any("error" in found[part] for part in ("timeline", "automaton", "plan", "why"))


def test_a_part_that_fails_leaves_the_others(server: Playground) -> None:
    found = asked(server, at="nothing = 1")
    assert "has no column 'nothing'" in found["why"]["error"]["message"]
    assert found["matches"]["count"] == 1
    assert "runs, step by step" in asked(server, at="x = 5")["why"]["text"]


def test_warnings_are_notes(server: Playground) -> None:
    found = asked(server, query="PATTERN SEQ(A a, B b) WHERE b.x > 5 AND b.x < 2")
    assert found["matches"]["count"] == 0
    assert found["notes"]


def test_the_tables_are_described_as_text(server: Playground) -> None:
    status, _, body = sent(server, "GET", f"/{server.token}/tables")
    assert status == 200
    contents = json.loads(body)
    assert [table["name"] for table in contents["tables"]] == ["given", "store", "trades"]
    assert contents["tables"][0]["first"]["rows"][0] == ["A", "1", "5", HOSTILE]


def test_large_tables_are_cut_and_say_so() -> None:
    offered = given_table("many", pa.table({"t": pa.array(range(MOST_ROWS + 7))}), "t", None)
    assert (offered.events.num_rows, offered.left_out) == (MOST_ROWS, 7)


# --- what it refuses ---


@pytest.mark.parametrize("token", ["", "wrong", "wrong/", "..", "%2e%2e/page.js", "%C3%A9"])
def test_nobody_gets_in_without_the_token(server: Playground, token: str) -> None:
    status, _, body = sent(server, "GET", f"/{token}")
    assert status == 403
    assert server.token.encode() not in body
    assert sent(server, "GET", f"/{server.token[:-1]}/")[0] == 403
    assert sent(server, "POST", "/ask", b"{}", Content_Type="application/json")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil"])
def test_no_other_name_leads_here(server: Playground, host: str) -> None:
    assert sent(server, "GET", f"/{server.token}/", Host=host)[0] == 403


def test_localhost_is_this_machine(server: Playground) -> None:
    assert sent(server, "GET", f"/{server.token}/", Host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_no_other_page_may_ask(server: Playground, origin: str) -> None:
    body = json.dumps({"query": QUERY}).encode()
    status, headers, _ = sent(
        server, "POST", f"/{server.token}/ask", body, Content_Type="application/json", Origin=origin
    )
    assert status == 403
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"x" * (MOST_BYTES + 1), {}, 413),
        (b"{}", {"Content_Type": "text/plain"}, 415),
        (b"{}", {"Content_Length": "9" * 40}, 413),
        (b"{}", {"Content_Length": "-2"}, 411),
        (b"garbage", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"[" * 50_000, {}, 400),
        (b"[]", {}, 400),
        (b'{"language": "sase", "query": 5}', {}, 400),
        (b'{"language": "perl", "query": ""}', {}, 400),
        (b'{"language": "sase", "query": "A", "number": "many"}', {}, 400),
        (b'{"language": "sase", "query": "A", "number": 1e999}', {}, 400),
        (json.dumps({"language": "sase", "query": "A" * (MOST_LETTERS + 1)}).encode(), {}, 400),
    ],
)
def test_what_is_no_question_is_refused(server: Playground, body: bytes, headers: dict[str, str], status: int) -> None:
    given = {"Content_Type": "application/json"} | headers
    found, _, said = sent(server, "POST", f"/{server.token}/ask", body, **given)
    assert found == status
    assert json.loads(said)["refused"]


@pytest.mark.parametrize(
    ("method", "name", "status"),
    [
        ("GET", "nothing", 404),
        ("GET", "../server.py", 404),
        ("GET", "asking.py", 404),
        ("GET", "ask", 404),
        ("POST", "", 404),
        ("POST", "tables", 404),
        ("PUT", "", 501),
        ("DELETE", "", 501),
        ("OPTIONS", "ask", 501),
    ],
)
def test_there_is_nothing_else(server: Playground, method: str, name: str, status: int) -> None:
    assert sent(server, method, f"/{server.token}/{name}")[0] == status


def test_an_unknown_table_is_an_error_on_the_page(server: Playground) -> None:
    assert asked(server, table="none")["error"]["message"] == "there is no such table"


# --- what takes too long ---


def test_a_query_with_too_many_matches_ends_at_a_limit(server: Playground) -> None:
    error = asked(server, table="trades", query="PATTERN SEQ(Trade+ a[], Trade b)")["error"]
    assert "limit" in error["message"] or "more than" in error["message"]
    assert asked(server)["matches"]["count"] == 1


@pytest.mark.slow
def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_comes() -> None:
    worker = Worker([given_table("events", EVENTS, "t", "type")], most_seconds=0.05)
    try:
        ask = Ask("given", "sase", QUERY, "t")
        late = worker.answer("p", 1, ask)
        assert late["error"]["message"] == "the answer took longer than 0.05 seconds, and was given up"
        worker._most_seconds = 60
        assert worker.answer("p", 2, ask)["matches"]["count"] == 1
        process = worker._process
        process.kill()
        process.join()
        assert worker.answer("p", 3, ask)["error"]["message"] == "the process that answers has ended"
        assert worker.answer("p", 4, ask)["matches"]["count"] == 1
    finally:
        worker.close()
    assert worker.answer("p", 5, ask)["error"]["message"] == "the process that answers has ended"


def test_of_the_questions_that_wait_only_the_newest_is_answered() -> None:
    worker = Worker([])
    ask, found = Ask("given", "sase", QUERY), dict[int, Any]()
    worker._asked = lambda one: {"answered": True}  # type: ignore[method-assign]
    worker._busy.acquire()
    threads = [
        threading.Thread(target=lambda number=number: found.update({number: worker.answer("p", number, ask)}))
        for number in (1, 2, 3)
    ]
    for thread in threads:
        thread.start()
    while worker._newest.get("p") != 3:
        pass
    worker._busy.release()
    for thread in threads:
        thread.join()
    assert found == {1: {"superseded": True}, 2: {"superseded": True}, 3: {"answered": True}}


def test_a_port_that_is_taken_is_an_error_with_a_way_out(server: Playground) -> None:
    with (
        pytest.raises(kleene.UnsupportedError, match=f"cannot listen on port {server.server_port}"),
        playground([], port=server.server_port),
    ):
        pass


def test_questions_are_read_strictly() -> None:
    assert read_ask({"language": "sql", "query": "x"}) == Ask("", "sql", "x")
    with pytest.raises(kleene.UnsupportedError, match="all of them texts"):
        read_ask({"language": "sql", "query": None})
    assert utf16_length("\ud800") == 1
