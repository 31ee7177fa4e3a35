"""Images: their codecs, sizes and boxes."""

from __future__ import annotations

from typing import Any

from flowbook import image
from flowbook.graph.model.dtypes import float32, uint8
from flowbook.graph.ops.basis.cast import cast
from flowbook.tensorflow.node import Node, Rules, named


def _resized(function: Any) -> Any:
    rule = named(
        function,
        align_corners=lambda n: n.flag("align_corners"),
        half_pixel_centers=lambda n: n.flag("half_pixel_centers"),
    )
    if function is image.resize_nearest_neighbor:
        return rule
    # What interpolates gives float32 whatever it takes.
    return lambda n, x, size: rule(n, cast(x, float32), size)


def _crops(n: Node, image_: Any, boxes: Any, places: Any, size: Any) -> Any:
    return image.crop_and_resize(
        image_,
        boxes,
        places,
        size,
        method=n.text("method", "bilinear"),
        extrapolation_value=n.number("extrapolation_value", 0.0),
        name=n.scope,
    )


def _suppression(n: Node, boxes: Any, scores: Any, count: Any) -> Any:
    return image.non_max_suppression(
        boxes, scores, count, n.number("iou_threshold", 0.5), name=n.scope
    )


RULES: Rules = {
    "CropAndResize": _crops,
    "DecodeJpeg": named(
        image.decode_jpeg,
        channels=lambda n: n.whole("channels"),
        ratio=lambda n: n.whole("ratio", 1),
    ),
    "DecodePng": named(
        image.decode_png,
        channels=lambda n: n.whole("channels"),
        dtype=lambda n: n.dtype("dtype", uint8),
    ),
    "EncodePng": named(image.encode_png, compression=lambda n: n.whole("compression", -1)),
    "HSVToRGB": named(image.hsv_to_rgb),
    "NonMaxSuppression": _suppression,
    "NonMaxSuppressionV2": named(image.non_max_suppression),
    "NonMaxSuppressionV3": named(image.non_max_suppression),
    "RGBToHSV": named(image.rgb_to_hsv),
    "ResizeArea": lambda n, x, size: image.resize_area(
        cast(x, float32), size, n.flag("align_corners"), name=n.scope
    ),
    "ResizeBicubic": _resized(image.resize_bicubic),
    "ResizeBilinear": _resized(image.resize_bilinear),
    "ResizeNearestNeighbor": _resized(image.resize_nearest_neighbor),
}
