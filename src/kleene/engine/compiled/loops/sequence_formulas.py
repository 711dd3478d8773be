"""What `sequences.py` expects of its query: constants and formulas; values and bodies come from `sequence_code.py`."""

COMPONENTS = 1
"""How many components the pattern has."""
STACKED = 1
"""How many equivalence tests have stacks of their own; with none, one stack for all values."""
BASIC = False
"""Whether sequences are read from a runtime stack with a cell for every event."""
WINDOW_IN_SCAN = False
"""Whether an event must be in one window with the first event that its stack leads to."""
PRUNES = False
"""Whether instances can be dropped by comparing them with any later event."""
WINDOW_IN_CONSTRUCTION = False
"""Whether the walk along a stack ends where the window does."""
WINDOW_OF_ENDS = False
"""Whether only first and last event can be compared: positions in a partition mean nothing on stacks of several."""


def in_window(start, row, times, positions, ki, kf):
    """Whether a match that begins at the row `start` may end at `row`."""


def key_of(test, component, row, codes):
    """The number of the event's value for a test with stacks, -1 where it has none; 0 if no test has stacks."""


def scan_ok(component, row, columns, ki, kf):
    """Whether the event is one for the component: what its bits do not tell, because telling may be an error."""


def bound_ok(component, rows, codes, negative, entry_keys, directory, buckets, times, positions, columns, ki, kf):
    """Whether what can be judged once this component and all behind it are bound holds; an error is negative."""
