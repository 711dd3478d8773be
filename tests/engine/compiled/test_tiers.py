"""Tiers change by themselves: which one runs, what takes over, and that nothing shows in the answer."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import time

import pyarrow as pa
import pytest

import kleene
from agreement import EXAMPLES, disagreement, sase_examples
from flat_options import call_of
from kleene.api import prepare
from kleene.cache import cache_folder, stored_at
from kleene.engine.choice import compiled_engine
from kleene.engine.code_of_plan import code_of
from kleene.engine.compiled import background, background_process, jit, programs
from kleene.engine.compiled.tables.generic import kernel_of, needed_for
from kleene.engine.compiled.tiers import table_kernels
from kleene.spark.shipping import ShippedCode

pytestmark = [pytest.mark.filterwarnings("ignore::kleene.KleeneWarning"), pytest.mark.slow]
EVENTS = pa.table({"t": range(8), "x": [3, 1, 2, 0, 5, 4, 9, 7]})
FALLS = kleene.match_recognize("ORDER BY t MEASURES A.t AS a, count(*) AS n PATTERN (A B+) DEFINE B AS x < PREV(x)")


@pytest.mark.parametrize("language", ["sase", "row pattern", "regex"])
def test_a_tier_goes_on_where_another_stopped(language, monkeypatch) -> None:
    """Each piece of a stream is matched by tables or by the plain code, as chance will have it."""
    chance = random.Random(7)

    def either(self, nullable, budget=None):
        made = self.generated(nullable)
        by_tables = table_kernels(made.source, made.signatures, made.layout, *made.counts)
        if by_tables is None or chance.random() < 0.5:
            return programs.Kernel(made, jit.load(made.source, made.signatures, False), self.jit)
        return programs.Kernel(made, by_tables, self.jit, is_by_tables=True)

    monkeypatch.setattr(programs.Compiled, "kernel", either)
    if language == "sase":
        examples = sase_examples(20, seed=11)
    else:
        examples = [EXAMPLES[language](random.Random(500 + seed)) for seed in range(25)]
    for query, table in examples:
        assert disagreement(language, query, table, chance, "tables") is None, query


@pytest.fixture
def engine(monkeypatch):
    """The engine of a query that no machine code was made for, on a machine that has the loops of all queries."""
    monkeypatch.setenv(background.SWITCH, "1")
    plan = prepare(call_of(FALLS.definition), EVENTS)[1]
    made = compiled_engine(plan, True)
    generated = made.generated(frozenset())
    for name in needed_for(generated.signatures):
        kernel_of(name)
    folder = cache_folder()
    assert folder is not None
    for name in generated.signatures:
        stored_at(folder, jit.key_of(generated.source, generated.signatures), name).unlink(missing_ok=True)
    jit._loaded.pop(jit.key_of(generated.source, generated.signatures), None)
    return made


def test_machine_code_takes_over_once_it_is_made(engine) -> None:
    assert "until machine code" in engine.tier_text(frozenset())
    assert engine.kernel(frozenset()).is_by_tables
    generated = engine.generated(frozenset())
    for _ in range(600):
        if background.is_ready(generated.source, generated.signatures):
            break
        time.sleep(0.1)
    assert not engine.kernel(frozenset()).is_by_tables
    assert "which is at hand" in engine.tier_text(frozenset())


def test_tasks_take_the_code_that_comes_with_them(monkeypatch) -> None:
    plan = prepare(call_of(FALLS.definition), EVENTS)[1]
    engine = compiled_engine(plan, True)
    engine.kernel(frozenset())  # machine code, on disk from now on
    received: dict[tuple[str, str], bytes] = {}
    monkeypatch.setattr(jit, "_received", received)
    monkeypatch.setattr(background, "_asks", True)
    sent = pickle.dumps(ShippedCode(plan))
    pickle.loads(sent)
    generated = engine.generated(frozenset())
    key = jit.key_of(generated.source, generated.signatures)
    assert {(key, name) for name in generated.signatures} <= set(received)
    assert received == code_of(plan)
    assert not background._asks  # a task has nothing made


def test_an_executor_that_has_nothing_compiles_nothing(tmp_path) -> None:
    chance = random.Random(3)
    table = pa.table({"t": range(20_000), "x": [chance.random() for _ in range(20_000)]})
    expected = FALLS.match(table, engine="tables")  # makes the loops, as `kleene warm` does
    plan = prepare(call_of(FALLS.definition), table)[1]
    (tmp_path / "sent").write_bytes(pickle.dumps(ShippedCode(plan)))
    with pa.OSFile(str(tmp_path / "table"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    code = f"""
import pickle, sys
import pyarrow as pa
import kleene
pickle.loads(open("sent", "rb").read())
query = kleene.match_recognize({FALLS.definition.source.text!r})
found = query.match(pa.ipc.open_file("table").read_all())
print(found.num_rows, "numba" in sys.modules)
"""
    environment = {**os.environ, background.SWITCH: "1", "KLEENE_CACHE_DIR": str(tmp_path / "empty")}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert told.stderr == ""
    assert told.stdout.split() == [str(expected.num_rows), "False"]
    assert not [path.name for path in (tmp_path / "empty").glob("*.bin") if "parser" not in path.name]


SAME_SHAPE = {
    "numbers, windows and names of types": (
        kleene.sase("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x + 5 AND a.x < 5 WITHIN 10"),
        kleene.sase("PATTERN SEQ(C c, D d) WHERE [k] AND d.x > c.x + 5000 AND c.x < 7 WITHIN 5000"),
    ),
    "numbers of events": (
        kleene.sase("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { [k] } WITHIN 10 events"),
        kleene.sase("PATTERN SEQ(C c, D+ d[]) WHERE skip_till_next_match(c, d[]) { [k] } WITHIN 20 events"),
    ),
    "lengths": (
        kleene.match_recognize("ORDER BY t MEASURES count(*) AS n PATTERN (A B+) MAXLENGTH 5 DEFINE B AS x > 2"),
        kleene.match_recognize("ORDER BY t MEASURES count(*) AS n PATTERN (A B+) MAXLENGTH 50 DEFINE B AS x > 3"),
    ),
    "parameters": (
        kleene.sase("PATTERN SEQ(A a, B b) WHERE a.x < 5 AND b.x = 8 WITHIN 3"),
        kleene.sase("PATTERN SEQ(A a, B b) WHERE a.x < 6 AND b.x = 8 WITHIN 4"),
    ),
}


@pytest.mark.parametrize("difference", SAME_SHAPE)
def test_queries_that_differ_in_values_share_code(difference) -> None:
    events = pa.table({"type": ["A", "B", "C", "D"], "t": range(4), "k": [1] * 4, "x": [1, 9, 1, 9]})
    plans = [
        prepare(call_of(query.definition, order_by=None if "ORDER BY" in repr(query) else "t"), events)[1]
        for query in SAME_SHAPE[difference]
    ]
    one, other = (compiled_engine(plan, True).generated(frozenset()).source for plan in plans)
    assert one == other


@pytest.mark.parametrize(("age", "is_made"), [(0.0, False), (background_process.LONGEST + 1, True)])
def test_what_another_process_is_making_is_left_to_it(age, is_made, monkeypatch) -> None:
    source, signatures = f"def f(a):\n    return a + {int(age)}\n", {"f": "int64(int64)"}
    made = []
    monkeypatch.setattr(jit, "load", lambda *told: made.append(told))
    note = cache_folder() / f"{jit.key_of(source, signatures)}.making"
    note.touch()
    begun = time.time() - age
    os.utime(note, (begun, begun))
    background_process.make(source, signatures)
    assert bool(made) == is_made
    assert note.exists() != is_made, "whoever made it removes the note"
    note.unlink(missing_ok=True)
