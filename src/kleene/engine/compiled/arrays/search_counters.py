"""`st` of the kernel `search`: how far the search for row patterns has come, and how much of each array is used."""

SEARCH_GROUP = 0  # the group to go on with
SEARCH_START = 1  # its start row, -1 before its first
SEARCH_FRAMES = 2  # frames on the stack, 0 between two starts
SEARCH_MATCHES = 3  # matches written
SEARCH_STATES = 4  # states of them
SEARCH_MORE_ROWS = 5  # 1 if more rows may come
SEARCH_MOST_STEPS = 6  # the most steps, or matches, from one start
SEARCH_STEPS = 7  # steps from this start so far
SEARCH_MATCHES_BEFORE = 8  # matches written before this start
SEARCH_STATES_BEFORE = 9  # states of them
SEARCH_WORK = 10  # how many rows to take before a pause
SEARCH_CURRENT = 11  # of a window: the row whose match is searched for, -1 before the first of a group
SEARCH_COUNTERS = 12
