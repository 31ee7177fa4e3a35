"""Frames of signals: what a window sees that moves along an axis; and signals put back together.

Each of the two operations is the other's transposed, and so its gradient.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.axes import as_axis, in_range
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import check_scalar_values, shape_op
from flowbook.graph.ops.math.arithmetic import maximum, minimum
from flowbook.graph.ops.windows.windows import whole

__all__ = ["frame", "overlap_and_add"]


def _of_samples(dims: Any) -> Any:
    if not dims:
        raise InvalidArgumentError(f"signals are [..., samples], unlike the shape {Shape(dims)}")
    return dims


def _of_frames(dims: Any) -> Any:
    if len(dims) < 2:
        raise InvalidArgumentError(
            f"frames are [..., frames, frame_length], unlike the shape {Shape(dims)}"
        )
    return dims


def _count(samples: int, length: int, step: int) -> int:
    return max(0, 1 + (samples - length) // step)


def _framed_shape(signal: Tensor, frame_length: Tensor, frame_step: int) -> Shape:
    if frame_length.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'frame_length' is a scalar, not {frame_length.shape}")
    if signal.shape.dims is None:
        return UNKNOWN
    *outer, samples = _of_samples(signal.shape.dims)
    known = constant_value(frame_length)
    if known is None:
        return Shape.of((*outer, None, None))
    count = None if samples is None else _count(samples, int(known), frame_step)
    return Shape.of((*outer, count, int(known)))


def _framed(xp: Any, signal: Any, frame_length: Any, frame_step: int) -> Any:
    check_scalar_values(frame_length=frame_length)
    length = _positive("frame_length", int(frame_length))
    *outer, samples = _of_samples(signal.shape)
    count = _count(samples, length, frame_step)
    result = xp.empty((*outer, count, length), signal.dtype)
    if count:
        windows = xp.lib.stride_tricks.sliding_window_view(signal, length, axis=-1)
        result[...] = windows[..., ::frame_step, :]
    return result


def _added_shape(frames: Tensor, samples: Tensor, frame_step: int) -> Shape:
    if samples.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"'samples' is a scalar, not of shape {samples.shape}")
    if frames.shape.dims is None:
        return UNKNOWN
    known = constant_value(samples)
    outer = _of_frames(frames.shape.dims)[:-2]
    return Shape.of((*outer, None if known is None else int(known)))


def _added(xp: Any, frames: Any, samples: Any, frame_step: int) -> Any:
    *outer, count, length = _of_frames(frames.shape)
    check_scalar_values(samples=samples)
    if count > _count(int(samples), length, frame_step):
        raise InvalidArgumentError(
            f"{counted(count, 'frame')} of {length} at steps of {frame_step} do not fit "
            f"{samples} samples"
        )
    steps = -(-length // frame_step)
    rows = max(count + steps, -(-int(samples) // frame_step))
    result = xp.zeros((*outer, rows, frame_step), frames.dtype)
    for k in range(steps):
        # The same step's worth of all frames at a time: these do not overlap.
        part = frames[..., k * frame_step : (k + 1) * frame_step]
        result[..., k : k + count, : part.shape[-1]] += part
    return xp.reshape(result, (*outer, rows * frame_step))[..., : int(samples)]


def _last(x: Tensor) -> Any:
    """The size of the last dimension: an int where it is known."""
    dims = x.shape.dims
    if dims and dims[-1] is not None:
        return dims[-1]
    return shape_op(x)[-1]


frame_op: OpDef = OpDef(
    "Frame",
    "signal: T, frame_length: I -> frames: T",
    T=NUMBERS,
    I=INDICES,
    attributes={"frame_step": REQUIRED},
    infer=_framed_shape,
    kernel=_framed,
    host_args=("frame_length",),
    grad=lambda op, dy: (overlap_and_add_op(dy, _last(op.inputs[0]), **op.attributes), None),
    only_moves=True,
)

overlap_and_add_op: OpDef = OpDef(
    "OverlapAndAdd",
    "frames: T, samples: I -> signal: T",
    T=NUMBERS,
    I=INDICES,
    attributes={"frame_step": REQUIRED},
    infer=_added_shape,
    kernel=_added,
    host_args=("samples",),
    grad=lambda op, dy: (frame_op(dy, _last(op.inputs[0]), **op.attributes), None),
    cost=lambda op: op.inputs[0].shape.size or 0,
)


def _positive(what: str, value: Any) -> int:
    found = whole(what, value)
    if found < 1:
        raise InvalidArgumentError(f"{what} is at least 1, not {found}")
    return found


@frame_op.front
@composed
def frame(
    signal: Any,
    frame_length: int,
    frame_step: int,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """What a window sees at each of its places along an axis.

    Args:
        signal: [..., samples, ...] of a number dtype.
        frame_length: how many samples the window holds, an int.
        frame_step: how many samples one place is from the next, an int.
        pad_end: give a place for every step, with `pad_value` behind the last sample; otherwise
            what does not fill a frame is left out.
        pad_value: a scalar of the signal's dtype.
        axis: along which dimension it moves.

    Returns:
        [..., frames, frame_length, ...], the two in place of the axis.

    Raises:
        InvalidArgumentError: if the numbers are not positive; if the rank is not known, where that
            is needed to pad, or for another axis than the last.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.signal.frame([1, 2, 3, 4, 5], 3, 2)))
    [[1 2 3]
     [3 4 5]]
    """
    signal = convert_to_tensor(signal)
    length, step = _positive("frame_length", frame_length), _positive("frame_step", frame_step)
    rank, along = signal.shape.rank, as_axis(axis)
    if along == -1 and not pad_end:
        return frame_op(signal, length, frame_step=step, name=name)
    if rank is None:
        raise InvalidArgumentError(
            f"the rank of {signal.name} is not known",
            hint="give a placeholder a shape, such as [None, None]",
        )
    along = in_range(along, rank)
    others = [k for k in range(rank) if k != along]
    signal = transpose(signal, [*others, along]) if along != rank - 1 else signal
    if pad_end:
        more = _missing(_last(signal), length, step)
        widths = [*([0, 0] for _ in others), [0, more]]
        signal = pad(signal, widths, constant_values=pad_value)
    frames = frame_op(signal, length, frame_step=step, name=name if along == rank - 1 else None)
    if along == rank - 1:
        return frames
    back = [*range(along), rank - 1, rank, *range(along, rank - 1)]
    return transpose(frames, back, name=name)


def _missing(samples: Any, length: int, step: int) -> Any:
    """How many samples there are too few for a frame at every step."""
    total = -(-samples // step) * step - step + length - samples
    return maximum(total, 0) if isinstance(total, Tensor) else max(total, 0)


@overlap_and_add_op.front
def overlap_and_add(signal: Any, frame_step: int, name: str | None = None) -> Tensor:
    """The sum of frames, each laid a step further along a signal than the one before it.

    Args:
        signal: [..., frames, frame_length] of a number dtype.
        frame_step: how many samples one frame is from the next, an int.

    Returns:
        [..., samples], with `(frames - 1) * frame_step + frame_length` samples; none of no frames.

    Raises:
        InvalidArgumentError: if there are no such dimensions.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.signal.overlap_and_add([[1, 2, 3], [10, 20, 30]], 2)))
    [ 1  2 13 20 30]
    """
    frames = convert_to_tensor(signal)
    step = _positive("frame_step", frame_step)
    samples = _extent(frames, step)
    return overlap_and_add_op(frames, samples, frame_step=step, name=name)


def _extent(frames: Tensor, step: int) -> Any:
    """How many samples frames cover."""
    if frames.shape.dims is not None:
        count, length = _of_frames(frames.shape.dims)[-2:]
        if count is not None and length is not None:
            return (count - 1) * step + length if count else 0
    last = shape_op(frames)[-2:]
    count, length = last[0], last[1]
    return ((count - 1) * step + length) * minimum(count, 1)
