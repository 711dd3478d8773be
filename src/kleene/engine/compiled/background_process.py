"""The process that makes machine code beside the work of others: it reads one order a line, and lets them go first."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST = 300.0
"""Seconds after which a note of somebody who compiles is no longer believed."""


def step_back() -> None:
    """Let every other process go first.

    Linux shares processors out among sessions before it looks at the processes in them, and this is a session of its
    own: unless it is told otherwise, it gets as much as all whom it works for.
    """
    with suppress(OSError, AttributeError):
        os.nice(19)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")


def serve() -> None:
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        with suppress(Exception):  # whoever waits goes on without it
            make(order["source"], order["signatures"])


def make(source: str, signatures: dict[str, str]) -> None:
    from kleene.cache import cache_folder
    from kleene.engine.compiled.jit import is_stored, key_of, load  # imports NumPy and more: after stepping back

    folder = cache_folder()
    if folder is None or is_stored(source, signatures, folder):
        return
    note = folder / f"{key_of(source, signatures)}.making"
    if not _is_begun(note):
        return
    try:
        load(source, signatures)
    finally:
        note.unlink(missing_ok=True)


def _is_begun(note: Path) -> bool:
    """Whether the note was left by this process: nobody else is making it."""
    try:
        os.close(os.open(note, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        with suppress(OSError):
            if time.time() - note.stat().st_mtime > LONGEST:
                note.touch()
                return True
        return False
    return True


if __name__ == "__main__":
    step_back()
    serve()
