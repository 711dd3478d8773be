"""The functions of Spark that may stand in a text in process: those that give the same there, as tests compare.

They are named by the classes that sqlglot has for them; those that it has no class for, by their own names.
"""

from __future__ import annotations

CLASSES = frozenset(
    """
    And Or Not Xor Case If Cast TryCast Exists Coalesce Nvl2 Nullif IsNan EqualNull
    Abs Ceil Floor Round Sign Sqrt Cbrt Exp Ln Log Pow Greatest Least Pi Sin Cos Tan Asin Acos Atan Atan2 Degrees
    Radians BitwiseAnd BitwiseOr BitwiseXor
    Upper Lower Length Trim Substring Left Right Concat ConcatWs Replace Translate Reverse Repeat Pad StrPosition
    StartsWith EndsWith Contains Ascii Chr RegexpSplit RegexpReplace RegexpExtract RegexpLike Like ILike MD5 DPipe
    Year Month Day DayOfMonth Quarter Hour Minute Second DayOfWeek DayOfYear WeekOfYear TsOrDsAdd DateDiff TsOrDsToDate
    AddMonths LastDay TimestampTrunc TimeToStr TimeStrToTime CurrentDate CurrentTimestamp TimestampDiff TimestampAdd
    Extract UnixSeconds UnixMillis UnixMicros
    Count CountIf Sum Avg Min Max Stddev StddevSamp StddevPop Variance VariancePop Median Quantile Corr CovarSamp
    CovarPop First Last FirstValue LastValue AnyValue ArgMax ArgMin LogicalAnd LogicalOr ArrayAgg ArrayUniqueAgg
    GroupConcat Grouping RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead NthValue
    Array ArraySize ArrayDistinct ArrayContains ArrayMax ArrayMin ArrayToString ArraySort Flatten GenerateSeries Explode
    Posexplode Transform ArrayFilter Reduce Map VarMap MapKeys Struct Unnest
    """.split()  # noqa: SIM905  # a list of strings would fill a page
)
ANONYMOUS = frozenset("isnull isnotnull mean every some pmod weekday now make_date map_values".split())  # noqa: SIM905
TABLE_FUNCTIONS = frozenset({"range", "explode"})
