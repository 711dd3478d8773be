"""`state_table`: a row is a state of the automaton of steps. Atoms are conditions, which have a bit each."""

STEP_STATE_EDGES = 0  # where its edges begin
STEP_STATE_END = 1  # where they end
STEP_STATE_NEEDS = 2  # the atoms that its moves depend on
STEP_STATE_LOUD = 3  # the bits of events that it cannot just ignore
STEP_STATE_WAIT = 4  # the number of the bound that ends a run which waits here, -1 if there is none
STEP_STATE_STEP = 5  # the step that its takes bind events to
STEP_STATE_PENDING = 6  # whether a run that ends here in time is a match
STEP_STATE_ENDS = 7  # whether proceed edges lead to the final state, or it is that
STEP_STATE_COLUMNS = 8
