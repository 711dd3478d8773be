"""The aggregates of row patterns by name: those that Kleene computes itself, and those that only Spark has."""

from __future__ import annotations

from kleene.ir import expr as ir

AGGREGATES: dict[str, tuple[int, int | None]] = {
    "any_value": (1, 1),
    "approx_count_distinct": (1, 1),
    "array_agg": (1, 1),
    "avg": (1, 1),
    "bit_and": (1, 1),
    "bit_or": (1, 1),
    "bit_xor": (1, 1),
    "bool_and": (1, 1),
    "bool_or": (1, 1),
    "collect_list": (1, 1),
    "collect_set": (1, 1),
    "count": (0, None),
    "count_if": (1, 1),
    "listagg": (1, 2),
    "map_agg": (2, 2),
    "map_union": (1, 1),
    "max": (1, 2),
    "max_by": (2, 3),
    "median": (1, 1),
    "min": (1, 2),
    "min_by": (2, 3),
    "mode": (1, 1),
    "multimap_agg": (2, 2),
    "percentile": (2, 2),
    "stddev": (1, 1),
    "stddev_pop": (1, 1),
    "sum": (1, 1),
    "var_pop": (1, 1),
    "var_samp": (1, 1),
}
"""How many arguments each takes, at least and at most."""
SYNONYMS = {
    "any": "bool_or",
    "arbitrary": "any_value",
    "every": "bool_and",
    "mean": "avg",
    "some": "bool_or",
    "std": "stddev",
    "stddev_samp": "stddev",
    "string_agg": "listagg",
    "variance": "var_samp",
}
# fmt: off
SPARK_AGGREGATES = frozenset(
    {
        "approx_percentile", "corr", "covar_pop", "covar_samp", "first_value", "histogram_numeric", "kurtosis",
        "last_value", "percentile_approx",
        "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
        "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "try_avg", "try_sum",
    }
)
"""Aggregates of Spark besides our own: a call of one of them is over many rows, of any other function over one."""
# fmt: on


def is_of_spark(node: ir.Expr) -> bool:
    """Whether only Spark can compute the aggregate."""
    return isinstance(node, ir.Aggregate) and node.function in SPARK_AGGREGATES


def aggregated_variable(aggregate: ir.Aggregate) -> str | None:
    """The variable over whose rows the aggregate is: that of its references, which name one at the most."""
    for node in ir.walk(aggregate):
        if isinstance(node, (ir.Attribute, ir.Events, ir.Classifier)):
            return node.variable
    return None
