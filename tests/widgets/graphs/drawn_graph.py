"""What a picture of a graph shows, read off its SVG."""

from __future__ import annotations

import math
import re
from typing import NamedTuple
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"-?[\d.]+")


class Box(NamedTuple):
    """A box as it is drawn.

    Attributes:
        place: its left, its top, its width and its height.
        texts: its name, what is said of it, its marks.
        fill: its colour.
        outline: that of the line around it.
        bar: the colours of the bar at its bottom, with the length of each.
        is_faint: whether something else stands out.
    """

    place: tuple[float, float, float, float]
    texts: list[str]
    fill: str
    outline: str
    bar: list[tuple[str, float]]
    is_faint: bool


def boxes(svg: str) -> dict[str, Box]:
    """The boxes of a picture, by what they are called."""
    root = ElementTree.fromstring(svg)
    faint = {
        id(inner) for group in root.iter(f"{SVG}g") if "opacity" in group.attrib for inner in group
    }
    found = {}
    for group in root.iter(f"{SVG}g"):
        name = group.findtext(f"{SVG}title")
        if name is None:
            continue
        # Behind one that opens there is a second sheet.
        framed = [each for each in group.findall(f"{SVG}rect") if each.get("rx") != "6.5"]
        shape = framed[-1].attrib
        found[name] = Box(
            tuple(float(shape[key]) for key in ("x", "y", "width", "height")),
            [text.text or "" for text in group.iter(f"{SVG}text")],
            shape["fill"],
            shape["stroke"],
            [
                (path.attrib["stroke"], float(path.attrib["d"].rpartition("h")[2]))
                for path in group.iter(f"{SVG}path")
            ],
            id(group) in faint,
        )
    return found


def routes(svg: str) -> list[str]:
    """The lines of a picture."""
    root = ElementTree.fromstring(svg)
    paths = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    return [path.attrib["d"] for path in paths if path.get("stroke-dasharray") != "2 5"]


def edges(svg: str) -> set[tuple[str, str]]:
    """Which boxes the lines of a picture join."""
    places = {name: box.place for name, box in boxes(svg).items()}

    def at(x: float, y: float) -> str:
        def distance(name: str) -> float:
            left, top, width, height = places[name]
            return math.hypot(
                max(left - x, 0.0, x - left - width), max(top - y, 0.0, y - top - height)
            )

        return min(places, key=distance)

    found = set()
    for route in routes(svg):
        numbers = [float(number) for number in _NUMBER.findall(route)]
        found.add((at(*numbers[:2]), at(*numbers[-2:])))
    return found
