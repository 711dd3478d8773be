"""Which files of an output belong to which micro-batch, as Spark's file sink notes it."""

from __future__ import annotations

import json
from pathlib import Path

from kleene.spark.folder_stream import SinkLog


def note(folder: Path, name: str, *files: str) -> None:
    lines = [json.dumps({"path": f"file:///any%20where/{file}", "size": 1, "action": "add"}) for file in files]
    (folder / "_spark_metadata").mkdir(exist_ok=True)
    (folder / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))
    (folder / "_spark_metadata" / f".{name}.crc").touch()


def test_files_of_micro_batches(tmp_path: Path) -> None:
    log = SinkLog(tmp_path)
    note(tmp_path, "0", "a", "b")
    note(tmp_path, "1")
    note(tmp_path, "2.compact", "a", "b", "c%20c")
    note(tmp_path, "3", "d")
    assert [[path.name for path in log.files_of(batch)] for batch in range(5)] == [["a", "b"], [], ["c c"], ["d"], []]
    assert log.files_of(0)[0].parent == tmp_path


def test_who_goes_on_does_not_see_files_of_an_earlier_run(tmp_path: Path) -> None:
    note(tmp_path, "0", "a", "b")
    note(tmp_path, "2.compact", "a", "b", "c")
    note(tmp_path, "3", "d")
    log = SinkLog(tmp_path)
    note(tmp_path, "4", "e")
    note(tmp_path, "5.compact", "a", "b", "c", "d", "e", "f")
    assert [[path.name for path in log.files_of(batch)] for batch in (4, 5)] == [["e"], ["f"]]
