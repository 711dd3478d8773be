"""Anything that holds events to a `Source`: its columns, known before they are read, and a way to read some of them."""

from __future__ import annotations

import importlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kleene.errors import SchemaError, printable, shown


@dataclass(frozen=True, slots=True)
class Source:
    """Columns of unique names, in their order. `read` gives those that are asked for, encoded as they are.

    `hint` tells of what is not a column, and might be taken for one.
    """

    columns: pa.Schema
    read: Callable[[Sequence[str]], pa.Table]
    hint: str = ""
    ordered: frozenset[str] = frozenset()  # categories that have an order of their own, not that of their texts


def make_source(events: object, what: str, mentioned: Container[str] | None) -> Source:
    """The source that the events are. `mentioned` are the names that the query uses; None if it uses every column.

    >>> make_source([{"t": 1}, {"t": 2, "price": 5.0}], "the input", None).read(["price"]).to_pylist()
    [{'price': None}, {'price': 5.0}]
    """
    try:
        source = _opened(events, what, mentioned)
    except SchemaError:
        raise
    except Exception as error:  # the events are somebody else's code, and may raise anything
        raise _unreadable(events, what, error) from None
    types = ((field.name, field.type) for field in source.columns)
    ordered = frozenset(name for name, type_ in types if pa.types.is_dictionary(type_) and type_.ordered)
    return _with_unique_names(replace(source, ordered=ordered | source.ordered), what, mentioned)


def held(events: Any) -> Any:
    """The events as something that can be read more than once."""
    if isinstance(events, Mapping):
        return {name: held(part) for name, part in events.items()}
    return events.read_all() if isinstance(events, pa.RecordBatchReader) else events


def _unreadable(events: object, what: str, error: Exception) -> SchemaError:
    return SchemaError(
        f"{what}, of type {type(events).__name__}, cannot be read: {type(error).__name__}: {first_line(error)}",
        hint="Convert it to a pyarrow.Table first.",
    )


def first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return printable(lines[0], 200) if lines else type(error).__name__


def _opened(events: Any, what: str, mentioned: Container[str] | None) -> Source:
    package = type(events).__module__.split(".")[0]
    if isinstance(events, Source):
        return events
    if isinstance(events, pa.Table):
        return _of_table(events)
    if isinstance(events, pa.RecordBatch):
        return _of_table(pa.Table.from_batches([events]))
    if isinstance(events, pa.RecordBatchReader):
        return _of_table(events.read_all())
    # By name, so that asking imports nothing.
    if type(events).__module__ == "kleene.scanning.scan":
        whole: Source = events.source()
        return whole
    if type(events).__module__ == "pyarrow._dataset":
        if hasattr(events, "schema"):
            return Source(events.schema, lambda names: events.to_table(columns=list(names)))
        return _of_table(events.to_table())
    if package == "pandas" and hasattr(events, "columns"):
        return _of_pandas(events, mentioned)
    if package == "polars" and hasattr(events, "collect_schema"):
        return _of_polars(events, mentioned)
    if hasattr(events, "__arrow_c_stream__"):
        return _of_table(_streamed(events))
    fetch = getattr(events, "to_arrow_table", None) or getattr(events, "fetch_arrow_table", None)
    if fetch is not None:  # the result of a query that DuckDB ran
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it advises another way to the same table
            return _of_table(fetch())
    if isinstance(events, (str, os.PathLike)):
        files = importlib.import_module("kleene.files")  # it knows pandas, which takes a while to import
        return _of_table(files.read_arrow(files.find_files(Path(events))))
    if isinstance(events, list) and all(isinstance(row, dict) for row in events):
        return _of_table(_table_of_rows(events, what))
    raise SchemaError(
        f"{what} is {shown(events)}, which Kleene cannot read as events",
        hint="Events can be a pyarrow Table, Dataset or RecordBatchReader, a pandas or polars frame, a DuckDB "
        "relation, a Spark DataFrame, a kleene.scan of files, a list of dicts, the path of a Parquet, Arrow, CSV or "
        "JSON file, anything else with the Arrow C stream protocol, or a dict of such things by event type.",
    )


def _streamed(events: Any) -> pa.Table:
    return pa.RecordBatchReader.from_stream(events).read_all()


def _of_table(table: pa.Table, hint: str = "") -> Source:
    positions = {name: number for number, name in enumerate(table.column_names)}
    return Source(table.schema, lambda names: table.select([positions[name] for name in names]), hint)


def _with_unique_names(source: Source, what: str, mentioned: Container[str] | None) -> Source:
    """The source without columns that share a name; an error if the query uses one of them."""
    twice = [name for name, count in Counter(source.columns.names).items() if count > 1]
    used = next((name for name in twice if mentioned is None or name in mentioned), None)
    if used is not None:
        raise SchemaError(f"{what} has two columns '{printable(used)}'", hint="Rename one of them.")
    if not twice:
        return source
    return replace(source, columns=pa.schema([column for column in source.columns if column.name not in twice]))


def _of_polars(frame: Any, mentioned: Container[str] | None) -> Source:
    """A polars frame, lazy or not. Columns that are not read are not even asked for their types."""

    def read(names: Sequence[str], rows: Any = frame) -> pa.Table:
        chosen = rows.select(*names)
        return _streamed(chosen.collect() if hasattr(chosen, "collect") else chosen)

    schema = frame.collect_schema()
    names = schema.names()
    used = [name for name in names if mentioned is None or name in mentioned]
    types = {field.name: field.type for field in read(used, frame.head(0)).schema} if used else {}
    # Older versions do not tell Arrow that their enumerations have an order.
    ordered = frozenset(name for name in used if type(schema[name]).__name__ == "Enum")
    return Source(pa.schema([(name, types.get(name, pa.null())) for name in names]), read, ordered=ordered)


def _of_pandas(frame: Any, mentioned: Container[str] | None) -> Source:
    """A pandas DataFrame. Its index is not a column, unless the query asks for it by name."""
    asked = [name for name in frame.index.names if mentioned is not None and name in mentioned]
    asked = [name for name in asked if name not in frame.columns]
    is_plain = type(frame.index).__name__ == "RangeIndex" and frame.index.names == [None]
    hint = "" if asked or is_plain else " The index is not a column: call reset_index() first."
    if asked:
        frame = frame.reset_index(level=asked)
    columns = []
    for number, name in enumerate(map(str, frame.columns)):
        is_read = mentioned is None or name in mentioned
        columns.append(_pandas_column(frame.iloc[:, number], name) if is_read else pa.nulls(len(frame)))
    return _of_table(pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns]), hint)


def _pandas_column(series: Any, name: str) -> Any:
    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise SchemaError(
            f"the column '{printable(name)}' of type {series.dtype} cannot be read: {first_line(error)}",
            hint="Give all its values the same type, or leave it out of the query.",
        ) from None


def _table_of_rows(rows: list[dict[Any, Any]], what: str) -> pa.Table:
    """Rows with the columns that any of them has."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(f"{what} has a column {shown(name)}, but the name of a column is text")
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise SchemaError(
                f"the values of '{printable(name)}' in {what} have no common type: {first_line(error)}",
                hint="Give all of them the same type, or make a pyarrow.Table with a schema.",
            ) from None
    return pa.table(columns)
