"""The columns of the kernels' arrays by name: one module for each array, which says what a row of it is.

A name has one meaning, in all modules. The Python around the kernels imports the names. Generated source gets those
that it uses as plain numbers at its top, where numba folds them into the code.

>>> print(constants_of("node[n, NODE_ROW] = ri[r, RUN_HEAD]"))
NODE_ROW = 0
RUN_HEAD = 1
"""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

_NAME = re.compile(r"\b[A-Z][A-Z_]+\b")
CONSTANTS_BY_MODULE: dict[str, dict[str, int]] = {
    module.name: {
        name: value for name, value in vars(import_module(f"{__name__}.{module.name}")).items() if _NAME.fullmatch(name)
    }
    for module in iter_modules(__path__)
}
_CONSTANTS = {name: value for constants in CONSTANTS_BY_MODULE.values() for name, value in constants.items()}


def constants_of(text: str) -> str:
    """The constants that the text names, as source."""
    used = {name: _CONSTANTS[name] for name in _NAME.findall(text) if name in _CONSTANTS}
    return "\n".join(f"{name} = {value}" for name, value in used.items())
