"""Whole numbers that a float would round, so that two of them might become one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LARGE = 1 << 53
"""From here on, floats leave out some whole numbers."""
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_LONG = re.compile(rb"(?<![0-9.])[0-9]{16,}(?![0-9.eE])")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


def has_large(column: pa.ChunkedArray, with_integers: bool = False) -> bool:
    """Whether a float in the column, or inside its values, is so large that it may stand for another whole number."""
    type_ = column.type
    if pa.types.is_float64(type_):
        return bool(pc.any(pc.greater_equal(pc.abs(column), float(LARGE))).as_py())
    if with_integers and pa.types.is_int64(type_):
        lowest, highest = pc.min_max(column).as_py().values()
        return lowest is not None and max(-lowest, highest) >= LARGE
    if pa.types.is_list(type_):
        return has_large(pc.list_flatten(column), with_integers)
    if pa.types.is_struct(type_):
        return any(has_large(pc.struct_field(column, [n]), with_integers) for n in range(type_.num_fields))
    return False


def is_large_whole(text: str) -> bool:
    """Whether a number is written as a whole one, and too large for a float to be exact.

    >>> is_large_whole("9007199254740993"), is_large_whole("9007199254740993.5"), is_large_whole("0000000000000000001")
    (True, False, False)
    """
    if not _WHOLE.fullmatch(text):
        return False
    digits = text.strip().lstrip("+-0")
    return len(digits) > 16 or (len(digits) == 16 and int(digits) >= LARGE)


def rounded(block: bytes, columns: Mapping[str, pa.DataType]) -> Iterator[tuple[str, str]]:
    """The names of columns, and the whole numbers in them that their types would round, in rows of JSON."""
    if not columns or not _LONG.search(block):
        return
    for row in decoded(block):
        for name, type_ in columns.items():
            for text in _rounded(row.get(name), type_):
                yield name, text


def decoded(block: bytes) -> Iterator[dict[str, Any]]:
    """The rows of JSON, with numbers as they are written."""
    text, place = block.decode("utf-8").lstrip(" \t\r\n"), 0
    while place < len(text):
        try:
            row, place = _DECODER.raw_decode(text, place)
        except ValueError as error:  # what only Arrow takes for JSON
            raise pa.ArrowInvalid(str(error)) from None
        yield row
        while place < len(text) and text[place] in " \t\r\n":
            place += 1


def _rounded(value: Any, type_: pa.DataType) -> Iterator[str]:
    if isinstance(value, str):
        if pa.types.is_float64(type_) and is_large_whole(value):
            yield value
    elif isinstance(value, list) and pa.types.is_list(type_):
        for item in value:
            yield from _rounded(item, type_.value_type)
    elif isinstance(value, dict) and pa.types.is_struct(type_):
        for field in type_:
            yield from _rounded(value.get(field.name), field.type)
