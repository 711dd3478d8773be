"""A generated store of RFID readings: what was planted in it, and what three queries find, on an embedded Spark."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

import kleene
from kleene.datasets import RetailStore, retail_store
from kleene.show import match_table
from kleene.spark.schema import spark_schema
from kleene.spark.session import embedded_session

QUERIES = Path(__file__).parent / "queries"


def main(folder: Path, items: int = 2_000) -> bool:
    """Run the queries; True if each found just what was planted."""
    console = Console()
    store = retail_store(items)
    _write_store(store, folder)
    count = sum(table.num_rows for table in store.readings.values())
    console.print(f"A day in a store: {count:,} RFID readings of {items:,} items. Starting Spark …")
    spark = embedded_session("kleene-demo")
    readings = {
        name: spark.createDataFrame(table, spark_schema(table.schema)) for name, table in store.readings.items()
    }
    summary = Table("query", "planted", "found", "missed", "wrong", title="Planted and found", title_justify="left")
    planted = {"shoplifting": store.stolen, "misplaced": store.misplaced, "carried_around": store.carried_around}
    correct = True
    for name, expected in planted.items():
        text = (QUERIES / f"{name}.sase").read_text(encoding="utf-8")
        console.rule(Text(name, style="bold"), align="left")
        console.print(Text(text.strip(), style="dim"), soft_wrap=True)
        target = folder / f"{name}.parquet"
        kleene.sase(text).match(readings, order_by="ts").write.mode("overwrite").parquet(str(target))
        matches = spark.read.parquet(str(target))
        rows = matches.orderBy("id").limit(4).toArrow()
        console.print(match_table(rows.column_names, rows.to_pylist(), f"{matches.count()} matches, the first 4"))
        found = {row["id"] for row in matches.select("id").distinct().collect()}
        correct = correct and found == expected
        summary.add_row(name, *(str(len(part)) for part in (expected, found, expected - found, found - expected)))
    spark.stop()
    console.print(summary)
    console.print(f"Matches (Parquet), readings and queries lie in {folder}/. Try one yourself:")
    inputs = " ".join(f"--input {name}={folder}/readings/{name}.parquet" for name in store.readings)
    console.print(f"  .venv/bin/kleene match {folder}/queries/shoplifting.sase {inputs} --order-by ts", soft_wrap=True)
    return correct


def _write_store(store: RetailStore, folder: Path) -> None:
    (folder / "readings").mkdir(parents=True, exist_ok=True)
    for name, table in store.readings.items():
        pq.write_table(table, folder / "readings" / f"{name}.parquet")
    shutil.copytree(QUERIES, folder / "queries", dirs_exist_ok=True)


if __name__ == "__main__":
    sys.exit(0 if main(Path("demo_output")) else 1)
