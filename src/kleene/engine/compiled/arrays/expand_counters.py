"""`st` of the loops that write matches out of the buffer; and `totals` of the loop that measures them beforehand."""

EXPAND_COMPLETION = 0  # the completion to go on with
EXPAND_DEPTH = 1  # the depth of the stack, 0 between two completions
EXPAND_MATCHES = 2  # matches written
EXPAND_ROWS = 3  # rows of them
EXPAND_TOGETHER = 4  # matches of this completion
EXPAND_MOST = 5  # the most matches of one completion
EXPAND_COUNTERS = 6

TOTAL_MATCHES = 0
TOTAL_ROWS = 1
TOTALS = 2
