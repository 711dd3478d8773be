"""Options of calls by their names alone: tests that merge dicts of options need not know which value holds which."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import kleene
from kleene.call import Call, read_call
from kleene.ir.query import QueryDefinition

_VALUES = {"engine": kleene.EngineOptions, "spark": kleene.SparkOptions, "stream": kleene.StreamOptions}


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `match` that the options say.

    >>> arguments({"order_by": "t", "engine": "generated", "algorithm": "basic", "layout": "shuffled"})["spark"].layout
    'shuffled'
    """
    left, found = dict(options), {}
    for name, value in _VALUES.items():
        own = {field.name: left.pop(field.name) for field in fields(value) if field.name in left}
        if name == "engine" and "engine" in left:
            own["name"] = left.pop("engine")
        if own:
            found[name] = value(**own)
    return {**left, **found}


def call_of(definition: QueryDefinition, **options: Any) -> Call:
    """The call that `match` with these options reads."""
    unsaid = dict.fromkeys(("order_by", "tie_break", "params", "engine", "spark", "stream"))
    return read_call(definition, **{**unsaid, "type_column": "type", **arguments(options)})
