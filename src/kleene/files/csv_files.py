"""CSV files as Arrow tables: a column has the first of `CANDIDATES` that fits every value in every file.

Whole numbers that neither integers nor floats can hold exactly make a column of texts.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kleene.errors import KleeneWarning, SchemaError, printable
from kleene.files.exact import has_large, is_large_whole
from kleene.files.found import Form
from kleene.wording import said

Read = TypeVar("Read")
_BLOCK = 8 << 20
_LOOKED_AT = 50_000
PLAIN = Form()
TIMES = (
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)
CANDIDATES = (pa.null(), pa.int64(), pa.float64(), pa.bool_(), *TIMES, pa.string())


class MisfitError(Exception):
    """A value of the column is not of the type that the column was read as; `only_text`: only texts hold it exactly."""

    def __init__(self, column: str, words: str, only_text: bool = False) -> None:
        super().__init__(words)
        self.column = column
        self.only_text = only_text


MISSING = frozenset(("NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", "?", "."))
"""Texts that people write for a missing value; only those that the caller names are read so."""


def settled_csv(
    files: Sequence[Path], form: Form, read: Callable[[Path, pa.Schema, Form], Read]
) -> tuple[pa.Schema, list[Read]]:
    """The columns of all the files, each with a type that fits its values, and what `read` made of each file so."""
    ranks: dict[str, int] = {}
    for file in files:
        for field in _sampled(file, form):
            ranks[field.name] = max(ranks.get(field.name, 0), _rank(field.type))
    told = dict(form.types)
    while True:
        schema = pa.schema([(name, told.get(name, CANDIDATES[rank])) for name, rank in ranks.items()])
        try:
            return schema, [read(file, schema, form) for file in files]
        except MisfitError as misfit:
            if misfit.column in told or CANDIDATES[ranks[misfit.column]] == pa.string():
                raise SchemaError(str(misfit)) from None
            ranks[misfit.column] = _rank(pa.string()) if misfit.only_text else ranks[misfit.column] + 1


def warn_of_missing(table: pa.Table) -> None:
    """Tells of columns that hold texts only because of a text that often means a missing value."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type != pa.string():
            continue
        few = column.slice(0, _LOOKED_AT).drop_null().unique()
        is_missing = pc.is_in(few, pa.array(sorted(MISSING)))
        if not pc.any(is_missing).as_py() or not _are_numbers(few.filter(pc.invert(is_missing))):
            continue
        value = few.filter(is_missing)[0].as_py()
        way_out = said(python="read it with pandas.read_csv, or leave such fields empty", shell=f"add --null {value}")
        warnings.warn(
            f"the column '{printable(name)}' holds texts, since the file has '{value}' in it; "
            f"if that means a missing value, {way_out}",
            KleeneWarning,
            stacklevel=3,
        )


def _are_numbers(texts: pa.Array) -> bool:
    try:
        return len(texts.cast(pa.float64())) > 0
    except pa.ArrowInvalid:
        return False


def csv_table(file: Path, schema: pa.Schema, form: Form = PLAIN) -> pa.Table:
    """The rows of the file as they fit the schema, by the names of its columns: NULL where the file has none.

    A value that does not fit raises a `MisfitError`.
    """
    with _misfits(file, schema, form):
        table = pyarrow.csv.read_csv(str(file), **_options(form, schema)).cast(schema)
        for field in schema:
            if has_large(table.column(field.name)):
                _check_exact(file, field, form)
        return table


def csv_batches(file: Path, schema: pa.Schema, form: Form = PLAIN) -> Iterator[pa.RecordBatch]:
    """The same rows, some megabytes at a time."""
    with _misfits(file, schema, form), pyarrow.csv.open_csv(str(file), **_options(form, schema)) as reader:
        unchecked = set(schema.names)
        for batch in reader:
            for name in sorted(unchecked):
                if has_large(pa.chunked_array([batch.column(name)])):
                    _check_exact(file, schema.field(name), form)
                    unchecked.remove(name)
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _check_exact(file: Path, field: pa.Field, form: Form) -> None:
    """An error if the column, which is of floats, has whole numbers in the file that they would round."""
    as_text = _options(form, pa.schema([(field.name, pa.string())]))
    with pyarrow.csv.open_csv(str(file), **as_text) as reader:
        for batch in reader:
            column = batch.column(0)
            few = column.filter(pc.greater_equal(pc.binary_length(column), 16))
            found = next((text for text in few.to_pylist() if is_large_whole(text)), None)
            if found is not None:
                where = f"the column '{printable(field.name)}' of '{printable(str(file))}'"
                words = f"{where} has '{printable(found)}', which is too large to be exact as a float"
                raise MisfitError(field.name, words, only_text=True)


@contextmanager
def _misfits(file: Path, schema: pa.Schema, form: Form) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        found = re.match(r"In CSV column #(\d+): (.*)", str(error), re.DOTALL)
        if found is None:
            raise
        column = _sampled(file, form).names[int(found[1])]
        raise _misfit(file, schema.field(column), found[2]) from None


def _misfit(file: Path, field: pa.Field, words: str) -> MisfitError:
    value = re.search(r"invalid value '(.*)'", words, re.DOTALL)
    what = f"'{printable(value[1])}', which" if value else "a value that"
    problem = "not UTF-8" if not value and "UTF8" in words else f"not of type {field.type}"
    where = f"the column '{printable(field.name)}' of '{printable(str(file))}'"
    return MisfitError(field.name, f"{where} has {what} is {problem}")


def _sampled(file: Path, form: Form) -> pa.Schema:
    """The columns with the types that Arrow takes the first values for."""
    with pyarrow.csv.open_csv(str(file), **_options(form)) as reader:
        schema: pa.Schema = reader.schema
    try:
        names = schema.names
    except UnicodeDecodeError:
        raise SchemaError(
            f"the first line of '{printable(str(file))}', which names the columns, is not UTF-8",
            hint="Write the file in UTF-8; iconv converts files from other encodings.",
        ) from None
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise SchemaError(
            f"the column '{printable(twice[0])}' occurs twice in '{printable(str(file))}'",
            hint="Give each column a name of its own in the first line of the file.",
        )
    return schema


def _options(form: Form, schema: pa.Schema | None = None) -> dict[str, Any]:
    types = {} if schema is None else {field.name: field.type for field in schema}
    return {
        "read_options": pyarrow.csv.ReadOptions(block_size=_BLOCK),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            null_values=list(form.nulls),
            strings_can_be_null=True,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            column_types=types,
            include_columns=list(types),
            include_missing_columns=schema is not None,
        ),
    }


def _rank(type_: pa.DataType) -> int:
    """Where the search for a column's type begins, by what Arrow takes the first values for."""
    if pa.types.is_timestamp(type_):
        return CANDIDATES.index(pa.timestamp("us", type_.tz))
    return CANDIDATES.index(type_ if type_ in CANDIDATES else pa.string())
