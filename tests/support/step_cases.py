"""Reads the cases of patterns in steps: their shorthand to a pattern, a table of events, and expected matches.

`a > b` next, `a >> b` followed_by, `a >>> b` followed_by_any, `a >! n` not_next, `a >>! n` not_followed_by, `b+`
one_or_more, `b{2}` `b{1,2}` `b{2,}` times, `?` optional, `greedy`, `consecutive`, `combinations`, `until(u)`,
`gap(3)`, `since_previous(3)`, `within(10)`, `( … )` a group. A step accepts the events of its letter, `p=ab` those of
letter a or b, and `[…]` is a further condition. An event is a letter and a number, then `=price` and `@time`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import kleene
from case_files import FOLDER

_TOKEN = re.compile(
    r"\s*(>>>|>>!|>>|>!|>|\(|\)|\[[^\]]*\]|\{[\d,]+\}|\+|\?|(?:until|gap|within|since_previous)\([^)]*\)"
    r"|greedy|consecutive|combinations|\w+=\w+|\w+)"
)
_FOLLOWS = {">": "next", ">>": "followed_by", ">>>": "followed_by_any", ">!": "not_next", ">>!": "not_followed_by"}
_CALLS = {"+": "one_or_more", "?": "optional", "combinations": "allow_combinations"}


@dataclass(frozen=True)
class StepCase:
    name: str
    item: dict[str, Any]

    @property
    def pattern(self) -> kleene.StepPattern:
        found = pattern_of(self.item["pattern"])
        after = self.item.get("after")
        return found if after is None else eval(f"found.after_match({after})", {"found": found})

    @property
    def events(self) -> pa.Table:
        return events_of(self.item["stream"])


def load_steps(*files: str) -> list[StepCase]:
    cases: list[StepCase] = []
    for path in sorted((FOLDER / "steps").glob("*.toml")):
        if not files or path.stem in files:
            cases += [StepCase(item["name"], item) for item in tomllib.loads(path.read_text(encoding="utf-8"))["case"]]
    return cases


# --- patterns ------------------------------------------------------------------------------------------------------


def pattern_of(text: str) -> kleene.StepPattern:
    tokens = _tokens(text)
    pattern = _sequence(tokens)
    assert not tokens, f"{tokens} is left of {text}"
    return pattern


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        assert found, f"{text[at:]} of {text}"
        tokens.append(found[1])
        at = found.end()
    return tokens


def _sequence(tokens: list[str]) -> kleene.StepPattern:
    pattern = None
    way = "begin"
    while True:
        item = tokens.pop(0)
        if item == "(":
            group = _sequence(tokens)
            assert tokens.pop(0) == ")"
            pattern = kleene.begin(group) if pattern is None else getattr(pattern, way)(group)
        else:
            name, _, letters = item.partition("=")
            types = list(letters or name)
            pattern = kleene.begin(name, type=types) if pattern is None else getattr(pattern, way)(name, type=types)
        pattern = _qualified(pattern, tokens)
        if not tokens or tokens[0] == ")":
            return pattern
        way = _FOLLOWS[tokens.pop(0)]


def _qualified(pattern: kleene.StepPattern, tokens: list[str]) -> kleene.StepPattern:
    """What is said behind a step. A gap is an argument of the repetition, and optional may stand before it."""
    said: list[str] = []
    while tokens and tokens[0] not in _FOLLOWS and tokens[0] != ")":
        said.append(tokens.pop(0))
    gap = next((_number(item) for item in said if item.startswith("gap(")), None)
    options = {} if gap is None else {"gap": gap}
    for item in said:
        if item.startswith("["):
            pattern = pattern.where(item[1:-1])
        elif item == "+":
            pattern = pattern.one_or_more(**options)
        elif item.startswith("{"):
            least, comma, most = item[1:-1].partition(",")
            if comma and not most:
                pattern = pattern.times_or_more(int(least), **options)
            else:
                pattern = pattern.times(int(least), int(most) if most else None, **options)
        elif item.startswith("until("):
            letter = item[6:-1]
            pattern = pattern.until(f"type = '{letter}'")
        elif item.startswith("within("):
            window = item[7:-1]
            pattern = pattern.within(_number(item) if window.replace(".", "").isdigit() else window)
        elif item.startswith("since_previous("):
            pattern = pattern.within(_number(item), since="previous")
        elif not item.startswith("gap("):
            pattern = getattr(pattern, _CALLS.get(item, item))()
    return pattern


def _number(item: str) -> float | int:
    text = item[item.index("(") + 1 : -1]
    return float(text) if "." in text else int(text)


# --- events and matches ----------------------------------------------------------------------------------------------


def events_of(stream: str) -> pa.Table:
    """A table of the events: their type, time, price and name."""
    rows = []
    for number, item in enumerate(stream.split()):
        found = re.fullmatch(r"(([a-z])\d+)(?:=([-\d.]+))?(?:@([\d.]+))?", item)
        assert found, item
        name, letter, price, time = found.groups()
        rows.append((letter, number if time is None else int(time), None if price is None else int(price), name))
    types = {"type": pa.string(), "t": pa.int64(), "price": pa.int64(), "id": pa.string()}
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in types]
    return pa.table({name: pa.array(values, types[name]) for name, values in zip(types, columns, strict=True)})


Match = tuple[tuple[str, tuple[str, ...]], ...]
"""The names of a match's events, by step; steps without one are left out."""


def expected(case: StepCase) -> list[Match]:
    return matches_of(case, case.item["matches"])


def expected_timeouts(case: StepCase) -> list[Match]:
    return matches_of(case, re.sub(r" at [\d.]+", "", case.item.get("timed_out", "")))


def matches_of(case: StepCase, text: str) -> list[Match]:
    steps = _letters(case.item["pattern"])
    return [_match(inner, steps) for inner in re.findall(r"\{([^}]*)\}", text)]


def _letters(pattern: str) -> list[tuple[str, str]]:
    """The positive steps and the letters that they accept."""
    without = re.sub(r"\[[^\]]*\]|until\([^)]*\)|within\([^)]*\)|since_previous\([^)]*\)|gap\([^)]*\)", "", pattern)
    without = re.sub(r">>?!\s*\w+(=\w+)?", "", without)
    words = [word for word in re.findall(r"[a-z]\w*(?:=\w+)?", without) if word not in _WORDS]
    return [(name, letters or name) for name, _, letters in (word.partition("=") for word in words)]


_WORDS = ("greedy", "consecutive", "combinations")


def _match(text: str, steps: list[tuple[str, str]]) -> Match:
    by_step: dict[str, list[str]] = {}
    if ":" in text:
        for part in text.split(","):
            name, events = part.split(":")
            by_step[name.strip()] = events.split()
    else:
        for event in text.split():
            name = next(name for name, letters in steps if event[0] in letters)
            by_step.setdefault(name, []).append(event)
    return tuple((name, tuple(by_step[name])) for name, _ in steps if by_step.get(name))


def found_in(table: pa.Table, is_timed_out: bool = False) -> list[Match]:
    """The matches of a result, or its timeouts, in their order."""
    apart = {"match_start", "match_end", "timed_out", "match_order", "k"}
    rows = [row for row in table.to_pylist() if bool(row.get("timed_out")) is is_timed_out]
    steps = [name for name in table.column_names if name not in apart]
    return [tuple((name, _ids(row[name])) for name in steps if row[name]) for row in rows]


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(event["id"] for event in (value if isinstance(value, list) else [value]))
