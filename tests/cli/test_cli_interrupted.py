"""Ctrl-C ends a command, and the Spark that it started, with the exit code that the docs name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
QUERY = "EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 1 hour"
READINGS = '{"type": "Shelf", "ts": "2024-01-01T10:00:00", "id": 7}\n'


def interrupted(arguments: list[str], folder: Path, is_time: Callable[[int], bool]) -> int:
    """The exit code of a command in a session of its own, to which Ctrl-C is sent once it is time."""
    command = [sys.executable, "-m", "kleene", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": (folder / "said").open("w")}
    with subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes) as process:
        for _ in range(600):
            if is_time(process.pid):
                break
            assert process.poll() is None, (folder / "said").read_text()
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(90)
    for _ in range(200):  # Java ends when it sees that Python has
        if not others_of(process.pid):
            return code
        time.sleep(0.1)
    raise AssertionError(others_of(process.pid))


def others_of(session: int) -> list[str]:
    """The commands that run in the session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, own = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append((folder / "cmdline").read_text())
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
    return found


def test_a_command_that_waits_for_its_input(tmp_path: Path) -> None:
    (tmp_path / "query.sase").write_text(QUERY)
    begun = time.monotonic()
    code = interrupted(["match", "query.sase", "-i", "-", "-b", "ts"], tmp_path, lambda _: time.monotonic() > begun + 3)
    assert code == 130


def test_a_match_on_spark(tmp_path: Path) -> None:
    (tmp_path / "query.sase").write_text(QUERY)
    (tmp_path / "readings.jsonl").write_text(READINGS)
    arguments = ["match", "query.sase", "-i", "readings.jsonl", "-b", "ts", "--spark"]
    code = interrupted(arguments, tmp_path, lambda session: any("java" in one for one in others_of(session)))
    assert code == 130


def test_a_stream(tmp_path: Path) -> None:
    (tmp_path / "query.sase").write_text(QUERY)
    (tmp_path / "readings").mkdir()
    (tmp_path / "readings" / "first.jsonl").write_text(READINGS)
    arguments = ["stream", "query.sase", "-i", "readings", "-b", "ts", "-w", "1 hour"]
    code = interrupted(arguments, tmp_path, lambda _: "readings →" in (tmp_path / "said").read_text())
    assert code == 0
    assert "stopped" in (tmp_path / "said").read_text()
