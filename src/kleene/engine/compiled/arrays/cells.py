"""`node` of the basic sequence scan: a row is a node of the runtime stack (SASE 2006 §3.2).

Every event has a node for each active state. The rows are a ring, from base[0] to before top[0].
"""

CELL_LOOP = 0  # the node of the same state at the event before (the self-loop), -1 for none
CELL_FORWARD = 1  # the node of the state before, if the event made the transition; -1 if it did not
CELL_ROW = 2  # the row of the event
CELL_START = 3  # the row of the youngest first event that it can follow
CELL_COLUMNS = 4

FROM_THE_START = -2  # a CELL_FORWARD: the event made the transition from the start
