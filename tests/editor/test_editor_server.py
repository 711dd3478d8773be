"""The server as an editor meets it: a process that speaks the protocol over its standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.slow
URI = "file:///theft.sase"
TEXT = "EVENT SEQ(Shelf a, Exit b)\nWHERE a.name = '𝔘' AND b.prize > 3"


class Editor:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._number = process, 0

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return dict(json.loads(self._process.stdout.read(length)))

    def tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while (answer := self._receive()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def told(self, method: str) -> Any:
        while (message := self._receive()).get("method") != method:
            pass
        return message["params"]


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    command = [
        sys.executable,
        "-m",
        "kleene",
        "language-server",
        "--schema",
        "type string, t int, name string, price float",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        editor = Editor(process)
        told = editor.ask("initialize", processId=None, rootUri=None, capabilities={})
        assert told["capabilities"]["hoverProvider"]
        editor.tell("initialized")
        yield editor
        editor.ask("shutdown")
        editor.tell("exit")
        assert process.wait(10) == 0


def test_errors_come_as_one_types(editor):
    editor.tell("textDocument/didOpen", textDocument={"uri": URI, "languageId": "sase", "version": 1, "text": TEXT})
    [problem] = editor.told("textDocument/publishDiagnostics")["diagnostics"]
    assert "Did you mean 'price'?" in problem["message"]
    # The letter before it takes two of the units that the protocol counts in.
    assert problem["range"] == {"start": {"line": 1, "character": 26}, "end": {"line": 1, "character": 31}}
    change = {"range": problem["range"], "text": "price"}
    editor.tell("textDocument/didChange", textDocument={"uri": URI, "version": 2}, contentChanges=[change])
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []


def test_attributes_are_offered_behind_a_dot(editor):
    at = {"line": 1, "character": 26}
    found = editor.ask("textDocument/completion", textDocument={"uri": URI}, position=at)
    assert [item["label"] for item in found["items"]] == ["type", "t", "name", "price"]


def test_a_word_is_explained(editor):
    found = editor.ask("textDocument/hover", textDocument={"uri": URI}, position={"line": 0, "character": 16})
    assert "an event of type Shelf" in found["contents"]["value"]


def test_a_closed_document_has_no_problems(editor):
    editor.tell("textDocument/didClose", textDocument={"uri": URI})
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []
