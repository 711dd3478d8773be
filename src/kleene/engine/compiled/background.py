"""Machine code made beside the work: a process of low priority compiles, and leaves the code in the cache folder.

A process and not a thread: numba holds Python's lock while it compiles, and would slow down what it is to speed up.
No two processes make the same code at a time: whoever begins leaves a note in the cache folder, which is old after a
while. The process ends with the one that started it; what it has not finished is begun anew when it is wanted again.

The process is `background_process.py`, which reads one order a line.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from queue import SimpleQueue

from kleene.cache import cache_folder
from kleene.engine.compiled.jit import is_stored, key_of

SWITCH = "KLEENE_BACKGROUND"
"""With "0", nothing is made in the background: a query waits for its machine code, as with engine='compiled'."""
_LOCK = threading.Lock()
_asked: set[str] = set()
_asks = True
_process: subprocess.Popen[str] | None = None
_orders: SimpleQueue[str] = SimpleQueue()


def is_on() -> bool:
    return os.environ.get(SWITCH, "1") != "0"


def never_here() -> None:
    """From now on this process asks for nothing: it is a task of many, which go on with what came with the work."""
    global _asks
    _asks = False


def ask_for(source: str, signatures: Mapping[str, str]) -> None:
    """Has the code made, unless somebody in this process has asked for it already."""
    key = key_of(source, signatures)
    with _LOCK:
        if key in _asked or not _asks or not is_on():
            return
        _asked.add(key)
        if _running() is not None:
            _orders.put(json.dumps({"source": source, "signatures": dict(signatures)}) + "\n")


def is_ready(source: str, signatures: Mapping[str, str]) -> bool:
    """Whether the code lies on disk by now."""
    folder = cache_folder()
    return folder is not None and is_stored(source, signatures, folder)


def _running() -> subprocess.Popen[str] | None:
    global _process
    if _process is None or _process.poll() is not None:
        environment = {**os.environ, SWITCH: "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            _process = subprocess.Popen(
                [sys.executable, "-m", f"{__name__}_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the caller
            )
        except OSError:  # no more processes, or no interpreter to start: the loops of all queries go on
            return None
        atexit.register(_end, _process, os.getpid())
        threading.Thread(target=_hand_over, args=(_process,), daemon=True).start()
    return _process


def _hand_over(process: subprocess.Popen[str]) -> None:
    """Gives the process one order after the other: it reads the next when it is done with the one before."""
    assert process.stdin is not None
    with suppress(OSError, ValueError):  # it was killed; another process may have the rest made
        while process.poll() is None:
            process.stdin.write(_orders.get())
            process.stdin.flush()


def _end(process: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() != owner:  # a copy of the process that started it
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait(1.0)
