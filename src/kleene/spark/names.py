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


def plain_names(names: list[str]) -> list[str]:
    """MapInArrow cannot name a column with dots or backquotes; the tasks take columns by their place."""
    return [name if re.fullmatch(r"\w+", name) else f"column_{number}" for number, name in enumerate(names)]


def plain_schema(schema: pa.Schema) -> pa.Schema:
    names = plain_names(schema.names)
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
