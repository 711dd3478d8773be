"""An automaton as text for people, and in the language of Graphviz."""

from __future__ import annotations

from kleene.analysis.analyzed import NegativeComponent
from kleene.automaton.model import (
    FINAL,
    AllOf,
    AnyOf,
    Automaton,
    Edge,
    Formula,
    FormulaOf,
    InWindow,
    Move,
    NotFormula,
    Predicate,
    TypeIs,
)
from kleene.ir import expr as ir
from kleene.ir.options import WindowUnit
from kleene.ir.text import expression_text, window_text


def automaton_text(automaton: Automaton) -> str:
    """The automaton as a table: a line for each edge, with its move, where it leads, and its formula."""
    width = max(len(state.name) for state in automaton.states)
    lines: list[str] = []
    for state in automaton.states[:-1]:
        label = state.name
        for edge in automaton.edges_at(state.name):
            target = f"→ {_shown(edge.target)}" if edge.target != edge.source else "↺"
            formula = formula_text(edge.formula, edge.source)
            lines.append(f"{label:<{width}}  {edge.move.value:<7}  {target:<{width + 2}}  {formula}")
            label = ""
    names = [state.name for state in automaton.states[:-1]]
    lines += [f"{_shown(FINAL):<{width}}  a match"]
    lines += [f"no {negation_text(negation, names, automaton)}" for negation in automaton.negations]
    return "\n".join(line.rstrip() for line in lines)


def _shown(state: str) -> str:
    return "F" if state == FINAL else state


def negation_text(negation: NegativeComponent, names: list[str], automaton: Automaton) -> str:
    components = [state.component for state in automaton.states[:-1]]
    firsts = [names[components.index(number)] for number in sorted({c for c in components if c is not None})]
    if negation.gap == 0:
        where = f"before {firsts[0]}, back to the window's length before the last event"
    elif negation.gap == len(firsts):
        where = "after the last event, up to the window's length after the first"
    else:
        last_of_previous = names[components.index(negation.gap) - 1].replace("[i]", "[]")
        where = f"between {last_of_previous} and {firsts[negation.gap].replace('[1]', '[]')}"
    types = " or ".join(negation.types)
    name = "" if negation.name.startswith("#") else f" {negation.name}"
    conditions = " AND ".join(_conjunct_text(item.expression) for item in negation.predicates)
    return f"{types}{name} {where}" + (f", where {conditions}" if conditions else "")


def formula_text(formula: Formula, state: str = "") -> str:
    """The formula; `state` is where it stands, so that its own edges need no address."""
    match formula:
        case Predicate(conjunct=conjunct):
            return _conjunct_text(conjunct.expression)
        case TypeIs(types=types):
            return " or ".join(types) if len(types) == 1 else f"({' or '.join(types)})"
        case InWindow(event=event, first=first, window=window):
            what = "position" if window.unit is WindowUnit.EVENTS else "time"
            size = window_text(window).removesuffix(" events") if what == "position" else window_text(window)
            return f"{event}.{what} < {first}.{what} + {size}"
        case FormulaOf(state=other, move=move):
            return move.value if other == state else f"{move.value}({other})"
        case NotFormula(part=part):
            inner = formula_text(part, state)
            return f"NOT ({inner})" if " " in inner else f"NOT {inner}"
        case AllOf(parts=()):
            return "TRUE"
        case AnyOf(parts=()):
            return "FALSE"
        case AllOf(parts=parts):
            return " AND ".join(_part_text(part, state) for part in parts)
        case AnyOf(parts=parts):
            return " OR ".join(_part_text(part, state) for part in parts)


def _part_text(part: Formula, state: str) -> str:
    text = formula_text(part, state)
    return f"({text})" if isinstance(part, (AllOf, AnyOf)) else text


def _conjunct_text(expression: ir.Expr) -> str:
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, ir.Or) else text


_STYLES = {
    Move.BEGIN: "",
    Move.TAKE: "",
    Move.IGNORE: ", style=dashed",
    Move.PROCEED: ", arrowhead=empty",
}


def automaton_dot(automaton: Automaton) -> str:
    """The automaton for Graphviz: solid edges select an event, dashed ones ignore it, an open arrow proceeds."""
    lines = ["digraph automaton {", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica"];']
    lines.append('  edge [fontname="Helvetica", fontsize=10];')
    lines += [f"  {_quoted(state.name)};" for state in automaton.states[:-1]]
    lines.append(f'  {_quoted(FINAL)} [shape=doublecircle, label="{_shown(FINAL)}"];')
    lines += [_dot_edge(edge) for edge in automaton.edges]
    return "\n".join([*lines, "}"])


def _dot_edge(edge: Edge) -> str:
    label = f"{edge.move.value}\n{formula_text(edge.formula, edge.source)}"
    return f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [label={_quoted(label)}{_STYLES[edge.move]}];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
