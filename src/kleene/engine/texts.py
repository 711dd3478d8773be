"""Columns of texts as the arrays that they are stored in, and whether their bytes are UTF-8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.stretches import holds_in_stretches

Array = np.ndarray[Any, Any]
_AT_ONCE = 1 << 19
"""So many texts are looked at together: where a few of them are not ASCII, only these take long."""
PADDING = 8
"""Bytes behind texts that are read eight bytes at a time."""
_HIGH_BITS = np.uint64(0x8080808080808080)


@dataclass(frozen=True, slots=True)
class PaddedTexts:
    """Texts from number `first` on, with at least eight bytes behind the last of them."""

    first: int
    offsets: Array
    bytes: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class TextArrays:
    """Text number n has the bytes from offsets[n] to before offsets[n + 1]."""

    offsets: Array
    bytes: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, texts: pa.Array) -> TextArrays:
        """The arrays of the texts, whose memory they look at."""
        _, offsets, data = texts.buffers()
        if not len(texts) or offsets is None:
            return cls(np.zeros(len(texts) + 1, np.int32), np.zeros(0, np.uint8))
        own = np.frombuffer(offsets, np.int32, len(texts) + 1, offset=4 * texts.offset)
        return cls(own, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))

    @property
    def size(self) -> int:
        """How many bytes the texts have together."""
        return int(self.offsets[-1]) - int(self.offsets[0])

    def padded(self) -> list[PaddedTexts]:
        """The texts in one or two parts, with bytes behind them; the last few, or all, are copied."""
        most = min(len(self.bytes) - PADDING, 2**31 - 1)
        # As the offsets are: NumPy would make all of them long to look for a long number.
        whole = max(int(np.searchsorted(self.offsets, np.int32(most), "right")) - 1, 0) if most >= 0 else 0
        parts = [PaddedTexts(0, self.offsets[: whole + 1], self.bytes)] if whole else []
        return [*parts, self.copied(whole)] if whole < len(self) else parts

    def copied(self, first: int = 0) -> PaddedTexts:
        """The texts from that number on, with a copy of their bytes."""
        begin, end = int(self.offsets[first]), int(self.offsets[-1])
        own = np.zeros(end - begin + PADDING, np.uint8)
        own[: end - begin] = self.bytes[begin:end]
        return PaddedTexts(first, self.offsets[first:] - np.int32(begin), own)

    @property
    def are_ascii(self) -> bool:
        """Whether the texts stand one behind the other, inside their bytes, and all of these are ASCII."""
        begin, end = int(self.offsets[0]), int(self.offsets[-1])
        if not (0 <= begin <= end <= len(self.bytes) and (self.offsets[1:] >= self.offsets[:-1]).all()):
            return False
        own = self.bytes[begin:end]
        words = own[: len(own) - len(own) % 8].view(np.uint64)
        return not np.bitwise_or.reduce(words) & _HIGH_BITS and not (own[8 * len(words) :] & 0x80).any()


def check_texts(column: pa.ChunkedArray, threads: int = 1) -> None:
    """Arrow's error if the texts are not UTF-8, or not stored as texts are."""
    for chunk in column.chunks:
        chunk.validate()
    if not holds_in_stretches(_are_texts, column, threads):
        column.validate(full=True)  # tells where


def _are_texts(column: pa.ChunkedArray) -> bool:
    parts = (chunk.slice(begin, _AT_ONCE) for chunk in column.chunks for begin in range(0, len(chunk), _AT_ONCE))
    return all(TextArrays.of(part).are_ascii or _is_valid(part) for part in parts)


def _is_valid(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
