"""`st` of the kernel `match_events`: how far the regular-expression operator has come, and how many of each."""

REGEX_GROUP = 0  # the group to go on with
REGEX_ROW = 1  # its row to go on with
REGEX_PARTIAL = 2  # partial matches of the group
REGEX_MATCHES = 3  # matches written
REGEX_KEPT = 4  # partial matches that are kept of groups that are done
REGEX_RUN_LIMIT = 5  # the most partial matches at once
REGEX_KEEPS = 6  # 1 if more events may come, for which partial matches are kept
REGEX_LOADED = 7  # 1 if the stored partial matches of the group are loaded
REGEX_BASE = 8  # where the first partial match stands in `ri`, if they are not in blocks
REGEX_BLOCKS = 9  # how many blocks they are in; 0 if they are in none
REGEX_SIDE = 10  # which of the two tables of blocks it is
REGEX_WORK = 11  # how much to do before a pause
REGEX_COUNTERS = 12
