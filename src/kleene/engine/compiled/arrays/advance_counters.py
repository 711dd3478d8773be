"""`st` of the kernel `advance`: how far the runs of a SASE+ query have come, and how much of each array is used."""

ADVANCE_GROUP = 0  # the group to go on with
ADVANCE_ROW = 1  # its row to go on with
ADVANCE_RUNS = 2  # runs of the group
ADVANCE_NODES = 3  # nodes in the match buffer
ADVANCE_EDGES = 4  # its edges
ADVANCE_VERSIONS = 5  # its versions
ADVANCE_COMPLETIONS = 6  # completions since they were read out
ADVANCE_STAMP = 7  # tells which slots of the hash table are of the current event
ADVANCE_KEPT = 8  # runs that are kept of groups that are done
ADVANCE_RUN_LIMIT = 9  # the most runs at once
ADVANCE_KEEPS = 10  # 1 if more events may come, for which runs are kept
ADVANCE_LOADED = 11  # 1 if the stored runs of the group are loaded
ADVANCE_WORK = 12  # how much to do before a pause
ADVANCE_COUNTERS = 13
