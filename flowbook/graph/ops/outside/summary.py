"""Summaries: operations that condense a tensor to what a chart shows.

What they give is plain data, of a size that the tensor's does not decide: a run returns it like
any fetched value, and whoever keeps summaries says where it goes
(`flowbook.exec.instruments.summaries`).
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.definition.inference import elementwise, same_as_input
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, Built, OpDef
from flowbook.graph.model.dtypes import FLOATS, REALS, uint8
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.summaries import SUFFIX
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.basis.shaping import reshape

__all__ = ["histogram", "image", "scalar", "text"]

# Buckets of a histogram grow by a tenth, from the smallest magnitude that counts as different from
# zero to the largest: a bucket tells apart what differs by ten per cent, at every scale.
_SMALLEST, _LARGEST, _GROWTH = 1e-12, 1e20, 1.1
_STEPS = int(np.ceil(np.log(_LARGEST / _SMALLEST) / np.log(_GROWTH)))

_IMAGE_RED = (255, 0, 0, 255)

_INVALID = re.compile(r"[^A-Za-z0-9_.\\/>-]")
_LONGEST_NAME = 100


def _one_value(value: Tensor, **_: Any) -> Shape:
    if value.shape.size not in (None, 1):
        raise InvalidArgumentError(
            f"a scalar summary shows one value, not those of shape {value.shape}",
            hint="fb.reduce_mean(x) is one; fb.summary.histogram shows many",
        )
    return SCALAR


def _scalar(xp: Any, value: Any) -> Any:
    if value.size != 1:
        raise InvalidArgumentError(
            f"a scalar summary shows one value, not those of shape {list(value.shape)}"
        )
    return value.reshape(()).astype(xp.float64)


scalar_op = OpDef(
    "ScalarSummary",
    "value: T -> summary: float64",
    T=REALS,
    attributes={"tag": ""},
    infer=_one_value,
    kernel=_scalar,
    grad=NO_GRADIENT,
    # A float64 scalar is returned as it came.
    aliases={0: 0},
    summary="scalar",
    only_moves=True,
)


@scalar_op.front
def scalar(name: str, tensor: Any, last: bool = False) -> Tensor:
    """Show one number over the steps of a training.

    Args:
        name: what it is called where it is shown, after the name scope. Any text; characters that
            an operation's name cannot have are shown all the same.
        tensor: one element of a real dtype.
        last: in the body of a loop, where a tensor has a value for each iteration, whether that of
            the last iteration is shown; if there was none, NaN, of an integer 0. Without it nothing
            is shown of what is in a loop.

    Returns:
        The value, a float64 scalar; nobody has to fetch it (see `Session.summarize`). With `last`
        in a loop the tensor itself.

    Raises:
        InvalidArgumentError: if there are more values than one; if the last value is wanted in a
            loop's condition, or in a branch, where an iteration may have none.

    >>> import flowbook as fb
    >>> x = fb.Variable([3.0, 4.0])
    >>> loss = fb.reduce_sum(fb.square(x))
    >>> _ = fb.summary.scalar("loss", loss)
    >>> train = fb.train.GradientDescentOptimizer(0.25).minimize(loss)
    >>> with fb.Session() as sess:
    ...     kept = sess.summarize()
    ...     for _ in range(3):
    ...         sess.run(train)
    ...     [(p.step, p.value) for p in kept.history.points("loss")]
    [(0, 25.0), (1, 6.25), (2, 1.5625)]
    """
    if not last or get_default_graph().scope.flow is None:
        return _built(scalar_op, name, tensor)
    value = convert_to_tensor(tensor)
    _one_value(value)
    _keep(value if value.shape.rank == 0 else reshape(value, []), _scope_and(name), name)
    return value


def _keep(value: Tensor, tag: str, name: str) -> None:
    """Summarise a value when it has left the loops that it is in."""
    flow = get_default_graph().scope.flow
    if flow is None:
        scalar_op(value, tag=tag, name=_plain(name) + SUFFIX)
        return
    with flow.outside():
        first = constant(np.nan if value.dtype.is_floating else 0, value.dtype)
    flow.keep(value, first, name, lambda left: _keep(left, tag, name))


def _histogram_shapes(values: Tensor, **_: Any) -> list[Shape]:
    return [Shape.of((6,)), Shape.of((None, 2))]


def _histogram(xp: Any, values: Any) -> Any:
    flat = values.reshape(-1)
    finite = xp.isfinite(flat)
    lost = flat.size - int(xp.count_nonzero(finite))
    if lost:
        flat = flat[finite]
    if not flat.size:
        return xp.asarray([0.0, 0.0, 0.0, 0.0, 0.0, lost]), xp.zeros((0, 2))
    # float32 tells buckets apart well enough, and takes half the time.
    wide = flat if flat.dtype == xp.float32 else flat.astype(xp.float64)
    with np.errstate(divide="ignore"):
        scaled = xp.log(xp.abs(wide))
    scaled -= np.log(_SMALLEST)
    scaled /= np.log(_GROWTH)
    # Numbers of buckets, from 1 on; 0 holds what is next to zero; those of negative values negated.
    steps = xp.clip(xp.floor(scaled) + 1, 0, _STEPS).astype(xp.int32)
    signed = xp.where(wide < 0, -steps, steps)
    first, last = int(signed.min()), int(signed.max())
    counts = xp.bincount(signed - first, minlength=last - first + 1)
    numbers = xp.arange(first, last + 1)
    magnitudes = _SMALLEST * _GROWTH ** xp.where(numbers < 0, -numbers - 1, numbers)
    limits = xp.where(numbers < 0, -magnitudes, magnitudes)
    limits[-1] = max(float(wide.max()), float(limits[-2]) if len(limits) > 1 else -xp.inf)
    total, squares = wide.sum(dtype=xp.float64), xp.square(wide).sum(dtype=xp.float64)
    statistics = [wide.min(), wide.max(), wide.size, total, squares, lost]
    return xp.asarray(statistics, dtype=xp.float64), xp.stack([limits, counts * 1.0], axis=1)


histogram_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "HistogramSummary",
    "values: T -> statistics: float64, buckets: float64",
    T=REALS,
    attributes={"tag": ""},
    infer=_histogram_shapes,
    kernel=_histogram,
    kinds=HOST,
    grad=NO_GRADIENT,
    summary="histogram",
    cost=elementwise(8),
)


@histogram_op.front
def histogram(name: str, values: Any) -> tuple[Tensor, Tensor]:
    """Show how the values of a tensor are distributed, over the steps of a training.

    Args:
        name: as for `scalar`.
        values: of a real dtype and any shape. NaN and infinities are counted apart.

    Returns:
        The statistics, float64 [6]: least, greatest, number, sum, sum of squares (of the finite
        values) and number of values that are not finite; and the buckets, float64 [n, 2]: upper
        limit and number of each. Nobody has to fetch them.
    """
    return _built(histogram_op, name, values)


def _image_shape(images: Tensor, max_outputs: int, **_: Any) -> Shape:
    shape = images.shape
    if max_outputs < 1:
        raise InvalidArgumentError(f"max_outputs is at least 1, not {max_outputs}")
    if shape.rank not in (None, 4):
        raise InvalidArgumentError(
            f"images are [number, height, width, channels], not {shape}",
            hint="fb.expand_dims(image, 0) makes a batch of one",
        )
    if shape.dims is None:
        return Shape.of((None, None, None, None))
    number, height, width, channels = shape.dims
    if channels not in (None, 1, 3, 4):
        raise InvalidArgumentError(f"images have 1, 3 or 4 channels, not {channels}")
    # A grey image that has pixels to mark in red becomes one of colours.
    shown = None if channels == 1 and images.dtype is not uint8 else channels
    return Shape.of((None if number is None else min(number, max_outputs), height, width, shown))


def _image(xp: Any, images: Any, max_outputs: int) -> Any:
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(
            f"images are [number, height, width, 1, 3 or 4 channels], not {list(images.shape)}"
        )
    chosen = images[:max_outputs]
    if chosen.dtype == xp.uint8:
        return chosen.copy()
    shown = [_pixels(xp, image.astype(xp.float64)) for image in chosen]
    most = max([image.shape[2] for image in shown], default=images.shape[3])
    return (
        xp.stack([_in_channels(xp, image, most) for image in shown])
        if shown
        else xp.zeros((0, *images.shape[1:]), xp.uint8)
    )


def _pixels(xp: Any, image: Any) -> Any:
    """Floats as pixels: the greatest magnitude full, 0 black (grey where some are negative)."""
    finite = xp.isfinite(image)
    known = xp.where(finite, image, 0.0)
    low, high = (float(known.min()), float(known.max())) if image.size else (0.0, 0.0)
    if low < 0:
        most = max(-low, high)
        scaled = known / most * 127.0 + 128.0
    else:
        scaled = known / high * 255.0 if high > 0 else known
    pixels = scaled.astype(xp.uint8)
    bad = ~finite.all(axis=2)
    if not bad.any():
        return pixels
    pixels = _in_channels(xp, pixels, max(3, pixels.shape[2]))
    pixels[bad] = _IMAGE_RED[: pixels.shape[2]]
    return pixels


def _in_channels(xp: Any, image: Any, channels: int) -> Any:
    """A grey image in colour, where another of the batch is."""
    return xp.repeat(image, channels, axis=2) if image.shape[2] < channels else image


image_op = OpDef(
    "ImageSummary",
    "images: T -> pixels: uint8",
    T=(uint8, *FLOATS),
    attributes={"tag": "", "max_outputs": 3},
    infer=_image_shape,
    kernel=_image,
    kinds=HOST,
    summary="image",
    cost=elementwise(4),
)


@image_op.front
def image(name: str, tensor: Any, max_outputs: int = 3) -> Tensor:
    """Show images, over the steps of a training.

    Args:
        name: as for `scalar`. Images are called `name/image/0` and so on; of one at most,
            `name/image`.
        tensor: [number, height, width, channels], with 1 (grey), 3 (red, green, blue) or 4
            channels (and opacity), of uint8, or of floats: each image is then scaled so that its
            greatest magnitude is full brightness; if some values are negative, zero is grey. Pixels
            that are not finite are red.
        max_outputs: how many of them are shown at most.

    Returns:
        The pixels, uint8; nobody has to fetch them.
    """
    return _built(image_op, name, tensor, max_outputs=max_outputs)


text_op = OpDef(
    "TextSummary",
    "text: string -> summary: string",
    attributes={"tag": ""},
    infer=same_as_input,
    kernel=lambda xp, text: text,
    kinds=HOST,
    aliases={0: 0},
    summary="text",
    only_moves=True,
)


@text_op.front
def text(name: str, tensor: Any) -> Tensor:
    """Show text, over the steps of a training; it is shown as it is, whatever is in it.

    Args:
        name: as for `scalar`.
        tensor: strings of any shape.

    Returns:
        The strings; nobody has to fetch them.
    """
    return _built(text_op, name, tensor)


def _built(op_def: OpDef[Built], name: str, tensor: Any, **attributes: Any) -> Built:
    # The tag is kept as it is, whatever an operation can be called.
    return op_def(tensor, **attributes, tag=_scope_and(name), name=_plain(name) + SUFFIX)


def _scope_and(name: str) -> str:
    """The tag of a summary: its name after the name scope.

    Raises:
        InvalidTypeError: if the name is no text.
    """
    if not isinstance(name, str) or not name:
        raise InvalidTypeError(f"a summary is named by a text, not {name!r:.80}")
    # Python's texts may hold what UTF-8 cannot.
    return get_default_graph().scope.prefix + name.encode(errors="replace").decode()


def _plain(name: str) -> str:
    """What the operation is called of a summary of that name."""
    name = name.encode(errors="replace").decode()
    plain = _INVALID.sub("_", name)[:_LONGEST_NAME].lstrip("_\\/>-").rstrip("/") or "unnamed"
    if plain != name:
        # Different tags are different names; equal ones are numbered.
        plain += f".{zlib.crc32(name.encode()):08x}"
    return plain
