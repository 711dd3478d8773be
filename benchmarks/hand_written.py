"""The queries of the benchmark on Spark as people write them today: a loop over the events of one key.

Each takes the events of one key as a pandas DataFrame and gives a DataFrame of matches: functions for
`groupBy(key).applyInPandas`. They are plain Python over lists, which is faster than over numpy's values; they exploit
what is special about their query, as somebody would who knows it; and their answers are Kleene's, row for row. Of head
and shoulders there is also a loop that exploits nothing: it tries what the query says.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import pandas as pd

Row = tuple[Any, ...]
MINUTE = 60_000_000
HOUR = 60 * MINUTE
# Times are counted in microseconds: pandas' own would make the loops several times slower.

NUMBER, TIME = "int64", "datetime64[us]"
TRADE = {"first": NUMBER, "count": NUMBER}
ITEM = {"shelf": TIME, "exit": TIME}


def finance0(events: pd.DataFrame) -> pd.DataFrame:
    """A large trade, rising prices, a falling one. The oldest start lives longest: one is enough."""
    events = events.sort_values("ts")
    prices, sizes, numbers = (events[name].tolist() for name in ("price", "size", "seq"))
    found: list[Row] = []
    start, has_risen, last = -1, False, 0
    for row, price in enumerate(prices):
        if start >= 0:
            if price >= last:
                has_risen = True
            elif has_risen:
                found.append((numbers[start], row - start + 1))
                start, last = -1, price
                continue
            else:
                start = -1
        if start < 0 and sizes[row] > 1000:
            start, has_risen = row, False
        last = price
    return _matches(events, "symbol", found, TRADE)


def finance1(events: pd.DataFrame) -> pd.DataFrame:
    """An M: up, down, up, down below the beginning. Every event begins one; those still open are kept in a list."""
    events = events.sort_values("ts")
    prices, numbers = events["price"].tolist(), events["seq"].tolist()
    found: list[Row] = []
    opened: list[tuple[int, int, int]] = []  # start, its price, how far: 0 begun, 1 up, 2 down, 3 up, 4 down
    last = 0
    for row, price in enumerate(prices):
        still_open = []
        for start, first, stage in opened:
            if price >= last:
                if price > first and stage != 4:
                    still_open.append((start, first, 1 if stage < 2 else 3))
            elif price < first:
                if stage >= 3:
                    found.append((numbers[start], row - start + 1))
                    still_open = []
                    break
            elif stage:
                still_open.append((start, first, 2 if stage < 3 else 4))
        else:
            still_open.append((row, price, 0))
        opened, last = still_open, price
    return _matches(events, "symbol", found, TRADE)


def finance2(events: pd.DataFrame) -> pd.DataFrame:
    """A rise by more than a hundredth, then nearly flat until five minutes have passed since the beginning."""
    events = events.sort_values("ts")
    prices, numbers, times = events["price"].tolist(), events["seq"].tolist(), _microseconds(events)
    found: list[Row] = []
    opened: list[tuple[int, bool, bool]] = []  # start, whether it may rise on, whether it may be flat
    last = 0
    for row, price in enumerate(prices):
        rises, now = price > last, times[row]
        is_flat = abs(price - last) < 0.01 * price
        still_open = []
        for start, rising, flat in opened:
            goes_flat = False
            if flat and is_flat and now - times[start] < 10 * MINUTE:
                if now - times[start] >= 5 * MINUTE:
                    found.append((numbers[start], row - start + 1))
                    still_open = []
                    break
                goes_flat = True
            goes_rising = rising and rises
            if goes_rising and price > 1.01 * prices[start]:
                goes_flat = True
            if goes_rising or goes_flat:
                still_open.append((start, goes_rising, goes_flat))
        else:
            still_open.append((row, True, False))
        opened, last = still_open, price
    return _matches(events, "symbol", found, TRADE)


def finance5(events: pd.DataFrame) -> pd.DataFrame:
    """A price more than 3 % above one of the last five minutes; the oldest such one begins the match."""
    events = events.sort_values("ts")
    prices, numbers, times = events["price"].tolist(), events["seq"].tolist(), _microseconds(events)
    limits = (1.03 * events["price"]).tolist()
    found: list[Row] = []
    oldest = 0
    for row, price in enumerate(prices):
        horizon = times[row] - 5 * MINUTE
        while oldest < row and times[oldest] <= horizon:
            oldest += 1
        for start in range(oldest, row):
            if price > limits[start]:
                found.append((numbers[start], row - start + 1))
                oldest = row + 1
                break
    return _matches(events, "symbol", found, TRADE)


def sase_q2(events: pd.DataFrame) -> pd.DataFrame:
    """Every shelf reading with every exit reading that follows within 12 hours, without a counter in between."""
    events = events.sort_values("ts")
    found: list[Row] = []
    on_shelf: deque[int] = deque()
    for type_, now in zip(events["type"].tolist(), _microseconds(events), strict=True):
        if type_ == "Shelf":
            on_shelf.append(now)
        elif type_ == "Counter":
            on_shelf.clear()
        elif type_ == "Exit":
            while on_shelf and now - on_shelf[0] >= 12 * HOUR:
                on_shelf.popleft()
            found.extend((shelf, now) for shelf in on_shelf)
    return _matches(events, "id", found, ITEM)


def sase_plus_query1(events: pd.DataFrame) -> pd.DataFrame:
    """The same, where each shelf reading goes with the next exit reading only."""
    events = events.sort_values("ts")
    found: list[Row] = []
    on_shelf: list[int] = []
    for type_, now in zip(events["type"].tolist(), _microseconds(events), strict=True):
        if type_ == "Shelf":
            on_shelf.append(now)
        elif type_ == "Counter":
            on_shelf.clear()
        elif type_ == "Exit":
            found.extend((shelf, now) for shelf in on_shelf if now - shelf < 12 * HOUR)
            on_shelf.clear()
    return _matches(events, "id", found, ITEM)


def sase_q3(events: pd.DataFrame) -> pd.DataFrame:
    """A, B, no C, D, of equal attr2: the events of one attr1, since grouping by both makes twenty times the groups."""
    events = events.sort_values("ts")
    found: list[Row] = []
    first: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # by attr2: the A's, time and attr4
    second: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # the B's since the last C, A's before each
    columns = (events[name].tolist() for name in ("type", "attr2", "attr3", "attr4"))
    for type_, key, simple, value, now in zip(*columns, _microseconds(events), strict=True):
        if type_ == "A":
            if simple == 1:
                first[key].append((now, value))
        elif type_ == "B":
            second[key].append((now, len(first[key])))
        elif type_ == "C":
            second[key].clear()
        elif type_ == "D" and second[key]:
            begins = first[key]
            for time, before in second[key]:
                for number in range(before - 1, -1, -1):
                    began, least = begins[number]
                    if now - began >= 2 * HOUR:
                        break
                    if least < value:
                        found.append((began, time, now))
    return _matches(events, "attr1", found, {"a": TIME, "b": TIME, "d": TIME})


def sase_plus_query3(events: pd.DataFrame) -> pd.DataFrame:
    """A large trade, trades above the average so far, and a small one. An open run ends with its window only."""
    events = events.sort_values("ts")
    found: list[Row] = []
    runs: list[list[Any]] = []  # when it began, the sum and the number of its prices, its last size
    columns = (events["price"].tolist(), events["size"].tolist(), _microseconds(events))
    for price, size, now in zip(*columns, strict=True):
        if runs:
            runs = [run for run in runs if now - run[0] < 5 * MINUTE]
            for run in runs:
                if size < 0.8 * run[3]:
                    found.append((run[0], run[2], now))
                if price > run[1] / run[2]:
                    run[1] += price
                    run[2] += 1
                    run[3] = size
        if size > 1900:
            runs.append([now, price, 1, size])
    return _matches(events, "symbol", found, {"first": TIME, "count": NUMBER, "last": TIME})


def head_and_shoulders(events: pd.DataFrame) -> pd.DataFrame:
    """From every event on: up, down, up, down, up, down, each as far as it goes; no match may overlap the one before.

    Where a way up or down ends is decided by the prices alone, so that there is nothing to try twice.
    """
    events = events.sort_values("ts")
    prices, numbers = events["price"].tolist(), events["seq"].tolist()
    found: list[Row] = []
    count, start = len(prices), 0
    while start < count - 6:
        begin, row, end = prices[start], start + 1, min(count, start + 100)
        start += 1
        if prices[row] <= begin:
            continue
        while row < end and prices[row] > prices[row - 1]:
            row += 1
        left = row - 1
        while row < end and prices[row] <= prices[row - 1]:
            row += 1
        first_low = row - 1
        if row == end or prices[first_low] <= begin or prices[first_low] == prices[first_low - 1]:
            continue
        while row < end and prices[row] > prices[row - 1]:
            row += 1
        head = row - 1
        if prices[head] <= prices[left]:
            continue
        while row < end and prices[row] <= prices[row - 1]:
            row += 1
        second_low = row - 1
        if row == end or prices[second_low] <= begin or prices[second_low] == prices[second_low - 1]:
            continue
        while row < end and prices[row] > prices[row - 1]:
            row += 1
        right = row - 1
        if row == end or prices[right] >= prices[head]:
            continue
        while row < end and prices[row] <= prices[row - 1]:
            row += 1
        last = prices[row - 1]
        if last < prices[first_low] and last < prices[second_low]:
            found.append((numbers[start - 1], prices[left], prices[head], prices[right], last, numbers[row - 1]))
            start = row
    names = ("first", "left_shoulder", "head", "right_shoulder", "reversal", "last")
    return _matches(events, "symbol", found, dict.fromkeys(names, NUMBER))


def head_and_shoulders_tried(events: pd.DataFrame) -> pd.DataFrame:
    """The same as the query says it: variable after variable, and where a variable may repeat, as often as possible."""
    events = events.sort_values("ts")
    prices, numbers = events["price"].tolist(), events["seq"].tolist()
    count = len(prices)

    def tried(step: int, row: int, end: int, a: int, seen: dict[str, int]) -> int:
        """The row behind the match that goes on with this variable in this row, or -1."""
        if step == 12:
            return row
        if row >= end:
            return -1
        name, price, before = "BCDEFGHIJKLM"[step], prices[row], prices[row - 1]
        rises = name in "BCFGJK"
        fits = price > before if rises else price <= before
        if name in "BDFHJL":
            behind = tried(step, row + 1, end, a, seen) if fits else -1
            return behind if behind >= 0 else tried(step + 1, row, end, a, seen)
        if name in "EI":
            fits = price < before and price > a
        elif name == "G":
            fits = fits and price > seen["C"]
        elif name == "K":
            fits = fits and price < seen["G"]
        elif name == "M":
            fits = fits and price < seen["E"] and price < seen["I"]
        if not fits:
            return -1
        seen[name] = price
        return tried(step + 1, row + 1, end, a, seen)

    found: list[Row] = []
    start = 0
    while start < count - 6:
        seen: dict[str, int] = {}
        behind = tried(0, start + 1, min(count, start + 100), prices[start], seen)
        if behind < 0:
            start += 1
        else:
            found.append((numbers[start], seen["C"], seen["G"], seen["K"], seen["M"], numbers[behind - 1]))
            start = behind
    names = ("first", "left_shoulder", "head", "right_shoulder", "reversal", "last")
    return _matches(events, "symbol", found, dict.fromkeys(names, NUMBER))


def _matches(events: pd.DataFrame, key: str, found: list[Row], types: dict[str, str]) -> pd.DataFrame:
    matches = pd.DataFrame(found, columns=list(types)).astype("int64").astype(types)
    matches.insert(0, key, events[key].iloc[0])
    return matches


def _microseconds(events: pd.DataFrame) -> list[int]:
    times: list[int] = events["ts"].astype("datetime64[us]").astype("int64").tolist()
    return times


HAND_WRITTEN: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    loop.__name__: loop
    for loop in (
        *(finance0, finance1, finance2, finance5),
        *(sase_q2, sase_q3, sase_plus_query1, sase_plus_query3, head_and_shoulders, head_and_shoulders_tried),
    )
}
