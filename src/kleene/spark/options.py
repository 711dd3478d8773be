"""What `Query.match` can be told about jobs on Spark."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.api import BUCKETS


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """What `Query.match` can be told about a job on Spark."""

    pushdown: bool = True
    presorted: bool = False
    ranges: str | int = "auto"
    range_size: int | None = None
    match_id: bool = False
    allow_jvm_calls: bool = False


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What `Query.match` can be told about a stream."""

    order: str = "time"
    unbounded_state: str = "refuse"
    timeouts: bool = False
    buckets: int = BUCKETS
    watermark: str | None = None
    max_ahead: str | None = None
