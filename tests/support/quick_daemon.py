"""Spark's daemon, from which its Python workers are forked, for workers that run many small tasks.

After every task a worker looks for garbage among all that it ever imported, which takes longer than most tasks of the
tests. Here it leaves alone what was there after its first task.
"""

from __future__ import annotations

import gc
from typing import Any

from pyspark import daemon

run_task = daemon.worker


def run_task_and_keep_imports(*given: Any) -> int:
    code = run_task(*given)
    if not gc.get_freeze_count():
        gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = run_task_and_keep_imports
    daemon.manager()
