"""What words mean, for whoever points at them. A word has one meaning, in every language that has the word."""

from __future__ import annotations

MEANINGS = {
    # SASE and SASE+
    "EVENT": "Begins the pattern: `EVENT SEQ(Shelf a, Exit b)`. `PATTERN` says the same.",
    "PATTERN": "The pattern: a sequence of components in SASE, a regular expression over variables in MATCH_RECOGNIZE.",
    "SEQ": "Events that follow one another in time, in this order. `!( … )` is an event that must not be there.",
    "ANY": "`ANY(D, E) a`: one event of any of these types.",
    "WHERE": "Conditions on the events. `[tag]` says that all events of the match agree on `tag`.",
    "WITHIN": "The window: the last event comes less than this after the first. `12 hours`, `500 events`, or a number "
    "in units of the order key.",
    "HAVING": "A condition on the whole match; matches that do not meet it are left out.",
    "RETURN": "The columns of the result: `RETURN a.tag AS tag, count(b[]) AS n`. Without it, a match is given out as "
    "its events.",
    "INTO": "Names the stream of matches, so that later queries can read it with FROM.",
    "FROM": "The streams that the query reads. Without it, the query reads the input.",
    "STRICT_CONTIGUITY": "Selected events stand next to each other in the whole input.",
    "PARTITION_CONTIGUITY": "Selected events stand next to each other among the events of their key.",
    "SKIP_TILL_NEXT_MATCH": "Events that do not fit are skipped; the first event that fits is taken.",
    "SKIP_TILL_ANY_MATCH": "Any event may be skipped, so every combination of events that fits is a match.",
    "LEN": "`a.LEN`: how many events the Kleene variable has.",
    # MATCH_RECOGNIZE
    "MATCH_RECOGNIZE": "Finds row patterns in a table. Its result is a table of matches.",
    "PARTITION": "`PARTITION BY`: rows match only with rows that agree on these columns.",
    "ORDER": "`ORDER BY`: the order in which rows are matched. The first column is the time that WITHIN measures.",
    "MEASURES": "The columns of the result, computed for each match.",
    "ONE": "`ONE ROW PER MATCH`: each match is one row.",
    "ALL": "`ALL ROWS PER MATCH`: each row of a match is a row. `ALL MATCHES`: every match of every row, with no "
    "skipping.",
    "AFTER": "`AFTER MATCH SKIP …`: where the search goes on after a match.",
    "SKIP": "`PAST LAST ROW` (the default), `TO NEXT ROW`, or `TO FIRST` or `LAST` of a variable.",
    "SUBSET": "`SUBSET u = (a, b)`: a name for the rows of several variables together.",
    "DEFINE": "What a row must satisfy to be of a variable. A variable without a definition takes any row.",
    "MAXLENGTH": "The most rows that a match may have.",
    "PERMUTE": "`PERMUTE(A, B)`: the variables in any order; the order in which they are written is preferred.",
    "PREV": "`PREV(x, n)`: the value n rows before, in the partition; 1 where n is left out.",
    "NEXT": "`NEXT(x, n)`: the value n rows behind, in the partition; 1 where n is left out.",
    "RUNNING": "Over the rows of the match up to the current one.",
    "FINAL": "Over all rows of the match.",
    "CLASSIFIER": "The variable that the row was matched to.",
    "MATCH_NUMBER": "The number of the match in its partition, from 1.",
    # expressions
    "FIRST": "The value of the first event.",
    "LAST": "The value of the last event.",
    "COUNT": "How many events there are, or how many values that are not NULL.",
    "SUM": "The sum of the values; NULLs are skipped.",
    "AVG": "The mean of the values; NULLs are skipped.",
    "MIN": "The least value.",
    "MAX": "The greatest value.",
    "COLLECT": "The values as a list.",
    "ARRAY_AGG": "The values as a list.",
    "COALESCE": "The first of the values that is not NULL.",
    "ABS": "The value without its sign.",
    "LEAST": "The smallest of the values.",
    "GREATEST": "The largest of the values.",
    "BETWEEN": "`x BETWEEN low AND high`: both ends count.",
    "LIKE": "Compares with a pattern: `%` stands for any text, `_` for one character.",
    "RLIKE": "Whether a regular expression is found in the text.",
    "CASE": "`CASE WHEN condition THEN value … ELSE value END`.",
    "CAST": "`CAST(x AS type)`: the value as another type.",
    "INTERVAL": "A stretch of time: `INTERVAL '5' MINUTE`, or `5 minutes`.",
}
"""In Markdown; the words in capitals."""

KEYWORDS = {
    "sase": (
        "EVENT SEQ ANY WHERE WITHIN HAVING RETURN INTO FROM AND OR NOT IS NULL IN BETWEEN LIKE CASE WHEN THEN ELSE END "
        "AS strict_contiguity partition_contiguity skip_till_next_match skip_till_any_match "
        "count sum avg min max first last collect"
    ),
    "sql": (
        "PARTITION ORDER BY MEASURES ONE ALL ROW ROWS PER MATCH MATCHES AFTER SKIP PAST TO NEXT FIRST LAST PATTERN "
        "SUBSET WITHIN MAXLENGTH DEFINE AS AND OR NOT IS NULL IN BETWEEN LIKE CASE WHEN THEN ELSE END PERMUTE "
        "PREV NEXT RUNNING FINAL CLASSIFIER MATCH_NUMBER count sum avg min max array_agg"
    ),
}
"""What is offered while one types."""
