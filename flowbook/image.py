"""Images: size, parts, colours, and their encoding in files. Names are those of TensorFlow 1."""

from flowbook.graph.ops.resizing import (
    ResizeMethod,
    crop_and_resize,
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_images,
    resize_nearest_neighbor,
)

__all__ = [
    "ResizeMethod",
    "crop_and_resize",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_images",
    "resize_nearest_neighbor",
]
