"""What a plan of runs has left of its query, after rewrites: what is compiled, and what EXPLAIN shows."""

from __future__ import annotations

from dataclasses import replace

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.plan.operators import Having, NegationFilter, Pipeline, RunScan


def running_query(query: AnalyzedQuery, pipeline: Pipeline) -> AnalyzedQuery:
    """The query with the predicates and negations that its plan has left."""
    runs, late = pipeline.get(RunScan), pipeline.find(NegationFilter)
    kept = {item.name: item for item in (*runs.negations, *(late.negations if late is not None else ()))}
    negations = tuple(kept[item.name] for item in query.negations if item.name in kept)
    having = pipeline.find(Having)
    return replace(
        query,
        components=runs.components,
        negations=negations,
        having=None if having is None else having.condition,
    )


def run_ending_negations(pipeline: Pipeline) -> frozenset[str]:
    """The names of the negations that end runs."""
    return frozenset(item.name for item in pipeline.get(RunScan).negations)


def negation_access(pipeline: Pipeline) -> str:
    late = pipeline.find(NegationFilter)
    return "index" if late is None else late.access
