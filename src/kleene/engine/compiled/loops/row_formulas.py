"""What a generated module for a row pattern says of its query; the bodies come from `row_code.py`."""

ALL_MATCHES = False
"""Every way of every start row is a match; else the most preferred one is."""
LOOKS_AT_MATCH = False
"""Whether a condition depends on more than the row and its neighbours."""
REMEMBERS = False
"""Whether states that failed are marked: no condition looks at the match, and the pattern has a loop."""
REGISTERS = 0
RUN_VARIABLES = 0
"""A bit for each variable whose condition does."""
MOST_ROWS_AT = -1
"""Where MAXLENGTH stands among the whole numbers of the query; -1 if it has none."""
SKIP = 0
"""AFTER MATCH SKIP, as `arrays/row_automaton.py` numbers it."""
SKIP_TARGET = 0
"""A bit for each variable that may be skipped to."""
WINDOW_IN_TIME = False
FRAMES = False
"""Whether each row has a frame of its own, and sees no row outside of it."""
BOUNDED_FRAMES = False
"""Whether frames may end before the partition does."""
SEEKS = False
"""Whether the match of a row may begin behind it."""
LOOK_BACK = 0
LOOK_AHEAD = 0
"""How many rows before and behind a row its own formulas look at."""


def in_window(start, row, times, ki, kf):
    """Whether a match from the row `start` may have `row`."""


def row_bits(row, begin, end, columns, ki, kf):
    """A bit for each variable that the row can be, as far as the row and its neighbours from `begin` to `end` say."""


def clear(ri, rf):
    """Makes the registers those of a match without rows."""


def bind(variable, row, start, number, depth, stack_state, variable_of, begin, end, ri, rf, columns, ki, kf):
    """Brings the registers up to date with the row; what it changes is kept in row `depth`.

    The state of the match's row k, before this one, is stack_state[k + 1].
    """


def unbind(variable, depth, ri, rf):
    """Puts back what `bind` changed."""


def fits_run(variable, row, start, number, stack_state, variable_of, begin, end, ri, rf, columns, ki, kf):
    """Whether the part of the variable's condition that looks at the match holds, the row being its last.

    The state of the match's row k, before this one, is stack_state[k + 1].
    """
