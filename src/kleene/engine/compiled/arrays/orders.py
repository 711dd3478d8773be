"""`mode`: how matches are put in order."""

OUTPUT_ORDER = 0  # as they are given out
BEST_OF_AN_END_FIRST = 1  # those of a partition that end at one event together, the best of them first
