"""Query texts of the matching cases, made hostile: cut, doubled, mixed with each other and with odd letters.

Whatever a text is, it is refused with a KleeneError, or it gives an answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

import kleene
from case_files import load, load_all
from row_cases import load_rows, regex_of

TOKENS = re.compile(r"\w+|\s+|.", re.DOTALL)
ODD = [
    *("'", '"', "`", "''", "/*", "*/", "--", ";", ":", "{", "}", "{0}", "%s", "%", "\\", "$$", "${x}", "?", ":x", "\0"),
    *("\x1b[31m", "\u202e", "\ud800", "Ω", "𝔘", "\u00a0", "\r", "1e999", "9" * 40, "-0.0", "0x1F", "1..2", "a" * 300),
    *(
        "NULL",
        "TRUE",
        "NOT NOT",
        "((",
        "))",
        "[",
        "]",
        "a[i-1]",
        "a[..i-1].x",
        "a.LEN",
        "{,}",
        "{2,1}",
        "{99999}",
        "*+?",
    ),
    *("__import__('os')", "__kleene_row_0", "PERMUTE(A, B, C)", "PREV(PREV(x))", "CASE WHEN", "CAST(x AS", "INTERVAL"),
]


@cache
def examples() -> list[tuple[str, str, Any, dict[str, Any]]]:
    """Language, text, events and options of `match`."""
    cases = [*load_all(), *load("errors.toml")]
    found = [("sase", case.query, case.inputs, case.options) for case in cases if not case.is_program]
    for errors in (False, True):
        found += [("rows", case.item["clause"], case.table, {}) for case in load_rows("rows", errors, where=None)]
    return found + [("regex", "", case, {}) for case in load_rows("regex")]


def hostile(text: str, other: str, chance: random.Random) -> str:
    tokens, others = TOKENS.findall(text), TOKENS.findall(other)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(tokens) + 1)
        end = min(at + chance.choice([1, 1, 3, 9]), len(tokens))
        match chance.randrange(6):
            case 0:
                tokens[at:end] = []
            case 1:
                tokens[at:at] = [chance.choice(ODD)]
            case 2:
                tokens[at:end] = [chance.choice(ODD)]
            case 3:
                tokens[at:at] = tokens[at:end] * chance.choice([1, 2, 40])
            case 4:
                begin = chance.randrange(len(others) + 1)
                tokens[at:end] = others[begin : begin + 9]
            case 5 if tokens:
                one, two = chance.randrange(len(tokens)), chance.randrange(len(tokens))
                tokens[one], tokens[two] = tokens[two], tokens[one]
    return "".join(tokens)


def outcome(number: int) -> str:
    """What becomes of the hostile text of this number: "refused" or "answered"; any other error is raised."""
    chance = random.Random(number)
    language, text, events, options = chance.choice(examples())
    other = chance.choice(examples())[1]
    try:
        query, table = _made(language, text, events, lambda said: hostile(said, other, chance))
        found = query.match(
            table, engine=kleene.EngineOptions(chance.choice(["reference", "generated"]), **LIMITS), **options
        )
        found.validate(full=True)
        query.explain()
    except kleene.KleeneError as error:
        str(error).encode()
        return "refused"
    return "answered"


LIMITS = {"run_limit": 1_000, "match_limit": 10_000, "time_limit": 10.0, "memory_limit": "500 MB"}


def _made(language: str, text: str, events: Any, made_hostile: Callable[[str], str]) -> tuple[kleene.Query, pa.Table]:
    if language == "sase":
        return kleene.sase(made_hostile(text)), events
    if language == "rows":
        return kleene.match_recognize(made_hostile(text)), events
    item = dict(events.item)
    item["pattern"] = made_hostile(item["pattern"])
    for part in ("predicates", "output"):
        item[part] = {name: made_hostile(said) for name, said in item.get(part, {}).items()}
    return regex_of(type(events)(events.name, item, events.table)), events.table
