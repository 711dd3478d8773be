"""Types and keys that come as dictionaries stay codes of their words, and give the rows that texts give."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kleene
from kleene.engine import layouts, share_keys, threads, unencoded
from kleene.engine.unencoded import coded_texts
from kleene.scanning import ways

QUERIES = {
    "sequence": kleene.sase("EVENT SEQ(A a, !(B b), C c) WHERE [k] AND a.v < c.v WITHIN 60 RETURN a.k AS k, c.t AS t"),
    "whole events": kleene.sase("EVENT SEQ(A a, C c) WHERE [k] WITHIN 20"),
    "runs": kleene.sase(
        """PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match(a[], c) { [k] AND a[i].v > a[i-1].v } WITHIN 90
           RETURN c.t AS t, collect(a[].t) AS ts, c.k AS k, c.type AS kind"""
    ),
    "without a key": kleene.sase("EVENT SEQ(A a, C c) WHERE a.k = c.k WITHIN 9 RETURN a.t AS a, c.type AS c"),
    "rows": kleene.match_recognize(
        """PARTITION BY k ORDER BY t MEASURES LAST(type) AS kind, COUNT(*) AS n
           PATTERN (A B+) DEFINE B AS B.v < PREV(B.v) OR B.k = 'key 2'"""
    ),
    "all rows": kleene.match_recognize(
        """PARTITION BY k, type ORDER BY t MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH
           PATTERN (A B) DEFINE B AS B.v < A.v"""
    ),
}


def some_events(seed: int = 1, rows: int = 400) -> pa.Table:
    chance = Random(seed)
    return pa.table(
        {
            "k": [f"key {chance.randrange(9)}" for _ in range(rows)],
            "t": range(seed * rows, (seed + 1) * rows),
            "v": [chance.randrange(9) for _ in range(rows)],
            "type": chance.choices(["A", "B", "C", "other"], k=rows),
        }
    )


def as_codes(column: pa.ChunkedArray, words: list[str | None], indices: pa.DataType) -> pa.DictionaryArray:
    codes = [None if value is None else words.index(value) for value in column.to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(codes, indices), pa.array(words))


def some_held(how: str, table: pa.Table) -> pa.Table:
    for name in ("k", "type"):
        column = table.column(name)
        words: list[str | None] = [*sorted(set(column.to_pylist())), "unused"]
        if how == "words twice":
            coded = as_codes(column, [*words, *words], pa.int32())
            odd = [code + len(words) * (row % 2) for row, code in enumerate(coded.indices.to_pylist())]
            held: object = pa.DictionaryArray.from_arrays(pa.array(odd, pa.int32()), coded.dictionary)
        elif how == "NULLs":
            values = [None if row % 7 == 0 else value for row, value in enumerate(column.to_pylist())]
            held = as_codes(pa.chunked_array([values]), words, pa.int8())
        elif how == "NULL words":
            values = [None if row % 7 == 0 else value for row, value in enumerate(column.to_pylist())]
            codes = [len(words) if value is None else words.index(value) for value in values]
            held = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([*words, None]))
        else:
            first = as_codes(column.slice(0, 150), words, pa.uint16())
            held = pa.chunked_array([first, as_codes(column.slice(150), words[::-1], pa.uint16())])
        table = table.set_column(table.schema.get_field_index(name), name, held)
    return table


@pytest.mark.parametrize("how", ["chunks of other words", "words twice", "NULLs", "NULL words"])
@pytest.mark.parametrize("name", QUERIES)
def test_codes_give_the_rows_of_their_texts(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, table = QUERIES[name], some_held(how, some_events())
    order = None if "ORDER BY" in repr(query) else "t"
    expected = query.match(table, order_by=order, engine="reference")
    assert expected.num_rows
    for least in (1, 10_000):
        monkeypatch.setattr(threads, "LEAST_ROWS", least)
        for count in (1, 2):
            found = query.match(table, order_by=order, engine=kleene.EngineOptions("generated", threads=count))
            assert found.schema == expected.schema
            assert found.to_pylist() == expected.to_pylist()


def test_codes_come_to_the_cut_as_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_ROWS", 1)
    seen = []
    cut = layouts.cut_by_key
    monkeypatch.setattr(layouts, "cut_by_key", lambda plan, table, *rest: seen.append(table) or cut(plan, table, *rest))
    monkeypatch.setattr(share_keys, "_named_texts_plainly", None)
    table = some_held("chunks of other words", some_events())
    QUERIES["sequence"].match(table, order_by="t", engine="generated")
    [came] = seen
    assert came.schema.field("type").type == came.schema.field("k").type == unencoded.CODES


def test_a_type_that_is_a_word_but_does_not_occur_is_told() -> None:
    types = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50, pa.int8()), pa.array(["Shelf", "Exits", "Exit"]))
    query = kleene.sase("EVENT SEQ(Shelf a, Exit b)")
    with pytest.warns(UserWarning, match="no event is of type 'Exit'"):
        query.match(pa.table({"type": types, "t": range(100)}), order_by="t", engine="generated")


def test_codes_outside_the_words_are_an_error() -> None:
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int32()), pa.array(["a"]), safe=False)
    with pytest.raises(pa.ArrowInvalid):
        coded_texts(pa.chunked_array([wrong]))
    events = pa.table({"type": wrong, "t": [1, 2]})
    with pytest.raises(kleene.SchemaError, match="cannot be read"):
        kleene.sase("EVENT SEQ(a x, b y)").match(events, order_by="t")


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("name", QUERIES)
def test_scans_of_words_give_the_rows_of_one_table(
    name: str, few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "ROWS_AT_ONCE", 500)
    monkeypatch.setattr("kleene.scanning.blocks.BYTES_OF_A_NUMBER", 100)  # small files have large headers
    monkeypatch.setattr(unencoded, "MOST_WORDS", 100 if few else 6)
    tables = [some_events(seed) for seed in range(4)]
    tables[2] = tables[2].set_column(3, "type", pa.array([None, *tables[2].column("type").to_pylist()[1:]]))
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=150)
    query = QUERIES[name]
    order = None if "ORDER BY" in repr(query) else "t"
    expected = query.match(pa.concat_tables(tables), order_by=order, engine="reference")
    assert expected.num_rows
    for count in (1, 2):
        options = kleene.EngineOptions("generated", threads=count)
        found = query.match(kleene.scan(tmp_path), order_by=order, engine=options)
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()
