"""Row patterns as text: a MATCH_RECOGNIZE clause that parses to an equal query, and patterns by themselves."""

from __future__ import annotations

import re
from dataclasses import replace

from kleene.ir import expr as ir
from kleene.ir.options import Selection, Skip, WindowUnit
from kleene.ir.pattern import Alternation, Anchor, Exclusion, Pattern, Permutation, Repeat, Sequence, Variable
from kleene.ir.query import Frame, QueryDefinition, SortKey
from kleene.ir.text import duration_text, expression_text, window_parameter_text

_ALTERNATION, _SEQUENCE, _REPEAT, _PRIMARY = range(4)
_SHORT = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def pattern_text(pattern: Pattern) -> str:
    """The pattern as it would be written.

    >>> pattern_text(Sequence((Variable("A"), Repeat(Variable("B"), 1, None, greedy=False))))
    'A B+?'
    """
    return _text(pattern, _ALTERNATION)


def _text(pattern: Pattern, least: int) -> str:
    text, binding = _text_and_binding(pattern)
    return f"({text})" if binding < least else text


def _text_and_binding(pattern: Pattern) -> tuple[str, int]:
    match pattern:
        case Variable(name=name):
            return (name if name == "." else _quoted(name or "")), _PRIMARY
        case Sequence(elements=()):
            return "()", _PRIMARY
        case Sequence(elements=elements):
            return " ".join(_text(element, _REPEAT) for element in elements), _SEQUENCE
        case Alternation(alternatives=alternatives):
            return " | ".join(_text(choice, _SEQUENCE) for choice in alternatives), _ALTERNATION
        case Repeat(element=element, least=least, most=most, greedy=greedy):
            quantifier = _SHORT.get((least, most)) or _bounds(least, most)
            return f"{_text(element, _PRIMARY)}{quantifier}{'' if greedy else '?'}", _REPEAT
        case Permutation(elements=elements):
            return f"PERMUTE({', '.join(_text(element, _ALTERNATION) for element in elements)})", _PRIMARY
        case Exclusion(element=element):
            return f"{{- {_text(element, _ALTERNATION)} -}}", _PRIMARY
        case Anchor(at_start=at_start):
            return ("^" if at_start else "$"), _PRIMARY
    raise AssertionError(f"no text for {type(pattern).__name__}")


def _bounds(least: int, most: int | None) -> str:
    if most == least:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def _quoted(name: str) -> str:
    """A variable's name: without quotes where SQL would fold it to itself."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) and name == name.upper() else '"' + name.replace('"', '""') + '"'


def _expression_text(expression: ir.Expr) -> str:
    return expression_text(_with_quotes(expression))


def _with_quotes(expression: ir.Expr) -> ir.Expr:
    """The expression with its variables as they must be written."""
    match expression:
        case ir.Attribute(variable=str() as variable) | ir.Events(variable=str() as variable):
            return replace(expression, variable=_quoted(variable))
        case ir.Classifier(variable=str() as variable):
            return replace(expression, variable=_quoted(variable))
    return ir.with_children(expression, _with_quotes)


def row_query_text(query: QueryDefinition) -> str:
    """The clause or the window; for the regular-expression operator, its parts."""
    if query.selection is Selection.FIRST_COMPLETED:
        return _regex_text(query)
    lines: list[str] = []
    if query.partition_by:
        lines.append("PARTITION BY " + ", ".join(map(_expression_text, query.partition_by)))
    if query.order_by:
        lines.append("ORDER BY " + ", ".join(map(_sort_key_text, query.order_by)))
    if query.measures:
        measures = (f"{_expression_text(item.expression)} AS {_quoted_measure(item.name)}" for item in query.measures)
        lines.append("MEASURES " + ", ".join(measures))
    if query.frame is None:
        lines.append(query.rows_per_match.value)
    else:
        lines.append(_frame_text(query.frame))
    if query.selection is Selection.ALL_MATCHES:
        lines.append("ALL MATCHES")
    elif query.after_match is not None:
        after = query.after_match
        target = f" {_quoted(after.variable or '')}" if after.skip in (Skip.TO_FIRST, Skip.TO_LAST) else ""
        lines.append(f"AFTER MATCH SKIP {after.skip.value}{target}")
    if query.frame is not None:
        lines.append("SEEK" if query.frame.seeks else "INITIAL")
    lines.append(f"PATTERN ({'' if query.pattern == Sequence(()) else pattern_text(query.pattern)})")
    if query.subsets:
        subsets = (f"{_quoted(item.name)} = ({', '.join(map(_quoted, item.variables))})" for item in query.subsets)
        lines.append("SUBSET " + ", ".join(subsets))
    if query.window_parameter:
        lines.append(f"WITHIN {window_parameter_text(query.window_parameter)}")
    if query.window:
        size = query.window.size
        words = {WindowUnit.TIME: duration_text(int(size)), WindowUnit.EVENTS: f"{size} ROWS"}
        lines.append("WITHIN " + words.get(query.window.unit, str(size)))
    if query.max_length is not None:
        lines.append(f"MAXLENGTH {query.max_length}")
    if query.definitions:
        defines = (f"{_quoted(item.variable)} AS {_expression_text(item.condition)}" for item in query.definitions)
        lines.append("DEFINE " + ",\n  ".join(defines))
    return "\n".join(lines)


def _frame_text(frame: Frame) -> str:
    end = "UNBOUNDED" if frame.end is None else _expression_text(frame.end)
    return f"ROWS BETWEEN CURRENT ROW AND {end} FOLLOWING"


def _quoted_measure(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else '"' + name.replace('"', '""') + '"'


def _sort_key_text(key: SortKey) -> str:
    nulls = "" if key.nulls_first is None else " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return f"{_expression_text(key.expression)}{' DESC' if key.descending else ''}{nulls}"


def _regex_text(query: QueryDefinition) -> str:
    keys = [("partition by", query.partition_by), ("order by", tuple(key.expression for key in query.order_by))]
    lines = [f"pattern: {pattern_text(query.pattern).replace('()', '')}"]
    lines += [f"{name}: {', '.join(map(expression_text, items))}" for name, items in keys if items]
    lines += [f"{item.variable} = {expression_text(item.condition)}" for item in query.definitions]
    lines += [f"output {item.name} = {expression_text(item.expression)}" for item in query.measures or ()]
    return "\n".join(lines)
