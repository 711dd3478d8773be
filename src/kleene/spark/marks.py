"""Which range an event is sent to and whose event it is there: the two numbers that travel with it.

GROUP says which events belong together: a hash of their key or, where a key is cut into ranges, the number of a range.
It is NULL for an event that has no place in the order.

MARK says whose the event is. Its lowest bit tells an event that is only read there from one that starts matches, the
range's own. The bits above tell what it needs to be put in its place: among ranges, how many events the range's own
are; in place, where the event lay. It is NULL where the key of the event is not cut.
"""

from __future__ import annotations

import numpy as np

from kleene.engine.matches import Array
from kleene.spark.hashing import spark_hash

GROUP, MARK = "__kleene_group", "__kleene_mark"
_FOREIGN = 1
_RANGE_BITS, _SPARE_BITS = 12, 14


def mark(told: int, is_own: bool) -> int:
    return told << 1 | (0 if is_own else _FOREIGN)


def marks(told: Array, own: Array) -> Array:
    return np.asarray(told << 1 | np.where(own, 0, _FOREIGN))


def are_own(given: Array) -> Array:
    return np.asarray(given & _FOREIGN == 0)


def told_by(given: Array) -> Array:
    return np.asarray(given >> 1)


def range_group(key: int, number: int, partitions: int) -> int:
    """The group of a key's range. Spare bits see to it that Spark's hash deals ranges out to its partitions in turn."""
    tries = (key << _RANGE_BITS | number) << _SPARE_BITS | np.arange(1, 1 << _SPARE_BITS)
    fits = np.flatnonzero(spark_hash(tries) % partitions == (key + number) % partitions)
    return int(tries[fits[0]] if len(fits) else tries[0])
