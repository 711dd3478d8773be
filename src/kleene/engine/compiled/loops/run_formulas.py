"""What a generated module says of its query: the constants and formulas that the loops are written against.

These are the names with their meaning; the values and bodies come from the query (`sase.py`).
"""

COMPONENTS = 1
"""How many positive components the pattern has; a state is the number of the component bound last."""
KLEENE = 0
"""A bit for each component that is a Kleene plus."""
KEEPS_ALWAYS = False
"""skip_till_any_match: whatever a run does with an event, it also stays as it was."""
KEEPS_UNSELECTED = False
"""Both skip strategies: a run that cannot select the event stays as it was."""
MERGE = False
"""Whether equal runs are merged."""
NEGATIONS = 0
"""Negations in the middle that are decided by one event alone: they end runs as soon as it comes."""
NEGATION_BIT = 0
"""The first of their bits among those of an event; component c has bits 2c (begin) and 2c + 1 (take)."""
NEGATION_GAPS: tuple[int, ...] = ()
"""For each of them, the component that it stands before."""
INTEGER_COLUMNS = 6
"""How many columns a run has in `ri`."""
FLOAT_COLUMNS = 0
"""How many columns it uses in `rf`."""


def in_window(start, row, times, positions, ki, kf):
    """Whether a match that began at the row `start` may go on to `row`."""


def begin_ok(component, run, row, ri, rf, node, edge, version, columns, ki, kf):
    """Whether the event begins the component in the run: 1 or 0, or the number of an error, which is negative."""


def take_ok(component, run, row, ri, rf, node, edge, version, columns, ki, kf):
    """Whether the event is one more of the Kleene variable."""


def complete_ok(component, run, row, ri, rf, node, edge, version, columns, ki, kf):
    """Whether the Kleene variable may be left."""


def update(component, is_first, run, row, ri, rf, target, ti, tf, columns, ki, kf):
    """Writes the registers of the run, with the event added to the component, as those of the target."""


def live_hash(run, ri, rf):
    """A number that is the same for equal runs."""


def live_equal(left, left_i, left_f, right, right_i, right_f):
    """Whether two runs are in the same state and agree in the values that are still read."""
