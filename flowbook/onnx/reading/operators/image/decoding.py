"""Images in files."""

from __future__ import annotations

from typing import Any

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table

# By the names that Pillow gives them.
_FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")


def _decoder(node: Node, contents: Any) -> Any:
    order = node.get("pixel_format", "RGB")
    if order not in ("BGR", "Grayscale", "RGB"):
        raise node.refuse(f"the pixel format {order!r}")
    channels = 1 if order == "Grayscale" else 3
    image = fb.decode_op(contents, channels=channels, formats=_FORMATS)
    return fb.reverse(image, [2]) if order == "BGR" else image


TABLE: Table = {"ImageDecoder": _decoder}
