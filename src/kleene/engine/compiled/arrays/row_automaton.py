"""Numbers in the tables and constants of a row pattern's automaton, where they do not count states or variables."""

# `edge_target`: a state, or
ACCEPT = -1  # the match ends here
ACCEPT_AT_END = -2  # it ends here if no row follows in the partition

# `SKIP`: where matching goes on after a match
SKIP_PAST_LAST = 0  # behind its last row
SKIP_TO_NEXT = 1  # at the row after its first
SKIP_TO_FIRST = 2  # at the first row of the variables in SKIP_TARGET
SKIP_TO_LAST = 3  # at the last row of them
