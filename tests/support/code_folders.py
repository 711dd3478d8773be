"""A small function to compile, and a folder of machine code for tests to spoil."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from kleene.engine.compiled import jit

SUM = """\
def total(values):
    result = 0
    for value in values:
        result += value
    return result
"""
SIGNATURES = {"total": "int64(int64[::1])"}
FIVE = np.array([2, 3])


def forget(monkeypatch):
    """What a new process knows."""
    monkeypatch.setattr(jit, "_loaded", OrderedDict())


def was_compiled(function):
    return not function.was_stored
