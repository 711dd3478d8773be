"""Which progress a plan goes through a stream with: one of matches, of compressed output, or of totals."""

from __future__ import annotations

from kleene.engine.compressed_progress import CompressedProgress
from kleene.engine.progress import CheckedProgress
from kleene.engine.totals.progress import TotalsProgress
from kleene.plan.plan import Plan

_KINDS: dict[str, type[CheckedProgress]] = {"compressed": CompressedProgress, "totals": TotalsProgress}


def progress_of(plan: Plan) -> type[CheckedProgress]:
    return _KINDS.get(plan.mode, CheckedProgress)
