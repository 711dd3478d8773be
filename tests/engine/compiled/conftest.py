from __future__ import annotations

import pytest

from code_folders import forget
from kleene.engine.compiled import code_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder, and no memory of what was loaded before."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KLEENE_CACHE_DIR", str(folder))
    monkeypatch.setattr(code_folder, "_complained", set())
    forget(monkeypatch)
    code_folder._fresh_folder.cache_clear()
    yield folder
    code_folder._fresh_folder.cache_clear()
