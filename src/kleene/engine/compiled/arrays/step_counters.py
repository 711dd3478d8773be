"""`st` of the loop that carries runs of steps through the events: where it is, and how much of each array is in use."""

STEPS_GROUP = 0  # the partition that it is at
STEPS_ROW = 1  # the next row
STEPS_RUNS = 2  # open runs of the partition
STEPS_NODES = 3  # nodes of the match buffer
STEPS_MATCHES = 4  # matches that were given out
STEPS_WAITING = 5  # matches that wait for runs which began before them
STEPS_KEPT = 6  # runs that are kept of the partitions that are done
STEPS_LOADED = 7  # whether the stored runs of the partition were loaded
STEPS_STAMP = 8  # tells the events apart in `slots` and `seen`
STEPS_WORK = 9  # how much may be done before the caller looks at the clock
STEPS_RUN_LIMIT = 10
STEPS_KEEPS = 11  # 1: runs that are open in the end are kept; 0: only where time may still make matches of them
STEPS_COUNTERS = 12
