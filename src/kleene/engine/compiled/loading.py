"""The loops that are the same for every query, loaded once for each way of running them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kleene.engine.compiled.jit import Kernels, load

_INTS, _FLOATS, _TABLE = "int64[::1]", "float64[::1]", "int64[:,::1]"
_WINDOW = f"int64, int64, float64, {_INTS}, {_FLOATS}, {_INTS}"
_SIGNATURES = {
    "expand_merged": f"int64({_INTS}, {_TABLE}, int64, {_TABLE}, {_WINDOW}, "
    f"{_INTS}, {_INTS}, {_TABLE}, {_INTS}, {_INTS})",
    "expand_versions": f"int64({_INTS}, {_TABLE}, int64, {_TABLE}, {_TABLE}, {_TABLE}, "
    f"{_INTS}, {_INTS}, {_TABLE}, {_INTS}, {_INTS})",
    "mark_merged": f"int64({_TABLE}, int64, {_INTS}, {_WINDOW})",
    "mark_versions": f"int64({_INTS}, {_INTS}, {_TABLE}, {_TABLE}, {_TABLE}, {_INTS}, {_INTS}, {_INTS})",
    "resolve": f"int64({_INTS}, {_INTS}, {_INTS})",
    "live_heads": f"int64({_INTS}, {_TABLE}, {_WINDOW})",
    "pack_merged": f"int64({_TABLE}, int64, {_INTS})",
    "count_merged": f"int64({_TABLE}, int64, int64, {_TABLE}, {_INTS}, {_INTS}, int64, "
    f"{_TABLE}, int64, {_INTS}, {_WINDOW})",
    "order_matches": f"int64({_INTS}, {_INTS}, int64, {_INTS}, {_TABLE}, {_INTS}, {_INTS})",
    "group_rows": f"int64({_INTS}, {_INTS}, {_INTS})",
}


def template(name: str) -> str:
    """The loops that stand below the line of dashes in a file of `loops`."""
    text = (Path(__file__).parent / "loops" / f"{name}.py").read_text(encoding="utf-8")
    return text.split("# ---", 1)[1].split("\n", 1)[1]


@cache
def shared_loops(jit: bool) -> Kernels:
    return load("import numpy as np\n" + template("expansion"), _SIGNATURES, jit)
