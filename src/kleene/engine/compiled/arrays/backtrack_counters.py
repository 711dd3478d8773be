"""`st` of the kernel `backtrack`: how far the search has come, and how much of each array is used."""

BACKTRACK_GROUP = 0  # the group to go on with
BACKTRACK_START = 1  # the row where its runs begin now, -1 before its first
BACKTRACK_RUNS = 2  # runs on the stack
BACKTRACK_MATCHES = 3  # matches written
BACKTRACK_ROWS = 4  # rows of them
BACKTRACK_RUN_LIMIT = 5  # the most runs that may be split off from one start
BACKTRACK_SPLITS = 6  # runs that were
BACKTRACK_WORK = 7  # how many steps to take before a pause
BACKTRACK_COUNTERS = 8
