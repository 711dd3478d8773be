"""Whether the events of a stream are themselves matches of a query on that stream.

Such a chain would run, and give nothing for ever: of several watermarks Spark takes the smallest, and what lies
between the two operators waits for it. A program knows its own chains and takes care of the delay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import DataFrame

from kleene.errors import UnsupportedError

_OPERATOR = re.compile(r"^\W*CollectMetrics kleene_[0-9a-f]{8},", re.MULTILINE)
"""What the plan of a stream of matches shows, whatever has become of its columns since."""


def check_not_chained(frames: Iterable[DataFrame]) -> None:
    for frame in frames:
        (plan,) = frame.sparkSession.sql("EXPLAIN EXTENDED SELECT * FROM {events}", events=frame).collect()
        if _OPERATOR.search(plan[0]):
            raise UnsupportedError(
                "the events are matches that another query finds on the same stream: Spark would wait for the smaller "
                "of two watermarks, and never give anything out",
                hint="Write both queries as one program, with INTO and FROM: kleene.program(text).match(stream, …); or "
                "write the matches to a table or a folder, and read them from there as a new stream.",
            )
