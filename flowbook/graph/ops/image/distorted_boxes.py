"""Random parts of images that keep enough of an object: crops of random size, shape and place.

The crops are those that TensorFlow 1 draws from the same two seeds: its arithmetic, in float32, and
its order of draws from the stream decide both which sizes come and which are given up.

Source: Szegedy et al., "Going deeper with convolutions", 2014, section 6, which trains on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import INDICES
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import DRAWS
from flowbook.graph.numerics.random import philox, philox_numbers
from flowbook.graph.ops.random.random_numbers import seeds

__all__ = ["sample_distorted_bounding_box"]

_Box = tuple[int, int, int, int]
"""In pixels, [y1, x1, y2, x2), unlike the boxes that users give."""


class DistortedBox(NamedTuple):
    """A random part of an image: what `slice` takes, and the same as a box."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


class _Lots:
    """The words of a stream, one after another, as numbers."""

    def __init__(self, key: philox.Key, counter: philox.Counter) -> None:
        self._words = _stream(key, counter)

    def unit(self) -> np.float32:
        """Uniform on [0, 1)."""
        word = np.array([next(self._words)], np.uint32)
        return philox_numbers.uniform_float32(word)[0]  # type: ignore[no-any-return]

    def below(self, count: int) -> int:
        """Exactly uniform on 0, ..., count - 1: words that would favour some are passed over."""
        word = next(self._words)
        surplus = 0 if count & count - 1 == 0 else (2**32 - 1) % count + 1
        while word < surplus:
            word = next(self._words)
        return word % count


def _stream(key: philox.Key, counter: philox.Counter) -> Iterator[int]:
    while True:
        yield from philox.random_bits(key, counter, 4).tolist()
        counter = philox.advance(counter, 1)


def _check(image_size: Any, bounding_boxes: Any, min_object_covered: Any) -> None:
    """The same for tensors as for arrays."""
    for name, value, wanted in (
        ("image_size", image_size, (3,)),
        ("bounding_boxes", bounding_boxes, (None, None, 4)),
        ("min_object_covered", min_object_covered, ()),
    ):
        if not Shape(value.shape).is_compatible_with(wanted):
            raise InvalidArgumentError(
                f"{name!r} is of shape {Shape(wanted)}, not {Shape(value.shape)}"
            )


def _shapes(size: Tensor, boxes: Tensor, covered: Tensor, **attributes: Any) -> list[Shape]:
    _check(size, boxes, covered)
    return [Shape.of((3,)), Shape.of((3,)), Shape.of((1, 1, 4))]


def _sampled(
    xp: Any,
    state: Any,
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    aspect_ratio_range: tuple[float, float],
    area_range: tuple[float, float],
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> tuple[Any, Any, Any]:
    _check(image_size, bounding_boxes, min_object_covered)
    height, width, _ = image_size.tolist()
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"an image of {height} x {width} pixels has no parts")
    if not min_object_covered >= 0:
        raise InvalidArgumentError(f"min_object_covered is not negative: {min_object_covered}")
    whole = (0, 0, height, width)
    objects = _in_pixels(bounding_boxes.reshape(-1, 4), height, width)
    if not objects:
        if not use_image_if_no_bounding_boxes:
            raise InvalidArgumentError(
                "there are no bounding boxes", hint="use_image_if_no_bounding_boxes=True"
            )
        objects = [whole]
    # Four words for each attempt: shape, size and place.
    lots = _Lots(*state.reserve(max_attempts))
    low, high = np.array(aspect_ratio_range, np.float32)
    areas = np.array(area_range, np.float32)
    found = whole
    for _ in range(max_attempts):
        crop = _crop(height, width, areas, lots.unit() * (high - low) + low, lots)
        if crop is not None and _covers(crop, objects, float(min_object_covered)):
            found = crop
            break
    top, left, bottom, right = found
    dtype = image_size.dtype
    box = np.array(found, np.float32) / np.array([height, width] * 2, np.float32)
    return (
        xp.array([top, left, 0], dtype),
        xp.array([bottom - top, right - left, -1], dtype),
        box.reshape(1, 1, 4),
    )


def _in_pixels(boxes: Any, height: int, width: int) -> list[_Box]:
    if not ((boxes >= 0) & (boxes <= 1)).all():
        wrong = boxes[~((boxes >= 0) & (boxes <= 1)).all(axis=1)][0]
        raise InvalidArgumentError(f"a bounding box lies in [0, 1], not at {wrong.tolist()}")
    scaled = boxes * np.array([height, width] * 2, np.float32)
    return [tuple(box) for box in scaled.astype(np.int64).tolist()]


def _crop(height: int, width: int, areas: Any, aspect: Any, lots: _Lots) -> _Box | None:
    """A crop of that width per height, in that range of parts of the image; None if none fits."""
    least, most = areas * np.float32(width) * np.float32(height)
    low, high = (int(np.rint(np.sqrt(area / aspect))) for area in (least, most))
    if _across(high, aspect) > width:
        high = int((width + 0.5 - 1e-7) / float(aspect))
    high = min(high, height)
    rows = min(low, high)
    if rows < high:
        rows += lots.below(high - rows + 1)
    # What rounding has made too small or too large by a row is put right.
    rows += int(rows * _across(rows, aspect) < least)
    rows -= int(rows * _across(rows, aspect) > most)
    columns = _across(rows, aspect)
    fits = 0 < rows <= height and 0 < columns <= width
    if not (fits and least <= rows * columns <= most):
        return None
    top = lots.below(height - rows) if rows < height else 0
    left = lots.below(width - columns) if columns < width else 0
    return top, left, top + rows, left + columns


def _across(rows: int, aspect: Any) -> int:
    return int(np.rint(np.float32(rows) * aspect))


def _covers(crop: _Box, objects: list[_Box], part: float) -> bool:
    """Whether the crop holds that part of one of the objects; those without pixels do not count."""
    for box in objects:
        shared = [max(crop[0], box[0]), max(crop[1], box[1]), *map(min, crop[2:], box[2:])]
        if _area(box) and np.float32(_area(shared)) / np.float32(_area(box)) >= part:
            return True
    return False


def _area(box: Sequence[int]) -> int:
    return max(0, box[2] - box[0]) * max(0, box[3] - box[1])


sample_distorted_bounding_box_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "SampleDistortedBoundingBox",
    "image_size: I, bounding_boxes: float32, min_object_covered: float32"
    " -> begin: I, size: I, bboxes: float32",
    I=INDICES,
    attributes={
        "aspect_ratio_range": (0.75, 1.33),
        "area_range": (0.05, 1.0),
        "max_attempts": 100,
        "use_image_if_no_bounding_boxes": False,
        "seed": None,
        "graph_seed": None,
    },
    infer=_shapes,
    kernel=_sampled,
    kinds=HOST,
    host_args=("image_size", "min_object_covered"),
    grad=NO_GRADIENT,
    touches=DRAWS,
    owns="random_state",
    cost=lambda op: 100 * op.attributes["max_attempts"],
)


@sample_distorted_bounding_box_op.front
def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
    name: str | None = None,
) -> DistortedBox:
    """A random part of an image that holds enough of one of its objects, to train on.

    Args:
        image_size: [height, width, channels], an int vector, such as `fb.shape(image)`.
        bounding_boxes: float32 [batch, boxes, 4] of the objects, each [y1, x1, y2, x2] where 0 and
            1 are the image's ends.
        seed: an int that makes the parts reproducible, see `set_random_seed`.
        min_object_covered: how much of one of the objects lies inside at least, a part of it.
        aspect_ratio_range: width per height, from the least to the largest.
        area_range: parts of the image's area, likewise.
        max_attempts: how often to try; after that it is the whole image.
        use_image_if_no_bounding_boxes: take the image for the object where there is none.

    Returns:
        A named tuple: `begin` [3] and `size` [3] for `fb.slice(image, begin, size)`, of the dtype
        of `image_size`, and `bboxes`, float32 [1, 1, 4], for `fb.image.draw_bounding_boxes`.

    Raises:
        InvalidArgumentError: if arguments do not fit; in the run, where they are known only then.

    >>> import flowbook as fb
    >>> image = fb.zeros([40, 60, 3])
    >>> objects = [[[0.2, 0.2, 0.6, 0.5]]]
    >>> part = fb.image.sample_distorted_bounding_box(fb.shape(image), objects, seed=1)
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.slice(image, part.begin, part.size)).shape[2])
    3
    """
    how = {
        "aspect_ratio_range": _range("aspect_ratio_range", aspect_ratio_range, math.inf),
        "area_range": _range("area_range", area_range, 1),
    }
    if max_attempts < 1:
        raise InvalidArgumentError(f"max_attempts is at least 1, not {max_attempts}")
    result = sample_distorted_bounding_box_op(
        image_size,
        bounding_boxes,
        min_object_covered,
        **how,
        max_attempts=int(max_attempts),
        use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes),
        **seeds(seed),
        name=name,
    )
    return DistortedBox(*result)


def _range(name: str, ends: Any, most: float) -> tuple[float, float]:
    low, high = (float(end) for end in ends)
    if not 0 < low <= high <= most or high == math.inf:
        limit = "" if most == math.inf else f" and up to {most}"
        raise InvalidArgumentError(f"{name} is two numbers in order, above 0{limit}, not {ends}")
    return low, high
