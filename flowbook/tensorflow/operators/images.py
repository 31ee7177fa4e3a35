"""Images: their codecs, sizes and boxes."""

from __future__ import annotations

from typing import Any

from flowbook import image
from flowbook.graph.model.dtypes import float32, uint8
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.shaping import size
from flowbook.tensorflow.node import Node, Rules, named
from flowbook.tensorflow.operators.random import seed_of


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


def _padded_suppression(n: Node, boxes: Any, scores: Any, most: Any, iou: Any, least: Any) -> Any:
    padded = n.flag("pad_to_max_output_size")
    return list(
        image.non_max_suppression_padded(boxes, scores, most, iou, least, padded, name=n.scope)
    )


def _soft_suppression(
    n: Node, boxes: Any, scores: Any, most: Any, iou: Any, least: Any, sigma: Any
) -> Any:
    if n.flag("pad_to_max_output_size"):
        raise UnimplementedError(f"{n} fills up what it gives")
    chosen, scores = image.non_max_suppression_with_scores(
        boxes, scores, most, iou, least, sigma, name=n.scope
    )
    return [chosen, scores, size(chosen)]


def _distorted_box(n: Node, image_size: Any, boxes: Any, *covered: Any) -> Any:
    [least] = covered or [n.number("min_object_covered", 0.1)]
    found = image.sample_distorted_bounding_box(
        image_size,
        boxes,
        seed_of(n),
        least,
        n.numbers("aspect_ratio_range", (0.75, 1.33)),
        n.numbers("area_range", (0.05, 1.0)),
        n.whole("max_attempts", 100),
        n.flag("use_image_if_no_bounding_boxes"),
        name=n.scope,
    )
    return list(found)


RULES: Rules = {
    "AdjustContrastv2": lambda n, x, factor: image.adjust_contrast(x, factor),
    "AdjustHue": named(image.adjust_hue),
    "AdjustSaturation": named(image.adjust_saturation),
    "CropAndResize": named(
        image.crop_and_resize,
        method=lambda n: n.text("method", "bilinear"),
        extrapolation_value=lambda n: n.number("extrapolation_value", 0.0),
    ),
    "DecodeBmp": named(image.decode_bmp, channels=lambda n: n.whole("channels")),
    "DecodeImage": named(
        image.decode_image,
        channels=lambda n: n.whole("channels"),
        dtype=lambda n: n.dtype("dtype", uint8),
    ),
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
    "DrawBoundingBoxesV2": lambda n, x, boxes, colors: image.draw_bounding_boxes(
        x, boxes, n.scope, colors
    ),
    "EncodeJpeg": named(
        image.encode_jpeg,
        format=lambda n: n.text("format"),
        quality=lambda n: n.whole("quality", 95),
        progressive=lambda n: n.flag("progressive"),
        optimize_size=lambda n: n.flag("optimize_size"),
        chroma_downsampling=lambda n: n.flag("chroma_downsampling", True),
    ),
    "EncodePng": named(image.encode_png, compression=lambda n: n.whole("compression", -1)),
    "HSVToRGB": named(image.hsv_to_rgb),
    "NonMaxSuppression": named(
        image.non_max_suppression, iou_threshold=lambda n: n.number("iou_threshold", 0.5)
    ),
    "NonMaxSuppressionV2": named(image.non_max_suppression),
    "NonMaxSuppressionV3": named(image.non_max_suppression),
    "NonMaxSuppressionV4": _padded_suppression,
    "NonMaxSuppressionV5": _soft_suppression,
    "RGBToHSV": named(image.rgb_to_hsv),
    **dict.fromkeys(("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"), _distorted_box),
    "ResizeArea": lambda n, x, size: image.resize_area(
        cast(x, float32), size, n.flag("align_corners"), name=n.scope
    ),
    "ResizeBicubic": _resized(image.resize_bicubic),
    "ResizeBilinear": _resized(image.resize_bilinear),
    "ResizeNearestNeighbor": _resized(image.resize_nearest_neighbor),
}
