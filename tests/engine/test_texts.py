"""Texts as arrays: what is no UTF-8 is found as Arrow finds it, and types are told by their bytes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from kleene.engine import share_keys
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.texts import TextArrays, check_texts

TEXTS = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgX", "Xbcdefgh", "ä", "日本語" * 4, "a\0", "a" * 40]


def stored(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


def what_is_wrong(check) -> str | None:
    try:
        check()
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def test_texts_are_checked_as_arrow_checks_them() -> None:
    chance, wrong = random.Random(3), 0
    for _ in range(300):
        values = [chance.choice(TEXTS).encode() for _ in range(chance.randrange(12))]
        if chance.random() < 0.5 and values:
            values[chance.randrange(len(values))] = chance.choice([b"\xff", b"abc\xc3", "ä".encode()[:1], b"\xa4"])
        chunk = stored(values)
        begin = chance.randrange(len(values) + 1)
        column = pa.chunked_array([chunk.slice(begin), chunk.slice(0, begin)])
        said = what_is_wrong(lambda column=column: column.validate(full=True))
        assert what_is_wrong(lambda column=column: check_texts(column)) == said
        wrong += said is not None
    assert wrong > 30


def test_texts_that_are_not_stored_as_texts_are_refused() -> None:
    offsets = pa.array([0, 3, 1, 4], pa.int32()).buffers()[1]
    column = pa.chunked_array([pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcd")])])
    assert what_is_wrong(lambda: check_texts(column)) == what_is_wrong(lambda: column.validate(full=True)) is not None


@pytest.mark.parametrize("has_nulls", [False, True])
def test_texts_are_told_by_their_words(has_nulls: bool) -> None:
    chance, loops = random.Random(4), shared_loops(True)
    for _ in range(100):
        values = [chance.choice([*TEXTS, None] if has_nulls else TEXTS) for _ in range(chance.randrange(40))]
        texts = pa.array(values, pa.string())
        own = texts.slice(chance.randrange(len(values) + 1))
        words = sorted(chance.sample(TEXTS, chance.randrange(1, 6)))
        found = share_keys._named_texts(own, words, loops)
        plainly = share_keys._named_texts_plainly(own, words, loops)
        assert [one.tolist() for one in found] == [one.tolist() for one in plainly]


@pytest.mark.parametrize("offset", [0, 1, 8])
def test_eight_bytes_can_be_read_behind_every_text(offset: int) -> None:
    whole = b"x" * offset + "".join(TEXTS).encode()
    texts = pa.array(TEXTS)
    parts = [None, texts.buffers()[1], pa.py_buffer(whole).slice(offset)]
    held = TextArrays.of(pa.Array.from_buffers(pa.string(), len(TEXTS), parts))
    padded = held.padded()
    assert sum(map(len, padded)) == len(TEXTS)
    for part in padded:
        assert part.offsets[-1] + 8 <= len(part.bytes)
