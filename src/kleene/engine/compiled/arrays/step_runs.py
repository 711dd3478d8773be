"""`ri`, `ni`, `kept_i`, `stored_i` of steps: a row is a run, or, where its state is -1, a match that waits."""

STEP_RUN_STATE = 0
STEP_RUN_HEAD = 1  # the run's last node in the match buffer, -1 before the first event
STEP_RUN_START = 2  # the row of its first event
STEP_RUN_PLACE = 3  # where that stands in the partition
STEP_RUN_NULLS = 4  # which registers are NULL, a bit each
STEP_RUN_HAS = 5  # which steps have an event, a bit each
STEP_RUN_REGISTERS = 6  # the first register
