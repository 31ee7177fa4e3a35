"""Rules for writing shapes, arrangement, parts and joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.transfer.refusals import rank_of
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.saving.rules.types import Rules, same
from flowbook.onnx.saving.writer import Writer


def axes_of(axis: Any) -> list[int] | None:
    """An axis or several as a list."""
    if axis is None:
        return None
    return [int(a) for a in (axis if isinstance(axis, tuple) else (axis,))]


def counted(w: Writer, op: Operation, found: str) -> str:
    """What ONNX counts in int64 in the dtype that the operation gives."""
    dtype = op.outputs[0].dtype
    return found if dtype is dtypes.int64 else w.cast(found, dtype)


def _rank(w: Writer, op: Operation, x: str) -> Any:
    return w.cast(w.node("Size", [w.node("Shape", [x])]), dtypes.int32)


def _reshape(w: Writer, op: Operation, x: str, shape: str) -> Any:
    return w.node("Reshape", [x, w.long(shape)], allowzero=1)


def _transpose(w: Writer, op: Operation, x: str) -> Any:
    perm = op.attributes["perm"]
    perm = range(rank_of(op.inputs[0]))[::-1] if perm is None else perm
    return w.node("Identity", [w.transpose(x, [p % rank_of(op.inputs[0]) for p in perm])])


def _matrix_transpose(w: Writer, op: Operation, x: str) -> Any:
    rank = rank_of(op.inputs[0])
    return w.node("Transpose", [x], perm=[*range(rank - 2), rank - 1, rank - 2])


def _expand_dims(w: Writer, op: Operation, x: str) -> Any:
    return w.node("Unsqueeze", [x, w.integers(axes_of(op.attributes["axis"]) or [0])])


def _squeeze(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(op.attributes["axis"])
    return w.node("Squeeze", [x] if not axes else [x, w.integers(axes)])


def _stack(w: Writer, op: Operation, *inputs: str) -> Any:
    axis = op.attributes["axis"]
    rank = rank_of(op.inputs[0]) + 1
    where = w.integers([axis % rank])
    return w.node("Concat", [w.node("Unsqueeze", [i, where]) for i in inputs], axis=axis % rank)


def _split(w: Writer, op: Operation, x: str, *_: str) -> Any:
    count = len(op.outputs)
    axis = op.attributes["axis"]
    if op.type == "SplitV":
        given = w.known(op.inputs[1]).astype(np.int64).tolist()
    else:
        given = op.attributes["sizes"]
    if given is None:
        return w.node("Split", [x], count, axis=axis, num_outputs=count)
    size = op.inputs[0].shape.dims[axis] if op.inputs[0].shape.dims else None
    if -1 in given and size is None:
        raise UnimplementedError("parts of which one takes a rest of unknown size")
    sizes = w.integers([(size or 0) - sum(given) - 1 if k == -1 else k for k in given])
    return w.node("Split", [x, sizes], count, axis=axis)


def _unstack(w: Writer, op: Operation, x: str) -> Any:
    count = len(op.outputs)
    axis = op.attributes["axis"] % rank_of(op.inputs[0])
    if not count:
        return []
    parts = w.node("Split", [x], count, axis=axis, num_outputs=count)
    parts = parts if count > 1 else [parts]
    return [w.node("Squeeze", [p, w.integers([axis])]) for p in parts]


def _tile(w: Writer, op: Operation, x: str, multiples: str) -> Any:
    return w.node("Tile", [x, w.long(multiples)])


def _broadcast_to(w: Writer, op: Operation, x: str, shape: str) -> Any:
    return w.node("Expand", [x, w.long(shape)])


def _sum_to_shape(w: Writer, op: Operation, x: str, shape: str) -> Any:
    rank, kept = op.inputs[0].shape.rank, op.inputs[1].shape[0]
    if rank is None or kept is None:
        raise UnimplementedError("a sum to a shape whose rank only the run knows")
    target = w.node("Concat", [w.integers([1] * (rank - kept)), w.long(shape)], axis=0)
    # Each axis as two, of which the first is summed: as long as it was repeated.
    repeated = w.node("Div", [w.node("Shape", [x]), w.node("Max", [target, w.integers([1])])])
    pairs = [w.node("Unsqueeze", [dims, w.integers([1])]) for dims in (repeated, target)]
    apart = w.node("Reshape", [x, w.reshape(w.node("Concat", pairs, axis=1), [-1])], allowzero=1)
    summed = w.node("ReduceSum", [apart, w.integers(range(0, 2 * rank, 2))], keepdims=0)
    return w.node("Reshape", [summed, w.long(shape)], allowzero=1)


def _fill(w: Writer, op: Operation, dims: str, value: str) -> Any:
    return w.node("Expand", [value, w.long(dims)])


def _pad(w: Writer, op: Operation, x: str, _: str, value: str) -> Any:
    widths = w.known(op.inputs[1])
    return w.node("Pad", [x, w.integers(widths.T.reshape(-1)), value], mode="constant")


def _mirror_pad(w: Writer, op: Operation, x: str, _: str) -> Any:
    if op.attributes["mode"].upper() != "REFLECT":
        raise UnimplementedError(f"a border of mode {op.attributes['mode']}")
    widths = w.known(op.inputs[1])
    return w.node("Pad", [x, w.integers(widths.T.reshape(-1))], mode="reflect")


def _slice(w: Writer, op: Operation, x: str, begin: str, size: str) -> Any:
    begin, size = w.long(begin), w.long(size)
    ends = w.node("Add", [begin, size])
    rest = w.node("Equal", [size, w.integer(-1)])
    ends = w.node("Where", [rest, w.node("Shape", [x]), ends])
    return w.node("Slice", [x, begin, ends])


def _strided_slice(w: Writer, op: Operation, x: str, *bounds: str) -> Any:
    rank = rank_of(op.inputs[0])
    key = list(op.attributes["key"])
    used = sum(1 for part in key if part not in ("newaxis", "..."))
    if "..." in key:
        place = key.index("...")
        key[place : place + 1] = [("slice", None, None, None)] * (rank - used)
    starts, ends, axes, steps = [], [], [], []
    dropped: list[int] = []
    added: list[int] = []
    axis = place = 0

    def bound(item: Any, default: int) -> str:
        if item is None:
            return w.integers([default])
        if isinstance(item, tuple):
            return w.reshape(w.long(bounds[item[1]]), [1])
        return w.integers([item])

    for part in key:
        if part == "newaxis":
            added.append(place)
            place += 1
            continue
        if isinstance(part, tuple) and part[0] == "slice":
            _, start, stop, step = part
            if isinstance(step, tuple):
                raise UnimplementedError("a slice whose step only the run knows")
            step = 1 if step is None else step
            place += 1
            if (start, stop, step) != (None, None, 1):
                far = np.iinfo(np.int64).max
                starts.append(bound(start, 0 if step > 0 else far))
                ends.append(bound(stop, far if step > 0 else -far))
                axes.append(axis)
                steps.append(step)
        else:
            starts.append(bound(part, 0))
            if isinstance(part, tuple):
                raise UnimplementedError("an index that only the run knows; gather takes one")
            ends.append(w.integers([part + 1 if part != -1 else np.iinfo(np.int64).max]))
            axes.append(axis)
            steps.append(1)
            dropped.append(axis)
        axis += 1
    found = x
    if axes:
        joined = [
            w.node("Concat", part, axis=0) if len(part) > 1 else part[0] for part in (starts, ends)
        ]
        found = w.node("Slice", [x, *joined, w.integers(axes), w.integers(steps)])
    if dropped:
        found = w.node("Squeeze", [found, w.integers(dropped)])
    if added:
        found = w.node("Unsqueeze", [found, w.integers(added)])
    return w.node("Identity", [x]) if found == x else found


def _gather(w: Writer, op: Operation, x: str, indices: str) -> Any:
    if op.attributes["batch_dims"]:
        raise UnimplementedError("a gather with batch dimensions")
    return w.node("Gather", [x, indices], axis=op.attributes["axis"])


def _gather_nd(w: Writer, op: Operation, x: str, indices: str) -> Any:
    return w.node("GatherND", [x, w.long(indices)], batch_dims=op.attributes["batch_dims"])


def _scatter_nd(w: Writer, op: Operation, indices: str, updates: str, shape: str) -> Any:
    if op.attributes["batch_dims"]:
        raise UnimplementedError("a scatter with batch dimensions")
    zero = w.constant(np.zeros(()), op.outputs[0].dtype)
    empty = w.node("Expand", [zero, w.long(shape)])
    return w.node("ScatterND", [empty, w.long(indices), updates], reduction="add")


def _scatter_update(w: Writer, op: Operation, x: str, indices: str, updates: str) -> Any:
    return w.node("ScatterND", [x, w.long(indices), updates])


def _one_hot(w: Writer, op: Operation, indices: str, depth: str, on: str, off: str) -> Any:
    rank = rank_of(op.inputs[0])
    axis = op.attributes["axis"] % (rank + 1)
    depth = w.long(depth)
    # Negative indices are off here, and counted from the end there.
    places = w.node("Range", [w.integer(0), depth, w.integer(1)])
    places = w.reshape(places, [-1] + [1] * (rank - axis))
    hot = w.node("Equal", [w.node("Unsqueeze", [w.long(indices), w.integers([axis])]), places])
    return w.node("Where", [hot, on, off])


def _reverse(w: Writer, op: Operation, x: str) -> Any:
    axes = axes_of(op.attributes["axis"]) or []
    far = np.iinfo(np.int64).max
    starts, ends = [-1] * len(axes), [-far] * len(axes)
    steps = w.integers([-1] * len(axes))
    if not axes:
        return w.node("Identity", [x])
    return w.node("Slice", [x, w.integers(starts), w.integers(ends), w.integers(axes), steps])


def _reverse_sequence(w: Writer, op: Operation, x: str, lengths: str) -> Any:
    rank = rank_of(op.inputs[0])
    axes = [op.attributes[name] % rank for name in ("seq_axis", "batch_axis")]
    # ONNX has these two in front, in either order.
    order = [*axes, *(axis for axis in range(rank) if axis not in axes)]
    turned = w.node(
        "ReverseSequence", [w.transpose(x, order), w.long(lengths)], time_axis=0, batch_axis=1
    )
    return w.node("Identity", [w.transpose(turned, [order.index(axis) for axis in range(rank)])])


def _where(w: Writer, op: Operation, condition: str) -> Any:
    return w.node("Transpose", [w.node("NonZero", [condition])], perm=[1, 0])


def _space_to_depth(w: Writer, op: Operation, x: str) -> Any:
    return _blocks(w, op, x, lambda image, b: w.node("SpaceToDepth", [image], blocksize=b))


def _depth_to_space(w: Writer, op: Operation, x: str) -> Any:
    return _blocks(
        w, op, x, lambda image, b: w.node("DepthToSpace", [image], blocksize=b, mode="DCR")
    )


def _blocks(w: Writer, op: Operation, x: str, convert: Any) -> Any:
    is_last = op.attributes["data_format"] == "NHWC"
    image = w.transpose(x, (0, 3, 1, 2)) if is_last else x
    found = convert(image, op.attributes["block_size"])
    return w.transpose(found, (0, 2, 3, 1)) if is_last else found


def _broadcast_shapes(w: Writer, op: Operation, x: str, y: str) -> Any:
    one = w.constant(np.ones(()), dtypes.bool)
    parts = [w.node("Expand", [one, w.long(s)]) for s in (x, y)]
    found = w.node("Shape", [w.node("And", parts)])
    return w.node("Cast", [found], to=NUMBERS[op.outputs[0].dtype])


RULES: Rules = {
    "BroadcastArgs": _broadcast_shapes,
    "BroadcastTo": _broadcast_to,
    "Concat": same("Concat", "axis"),
    "DepthToSpace": _depth_to_space,
    "ExpandDims": _expand_dims,
    "Fill": _fill,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "MatrixTranspose": _matrix_transpose,
    "MirrorPad": _mirror_pad,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": same("Range"),
    "Rank": _rank,
    "Reshape": _reshape,
    "Reverse": _reverse,
    "ReverseSequence": _reverse_sequence,
    "ScatterNd": _scatter_nd,
    "Shape": lambda w, op, x: counted(w, op, w.node("Shape", [x])),
    "Size": lambda w, op, x: counted(w, op, w.node("Size", [x])),
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "SplitV": _split,
    "Squeeze": _squeeze,
    "Stack": _stack,
    "StridedSlice": _strided_slice,
    "SumToShape": _sum_to_shape,
    "TakeAlongAxis": same("GatherElements", "axis"),
    "TensorScatterUpdate": _scatter_update,
    "Tile": _tile,
    "Transpose": _transpose,
    "TrueIndices": _where,
    "Unstack": _unstack,
}
