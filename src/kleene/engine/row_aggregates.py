"""Aggregates over rows of a match, in plain code: what they do with the values of each row (SEMANTICS §4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from kleene.ir import expr as ir
from kleene.ir.calls import folded
from kleene.ir.evaluate import Bindings, aggregated, as_float, evaluate, where
from kleene.ir.functions import nested
from kleene.schema import Type


def aggregate_of_rows(aggregate: ir.Aggregate, rows: Sequence[Bindings]) -> Any:
    """The aggregate over the rows, each given as what an expression of it is evaluated for."""
    if aggregate.condition is not None:
        rows = [row for row in rows if evaluate(aggregate.condition, row) is True]
    if isinstance(aggregate.argument, ir.Events):
        return len(rows)
    if aggregate.order:
        rows = _ordered(aggregate.order, rows)
    if not aggregate.others:
        values = [evaluate(aggregate.argument, row) for row in rows]
        values = _distinct(values) if aggregate.distinct else values
        if aggregate.own is not None:
            known = [value for value in values if value is not None]
            return folded(aggregate, known, where(rows[-1]) if rows else "")
        return _of_values(aggregate, values)
    parts = (aggregate.argument, *aggregate.others)
    each = [tuple(evaluate(part, row) for part in parts) for row in rows]
    return _of_several(aggregate, _distinct(each) if aggregate.distinct else each)


def _ordered(keys: Sequence[ir.OrderKey], rows: Sequence[Bindings]) -> Sequence[Bindings]:
    """The rows in the order of the keys; those of equal keys as they come. NaN is the largest number."""
    for key in reversed(keys):
        pairs = [(evaluate(key.operand, row), row) for row in rows]
        nulls = [row for value, row in pairs if value is None]
        known = [pair for pair in pairs if pair[0] is not None]
        known.sort(key=lambda pair: (pair[0] != pair[0], pair[0]), reverse=key.descending)
        rows = [row for _, row in known]
        rows = [*nulls, *rows] if key.nulls_first else [*rows, *nulls]
    return rows


def distinct_key(value: Any) -> Hashable:
    """What makes values the same when they are grouped: NaN is the same as NaN there."""
    if isinstance(value, (tuple, list)):
        return tuple(map(distinct_key, value))
    if isinstance(value, dict):
        return frozenset((distinct_key(key), distinct_key(item)) for key, item in value.items())
    return "NaN" if isinstance(value, float) and value != value else value


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Each value where it is first."""
    first_of_each: dict[Hashable, Any] = {}
    for value in values:
        first_of_each.setdefault(distinct_key(value), value)
    return list(first_of_each.values())


def _of_values(aggregate: ir.Aggregate, values: list[Any]) -> Any:
    function = aggregate.function
    if function == "array_agg":
        return values or None
    known = [value for value in values if value is not None]
    match function:
        case "collect_list":
            return known
        case "collect_set":
            return _distinct(known)
        case "count_if":
            return sum(known)
        case "approx_count_distinct":
            return len(_distinct(known))
    if not known and function != "count":
        return None
    match function:
        case "any_value":
            return known[0]
        case "bool_and":
            return all(known)
        case "bool_or":
            return any(known)
        case "listagg":
            return "".join(known)
        case "map_union":
            return nested.map_value(entry for one in known for entry in one.items())
        case "mode":
            counts = Counter(map(distinct_key, known))
            return max(known, key=lambda value: counts[distinct_key(value)])  # the first of several
        case "median":
            return _percentile(known, 0.5, aggregate.argument.type)
        case "bit_and" | "bit_or" | "bit_xor":
            return reduce({"bit_and": and_, "bit_or": or_, "bit_xor": xor}[function], known)
        case "stddev" | "stddev_pop" | "var_samp" | "var_pop":
            return spread(function, *_moments(known, aggregate.argument.type))
    return aggregated(aggregate, known)


def _of_several(aggregate: ir.Aggregate, each: list[Any]) -> Any:
    match aggregate.function:
        case "count":
            return sum(all(value is not None for value in values) for values in each)
        case "listagg":
            known = [value for value, _ in each if value is not None]
            return (each[0][1] or "").join(known) if known else None
        case "map_agg":
            return nested.map_value((key, value) for key, value in each if key is not None) if each else None
        case "multimap_agg":
            return _multimap(each) if each else None
        case "percentile":
            known = [value for value, _ in each if value is not None]
            return _percentile(known, float(each[0][1]), aggregate.argument.type) if known else None
        case "min" | "max" as function:
            return _extremes([(value, value) for value, _ in each], function == "max", each[0][1] if each else 1)
    is_max, how_many = aggregate.function == "max_by", aggregate.others[1:]
    best = _extremes([(values[0], values[1]) for values in each], is_max, each[0][2] if how_many and each else 1)
    return best if how_many else best and best[0]


def _extremes(pairs: list[tuple[Any, Any]], largest: bool, most: int) -> list[Any] | None:
    """The values with the largest or the smallest keys, the first of those that are equal first."""
    known = [(value, key) for value, key in pairs if key is not None and key == key]  # NaN is neither small nor large
    known.sort(key=lambda pair: pair[1], reverse=largest)
    return [value for value, _ in known[:most]] or None


def _multimap(entries: list[Any]) -> dict[Any, list[Any]]:
    """A map from each key to the list of its values, in their order."""
    found: dict[Any, list[Any]] = {}
    for key, value in entries:
        if key is not None:
            found.setdefault(nested.map_key(key), []).append(value)
    return found


def _percentile(values: list[Any], share: float, type_: Type | None) -> float:
    """The value at the share of the way from the smallest to the largest, between two of them where it falls there."""
    ordered = sorted((as_float(value, type_) for value in values), key=lambda value: (value != value, value))
    place = share * (len(ordered) - 1)
    lower, part = int(place), place % 1
    return (1 - part) * ordered[lower] + part * ordered[lower + 1] if part else ordered[lower]


def _moments(values: list[Any], type_: Type | None) -> tuple[int, float]:
    """How many values there are, and the sum of the squares of their distances from their mean, step by step."""
    mean = squares = 0.0
    for number, value in enumerate(values, 1):
        distance = as_float(value, type_) - mean
        step = distance / number
        mean += step
        squares += distance * (distance - step)
    return len(values), squares


def spread(function: str, count: int, squares: float) -> float | None:
    """Variance or standard deviation; of a sample of one value there is none."""
    divisor = count if function.endswith("_pop") else count - 1
    if divisor == 0:
        return None
    return squares / divisor if function.startswith("var") else math.sqrt(squares / divisor)
