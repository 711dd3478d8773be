"""Events of one partition with equal order keys, where nothing but their order tells what matches.

In process such events are in the order of the input; Spark, which knows none, orders them by their other columns. So
the results may differ, and the user is told how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Listed
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.events import decoded
from kleene.engine.needs import SKIPPING, columns_read, type_column_of
from kleene.engine.sorting import differ_from_next
from kleene.engine.tasks import key_codes
from kleene.errors import listed
from kleene.ir import expr as ir
from kleene.ir.options import Format, Strategy, WindowUnit
from kleene.ir.pattern import Pattern, Sequence, Variable
from kleene.plan.plan import ByKey, Plan
from kleene.remembered import remembered
from kleene.wording import said

Array = np.ndarray[Any, Any]
_MOST_HELD = 1 << 16
"""Events of one time that are held back until the next table may have more of them."""
_MOST_ONE_BY_ONE = 100_000
"""Values that are compared in Python, where Arrow cannot; of more, all are taken to differ."""


def _with_tie_break() -> str:
    return f"Use {said(python='tie_break', shell='--tie-break')} to name a column that decides."


@dataclass(frozen=True, slots=True)
class TieRule:
    """Which events tie: those of one `key` and `order`, that are of use, and differ in a column that is `read`.

    types: the types of events that the query can use, None for all. alone: those of them that only one variable can
    select, one event at a time, so that it does not matter which of several comes first.
    """

    order: tuple[str, ...]
    key: tuple[str, ...]
    read: tuple[str, ...]
    needs_key: bool
    type_column: str | None = None
    types: frozenset[str] | None = None
    alone: frozenset[str] = frozenset()
    way_out: str = field(default_factory=_with_tie_break)  # worded where the rule is made: tasks cannot tell for whom

    def told(self, count: int, what_decides: str) -> str:
        """The note for so many events.

        >>> rule = TieRule(("ts",), ("id",), (), True)
        >>> print(rule.told(1_234, "the order of the input"))
        1,234 events have the same ts as another event of their id, and the order of the input decides which comes \
first: in process and on Spark the results may differ. Use tie_break to name a column that decides.
        """
        key = [name for name in self.key if name not in self.order]
        whose = f" of their {listed(key)}" if key else ""
        return (
            f"{count:,} events have the same {listed(self.order)} as another event{whose}, and {what_decides} decides "
            f"which comes first: in process and on Spark the results may differ. {self.way_out}"
        )


IN_PROCESS, ON_SPARK = "the order of the input", "the order of their other values"


@remembered
def tie_rule(plan: Plan, names: Listed[str], has_tie_break: bool = False) -> TieRule | None:
    """Which events of a table with these columns tie; None where the query cannot tell, or the user has decided."""
    if isinstance(plan.query, AnalyzedRowPattern):
        return _rule_of_rows(plan.query, names)
    return None if has_tie_break else _rule_of_events(plan, plan.query, names)


def _rule_of_events(plan: Plan, query: AnalyzedQuery, names: Listed[str]) -> TieRule | None:
    uses = [one.types for one in query.components] + [one.types for one in query.negations]
    if len(uses) == 1 and not query.components[0].is_kleene:
        return None
    key = plan.split.columns if isinstance(plan.split, ByKey) else ()
    read = (name for name in columns_read(query, names, ()) if name not in (*query.order_by, *key))
    rule = TieRule(query.order_by, key, tuple(read), needs_key=True)
    is_counted = query.window is not None and query.window.unit is WindowUnit.EVENTS
    type_column = type_column_of(query.schema)
    if query.strategy not in SKIPPING or is_counted or type_column is None:
        return rule  # every event counts
    roles = Counter(name for types in uses for name in types)
    alone = frozenset[str]()
    if query.strategy is Strategy.SKIP_TILL_ANY_MATCH and plan.format is Format.ALL:
        repeated = {name for component in query.components if component.is_kleene for name in component.types}
        alone = frozenset(name for name, count in roles.items() if count == 1) - repeated
    return TieRule(rule.order, rule.key, rule.read, True, type_column, frozenset(roles), alone)


def _rule_of_rows(query: AnalyzedRowPattern, names: Listed[str]) -> TieRule | None:
    if not query.order_by or (_is_one_row(query.definition.pattern) and not _looks_around(query)):
        return None
    order = tuple(column.name for column in query.order_by)
    known = (*order, *query.partition_by)
    read = (name for name in columns_read(query, names, ()) if name not in known)
    other = "" if query.partition_by else ", or split them by a key: PARTITION BY"
    return TieRule(
        order, query.partition_by, tuple(read), False, way_out=f"Add a column that decides to ORDER BY{other}."
    )


def _is_one_row(pattern: Pattern) -> bool:
    match pattern:
        case Variable():
            return True
        case Sequence(elements=(only,)):
            return _is_one_row(only)
    return False


def _looks_around(query: AnalyzedRowPattern) -> bool:
    expressions = [*(condition for _, condition in query.conditions), *(one.expression for one in query.measures)]
    return any(isinstance(node, (ir.Navigation, ir.MatchNumber)) for one in expressions for node in ir.walk(one))


def tie_notes(plan: Plan, table: pa.Table, has_tie_break: bool, order: Listed[str] = ()) -> tuple[str, ...]:
    """What is to be told of ties in a table in this process; `order` is what the user calls the order, if not so."""
    rule = tie_rule(plan, tuple(table.column_names), has_tie_break)
    count = 0 if rule is None else count_ties(table, rule, plan.threads)
    if rule is None or not count:
        return ()
    return (replace(rule, order=tuple(order) or rule.order).told(count, IN_PROCESS),)


def count_ties(table: pa.Table, rule: TieRule, threads: int = 1) -> int:
    """How many events tie in a table that is in order."""
    if rule.order and table.num_rows and not _has_equal_neighbours(table.column(rule.order[0]), threads):
        return 0
    counter = TieCounter(rule)
    counter.add(table)
    return counter.finish()


def _has_equal_neighbours(column: pa.ChunkedArray, threads: int) -> bool:
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)):
        return bool(_same_values(column).any())
    return not differ_from_next(column, threads)


class TieCounter:
    """Counts over tables that come one after the other, together in order; events of a group stand together."""

    def __init__(self, rule: TieRule, group: str | None = None) -> None:
        self._rule = rule
        self._standing = (*(() if group is None else (group,)), *rule.order)
        needed = (*self._standing, *rule.key, *rule.read, *(() if rule.type_column is None else (rule.type_column,)))
        self._needed = list(dict.fromkeys(needed))
        self._held: pa.Table | None = None
        self._count = 0

    def add(self, table: pa.Table) -> None:
        table = table.select(self._needed)
        if self._held is not None:
            table, self._held = pa.concat_tables([self._held, table], promote_options="permissive"), None
        if not table.num_rows:
            return
        same = _same_as_next(table, self._standing)
        changes = np.flatnonzero(~same)
        last = int(changes[-1]) + 1 if len(changes) else 0
        if table.num_rows - last > _MOST_HELD:
            last = table.num_rows
        else:  # copied, so that the table can go
            self._held = table.take(pa.array(np.arange(last, table.num_rows)))
        self._count += self._tied(table.slice(0, last), same[: max(last - 1, 0)])

    def finish(self) -> int:
        if self._held is not None:
            self._count += self._tied(self._held, _same_as_next(self._held, self._standing))
            self._held = None
        return self._count

    def _tied(self, table: pa.Table, same: Array) -> int:
        """Of a table whose rows stand at the same place as the next one where `same` says so."""
        if not same.any():
            return 0
        rows = np.flatnonzero(np.append(same, False) | np.append(False, same))
        places = np.cumsum(~np.append(False, same), dtype=np.int32)[rows]
        members, groups = _together(places, self._codes(table, rows))
        rows = rows[members]
        # Few are left as a rule, so that the types of few must be looked at.
        is_used = self._used(table, rows)
        members, groups = _together(groups[is_used])
        return self._telling(table, rows[is_used][members], groups) if len(members) else 0

    def _codes(self, table: pa.Table, rows: Array) -> Array | None:
        """The numbers of the keys of the rows, if there is a key; small numbers sort fastest."""
        if not self._rule.key:
            return None
        codes, count = key_codes(_taken(table, self._rule.key, rows), self._rule.key)
        return codes.astype(np.uint16) if count < 1 << 16 else codes

    def _used(self, table: pa.Table, rows: Array) -> Array:
        rule = self._rule
        used = np.ones(len(rows), bool)
        if rule.types is not None and rule.type_column is not None:
            types = _taken(table, (rule.type_column,), rows).column(0)
            used &= pc.is_in(types, pa.array(sorted(rule.types), pa.string())).to_numpy()
        if rule.needs_key:
            for column in _taken(table, rule.key, rows).columns:
                if column.null_count:
                    used &= column.is_valid().to_numpy()
        return used

    def _telling(self, table: pa.Table, rows: Array, groups: Array) -> int:
        """How many of the rows, of groups that tie, stand where the query can tell which comes first."""
        rule = self._rule
        if not rule.read:
            return 0
        inside = groups[1:] == groups[:-1]
        values = _taken(table, rule.read, rows)
        differ = inside & ~_same_as_next(values, values.column_names)
        telling = np.zeros(int(groups[-1]) + 1, bool)
        telling[groups[1:][differ]] = True
        if rule.alone and rule.type_column is not None:
            types = _taken(table, (rule.type_column,), rows)
            is_mixed = np.zeros(len(telling), bool)
            is_mixed[groups[1:][inside & ~_same_as_next(types, types.column_names)]] = True
            is_alone = pc.is_in(types.column(0), pa.array(sorted(rule.alone), pa.string())).to_numpy()
            telling[groups[is_alone & ~is_mixed[groups]]] = False
        return int(telling[groups].sum())


def _together(places: Array, codes: Array | None = None) -> tuple[Array, Array]:
    """Those that share place and code with another, so that they stand together, and the number of what they share.

    Places ascend.
    """
    order = np.arange(len(places)) if codes is None else np.argsort(codes, kind="stable")
    own = places[order]
    together = own[1:] == own[:-1]
    if codes is not None:
        own = codes[order]
        together &= own[1:] == own[:-1]
    is_member = np.append(together, False) | np.append(False, together) if len(order) else np.zeros(0, bool)
    return order[is_member], np.cumsum(~np.append(False, together))[: len(order)][is_member]


def _taken(table: pa.Table, names: Listed[str], rows: Array) -> pa.Table:
    chosen = table.select(list(names))
    if len(rows) < table.num_rows or (len(rows) and not (rows[1:] > rows[:-1]).all()):
        chosen = chosen.take(pa.array(rows))
    return pa.table([decoded(column) for column in chosen.columns], names=list(names))


def _same_as_next(table: pa.Table, names: Listed[str]) -> Array:
    """For each row but the last, whether the next one has the same values in all the columns."""
    same: Array = np.ones(max(table.num_rows - 1, 0), bool)
    for name in names:
        if len(same):
            same &= _same_values(table.column(name))
    return same


def _same_values(column: pa.ChunkedArray) -> Array:
    column = decoded(column)
    one, other = column.slice(0, len(column) - 1), column.slice(1)
    try:
        same = pc.equal(one, other)
    except pa.ArrowNotImplementedError:  # nested, or of a rare type
        if len(column) > _MOST_ONE_BY_ONE:
            return np.zeros(len(one), bool)
        return np.array([repr(left) == repr(right) for left, right in pairwise(column.to_pylist())], bool)
    if column.null_count:
        same = pc.or_(pc.fill_null(same, False), pc.and_(one.is_null(), other.is_null()))
    return np.asarray(same.to_numpy())
