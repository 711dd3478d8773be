"""Our functions over Spark's columns, where Spark by itself would mean something else, or ask a setting or a zone.

A time without a zone is one of UTC, whatever the zone of the session; a remainder of a division by 0 is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql import types as st

from kleene.spark.exact import Value
from kleene.spark.names import quoted

_NTZ, _INT, _LONG = st.TimestampNTZType(), st.IntegerType(), st.LongType()
_COUNTS = {
    **dict.fromkeys(("date_add", "date_sub", "left", "lpad", "right", "rpad"), (1,)),
    **dict.fromkeys(("locate", "split_part"), (2,)),
    "substring": (1, 2),
}
"""Which arguments Spark wants to be integers of 32 bits."""
_DAY_UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def by_name(function: str, arguments: Sequence[Column]) -> Column:
    """A call of a function that Spark knows by this name, which is one name, whatever characters it has."""
    return F.call_function(quoted(function), *arguments)


def plain_call(name: str, arguments: Sequence[Column]) -> Column:
    """A function that means the same to Spark, if its numbers have the width that Spark wants."""
    counts = _COUNTS.get(name, ())
    given = [item.cast(_INT) if number in counts else item for number, item in enumerate(arguments)]
    return by_name(name, given)


def _pmod(left: Value, right: Value) -> Column:
    left, right = left.wide(), right.wide()
    return F.when(right.column != 0, F.pmod(left.column, right.column))


def _size(value: Value) -> Column:
    return F.when(value.column.isNotNull(), F.size(value.column)).cast(_LONG)


def _element_at(value: Value, key: Value) -> Column:
    if isinstance(value.type, st.ArrayType):
        return F.try_element_at(value.column, key.column.cast(_INT))
    return item(value, key)


def item(value: Value, key: Value) -> Column:
    """`value[key]`, NULL where there is nothing."""
    match value.type:
        case st.ArrayType():
            return F.get(value.column, key.column.cast(_INT))
        case st.MapType(keyType=key_type):
            return F.try_element_at(value.column, key.column.cast(key_type))
    return value.column[key.column]


def _date_trunc(unit: Value, moment: Value) -> Column:
    if not isinstance(moment.type, (st.TimestampNTZType, st.DateType)):
        return F.call_function("date_trunc", unit.column, moment.column)
    column, word = moment.column.cast(_NTZ), F.lower(unit.column)
    seconds = F.call_function("date_part", F.lit("SECOND"), column)
    fine = F.make_dt_interval(secs=seconds - F.second(column))
    parts = F.when(word == "microsecond", column)
    parts = parts.when(
        word == "millisecond", column - F.make_dt_interval(secs=seconds - F.floor(seconds * 1000) / 1000)
    )
    parts = parts.when(word == "second", column - fine)
    parts = parts.when(word == "minute", column - F.make_dt_interval(secs=seconds))
    parts = parts.when(word == "hour", column - F.make_dt_interval(mins=F.minute(column), secs=seconds))
    for unit_name in ("year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week"):
        day = F.trunc(column.cast(st.DateType()), _DAY_UNITS.get(unit_name, unit_name))
        parts = parts.when(word == unit_name, day.cast(_NTZ))
    return parts.when(word.isin("day", "dd"), column.cast(st.DateType()).cast(_NTZ))


def _unix_timestamp(moment: Value) -> Column:
    if not isinstance(moment.type, (st.TimestampNTZType, st.DateType)):
        return F.unix_timestamp(moment.column)
    since = moment.column.cast(_NTZ) - F.lit("1970-01-01 00:00:00").cast(_NTZ)
    sizes = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
    parts = [F.call_function("date_part", F.lit(unit), since).cast(_LONG) * size for unit, size in sizes.items()]
    return parts[0] + parts[1] + parts[2] + parts[3]


OF_VALUES: dict[str, Callable[..., Column]] = {
    "cardinality": _size,
    "date_trunc": _date_trunc,
    "element_at": _element_at,
    "pmod": _pmod,
    "size": _size,
    "unix_timestamp": _unix_timestamp,
}
"""Functions whose columns depend on the types of their arguments."""

WITH_LAMBDAS: dict[str, Callable[..., Column]] = {
    "aggregate": F.aggregate,
    "array_sort": F.array_sort,
    "exists": F.exists,
    "filter": F.filter,
    "forall": F.forall,
    "map_filter": F.map_filter,
    "map_zip_with": F.map_zip_with,
    "reduce": F.reduce,
    "transform": F.transform,
    "transform_keys": F.transform_keys,
    "transform_values": F.transform_values,
    "zip_with": F.zip_with,
}
"""Functions of Spark that take a lambda."""
