"""`edge` of steps: a row is an edge of the automaton, those of a state stand together and in order."""

STEP_EDGE_MOVE = 0
STEP_EDGE_TARGET = 1
STEP_EDGE_MUST = 2  # the atoms that must hold
STEP_EDGE_NOT = 3  # the atoms that must not hold
STEP_EDGE_WAIT = 4  # the number of the bound on the time since the event before, -1 if there is none
STEP_EDGE_COLUMNS = 5

STEP_PROCEEDS = 0
STEP_TAKES = 1
STEP_IGNORES = 2
