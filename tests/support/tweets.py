"""A few tweets with hash tags, for functions of Python in predicates."""

from __future__ import annotations

import pyarrow as pa

TWEETS = pa.table(
    {
        "author": ["ann", "ann", "bob", "ann", "ann", "ann", "ann", "bob"],
        "t": [1, 2, 3, 4, 5, 6, 7, 8],
        "content": ["#a #b", "#b #a", "#a", "x #a #b", "#b y #a", "#a #b", "#a#b", "#c"],
    }
)
