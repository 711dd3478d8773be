"""Which layout a job gets, and why. Nothing else tells layouts apart."""

from __future__ import annotations

import contextlib
import io
import re

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.ranges import Reach, Uncut, reach_of
from kleene.errors import UnsupportedError
from kleene.options import SparkOptions
from kleene.plan.plan import Plan
from kleene.scanning.scan import Scan
from kleene.spark.layouts.files import Files, files_or_reason
from kleene.spark.layouts.in_place import InPlace
from kleene.spark.layouts.presorted import Presorted
from kleene.spark.layouts.ranges import Ranges
from kleene.spark.layouts.read_on import ReadOn
from kleene.spark.layouts.shuffled import Shuffled
from kleene.spark.layouts.slots import Cutting
from kleene.spark.layouts.stream import Stream
from kleene.spark.reads import Reads, Sort, choose_sort

Layout = Shuffled | Presorted | Ranges | InPlace | Files | ReadOn | Stream

RANGE_SIZE = 1 << 18
LEAST_BYTES, LEAST_BYTES_BY_KEY = 32 << 20, 512 << 20
"""Inputs that Spark takes for smaller are not cut: there is little to gain, the less so where keys divide it anyway."""
LEAST_PARTITIONS = 4
"""Counting slots and sending events by range was measured to cost about what a second task saves."""


def choose_layout(frame: DataFrame, plan: Plan, reads: Reads, given: SparkOptions) -> Layout:
    """The layout of a job on tables; an error where it cannot be the one that is asked for."""
    sort = choose_sort(reads)
    if given.is_presorted:
        _check_presorted(sort)
        return Presorted()
    if given.is_in_place:
        return InPlace(sort, in_place_reach(plan, sort))
    if not given.may_cut:
        return Shuffled(sort, f"layout='{given.layout}'")
    reach = reach_of(plan)
    if isinstance(reach, Uncut):
        if given.must_cut:
            raise UnsupportedError(f"the query cannot be cut into ranges: {reach.reason}", hint="Leave the layout out.")
        return Shuffled(sort, reach.reason)
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    if not given.must_cut and given.range_size is None:
        not_worth_it = _not_worth_cutting(frame, partitions, bool(reads.key))
        if not_worth_it is not None:
            return Shuffled(sort, not_worth_it)
    size, count = given.range_size or RANGE_SIZE, given.ranges
    least = 1 if count else size if given.range_size else 2 * size
    return Ranges(sort, Cutting(reach, reads.type_of(reads.time_column), least, size, count, partitions))


def choose_scan_layout(whole: Scan, frame: DataFrame, plan: Plan, reads: Reads, given: SparkOptions) -> Layout:
    """The layout of a job on files: in place where they follow one another in time, else as any DataFrame."""
    if given.layout not in ("auto", "files", "in place"):
        return choose_layout(frame, plan, reads, given)
    sort = choose_sort(reads)
    try:
        found = files_or_reason(whole, plan, reads, sort, in_place_reach(plan, sort))
        reason = found if isinstance(found, str) else ""
    except UnsupportedError as error:
        found, reason = "", error.message
    if isinstance(found, Files | ReadOn):
        return found
    if given.layout != "auto":
        raise UnsupportedError(f"the files cannot be matched where they lie: {reason}", hint="Leave the layout out.")
    return Shuffled(sort, f"not in place: {reason}")


def in_place_reach(plan: Plan, sort: Sort) -> Reach:
    """How far a piece must read that is matched where it lies; or an error that says why it cannot be."""
    reach = reach_of(plan)
    if not sort.in_tasks:
        reach = Uncut(f"pieces are sorted by numbers or times, but the sort would be {sort.text}")
    elif isinstance(plan.query, AnalyzedQuery) and isinstance(reach, Reach) and reach.ahead.time is None:
        reach = Uncut("a SASE query needs a window in time to be matched in place")
    if isinstance(reach, Uncut):
        raise UnsupportedError(f"the query cannot be matched in place: {reach.reason}", hint="Leave the layout out.")
    return reach


def _check_presorted(sort: Sort) -> None:
    if not sort.in_tasks:
        raise UnsupportedError(
            f"layout='presorted' is checked by numbers or times, but the sort would be {sort.text}",
            hint="Leave the layout out.",
        )


def _not_worth_cutting(frame: DataFrame, partitions: int, has_key: bool) -> str | None:
    """Why ranges would cost more than they save; None where they may well save time."""
    if partitions < LEAST_PARTITIONS:  # asked first: an estimate costs a run of Spark's optimizer
        return f"with spark.sql.shuffle.partitions = {partitions} they would cost more than they save"
    size, least = _estimated_bytes(frame), LEAST_BYTES_BY_KEY if has_key else LEAST_BYTES
    if size is None:
        return "Spark does not know how large the input is; say SparkOptions('ranges') or SparkOptions(range_size=…)"
    return f"the input is small, {size >> 20:,} MiB by Spark's estimate" if size < least else None


def _estimated_bytes(frame: DataFrame) -> int | None:
    """What Spark's optimizer thinks the size is, without running anything; None where it has no idea."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            frame.explain(mode="cost")
    except PySparkException:  # the optimizer computes what is constant, and that may be an error: not ours to raise
        return None
    found = re.search(r"sizeInBytes=([\d.]+)(?:E\+(\d+))? (\w+)", said.getvalue())
    if found is None or found[0].endswith("=8.0 EiB"):
        return None
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    if found[3] not in units:
        return None
    return int(float(found[1]) * 10.0 ** int(found[2] or 0) * 1024 ** units.index(found[3]))
