"""Random patterns in steps and streams for them: every operation, in every combination that is legal."""

from __future__ import annotations

from random import Random

import pyarrow as pa

import kleene

LETTERS = "abc"
CONDITIONS = (
    "price > 3",
    "price > LAST({other}.price)",
    "COUNT({own}.*) = 0 OR price >= LAST({own}.price)",
    "price + COALESCE(SUM({own}.price), 0) < 9",
    "price >= FIRST({other}.price) OR COUNT({other}.*) = 0",
    "price < MAX({other}.price)",
    "price <> MIN({own}.price) OR MIN({own}.price) IS NULL",
    "AVG({other}.price) > 2",
    "COUNT({own}.price) < 2",
)
MODES = ("no_skip", "skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last")


def random_pattern(random: Random) -> kleene.StepPattern:
    """A pattern that can be used; those that are refused are thrown away."""
    while True:
        names = iter("pqrstuvw")
        try:
            pattern = _steps(random, names, random.randint(1, 3), 2)
            if random.random() < 0.2:
                way = random.choice(["not_next", "not_followed_by"])
                pattern = getattr(pattern, way)("last", type=random.choice(LETTERS))
                if random.random() < 0.5:
                    pattern = pattern.within(random.randint(2, 4), since="previous")
            if random.random() < 0.6:
                pattern = pattern.within(random.choice([3, 5, 8, "4 events"]))
            pattern = _after(random, pattern)
            pattern = pattern.partition_by("k") if random.random() < 0.5 else pattern
            pattern.match(random_events(Random(0), 3), order_by="t", engine="reference")
        except (kleene.AnalysisError, StopIteration):
            continue
        return pattern


def _after(random: Random, pattern: kleene.StepPattern) -> kleene.StepPattern:
    mode = random.choice(MODES) if random.random() < 0.5 else "no_skip"
    return pattern.after_match(mode, random.choice("pqr") if mode in MODES[3:] else None)


def _steps(random: Random, names, count: int, depth: int) -> kleene.StepPattern:
    pattern = None
    for _ in range(count):
        way = random.choice(["next", "followed_by", "followed_by", "followed_by_any"])
        if depth and random.random() < 0.25:
            inner = _steps(random, names, random.randint(1, 2), depth - 1)
            pattern = kleene.begin(inner) if pattern is None else getattr(pattern, way)(inner)
            pattern = _qualified(random, pattern, None)
        else:
            own = next(names)
            types = random.sample(LETTERS, random.choice([1, 1, 2]))
            types = None if random.random() < 0.15 else types
            pattern = kleene.begin(own, type=types) if pattern is None else getattr(pattern, way)(own, type=types)
            pattern = _qualified(random, pattern, own)
        if random.random() < 0.2:
            way = random.choice(["not_next", "not_followed_by"])
            pattern = getattr(pattern, way)(next(names), type=random.choice(LETTERS))
            if random.random() < 0.3:
                pattern = pattern.where("price > 2")
            pattern = pattern.followed_by(next(names), type=random.choice(LETTERS))
    assert pattern is not None
    return pattern


def _qualified(random: Random, pattern: kleene.StepPattern, own: str | None) -> kleene.StepPattern:
    if own is not None and random.random() < 0.4:
        pattern = pattern.where(random.choice(CONDITIONS).format(own=own, other="p"))
    match random.randrange(6):
        case 0:
            pattern = pattern.one_or_more(gap=2) if own is not None and random.random() < 0.3 else pattern.one_or_more()
        case 1:
            pattern = pattern.times(2)
        case 2:
            pattern = pattern.times(1, 2)
        case 3:
            pattern = pattern.times_or_more(2)
        case _:
            return pattern.optional() if random.random() < 0.3 else pattern
    for call in ("consecutive", "allow_combinations", "greedy", "optional"):
        if random.random() < 0.25:
            pattern = getattr(pattern, call)()
    if random.random() < 0.25:
        pattern = pattern.until(f"type = '{random.choice(LETTERS)}' AND price > 2")
    return pattern


def random_events(random: Random, count: int) -> pa.Table:
    time, rows = 0, []
    for number in range(count):
        time += random.choice([0, 1, 1, 2])
        price = None if random.random() < 0.1 else random.randint(0, 6)
        row = (random.choice(LETTERS + "x"), time, price, f"e{number}", random.choice([0, 1, 1, None]))
        rows.append(row)
    types = {"type": pa.string(), "t": pa.int64(), "price": pa.int64(), "id": pa.string(), "k": pa.int64()}
    columns = zip(*rows, strict=True) if rows else [[] for _ in types]
    return pa.table(
        {name: pa.array(list(own), type_) for (name, type_), own in zip(types.items(), columns, strict=True)}
    )
