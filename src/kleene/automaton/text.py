"""An automaton as text for people, and in the language of Graphviz."""

from __future__ import annotations

from kleene.automaton.model import (
    TRUE,
    Absence,
    AllOf,
    AnyOf,
    AtEnd,
    AtStart,
    Automaton,
    Defined,
    Edge,
    Formula,
    FormulaOf,
    InWindow,
    Move,
    NotFormula,
    Predicate,
    SoonAfter,
    TypeIs,
    parts_of,
)
from kleene.ir import expr as ir
from kleene.ir.options import WindowUnit
from kleene.ir.text import expression_text, window_text


def automaton_text(automaton: Automaton) -> str:
    """The automaton as a table.

    Where edges say no more than which variable comes next, each state has one line that lists them, most preferred
    first, and the formula of each variable follows. Otherwise each edge has a line: its move, its target, its formula.
    """
    return "\n".join(line.rstrip() for line in (_choices if has_plain_edges(automaton) else _moves)(automaton))


def has_plain_edges(automaton: Automaton) -> bool:
    """Whether the formula of an edge follows from where it leads, but for anchors."""
    return all(is_plain(edge) for edges in automaton.edges for edge in edges)


def is_plain(edge: Edge) -> bool:
    return edge.move is not Move.IGNORE and not any(
        isinstance(part, (Predicate, TypeIs, InWindow, SoonAfter, FormulaOf, NotFormula, AnyOf))
        for part in parts_of(edge.formula)
    )


def _choices(automaton: Automaton) -> list[str]:
    width = max(len(state.name) for state in automaton.states)
    lines = []
    for state, edges in zip(automaton.states[:-1], automaton.edges, strict=False):
        targets = ", ".join(with_anchors(edge, automaton.states[edge.target].name) for edge in edges)
        lines.append(f"{state.name:<{width}}  → {targets or 'nothing'}")
    return [*lines, *definition_texts(automaton), *automaton.notes]


def _moves(automaton: Automaton) -> list[str]:
    width = max(len(state.name) for state in automaton.states)
    lines: list[str] = []
    for number, (state, edges) in enumerate(zip(automaton.states[:-1], automaton.edges, strict=False)):
        label = state.name
        for edge in edges:
            target = f"→ {automaton.states[edge.target].name}" if edge.target != number else "↺"
            formula = formula_text(edge.formula, automaton, number)
            lines.append(f"{label:<{width}}  {edge.move.value:<7}  {target:<{width + 2}}  {formula}")
            label = ""
    lines.append(f"{automaton.states[-1].name:<{width}}  a match")
    return [*lines, *definition_texts(automaton), *negation_texts(automaton), *automaton.notes]


def with_anchors(edge: Edge, text: str) -> str:
    """The text between the signs of the anchors that must hold on the way."""
    parts = parts_of(edge.formula)
    return f"{'^' if AtStart() in parts else ''}{text}{'$' if AtEnd() in parts else ''}"


def definition_texts(automaton: Automaton) -> list[str]:
    return [f"{name} when {formula_text(formula, automaton)}" for name, formula in automaton.definitions]


def negation_texts(automaton: Automaton) -> list[str]:
    return [f"no {_negation_text(negation, automaton)}" for negation in automaton.negations]


def _negation_text(negation: Absence, automaton: Automaton) -> str:
    component = negation.component
    states = automaton.states[:-1]
    firsts = {state.component: n for n, state in reversed(list(enumerate(states)))}
    if component.gap == 0:
        where = f"before {states[0].name}, back to the window's length before the last event"
    elif component.gap == len(firsts):
        where = "after the last event, up to the window's length after the first"
    else:
        after = firsts[component.gap]
        last_of_previous = states[after - 1].name.replace("[i]", "[]")
        where = f"between {last_of_previous} and {states[after].name.replace('[1]', '[]')}"
    types = " or ".join(component.types)
    name = "" if component.name.startswith("#") else f" {component.name}"
    conditions = " AND ".join(_conjunct_text(item.conjunct.expression) for item in negation.predicates)
    return f"{types}{name} {where}" + (f", where {conditions}" if conditions else "")


def formula_text(formula: Formula, automaton: Automaton, state: int = -1) -> str:
    """The formula; `state` is where it stands, so that its own edges need no address."""
    match formula:
        case Predicate(conjunct=conjunct):
            return _conjunct_text(conjunct.expression)
        case Defined(variable=variable):
            return variable
        case AtStart():
            return "at the first row"
        case AtEnd():
            return "after the last row"
        case TypeIs(types=types):
            return " or ".join(types) if len(types) == 1 else f"({' or '.join(types)})"
        case InWindow(event=event, first=first, window=window):
            what = "position" if window.unit is WindowUnit.EVENTS else "time"
            size = window_text(window).removesuffix(" events") if what == "position" else window_text(window)
            return f"{event}.{what} < {first}.{what} + {size}"
        case SoonAfter(window=window):
            return f"less than {window_text(window)} after the event before"
        case FormulaOf(state=other, move=move):
            return move.value if other == state else f"{move.value}({automaton.states[other].name})"
        case NotFormula(part=part):
            inner = formula_text(part, automaton, state)
            return f"NOT ({inner})" if " " in inner else f"NOT {inner}"
        case AnyOf(parts=()):
            return "FALSE"
        case AllOf(parts=parts) if formula != TRUE:
            return " AND ".join(_part_text(part, automaton, state) for part in parts)
        case AnyOf(parts=parts):
            return " OR ".join(_part_text(part, automaton, state) for part in parts)
    return "TRUE"


def _part_text(part: Formula, automaton: Automaton, state: int) -> str:
    text = formula_text(part, automaton, state)
    return f"({text})" if isinstance(part, (AllOf, AnyOf)) else text


def _conjunct_text(expression: ir.Expr) -> str:
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, ir.Or) else text


_STYLES = {Move.IGNORE: ", style=dashed", Move.PROCEED: ", arrowhead=empty"}


def automaton_dot(automaton: Automaton) -> str:
    """The automaton for Graphviz: solid edges select an event, dashed ones ignore it, an open arrow proceeds.

    Plain edges are numbered in order of preference.
    """
    lines = ["digraph automaton {", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica"];']
    lines.append('  edge [fontname="Helvetica", fontsize=10];')
    lines += [f"  s{number} [label={_quoted(state.name)}];" for number, state in enumerate(automaton.states[:-1])]
    lines.append(f"  s{automaton.final} [shape=doublecircle, label={_quoted(automaton.states[-1].name)}];")
    are_plain = has_plain_edges(automaton)
    for source, edges in enumerate(automaton.edges):
        for preference, edge in enumerate(edges, 1):
            label = f"{edge.move.value}\n{formula_text(edge.formula, automaton, source)}"
            label = with_anchors(edge, str(preference)) if are_plain else label
            style = "" if are_plain else _STYLES.get(edge.move, "")
            lines.append(f"  s{source} -> s{edge.target} [label={_quoted(label)}{style}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
