"""A scan of files that are cut at random gives the rows of the whole table, in order, whichever way it goes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kleene
from agreement import query_of, sase_examples
from case_files import Case, load_all
from kleene.scanning import reaching
from regex_strategies import random_regex_case
from row_cases import RowCase, load_rows, params_of, regex_of
from row_strategies import random_row_case
from scanned import WAYS, go, outcome, written

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def check(
    query: kleene.Query,
    table: pa.Table,
    folder: Path,
    seed: str,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> None:
    chance = random.Random(seed)
    try:
        path, table = written(table, folder, chance)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as reason:
        pytest.skip(f"no file holds it: {reason}")
    options.setdefault("engine", kleene.EngineOptions("generated", threads=chance.choice([1, 2, 3])))
    expected = outcome(query, table, **options)
    if expected.startswith("UnsupportedError"):
        pytest.skip(expected)
    scan = kleene.scan(path)
    way = chance.choice(WAYS)
    with monkeypatch.context() as patched:
        go(way, patched, rows_at_once=chance.choice([1, 3, 10]))
        assert outcome(query, scan, **options) == expected, way


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.is_program or isinstance(case.inputs, dict):
        pytest.skip("several inputs, or several queries")
    check(kleene.sase(case.query), case.inputs, tmp_path, case.name, monkeypatch, **case.options)


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case(case: RowCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = kleene.match_recognize(case.item["clause"])
    check(query, case.table, tmp_path, case.name, monkeypatch, **params_of(case))


@pytest.mark.parametrize("case", load_rows("regex"), ids=lambda case: case.name)
def test_regex_case(case: RowCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(regex_of(case), case.table, tmp_path, case.name, monkeypatch, **params_of(case))


@pytest.mark.parametrize("language", ["sase", "row pattern", "regex"])
def test_generated_queries(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 60
    chance = random.Random(language)
    examples = {
        "sase": lambda: sase_examples(count, 5),
        "row pattern": lambda: [random_row_case(chance) for _ in range(count)],
        "regex": lambda: [random_regex_case(chance) for _ in range(count)],
    }[language]()
    for number, (said, table) in enumerate(examples):
        try:
            query, options = query_of(language, said)
        except kleene.KleeneError:
            continue
        order = list(range(table.num_rows))
        if chance.random() < 0.5:
            chance.shuffle(order)
        try:
            check(
                query,
                table.take(pa.array(order, pa.int64())),
                tmp_path / str(number),
                f"{language} {number}",
                monkeypatch,
                **options,
            )
        except pytest.skip.Exception:
            continue


def _query_with_window(chance: random.Random) -> str:
    """A SASE query whose matches depend on a window in time alone."""
    parts, names = list[str](), "abcd"[: chance.randint(2, 4)]
    for number, name in enumerate(names):
        kind = chance.choice(["A", "B", "C", "ANY(A, B)"])
        if number and chance.random() < 0.3 and "ANY" not in kind:
            parts.append(f"!({chance.choice('ABC')} n{number})")
        parts.append(f"{kind}+ {name}[]" if chance.random() < 0.3 and "ANY" not in kind else f"{kind} {name}")
    if chance.random() < 0.2:
        parts.insert(0, "!(C m)")
    strategy = chance.choice(["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
    listed = ", ".join(f"{name}[]" if f"+ {name}[]" in " ".join(parts) else name for name in names)
    key = "[id]" if strategy == "partition_contiguity" or chance.random() < 0.7 else "[]"
    where = f"WHERE {strategy}({listed}) {{ {'' if key == '[]' else key} }}"
    return f"PATTERN SEQ({', '.join(parts)}) {where} WITHIN {chance.randint(2, 12)}"


@pytest.mark.parametrize("seed", range(6))
def test_pieces_that_reach_back(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, cut_into = random.Random(seed), list[int]()
    plain = reaching.ReachingMatcher.tables

    def counted(matcher: reaching.ReachingMatcher, pieces: Any) -> Any:
        tables = list(plain(matcher, pieces))
        cut_into.append(len(tables))
        return iter(tables)

    monkeypatch.setattr(reaching.ReachingMatcher, "tables", counted)
    monkeypatch.setattr(f"{__name__}.WAYS", ("reaching back",))
    for number in range(25):
        rows = chance.randint(5, 40)
        table = pa.table(
            {
                "type": chance.choices("ABC", k=rows),
                "t": sorted(chance.randint(0, 60) for _ in range(rows)),
                "id": pa.array(chance.choices([1, 2, 3, None], [4, 4, 4, 1], k=rows), pa.int64()),
            }
        )
        query = kleene.sase(_query_with_window(chance))
        check(query, table, tmp_path / str(number), f"{seed} {number}", monkeypatch, order_by="t")
    assert sum(count > 1 for count in cut_into) > 10
