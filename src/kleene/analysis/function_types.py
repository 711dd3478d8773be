"""Types of calls: what each function takes, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kleene.analysis.conversions import alike, can_cast, cast_to, common_type, need, type_of
from kleene.analysis.scope import Scope
from kleene.errors import listed
from kleene.ir import expr as ir
from kleene.ir.functions import regexes, times
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    DurationType,
    TimestampType,
    Type,
    decimal,
    fits_everywhere,
    is_numeric,
    timestamp,
)

_OF_DATES = ("date_add", "date_diff", "date_sub")
_TESTS = ("contains", "endswith", "regexp_like", "startswith")
_TEXTS = ("left", "lpad", "ltrim", "replace", "reverse", "right", "rpad", "rtrim", "split_part", "substring", "trim")
_SAME = {"datediff": "date_diff", "dayofmonth": "day", "ifnull": "coalesce", "nvl": "coalesce"}


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
                return [self._text(item) for item in given], STRING
            case "instr" | "locate":
                return [*map(self._text, given[:2]), *map(self._whole, given[2:])], INTEGER
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

    def _nullif(self) -> tuple[list[ir.Expr], Type]:
        """The first stays as it is; the second is of the type that both are compared in."""
        given, doing = self.arguments, "compare with nullif"
        _, second = alike(self.call.arguments, given, self.scope, doing, self.call.span)
        return [given[0], second], type_of(given[0])

    def _round(self) -> tuple[list[ir.Expr], Type]:
        number, *places = map(self._number, self.arguments)
        if places and not (isinstance(places[0], ir.Literal) and isinstance(places[0].value, int)):
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
