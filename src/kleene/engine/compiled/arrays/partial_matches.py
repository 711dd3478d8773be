"""`ri`, `kept_i`, `stored_i`, `oi` of the regular-expression operator: a row is a partial match.

The floats are in the same row of `rf`, `kept_f`, `stored_f` or `of`, where every column is a register.
"""

PARTIAL_START = 0  # the row where it began: the row of an event, less this, is how many events it has before that
PARTIAL_STATES = 1  # the states that it may be in, a bit each; while it is in a block, the block knows
PARTIAL_NULLS = 2  # which registers are NULL, a bit each; in `low_i`, 1 if no bounds are known of the block
PARTIAL_FAILED = 3  # which of its sums went too far, from 1; 0 if none did
PARTIAL_REGISTERS = 4  # the first register
