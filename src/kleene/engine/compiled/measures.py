"""RETURN as machine code: values of many matches at once.

Values that are those of an event are taken from the input's columns (`engine/output.py`). What is computed, aggregates
above all, is computed here, in a module of its own, since few matches are not worth compiling it. What has no code is
left to the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.conversions import type_of
from kleene.engine.compiled.arrangement import as_arguments
from kleene.engine.compiled.batches import arguments, nullable_names, one_group
from kleene.engine.compiled.code import Code, check_source
from kleene.engine.compiled.columns import Array, Dictionary, Layout
from kleene.engine.compiled.failures import GaveUpError, NotExpressibleError
from kleene.engine.compiled.programs import Compiled, GeneratedCode, made_of
from kleene.engine.compiled.sase_readers import OfMatch, of_match_in_rows
from kleene.engine.matches import FlatMatches
from kleene.engine.output import arrow_numbers, arrow_type, arrow_values, is_taken
from kleene.ir import expr as ir
from kleene.schema import FLOAT, STRING, DecimalType, Type, is_nested

FEW = 1_000
"""So many matches the interpreter computes sooner than machine code is made; those of all pieces of a stream count."""


@dataclass(frozen=True, slots=True)
class GeneratedMeasures(GeneratedCode):
    """`computed` are the numbers of the measures that the code computes, in the order of its outputs."""

    computed: tuple[int, ...]


class MeasureProgram(Compiled[GeneratedMeasures]):
    """`nullable` are columns that have NULLs in some table, though not in every one."""

    def __init__(self, query: AnalyzedQuery, jit: bool, nullable: frozenset[str] = frozenset()) -> None:
        super().__init__(lambda nullable: generate_measures(query, nullable, not jit), jit)
        self.query, self.nullable = query, nullable
        self.matches = 0  # so far


def generate_measures(query: AnalyzedQuery, nullable: frozenset[str], plain: bool = False) -> GeneratedMeasures:
    code, computed = Code(Layout(nullable, plain=plain), depth=2), list[int]()
    reader = of_match_in_rows(query, code)
    for number, measure in enumerate(query.measures or ()):
        if not is_taken(measure.expression) and _write(code, measure.expression, len(computed), reader):
            computed.append(number)
    code.lines = ["    for m in range(len(offsets) - 1):", *code.lines, "    return 0"]
    function = code.function("measures(whole, floats, nulls, offsets, lengths, p, columns, ki, kf)")
    made = made_of([function], code.layout, {"measures": "int64"})
    try:
        check_source(made[0])
    except NotExpressibleError:
        return GeneratedMeasures("", {}, code.layout, ())
    return GeneratedMeasures(*made, tuple(computed))


def _write(code: Code, expression: ir.Expr, output: int, reader: OfMatch) -> bool:
    """Code that writes the value; False if there is none."""
    mark, columns = len(code.lines), len(code.layout.columns)
    try:
        if is_nested(expression.type) or any(isinstance(node, ir.IfPresent) for node in ir.walk(expression)):
            return False
        value = code.scalar(expression, reader)
        code.return_if_bad(value, expression)
    except NotExpressibleError:
        del code.lines[mark:]
        del code.layout.columns[columns:], code.layout.has_mask[columns:]
        return False
    target = "floats" if expression.type == FLOAT else "whole"
    with code.block(f"if {value.null or 'False'}:"):
        code.line(f"nulls[m, {output}] = 1")
    with code.block("else:"):
        code.line(f"{target}[m, {output}] = {value.code}")
    return True


def computed_measures(program: MeasureProgram, table: pa.Table, matches: FlatMatches) -> dict[int, pa.Array]:
    """The columns that machine code computes, by the number of their measure; positions are those in the table."""
    query = program.query
    program.matches += len(matches)
    if not query.measures or not len(matches) or (program.jit and program.matches <= FEW):
        return {}
    nullable = program.nullable | nullable_names(table)
    generated = program.generated(nullable)
    if not generated.computed:
        return {}
    dictionary = Dictionary()
    rows = one_group(table.num_rows)
    try:
        given = arguments(generated.layout, table, query.schema, rows, dictionary)
    except GaveUpError:  # values of more digits than machine code has
        return {}
    shape = (len(matches), len(generated.computed))
    whole, floats, nulls = np.zeros(shape, np.int64), np.zeros(shape, np.float64), np.zeros(shape, np.uint8)
    with np.errstate(all="ignore"):
        measures = program.kernel(nullable).functions["measures"]
        status = measures(whole, floats, nulls, *as_arguments(matches), *given)
    if status != 0:
        return {}  # the interpreter knows what to say of it
    found: dict[int, pa.Array] = {}
    for output, number in enumerate(generated.computed):
        type_ = type_of(query.measures[number].expression)
        values = floats[:, output] if type_ == FLOAT else whole[:, output]
        found[number] = _arrow(values, nulls[:, output].astype(np.bool_), type_, dictionary)
    return found


def _arrow(values: Array, nulls: Array, type_: Type, dictionary: Dictionary) -> pa.Array:
    if type_ == STRING:
        return pa.array(dictionary.strings, pa.string()).take(pa.array(values, mask=nulls))
    if isinstance(type_, DecimalType):
        plain = [None if is_null else value for value, is_null in zip(values.tolist(), nulls.tolist(), strict=True)]
        return arrow_values(plain, type_, arrow_type(type_))
    return arrow_numbers(values, nulls, type_, arrow_type(type_))
