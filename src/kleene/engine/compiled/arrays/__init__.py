"""The columns of the kernels' arrays by name: one module for each array, which says what a row of it is.

A name has one meaning, in all modules. The Python around the kernels imports the names. Generated source gets those
that it uses as plain numbers at its top, where numba folds them into the code.

>>> print(constants_of("node[n, NODE_ROW] = ri[r, RUN_HEAD]"))
NODE_ROW = 0
RUN_HEAD = 1
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from itertools import takewhile
from pkgutil import iter_modules

import numpy as np

from kleene.engine.matches import Array

_NAME = re.compile(r"\b[A-Z][A-Z_]+\b")
CONSTANTS_BY_MODULE: dict[str, dict[str, int]] = {
    module.name: {
        name: value for name, value in vars(import_module(f"{__name__}.{module.name}")).items() if _NAME.fullmatch(name)
    }
    for module in iter_modules(__path__)
}
_CONSTANTS = {name: value for constants in CONSTANTS_BY_MODULE.values() for name, value in constants.items()}


class Counters:
    """`st` of a kernel: what a module names is an attribute here, in small letters and without its first word.

    >>> st = Counters("search_counters", start=-1)
    >>> st.matches += 2
    >>> st.start, st.matches, len(st.array)
    (-1, 2, 12)
    """

    array: Array

    def __init__(self, module: str, **values: int) -> None:
        places = _places(module)
        vars(self).update(_places=places, array=np.zeros(len(places), np.int64))
        for name, value in values.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> int:
        return int(self.array[vars(self)["_places"][name]])

    def __setattr__(self, name: str, value: int) -> None:
        self.array[vars(self)["_places"][name]] = value


@cache
def _places(module: str) -> dict[str, int]:
    names = takewhile(lambda name: not name.endswith("_COUNTERS"), CONSTANTS_BY_MODULE[module])
    return {name.partition("_")[2].lower(): _CONSTANTS[name] for name in names}


def constants_of(text: str) -> str:
    """The constants that the text names, as source."""
    used = {name: _CONSTANTS[name] for name in _NAME.findall(text) if name in _CONSTANTS}
    return "\n".join(f"{name} = {value}" for name, value in used.items())
