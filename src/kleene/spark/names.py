"""Names of columns as Spark reads them."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quoted_column(name: str) -> Column:
    return F.col(quoted(name))


AGAIN = "__kleene_again_"


def distinctly_named(schema: pa.Schema) -> tuple[pa.Schema, dict[str, str]]:
    """The schema with a name of its own for each column, and what those are called that got another one.

    What Python hands to Spark has no name twice.
    """
    seen: set[str] = set()
    fields, shown = [], {}
    for number, field in enumerate(schema):
        if field.name in seen:
            shown[f"{AGAIN}{number}"] = field.name
            field = field.with_name(f"{AGAIN}{number}")
        seen.add(field.name)
        fields.append(field)
    return pa.schema(fields), shown


def plain_names(names: list[str]) -> list[str]:
    """MapInArrow cannot name a column with dots or backquotes; the tasks take columns by their place."""
    return [name if re.fullmatch(r"\w+", name) else f"column_{number}" for number, name in enumerate(names)]


def plain_schema(schema: pa.Schema) -> pa.Schema:
    names = plain_names(schema.names)
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
