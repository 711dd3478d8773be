"""`node` of steps: a row is an event that was bound to a step, after those that its run had bound before."""

STEP_NODE_ROW = 0
STEP_NODE_STEP = 1
STEP_NODE_BEFORE = 2  # the node before it, -1 for a first event
STEP_NODE_LENGTH = 3  # how many events lead here, this one included
STEP_NODE_COLUMNS = 4
