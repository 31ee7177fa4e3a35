"""What the image functions are tried on, and the recording of what TensorFlow's compute of it.

    benchmarks/.peers/bin/python -m tests.record_images

It runs where TensorFlow is installed, and writes `tests/recorded/images.npz`, which
`tests/graph/ops/image/test_images_tensorflow.py` holds Flowbook's values against. Both have the
functions by the same names, so that a program is a function of the module that it is tried in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.record_tensorflow import RECORDED, digest

_random = np.random.default_rng(11)
FLOATS = _random.uniform(0, 1, (2, 5, 6, 3)).astype(np.float32)
FLOATS[0, 0, :4] = [[0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 0], [0.25, 0.75, 0.75]]
BYTES = (FLOATS * 255).astype(np.uint8)
GREYS = FLOATS[..., :1].copy()
# As many as there are colours, and one more; inside, across the border, outside, and no boxes.
BOXES = np.full((2, 11, 4), 0.5, np.float32)
BOXES[0, :6] = [
    *([0, 0, 1, 1], [0.3, -0.5, 0.7, 0.6], [0.2, 0.4, 1.6, 1.2]),
    *([-0.9, 0.1, -0.4, 0.8], [0.8, 0.2, 0.1, 0.9], [np.nan, 0.3, 0.4, 0.5]),
]
BOXES[1] = np.linspace(-0.05, 1.05, 11, dtype=np.float32)[:, None] + [0, 0, 0.3, 0.2]
COLOURS = np.array([[0.25, 0.5, 0.75, 1], [1, 0, 0.5, 0]], np.float32)
# Smooth, as photographs are: what JPEG keeps.
_y, _x = np.mgrid[:40, :56]
PHOTO = np.stack(
    [127 + 90 * np.sin(_x / 9) * np.cos(_y / 7), 3 * _x + 2 * _y, 255 - 4 * _y], -1
).clip(0, 255)
PHOTO = PHOTO.astype(np.uint8)
DEEP = (PHOTO.astype(np.uint16) << 8) + np.arange(56, dtype=np.uint16)[None, :, None]

Program = Callable[[Any, Any], Any]

PROGRAMS: dict[str, tuple[np.ndarray, Program]] = {
    "crop": (FLOATS, lambda image, x: image.crop_to_bounding_box(x, 1, 2, 3, 4)),
    "pad": (FLOATS, lambda image, x: image.pad_to_bounding_box(x, 1, 2, 7, 9)),
    "smaller": (FLOATS, lambda image, x: image.resize_image_with_crop_or_pad(x, 2, 3)),
    "larger": (FLOATS, lambda image, x: image.resize_image_with_crop_or_pad(x, 8, 9)),
    "both": (BYTES, lambda image, x: image.resize_image_with_crop_or_pad(x, 4, 9)),
    **{
        f"fitted into {height} x {width}": (
            FLOATS,
            lambda image, x, height=height, width=width: image.resize_image_with_pad(
                x, height, width
            ),
        )
        for height, width in ((4, 9), (9, 4), (3, 3), (10, 12), (1, 6), (11, 7))
    },
    "fitted aligned": (
        FLOATS[0],
        lambda image, x: image.resize_image_with_pad(x, 8, 7, 1, align_corners=True),
    ),
    "boxes": (FLOATS, lambda image, x: image.draw_bounding_boxes(x, BOXES)),
    "grey boxes": (GREYS, lambda image, x: image.draw_bounding_boxes(x, BOXES)),
    "coloured boxes": (
        FLOATS,
        lambda image, x: image.draw_bounding_boxes(x, BOXES, colors=COLOURS),
    ),
    **{
        f"centre {fraction}": (
            FLOATS,
            lambda image, x, fraction=fraction: image.central_crop(x, fraction),
        )
        for fraction in (0.2, 0.5, 0.67, 1.0)
    },
    "flip left right": (FLOATS, lambda image, x: image.flip_left_right(x)),
    "flip up down": (FLOATS[0], lambda image, x: image.flip_up_down(x)),
    "transpose": (FLOATS, lambda image, x: image.transpose_image(x)),
    **{
        f"rot90 {k}": (FLOATS, lambda image, x, k=k: image.rot90(x, k)) for k in (0, 1, 2, 3, 5, -1)
    },
    "to grey": (FLOATS, lambda image, x: image.rgb_to_grayscale(x)),
    "bytes to grey": (BYTES, lambda image, x: image.rgb_to_grayscale(x)),
    "to colour": (GREYS, lambda image, x: image.grayscale_to_rgb(x)),
    "to hsv": (FLOATS, lambda image, x: image.rgb_to_hsv(x)),
    "from hsv": (FLOATS, lambda image, x: image.hsv_to_rgb(x)),
    **{
        f"{kind} {name} {amount}": (
            pixels,
            lambda image, x, name=name, amount=amount: getattr(image, f"adjust_{name}")(x, amount),
        )
        for kind, pixels in (("floats", FLOATS), ("bytes", BYTES))
        for name, amounts in {
            "brightness": (0.3, -0.4),
            "contrast": (1.7, 0.3),
            "hue": (0.1, -0.4),
            "saturation": (0.4, 2.5),
        }.items()
        for amount in amounts
    },
    "gamma": (FLOATS, lambda image, x: image.adjust_gamma(x, 2.2, 0.9)),
    "bytes gamma": (BYTES, lambda image, x: image.adjust_gamma(x, 0.5, 1.1)),
    "standardized": (FLOATS, lambda image, x: image.per_image_standardization(x)),
    "bytes standardized": (BYTES, lambda image, x: image.per_image_standardization(x)),
    "one colour standardized": (
        np.full((3, 4, 3), 7.0, np.float32),
        lambda image, x: image.per_image_standardization(x),
    ),
    "variation": (FLOATS, lambda image, x: image.total_variation(x)),
    "one variation": (FLOATS[0], lambda image, x: image.total_variation(x)),
    # Inside of the images, beyond which TensorFlow's noise is of its own.
    **{
        f"glimpses {note}": (
            FLOATS,
            lambda image, x, given=given: image.extract_glimpse(x, *given),
        )
        for note, given in {
            "as usual": ((3, 4), np.float32([[0, 0], [0.2, -0.1]])),
            "from the corner": ((2, 3), np.float32([[0.5, 0.5], [0.6, 0.4]]), False),
            "in pixels": ((3, 2), np.float32([[2, 3], [2.7, 4.2]]), False, False),
            "in halves of pixels": ((3, 2), np.float32([[1, 1], [-1.5, 2.2]]), True, False),
        }.items()
    },
    "noise ratio": (FLOATS, lambda image, x: image.psnr(x, x * 0.9, 1.0)),
    "bytes noise ratio": (BYTES, lambda image, x: image.psnr(x, x[:, ::-1], 255)),
    **{
        f"{given.dtype} as {wanted}{' saturated' * saturate}": (
            given,
            lambda image, x, wanted=wanted, saturate=saturate: image.convert_image_dtype(
                x, wanted, saturate
            ),
        )
        for given, wanted, saturate in (
            (FLOATS, "uint8", False),
            (FLOATS, "uint16", False),
            (FLOATS * 3 - 1, "uint8", True),
            (BYTES, "float32", False),
            (BYTES, "uint16", False),
            (BYTES, "int32", False),
            (DEEP, "uint8", False),
            (DEEP, "float32", False),
        )
    },
}

# The file that TensorFlow makes of the pixels, and what it reads in it.
FILES: dict[str, tuple[np.ndarray, Program, Program]] = {
    **{
        f"png {pixels.dtype} {channels}": (
            pixels[..., :channels]
            if channels < 4
            else np.concatenate([pixels, pixels[..., :1]], 2),
            lambda image, x: image.encode_png(x),
            lambda image, data, dtype=pixels.dtype.name: image.decode_png(data, dtype=dtype),
        )
        for pixels in (PHOTO, DEEP)
        for channels in (1, 2, 3, 4)
    },
    "png as grey": (
        PHOTO,
        lambda image, x: image.encode_png(x),
        lambda image, data: image.decode_png(data, channels=1),
    ),
    "jpeg": (
        PHOTO,
        lambda image, x: image.encode_jpeg(x),
        lambda image, data: image.decode_jpeg(data),
    ),
    "jpeg fine": (
        PHOTO,
        lambda image, x: image.encode_jpeg(x, quality=100, chroma_downsampling=False),
        lambda image, data: image.decode_jpeg(data),
    ),
    "jpeg grey": (
        PHOTO[..., :1],
        lambda image, x: image.encode_jpeg(x, quality=60),
        lambda image, data: image.decode_jpeg(data),
    ),
    "jpeg as grey": (
        PHOTO,
        lambda image, x: image.encode_jpeg(x, progressive=True),
        lambda image, data: image.decode_jpeg(data, channels=1),
    ),
    "jpeg shrunk": (
        PHOTO,
        lambda image, x: image.encode_jpeg(x),
        lambda image, data: image.decode_jpeg(data, ratio=2),
    ),
}


# Objects, image sizes and further arguments; drawn with the seeds 87654321 and 0, 1, ... in turn.
CROPS: dict[str, tuple[list[list[float]], list[int], dict[str, Any]]] = {
    "as usual": ([[0.2, 0.3, 0.7, 0.6], [0.0, 0.0, 0.1, 0.1]], [375, 500, 3], {}),
    "whole objects": ([[0.2, 0.3, 0.7, 0.6]], [50, 40, 3], {"min_object_covered": 1.0}),
    "large": ([[0.0, 0.0, 1.0, 1.0]], [31, 64, 1], {"area_range": (0.7, 0.9)}),
    "wide": ([[0.1, 0.1, 0.9, 0.9]], [31, 64, 1], {"aspect_ratio_range": (2.0, 9.0)}),
    "given up": (
        [[0.4, 0.4, 0.5, 0.5]],
        [20, 30, 3],
        {"min_object_covered": 1.0, "area_range": (0.05, 0.1), "max_attempts": 3},
    ),
    "without pixels": ([[0.4, 0.4, 0.41, 0.5], [0.0, 0.0, 0.5, 0.5]], [20, 30, 3], {}),
    "tiny": ([[0.0, 0.0, 1.0, 1.0]], [2, 3, 3], {}),
}
CROP_SEEDS = range(12)


def crop_digest(name: str) -> str:
    """What tells whether a recording was made of these arguments."""
    return digest([np.array(repr(CROPS[name]).encode(), object)])


def main() -> None:
    """Record everything."""
    import tensorflow as tf

    image = tf.compat.v1.image
    found: dict[str, np.ndarray] = {}
    for name, (pixels, program) in PROGRAMS.items():
        found[f"{name}/digest"] = np.array(digest([pixels]))
        found[name] = np.asarray(program(image, tf.constant(pixels)))
    for name, (pixels, encode, decode) in FILES.items():
        found[f"{name}/digest"] = np.array(digest([pixels]))
        contents = encode(image, tf.constant(pixels))
        found[f"{name}/file"] = np.frombuffer(contents.numpy(), np.uint8)
        found[name] = np.asarray(decode(image, contents))
    for name, (objects, size, how) in CROPS.items():
        # Called eagerly, operations of the same seeds would go on where the last one ended.
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            parts = session.run(
                [
                    image.sample_distorted_bounding_box(
                        size,
                        [objects],
                        seed=87654321,
                        seed2=seed,
                        **{"min_object_covered": 0.1, **how},
                    )
                    for seed in CROP_SEEDS
                ]
            )
        found[f"{name}/digest"] = np.array(crop_digest(name))
        for port, outputs in enumerate(zip(*parts, strict=True)):
            found[f"{name}/{port}"] = np.stack(outputs)
    np.savez_compressed(RECORDED / "images.npz", **found)
    print(f"{len(PROGRAMS) + len(FILES) + len(CROPS)} recordings")


if __name__ == "__main__":
    main()
