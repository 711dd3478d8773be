"""`vectors`: a row says where the numbers of matches that lead to a node stand in `starts` and `counts`.

They are counted by the first event of the match, because that decides when its window ends.
"""

COUNTED_BEGIN = 0  # where those of the node begin
COUNTED_END = 1
COUNTED_LIST_BEGIN = 2  # where those of the list that the node begins begin
COUNTED_LIST_END = 3
COUNTED_COLUMNS = 4

MOST_COUNTED = 1 << 62  # larger counts do not fit: the sum of two must not overflow
