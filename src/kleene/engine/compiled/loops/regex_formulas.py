"""What a generated module of the regular-expression operator says of its query; `regex_code.py` writes the bodies."""

INTEGER_COLUMNS = 3
"""How many columns a partial match has in `ri`."""
FLOAT_COLUMNS = 0
"""How many columns it uses in `rf`."""


def holds(variable, run, row, ri, rf, columns, ki, kf):
    """Whether the part of the predicate that looks at the match so far holds for the event."""


def add_event(target, row, ri, rf, columns, ki, kf):
    """Brings the registers of a partial match up to date with the event."""
