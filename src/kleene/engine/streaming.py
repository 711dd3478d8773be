"""What a query would hold on a stream without end, and why some are refused there."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.ir.options import Selection, Strategy
from kleene.ir.pattern import has_anchor, longest
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Why what is held may grow without end, and what to do about it."""

    reason: str
    hint: str


def unbounded_state(plan: Plan) -> Unbounded | None:
    """Why a stream's state would have no bound; None if the query bounds what is held of a key."""
    query = plan.query
    return _of_rows(query) if isinstance(query, AnalyzedRowPattern) else _of_events(query)


def _of_events(query: AnalyzedQuery) -> Unbounded | None:
    if query.window is not None:
        return None
    is_contiguous = query.strategy in (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)
    if is_contiguous and not any(component.is_kleene for component in query.components):
        return None
    return Unbounded(
        "no WITHIN says when a run is over, so that every run that has begun is kept forever",
        "Add WITHIN, such as WITHIN 12 hours",
    )


def _of_rows(query: AnalyzedRowPattern) -> Unbounded | None:
    definition = query.definition
    if has_anchor(definition.pattern, at_start=False):
        return Unbounded(
            "`$` is the end of a partition, and on a stream a partition has none: every match would wait forever",
            "Leave `$` out",
        )
    if longest(definition.pattern) is not None:
        return None
    if definition.selection is Selection.FIRST_COMPLETED:
        return Unbounded(
            "the pattern repeats without end, and the regular-expression operator has no window: a partial match may "
            "stay open forever",
            "Bound its repetitions by other predicates, or write it as a row pattern with WITHIN or MAXLENGTH",
        )
    if definition.window is not None or definition.max_length is not None:
        return None
    return Unbounded(
        "no WITHIN and no MAXLENGTH says when a match is over, so that the rows of one that goes on are kept forever",
        "Add WITHIN, such as WITHIN INTERVAL '1' HOUR, or MAXLENGTH 100",
    )
