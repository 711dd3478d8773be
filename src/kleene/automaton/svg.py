"""An automaton as a picture in SVG, made without Graphviz.

States stand on a line from left to right. Edges between neighbours are straight, an edge from a state to itself is a
loop above it, edges that skip states run above the line, edges that lead back run below it. Texts are set in a font of
fixed width, so that their sizes are known here and everything gets the room it needs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from math import sqrt
from unicodedata import east_asian_width

from kleene.automaton.model import AllOf, AnyOf, AtEnd, AtStart, Automaton, Edge, Formula, Move, parts_of
from kleene.automaton.text import definition_texts, formula_text, has_plain_edges, negation_texts

_RADIUS, _SHOULDER, _MARGIN, _GAP, _CORNER, _HEAD = 26.0, 8.0, 20.0, 50.0, 8.0, 7.0
_LETTER, _LINE = 6.7, 14.0  # of a font of 11 pixels
_NAME, _PIECE, _PIECES, _NOTE, _NOTES = 24, 36, 7, 80, 4  # letters in a line, and lines, before a text is shortened
_INK, _PALE, _BOLD = "#24292f", "#57606a", ' font-weight="bold"'

_Row = tuple[str, str]  # a line of text and its colour
_Bundle = tuple[int, str]  # arcs to the same state that look the same: they share a line
_Arrow = tuple[str, float, float, float]  # a line, the tip of its arrow, and where that points, in degrees
_Shape = tuple[list[_Arrow], tuple[float, float]]  # arrows, and the upper left corner of their text


@dataclass(frozen=True, slots=True)
class _Style:
    name: str
    meaning: str
    color: str
    dash: str = ""


_STYLES = {
    Move.BEGIN: _Style("begin", "selects the event and goes on", "#0969da"),
    Move.TAKE: _Style("take", "selects the event and stays", "#1a7f37"),
    Move.IGNORE: _Style("ignore", "passes over the event", _PALE, "5 4"),
    Move.PROCEED: _Style("proceed", "goes on without consuming the event", "#bc4c00", "9 3 2 3"),
}
_FIRST = _Style("1", "is tried first", "#0969da")
_LATER = _Style("2…", "are tried after it, in this order", _PALE)
_Label = tuple[_Style, tuple[_Row, ...], str]  # how an edge looks, what is written at it, and in its tooltip


@dataclass(frozen=True, slots=True)
class Counts:
    """What to write at states and edges besides: texts by the number of the state, and by state and move."""

    states: Mapping[int, str] = field(default_factory=dict)
    edges: Mapping[tuple[int, Move], str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    tip: str
    is_accepting: bool = False
    is_dashed: bool = False
    count: str = ""


@dataclass(frozen=True, slots=True)
class _Link:
    """All edges from one state to another, by their places on the line, with their text and its size."""

    source: int
    target: int
    styles: tuple[_Style, ...]
    rows: tuple[_Row, ...]
    tips: tuple[str, ...]
    width: float
    height: float

    @property
    def span(self) -> int:
        return self.target - self.source

    @property
    def loop_height(self) -> float:
        return _RADIUS + 26 + 12 * len(self.styles) + self.height  # a loop for each style, one inside the other


@dataclass(frozen=True, slots=True)
class _Place:
    middle: float
    half: float  # of the width of the state's box
    reach: float  # half the width of the box and the loop's text above it


def automaton_svg(automaton: Automaton, counts: Counts | None = None) -> str:
    """The automaton with its formulas; tooltips have them whole.

    Edges are in the colours of their moves; plain ones are numbered in order of preference.
    """
    counts = counts or Counts()
    definitions = definition_texts(automaton)
    tips = dict(zip((name for name, _ in automaton.definitions), definitions, strict=True))
    nodes = [
        _Node(
            state.name, tips.get(state.variable or "", state.name), False, state.is_excluded, counts.states.get(at, "")
        )
        for at, state in enumerate(automaton.states[:-1])
    ]
    nodes.append(_Node("F", "F: a match", is_accepting=True, count=counts.states.get(automaton.final, "")))
    are_plain = has_plain_edges(automaton)
    links = _merged(
        (
            source,
            edge.target,
            _choice_label(number, edge)
            if are_plain
            else _move_label(edge, automaton, source, counts.edges.get((source, edge.move))),
        )
        for source, edges in enumerate(automaton.edges)
        for number, edge in enumerate(edges, 1)
    )
    return _Drawing(nodes, list(links)).svg([*definitions, *negation_texts(automaton), *counts.notes])


def _move_label(edge: Edge, automaton: Automaton, state: int, count: str | None = None) -> _Label:
    style, whole = _STYLES[edge.move], formula_text(edge.formula, automaton, state)
    lines = [line for piece in _pieces(edge.formula, automaton, state) for line in _lines(piece, _PIECE, 2)]
    shown = lines if len(lines) <= _PIECES else [*lines[: _PIECES - 1], "…"]
    head = style.name if count is None else f"{style.name}: {count}"
    tip = f"{style.name}: {whole}" + ("" if count is None else f" ({count})")
    return style, ((head, style.color), *((line, _INK) for line in shown)), tip


def _pieces(formula: Formula, automaton: Automaton, state: int) -> list[str]:
    """The formula, cut where a reader would break the line."""
    if not isinstance(formula, (AllOf, AnyOf)) or len(formula.parts) < 2:
        return [formula_text(formula, automaton, state)]
    word, kind = ("AND", AllOf) if isinstance(formula, AllOf) else ("OR", AnyOf)
    first, *others = (formula_text(kind((part,)), automaton, state) for part in formula.parts)
    return [first, *(f"{word} {other}" for other in others)]


def _choice_label(number: int, edge: Edge) -> _Label:
    style, parts = _FIRST if number == 1 else _LATER, parts_of(edge.formula)
    signs = "^" * (AtStart() in parts) + "$" * (AtEnd() in parts)
    tip = f"choice {number}" + ", at the first row" * ("^" in signs) + ", after the last row" * ("$" in signs)
    return style, ((f"{number}{signs}", style.color),), tip


def _merged(edges: Iterable[tuple[int, int, _Label]]) -> Iterator[_Link]:
    found: dict[tuple[int, int], list[_Label]] = {}
    for source, target, label in edges:
        found.setdefault((source, target), []).append(label)
    for ends, labels in found.items():
        styles, texts, tips = zip(*labels, strict=True)
        rows = tuple(row for text in texts for row in text)
        size = max(_width(text) for text, _ in rows), _LINE * len(rows)
        yield _Link(*ends, tuple(dict.fromkeys(styles)), rows, tips, *size)


class _Drawing:
    """Places states and edges; y is 0 on the line of states and grows downwards."""

    def __init__(self, nodes: list[_Node], links: list[_Link]) -> None:
        self.nodes, self.links, self.places = nodes, links, _places(nodes, links)
        top = max([_RADIUS, *(link.loop_height for link in links if link.span == 0)])
        bottom = max([_RADIUS, *(4 + link.height for link in links if link.span == 1)])
        self.above, self.top = self._lanes([link for link in links if link.span > 1], top)
        self.below, self.bottom = self._lanes([link for link in links if link.span < 0], bottom)

    def _lanes(self, arcs: list[_Link], distance: float) -> tuple[dict[_Bundle, float], float]:
        """How far from the states each bundle runs, outside of the shorter ones it overlaps, and how far all reach."""
        ends: dict[_Bundle, list[float]] = {}
        for arc in arcs:
            ends.setdefault((arc.target, arc.styles[0].name), []).extend(self._ports(arc))
        spans = {bundle: (min(xs), max(xs)) for bundle, xs in ends.items()}
        step = max((arc.height for arc in arcs), default=0.0) + 6
        lanes: dict[_Bundle, float] = {}
        for bundle, (left, right) in sorted(spans.items(), key=lambda item: (item[1][1] - item[1][0], item)):
            inside = (lane for other, lane in lanes.items() if spans[other][0] < right and left < spans[other][1])
            lanes[bundle] = max(inside, default=distance + 16 - step) + step
        return lanes, max(lanes.values(), default=distance - step) + step

    def _ports(self, arc: _Link) -> tuple[float, float]:
        """Where the arc leaves and arrives: on the shoulders of its states that face each other."""
        source, target, way = self.places[arc.source], self.places[arc.target], 1 if arc.span > 0 else -1
        return source.middle + way * (source.half - _SHOULDER), target.middle - way * (target.half - _SHOULDER)

    def svg(self, notes: list[str]) -> str:
        legend, right, bottom = _legend(self.links, notes, self.bottom + 20)
        first, last, top = self.places[0].middle - self.places[0].half, self.places[-1], self.top + _MARGIN
        width, height = max(last.middle + last.reach, right) + _MARGIN, top + bottom + _MARGIN
        size = f'width="{width:.1f}" height="{height:.1f}"'
        root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{_xy(0, -top, width, height)}" role="img"'
        font = 'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="11"'
        body = [f'{root} {font} xml:space="preserve">', f'<rect x="0" y="{-top:.1f}" {size} fill="#ffffff"/>']
        body.append(_arrow((f"M{_xy(_MARGIN, 0)}H{first - _HEAD:.1f}", first, 0, 0), _LATER))
        # What is tried first is drawn last: it stays visible where it shares a stretch with others.
        body += map(self._edge, sorted(self.links, key=lambda link: link.styles[0] is _FIRST))
        return "\n".join([*body, *map(_state, self.nodes, self.places), *legend, "</svg>"])

    def _edge(self, link: _Link) -> str:
        arrows, (left, top) = {0: self._loops, 1: self._straight}.get(link.span, self._arc)(link)
        title = f"{self.nodes[link.source].name} → {self.nodes[link.target].name}"
        drawn = [_arrow(arrow, style) for arrow, style in zip(arrows, link.styles, strict=False)]
        return _group("edge", [title, *link.tips], [*drawn, *_texts(left, top, link.rows)])

    def _loops(self, link: _Link) -> _Shape:
        x, flat, arrows = self.places[link.source].middle, self.places[link.source].half - _RADIUS, []
        for number in range(len(link.styles)):
            foot, side, rise = 7 + 6 * number, 24 + 12 * number, 42 + 16 * number
            y = -sqrt(_RADIUS**2 - max(0.0, foot - flat) ** 2)
            line = f"M{_xy(x - foot, y)}C{_xy(x - side, y - rise, x + side, y - rise, x + foot + 2, y - _HEAD)}"
            arrows.append((line, x + foot, y, 106.0))
        return arrows, (x - link.width / 2, -link.loop_height)

    def _straight(self, link: _Link) -> _Shape:
        source, target = self.places[link.source], self.places[link.target]
        start, end = source.middle + source.half, target.middle - target.half
        arrow = (f"M{_xy(start, 0)}H{end - _HEAD:.1f}", end, 0.0, 0.0)
        return [arrow], ((start + end - link.width - _HEAD) / 2, 4)

    def _arc(self, link: _Link) -> _Shape:
        """Away from the source, along the bundle's lane and back to the target; the text stands near the source."""
        sign, lanes = (-1, self.above) if link.span > 0 else (1, self.below)
        (start, end), lane = self._ports(link), sign * lanes[link.target, link.styles[0].name]
        border = sign * sqrt(_RADIUS**2 - (_RADIUS - _SHOULDER) ** 2)
        turn, bend = lane - sign * _CORNER, -sign * _CORNER
        line = f"M{_xy(start, border)}V{turn:.1f}Q{_xy(start, lane, start + bend, lane)}H{end - bend:.1f}"
        line += f"Q{_xy(end, lane, end, turn)}V{border + sign * _HEAD:.1f}"
        corner = (start + 10, lane - 2 - link.height) if sign < 0 else (start - 10 - link.width, lane + 1)
        return [(line, end, border, -90.0 * sign)], corner


def _places(nodes: list[_Node], links: list[_Link]) -> list[_Place]:
    """Neighbours as near as the texts in them, between them and above them allow."""
    loops = {link.source: link.width / 2 for link in links if link.span == 0}
    skipping = {end for link in links if link.span > 1 for end in (link.source, link.target)}
    gaps = [_GAP] * len(nodes)
    for link in links:
        number = link.source if link.span > 0 else link.source - 1
        gaps[number] = max(gaps[number], link.width + 30 if link.span else 0)
    last, places = _Place(0, 0, 0), []  # the border of the picture is the first neighbour
    for number, node in enumerate(nodes):
        loop = loops.get(number, 0.0)
        widest = max(_width(_lines(node.name, _NAME, 1)[0]), _width(node.count))
        half = max(_RADIUS, widest / 2 + 12, loop + 16 if number in skipping else 0)
        reach = max(half, loop)
        last = _Place(last.middle + max(last.half + gaps[number - 1] + half, last.reach + 20 + reach), half, reach)
        places.append(last)
    return places


def _visible(text: str) -> str:
    """The text with signs in place of what cannot be seen, or may not stand in XML."""
    return "".join(c if c.isprintable() else chr(0x2400 + ord(c)) if c < " " else "\ufffd" for c in text)


def _lines(text: str, width: int, most: int) -> list[str]:
    """The text in lines of at most that width, shortened to that many."""
    lines = textwrap.wrap(_visible(text), width, subsequent_indent="  ", break_on_hyphens=False) or [""]
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1][: width - 1].rstrip() + "…"]


def _width(text: str) -> float:
    return _LETTER * sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _xy(*numbers: float) -> str:
    return " ".join(f"{number:.1f}" for number in numbers)


def _texts(left: float, top: float, rows: Iterable[_Row]) -> Iterator[str]:
    """Lines under each other; those in the colour of an edge are headings."""
    for number, (text, color) in enumerate(rows, 1):
        place = f'x="{left:.1f}" y="{top + _LINE * number - 3:.1f}"'
        yield f'<text {place} fill="{color}"{"" if color == _INK else _BOLD}>{escape(text)}</text>'


def _group(kind: str, title: Iterable[str], parts: Iterable[str]) -> str:
    tip = escape("\n".join(map(_visible, title)))
    return "\n".join([f'<g class="{kind}"><title>{tip}</title>', *parts, "</g>"])


def _arrow(arrow: _Arrow, style: _Style) -> str:
    line, x, y, angle = arrow
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    path = f'<path d="{line}" fill="none" stroke="{style.color}" stroke-width="1.5"{dash}/>'
    turned = f'transform="translate({_xy(x, y)}) rotate({angle:.0f})"'
    return f'{path}<path d="M0 0L{_xy(-_HEAD, _HEAD / 2)}V{-_HEAD / 2}Z" fill="{style.color}" {turned}/>'


def _state(node: _Node, place: _Place) -> str:
    look = f'fill="#f6f8fa" stroke="{_INK}" stroke-width="1.5"' + ' stroke-dasharray="4 3"' * node.is_dashed
    parts = []
    for inset in (0, 4) if node.is_accepting else (0,):
        half, radius = place.half - inset, _RADIUS - inset
        box = f'x="{place.middle - half:.1f}" y="{-radius:.1f}" width="{2 * half:.1f}" height="{2 * radius:.1f}"'
        parts.append(f'<rect {box} rx="{radius:.1f}" {look}/>')
    name, middle = escape(_lines(node.name, _NAME, 1)[0]), f'x="{place.middle:.1f}" text-anchor="middle"'
    parts.append(f'<text {middle} y="{-2 if node.count else 4}" fill="{_INK}"{_BOLD}>{name}</text>')
    if node.count:
        parts.append(f'<text {middle} y="12" fill="{_PALE}">{escape(node.count)}</text>')
    return _group("accepting state" if node.is_accepting else "state", [node.tip], parts)


def _legend(links: list[_Link], notes: list[str], y: float) -> tuple[list[str], float, float]:
    """What is to be read under the picture, how far it reaches to the right, and to the bottom."""
    parts, right, left = [], 0.0, _MARGIN + 44
    for note in notes:
        lines = _lines(note, _NOTE, _NOTES)
        parts.append(_group("note", [note], _texts(_MARGIN, y, [(line, _INK) for line in lines])))
        y, right = y + _LINE * len(lines) + 4, max(right, *(_MARGIN + _width(line) for line in lines))
    for style in dict.fromkeys(style for link in links for style in link.styles):
        arrow = _arrow((f"M{_xy(_MARGIN, y + 7)}H{_MARGIN + 28:.1f}", _MARGIN + 35, y + 7, 0), style)
        texts = [*_texts(left, y, [(style.name, style.color)]), *_texts(left + 60, y, [(style.meaning, _INK)])]
        parts.append(_group("legend", [f"{style.name} {style.meaning}"], [arrow, *texts]))
        y, right = y + _LINE + 4, max(right, left + 60 + _width(style.meaning))
    return parts, right, y
