"""The floor of each query: the least that any engine must do which looks at every event.

A floor reads the query's columns, tries the condition of each variable once on every event, and counts how often it
held. It has no automaton, no partitions and no runs, and its columns are numpy arrays from the start. Where a
condition refers to an event that was bound earlier, it reads one that came shortly before. Counts go to an array, so
that the compiler cannot do with fewer tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from workloads import RIP

VARIABLE = re.compile(r"\b([A-Z])\.price")

FINANCE = {
    "finance0": [
        "size[i] > 1000",
        "price[i] >= price[i - 1]",
        "price[i] < price[i - 1]",
    ],
    "finance1": [
        "True",
        "price[i] > price[i - 2] and price[i] >= price[i - 1]",
        "price[i] >= price[i - 2] and price[i] < price[i - 1]",
        "price[i] < price[i - 2] and price[i] < price[i - 1]",
    ],
    "finance2": [
        "True",
        "price[i] > price[i - 1]",
        "price[i] > price[i - 1] and price[i] > 1.01 * price[i - 2]",
        "abs(price[i] - price[i - 1]) < 0.01 * price[i] and ts[i] - ts[i - 2] < 600_000_000",
        "abs(price[i] - price[i - 1]) < 0.01 * price[i] and 300_000_000 <= ts[i] - ts[i - 2] < 600_000_000",
    ],
    "finance5": [
        "True",
        "ts[i] - ts[i - 2] < 300_000_000",
        "price[i] > 1.03 * price[i - 2] and ts[i] - ts[i - 2] < 300_000_000",
    ],
}
"""Conditions in the order of the pattern's names: Last is the event before, First the one before that."""

ITERATORS = {
    "p1": "True",
    "p2": "price[i] > price[i - 1]",
    "p3": "price[i] > min(price[i - 1], price[i - 2])",
}
"""What p1, p2 and p3 of SASE+ 2008 Table 1 ask of a[i]."""


def floor_of(name: str, events: pa.Table) -> Callable[[], int]:
    """The loop for the query, compiled and with its columns at hand: calling it is what is to be timed."""
    source, columns = _source(name)
    arrays = [_array(events, column) for column in columns]
    loop = _compiled(source, arrays)
    counts = np.zeros(32, np.int64)
    return lambda: int(loop(*arrays, counts))


def _source(name: str) -> tuple[str, list[str]]:
    """The text of the loop, and the columns that it takes."""
    if name in RIP:
        return rip_source(name), ["price"]
    if name in FINANCE:
        columns = ["price", "size", "ts"]
        return _loop(columns, [], _counting(FINANCE[name])), columns
    columns = ["symbol", "price", "volume"]
    same = "symbol[i] == symbol[i - 1]"
    conditions = ["price[i] % 500 == 0", f"{same} and {ITERATORS[name[:2]]}", f"{same} and volume[i] < 150"]
    return _loop(columns, [], _counting(conditions)), columns


def rip_source(name: str) -> str:
    pattern, definitions = RIP[name]
    variables = re.findall(r"[A-Z]", pattern)
    defined = dict(item.split(" AS ", 1) for item in re.split(r",\s*(?=[A-Z] AS)", definitions))
    conditions = {variable: defined.get(variable, "True").strip() for variable in variables}
    referred = {other for own, text in conditions.items() for other in VARIABLE.findall(text) if other != own}
    begin = [f"last_{variable} = price[0]" for variable in sorted(referred)]
    body = ["now, before = price[i], price[i - 1]"]
    for number, (variable, condition) in enumerate(conditions.items()):
        body += [f"if {_in_python(variable, condition)}:", f"    counts[{number}] += 1"]
        if variable in referred:
            body.append(f"    last_{variable} = before")
    return _loop(["price"], begin, body)


def _in_python(own: str, condition: str) -> str:
    condition = condition.replace(f"PREV({own}.price)", "before").replace(f"{own}.price", "now")
    return VARIABLE.sub(r"last_\1", condition).replace("AND", "and")


def _counting(conditions: list[str]) -> list[str]:
    return [line for number, text in enumerate(conditions) for line in (f"if {text}:", f"    counts[{number}] += 1")]


def _loop(columns: list[str], begin: list[str], body: list[str]) -> str:
    head = [f"def floor({', '.join(columns)}, counts):", *(f"    {line}" for line in begin)]
    loop = ["    for i in range(2, len(price)):", *(f"        {line}" for line in body), "    return counts[0]"]
    return "\n".join([*head, *loop])


def _compiled(source: str, arrays: list[Any]) -> Callable[..., Any]:
    import numba  # not with the module: the start of a process that needs no floor is measured too

    names: dict[str, Any] = {}
    exec(source, names)
    kinds = ", ".join("float64[::1]" if array.dtype == np.float64 else "int64[::1]" for array in arrays)
    compiled: Callable[..., Any] = numba.njit(f"int64({kinds}, int64[::1])", nogil=True)(names["floor"])
    return compiled


def _array(events: pa.Table, column: str) -> Any:
    values = events.column(column).combine_chunks()
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return np.array(values.to_numpy(zero_copy_only=False))  # a copy, since Arrow lets nobody write
