"""`state` of a stream of row patterns: a row is what is known of a partition between two pieces."""

PARTITION_DROPPED = 0  # how many rows came before those that are kept
PARTITION_DECIDED = 1  # how many of the kept rows stand before the start that is not decided yet
PARTITION_MATCHES = 2  # how many matches there were
PARTITION_COVERED = 3  # up to which row, counted from the beginning of the stream, it is matched
PARTITION_COLUMNS = 4
