"""Libraries that some versions have types for, of some of their functions; none of the code here needs them."""

from __future__ import annotations

import importlib
from typing import Any


def untyped(module: str) -> Any:
    """A part of numba or llvmlite, which is imported when it is first needed."""
    return importlib.import_module(module)
