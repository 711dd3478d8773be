"""`done`: a row is a completion, where a run reached the end of the pattern. Merged runs stand for many matches."""

COMPLETION_NODE = 0  # the last node
COMPLETION_VERSION = 1  # versioned: the version of the run
COMPLETION_ROW = 2  # the row of the last event
COMPLETION_GROUP = 3  # the group that the run belongs to
COMPLETION_COLUMNS = 4
