"""The loops that the benchmark on Spark compares Kleene with find the same matches."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import spark_data
from hand_written import HAND_WRITTEN
from quick import first_is_quick
from spark_queries import ONE_STREAM, ONE_STREAM_ALL, SELECTIVE, SUBJECTS, Subject

EVENTS = 3_000
KEYS = 5
"""Few, so that a key has enough events for matches."""


def events_of(subject: Subject) -> pa.Table:
    """As the benchmark has them, with fewer keys, and so with the same time between two events of one."""
    keys = KEYS if subject.key else 1
    table = pa.concat_tables(spark_data.GENERATORS[subject.table](EVENTS, **({"keys": keys} if subject.key else {})))
    times = table.column("ts").to_numpy()
    slower = times[0] + (times - times[0]) * (spark_data.KEYS // keys)
    place = table.column_names.index("ts")
    return table.set_column(place, "ts", pa.array(slower, pa.timestamp("us"))).select(subject.columns)


def rows(frame: pd.DataFrame) -> list[tuple]:
    return sorted(frame.itertuples(index=False, name=None))


@pytest.mark.parametrize("name", first_is_quick(HAND_WRITTEN))
def test_hand_written_loop_finds_what_kleene_finds(name: str) -> None:
    subject = SUBJECTS[name.removesuffix("_tried")]
    events = events_of(subject)
    expected = subject.query.match(events, **subject.options, engine="reference").to_pandas()
    groups = events.to_pandas().groupby(subject.grouped_by)
    found = pd.concat([HAND_WRITTEN[name](group) for _, group in groups])
    assert list(found.columns) == list(expected.columns)
    assert rows(found) == rows(expected)
    assert len(expected) > 5


def test_every_query_has_a_loop() -> None:
    assert set(HAND_WRITTEN) == {*SUBJECTS, "head_and_shoulders_tried"}


@pytest.mark.parametrize("subject", [ONE_STREAM, ONE_STREAM_ALL, SELECTIVE], ids=lambda subject: subject.name)
def test_query_fits_its_events(subject: Subject) -> None:
    subject.query.match(events_of(subject).slice(0, 300), **subject.options, engine="reference")


def test_pieces_of_a_table_go_on_where_the_one_before_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_data, "PIECE", 4_000)
    first, second, third = spark_data.one_stream(2_500)
    assert [first.num_rows, second.num_rows, third.num_rows] == [1_000, 1_000, 500]
    before, after = first.column("price")[-1].as_py(), second.column("price")[0].as_py()
    assert abs(after - before) < 0.03 * before
    assert second.column("seq")[0].as_py() == 1_000
