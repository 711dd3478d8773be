"""`version`: a row is a version, the Dewey number of a run (SASE+ 2008 §5.1). Its digits are a chain of versions."""

VERSION_ORIGIN = 0  # the version of the run that this one was split from or grew out of; it selected the same before
VERSION_DIGIT = 1  # the last digit
VERSION_FOLLOWERS = 2  # how many versions have this one as their prefix
VERSION_PREFIX = 3  # the version whose digits come before the last, -1 if there are none
VERSION_COLUMNS = 4
