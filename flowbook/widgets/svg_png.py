"""Pictures as PNG: what shows where SVG does not, as in a notebook that nobody has trusted yet.

It draws what Flowbook's own pictures are made of, and knows no more of SVG than they use: groups
that shift and fade, rectangles, circles, text with a halo or without, and paths of lines and
curves.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from PIL import Image, ImageColor, ImageDraw, ImageFont

from flowbook.widgets.palette import PAPER

_SCALE = 1.5  # Pixels of the picture for one of a page: many screens are that fine today.
_FINER = 2  # It is drawn finer still, and then made smaller, so that edges are smooth.
_COLOURS = 64
_PAPER = ImageColor.getrgb(PAPER)
_STEPS = 16  # Lines that stand for a curve.
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")

Point = tuple[float, float]


def svg_png(svg: str) -> tuple[bytes, int]:
    """A picture as PNG, and how wide it is to be shown."""
    root = ElementTree.fromstring(svg)
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    shown = float(root.attrib["width"])
    pen = _Pen(shown / width * _SCALE * _FINER, width, height)
    pen.draw(root, _Style())
    return pen.png(), round(shown)


@dataclass(frozen=True)
class _Style:
    """What an element takes over from those around it."""

    x: float = 0.0
    y: float = 0.0
    opacity: float = 1.0
    font_size: float = 11.0

    def within(self, element: ElementTree.Element) -> _Style:
        given = element.attrib
        shift = _numbers(given.get("transform", "translate(0 0)"))
        return replace(
            self,
            x=self.x + shift[0],
            y=self.y + shift[1],
            opacity=self.opacity * float(given.get("opacity", 1)),
            font_size=float(given.get("font-size", self.font_size)),
        )


class _Pen:
    """Draws elements.

    Args:
        scale: pixels for one unit of the picture.
        width: of the picture.
        height: of the picture.
    """

    def __init__(self, scale: float, width: float, height: float) -> None:
        size = math.ceil(width * scale), math.ceil(height * scale)
        self._scale = scale
        self._image = Image.new("RGB", size, _PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def png(self) -> bytes:
        image = self._image.reduce(_FINER).quantize(_COLOURS, Image.Quantize.FASTOCTREE)
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    def draw(self, element: ElementTree.Element, style: _Style) -> None:
        style = style.within(element)
        kind = element.tag.rpartition("}")[2]
        if kind == "rect":
            self._rectangle(element, style)
        elif kind == "circle":
            self._circle(element, style)
        elif kind == "text":
            self._text(element, style)
        elif kind == "path":
            self._path(element, style)
        for inner in element:
            self.draw(inner, style)

    def _rectangle(self, element: ElementTree.Element, style: _Style) -> None:
        x, y, width, height, radius = (
            float(element.get(name, 0)) for name in ("x", "y", "width", "height", "rx")
        )
        self._draw.rounded_rectangle(
            [*self._at(x, y, style), *self._at(x + width, y + height, style)],
            radius=min(radius, width / 2, height / 2) * self._scale,
            fill=_colour(element.get("fill"), style),
            outline=_colour(element.get("stroke"), style),
            width=self._thickness(element),
        )

    def _circle(self, element: ElementTree.Element, style: _Style) -> None:
        x, y, radius = (float(element.attrib[name]) for name in ("cx", "cy", "r"))
        centre = self._at(x, y, style)
        self._draw.circle(centre, radius * self._scale, fill=_colour(element.get("fill"), style))

    def _text(self, element: ElementTree.Element, style: _Style) -> None:
        anchor = {"middle": "ms", "end": "rs"}.get(element.get("text-anchor", ""), "ls")
        font = _font(style.font_size * self._scale, element.get("font-weight") == "600")
        at = self._at(float(element.get("x", 0)), float(element.get("y", 0)), style)
        colour, halo = (_colour(element.get(name), style) for name in ("fill", "stroke"))
        self._draw.text(
            at,
            element.text or "",
            fill=colour,
            font=font,
            anchor=anchor,
            stroke_width=0 if halo is None else self._thickness(element) // 2,
            stroke_fill=halo,
        )

    def _path(self, element: ElementTree.Element, style: _Style) -> None:
        fill, stroke = (_colour(element.get(name), style) for name in ("fill", "stroke"))
        dashes = [part * self._scale for part in _numbers(element.get("stroke-dasharray", ""))]
        for line in _lines(element.attrib["d"]):
            points = [self._at(x, y, style) for x, y in line]
            if fill is not None:
                self._draw.polygon(points, fill=fill)
            if stroke is not None:
                for piece in _dashed(points, dashes) if dashes else [points]:
                    self._draw.line(piece, stroke, self._thickness(element), joint="curve")

    def _at(self, x: float, y: float, style: _Style) -> Point:
        return (x + style.x) * self._scale, (y + style.y) * self._scale

    def _thickness(self, element: ElementTree.Element) -> int:
        return max(1, round(float(element.get("stroke-width", 1)) * self._scale))


def _colour(said: str | None, style: _Style) -> tuple[int, ...] | None:
    """A colour as it is on paper: what is faint lies on nothing else that would shine through."""
    if said is None or said == "none":
        return None
    given = ImageColor.getrgb(said)[:3]
    return tuple(
        round(style.opacity * ours + (1 - style.opacity) * papers)
        for ours, papers in zip(given, _PAPER, strict=True)
    )


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def _lines(path: str) -> Iterator[list[Point]]:
    """The lines of a path, one for each of its starts."""
    line: list[Point] = []
    for command, said in re.findall(r"([MLCQHhlz])([^MLCQHhlz]*)", path):
        numbers = _numbers(said)
        x, y = line[-1] if line else (0.0, 0.0)
        if command == "M":
            if line:
                yield line
            line = [(numbers[0], numbers[1])]
        elif command == "L":
            line += zip(numbers[::2], numbers[1::2], strict=True)
        elif command == "l":
            line.append((x + numbers[0], y + numbers[1]))
        elif command in "Hh":
            line.append((numbers[0] + (x if command == "h" else 0.0), y))
        elif command == "C":
            line += _curve((x, y), numbers)
        elif command == "Q":
            line += _curve((x, y), _cubic((x, y), numbers))
        else:
            line.append(line[0])
    if line:
        yield line


def _curve(start: Point, numbers: list[float]) -> Iterator[Point]:
    """Points of a cubic curve, without its start."""
    (x0, y0), (x1, y1, x2, y2, x3, y3) = start, numbers
    for step in range(1, _STEPS + 1):
        t = step / _STEPS
        s = 1 - t
        a, b, c, d = s**3, 3 * s * s * t, 3 * s * t * t, t**3
        yield a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def _cubic(start: Point, numbers: list[float]) -> list[float]:
    """A quadratic curve as a cubic one, both without their start."""
    (x0, y0), (x1, y1, x2, y2) = start, numbers
    towards = [x0 + (x1 - x0) * 2 / 3, y0 + (y1 - y0) * 2 / 3]
    return [*towards, x2 + (x1 - x2) * 2 / 3, y2 + (y1 - y2) * 2 / 3, x2, y2]


def _dashed(points: list[Point], dashes: list[float]) -> Iterator[list[Point]]:
    """The pieces of a line that are drawn, of lengths and gaps by turns."""
    piece, number, left = [points[0]], 0, dashes[0]
    for end in points[1:]:
        x, y = piece[-1]
        length = math.dist((x, y), end)
        while length > left:
            x, y = x + (end[0] - x) * left / length, y + (end[1] - y) * left / length
            length -= left
            piece.append((x, y))
            if number % 2 == 0:
                yield piece
            piece, number = [(x, y)], number + 1
            left = dashes[number % len(dashes)]
        left -= length
        piece.append(end)
    if number % 2 == 0:
        yield piece


@cache
def _font(size: float, is_bold: bool) -> Any:
    """The font that pictures name last: matplotlib brings it. Pillow's own has few signs."""
    package = importlib.util.find_spec("matplotlib")
    if package is None or package.origin is None:
        return ImageFont.load_default(size)
    name = "DejaVuSans-Bold.ttf" if is_bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(package.origin).parent / "mpl-data/fonts/ttf" / name, size)
