"""`found` of the regular-expression operator: a row is a match. Its registers are in the same row of `oi` and `of`."""

REGEX_MATCH_GROUP = 0  # the group that it was found in
REGEX_MATCH_START = 1  # its first row
REGEX_MATCH_END = 2  # the row that completes it
REGEX_MATCH_COLUMNS = 3
