"""Grammars -> parsers. The tables of a parser take a fifth of a second to make, so they are kept for the next process.

They lie in the cache folder, under a hash of all that they depend on. They are plain values, and hold no code.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from kleene.cache import cache_folder, read, stored_at, write


@cache
def parser_of(grammars: tuple[str, ...], start: str) -> Lark:
    """The parser of what the grammars say together. It is made of its tables whether they were kept or are new."""
    text = "\n".join(_text(name) for name in grammars)
    content = repr((text, start, lark.__version__, sys.version))
    key, folder = hashlib.sha256(content.encode()).hexdigest()[:32], cache_folder()
    if folder is not None:
        with suppress(Exception):  # missing, damaged, of another kind: whatever it is, making it anew mends it
            return _from_tables(read(stored_at(folder, key, "parser")))
    made = tables_of(text, start)
    if folder is not None:
        with suppress(OSError):  # a full disk, a folder that is gone
            write(stored_at(folder, key, "parser"), made)
    return _from_tables(made)


def tables_of(text: str, start: str) -> bytes:
    parser: Any = Lark(text, start=start, parser="lalr", propagate_positions=True, maybe_placeholders=True)
    return marshal.dumps(parser.memo_serialize([TerminalDef, Rule]))


def _from_tables(tables: bytes) -> Lark:
    data, memo = marshal.loads(tables)
    loading: Any = Lark
    made: Lark = loading._load_from_dict(data, memo)
    return made


def _text(name: str) -> str:
    return resources.files("kleene.lang").joinpath(f"{name}.lark").read_text(encoding="utf-8")
