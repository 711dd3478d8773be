"""How a scan is matched, as lines of EXPLAIN."""

from __future__ import annotations

import pyarrow as pa

from kleene.plan.plan import Plan
from kleene.scanning.matching import shares_of
from kleene.scanning.scan import Scan, counted
from kleene.scanning.ways import Choice, InOrder, Spilled, Whole


def way_text(scan: Scan, choice: Choice, plan: Plan, columns: pa.Schema) -> str:
    rows = "" if scan.is_text else f", {counted(len(scan.blocks), 'block')}, {counted(scan.rows, 'event')}"
    lines = [
        f"files      {counted(len(scan.found.files), 'file')} of {scan.found.kind.value}{rows}",
        f"columns    {len(columns)} of {len(scan.columns)} are read",
    ]
    if choice.skipped.left_out:
        lines.append(
            f"skipped    {counted(len(choice.skipped.left_out), 'block')}: by their bounds, no event in them fits "
            f"{choice.skipped.condition}"
        )
    lines.append(f"way        {_way(choice)}")
    if isinstance(choice.way, InOrder):
        threads = shares_of(plan).count
        spread = f", the keys of each in {threads} threads" if threads > 1 else ""
        count = counted(len(choice.way.steps.steps), "piece")
        lines.append(f"pieces     {count}; the next is read while one is matched{spread}")
    return "\n".join(lines)


def _way(choice: Choice) -> str:
    way = choice.way
    match way:
        case Whole(reason=reason):
            return f"one table: {reason}"
        case Spilled(key=key, reason=reason):
            return f"over the disk, {'by ' + ', '.join(key) if key else 'sorted'}: {reason}"
        case InOrder(reason=reason):
            return reason
    return f"folder by folder: {way.reason}"
