"""A SQL text over files, in process or on an embedded Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kleene.api import last_notes, sql
from kleene.cli.console import note_warning
from kleene.cli.matching import on_spark
from kleene.cli.reading import read_tables
from kleene.cli.showing import Result, Screen
from kleene.errors import AnalysisError, printable
from kleene.files import EventFiles, write_arrow

NAME = "query"
_ROWS = ("row", "rows")


def sql_in_process(
    text: str, args: dict[str, Any] | None, tables: dict[str, EventFiles], paths: dict[str, Path], screen: Screen
) -> int:
    table = sql(text, args=args, tables=read_tables(tables), as_="arrow")
    if NAME in paths:
        write_arrow(table, paths[NAME])
    screen.show(Result(NAME, table.schema, table.num_rows, screen.first_of(table), _ROWS), [NAME], paths)
    return int(table.num_rows)


def sql_on_spark(
    text: str, args: dict[str, Any] | None, tables: dict[str, EventFiles], paths: dict[str, Path], screen: Screen
) -> int:
    with on_spark() as session:
        from kleene.spark.files import read_spark, write_spark
        from kleene.spark.names import quoted

        for name, files in tables.items():
            read_spark(session, files).createOrReplaceTempView(quoted(name))
        frame = _on_spark(session, text, args).persist()
        rows = (frame if screen.limit is None else frame.limit(screen.limit)).toArrow()
        if NAME in paths:
            write_spark(frame, paths[NAME])
        result = Result(NAME, rows.schema, frame.count(), rows, _ROWS)
        notes = last_notes(frame)
    screen.show(result, [NAME], paths)
    for told in notes:
        note_warning(told)
    return result.count


def _on_spark(session: Any, text: str, args: dict[str, Any] | None) -> Any:
    try:
        return sql(session, text, args)
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if not kinds & {"AnalysisException", "ParseException"}:
            raise
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise AnalysisError(f"Spark refuses the text: {printable(lines[0], 300)}") from None
