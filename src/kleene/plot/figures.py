"""Where Matplotlib lives: figures are made, and turned into SVG and PNG.

Matplotlib draws SVG and PNG without a browser, without JavaScript and without the network, and what it writes is whole
in itself. Altair needs a browser, or a JavaScript engine, for either.

Only the object interface is used, never pyplot, so that no figure is global. Settings of the user's own Matplotlib do
not count here; ours hold for a moment, under a lock, and are then undone.
"""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from kleene.errors import UnsupportedError
from kleene.markup.themes import in_tags

PIXELS_PER_INCH = 96.0
FONT = 9.0  # points, which are 12 pixels
_LOCK = threading.Lock()
_SETTINGS = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": FONT,
    # Text stays text: it can be found, copied and read aloud, and the file is a tenth of the size. What another font
    # makes wider by a little has room, since nothing stands close to anything.
    "svg.fonttype": "none",
    "svg.hashsalt": "kleene",  # names inside of the file depend on what is drawn alone
    "text.parse_math": False,  # a $ in a key is a dollar
    "text.usetex": False,
    "axes.unicode_minus": True,
    "path.simplify": True,
}
_FAMILIES = "font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans','Noto Sans',sans-serif"
_PAGE_STYLE = re.compile(r"\s*<defs>\s*<style[^<>]*>[^<>]*</style>\s*</defs>")  # it would style a whole page
_GROUP, _FAMILY = re.compile(r'^<g id="([^"<>]*)"'), re.compile(r"font-family: [^;\"<>]*")

Draw = Callable[[Any], None]
"""What draws on a figure."""


def check_installed() -> None:
    """An error with the line that installs Matplotlib, if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError:
        raise UnsupportedError(
            "pictures need the package 'matplotlib'", hint="Install it: pip install 'kleene[plot]'"
        ) from None


@contextmanager
def _settings() -> Iterator[None]:
    check_installed()
    from matplotlib import style

    with _LOCK, warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box in PNG; in SVG the reader's fonts have it.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        with style.context(["default", _SETTINGS]):
            yield


def _figure(size: tuple[int, int], draw: Draw) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / PIXELS_PER_INCH, size[1] / PIXELS_PER_INCH), dpi=PIXELS_PER_INCH)
    draw(figure)
    return figure


def svg_of(size: tuple[int, int], title: str, draw: Draw) -> str:
    """The figure as SVG; the same figure is always the same text."""
    with _settings():
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        figure, out = _figure(size, draw), io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        FigureCanvasSVG(figure).print_svg(out, metadata=nothing)
    return _inlined(out.getvalue(), title)


def png_of(size: tuple[int, int], scale: float, draw: Draw) -> bytes:
    with _settings():
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure, out = _figure(size, draw), io.BytesIO()
        figure.set_dpi(PIXELS_PER_INCH * scale)
        FigureCanvasAgg(figure).print_png(out, metadata={"Software": None})
    return out.getvalue()


def _inlined(svg: str, title: str) -> str:
    """The picture as it may stand in a page beside others: groups have classes in place of ids, and it has a title."""
    body = svg[svg.index("<svg") :]
    body = _PAGE_STYLE.sub("", body, count=1)
    body = in_tags(body, lambda tag: _FAMILY.sub(_FAMILIES, _GROUP.sub(r'<g class="\1"', tag)))
    opening, rest = body.split(">", 1)
    label = escape(title, quote=True)
    return f'{opening} stroke-linejoin="round" role="img" aria-label="{label}">\n <title>{escape(title)}</title>{rest}'
