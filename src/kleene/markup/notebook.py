"""How parts of HTML look in a notebook: light or dark as the notebook is."""

from __future__ import annotations

from kleene.markup.themes import DARK, LIGHT, colors_css

SYNTAX = (
    ".kleene .k-keyword{color:var(--kleene-variable-4);font-weight:600}"
    ".kleene .k-string{color:var(--kleene-variable-3)}"
    ".kleene .k-number,.kleene .k-param{color:var(--kleene-variable-2)}.kleene .k-call{color:var(--kleene-variable-1)}"
    ".kleene .k-comment{color:var(--kleene-pale);font-style:italic}"
)
FOLDING = (
    ".kleene details{margin:2px 0 2px 4px;padding-left:10px;border-left:2px solid var(--kleene-grid)}"
    ".kleene summary{cursor:pointer;font-weight:600}.kleene details ul{margin:2px 0 2px 18px;padding:0;list-style:none}"
    ".kleene .kleene-facts th{text-align:left;font-weight:600;padding:1px 16px 1px 0;vertical-align:top;"
    "color:var(--kleene-pale)}.kleene .kleene-facts td{text-align:left;padding:1px 0}"
)
_NOTEBOOK = (
    f".kleene{{{colors_css(LIGHT)}color:var(--kleene-ink);background:var(--kleene-paper)}}"
    f"[data-jp-theme-light=false] .kleene,.vscode-dark .kleene{{{colors_css(DARK)}}}"
    ".kleene pre{background:transparent;color:inherit;margin:4px 0;white-space:pre-wrap}"
    ".kleene svg{max-width:100%;height:auto}"
)


def in_notebook(html: str) -> str:
    """The part with the rules that it needs; they hold inside of it alone."""
    return f'<div class="kleene"><style>{_NOTEBOOK}{SYNTAX}{FOLDING}</style>{html}</div>'
