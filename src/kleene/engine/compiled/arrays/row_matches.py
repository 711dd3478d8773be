"""`found` of row patterns: a row is a match. Its states follow those of the match before in `states`."""

ROW_MATCH_GROUP = 0  # the group that it was found in
ROW_MATCH_START = 1  # its first row
ROW_MATCH_LENGTH = 2  # how many rows it has
ROW_MATCH_NUMBER = 3  # its number in the partition; or, where matching cannot go on after it, minus the status
ROW_MATCH_OF_ROW = 4  # of a window: the row that it is the match of
ROW_MATCH_COLUMNS = 5
