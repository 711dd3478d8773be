"""Which columns a kernel reads, and their values as arrays.

A kernel knows columns by number: attributes of the input, and values of one event that it cannot compute itself, such
as `lower(s)`, which are computed beforehand. Strings are codes in one dictionary. A column that has NULLs, or values
that could not be computed, comes with a mask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.compiled.arrays.statuses import FIRST_ERROR
from kleene.engine.compiled.failures import GaveUpError, NotExpressibleError
from kleene.engine.events import decoded, plain_values
from kleene.engine.vectorized import vectorized_column, vectorized_columns
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.calls import is_own
from kleene.ir.evaluate import MICROSECONDS_PER_DAY, evaluate, of_one_event, vectorized_key
from kleene.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    FLOAT,
    INTEGER,
    LARGEST_INTEGER,
    NULL,
    SMALLEST_INTEGER,
    STRING,
    TIME,
    DecimalType,
    DurationType,
    TimestampType,
    Type,
    duration,
    is_plain,
)

Array = np.ndarray[Any, Any]
IS_NULL, IS_BAD = 1, 2
"""In a mask: the value is NULL; computing it is an error, which counts only where the value is needed."""


def kind_of(type_: Type | None) -> str:
    """How a kernel holds a value: i and f are 64-bit numbers, b a boolean, s the code of a string."""
    if type_ == FLOAT:
        return "f"
    if type_ == BOOLEAN:
        return "b"
    return "s" if type_ == STRING else "i"


DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64, "b": np.uint8, "s": np.int64}
SIGNATURES = {"i": "int64[::1]", "f": "float64[::1]", "b": "uint8[::1]", "s": "int64[::1]"}


def times_signature(time_type: Type) -> str:
    """Of the times of events; where the order is by something else, nothing reads them."""
    return SIGNATURES["f" if time_type == FLOAT else "i"]


@dataclass(frozen=True, slots=True)
class Column:
    """A value that every event has: an attribute, or an expression over attributes of the one event."""

    expression: ir.Expr
    kind: str


@dataclass(frozen=True, slots=True)
class MissingFrom(ir.Expr):
    """Whether the event's type lacks one of the attributes (several inputs by name)."""

    attributes: tuple[str, ...]


@dataclass(slots=True)
class Layout:
    """The numbers that generated code uses for columns and constants, given out as they are asked for."""

    nullable: frozenset[str]
    columns: list[Column] = field(default_factory=list)
    has_mask: list[bool] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    floats: list[float] = field(default_factory=list)
    derived: set[int] = field(default_factory=set)  # integers that the code needs whatever the query's numbers are
    strings: dict[int, str] = field(default_factory=dict)  # by their number among the integers
    needs_ranks: bool = False
    errors: list[ir.Expr] = field(default_factory=list)
    plain: bool = False  # whether the code runs as Python, and so may call back into the interpreter
    called: dict[str, Any] = field(default_factory=dict)  # what the code calls beside its own functions, by name
    functions: dict[tuple[str, Any], tuple[str, str]] = field(default_factory=dict)  # and how it calls functions
    failures: dict[ir.Expr, ExecutionError] = field(default_factory=dict)  # what such calls said

    def column(self, expression: ir.Expr) -> int:
        """The number of the column for an expression over one event, whatever variable it is bound to."""
        own = of_one_event(expression)
        kind = kind_of(own.type)
        for number, column in enumerate(self.columns):
            # -0.0 and 0.0 are equal, and not the same.
            if column.expression == own and column.kind == kind and repr(column.expression) == repr(own):
                return number
        self.columns.append(Column(own, kind))
        is_plain = isinstance(own, ir.Attribute) and own.name not in self.nullable
        self.has_mask.append(not (is_plain or isinstance(own, MissingFrom)))
        return len(self.columns) - 1

    def integer(self, value: int) -> str:
        """The code that reads a whole number; small ones may stand in the code itself."""
        if -1000 <= value <= 1000:
            return str(value)
        for number, known in enumerate(self.integers):
            if known == value and number in self.derived:
                return f"ki[{number}]"
        if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            raise NotExpressibleError(f"a number of more than 64 bits ({value})")
        self.integers.append(value)
        self.derived.add(len(self.integers) - 1)
        return f"ki[{len(self.integers) - 1}]"

    def float_(self, value: float) -> str:
        for number, known in enumerate(self.floats):
            if (known == value and np.signbit(known) == np.signbit(value)) or (known != known and value != value):
                return f"kf[{number}]"
        self.floats.append(value)
        return f"kf[{len(self.floats) - 1}]"

    def given_integer(self, value: int) -> str:
        """The code that reads a whole number of the query's own: queries that differ in such numbers share code.

        Each has a place of its own, so that the code does not tell whether two of them are equal.
        """
        self.integers.append(value)
        return f"ki[{len(self.integers) - 1}]"

    def given_float(self, value: float) -> str:
        self.floats.append(value)
        return f"kf[{len(self.floats) - 1}]"

    def string(self, value: str) -> str:
        for number, known in self.strings.items():
            if known == value:
                return f"ki[{number}]"
        # A place of its own: the code is known only when the dictionary is.
        self.integers.append(0)
        self.strings[len(self.integers) - 1] = value
        return f"ki[{len(self.integers) - 1}]"

    def error(self, expression: ir.Expr) -> int:
        """The number that a kernel gives back when the expression cannot be computed."""
        self.errors.append(expression)
        return FIRST_ERROR - (len(self.errors) - 1)

    def failure(self, status: int) -> GaveUpError:
        """What the number means that a kernel has given back."""
        expression = self.errors[FIRST_ERROR - status]
        if not any(map(is_own, ir.walk(expression))):
            return GaveUpError(expression)
        nodes = (part for node in ir.walk(expression) for part in (node, of_one_event(node)))
        return GaveUpError(expression, next((self.failures[node] for node in nodes if node in self.failures), None))

    # --- functions of the user's own -----------------------------------------------------------------------------

    def call(self, called: Any) -> str:
        """The name by which plain code calls the object."""
        name = f"called_{len(self.called)}"
        self.called[name] = called
        return name

    def function(self, how: str, function: Any, written: Callable[[str, str], str], compiled: Any) -> str:
        """The name of the module's function that calls a function in this way; `written` gives its text, once.

        It is given that name, and the one by which the text calls what numba compiled.
        """
        if (how, function) not in self.functions:
            number = len(self.called)
            name, called = f"{how.split()[0]}_{number}", f"called_{number}"
            self.functions[how, function] = (name, written(name, called))
            self.called[called] = compiled
        return self.functions[how, function][0]

    def own_code(self) -> list[str]:
        """The functions of the module that call functions of the user's own."""
        return [text for _, text in self.functions.values() if text]

    def signature(self) -> str:
        """The type of the tuple of columns: the ranks of strings, then values and mask of each column."""
        parts = [f"{SIGNATURES[column.kind]}, uint8[::1]" for column in self.columns]
        return f"Tuple(({', '.join(['int64[::1]', *parts])},))"


class Dictionary:
    """The codes of strings, given out as strings appear; a string keeps its code."""

    def __init__(self, strings: list[str] | None = None) -> None:
        self.strings: list[str] = list(strings or ())
        self._codes = {text: code for code, text in enumerate(self.strings)}

    def code(self, text: str) -> int:
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.strings)
            self.strings.append(text)
        return found

    def codes(self, column: pa.ChunkedArray) -> Array:
        """The code of each value; of NULL, 0."""
        encoded = encoded_values(column)
        texts = encoded.dictionary.to_pylist()
        indices: Array = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        if not self.strings:
            self.strings = texts
            self._codes = {text: code for code, text in enumerate(texts)}
            return indices
        own = np.array([self.code(text) for text in texts] or [0], np.int64)
        found: Array = own[indices]
        return found

    def kept(self, codes: Array) -> tuple[Dictionary, Array]:
        """A dictionary of these codes' strings alone, and the new codes."""
        own, new = np.unique(codes, return_inverse=True)
        return Dictionary([self.strings[code] for code in own.tolist()]), new

    def ranks(self) -> Array:
        """For each code, its place in the order of code points."""
        order = sorted(range(len(self.strings)), key=self.strings.__getitem__)
        ranks = np.empty(max(len(order), 1), np.int64)
        ranks[order] = np.arange(len(order))
        return ranks


@dataclass(frozen=True, slots=True)
class OneRow:
    """The event at a row, for expressions over one event."""

    columns: dict[str, list[Any]]
    row: int

    def value(self, expression: ir.Expr) -> Any:
        if isinstance(expression, ir.Attribute):
            return self.columns[expression.name][self.row]
        if isinstance(expression, ir.IfPresent):
            return evaluate(expression.predicate, self)
        if isinstance(expression, ir.PythonCall):
            return self.columns[vectorized_key(expression)][self.row]
        raise AssertionError(f"{type(expression).__name__} is not of one event")


def attribute_array(table: pa.Table, name: str, type_: Type, dictionary: Dictionary) -> tuple[Array, Array]:
    """The attribute's values and its mask; a mask of no length says that there are no NULLs."""
    column = table.column(name)
    if type_ == STRING:
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        return dictionary.codes(column), _null_mask(column)
    if not is_plain(type_):
        return np.zeros(len(column), np.int64), _null_mask(column)  # only whether it is NULL can be asked
    if type_ == NULL:
        return np.zeros(len(column), np.int64), np.full(len(column), IS_NULL, np.uint8)
    if isinstance(type_, DecimalType):
        unscaled = _unscaled(decoded(column), type_.scale)
        if unscaled is None:  # more digits than machine code computes with
            raise GaveUpError(ir.Attribute(None, name))
        return unscaled, _null_mask(column)
    numbers = _numbers(column, type_)
    if numbers is None:
        plain_values(column, type_, name)  # says what is wrong with it
        raise AssertionError(name)
    return numbers, _null_mask(column)


def check_readable(column: pa.ChunkedArray, type_: Type, name: str) -> None:
    """An error where times are finer than the microseconds that are computed with."""
    if isinstance(type_, (TimestampType, DurationType)) or type_ in (TIME, DATE):
        attribute_array(pa.table({name: column}), name, type_, Dictionary())


_CASTS: dict[Type, tuple[pa.DataType, ...]] = {
    INTEGER: (pa.int64(),),
    FLOAT: (pa.float64(),),
    DATE: (pa.date32(), pa.int32(), pa.int64()),
    TIME: (pa.time64("us"), pa.int64()),
    DURATION: (pa.duration("us"), pa.int64()),
    duration("ns"): (pa.duration("ns"), pa.int64()),
    BOOLEAN: (pa.uint8(),),
}


def _numbers(column: pa.ChunkedArray, type_: Type) -> Array | None:
    steps = _CASTS.get(type_, ())
    if isinstance(type_, TimestampType):
        steps = (pa.timestamp(type_.unit, column.type.tz), pa.int64())
    try:
        for step in steps:
            column = column.cast(step)
    except pa.ArrowInvalid:
        return None
    if column.null_count:
        column = pc.fill_null(column, 0)
    return not_read_only(np.ascontiguousarray(column.to_numpy(), DTYPES[kind_of(type_)]))


def _unscaled(column: pa.ChunkedArray, scale: int) -> Array | None:
    """Decimals without their point, or unsigned numbers, as 64-bit numbers; None if one does not fit. NULL is 0."""
    if pa.types.is_integer(column.type):
        numbers = pc.fill_null(column, 0).to_numpy()
        return numbers.astype(np.int64) if not (numbers > LARGEST_INTEGER).any() else None
    parts = [np.empty(0, np.int64)]
    for chunk in pc.fill_null(column.cast(pa.decimal128(38, scale)), 0).chunks:
        words = np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2)[chunk.offset : chunk.offset + len(chunk)]
        low, high = words[:, 0], words[:, 1]
        if (high != low >> 63).any():  # the higher word is more than the sign of the lower one
            return None
        parts.append(low)
    return np.concatenate(parts)


def _null_mask(column: pa.ChunkedArray) -> Array:
    if not column.null_count:
        return np.empty(0, np.uint8)
    return not_read_only(np.ascontiguousarray(pc.is_null(column).to_numpy(), np.uint8))


class _Borrowed:
    """Memory of Arrow's, held for as long as an array looks at it."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def not_read_only(array: Array) -> Array:
    """The same memory, not marked read-only: machine code is typed for arrays that are not. It never writes there."""
    if array.flags.writeable:
        return array
    return np.asarray(_Borrowed(array)) if array.size else array.copy()


def computed_array(
    expression: ir.Expr,
    table: pa.Table,
    types: dict[str, Type],
    dictionary: Dictionary,
    failures: dict[ir.Expr, ExecutionError],
) -> tuple[Array, Array]:
    """The values of an expression over one event, computed by the interpreter, once for each combination of values."""
    if isinstance(expression, ir.PythonCall) and expression.vectorized and expression.type == BOOLEAN:
        column = vectorized_column(expression, table, types)
        return attribute_array(pa.table({"found": column}), "found", BOOLEAN, dictionary)
    names = sorted({node.name for node in ir.walk(expression) if isinstance(node, ir.Attribute)})
    vectorized = vectorized_columns([expression], table, types)
    numbers, count = (np.arange(table.num_rows), table.num_rows) if vectorized else _combinations(table, names)
    first = np.zeros(count, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    examples = table.select(names).take(pa.array(first)) if names else table.slice(0, 1)
    columns = {name: plain_values(examples.column(name), types[name], name) for name in names} | vectorized
    kind = kind_of(expression.type)
    values = np.zeros(max(count, 1), DTYPES[kind])
    mask = np.zeros(max(count, 1), np.uint8)
    for number in range(count):
        try:
            value = evaluate(expression, OneRow(columns, number))
        except ExecutionError as error:
            failures.setdefault(expression, error)
            mask[number] = IS_BAD
            continue
        if value is None:
            mask[number] = IS_NULL
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            mask[number] = IS_BAD  # a number that only an implicit conversion made too wide
        else:
            values[number] = dictionary.code(value) if kind == "s" else value
    return values[numbers], mask[numbers]


def encoded_values(column: pa.ChunkedArray, nulls: str = "mask") -> pa.DictionaryArray:
    """The column with its values numbered, as they are where they are numbered already."""
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        encoded = encoded.dictionary_encode(null_encoding=nulls)
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _combinations(table: pa.Table, names: list[str]) -> tuple[Array, int]:
    """For each row, the number of its combination of values; and how many there are."""
    numbers, count = np.zeros(table.num_rows, np.int64), 1 if table.num_rows else 0
    for name in names:
        column = decoded(table.column(name))
        if pa.types.is_nested(column.type):  # Arrow cannot number their values
            return np.arange(table.num_rows), table.num_rows
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.decimal128(38, column.type.scale))  # Arrow encodes no narrow ones
        encoded = encoded_values(column, "encode")
        own = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
        numbers = numbers * max(len(encoded.dictionary), 1) + own
        _, numbers = np.unique(numbers, return_inverse=True)
        count = int(numbers.max()) + 1 if len(numbers) else 0
    return numbers, count


def times_array(table: pa.Table, name: str, type_: Type) -> Array:
    """The time of each event, in microseconds where it is a date; NULLs are 0 and must not be looked at."""
    values, _ = attribute_array(table, name, type_, Dictionary())
    if type_ != DATE:
        return values
    if len(values) and int(np.abs(values).max()) > 2**62 // MICROSECONDS_PER_DAY:
        raise GaveUpError(ir.Attribute(None, name))
    return values * MICROSECONDS_PER_DAY
