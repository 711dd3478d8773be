"""Memory of Arrow's for machine code to read."""

from __future__ import annotations

import numpy as np

from kleene.engine.matches import Array


class _Borrowed:
    """Memory of Arrow's, held for as long as an array looks at it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def not_read_only(array: Array) -> Array:
    """The same memory, not marked read-only: machine code is typed for arrays that are not. It never writes there."""
    if array.flags.writeable:
        return array
    return np.asarray(_Borrowed(array)) if array.size else array.copy()
