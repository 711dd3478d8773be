"""`kleene play`: the address that it prints leads to the page, and Ctrl-C ends it and what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from test_cli_interrupted import others_of
from typer.testing import CliRunner

from kleene.cli import app


@pytest.mark.slow
def test_the_page_is_there_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "theft.sase").write_text("PATTERN SEQ(A a, B b)")
    (tmp_path / "events.csv").write_text("type,t\nA,1\nB,2\n")
    command = [sys.executable, "-m", "kleene", "play", "theft.sase", "-i", "events.csv", "-b", "t", "--no-open"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, text=True, **pipes) as process:
        try:
            address = process.stdout.readline().strip()
            with urllib.request.urlopen(f"{address}tables", timeout=30) as response:
                contents = response.read().decode()
            question = b'{"table": "given", "language": "sase", "query": "PATTERN SEQ(A a, B b)"}'
            headers = {"Content-Type": "application/json"}
            with urllib.request.urlopen(
                urllib.request.Request(f"{address}ask", question, headers), timeout=90
            ) as found:
                answer = found.read().decode()
        finally:
            os.killpg(process.pid, signal.SIGINT)
            code = process.wait(60)
    assert '"start": {"language": "sase", "query": "PATTERN SEQ(A a, B b)"}' in contents
    assert '"label": "events.csv"' in contents
    assert '"count": 1' in answer
    assert code == 130
    assert others_of(process.pid) == []


def test_what_cannot_be_played_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "spikes.regex"
    path.write_text("")
    result = CliRunner().invoke(app, ["play", str(path), "--no-open"])
    assert result.exit_code != 0
    assert "the playground takes SASE and MATCH_RECOGNIZE" in result.stderr
    missing = CliRunner().invoke(app, ["play", "-i", str(tmp_path / "none.csv"), "--no-open"])
    assert missing.exit_code != 0
    assert "there is no file or folder" in missing.stderr
