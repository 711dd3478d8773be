"""Pictures as trees, for tests of what is in them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

SVG = "{http://www.w3.org/2000/svg}"


def tree_of(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def groups(svg: str) -> Counter[str]:
    """How many groups there are of each class."""
    return Counter(one.get("class", "") for one in tree_of(svg).iter(f"{SVG}g"))


def marks(svg: str, kind: str) -> int:
    """How many marks all groups of the class have."""
    found = [one for one in tree_of(svg).iter(f"{SVG}g") if one.get("class") == kind]
    return sum(len(list(one.iter(f"{SVG}use"))) for one in found)


def texts(svg: str) -> list[str]:
    return ["".join(one.itertext()).strip() for one in tree_of(svg).iter(f"{SVG}text")]
