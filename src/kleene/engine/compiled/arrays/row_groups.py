"""`groups` of row patterns: a row is a partition, or a stretch of one, in which matches are searched for."""

ROW_GROUP_FIRST = 0  # its first row
ROW_GROUP_END = 1  # the row behind the last that a match may have
ROW_GROUP_START = 2  # the start row to go on with
ROW_GROUP_MATCHES = 3  # how many matches there were so far
ROW_GROUP_OPENS = 4  # 1 if its first row is the first of the partition
ROW_GROUP_SEEN_END = 5  # the row behind the last that conditions may look at
ROW_GROUP_STARTS_END = 6  # the row behind the last that a match may begin with
ROW_GROUP_COLUMNS = 7
