"""Who may import whom: the arrows of docs/how_it_works.md, read off the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "kleene"

# A room, and the rooms it may import from (itself always).
ARROWS = {
    "visible": set(),
    "watching": set(),
    "wording": set(),
    "remembered": {"wording"},
    "source": set(),
    "errors": {"source", "visible"},
    "cache": {"errors"},
    "schema": set(),
    "ir": {"errors", "source", "schema", "remembered"},
    "lang": {"cache", "ir", "errors", "source", "schema", "wording", "remembered"},
    "analysis": {"ir", "errors", "source", "schema", "wording"},
    "options": {"ir", "errors", "wording"},
    "plan": {"options", "analysis", "ir", "errors", "schema"},
    "automaton": {"plan", "analysis", "ir", "errors", "schema"},
    "engine": {
        "cache",
        "automaton",
        "plan",
        "options",
        "analysis",
        "ir",
        "errors",
        "schema",
        "files",
        "source",
        "watching",
        "wording",
        "remembered",
    },
    "explain": {"engine", "automaton", "plan", "analysis", "ir", "errors"},
    "call": {"engine", "plan", "options", "analysis", "lang", "ir", "errors", "wording", "remembered"},
    "scanning": {
        "call",
        "engine",
        "plan",
        "options",
        "analysis",
        "ir",
        "errors",
        "schema",
        "files",
        "watching",
    },
    "api": {
        "remembered",
        "call",
        "explain",
        "engine",
        "plan",
        "options",
        "analysis",
        "lang",
        "ir",
        "errors",
        "schema",
        "visible",
        "watching",
        "why",
        "long",
        "found",
        "markup",
        "plot",
    },
    "found": {
        "api",
        "call",
        "engine",
        "plan",
        "analysis",
        "ir",
        "errors",
        "markup",
        "plot",
        "report",
        "visible",
        "why",
    },
    "report": {"api", "found", "plot", "why", "markup", "files", "errors", "show", "visible"},
    "markup": {"errors", "show", "visible"},
    "plot": {
        "api",
        "automaton",
        "call",
        "engine",
        "explain",
        "plan",
        "options",
        "analysis",
        "long",
        "why",
        "ir",
        "errors",
        "schema",
        "files",
        "markup",
        "visible",
    },
    "long": {"engine", "analysis", "ir", "errors", "schema"},
    "why": {
        "call",
        "engine",
        "automaton",
        "options",
        "analysis",
        "lang",
        "ir",
        "errors",
        "source",
        "schema",
        "visible",
        "wording",
    },
    "programs": {"api", "call", "engine", "plan", "options", "analysis", "lang", "ir", "errors", "watching"},
    "steps": {"api", "lang", "ir", "visible"},
    "sqltext": {"lang", "analysis", "ir", "errors", "source", "schema"},
    "spark": {
        "sqltext",
        "api",
        "call",
        "engine",
        "long",
        "plan",
        "options",
        "analysis",
        "lang",
        "ir",
        "errors",
        "schema",
        "source",
        "files",
        "scanning",
        "watching",
        "wording",
    },
    "local_sql": {"sqltext", "api", "call", "engine", "options", "ir", "errors", "source"},
    "files": {"errors", "wording"},
    "__main__": {"cli"},
    "schema_text": {"engine", "files", "schema", "errors"},
    "show": {"visible"},
    "datasets": set(),
    "magic": {"api", "call", "errors", "lang", "sqltext"},
    "editor": {"api", "programs", "sqltext", "errors", "schema", "source", "visible"},
    "cli": {
        "cache",
        "editor",
        "api",
        "programs",
        "options",
        "files",
        "plot",
        "schema_text",
        "show",
        "spark",
        "ir",
        "errors",
        "visible",
        "analysis",
        "engine",
        "watching",
        "wording",
    },
}
# A third-party package, and the rooms that are its home.
HOMES = {
    "lark": {"lang"},
    "numba": {"engine"},
    "pyspark": {"spark"},
    "typer": {"cli"},
    "rich": {"cli", "show", "watching"},
    "IPython": {"magic"},
    "pygls": {"editor"},
    "lsprotocol": {"editor"},
    "matplotlib": {"plot"},
    "duckdb": {"local_sql"},
    "sqlglot": {"local_sql", "sqltext"},
    # of ir only regular expressions, since RE2 comes with Arrow
    "pyarrow": {
        "ir",
        "local_sql",
        "engine",
        "api",
        "explain",
        "long",
        "why",
        "found",
        "markup",
        "plot",
        "scanning",
        "spark",
        "files",
        "datasets",
        "schema_text",
        "cli",
    },
}


def imports_of(path: Path) -> list[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
            if node.module == "kleene":
                found += [(node.lineno, f"kleene.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
    return found


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    room = room_of(path)
    assert room in ARROWS, f"{room} is a new room: say in ARROWS what it may import"
    for line, module in imports_of(path):
        top, *inner = module.split(".")
        if top == "kleene" and inner and inner[0] in ARROWS:
            assert inner[0] in ARROWS[room] | {room}, f"{path}:{line}: {room} → {inner[0]} is not an arrow"
        elif top in HOMES:
            assert room in HOMES[top], f"{path}:{line}: {top} is at home in {HOMES[top]}, not in {room}"


def test_import_kleene_is_light() -> None:
    heavy = "numba pyspark matplotlib pandas typer duckdb sqlglot pygls IPython"
    code = f"""
import sys, kleene
print("pyarrow" in sys.modules)
for name in kleene.__all__:
    getattr(kleene, name)
print([name for name in '{heavy}'.split() if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "[]"]


def test_public_names_are_sorted_and_exist() -> None:
    import kleene

    assert kleene.__all__ == sorted(kleene.__all__)
    assert all(hasattr(kleene, name) for name in kleene.__all__)
    assert set(kleene.__all__) <= set(dir(kleene))
    with pytest.raises(AttributeError, match="module 'kleene' has no attribute 'sasee'"):
        kleene.sasee  # noqa: B018


def test_no_module_is_called_like_a_public_name() -> None:
    """Whoever imported such a module first would find it in place of what is public."""
    import kleene

    modules = {path.stem for path in PACKAGE.iterdir()}
    assert not modules & set(kleene.__all__)


def test_missing_spark_is_reported_with_its_install_line() -> None:
    code = """
import sys
sys.modules["pyspark"] = None
import kleene
DataFrame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})
try:
    kleene.sase("EVENT A a").match(DataFrame(), order_by="t")
except kleene.UnsupportedError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == [
        "matching on Spark needs the package 'pyspark'",
        "Install it: pip install 'pyspark[sql]>=4,<5'",
    ]
