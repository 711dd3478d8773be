"""Templates of loops: how they become part of a generated module; and those that are the same for every query.

The loops that are the same for every query are loaded once for each way of running them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from threading import RLock
from typing import Any

from kleene.engine.compiled.arrays import constants_of
from kleene.engine.compiled.jit import load

VECTOR, TABLE, CUBE = "int64[::1]", "int64[:,::1]", "int64[:,:,::1]"
ROW_TABLE = "int32[:,::1]"  # the rows of matches are many, and narrow ones are written faster
_NAMES = {
    "int64": "accepting count first first_place from_last from_row last limit low mode most offset root row to_row",
    "float64[::1]": "kf numbers sums",
    TABLE: "accepts directory done edge failed found groups high_i kept_i lengths low_i ni node oi own ri shared_i "
    "stored_i vectors version walks whole",
    CUBE: "blocks",
    "float64[:,::1]": "floats high_f kept_f low_f nf of rf shared_f stored_f",
    "int32[::1]": "kinds moved_offsets new_places out p row_slots short_codes short_last "
    "short_moved short_places short_positions short_values text_offsets use word_offsets",
    "uint8[::1]": "is_missing moved_bytes text_bytes word_bytes",
    ROW_TABLE: "heights sequences sorted_",
    "uint8[:,::1]": "nulls",
    f"Tuple((int64, int64, float64, {VECTOR}, float64[::1], {VECTOR}))": "window",
}
_TYPES = {name: type_ for type_, names in _NAMES.items() for name in names.split()}
"""The types of kernels' arguments by their names; what is not here is a vector."""
_TAKEN_APART = re.compile(r"^    (\w+(?:, \w+)+) = (\w+)$", re.MULTILINE)

_SHARED = (
    "merged_matches",
    "versioned_matches",
    "garbage",
    "counting",
    "ways",
    "match_order",
    "sequence_order",
    "row_lookup",
    "row_ends",
    "match_sums",
    "grouping",
    "shares",
    "merging",
    "texts",
    "choosing",
)
"""The files with loops that are the same for every query."""


def template(name: str) -> str:
    """The loops that stand below the line of dashes in a file of `loops`."""
    return _TEMPLATES[name]


def assembled(header: str, parts: Iterable[str]) -> str:
    """The source of a generated module: its header, the columns and statuses that its parts name, and the parts."""
    text = "\n\n".join(part for part in parts if part)
    return "\n\n".join(part for part in (header, constants_of(text), text) if part)


def constants_code(values: Mapping[str, object]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in values.items())


def signatures_in(source: str, results: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """The signatures of functions of which the results are given; `types` are those that the module knows better.

    An argument that the function takes apart into several names is a tuple of these.
    """
    found = {}
    for name, result in results.items():
        arguments, body = source.split(f"\ndef {name}(", 1)[1].split("):\n", 1)
        tuples = {whole: parts for parts, whole in _TAKEN_APART.findall(body.split("\ndef ", 1)[0])}
        own = [_type_of(argument, tuples, types) for argument in arguments.replace(",", " ").split()]
        found[name] = f"{result}({', '.join(own)})"
    return found


def _type_of(name: str, tuples: Mapping[str, str], types: Mapping[str, str]) -> str:
    if name in tuples:
        return f"Tuple(({', '.join(_type_of(part, {}, types) for part in tuples[name].split(', '))}))"
    return type_of_argument(name, types)


def type_of_argument(name: str, types: Mapping[str, str]) -> str:
    return types.get(name) or _TYPES.get(name, VECTOR)


def _below_the_line(name: str) -> str:
    # As a resource of the package: on a cluster the package may lie in a zip, where there are no paths.
    text = resources.files("kleene.engine.compiled").joinpath("loops", f"{name}.py").read_text(encoding="utf-8")
    return text.split("# ---", 1)[1].split("\n", 1)[1]


# Read now: a file that changes later belongs to another version of the code that runs it.
_TEMPLATES = {
    name: _below_the_line(name) for name in ("walk", "rows", "negation", "regex_blocks", "sequences", *_SHARED)
}
_TEMPLATES |= {
    name: _below_the_line("run_copies") + "\n\n" + _below_the_line(name)
    for name in ("runs", "backtrack", "regex", "steps")
}


_LOADING = RLock()


class SharedLoops:
    """The loops that are the same for every query, by name. Each is made when it is first asked for: few need all."""

    def __init__(self, jit: bool) -> None:
        self.jit = jit
        self._loaded: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._loaded:
            with _LOADING:
                self._loaded[name] = load(*shared_source(name), self.jit)[name]
        return self._loaded[name]


def shared_source(name: str) -> tuple[str, dict[str, str]]:
    """The source of a loop that is the same for every query, with those that it calls, and its signature."""
    functions = _functions()
    source = assembled("ALLOCATES = False", (functions[needed] for needed in _needed(name)))
    return source, signatures_in(source, {name: "int64"}, {})


def shared_names() -> list[str]:
    """The loops that are the same for every query, without those that only serve others."""
    functions = _functions()
    serving = {name for other in functions for name in _needed(other)[:-1]}
    return [name for name in functions if name not in serving and f"def {name}(" not in template("walk")]


@cache
def shared_loops(jit: bool) -> SharedLoops:
    return SharedLoops(jit)


@cache
def _functions() -> dict[str, str]:
    text = "\n\n".join(template(name) for name in (*_SHARED, "walk"))
    parts = re.split(r"^(?=def )", text, flags=re.MULTILINE)[1:]
    return {part.removeprefix("def ").split("(")[0]: part for part in parts}


@cache
def _needed(name: str) -> list[str]:
    """The function and those that it calls, which come first."""
    functions = _functions()
    words = set(re.findall(r"\b\w+(?=\()", functions[name]))
    called = [other for other in functions if other != name and other in words]
    return [*dict.fromkeys(needed for other in called for needed in _needed(other)), name]
