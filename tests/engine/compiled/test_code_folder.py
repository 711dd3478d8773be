from __future__ import annotations

import os
import pickle
import sys
import tempfile
import time

import pytest

from code_folders import FIVE, SIGNATURES, SUM, forget, was_compiled
from kleene import cache
from kleene.engine.compiled import jit
from kleene.errors import KleeneWarning

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.skipif(sys.platform == "win32", reason="folders there belong to users in another way"),
]


# ---- where it is


def test_named_folder_is_made_for_the_user_alone(folder):
    assert jit.cache_folder() == folder
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(sys.platform == "darwin", reason="other platforms have other places")
def test_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("KLEENE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jit.cache_folder() == tmp_path / "xdg" / "kleene"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert jit.cache_folder() == tmp_path / "home" / ".cache" / "kleene"


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A place for temporary files, where they are needed because the named folder is a file."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    (tmp_path / "file").touch()
    monkeypatch.setenv("KLEENE_CACHE_DIR", str(tmp_path / "file"))
    return place


def test_folder_that_cannot_be_made_is_replaced_by_a_private_one(temporary):
    with pytest.warns(KleeneWarning, match="KLEENE_CACHE_DIR is not used: .*file cannot be made"):
        folder = jit.cache_folder()
    assert folder.parent == temporary
    assert folder.stat().st_mode & 0o777 == 0o700
    assert jit.cache_folder() == folder, "and the sentence comes once"
    jit.load(SUM, SIGNATURES)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.filterwarnings("ignore:KLEENE_CACHE_DIR")
def test_nothing_can_be_written(temporary, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "missing" / "too"))
    monkeypatch.setattr(cache, "_problem_with", lambda folder: "is not there")
    assert jit.cache_folder() is None
    assert not jit.is_cached(SUM, SIGNATURES)
    assert jit.load(SUM, SIGNATURES)["total"](FIVE) == 5
    assert jit.is_cached(SUM, SIGNATURES), "in this process"


# ---- who may write there


def writable_for_all(folder):
    folder.chmod(0o777)
    return "open to other users"


def readable_for_all(folder):
    folder.chmod(0o755)
    return "open to other users"


def of_another_user(folder):
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 12345, 12345)
    return "belongs to another user"


def a_link(folder):
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")
    return "is a link"


def a_pipe(folder):
    folder.rmdir()
    os.mkfifo(folder)
    return "cannot be made"


def below_a_folder_of_all(folder):
    folder.parent.chmod(0o777)
    return "which other users can change"


CHANGES = [writable_for_all, readable_for_all, of_another_user, a_link, a_pipe, below_a_folder_of_all]


@pytest.mark.parametrize("change", CHANGES)
def test_named_folder_that_is_not_the_users_alone_is_refused_with_a_sentence(tmp_path, monkeypatch, change):
    named = tmp_path / "open" / "named"
    named.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("KLEENE_CACHE_DIR", str(named))
    assert jit.cache_folder() == named
    problem = change(named)
    with pytest.warns(KleeneWarning, match=rf"KLEENE_CACHE_DIR is not used: .*{problem}.*chmod 700"):
        used = jit.cache_folder()
    assert used != named
    assert not used.is_relative_to(tmp_path / "open")


@pytest.mark.parametrize("change", CHANGES[:4])
@pytest.mark.filterwarnings("ignore:KLEENE_CACHE_DIR")
def test_temporary_folder_that_is_not_the_users_alone_is_not_trusted(temporary, change):
    suspect = jit.cache_folder()
    change(suspect)
    folder = jit.cache_folder()
    assert folder.parent == temporary
    assert folder.name not in (suspect.name, "elsewhere")
    assert jit.cache_folder() == folder


def linked(stored):
    stored.rename(stored.with_name("elsewhere"))
    stored.symlink_to("elsewhere")


def piped(stored):
    stored.unlink()
    os.mkfifo(stored)


def given_away(stored):
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(stored, 12345, 12345)


def opened(stored):
    stored.chmod(0o666)


@pytest.mark.parametrize("change", [linked, piped, given_away, opened])
def test_file_that_may_be_of_another_user_is_compiled_anew(folder, monkeypatch, change):
    jit.load(SUM, SIGNATURES)
    (stored,) = folder.glob("*.bin")
    change(stored)
    forget(monkeypatch)
    kernel = jit.load(SUM, SIGNATURES)["total"]
    assert was_compiled(kernel)
    assert kernel(FIVE) == 5


class Planted:
    def __reduce__(self):
        return os.mkdir, (os.environ["KLEENE_CACHE_DIR"] + "/executed",)


def test_no_pickle_is_loaded(folder, monkeypatch):
    jit.load(SUM, SIGNATURES)
    (stored,) = folder.glob("*.bin")
    stored.write_bytes(cache.sealed(pickle.dumps(Planted())))
    forget(monkeypatch)
    assert was_compiled(jit.load(SUM, SIGNATURES)["total"])
    assert not (folder / "executed").exists()


# ---- its size


def file_of(folder, name, size, age):
    path = folder / name
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_folder_above_its_limit_loses_what_was_of_use_least_recently(folder, monkeypatch):
    monkeypatch.setenv("KLEENE_CACHE_LIMIT", "1")
    jit.cache_folder()
    old, older = file_of(folder, "old.f.bin", 300_000, 100), file_of(folder, "older.f.bin", 300_000, 300)
    file_of(folder, "old.py", 10, 400)
    file_of(folder, "older.py", 10, 200)
    new, foreign = file_of(folder, "new.f.bin", 450_000, 10), file_of(folder, "notes.txt", 10, 10**9)
    cache.evict(folder)
    assert {path.name for path in folder.iterdir()} == {"old.f.bin", "old.py", "new.f.bin", "notes.txt"}
    assert (older.exists(), old.exists(), new.exists(), foreign.exists()) == (False, True, True, True)


def test_drafts_of_long_ago_are_removed(folder):
    jit.cache_folder()
    file_of(folder, "a.f.bin.1.tmp", 10, 2 * cache.DAY)
    young = file_of(folder, "a.f.bin.2.tmp", 10, 60)
    cache.evict(folder)
    assert list(folder.iterdir()) == [young]


def test_writing_looks_at_the_size_now_and_then(folder, monkeypatch):
    looks = []
    monkeypatch.setattr(cache, "evict", looks.append)
    jit.cache_folder()
    for number in range(cache._WRITES_BETWEEN_LOOKS + 1):
        cache.write(folder / f"{number}.f.bin", b"")
    assert looks == [folder, folder]


def test_loading_marks_a_file_as_used(folder, monkeypatch):
    jit.load(SUM, SIGNATURES)
    (stored,) = folder.glob("*.bin")
    os.utime(stored, (0, 0))
    forget(monkeypatch)
    assert not was_compiled(jit.load(SUM, SIGNATURES)["total"])
    assert time.time() - stored.stat().st_mtime < cache.DAY


def test_files_that_vanish_while_they_are_looked_at(folder, monkeypatch):
    monkeypatch.setenv("KLEENE_CACHE_LIMIT", "0")
    jit.cache_folder()
    file_of(folder, "a.f.bin", 10, 10)
    monkeypatch.setattr(os, "unlink", lambda path: (_ for _ in ()).throw(FileNotFoundError(path)))
    cache.evict(folder)
    cache.evict(folder / "missing")


def test_limit_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setenv("KLEENE_CACHE_LIMIT", "large")
    with pytest.warns(KleeneWarning, match="KLEENE_CACHE_LIMIT is 'large', which is not a whole number, so 512"):
        assert cache.size_limit() == 512_000_000
