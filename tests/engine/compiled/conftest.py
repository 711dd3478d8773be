from __future__ import annotations

import pytest

from code_folders import forget
from kleene import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder, and no memory of what was loaded before."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KLEENE_CACHE_DIR", str(folder))
    monkeypatch.setattr(cache, "_complained", set())
    forget(monkeypatch)
    cache._fresh_folder.cache_clear()
    yield folder
    cache._fresh_folder.cache_clear()
