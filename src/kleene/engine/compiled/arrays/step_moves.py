"""`move_table`: a row is a move of a run, found beforehand for each state and each set of atoms, or just now.

A row of `plan_table` is where the moves of a state and a set of atoms begin, and where they end; a move without an edge
ends the run, and comes first.
"""

STEP_MOVE_EDGE = 0
STEP_MOVE_STATE = 1  # the state that owns the edge
STEP_MOVE_COMPLETES = 2  # whether the move completes a match
STEP_MOVE_COLUMNS = 3
