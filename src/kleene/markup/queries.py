"""A query as a notebook shows it."""

from __future__ import annotations

from collections.abc import Callable

from kleene.errors import KleeneError
from kleene.markup.highlight import highlighted
from kleene.markup.notebook import in_notebook
from kleene.markup.themes import following
from kleene.visible import visible


def query_html(text: str, draw: Callable[[], str]) -> str:
    """The text with its syntax marked, and the automaton, where one can be drawn without events."""
    shown = f'<pre class="kleene-query">{highlighted(visible(text, keep=chr(10)))}</pre>'
    try:
        return in_notebook(shown + following(draw(), "light"))
    except KleeneError:  # no match can exist, or a parameter has no value yet
        return in_notebook(shown)
