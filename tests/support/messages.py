"""`--messages FOLDER`: every error and warning that the tests meet is written down, to be read in one sitting.

Messages are put together from parts, and whether the parts fit is seen only when they are. One file for each process;
`make messages` joins them. Of each place in the code that raises, a few texts are kept.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

from kleene.errors import KleeneError, KleeneWarning

FEW = 4
PACKAGE = f"{os.sep}kleene{os.sep}"
_texts: dict[str, dict[str, None]] = defaultdict(dict)


def _note(text: str) -> None:
    frame = sys._getframe(2)
    while frame.f_back is not None and not (
        PACKAGE in frame.f_code.co_filename and not frame.f_code.co_filename.endswith("errors.py")
    ):
        frame = frame.f_back
    place = f"{frame.f_code.co_filename.rpartition(PACKAGE)[2]} {frame.f_code.co_name}"
    if len(_texts[place]) < FEW:
        _texts[place][text] = None


def pytest_configure(config: Any) -> None:
    made, warned = KleeneError.__init__, warnings.warn

    def __init__(self: KleeneError, message: str, location: Any = None, hint: str | None = None) -> None:  # noqa: N807
        made(self, message, location, hint)
        _note(f"{type(self).__name__}: {message}" + (f"\n      {hint}" if hint else ""))

    def warn(message: Any, category: Any = None, stacklevel: int = 1, *rest: Any, **more: Any) -> None:
        if category is KleeneWarning:
            _note(f"KleeneWarning: {message}")
        warned(message, category, stacklevel + 1, *rest, **more)

    KleeneError.__init__ = __init__  # type: ignore[method-assign]
    warnings.warn = warn  # type: ignore[assignment]


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{place}\n" + "".join(f"    {text}\n" for text in texts) for place, texts in sorted(_texts.items())]
    (folder / f"{os.getpid()}.txt").write_text("\n".join(lines), encoding="utf-8")
