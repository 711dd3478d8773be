"""A schema that the user declares, so that Kleene need not ask Spark for it, to Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kleene.call import Call
from kleene.engine.inputs import check_names, mentioned_names
from kleene.errors import SchemaError, UnsupportedError, printable, shown
from kleene.spark.schema import arrow_schema

_HINT = "Give a pyspark StructType, a pyarrow.Schema, or columns as Spark's SQL declares them: 'tag STRING, t BIGINT'."


def declared_columns(schema: Any, call: Call, zone: str | None = None) -> pa.Schema:
    """The columns of a declared schema as Spark will hand them over; `zone` is that of the session, if it is known."""
    used = mentioned_names(call.definition, call.order, call.type_column)
    columns = arrow_schema(_struct_of(schema), zone or _zone_of_active_session(), used)
    check_names(columns.names, "the schema")
    ours = next((name for name in columns.names if name.startswith("__kleene_")), None)
    if ours is not None:
        raise SchemaError(f"the schema has a column '{ours}', a name that Kleene uses", hint="Rename it.")
    return columns


def _struct_of(schema: Any) -> StructType:
    match schema:
        case StructType():
            return schema
        case pa.Schema():
            return _of_arrow(schema)
        case str():
            return _parsed(schema)
    raise SchemaError(f"schema takes the columns of the input, but {shown(schema)} was given", hint=_HINT)


def _of_arrow(schema: pa.Schema) -> StructType:
    plain = pa.schema([pa.field(field.name, _decoded(field.type)) for field in schema])
    try:
        return from_arrow_schema(plain)
    except (PySparkException, NotImplementedError) as error:
        raise SchemaError(
            f"the schema has a column that Spark does not know: {_first_line(error)}",
            hint="Declare it with the type that it has in Spark.",
        ) from None


def _decoded(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _parsed(text: str) -> StructType:
    """Spark's own parser reads the text; in a query function of a pipeline it may not be asked."""
    try:
        found = StructType.fromDDL(text)
    except Exception as error:  # of many kinds: no session, no such type, a pipeline that forbids it
        if _is_of_pipeline(error):
            raise SchemaError(
                "a query function of a pipeline cannot use Spark's parser to read a schema",
                hint="Give a pyspark StructType or a pyarrow.Schema.",
            ) from None
        raise SchemaError(f"Spark cannot read the schema: {_first_line(error)}", hint=_HINT) from None
    if not isinstance(found, StructType):  # the name of a type alone
        raise SchemaError(f"the schema is {found.simpleString()}, but columns are wanted", hint=_HINT)
    return found


@contextmanager
def asking_spark() -> Iterator[None]:
    """While open, Spark is asked for what it knows of a DataFrame, which a pipeline may forbid."""
    try:
        yield
    except PySparkException as error:
        if not _is_of_pipeline(error):
            raise
        raise UnsupportedError(
            "a query function of a pipeline cannot ask Spark for the columns of a DataFrame",
            hint="Say what they are: schema=StructType([…]).",
        ) from None


def _is_of_pipeline(error: BaseException) -> bool:
    return "ATTEMPT_ANALYSIS_IN_PIPELINE" in str(error)


def _zone_of_active_session() -> str:
    session = SparkSession.getActiveSession()
    return "UTC" if session is None else session.conf.get("spark.sql.session.timeZone") or "UTC"


def _first_line(error: BaseException) -> str:
    return printable(next(iter(str(error).splitlines()), type(error).__name__), 200)
