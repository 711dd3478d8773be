"""`blocks` of the regular-expression operator: a row is a block, partial matches in the same states side by side.

Blocks stand with the oldest first, and so do the partial matches of a block. There are two tables of them: an event
turns the blocks of one into those of the other.
"""

BLOCK_FIRST = 0  # where its partial matches begin in `ri`; there, `low_i` and others have their least values
BLOCK_COUNT = 1  # how many there are
BLOCK_STATES = 2  # the states that they may be in, a bit each
BLOCK_COLUMNS = 3
