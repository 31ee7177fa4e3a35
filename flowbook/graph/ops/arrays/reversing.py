"""The same elements in another order along their axes: reversed, or rolled around."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.axes import all_in_range, as_axis, axes_or_tensor, in_range
from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor

__all__ = ["reverse", "reverse_sequence", "roll"]


def _reversed_shape(tensor: Tensor, axis: tuple[int, ...]) -> Shape:
    if tensor.shape.rank is not None:
        all_in_range(axis, tensor.shape.rank)
    return tensor.shape


def _reverse(xp: Any, tensor: Any, axis: tuple[int, ...]) -> Any:
    turned = all_in_range(axis, tensor.ndim)
    # The Ellipsis keeps a scalar an array.
    key = tuple(slice(None, None, -1 if i in turned else 1) for i in range(tensor.ndim))
    return tensor[(*key, ...)]


reverse_op: OpDef = OpDef(
    "Reverse",
    "tensor: T -> output: T",
    T=MOVABLE,
    attributes={"axis": REQUIRED},
    infer=_reversed_shape,
    kernel=_reverse,
    grad=lambda op, dy: reverse_op(dy, axis=op.attributes["axis"]),
    aliases={0: 0},
    axes="axis",
    batching=Batching.ALONG_AXIS,
    only_moves=True,
)


@reverse_op.front
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The last first, along axes.

    Args:
        tensor: of any dtype.
        axis: an int or a sequence of ints, negative ones counted from the last.

    Raises:
        InvalidArgumentError: if there is no such axis, or one is named twice.
    """
    axes = axes_or_tensor([] if axis is None else axis, tensor)
    return reverse_op(tensor, axis=axes, name=name)


def _sequences_shape(input: Tensor, seq_lengths: Tensor, seq_axis: int, batch_axis: int) -> Shape:
    if seq_lengths.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"'seq_lengths' is a vector, not of shape {seq_lengths.shape}")
    dims = input.shape.dims
    if dims is None:
        return input.shape
    seq, batch = in_range(seq_axis, len(dims)), in_range(batch_axis, len(dims))
    if seq == batch:
        raise InvalidArgumentError(f"seq_axis and batch_axis are both {seq}")
    known = seq_lengths.shape.dims
    if known is not None and None not in (known[0], dims[batch]) and known[0] != dims[batch]:
        raise InvalidArgumentError(
            f"{known[0]} lengths do not fit axis {batch_axis} of {input.shape}"
        )
    lengths = constant_value(seq_lengths)
    if lengths is not None and dims[seq] is not None:
        _check_lengths(lengths, dims[seq])  # type: ignore[arg-type]
    count = known[0] if known is not None and dims[batch] is None else dims[batch]
    return Shape.of((*dims[:batch], count, *dims[batch + 1 :]))


def _check_lengths(lengths: Any, limit: int) -> None:
    wrong = ((lengths < 0) | (lengths > limit)).nonzero()[0]
    if wrong.size:
        place = int(wrong[0])
        raise InvalidArgumentError(
            f"the length {lengths[place]} (element [{place}]) is not one of a sequence "
            f"of {limit} elements"
        )


def _reverse_sequence(xp: Any, input: Any, seq_lengths: Any, seq_axis: int, batch_axis: int) -> Any:
    seq, batch = in_range(seq_axis, input.ndim), in_range(batch_axis, input.ndim)
    if seq_lengths.shape != (input.shape[batch],):
        raise InvalidArgumentError(
            f"lengths of shape {list(seq_lengths.shape)} do not fit axis {batch_axis} of "
            f"{list(input.shape)}"
        )
    _check_lengths(seq_lengths, input.shape[seq])
    places = xp.arange(input.shape[seq])
    lengths = seq_lengths[:, None]
    sources = xp.where(places < lengths, lengths - 1 - places, places)
    if seq < batch:
        sources = sources.T
    along = [1] * input.ndim
    along[seq], along[batch] = input.shape[seq], input.shape[batch]
    return xp.take_along_axis(input, xp.reshape(sources, along), axis=seq)


reverse_sequence_op: OpDef = OpDef(
    "ReverseSequence",
    "input: T, seq_lengths: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"seq_axis": REQUIRED, "batch_axis": 0},
    infer=_sequences_shape,
    kernel=_reverse_sequence,
    grad=lambda op, dy: (
        reverse_sequence_op(
            dy,
            op.inputs[1],
            seq_axis=op.attributes["seq_axis"],
            batch_axis=op.attributes["batch_axis"],
        ),
        None,
    ),
    only_moves=True,
)


@reverse_sequence_op.front
def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: int, batch_axis: int = 0, name: str | None = None
) -> Tensor:
    """Sequences of different lengths, each reversed; what lies behind its end stays.

    Args:
        input: of any dtype.
        seq_lengths: int32 or int64 [batch]: the length of each sequence.
        seq_axis: the axis along which the sequences lie.
        batch_axis: the axis along which there are several.

    Raises:
        InvalidArgumentError: if a length is negative or larger than the axis; in the run, where it
            is known only then.
    """
    axes = {"seq_axis": as_axis(seq_axis), "batch_axis": as_axis(batch_axis)}
    return reverse_sequence_op(input, seq_lengths, **axes, name=name)


def _rolled_shape(input: Tensor, shift: Tensor, axis: tuple[int, ...]) -> Shape:
    if not shift.shape.is_compatible_with((len(axis),)) and shift.shape.rank != 0:
        raise InvalidArgumentError(
            f"shifts of shape {shift.shape} do not fit {counted(len(axis), 'axis', 'axes')}: "
            "one for each"
        )
    if shift.shape.rank == 0 and len(axis) != 1:
        raise InvalidArgumentError(
            f"one shift for {counted(len(axis), 'axis', 'axes')}: one for each is wanted"
        )
    if input.shape.rank is not None:
        _rolled_axes(axis, input.shape.rank)
    return input.shape


def _rolled_axes(axis: tuple[int, ...], rank: int) -> list[int]:
    return [in_range(a, rank) for a in axis]


def _roll(xp: Any, input: Any, shift: Any, axis: tuple[int, ...]) -> Any:
    axes = _rolled_axes(axis, input.ndim)
    shifts = shift.reshape(-1).tolist()
    if len(shifts) != len(axes) or shift.ndim > 1:
        raise InvalidArgumentError(
            f"shifts of shape {list(shift.shape)} do not fit "
            f"{counted(len(axes), 'axis', 'axes')}: one for each"
        )
    # NumPy cannot do nothing to a scalar.
    return xp.roll(input, shifts, axes) if axes else input.copy()


roll_op: OpDef = OpDef(
    "Roll",
    "input: T, shift: I -> output: T",
    T=MOVABLE,
    I=INDICES,
    attributes={"axis": REQUIRED},
    infer=_rolled_shape,
    kernel=_roll,
    host_args=("shift",),
    grad=lambda op, dy: (_rolled_back(op, dy), None),
    axes="axis",
    only_moves=True,
)


def _rolled_back(op: Operation, dy: Tensor) -> Tensor:
    return roll_op(dy, -op.inputs[1], axis=op.attributes["axis"])


@roll_op.front
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements moved along axes; what leaves one end comes back at the other.

    Args:
        input: of any dtype.
        shift: by how many places towards higher indices: an int scalar, or a vector of one for
            each axis.
        axis: an int or a sequence of ints; the shifts of one that is named twice add up.

    Raises:
        InvalidArgumentError: if there is no such axis, or the shifts are not as many.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.roll([1, 2, 3, 4], 1, 0)))
    [4 1 2 3]
    """
    axes = axes_or_tensor([] if axis is None else axis, input)
    return roll_op(input, shift, axis=axes, name=name)
