"""`kind`: what the shared loops measure a window in."""

NO_WINDOW = 0
WINDOW_IN_EVENTS = 1  # places in the partition
WINDOW_IN_WHOLE_TIME = 2
WINDOW_IN_FLOAT_TIME = 3
