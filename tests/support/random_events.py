"""Events of three types with small numbers, drawn at random, and their schema."""

from __future__ import annotations

import random

import pyarrow as pa

from kleene.schema import INTEGER, STRING, EventSchema

SCHEMA = EventSchema({"t": INTEGER, "type": STRING, "x": INTEGER, "y": INTEGER}, "type")


def events(count: int, seed: int = 1) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "t": range(count),
            "type": [chance.choice("ABC") for _ in range(count)],
            "x": [chance.randint(0, 3) for _ in range(count)],
            "y": [chance.randint(0, 3) for _ in range(count)],
        }
    )
