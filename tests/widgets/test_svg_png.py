"""PNG forms of pictures: drawn as their SVG is."""

import io

import pytest
from PIL import Image

import flowbook as fb
from flowbook.widgets.graphs.svg import graph_svg
from flowbook.widgets.svg_png import svg_png


def drawn(inside: str, width: int = 40, height: int = 20) -> Image.Image:
    """The picture, of as many pixels as the SVG is wide."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{inside}</svg>'
    )
    png, shown = svg_png(svg)
    assert shown == width
    return Image.open(io.BytesIO(png)).convert("RGB").resize((width, height), Image.Resampling.BOX)


def is_red(image: Image.Image, x: int, y: int) -> bool:
    red, green, blue = image.getpixel((x, y))  # type: ignore[misc]
    return red > 180 and green < 80 and blue < 80


@pytest.mark.parametrize(
    ("inside", "here", "not_here"),
    [
        ('<rect x="4" y="4" width="20" height="12" fill="#ff0000"/>', (14, 10), (30, 10)),
        ('<circle cx="10" cy="10" r="6" fill="#ff0000"/>', (10, 10), (20, 10)),
        ('<path d="M0 10H20" stroke="#ff0000" stroke-width="6"/>', (10, 10), (30, 10)),
        ('<path d="M10 2l-8 16h16z" fill="#ff0000"/>', (10, 14), (3, 3)),
        ('<path d="M0 0L38 18" stroke="#ff0000" stroke-width="6"/>', (19, 9), (19, 1)),
        (
            '<path d="M0 18C0 0 20 0 20 18" fill="none" stroke="#ff0000" stroke-width="6"/>',
            (10, 4),
            (10, 14),
        ),
        (
            '<path d="M0 18Q10 -10 20 18" fill="none" stroke="#ff0000" stroke-width="6"/>',
            (10, 4),
            (10, 14),
        ),
        (
            '<path d="M0 10H40" stroke="#ff0000" stroke-width="6" stroke-dasharray="10 10"/>',
            (25, 10),
            (15, 10),
        ),
        (
            '<g transform="translate(20 0)"><rect width="10" height="20" fill="#ff0000"/></g>',
            (25, 10),
            (5, 10),
        ),
    ],
    ids=["rect", "circle", "H", "lhz", "L", "C", "Q", "dashes", "translate"],
)
def test_shapes_are_where_svg_has_them(
    inside: str, here: tuple[int, int], not_here: tuple[int, int]
) -> None:
    image = drawn(inside)
    assert is_red(image, *here)
    assert not is_red(image, *not_here)


def test_what_is_faint_is_pale() -> None:
    image = drawn('<g opacity="0.3"><rect width="40" height="20" fill="#ff0000"/></g>')
    red, green, _ = image.getpixel((20, 10))  # type: ignore[misc]
    assert red > 230
    assert 150 < green < 210


def test_a_halo_lies_between_text_and_what_is_behind_it() -> None:
    behind = '<rect width="40" height="20" fill="#ff0000"/>'
    text = '<text x="20" y="14" font-size="12" fill="#000000" text-anchor="middle"{}>I</text>'
    plain = drawn(behind + text.format(""))
    haloed = drawn(behind + text.format(' stroke="#ffffff" stroke-width="8"'))
    assert is_red(plain, 16, 10)
    assert haloed.getpixel((16, 10))[1] > 180  # type: ignore[index]
    assert is_red(haloed, 5, 10)


@pytest.mark.parametrize(("anchor", "side"), [("", 30), ("middle", 20), ("end", 10)])
def test_text_is_anchored(anchor: str, side: int) -> None:
    image = drawn(
        f'<text x="20" y="18" font-size="18" fill="#ff0000" text-anchor="{anchor}">HHHH</text>'
        if anchor
        else '<text x="20" y="18" font-size="18" fill="#ff0000">HHHH</text>'
    )
    columns = [x for x in range(40) if any(image.getpixel((x, y))[1] < 150 for y in range(20))]  # type: ignore[index]
    left, right = columns[0], columns[-1]
    assert {10: right <= 21, 20: left < 4 and right > 36, 30: left >= 19}[side]


def test_a_graph_is_drawn_as_wide_as_its_svg() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    fb.tanh(x)
    svg = graph_svg(fb.get_default_graph())
    png, width = svg_png(svg)
    assert f'width="{width}' in svg
    assert len(Image.open(io.BytesIO(png)).getcolors() or ()) > 8  # Boxes, an edge, and words.
