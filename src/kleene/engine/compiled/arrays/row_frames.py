"""`ri` of row patterns: row 0 has the registers as they are now; row f, what the row of frame f has changed.

The floats are in the same row of `rf`, where every column is a register.
"""

FRAME_NULLS = 0  # which registers are NULL, a bit each
FRAME_REGISTERS = 1  # the first register
