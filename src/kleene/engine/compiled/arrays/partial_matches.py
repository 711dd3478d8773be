"""`ri`, `kept_i`, `stored_i`, `oi` of the regular-expression operator: a row is a partial match.

The floats are in the same row of `rf`, `kept_f`, `stored_f` or `of`, where every column is a register.
"""

PARTIAL_START = 0  # the row where it began
PARTIAL_STATES = 1  # the states that it may be in, a bit each
PARTIAL_NULLS = 2  # which registers are NULL, a bit each
PARTIAL_REGISTERS = 3  # the first register
