"""`groups` of SASE+ and of the regular-expression operator: a row is a partition that has events in this piece.

Events kept from before stand in front of the fresh ones. Runs that are open when a piece begins are stored; those open
when it ends are kept.
"""

GROUP_FRESH = 0  # its first fresh row
GROUP_END = 1  # the row behind its last
GROUP_STORED = 2  # where its stored runs begin
GROUP_STORED_COUNT = 3  # how many there are
GROUP_KEPT = 4  # where its kept runs begin
GROUP_KEPT_COUNT = 5  # how many there are
GROUP_FIRST = 6  # its first row of all
GROUP_COLUMNS = 7
