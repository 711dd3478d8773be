"""What a generated module says of a pattern in steps: the constants and formulas that the loop is written against.

These are the names with their meaning; the values and bodies come from the query (`steps_code.py`).
"""

FINAL = 0
"""The number of the final state."""
STOP = -1
"""The number of the state that ends a run; -1 if there is none."""
ALWAYS = 1 << 62
"""A bit that every event has."""
ALONE = 0
"""The atoms that an event decides alone; its bits say so."""
DERIVED = 0
"""How many atoms are made of others."""
FIRST_DERIVED = 0
"""The bit of the first of them."""
BEGINS = 0
"""The bits of events that a run may begin with."""
MOST_MOVES = 1
"""How many moves a run has at most."""
KEEPS_ORDER = False
"""Whether the order of runs matters: after a match, something is dropped."""
ENDS_IN_TIME = False
"""Whether runs that time ends may be matches."""
HAS_WAITS = False
"""Whether a step is bounded in the time since the event before."""
HAS_ABSENCES = False
"""Whether absences may be open."""
HAS_PLANS = False
"""Whether the moves of each state are found beforehand, for all atoms that an event may satisfy."""
PLAN_WIDTH = 1
"""How many sets of atoms there are then."""
HAS_GROUPS = False
"""Whether there are groups: only then may two runs come to be the same."""
SKIPS_TO = -1
"""After a match: the step that is skipped to; -1 to the next event, -2 past the last one."""
SKIPS_TO_LAST = False
"""Whether it is the step's last event that is skipped to."""
ALL_NULL = 0
"""The registers of a run that has bound nothing."""
INTEGER_COLUMNS = 6
"""How many columns a run has in `ri`."""
FLOAT_COLUMNS = 0
"""How many columns it uses in `rf`."""


def is_over(start, place, row, place_now, times, ki, kf):
    """Whether the window of a run that began at the row `start`, in that place, has ended at `row`."""


def is_soon(wait, last, row, times, ki, kf):
    """Whether the event is less than the bound of that number after the event before."""


def atom_ok(atom, run, row, ri, rf, columns, ki, kf):
    """Whether the condition holds for the event: 1 or 0, or the number of an error, which is negative."""


def update(step, run, row, ri, rf, target, ti, tf, columns, ki, kf):
    """Writes the registers of the run, with the event added to the step, as those of the target."""
