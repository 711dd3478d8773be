"""`edge`: a row is an edge of the versioned match buffer, a way on which runs came to a node."""

EDGE_VERSION = 0  # the version of the run that came this way
EDGE_BEFORE = 1  # the node before, -1 for a first event
EDGE_NEXT = 2  # the next edge of the same node, -1 for the last
EDGE_COLUMNS = 3
