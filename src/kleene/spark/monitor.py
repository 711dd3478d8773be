"""How a stream of matches is doing: what its buckets told in each micro-batch, read off Spark's progress reports.

A bucket tells how it stands only when it is touched; how all stand is what each told last. Reports begin with the run
of the query, and Spark keeps the last hundred: of a bucket that was not touched since, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from kleene.errors import UnsupportedError
from kleene.spark.clock import AHEAD
from kleene.spark.streaming.packing import BUCKET
from kleene.spark.streaming.processor import COUNTS, OBSERVED, STANDS, TURN

KEPT_BATCHES = 100
SHOWN_BATCHES = 10
READ = "read by kleene "
"""How the names begin under which it is told how many rows were read, where Spark counts files."""
HEADINGS = (
    *("batch", "read", "events", "late", "matches", "waiting", "runs", "kept", "state"),
    *("watermark", "seconds", "read/s"),
)
WIDTHS = (5, 7, 7, 5, 7, 7, 6, 6, 8, 19, 7, 7)
"""Of the columns, where lines are shown before it is known what comes."""


@dataclass(frozen=True, slots=True)
class Stand:
    """How a bucket stands, or several together: what it has to hold for matches to come."""

    waiting: int = 0
    runs: int = 0
    kept: int = 0
    bytes: int = 0

    def __add__(self, other: Stand) -> Stand:
        return Stand(*(getattr(self, name) + getattr(other, name) for name in STANDS))


@dataclass(frozen=True, slots=True)
class BatchMetrics:
    """A micro-batch: what came and went in it, and how all buckets stood after it.

    batch: its number, as Spark has it.
    read: rows read from the sources; events: those of them that the query can use; late: those of the events that came
        after the watermark had passed them, and were left out; matches: rows given out.
    ahead: rows that were set aside because their time was more than max_ahead past the clock.
    waiting: events that wait for the watermark; runs: partial matches; kept: events that partial matches need;
        state_bytes: what all that takes in the state store. If not is_whole, these are of the buckets that are known,
        and all together have at least so much.
    watermark: up to when events were taken to be there; None while nobody knew.
    store_rows, store_bytes: Spark's own numbers of the state store: its rows, and the memory it uses.
    """

    batch: int
    read: int
    events: int
    late: int
    matches: int
    waiting: int
    runs: int
    kept: int
    state_bytes: int
    is_whole: bool
    watermark: datetime | None
    seconds: float
    store_rows: int
    store_bytes: int
    ahead: int = 0

    @property
    def events_per_second(self) -> float:
        """Rows read in a second, those included that the query cannot use."""
        return self.read / self.seconds if self.seconds else 0.0

    def cells(self) -> tuple[str, ...]:
        """The numbers as people read them, one for each of `HEADINGS`."""
        least = "" if self.is_whole else "≥"
        return (
            *(f"{value:,}" for value in (self.batch, self.read, self.events, self.late, self.matches)),
            *(f"{least}{value:,}" for value in (self.waiting, self.runs, self.kept)),
            least + size_text(self.state_bytes),
            "none yet" if self.watermark is None else time_text(self.watermark),
            f"{self.seconds:.1f}",
            f"{self.events_per_second:,.{0 if self.events_per_second >= 10 else 1}f}",
        )


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """The micro-batches of a streaming query: `batches` are the last of them; the numbers are those of all together.

    `str()` is a table. `first_batch` says which micro-batch is the first that was counted, and `is_whole` whether
    every bucket is known: if not, `waiting`, `runs`, `kept` and `state_bytes` are the least that there can be.
    """

    run: str | None = None
    first_batch: int | None = None
    batches: tuple[BatchMetrics, ...] = ()
    read: int = 0
    events: int = 0
    late: int = 0
    matches: int = 0
    seconds: float = 0.0
    ahead: int = 0
    _has_gap: bool = field(default=False, repr=False)
    _stands: Mapping[tuple[str, int], Stand] = field(default_factory=dict, repr=False)

    @property
    def last(self) -> BatchMetrics | None:
        return self.batches[-1] if self.batches else None

    @property
    def waiting(self) -> int:
        return self.last.waiting if self.last else 0

    @property
    def runs(self) -> int:
        return self.last.runs if self.last else 0

    @property
    def kept(self) -> int:
        return self.last.kept if self.last else 0

    @property
    def state_bytes(self) -> int:
        return self.last.state_bytes if self.last else 0

    @property
    def is_whole(self) -> bool:
        return self.last is None or self.last.is_whole

    @property
    def watermark(self) -> datetime | None:
        return self.last.watermark if self.last else None

    def and_then(self, reports: Iterable[Mapping[str, Any]]) -> StreamMetrics:
        """With what progress reports tell of micro-batches that came after; others are passed over."""
        found = self
        for report in reports:
            if "addBatch" in report["durationMs"]:  # else nothing ran: Spark only says that it is there
                found = found._with(report)
        return found

    def _with(self, report: Mapping[str, Any]) -> StreamMetrics:
        run, number = str(report["runId"]), report["batchId"]
        if run != self.run:
            return StreamMetrics(run, number, _has_gap=number > 0)._counted(report)
        assert self.last is not None
        if number <= self.last.batch:
            return self
        return replace(self, _has_gap=self._has_gap or number > self.last.batch + 1)._counted(report)

    def _counted(self, report: Mapping[str, Any]) -> StreamMetrics:
        observed = {name: named(row) for name, row in report["observedMetrics"].items() if name.startswith(OBSERVED)}
        told = {name: row for name, row in observed.items() if not name.startswith(AHEAD)}
        stands = dict(self._stands)
        for name, row in told.items():
            for one in sorted(row["buckets"] or (), key=lambda one: one[TURN]):
                stands[name, one[BUCKET]] = Stand(*(one[stand] for stand in STANDS))
        counts = {count: sum(row[count] or 0 for row in told.values()) for count in COUNTS}
        every = [row["of_buckets"] for row in told.values()]
        is_every_known = bool(every) and None not in every and sum(every) == len(stands)
        operators = report["stateOperators"]
        now = sum(stands.values(), Stand())
        batch = BatchMetrics(
            batch=report["batchId"],
            read=_rows_read(report),
            **counts,
            waiting=now.waiting,
            runs=now.runs,
            kept=now.kept,
            state_bytes=now.bytes,
            is_whole=not self._has_gap or is_every_known,
            watermark=_watermark(report["eventTime"].get("watermark")),
            seconds=report["batchDuration"] / 1000,
            store_rows=sum(operator["numRowsTotal"] for operator in operators),
            store_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            ahead=sum(row["ahead"] or 0 for name, row in observed.items() if name.startswith(AHEAD)),
        )
        return replace(
            self,
            batches=(*self.batches, batch)[-KEPT_BATCHES:],
            read=self.read + batch.read,
            **{count: getattr(self, count) + value for count, value in counts.items()},
            seconds=self.seconds + batch.seconds,
            ahead=self.ahead + batch.ahead,
            _has_gap=not batch.is_whole,
            _stands=stands,
        )

    def __str__(self) -> str:
        if self.last is None:
            return "no micro-batch yet"
        shown = self.batches[-SHOWN_BATCHES:]
        total = ("total", *(f"{value:,}" for value in (self.read, self.events, self.late, self.matches)))
        filled = (*total, *[""] * (len(HEADINGS) - len(total) - 2), f"{self.seconds:.1f}", "")
        return "\n".join([*aligned([HEADINGS, *(batch.cells() for batch in shown), filled]), *self.notes()])

    def notes(self) -> list[str]:
        """What the numbers do not say by themselves."""
        if self.last is None:
            return []
        found = [f"Spark's state store: {self.last.store_rows:,} rows, {size_text(self.last.store_bytes)} of memory"]
        if self.ahead:
            found.append(f"events set aside because their time is too far ahead of the clock: {self.ahead:,}")
        if self.first_batch:
            found.append(f"counted from micro-batch {self.first_batch:,} on: Spark no longer tells about earlier ones")
        if not self.is_whole:
            found.append("≥ means at least: buckets that have had nothing to do since then are not known")
        return found


def stream_metrics(query: Any, earlier: StreamMetrics | None = None) -> StreamMetrics:
    """What a streaming query's progress tells; with earlier metrics of it, going on from them."""
    reports = _reports(query, earlier)
    # A report of a trigger that found nothing to do has no metrics of anybody.
    told = [report for report in reports if report["observedMetrics"] or report.get("numInputRows")]
    if reports and not told:
        return earlier or StreamMetrics()
    if reports and not any(name.startswith(OBSERVED) for report in told for name in report["observedMetrics"]):
        raise UnsupportedError(
            "the streaming query does not find patterns",
            hint="Give the StreamingQuery that writes what match returned for a stream: found.writeStream…start().",
        )
    return (earlier or StreamMetrics()).and_then(reports)


def _reports(query: Any, earlier: StreamMetrics | None) -> list[Mapping[str, Any]]:
    """Those that may be new. To ask for all that Spark remembers takes long; often there is one, or none."""
    if earlier is not None and earlier.last is not None and earlier.run == str(query.runId):
        latest = query.lastProgress
        if latest is None or latest["batchId"] <= earlier.last.batch + 1:
            return [] if latest is None else [latest]
    found: list[Mapping[str, Any]] = query.recentProgress
    return found


def named(value: Any) -> Any:
    """Rows and structs as dicts, in whichever of Spark's ways they come: classic sessions and Connect have their own.

    >>> schema = {"type": "struct", "fields": [{"name": "late"}, {"name": "buckets"}]}
    >>> inner = {"type": "struct", "fields": [{"name": "runs"}]}
    >>> named({"values": [3, [{"values": [7], "schema": inner}]], "schema": schema})
    {'late': 3, 'buckets': [{'runs': 7}]}
    """
    if isinstance(value, tuple) and hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, list):
        return [named(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"values", "schema"}:
        names = [one["name"] for one in value["schema"]["fields"]]
        value = dict(zip(names, value["values"], strict=True))
    return {name: named(item) for name, item in value.items()}


def _rows_read(report: Mapping[str, Any]) -> int:
    counted = [named(row)["read"] for name, row in report["observedMetrics"].items() if name.startswith(READ)]
    if counted:
        return sum(counted)
    # Connect has no sum of its own.
    return sum(source["numInputRows"] for source in report["sources"])


def _watermark(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:  # a year of five digits: somebody took milliseconds for seconds
        found = datetime.max.replace(tzinfo=UTC)
    return None if found is None or found.timestamp() <= 0 else found


def time_text(time: datetime) -> str:
    """A time in UTC, as watermarks are told."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "auto" if time.microsecond else "seconds")


def size_text(size: float) -> str:
    """A number of bytes, in few letters.

    >>> size_text(812), size_text(43_210), size_text(5_600_000)
    ('812 B', '43.2 kB', '5.6 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    return f"{size:,.1f} TB"


def aligned(rows: Sequence[tuple[str, ...]], widths: Sequence[int] | None = None) -> list[str]:
    """Lines of a table, in columns as wide as their longest value if no widths are given."""
    widths = widths or [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
