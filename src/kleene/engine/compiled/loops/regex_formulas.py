"""What a generated module of the regular-expression operator says of its query; `regex_code.py` writes the bodies."""

INTEGER_COLUMNS = 4
"""How many columns a partial match has in `ri`."""
FLOAT_COLUMNS = 0
"""How many columns it uses in `rf`."""
BOUNDS = True
"""Whether many starts can be tried at once."""
MANY = 32
"""How many partial matches are tried one by one before they are put into blocks."""
LEAF = 4
"""In blocks, so few are tried one by one."""
COLLECTS = False
"""Whether events are kept for an output, so that the rows of matches from before are known."""
COUNT_COLUMN = 4
"""The register that counts the events of a match."""
FREE_STATES = 0
"""The states behind which nothing depends on where a match began."""


def holds(variable, run, row, ri, rf, shared_i, shared_f, columns, ki, kf):
    """Whether the part of the predicate that looks at the match so far holds for the event."""


def bounds(variable, block, row, zones, shared_i, shared_f, columns, ki, kf):
    """Whether it holds for all partial matches of a block (1), for none of them (0), or they must be asked (2)."""


def take_event(row, shared_i, shared_f, columns, ki, kf):
    """Puts into row 1 what all partial matches that take the event have in common, and fails if a value does."""


def share_event(shared_i, shared_f):
    """Moves it from row 1 to row 0, where predicates read it."""


def begin_run(target, row, ri, rf, columns, ki, kf):
    """Sets what predicates read of the first event, and clears what they read of all events."""


def add_event(target, row, ri, rf, columns, ki, kf):
    """Brings those registers of a partial match up to date that change with each event and are read before its end."""


def add_late(target, is_first, row, ri, rf, columns, ki, kf):
    """Brings the other registers up to date, which can be done later; the first event clears them before."""


def failure_of(number):
    """The status that tells which sum went too far."""


def is_beyond_bounds(run, ri, rf):
    """Whether a value of the partial match is NULL or no finite number, so that nothing lies between it and others."""


def agree(run, other, ri, rf):
    """Whether two partial matches in the same states have the same future."""
