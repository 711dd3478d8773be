"""Machine code travels with the work: an executor that has never seen a query need not compile it."""

from __future__ import annotations

import marshal
import zlib
from typing import Any

from kleene.engine.code_of_plan import Code, code_of, receive_in_task
from kleene.errors import KleeneError
from kleene.plan.plan import Plan


class ShippedCode:
    """A part of every task. Where the task is sent, it becomes machine code; where it arrives, that is taken.

    Code for another processor, or other versions of the libraries, is never looked at there: its key differs.
    """

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (zlib.compress(marshal.dumps(dict(self._code())), level=1),)

    def _code(self) -> Code:
        if self._plan is None:
            return {}
        try:
            return code_of(self._plan)
        except (KleeneError, NotImplementedError):  # the tasks will tell
            return {}


def _received(code: bytes) -> ShippedCode:
    receive_in_task(marshal.loads(zlib.decompress(code)))
    return ShippedCode()
