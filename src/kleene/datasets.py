"""Generated events with known answers: what the examples show and the benchmarks run on. Seeded, so always the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

OPENING = datetime(2024, 5, 4, 9, 0)
_TIMESTAMP = pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class RetailStore:
    """RFID readings of a store by event type, and the items for which something was planted."""

    readings: dict[str, pa.Table]
    stolen: frozenset[str]
    misplaced: frozenset[str]
    carried_around: frozenset[str]


@dataclass(slots=True)
class _Readings:
    """The columns of one type of reading, as they grow."""

    place: str
    rows: list[tuple[datetime, str, int]] = field(default_factory=list)

    def table(self) -> pa.Table:
        rows = sorted(self.rows)
        times, items, places = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {"ts": pa.array(times, _TIMESTAMP), "id": pa.array(items, pa.string())}
        return pa.table({**columns, self.place: pa.array(places, pa.int64())})


def retail_store(items: int = 2_000, shelves: int = 40, seed: int = 7) -> RetailStore:
    """A day in a store, after the example of SASE 2006 §2: shelves, counters and exits that read the tags of items.

    Shelves are swept every hour or two, and read an item once more when it is picked up. Most items stay or are
    bought. Some are stolen (they leave without passing a counter), some are misplaced (they end on another shelf),
    some are carried past several shelves before they are bought, and some are put down on another shelf but bought
    soon after, which is nothing to report.

    >>> store = retail_store(items=200)
    >>> sorted(store.readings), len(store.stolen), len(store.misplaced)
    (['COUNTER-READING', 'EXIT-READING', 'SHELF-READING'], 4, 6)
    """
    chance = random.Random(seed)
    shelf, counter, door = _Readings("shelf_id"), _Readings("counter_id"), _Readings("door_id")
    names = [f"tag-{number:05}" for number in range(items)]
    stories: list[Callable[[_Item], None]] = [_Item.is_stolen] * (items // 50)
    stories += [_Item.is_misplaced] * (items * 3 // 100) + [_Item.is_carried_around] * (items // 50)
    stories += [_Item.is_put_down_and_bought] * (items // 20) + [_Item.is_bought] * (items // 2)
    stories += [_Item.stays] * (items - len(stories))
    chance.shuffle(stories)
    for name, story in zip(names, stories, strict=True):
        story(_Item(name, chance, shelves, shelf, counter, door))
    by_story = {
        story: frozenset(name for name, told in zip(names, stories, strict=True) if told is story)
        for story in (_Item.is_stolen, _Item.is_misplaced, _Item.is_carried_around)
    }
    return RetailStore(
        {"SHELF-READING": shelf.table(), "COUNTER-READING": counter.table(), "EXIT-READING": door.table()},
        by_story[_Item.is_stolen],
        by_story[_Item.is_misplaced],
        by_story[_Item.is_carried_around],
    )


class _Item:
    """One item's day; each method is a story that it may live through."""

    def __init__(
        self, name: str, chance: random.Random, shelves: int, shelf: _Readings, counter: _Readings, door: _Readings
    ) -> None:
        self._name, self._chance = name, chance
        self._shelf, self._counter, self._door = shelf, counter, door
        self._places = chance.sample(range(1, shelves + 1), 6)
        self._now = OPENING + timedelta(seconds=chance.randrange(3600))
        for _ in range(chance.randrange(2, 6)):
            self._now += timedelta(minutes=70)
            self._read_on_shelf(self._places[0], 1, minutes=30)

    def stays(self) -> None:
        pass

    def is_bought(self) -> None:
        self._leave(pays=True)

    def is_stolen(self) -> None:
        self._leave(pays=False)

    def is_misplaced(self) -> None:
        self._read_on_shelf(self._places[1], self._chance.randrange(2, 6), minutes=10)

    def is_put_down_and_bought(self) -> None:
        self._read_on_shelf(self._places[1], self._chance.randrange(1, 3), minutes=10)
        self._leave(pays=True)

    def is_carried_around(self) -> None:
        for place in self._places[1 : self._chance.randrange(4, 6)]:
            self._read_on_shelf(place, 1, minutes=4)
        self._leave(pays=True)

    def _read_on_shelf(self, place: int, times: int, minutes: int) -> None:
        for _ in range(times):
            self._shelf.rows.append((self._later(minutes), self._name, place))

    def _leave(self, pays: bool) -> None:
        if pays:
            self._counter.rows.append((self._later(15), self._name, self._chance.randrange(1, 7)))
        self._door.rows.append((self._later(10), self._name, self._chance.randrange(1, 4)))

    def _later(self, minutes: int) -> datetime:
        self._now += timedelta(seconds=self._chance.randrange(30, 60 * minutes))
        return self._now


def prices(count: int, seed: int = 7, low: int = 50, high: int = 150) -> pa.Table:
    """Ticks with uniform prices, as RIP 2013 §5 has them: columns t and price."""
    chance = random.Random(seed)
    return pa.table({"t": list(range(count)), "price": [chance.randint(low, high) for _ in range(count)]})


def trades(count: int, symbols: int = 390, seed: int = 7) -> pa.Table:
    """Trades as MatchRegex 2012 Table 4 describes them: symbol, ts, price (in cents, a random walk), size, seq."""
    chance = random.Random(seed)
    walk = [float(chance.randrange(2_000, 20_000)) for _ in range(symbols)]
    rows: list[tuple[str, datetime, int, int, int]] = []
    for number in range(count):
        symbol = chance.randrange(symbols)
        walk[symbol] = max(100.0, walk[symbol] * (1 + chance.gauss(0, 0.008)))
        when = OPENING + timedelta(milliseconds=number * 700)
        rows.append((f"S{symbol:03}", when, int(walk[symbol]), chance.randrange(1, 13) * 100, number))
    names, times, amounts, sizes, numbers = zip(*rows, strict=True)
    columns = {"symbol": pa.array(names), "ts": pa.array(times, _TIMESTAMP), "price": pa.array(amounts, pa.int64())}
    return pa.table({**columns, "size": pa.array(sizes, pa.int64()), "seq": pa.array(numbers, pa.int64())})


def tweets(count: int, authors: int = 60, seed: int = 7) -> pa.Table:
    """Short messages with hash tags, of which an author uses the same ones for a while: author, ts, content."""
    chance = random.Random(seed)
    tags = [f"#{word}" for word in ("art", "business", "food", "jobs", "music", "news", "travel", "writers")]
    habits = [chance.sample(tags, 2) for _ in range(authors)]
    rows: list[tuple[str, datetime, str]] = []
    for number in range(count):
        author = chance.randrange(authors)
        if chance.random() < 0.15:
            habits[author] = chance.sample(tags, 2)
        words = [*chance.sample(habits[author], 2), f"word{chance.randrange(100)}"]
        rows.append((f"author{author}", OPENING + timedelta(seconds=13 * number), " ".join(words)))
    names, times, contents = zip(*rows, strict=True)
    return pa.table({"author": pa.array(names), "ts": pa.array(times, _TIMESTAMP), "content": pa.array(contents)})


@dataclass(frozen=True, slots=True)
class Clickstream:
    """Clicks of visitors (visitor, ts, page), in the order of time, and what is true of them."""

    clicks: pa.Table
    visits: int
    abandoned: frozenset[str]
    """Visitors who put something into the cart in some visit, and did not pay in it."""


def clickstream(visitors: int = 300, seed: int = 7) -> Clickstream:
    """Visits of a shop's website: in a visit clicks are at most 10 minutes apart, and visits at least 2 hours.

    >>> stream = clickstream(visitors=100)
    >>> stream.clicks.num_rows, stream.visits, len(stream.abandoned)
    (1195, 260, 25)
    """
    chance = random.Random(seed)
    rows: list[tuple[datetime, str, str]] = []
    visits, abandoned = 0, set()
    for number in range(visitors):
        name, now = f"visitor{number:04}", OPENING + timedelta(seconds=chance.randrange(86_400))
        for _ in range(chance.randrange(1, 5)):
            pages = _pages_of_visit(chance)
            for page in pages:
                rows.append((now, name, page))
                now += timedelta(seconds=chance.randrange(5, 600))
            now += timedelta(seconds=chance.randrange(2 * 3600, 30 * 3600))
            visits += 1
            if "cart" in pages and "pay" not in pages:
                abandoned.add(name)
    times, names, seen = zip(*sorted(rows), strict=True)
    table = pa.table({"visitor": pa.array(names), "ts": pa.array(times, _TIMESTAMP), "page": pa.array(seen)})
    return Clickstream(table, visits, frozenset(abandoned))


def _pages_of_visit(chance: random.Random) -> list[str]:
    pages = [chance.choice(["home", "home", "search", "offer"])]
    for _ in range(chance.randrange(0, 5)):
        pages += chance.choice([["search"], ["product"], ["product", "reviews"]])
    if chance.random() < 0.3:
        pages += ["product", "cart"]
        if chance.random() < 0.5:
            pages += ["address", "pay"]
    return pages


@dataclass(frozen=True, slots=True)
class OrderLog:
    """What was done for orders (order_id, ts, type), in the order of time, and what was planted among them."""

    events: pa.Table
    never_shipped: frozenset[str]
    """Orders that were paid although nothing had been shipped."""
    reworked: frozenset[str]
    """Orders that failed their check, and were checked again."""


def order_log(orders: int = 300, seed: int = 7) -> OrderLog:
    """The log of a process: an order is checked, again if the check fails, shipped, invoiced and paid.

    >>> log = order_log(orders=100)
    >>> log.events.num_rows, sorted(log.never_shipped), len(log.reworked)
    (546, ['order-0050', 'order-0075'], 20)
    """
    chance = random.Random(seed)
    rows: list[tuple[datetime, str, str]] = []
    never_shipped, reworked = set(), set()
    for number in range(orders):
        name, now = f"order-{number:04}", OPENING + timedelta(minutes=20 * number)
        steps = ["Order", "Check"]
        while chance.random() < 0.2:
            steps += ["Fail", "Check"]
            reworked.add(name)
        if chance.random() < 0.02:
            never_shipped.add(name)
        else:
            steps.append("Ship")
        for step in [*steps, "Invoice", "Pay"]:
            rows.append((now, name, step))
            now += timedelta(minutes=chance.randrange(10, 3 * 1440 if step == "Invoice" else 600))
    times, names, types = zip(*sorted(rows), strict=True)
    table = pa.table({"order_id": pa.array(names), "ts": pa.array(times, _TIMESTAMP), "type": pa.array(types)})
    return OrderLog(table, frozenset(never_shipped), frozenset(reworked))
