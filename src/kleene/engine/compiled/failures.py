"""What the compiled engine says when it cannot go on."""

from __future__ import annotations

from typing import Any

import numpy as np

from kleene.errors import ExecutionError, printable
from kleene.ir import expr as ir
from kleene.ir.text import expression_text


class NotExpressibleError(Exception):
    """The engine has no code for this. The message is a noun phrase that fits after "has no code for …"."""


class GaveUpError(ExecutionError):
    """A value does not fit the engine's 64 bits, or cannot be computed.

    Where the whole input is at hand the interpreter is asked, which knows whether this is an error at all.
    """

    def __init__(self, expression: ir.Expr, said: ExecutionError | None = None) -> None:
        """`said` is what a function of the user's own said, where it is one that failed."""
        self.expression = expression
        if said is not None:
            super().__init__(said.message, hint=said.hint)
            return
        super().__init__(
            f"cannot compute {printable(expression_text(expression), 200)}: a value does not fit, or is out of range",
            hint="Cast an operand to float, which is approximate but has no such limit, or filter such events out.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return ExecutionError, (self.message, None, self.hint)


MOST_APART = 2**62


def check_span(times: np.ndarray[Any, Any], name: str) -> None:
    """Gives up if times of this column are so far apart that their differences may not fit 64 bits."""
    if len(times) and times.dtype == np.int64 and int(times.max()) - int(times.min()) >= MOST_APART:
        raise GaveUpError(ir.Attribute(None, name))
