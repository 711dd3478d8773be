"""`st` of the kernels `scan`, `scan_basic` and `construct`: how far a block of events has come."""

SCAN_EVENT = 0  # the event to go on with: its place among the relevant ones; for `scan_basic`, its row
SCAN_END = 1  # the one to stop before
SCAN_ACCEPTS = 2  # accepting events of the block
SCAN_ROOM = 3  # how many instances may come before a stack can be full
CONSTRUCT_ACCEPT = 4  # the accepting event to go on with
CONSTRUCT_COMPONENT = 5  # the component to bind next; as many as there are, if none is bound
CONSTRUCT_WRITTEN = 6  # sequences written
CONSTRUCT_TOGETHER = 7  # sequences of this accepting event
CONSTRUCT_TRIED = 8  # candidates that were looked at
CONSTRUCT_WORK = 9  # how many to look at before a pause
SEQUENCE_COUNTERS = 10
