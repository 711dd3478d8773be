"""What EXPLAIN says of a layout, and which settings of the session bear on it. Kleene changes none."""

from __future__ import annotations

from pyspark.sql import DataFrame

USUAL_BATCH = 10_000
MOST_BYTES, NO_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch", 2**31 - 1
"""As long as there is a limit, Spark measures the batch at every event, about half of the time of the hand-over."""
MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def explained(frame: DataFrame, spreads: bool, **said: str) -> list[str]:
    """Lines of EXPLAIN: what is said of the layout, then the settings that bear on it.

    `spreads`: whether there is a shuffle to more than one Spark partition.
    """
    return [*(f"{name:<10} {text}" for name, text in said.items()), *_setting_lines(frame, spreads)]


def _setting_lines(frame: DataFrame, spreads: bool) -> list[str]:
    conf = frame.sparkSession.conf
    lines = []
    if spreads:
        partitions = conf.get("spark.sql.shuffle.partitions")
        lines.append(f"spark.sql.shuffle.partitions = {partitions}: at most this many tasks")
    batch = int(conf.get(MOST_ROWS) or 0)
    if 0 < batch < USUAL_BATCH:
        lines.append(
            f"{MOST_ROWS} = {batch}: fewer events are handed over at a time than with Spark's default, {USUAL_BATCH:,}"
        )
    if conf.get(MOST_BYTES, str(NO_LIMIT)) != str(NO_LIMIT):
        lines.append(
            f"{MOST_BYTES} = {conf.get(MOST_BYTES)}: looked at with every event; {NO_LIMIT} is about twice as fast"
        )
    return [f"{'settings' if not number else '':<10} {line}" for number, line in enumerate(lines)]
