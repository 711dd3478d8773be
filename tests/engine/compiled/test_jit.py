from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import textwrap
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from code_folders import FIVE, SIGNATURES, SUM, forget, was_compiled
from kleene import cache
from kleene.engine.compiled import jit

pytestmark = pytest.mark.usefixtures("folder")


def process(code, *folders):
    """A Python process that runs the code, with the folders on its path and warnings as errors."""
    path = os.pathsep.join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    return subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def printed(started):
    output, errors = started.communicate(timeout=60)
    assert started.returncode == 0, errors
    assert errors == ""
    return output.strip()


# ---- machine code and plain Python


def test_compiled_and_plain_agree():
    source = """
import math
import numpy as np

def square(value):
    return value * value

def largest(values):
    found = -math.inf
    for value in values:
        found = max(found, square(value))
    return found

def fill(values, out):
    copy = np.empty(len(values), np.float64)
    for i in range(len(values)):
        copy[i] = values[i]
    out[0] = largest(copy)
    return len(copy)
"""
    signatures = {"largest": "float64(float64[::1])", "fill": "int64(float64[::1], float64[::1])"}
    values = np.array([1.0, -3.0, 2.0])
    for compiled in (True, False):
        kernels = jit.load(source, signatures, compiled)
        assert list(kernels) == ["largest", "fill"]
        out = np.zeros(1)
        assert kernels["fill"](values, out) == 3
        assert out[0] == kernels["largest"](values) == 9.0


def test_division_by_zero_follows_the_columns():
    kernel = jit.load("def half(a, b):\n    return a / b\n", {"half": "float64(float64, float64)"})["half"]
    assert kernel(1.0, 0.0) == np.inf


def test_arguments_of_other_types_are_refused():
    kernel = jit.load(SUM, SIGNATURES)["total"]
    read_only = np.array([1])
    read_only.flags.writeable = False
    refused = {
        "of float64 with 1 dimensions": (np.array([1.5]),),
        "of int64 with 2 dimensions": (np.array([[1]]),),
        "contiguous and writable": (np.arange(4)[::2],),
        r"\(not writable\)": (read_only,),
        "not list": ([1],),
        "1 arguments are wanted, not 2": (FIVE, FIVE),
    }
    for told, arguments in refused.items():
        with pytest.raises(TypeError, match=told):
            kernel(*arguments)


def test_arguments_of_every_kind_arrive():
    """More of them than a call in C takes, and tuples within tuples."""
    count = 200
    source = f"""
def told(whole, number, some):
    first, (table, cube), {", ".join(f"a{n}" for n in range(count))} = some
    return whole + number * 2 + table[1, 0] + cube[1, 1, 1] + a0[0] + a{count - 1}[-1] + len(first)
"""
    vectors = ["int32[::1]"] * count
    some = f"Tuple((uint8[::1], Tuple((int64[:,::1], float64[:,:,::1])), {', '.join(vectors)}))"
    kernel = jit.load(source, {"told": f"float64(int64, float64, {some})"})["told"]
    table, cube = np.array([[1, 2], [3, 4]]), np.arange(8.0).reshape(2, 2, 2)
    arrays = [np.array([n, n + 1], np.int32) for n in range(count)]
    given = (np.empty(0, np.uint8), (table, cube), *arrays)
    assert kernel(np.int64(-5), -0.25, given) == -5 - 0.5 + 3 + 7 + 0 + count + 0


def test_same_source_gives_same_functions():
    for compiled in (True, False):
        assert jit.load(SUM, SIGNATURES, compiled) is jit.load(SUM, SIGNATURES, compiled)
    assert jit.load(SUM, SIGNATURES) is not jit.load(SUM, SIGNATURES, compiled=False)


def test_threads_share_what_one_of_them_compiles():
    sources = [SUM, SUM.replace("result = 0", "result = 1")] * 4
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda source: jit.load(source, SIGNATURES), sources))
    assert [kernels["total"](FIVE) for kernels in loaded] == [5, 6] * 4
    assert len({id(kernels) for kernels in loaded}) == 2


def test_traceback_of_plain_mode_shows_the_line():
    kernel = jit.load("def first(values):\n    return values[0]  # here\n", {"first": ""}, compiled=False)["first"]
    try:
        kernel([])
    except IndexError:
        assert "return values[0]  # here" in traceback.format_exc()


def test_numba_switched_off_means_plain(monkeypatch):
    import numba

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert jit.load(SUM, SIGNATURES)["total"]([2, 3]) == 5


@pytest.mark.slow
def test_plain_mode_and_asking_for_the_cache_leave_numba_alone(tmp_path):
    write_helpers(tmp_path, factor=3)
    code = """
        import sys
        from kleene.engine.compiled import jit
        source = "from some_helpers import scaled\\ndef f(a):\\n    return scaled(a)\\n"
        print(jit.load(source, {"f": "int64(int64)"}, compiled=False)["f"](2), end=" ")
        print(jit.is_cached(source, {"f": "int64(int64)"}), "numba" in sys.modules)
    """
    assert printed(process(code, tmp_path)) == "6 False False"


# ---- helpers


def write_helpers(folder, factor):
    (folder / "some_constants.py").write_text(f"FACTOR = {factor}\n")
    (folder / "some_helpers.py").write_text(
        textwrap.dedent("""
            from some_constants import FACTOR
            from kleene.engine.compiled.jit import helper

            @helper
            def checked(value):
                if value < 0:
                    raise OverflowError("too small")
                return value

            @helper
            def scaled(value):
                return checked(value) * FACTOR
        """)
    )


USES_HELPERS = """
from kleene.engine.compiled import jit
source = '''
from some_helpers import scaled

def one(a):
    return scaled(a) + 1

def both(a, b):
    return one(a) + one(b)
'''
kernels = jit.load(source, {"one": "int64(int64)", "both": "int64(int64, int64)"})
hits = [int(kernels[name].was_stored) for name in ("one", "both")]
try:
    kernels["both"](1, -1)
except OverflowError as error:
    print(kernels["both"](1, 2), hits, error)
"""


@pytest.mark.slow
def test_second_process_loads_without_compiling_until_a_helper_changes(tmp_path, folder):
    write_helpers(tmp_path, factor=3)
    assert printed(process(USES_HELPERS, tmp_path)) == "11 [0, 0] too small"
    assert printed(process(USES_HELPERS, tmp_path)) == "11 [1, 1] too small"
    no_numba = USES_HELPERS + "import sys\nprint('numba' in sys.modules)"
    assert printed(process(no_numba, tmp_path)) == "11 [1, 1] too small\nFalse"
    # Not the text of a helper, nor of its module, but of what that imports.
    write_helpers(tmp_path, factor=30)
    assert printed(process(USES_HELPERS, tmp_path)) == "92 [0, 0] too small"
    assert [path.suffix for path in sorted(folder.iterdir())] == [".bin", ".bin", ".py"] * 2


@pytest.mark.slow
def test_helper_without_text_is_never_taken_for_another(tmp_path):
    code = """
        import types, sys
        from kleene.engine.compiled import jit
        module = sys.modules["typed_at_a_prompt"] = types.ModuleType("typed_at_a_prompt")
        exec("def twice(a):\\n    return a * 2\\n", vars(module))
        jit.helper(module.twice)
        source = "from typed_at_a_prompt import twice\\ndef f(a):\\n    return twice(a)\\n"
        kernel = jit.load(source, {"f": "int64(int64)"})["f"]
        print(kernel(2), int(kernel.was_stored))
    """
    for _ in range(2):
        assert printed(process(code)) == "4 0"


# ---- several processes


@pytest.mark.slow
def test_processes_compiling_the_same_source_at_once_do_not_disturb_each_other(folder):
    code = f"""
        import threading
        import numpy as np
        from kleene.engine.compiled import jit
        print(jit.load({SUM!r}, {SIGNATURES!r})["total"](np.array([2, 3])), threading.active_count())
    """
    assert [printed(started) for started in [process(code) for _ in range(4)]] == ["5 1"] * 4
    assert [path.suffix for path in sorted(folder.iterdir())] == [".py", ".bin"]


@pytest.mark.slow
def test_forked_process_loads():
    # As Spark's Python workers are: the daemon imports, its children work.
    code = f"""
        import os
        import numpy as np
        from kleene.engine.compiled import jit
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status))
        else:
            os._exit(jit.load({SUM!r}, {SIGNATURES!r})["total"](np.array([2, 3])))
    """
    assert printed(process(code)) == "5"


# ---- files


def test_cached_only_for_the_same_source_and_signatures(monkeypatch):
    assert not jit.is_cached(SUM, SIGNATURES)
    assert was_compiled(jit.load(SUM, SIGNATURES)["total"])
    assert jit.is_cached(SUM, SIGNATURES)
    forget(monkeypatch)
    assert jit.is_cached(SUM, SIGNATURES)
    assert not jit.is_cached(SUM + "\n", SIGNATURES)
    assert not jit.is_cached(SUM, {"total": "int64(int32[::1])"})
    assert not was_compiled(jit.load(SUM, SIGNATURES)["total"])
    assert was_compiled(jit.load(SUM, {"total": "float64(float64[::1])"})["total"])


def cut(data):
    return data[: len(data) // 2]


def one_bit_changed(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [cut, one_bit_changed, lambda data: b"", lambda data: b"other", None])
def test_damaged_machine_code_is_compiled_anew(damage, folder, monkeypatch):
    jit.load(SUM, SIGNATURES)
    (stored,) = folder.glob("*.bin")
    if damage:
        stored.write_bytes(damage(stored.read_bytes()))
    else:
        stored.unlink()
        stored.mkdir()
    for _ in range(2):
        forget(monkeypatch)
        kernel = jit.load(SUM, SIGNATURES)["total"]
        assert kernel(FIVE) == 5
    if damage:
        assert not was_compiled(kernel), "the second time, it is mended"


def test_sound_file_of_unknown_content_is_compiled_anew(folder, monkeypatch):
    jit.load(SUM, SIGNATURES)
    (stored,) = folder.glob("*.bin")
    stored.write_bytes(cache.sealed(b"no code"))
    forget(monkeypatch)
    assert jit.load(SUM, SIGNATURES)["total"](FIVE) == 5


def test_source_in_the_folder_is_mended_and_never_executed(folder, monkeypatch):
    jit.load(SUM, SIGNATURES)
    (written,) = folder.glob("*.py")
    assert written.read_text() == SUM
    before = written.stat()
    forget(monkeypatch)
    jit.load(SUM, SIGNATURES)
    assert (written.stat().st_mtime_ns, written.stat().st_ino) == (before.st_mtime_ns, before.st_ino)

    written.write_text("raise SystemExit\n")
    forget(monkeypatch)
    assert jit.load(SUM, SIGNATURES)["total"](FIVE) == 5
    assert written.read_text() == SUM


def test_full_disk_costs_only_the_cache(folder, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache, "_replace", full)
    assert jit.load(SUM, SIGNATURES)["total"](FIVE) == 5
    assert list(folder.iterdir()) == []


def test_folder_that_vanishes_costs_only_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path / "gone")
    assert not jit.is_cached(SUM, SIGNATURES)
    assert jit.load(SUM, SIGNATURES)["total"](FIVE) == 5


# ---- memory


def of_generated_code(kind):
    return [
        found
        for found in gc.get_objects()
        if type(found).__name__ == kind and "kleene_generated" in str(getattr(found, "fndesc", found))
    ]


def test_what_numba_made_on_the_way_is_freed():
    results = len(of_generated_code("CompileResult"))
    kernel = jit.load(SUM, SIGNATURES)["total"]
    gc.collect()
    assert len(of_generated_code("CompileResult")) == results
    assert kernel(FIVE) == 5


def test_code_that_was_not_used_for_long_is_dropped(monkeypatch):
    monkeypatch.setenv("KLEENE_CODE_LIMIT", "2")
    sources = [SUM.replace("result = 0", f"result = {number}") for number in range(4)]
    held = jit.load(sources[0], SIGNATURES)["total"]
    dropped = weakref.ref(jit.load(sources[1], SIGNATURES)["total"])
    for source in sources[2:]:
        jit.load(source, SIGNATURES)
    gc.collect()
    assert len(jit._loaded) == 2
    assert dropped() is None
    assert held(FIVE) == 5, "whoever holds a function keeps it"
    assert jit.load(sources[1], SIGNATURES)["total"](FIVE) == 6


def test_code_in_use_is_not_dropped_for_newer_code(monkeypatch):
    monkeypatch.setenv("KLEENE_CODE_LIMIT", "2")
    often = jit.load(SUM, SIGNATURES)
    for number in range(1, 4):
        jit.load(SUM.replace("result = 0", f"result = {number}"), SIGNATURES)
        assert jit.load(SUM, SIGNATURES) is often
