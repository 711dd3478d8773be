"""`walks`: a row is a walk over nodes of a graph of matches: of those whose first events reach equally far."""

WALK_BEGIN = 0  # its first node
WALK_END = 1  # the node after its last
WALK_REACH = 2  # the last row that its matches may come to
WALK_DONE = 3  # its first completion
WALK_COLUMNS = 4
