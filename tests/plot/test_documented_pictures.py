"""The pictures that the docs show are those that are drawn: the same marks, and the same words."""

from __future__ import annotations

import pytest

from documented_pictures import FOLDER, pictures
from pictured import groups, marks, texts


@pytest.mark.slow
def test_pictures_of_the_docs_are_those_that_are_drawn() -> None:
    drawn = pictures()
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(drawn)
    for name, picture in drawn.items():
        shown = (FOLDER / name).read_text(encoding="utf-8").partition("\n")[2]
        assert sorted(texts(shown)) == sorted(texts(picture.svg())), name
        named = {kind for kind in groups(shown) if kind.rstrip("0123456789_") == kind}
        for kind in named:
            assert groups(shown)[kind] == groups(picture.svg())[kind], (name, kind)
            assert marks(shown, kind) == marks(picture.svg(), kind), (name, kind)
