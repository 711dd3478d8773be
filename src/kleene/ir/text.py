"""Queries and expressions as canonical text: what `repr`, EXPLAIN, errors and tests show."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Context, Decimal

from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.options import Grouping, Strategy, Window, WindowParameter, WindowUnit
from kleene.ir.paths import path_of
from kleene.ir.pattern import Negation, Pattern, Repeat, variable_of
from kleene.ir.query import EquivalenceTest, Measure, QueryDefinition
from kleene.schema import DATE, FLOAT, TIME, DecimalType, DurationType, TimestampType, Type, per_microsecond

_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))
_SMALL_UNITS = (("millisecond", 1_000), ("microsecond", 1))

# How tightly operators bind: an operand that binds less tightly stands in parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(8)


_RESERVED = {
    *(
        "and",
        "any",
        "as",
        "between",
        "case",
        "cast",
        "date",
        "else",
        "end",
        "event",
        "events",
        "false",
        "from",
        "having",
    ),
    *(
        "in",
        "interval",
        "into",
        "is",
        "like",
        "not",
        "null",
        "or",
        "pattern",
        "return",
        "rlike",
        "seq",
        "then",
        "timestamp",
    ),
    *("timestamp", "true", "when", "where", "within"),
    *(strategy.value for strategy in Strategy),
}


def name_text(name: str, allow_dash: bool = False) -> str:
    """A name as it must be written: in backquotes where it is not a plain word."""
    plain = r"[^\W\d]\w*(-\w+)*" if allow_dash else r"[^\W\d]\w*"
    return name if re.fullmatch(plain, name) and name.lower() not in _RESERVED else "`" + name.replace("`", "``") + "`"


def attribute_text(name: str) -> str:
    """The name of a column as it must be written; a path into one is written already."""
    return name_text(name) if path_of(name) is None else name


def duration_text(microseconds: int) -> str:
    """The duration in the largest unit that shows it whole.

    >>> duration_text(5_400_000_000), duration_text(43_200_000_000)
    ('90 minutes', '12 hours')
    """
    for unit, size in (*_UNITS, *_SMALL_UNITS):
        if microseconds % size == 0 and (microseconds or unit == "second"):
            count = microseconds // size
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    raise AssertionError("microseconds are whole")


def window_text(window: Window) -> str:
    match window.unit:
        case WindowUnit.TIME:
            return duration_text(int(window.size))
        case WindowUnit.EVENTS:
            return f"{window.size} events"
    return str(window.size)


def window_parameter_text(parameter: WindowParameter) -> str:
    return f":{parameter.name}" if parameter.is_marked else parameter.name


def literal_text(value: ir.Value, type_: Type) -> str:
    if value is None:
        return "NULL"
    match type_:
        case DecimalType(scale=scale):
            assert isinstance(value, int)
            return f"{Decimal(value).scaleb(-scale, Context(prec=100)):f}"
        case TimestampType():
            assert isinstance(value, int)
            whole, finer = divmod(value, per_microsecond(type_))
            try:
                moment = datetime(1970, 1, 1) + timedelta(microseconds=whole)
            except OverflowError:  # the zone of a column moved it out of the years that have names
                return f"TIMESTAMP {value} microseconds"
            shown = moment.isoformat(" ", "microseconds") + f"{finer:03}" if finer else moment.isoformat(" ")
            return f"TIMESTAMP '{shown}'"
        case _ if type_ == TIME:
            assert isinstance(value, int)
            return f"TIME '{(datetime(1970, 1, 1) + timedelta(microseconds=value)).time().isoformat()}'"
        case DurationType():
            assert isinstance(value, int)
            whole, finer = divmod(value, per_microsecond(type_))
            return f"{value} nanoseconds" if finer else duration_text(whole)
        case _ if type_ == DATE:
            assert isinstance(value, int)
            return f"DATE '{(date(1970, 1, 1) + timedelta(days=value)).isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if type_ == FLOAT and re.fullmatch(r"-?\d+", str(value)):
        return f"{value}.0"
    return str(value).upper() if isinstance(value, bool) else str(value)


def expression_text(expression: ir.Expr) -> str:
    """The expression as it would be written.

    >>> from kleene.schema import INTEGER
    >>> expression_text(ir.Comparison(">", ir.Attribute("a", "price", Position.CURRENT), ir.Literal(3, INTEGER)))
    'a[i].price > 3'
    """
    return _text(expression, 0)


def _text(expression: ir.Expr, least: int) -> str:
    """The text, in parentheses if it binds less tightly than `least`."""
    if isinstance(expression, ir.Cast) and expression.implicit:
        return _text(expression.operand, least)
    text, binding = _text_and_binding(expression)
    return f"({text})" if binding < least else text


def _text_and_binding(expression: ir.Expr) -> tuple[str, int]:
    match expression:
        case ir.Literal(value=value, of_type=of_type):
            return literal_text(value, of_type), _PRIMARY
        case ir.Parameter(name=name):
            return f":{name}", _PRIMARY
        case ir.Attribute(variable=None, name=name):
            return attribute_text(name), _PRIMARY
        case ir.Attribute(variable=str() as variable, name=name, position=position):
            return f"{reference_text(variable, position)}.{attribute_text(name)}", _PRIMARY
        case ir.Events(variable=None):
            return "*", _PRIMARY
        case ir.Events(variable=str() as variable, position=Position.EACH):
            return f"{_variable_text(variable)}.*", _PRIMARY
        case ir.Events(variable=str() as variable, position=position):
            return reference_text(variable, position), _PRIMARY
        case ir.Length(variable=variable):
            return f"{_variable_text(variable)}.LEN", _PRIMARY
        case ir.Aggregate():
            return _aggregate_text(expression), _PRIMARY
        case ir.OrderKey(operand=operand, descending=descending, nulls_first=nulls_first):
            return f"{_text(operand, 0)}{' DESC' if descending else ''}{' NULLS FIRST' if nulls_first else ''}", _OR
        case ir.Navigation():
            return _navigation_text(expression), _PRIMARY
        case ir.Classifier(variable=variable, final=final):
            return f"{'FINAL ' if final else ''}CLASSIFIER({_variable_text(variable) if variable else ''})", _PRIMARY
        case ir.MatchNumber():
            return "MATCH_NUMBER()", _PRIMARY
        case ir.PythonCall(name=name, arguments=arguments):
            return f"{name_text(name)}({', '.join(_text(argument, 0) for argument in arguments)})", _PRIMARY
        case ir.RowFunction(name=name):
            return f"{name_text(name)}(row, bound)", _PRIMARY
        case ir.Arithmetic(operator=operator, left=left, right=right):
            binding = _SUM if operator in "+-" else _PRODUCT
            return f"{_text(left, binding)} {operator} {_text(right, binding + 1)}", binding
        case ir.Negate(operand=operand):
            return f"-{_text(operand, _PRIMARY)}", _UNARY
        case ir.Comparison(operator=operator, left=left, right=right):
            return f"{_text(left, _SUM)} {operator} {_text(right, _SUM)}", _COMPARISON
        case ir.And(operands=operands):
            return " AND ".join(_text(operand, _AND + 1) for operand in operands), _AND
        case ir.Or(operands=operands):
            return " OR ".join(_text(operand, _OR + 1) for operand in operands), _OR
        case ir.Not(operand=operand):
            return f"NOT {_text(operand, _NOT)}", _NOT
        case ir.IsNull(operand=operand):
            return f"{_text(operand, _SUM)} IS NULL", _COMPARISON
        case ir.In(operand=operand, choices=choices):
            return f"{_text(operand, _SUM)} IN ({', '.join(_text(choice, 0) for choice in choices)})", _COMPARISON
        case ir.Between(operand=operand, low=low, high=high):
            return f"{_text(operand, _SUM)} BETWEEN {_text(low, _SUM)} AND {_text(high, _SUM)}", _COMPARISON
        case ir.Like(operand=operand, pattern=pattern):
            return f"{_text(operand, _SUM)} LIKE {_text(pattern, _SUM)}", _COMPARISON
        case ir.Case(branches=branches, default=default):
            whens = "".join(f" WHEN {_text(condition, 0)} THEN {_text(value, 0)}" for condition, value in branches)
            return f"CASE{whens} ELSE {_text(default, 0)} END", _PRIMARY
        case ir.Cast(operand=operand, to=to, digits=digits, tries=tries):
            return f"{'TRY_' if tries else ''}CAST({_text(operand, 0)} AS {_type_text(to, digits)})", _PRIMARY
        case ir.Function(name="concat", arguments=(left, right)):
            return f"{_text(left, _SUM)} || {_text(right, _SUM + 1)}", _SUM
        case ir.Function(name=name, arguments=arguments):
            return f"{name_text(name)}({', '.join(_text(argument, 0) for argument in arguments)})", _PRIMARY
        case ir.Item(operand=operand, key=key):
            return f"{_text(operand, _PRIMARY)}[{_text(key, 0)}]", _PRIMARY
        case ir.Field(operand=operand, name=name):
            return f"{_text(operand, _PRIMARY)}.{name_text(name)}", _PRIMARY
        case ir.Lambda(parameters=parameters, body=body):
            names = ", ".join(map(name_text, parameters))
            return f"{names if len(parameters) == 1 else f'({names})'} -> {_text(body, 0)}", _OR
        case ir.LambdaVariable(name=name):
            return name_text(name), _PRIMARY
        case ir.IfPresent(predicate=predicate):
            return _text_and_binding(predicate)
    raise AssertionError(f"no text for {type(expression).__name__}")


def _aggregate_text(aggregate: ir.Aggregate) -> str:
    inner = ", ".join(_text(argument, 0) for argument in (aggregate.argument, *aggregate.others))
    keys = ", ".join(_text(key, 0) for key in aggregate.order)
    text = f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}{inner}{keys and f' ORDER BY {keys}'})"
    if aggregate.condition is not None:
        text += f" FILTER (WHERE {_text(aggregate.condition, 0)})"
    return f"{'FINAL ' if aggregate.final else ''}{text}"


def _navigation_text(navigation: ir.Navigation) -> str:
    """PREV or NEXT around FIRST or LAST; a plain LAST inside of them is left out."""
    text = _text(navigation.argument, 0)
    is_plain = navigation.from_last and navigation.offset == 0 and not navigation.final
    if navigation.shift is None or not is_plain:
        offset = f", {navigation.offset}" if navigation.offset else ""
        word = "LAST" if navigation.from_last else "FIRST"
        text = f"{'FINAL ' if navigation.final else ''}{word}({text}{offset})"
    if navigation.shift is not None:
        distance = abs(navigation.shift)
        text = f"{'NEXT' if navigation.shift > 0 else 'PREV'}({text}{'' if distance == 1 else f', {distance}'})"
    return text


def _type_text(type_: Type, digits: int) -> str:
    return f"decimal({digits}, {type_.scale})" if isinstance(type_, DecimalType) else type_.name


def _variable_text(variable: str) -> str:
    """The variable as written; one without a name, and one that row patterns have put in quotes, as it is."""
    return variable if variable.startswith(("#", '"')) else name_text(variable)


def reference_text(variable: str, position: Position) -> str:
    name = _variable_text(variable)
    return f"{name}[{name}.LEN]" if position is Position.LAST else f"{name}{position.value}"


def equivalence_text(test: EquivalenceTest) -> str:
    name = attribute_text(test.attribute)
    if test.constant is None:
        return f"[{name}]"
    return f"[{name} = {_text(test.constant, 0)}]"


def _component_text(element: Pattern) -> str:
    variable = variable_of(element)
    brackets, plus = ("[]", "+") if isinstance(element, Repeat) else ("", "")
    name = f" {name_text(variable.name)}{brackets}" if variable.name else ""
    text = f"{_types_text(variable.types)}{plus}{name}"
    return f"!({text})" if isinstance(element, Negation) else text


def _types_text(types: tuple[str, ...]) -> str:
    names = [name_text(type_name, allow_dash=True) for type_name in types]
    return names[0] if len(names) == 1 else f"ANY({', '.join(names)})"


def _listed_text(element: Pattern) -> str | None:
    name = variable_of(element).name
    return None if name is None else name_text(name) + ("[]" if isinstance(element, Repeat) else "")


def grouping_text(grouping: Grouping) -> str:
    words = ["event"] if grouping.by_event else []
    words += ["partition"] if grouping.by_partition else []
    words += [] if grouping.window is None else [f"window of {window_text(grouping.window)}"]
    return f", per {' and '.join(words)}" if words else ""


def _measure_text(measure: Measure) -> str:
    text = _text(measure.expression, 0)
    return text if isinstance(measure.expression, ir.Events) else f"{text} AS {name_text(measure.name)}"


def query_text(query: QueryDefinition) -> str:
    """The query as SASE+ text that parses to an equal query."""
    elements = query.components
    pattern = ", ".join(map(_component_text, elements))
    names = ", ".join(name_text(name, allow_dash=True) for name in query.from_streams)
    lines = [f"FROM {names}"] if names else []
    lines.append(f"PATTERN SEQ({pattern})")
    tests = [equivalence_text(test) for test in query.equivalence_tests]
    conditions = "\n  AND ".join(tests + [_text(predicate, _AND + 1) for predicate in query.predicates])
    if query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        positive = [_listed_text(element) for element in elements if not isinstance(element, Negation)]
        names = ", ".join(name for name in positive if name)
        conditions = f"{query.strategy.value}({names}) {{ {conditions} }}"
    if conditions:
        lines.append(f"WHERE {conditions}")
    if query.window_parameter:
        lines.append(f"WITHIN {window_parameter_text(query.window_parameter)}")
    if query.window:
        lines.append(f"WITHIN {window_text(query.window)}")
    if query.having is not None:
        lines.append(f"HAVING {_text(query.having, 0)}")
    if query.measures is not None:
        lines.append(f"RETURN {', '.join(map(_measure_text, query.measures))}")
    if query.grouping is not None:
        lines.append(f"over all matches{grouping_text(query.grouping)}")
    if query.into_stream:
        lines.append(f"INTO {name_text(query.into_stream, allow_dash=True)}")
    return "\n".join(lines)
