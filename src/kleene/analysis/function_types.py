"""Types of calls: what each function takes, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kleene.analysis.conversions import (
    alike,
    can_cast,
    cast_to,
    common_type,
    need,
    need_equality,
    need_order,
    type_of,
)
from kleene.analysis.scope import Scope
from kleene.errors import listed
from kleene.ir import expr as ir
from kleene.ir.functions import regexes, times
from kleene.ir.functions.names import field_name
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    NULL,
    STRING,
    UNKNOWN,
    ArrayType,
    DurationType,
    MapType,
    TimestampType,
    Type,
    a_type,
    array,
    decimal,
    fits_everywhere,
    is_numeric,
    is_plain,
    map_of,
    struct,
    timestamp,
)

_OF_DATES = ("date_add", "date_diff", "date_sub")
_NESTED = (
    *("array", "array_contains", "array_join", "array_max", "array_min", "element_at", "map", "map_from_arrays"),
    *("map_keys", "map_values", "named_struct", "size", "struct"),
)
_TESTS = ("contains", "endswith", "regexp_like", "startswith")
_TEXTS = ("left", "lpad", "ltrim", "replace", "reverse", "right", "rpad", "rtrim", "split_part", "substring", "trim")
_SAME = {"cardinality": "size", "datediff": "date_diff", "dayofmonth": "day", "ifnull": "coalesce", "nvl": "coalesce"}


def typed_call(call: ir.Function, arguments: list[ir.Expr], scope: Scope) -> ir.Expr:
    """The call of a function that there is, over its arguments, which are typed already."""
    return _Call(call, arguments, scope).typed()


@dataclass(frozen=True, slots=True)
class _Call:
    call: ir.Function
    arguments: list[ir.Expr]
    scope: Scope

    def typed(self) -> ir.Expr:
        match self.call.name:
            case "if":
                return self._choice(self._condition(), self.arguments[1:])
            case "nvl2":
                is_null = ir.IsNull(self.arguments[0], span=self.arguments[0].span, type=BOOLEAN)
                return self._choice(is_null, self.arguments[:0:-1])
        name = _SAME.get(self.call.name, self.call.name)
        arguments, result = self._types(name)
        return replace(self.call, name=name, arguments=tuple(arguments), type=result)

    def _types(self, name: str) -> tuple[Sequence[ir.Expr], Type]:
        given = self.arguments
        match name:
            case "concat" | "reverse" if any(isinstance(item.type, ArrayType) for item in given):
                return self._alike()
            case "lower" | "upper" | "concat":
                return [self._string(item) for item in given], STRING
            case "length":
                return [self._string(given[0])], INTEGER
            case "sqrt" | "ln" | "exp" | "power" | "sign":
                return [cast_to(self._number(item), FLOAT) for item in given], FLOAT
            case "floor" | "ceil":
                return [self._number(given[0])], INTEGER
            case "abs":
                fits = is_numeric(type_of(given[0])) or isinstance(given[0].type, DurationType)
                self._need(given[0], fits, "a number")
                return given, type_of(given[0])
            case "round":
                return self._round()
            case "pmod":
                for item in given:
                    self._number(item)
                return self._alike()
            case "nullif":
                return self._nullif()
            case "concat_ws":
                return [self._text(given[0]), *(self._texts(item) for item in given[1:])], STRING
            case "instr" | "locate":
                return [*map(self._text, given[:2]), *map(self._whole, given[2:])], INTEGER
        if name in _NESTED:
            return self._nested(name)
        if name in _TESTS:
            return self._test(name)
        if name in _TEXTS:
            return [
                self._whole(item) if _is_count(name, at) else self._text(item) for at, item in enumerate(given)
            ], STRING
        if name in _OF_DATES or name in times.OF_DATE or name in times.OF_CLOCK:
            return self._time(name)
        match name:
            case "date_part":
                return self._part()
            case "date_trunc":
                return self._truncated()
            case "unix_timestamp":
                return [self._moment(given[0], "TIMESTAMP '2024-01-31 10:00:00'")], INTEGER
        if name != "coalesce":
            for item in given:
                need_order(item, self.scope, self._who)
        return self._alike()  # coalesce, greatest, least

    # --- what arguments must be ------------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        is_operator = self.call.name == "concat" and self.scope.source.text[self.call.name_span.start :].startswith(
            "||"
        )
        return "||" if is_operator else self.call.name

    def _need(self, operand: ir.Expr, fits: bool, what: str, hint: str | None = None) -> ir.Expr:
        need(operand, self.scope, self._who, fits, what, hint)
        return operand

    def _string(self, operand: ir.Expr) -> ir.Expr:
        return self._need(operand, operand.type == STRING, "a string", "Convert it: CAST(… AS string)")

    def _text(self, operand: ir.Expr) -> ir.Expr:
        """A string, or what is written as one, as Spark has it."""
        fits = operand.type == STRING or can_cast(type_of(operand), STRING)
        return cast_to(self._need(operand, fits, "a string", "Convert it: CAST(… AS string)"), STRING)

    def _texts(self, operand: ir.Expr) -> ir.Expr:
        """A string, or an array of strings."""
        return self._array_of_texts(operand) if isinstance(operand.type, ArrayType) else self._text(operand)

    def _array_of_texts(self, operand: ir.Expr) -> ir.Expr:
        element = self._array(operand)
        fits = fits_everywhere(element) or element == STRING or can_cast(element, STRING)
        return cast_to(self._need(operand, fits, "an array of strings"), array(STRING))

    def _array(self, operand: ir.Expr) -> Type:
        """The type of the elements of an array, which the operand must be."""
        self._need(operand, isinstance(operand.type, ArrayType), "an array")
        return operand.type.element if isinstance(operand.type, ArrayType) else NULL

    def _number(self, operand: ir.Expr) -> ir.Expr:
        return self._need(operand, is_numeric(type_of(operand)), "a number", "Convert it: CAST(… AS float)")

    def _whole(self, operand: ir.Expr) -> ir.Expr:
        return self._need(operand, operand.type == INTEGER, "a whole number", "Convert it: CAST(… AS integer)")

    def _condition(self) -> ir.Expr:
        return self._need(self.arguments[0], self.arguments[0].type == BOOLEAN, "a condition first")

    def _moment(self, operand: ir.Expr, example: str) -> ir.Expr:
        fits = operand.type == DATE or isinstance(operand.type, TimestampType)
        hint = f"Convert it, for a string does not say in which zone it is: CAST(… AS timestamp), {example}."
        return self._need(operand, fits, "a date or a time", hint)

    def _date(self, operand: ir.Expr, to: Type) -> ir.Expr:
        """A date or a time; a string that writes one will do."""
        fits = operand.type in (DATE, STRING) or isinstance(operand.type, TimestampType)
        self._need(operand, fits, "a date or a time", "Write: DATE '2024-01-31', or convert it: CAST(… AS date)")
        return cast_to(operand, to) if operand.type == STRING else operand

    # --- functions -------------------------------------------------------------------------------------------------

    def _alike(self) -> tuple[list[ir.Expr], Type]:
        arguments = alike(self.call.arguments, self.arguments, self.scope, f"use {self.call.name}", self.call.span)
        common = common_type(map(type_of, arguments))
        assert common is not None
        return arguments, common

    def _choice(self, condition: ir.Expr, values: list[ir.Expr]) -> ir.Expr:
        written = self.call.arguments[1:] if self.call.name == "if" else self.call.arguments[:0:-1]
        one, other = alike(written, values, self.scope, f"choose with {self.call.name}", self.call.span)
        common = common_type((type_of(one), type_of(other)))
        return ir.Case(((condition, one),), other, span=self.call.span, type=common)

    def _nested(self, name: str) -> tuple[Sequence[ir.Expr], Type]:
        """Functions that make arrays, structs and maps, or take them apart."""
        given = self.arguments
        match name:
            case "array":
                arguments, element = self._alike() if given else ([], NULL)
                return arguments, array(element)
            case "struct":
                names = [field_name(item, number) for number, item in enumerate(self.call.arguments, 1)]
                return given, struct(zip(names, map(type_of, given), strict=True))
            case "named_struct":
                return given, self._named_struct()
            case "map":
                return self._map()
            case "map_from_arrays":
                return given, self._map_type(self._array(given[0]), self._array(given[1]))
            case "size":
                fits = isinstance(given[0].type, (ArrayType, MapType))
                return [self._need(given[0], fits, "an array or a map")], INTEGER
            case "map_keys" | "map_values":
                self._need(given[0], isinstance(given[0].type, MapType), "a map")
                found = given[0].type if isinstance(given[0].type, MapType) else map_of(NULL, NULL)
                return given, array(found.key if name == "map_keys" else found.value)
            case "array_join":
                return [self._array_of_texts(given[0]), *map(self._text, given[1:])], STRING
            case "array_max" | "array_min":
                element = self._array(given[0])
                self._need(given[0], is_plain(element), "an array of plain values")
                return given, element
            case "array_contains":
                return self._contains()
        return self._element_at()

    def _map_type(self, key: Type, value: Type) -> Type:
        if not is_plain(key):
            hint = "Keys are numbers, strings, dates, times and booleans."
            raise self.scope.fail(f"{a_type(key)} cannot be the key of a map", self.call.span, hint)
        return map_of(key, value)

    def _map(self) -> tuple[list[ir.Expr], Type]:
        written, given = self.call.arguments, self.arguments
        if len(given) % 2:
            raise self.scope.fail("map takes a value for each key", self.call.name_span, "Write: map('a', 1, 'b', 2)")
        halves = []
        for start, what in ((0, "keys"), (1, "values")):
            doing = f"use {what} of a map"
            halves.append(alike(written[start::2], given[start::2], self.scope, doing, self.call.span))
        types = [common_type(map(type_of, half)) or NULL for half in halves]
        arguments = [item for pair in zip(*halves, strict=True) for item in pair]
        return arguments, self._map_type(*types)

    def _named_struct(self) -> Type:
        names, values = self.arguments[::2], self.arguments[1::2]
        fields = []
        for name, value in zip(names, values, strict=False):
            if not (isinstance(name, ir.Literal) and isinstance(name.value, str)):
                raise self.scope.fail("the name of a field must be a literal string", name.span)
            fields.append((name.value, type_of(value)))
        if len(names) != len(values):
            hint = "Write: named_struct('a', 1, 'b', 2)"
            raise self.scope.fail("named_struct takes a value for each name", self.call.name_span, hint)
        if len(dict(fields)) < len(fields):
            raise self.scope.fail("a struct has one field twice", self.call.span, "Call each field otherwise.")
        return struct(fields)

    def _contains(self) -> tuple[list[ir.Expr], Type]:
        values, wanted = self.arguments
        element = self._array(values)
        found = common_type((element, type_of(wanted)))
        if found is None:
            raise self.scope.fail(f"the array holds no {type_of(wanted)}, but values of type {element}", wanted.span)
        need_equality(values, self.scope, self._who)
        return [cast_to(values, array(found)), cast_to(wanted, found)], BOOLEAN

    def _element_at(self) -> tuple[list[ir.Expr], Type]:
        value, key = self.arguments
        if fits_everywhere(type_of(value)):
            return self.arguments, type_of(value)
        match value.type:
            case MapType(key=of_keys, value=found):
                common = common_type((of_keys, type_of(key)))
                if common is None:
                    raise self.scope.fail(f"the map has keys of type {of_keys}, not {type_of(key)}", key.span)
                return [cast_to(value, map_of(common, found)), cast_to(key, common)], found
        self._need(value, isinstance(value.type, ArrayType), "an array or a map")
        if not isinstance(value.type, ArrayType):  # nobody knows yet what it is
            return [value, key], UNKNOWN
        return [value, self._whole(key)], self._array(value)

    def _nullif(self) -> tuple[list[ir.Expr], Type]:
        """The first stays as it is; the second is of the type that both are compared in."""
        given, doing = self.arguments, "compare with nullif"
        _, second = alike(self.call.arguments, given, self.scope, doing, self.call.span)
        return [given[0], second], type_of(given[0])

    def _round(self) -> tuple[list[ir.Expr], Type]:
        number, *places = map(self._number, self.arguments)
        is_open = bool(places) and isinstance(places[0], ir.Parameter)
        if places and not is_open and not (isinstance(places[0], ir.Literal) and isinstance(places[0].value, int)):
            raise self.scope.fail("the number of places to round to must be a literal whole number", places[0].span)
        return [number, *places], type_of(number)

    def _test(self, name: str) -> tuple[list[ir.Expr], Type]:
        text, part = map(self._text, self.arguments)
        if name == "regexp_like" and isinstance(part, ir.Literal) and isinstance(part.value, str):
            try:
                regexes.translated(part.value)
            except regexes.PatternError as error:
                raise self.scope.fail(
                    f"the regular expression cannot be used: {error}",
                    part.span,
                    "Patterns are what Java and RE2 have in common: see docs/language.md.",
                ) from None
        return [text, part], BOOLEAN

    def _time(self, name: str) -> tuple[list[ir.Expr], Type]:
        of_clock = name in times.OF_CLOCK
        first, *others = self.arguments
        moment = self._date(first, timestamp() if of_clock else DATE)
        if name == "date_diff":
            return [moment, self._date(others[0], DATE)], INTEGER
        return [moment, *map(self._whole, others)], DATE if name in _OF_DATES else INTEGER

    def _part(self) -> tuple[list[ir.Expr], Type]:
        field, moment = self.arguments
        if isinstance(field, ir.Parameter):
            return [field, moment], UNKNOWN
        asked = field.value.lower() if isinstance(field, ir.Literal) and isinstance(field.value, str) else None
        if asked not in times.FIELDS:
            names = sorted({name.upper() for name in times.FIELDS if len(name) > 2})
            raise self.scope.fail("unknown part of a time", field.span, f"Parts: {listed(names, most=40)}.")
        exact = times.FIELDS[asked] == "second_exact"
        of_clock = times.FIELDS[asked] in times.OF_CLOCK
        return [field, self._date(moment, timestamp() if of_clock else DATE)], decimal(6) if exact else INTEGER

    def _truncated(self) -> tuple[list[ir.Expr], Type]:
        unit, moment = self.arguments
        moment = self._date(moment, timestamp())
        moment = cast_to(moment, timestamp()) if moment.type == DATE else moment
        found = type_of(moment)
        return [self._text(unit), moment], timestamp() if fits_everywhere(found) else found


def _is_count(name: str, at: int) -> bool:
    """Whether the argument is how many characters are meant, or which of them."""
    if name in ("left", "right", "lpad", "rpad"):
        return at == 1
    return at > 0 if name == "substring" else name == "split_part" and at == 2
