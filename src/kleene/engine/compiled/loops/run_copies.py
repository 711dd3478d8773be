"""Copying and clearing runs and partial matches: a template, in front of the loops that have them."""

from kleene.engine.compiled.loops.run_formulas import *

# ------------------------------------------------------------------------------------------------------------------


def copy_run(source_i, source_f, r, target_i, target_f, t):
    for column in range(INTEGER_COLUMNS):
        target_i[t, column] = source_i[r, column]
    for column in range(FLOAT_COLUMNS):
        target_f[t, column] = source_f[r, column]


def clear_run(ri, rf, r):
    for column in range(INTEGER_COLUMNS):
        ri[r, column] = 0
    for column in range(FLOAT_COLUMNS):
        rf[r, column] = 0.0
