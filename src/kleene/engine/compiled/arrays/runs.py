"""`ri`, `ni`, `kept_i`, `stored_i`: a row is a run of a SASE+ query.

The floats of a run are in the same row of `rf`, `nf`, `kept_f` or `stored_f`, where every column is a register.
"""

RUN_STATE = 0  # the component that was bound last
RUN_HEAD = 1  # the run's last node in the match buffer, -1 before the first event
RUN_VERSION = 2  # of the versioned buffer: the run's version, -1 before the first event
RUN_NULLS = 3  # which registers are NULL, a bit each
RUN_START = 4  # the row of the run's first event; of a merged run, the youngest
RUN_NEGATIONS = 5  # negations that have come since the last component, a bit each: the next one cannot begin
RUN_REGISTERS = 6  # the first register; registers are the values that later formulas read (V in the paper)

# The backtrack algorithm has no buffer. A run has a list of its own events instead of a head and a version.
RUN_EVENTS = 1  # where the run's events begin in `own`
RUN_LENGTH = 2  # how many there are
