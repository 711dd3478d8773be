"""`groups` of steps: a row is a partition. Events kept from before stand in front of the fresh ones."""

STEP_GROUP_FRESH = 0  # its first fresh row
STEP_GROUP_END = 1  # the row behind its last
STEP_GROUP_STORED = 2  # where its stored runs begin
STEP_GROUP_STORED_COUNT = 3  # how many there are
STEP_GROUP_KEPT = 4  # where its kept runs begin
STEP_GROUP_KEPT_COUNT = 5  # how many there are
STEP_GROUP_PLACE = 6  # how many events it had before
STEP_GROUP_COLUMNS = 7
