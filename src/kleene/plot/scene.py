"""The SVG of an automaton to shapes that Matplotlib draws, so that a PNG looks like it.

It reads what `kleene.automaton.svg` writes, and nothing else: paths, boxes and texts.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kleene.markup.themes import color_in

_SVG = "{http://www.w3.org/2000/svg}"
_COMMAND = re.compile(r"([MLHVCQZ])([^MLHVCQZ]*)")
_TURNED = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\) rotate\(([-\d.]+)\)")
_POINTS_PER_PIXEL = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The elements of the drawing in their order, and the part of the plane that it takes."""

    elements: tuple[ET.Element, ...]
    left: float
    top: float
    width: float
    height: float


def scene_of(svg: str) -> Scene:
    root = ET.fromstring(svg)
    box = [float(number) for number in root.attrib["viewBox"].split()]
    drawn = tuple(one for one in root.iter() if one.tag in (f"{_SVG}path", f"{_SVG}rect", f"{_SVG}text"))
    return Scene(drawn, *box)


def draw_scene(figure: Any, scene: Scene, theme: str) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch
    from matplotlib.transforms import Affine2D

    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(scene.left, scene.left + scene.width)
    axes.set_ylim(scene.top + scene.height, scene.top)
    axes.axis("off")
    figure.set_facecolor(color_in("#ffffff", theme))
    scale = figure.get_figwidth() * 72 / scene.width  # points for a unit of the drawing
    for one in scene.elements:
        fill, stroke = (_color(one, name, theme) for name in ("fill", "stroke"))
        line = {"facecolor": fill, "edgecolor": stroke, "linewidth": float(one.get("stroke-width", 0)) * scale}
        if one.get("stroke-dasharray"):
            width = float(one.get("stroke-width", 1))
            line["linestyle"] = (0, tuple(float(part) / width for part in one.get("stroke-dasharray", "").split()))
        if one.tag == f"{_SVG}text":
            _write(axes, one, scale, fill)
        elif one.tag == f"{_SVG}rect":
            x, y, width, height = (float(one.attrib[name]) for name in ("x", "y", "width", "height"))
            round_ = min(float(one.get("rx", 0)), height / 2, width / 2)
            style = f"round,pad=0,rounding_size={round_}" if round_ else "square,pad=0"
            axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, mutation_aspect=1, **line))
        else:
            turned = _TURNED.match(one.get("transform", ""))
            shape = path_of(one.attrib["d"])
            if turned is not None:
                x, y, angle = map(float, turned.groups())
                shape = shape.transformed(Affine2D().rotate_deg(angle).translate(x, y))
            axes.add_patch(PathPatch(shape, **line))


def _color(element: ET.Element, name: str, theme: str) -> str:
    color = element.get(name, "none")
    return "none" if color == "none" else color_in(color, theme)


def _write(axes: Any, element: ET.Element, scale: float, color: str) -> None:
    axes.text(
        float(element.attrib["x"]),
        float(element.attrib["y"]),
        element.text or "",
        color=color,
        family="DejaVu Sans Mono",
        size=11 * scale,
        weight=element.get("font-weight", "normal"),
        ha="center" if element.get("text-anchor") == "middle" else "left",
        va="baseline",
    )


def path_of(text: str) -> Any:
    """The path that SVG's commands describe."""
    from matplotlib.path import Path

    points, codes = [], []
    for code, point in _steps(text):
        points.append(point)
        codes.append(getattr(Path, code))
    return Path(points, codes)


def _steps(text: str) -> Iterator[tuple[str, tuple[float, float]]]:
    x = y = 0.0
    for command, rest in _COMMAND.findall(text):
        numbers = [float(number) for number in rest.replace(",", " ").split()]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
        match command:
            case "M" | "L":
                (x, y) = pairs[-1]
                yield ("MOVETO" if command == "M" else "LINETO"), (x, y)
            case "H" | "V":
                x, y = (numbers[-1], y) if command == "H" else (x, numbers[-1])
                yield "LINETO", (x, y)
            case "C" | "Q":
                (x, y) = pairs[-1]
                yield from (("CURVE4" if command == "C" else "CURVE3", pair) for pair in pairs)
            case _:
                yield "CLOSEPOLY", (x, y)
