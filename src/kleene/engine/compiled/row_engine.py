"""The compiled engine for row patterns: rows in, matches out, in pieces of any size.

Between pieces only rows are kept: those from the first undecided start on, and as many before it as conditions look
back to. When more rows come, the search from that start begins again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kleene.engine.budget import Budget
from kleene.engine.compiled.arrays.row_groups import (
    ROW_GROUP_COLUMNS,
    ROW_GROUP_END,
    ROW_GROUP_FIRST,
    ROW_GROUP_MATCHES,
    ROW_GROUP_OPENS,
    ROW_GROUP_SEEN_END,
    ROW_GROUP_START,
    ROW_GROUP_STARTS_END,
)
from kleene.engine.compiled.batches import Grouped, group, nullable_names, one_group
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.kept import KeepingProgress, Partitions
from kleene.engine.compiled.kernel_window import KernelWindow, wake_time
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.row_search import ALL_AT_ONCE, FoundRows, RowCode, Search
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import SavedParts, require
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, RowsPerMatch, Skip
from kleene.ir.pattern import has_anchor

STATES_AT_ONCE = 1 << 17
"""How many rows of matches are found at a time where each of them gives a row of the output."""
MOST_STATES = 1 << 28
"""Bytes of the states of matches that are held together, of which each match gives one row."""


class RowEngine(RowCode):
    def start(self, budget: Budget | None = None, meter: Meter | None = None) -> RowProgress:
        return RowProgress(self, budget, meter)


class RowProgress(KeepingProgress):
    """How far a stream of rows has come, partition by partition."""

    def __init__(self, engine: RowEngine, budget: Budget | None, meter: Meter | None) -> None:
        self.engine = engine
        # Of each partition: how many rows came before those kept, how many of the kept ones stand before the start that
        # is not decided yet, how many matches there were, and up to which row of the stream it is matched.
        fresh = dict.fromkeys(("dropped", "decided", "matches", "covered"), 0)
        super().__init__(Partitions(engine.query.partition_by, True, **fresh), budget, meter)

    # --- feeding -------------------------------------------------------------------------------------------------

    def feed(self, events: pa.Table, now: Time | None = None, is_last: bool = False) -> Iterator[FoundRows]:
        """The matches that no later row can change; those of a whole table in parts of bounded size."""
        is_whole = is_last and self.kept.table is None
        table, grouped = self._grouped(events, is_last)
        groups = self._groups(grouped, is_last)
        if is_whole:
            yield from self._found_in_whole(table, grouped, groups)
            return
        search = Search(self.engine, table, grouped, groups, self.nullable, self.budget)
        (found,) = search.parts(ALL_AT_ONCE, not is_last, now)
        own = {name: self.partitions[name][grouped.numbers] for name in ("dropped", "decided", "matches", "covered")}
        if self.engine.gives_all:
            # Ways that are one classification are one match.
            groups[:, ROW_GROUP_MATCHES] = own["matches"] + np.bincount(found.matches.groups, minlength=len(groups))
        found = replace(found, counted=own["matches"], unmatched=self._unmatched(found, own))
        self._retain(found, own)
        yield found

    def _grouped(self, events: pa.Table, is_last: bool) -> tuple[pa.Table, Grouped]:
        """The rows behind those that are kept, by partition."""
        if is_last and self.kept.table is None and not self.engine.query.partition_by:
            # A search may be as fast as numbering all rows.
            self.partitions.grow(1)
            self.nullable |= nullable_names(events)
            return events, one_group(events.num_rows)
        table, codes = self.behind_kept(events, is_last)
        return table, group(codes, max(len(self.partitions), 1), self.engine.jit)

    def _groups(self, grouped: Grouped, is_last: bool) -> Array:
        groups, numbers = np.zeros((len(grouped.numbers), ROW_GROUP_COLUMNS), np.int64), grouped.numbers
        begins, ends = grouped.begins[:-1], grouped.begins[1:]
        look_ahead = 0 if is_last else self.engine.look_ahead
        groups[:, ROW_GROUP_FIRST], groups[:, ROW_GROUP_SEEN_END] = begins, ends
        groups[:, ROW_GROUP_END] = groups[:, ROW_GROUP_STARTS_END] = np.maximum(ends - look_ahead, begins)
        groups[:, ROW_GROUP_START] = begins + self.partitions["decided"][numbers]
        groups[:, ROW_GROUP_MATCHES] = self.partitions["matches"][numbers]
        groups[:, ROW_GROUP_OPENS] = self.partitions["dropped"][numbers] == 0
        return groups

    def _found_in_whole(self, table: pa.Table, grouped: Grouped, groups: Array) -> Iterator[FoundRows]:
        """The matches in a whole table; there is at least one part."""
        if not grouped.is_identity:  # of two errors, that of the partition that came first is told
            groups = groups[np.argsort(grouped.order[groups[:, ROW_GROUP_FIRST]])]
        query = self.engine.query
        is_one = query.rows_per_match in (RowsPerMatch.ONE, RowsPerMatch.EACH_ROW)
        states = min(self.budget.at_once, MOST_STATES) // 8 if is_one else STATES_AT_ONCE
        gives_unmatched = query.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED
        in_order = query.frame is not None or (self._gives_in_order(grouped) and not gives_unmatched)
        is_covered = np.zeros(table.num_rows if gives_unmatched else 0, np.bool_)
        search = Search(self.engine, table, grouped, groups, self.nullable, self.budget)
        for found in search.parts(states):
            is_last = found.is_settled
            if gives_unmatched:
                is_covered[grouped.order[_covered_rows(found)]] = True
                if is_last:
                    found = replace(found, unmatched=np.flatnonzero(~is_covered))
            yield replace(found, is_settled=is_last or in_order)

    def _gives_in_order(self, grouped: Grouped) -> bool:
        """Whether later matches end later: they do not overlap, and partitions do not mix."""
        after = self.engine.query.definition.after_match or AfterMatch()
        is_apart = not self.engine.gives_all and after.skip is Skip.PAST_LAST_ROW
        return is_apart and grouped.is_in_order

    def _unmatched(self, found: FoundRows, own: dict[str, Array]) -> Array:
        """The positions of the rows of a piece that are decided now and are in no match, as they are given out."""
        if self.engine.query.rows_per_match is not RowsPerMatch.ALL_WITH_UNMATCHED:
            return found.unmatched
        grouped, begins = found.grouped, found.begins
        rows, of_group = grouped.places, np.repeat(np.arange(len(begins)), grouped.sizes)
        decided = found.groups[:, ROW_GROUP_START] - begins
        is_open = (rows >= own["decided"][of_group]) & (rows < decided[of_group])
        is_open &= rows >= (own["covered"] - own["dropped"])[of_group]
        is_open[_covered_rows(found)] = False
        positions: Array = grouped.order[np.flatnonzero(is_open)]
        return positions

    # --- keeping -------------------------------------------------------------------------------------------------

    def _retain(self, found: FoundRows, own: dict[str, Array]) -> None:
        groups, grouped = found.groups, found.grouped
        start = groups[:, ROW_GROUP_START] - groups[:, ROW_GROUP_FIRST]
        dropped = np.maximum(start - self.engine.look_back, 0)
        covered = own["covered"].copy()
        if len(found.matches):
            lengths = np.maximum(np.diff(found.matches.offsets), 1)  # an empty match is at a row, too
            ends = found.matches.starts + lengths - found.begins[found.matches.groups]
            np.maximum.at(covered, found.matches.groups, ends + own["dropped"][found.matches.groups])
        numbers, matches = grouped.numbers, groups[:, ROW_GROUP_MATCHES]
        after = {
            "dropped": own["dropped"] + dropped,
            "decided": start - dropped,
            "matches": matches,
            "covered": covered,
        }
        for name, values in after.items():
            self.partitions[name][numbers] = values
        is_kept = grouped.places >= np.repeat(dropped, grouped.sizes)
        self.kept.keep_grouped(found.table, grouped, np.flatnonzero(is_kept))
        if not self._counts_from_the_beginning:
            self.forget_partitions(np.zeros(len(self.partitions), np.bool_))

    @property
    def _counts_from_the_beginning(self) -> bool:
        """Whether a partition without open rows matters: its matches are numbered, or its first row is special."""
        query = self.engine.query
        read = [*(condition for _, condition in query.conditions), *(item.expression for item in query.measures)]
        is_numbered = any(isinstance(node, ir.MatchNumber) for expression in read for node in ir.walk(expression))
        return is_numbered or has_anchor(query.definition.pattern, at_start=True)

    # --- between pieces ------------------------------------------------------------------------------------------

    def held(self) -> Held:
        """Partitions with an undecided start take the place of runs here."""
        sizes = np.bincount(self.kept.numbers, minlength=len(self.partitions))
        undecided = int((sizes > self.partitions["decided"]).sum())
        return Held(undecided, len(self.kept), self.kept.bytes, self._wakes_at(), not len(self.partitions))

    def _wakes_at(self) -> Time | None:
        """When time alone decides about an open start, without a row; None if it never does."""
        query, kept = self.engine.query, self.kept
        size = KernelWindow.of(query).in_time
        if size is None or not len(kept):
            return None
        grouped = group(kept.numbers, len(self.partitions), self.engine.jit)
        at = grouped.begins[:-1] + self.partitions["decided"][grouped.numbers]
        times = grouped.permuted(times_array(kept.table, query.order_by[0].name, query.time_type))
        since = times[at[at < grouped.begins[1:]]]
        return wake_time(since.min(), size) if len(since) else None

    def load(self, parts: SavedParts) -> None:
        super().load(parts)
        sizes = np.bincount(self.kept.numbers, minlength=len(self.partitions))
        require(bool((self.partitions["decided"] <= sizes).all()), "decided")
        require(bool((self.partitions["covered"] - self.partitions["dropped"] <= sizes).all()), "covered")


def _covered_rows(found: FoundRows) -> Array:
    """The rows that are in a match; an empty match is at a row, too."""
    starts, lengths = found.matches.starts, np.maximum(np.diff(found.matches.offsets), 1)
    change = np.zeros(len(found.grouped) + 1, np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, starts + lengths, -1)
    return np.flatnonzero(np.cumsum(change)[:-1])
