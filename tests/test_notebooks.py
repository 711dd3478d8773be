"""The notebooks run from top to bottom, and show what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
# A kernel that ends warns about its own event loop and sockets.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def shown_by(name: str) -> list[list[dict[str, Any]]]:
    """The outputs of each cell of code."""
    notebook = nbformat.read(FOLDER / name, as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
    return [list(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def kinds(outputs: list[dict[str, Any]]) -> set[str]:
    return {kind for output in outputs for kind in output.get("data", {})}


def test_theft_in_a_store() -> None:
    shown = shown_by("theft_in_a_store.ipynb")
    assert "<table" in shown[2][0]["data"]["text/html"]
    assert kinds(shown[3]) & {"image/svg+xml", "text/html"}
    assert "the window has passed" in shown[4][0]["text"]
    assert "<svg" in shown[5][0]["data"]["text/html"]
    assert "<details" in shown[6][0]["data"]["text/html"]


def test_shapes_in_prices() -> None:
    shown = shown_by("shapes_in_prices.ipynb")
    assert "<table" in shown[1][0]["data"]["text/html"]
    assert kinds(shown[2]) & {"image/svg+xml", "text/html"}
    assert "AAPL" in shown[3][0]["data"]["text/html"]
    assert kinds(shown[4]) & {"image/svg+xml", "text/html"}
