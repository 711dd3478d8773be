"""Names of columns as Spark reads them."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quoted_column(name: str) -> Column:
    return F.col(quoted(name))
