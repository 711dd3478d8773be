"""What a plan will cost, by statistics."""

from __future__ import annotations

from kleene.plan.facts import Facts


def cheaper_runs(facts: Facts) -> str | None:
    """Why runs would do less work than sequence operators; None if they would not, or nothing is known."""
    return None
