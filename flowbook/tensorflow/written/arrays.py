"""Rules for writing constants, shapes, and parts of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.transfer.refusals import rank_of
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.types import OUTPUT, Rules, same


def _placeholder(w: Writer, op: Operation) -> Any:
    return w.last("Placeholder", [], dtype=op.outputs[0].dtype, shape=op.outputs[0].shape)


def _expanded(w: Writer, op: Operation, x: str) -> Any:
    axis = op.attributes["axis"]
    *several, last = sorted([axis] if isinstance(axis, int) else axis)
    if several and several[0] < 0:
        raise UnimplementedError("several new axes counted from the last")
    given = {"T": op.inputs[0].dtype, "Tdim": dtypes.int32}
    for each in several:
        x = w.node("ExpandDims", [x, w.integers(each)], **given)
    return w.last("ExpandDims", [x, w.integers(last)], **given)


def _squeezed(w: Writer, op: Operation, x: str) -> Any:
    axes = op.attributes["axis"]
    return w.last("Squeeze", [x], T=op.inputs[0].dtype, squeeze_dims=list(axes or ()))


def _transposed(w: Writer, op: Operation, x: str) -> Any:
    perm = op.attributes["perm"]
    order = range(rank_of(op.inputs[0]))[::-1] if perm is None else perm
    given = {"T": op.inputs[0].dtype, "Tperm": dtypes.int32}
    return w.last("Transpose", [x, w.integers(order)], **given)


def _joined(w: Writer, op: Operation, *inputs: str) -> Any:
    axis = w.integers(op.attributes["axis"])
    return _concat(w, op, *inputs, axis)


def _concat(w: Writer, op: Operation, *inputs: str) -> Any:
    if len(inputs) == 2:
        return w.last("Identity", inputs[:1], T=op.inputs[0].dtype)
    kind = op.inputs[-1].dtype if op.type == "ConcatAt" else dtypes.int32
    given = {"N": len(inputs) - 1, "T": op.inputs[0].dtype, "Tidx": kind}
    return w.last("ConcatV2", inputs, **given)


def _split(w: Writer, op: Operation, x: str) -> Any:
    axis, sizes = w.integers(op.attributes["axis"]), op.attributes["sizes"]
    given = {"num_split": len(op.outputs), "T": op.inputs[0].dtype}
    if sizes is None:
        return w.last("Split", [axis, x], **given)
    return w.last("SplitV", [x, w.integers(sizes), axis], Tlen=dtypes.int32, **given)


def _split_by_sizes(w: Writer, op: Operation, x: str, sizes: str) -> Any:
    given = {"num_split": len(op.outputs), "T": op.inputs[0].dtype, "Tlen": op.inputs[1].dtype}
    return w.last("SplitV", [x, sizes, w.integers(op.attributes["axis"])], **given)


def _stacked(w: Writer, op: Operation, *inputs: str) -> Any:
    given = {"N": len(inputs), "T": op.outputs[0].dtype, "axis": op.attributes["axis"]}
    return w.last("Pack", inputs, **given)


def _unstacked(w: Writer, op: Operation, x: str) -> Any:
    given = {"num": len(op.outputs), "T": op.inputs[0].dtype, "axis": op.attributes["axis"]}
    return w.last("Unpack", [x], **given)


def gathered(w: Writer, op: Operation, x: str, indices: str, dtype: DType) -> Any:
    """Parts of a value of some dtype, along one axis."""
    axis = w.integers(op.attributes["axis"])
    given = {
        "batch_dims": op.attributes["batch_dims"],
        "Tparams": dtype,
        "Tindices": op.inputs[1].dtype,
        "Taxis": dtypes.int32,
    }
    return w.last("GatherV2", [x, indices, axis], **given)


def _gathered_nd(w: Writer, op: Operation, x: str, indices: str) -> Any:
    if op.attributes["batch_dims"]:
        raise UnimplementedError("gather_nd with batch_dims")
    given = {"Tparams": op.inputs[0].dtype, "Tindices": op.inputs[1].dtype}
    return w.last("GatherNd", [x, indices], **given)


def _scattered_nd(w: Writer, op: Operation, *inputs: str) -> Any:
    if op.attributes["batch_dims"]:
        raise UnimplementedError("scatter_nd with batch_dims")
    return w.last("ScatterNd", inputs, Tindices=op.inputs[0].dtype, T=op.inputs[1].dtype)


def _reversed(w: Writer, op: Operation, x: str) -> Any:
    axis = op.attributes["axis"]
    axes = w.integers([axis] if isinstance(axis, int) else axis)
    return w.last("ReverseV2", [x, axes], T=op.inputs[0].dtype, Tidx=dtypes.int32)


def _reversed_sequences(w: Writer, op: Operation, x: str, lengths: str) -> Any:
    how = op.attributes
    given = {"T": op.inputs[0].dtype, "Tlen": op.inputs[1].dtype}
    return w.last(
        "ReverseSequence",
        [x, lengths],
        seq_dim=how["seq_axis"],
        batch_dim=how["batch_axis"],
        **given,
    )


class _Key:
    """A key as TensorFlow's strided slices have it: three vectors, and masks."""

    def __init__(self, w: Writer, key: Any, bounds: list[str], kind: Any) -> None:
        self._w, self._bounds, self._kind = w, bounds, kind
        self.masks = dict.fromkeys(
            ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
        )
        begin, end, strides = [], [], []
        for i, part in enumerate(key):
            start, stop, step = self._read(i, part)
            begin.append(start)
            end.append(stop)
            strides.append(step)
        self.inputs = [self._vector(v) for v in (begin, end, strides)]

    def _set(self, name: str, place: int) -> None:
        self.masks[f"{name}_mask"] |= 1 << place

    def _read(self, place: int, part: Any) -> tuple[Any, Any, Any]:
        if isinstance(part, str):
            self._set("new_axis" if part == "newaxis" else "ellipsis", place)
            return 0, 0, 1
        if not (isinstance(part, tuple) and part[0] == "slice"):
            self._set("shrink_axis", place)
            if not isinstance(part, int):
                one = self._w.constant(np.asarray(1), self._kind)
                after = self._w.node("AddV2", [self._bounds[part[1]], one], T=self._kind)
                return part, after, 1
            return part, part + 1, 1
        start, stop, step = part[1:]
        if start is None:
            self._set("begin", place)
        if stop is None:
            self._set("end", place)
        return start or 0, stop or 0, 1 if step is None else step

    def _vector(self, values: list[Any]) -> str:
        if all(isinstance(v, int) for v in values):
            return self._w.constant(np.array(values, np.int64), self._kind)
        parts = [
            v
            if isinstance(v, str)
            else self._w.constant(np.asarray(v), self._kind)
            if isinstance(v, int)
            else self._bounds[v[1]]
            for v in values
        ]
        return self._w.node("Pack", parts, N=len(parts), T=self._kind, axis=0)


def _bounds_kind(op: Operation) -> Any:
    kinds = {t.dtype for t in op.inputs[1:]} or {dtypes.int32}
    if len(kinds) > 1:
        raise UnimplementedError("a slice whose bounds are of several dtypes")
    return kinds.pop()


def _strided_slice(w: Writer, op: Operation, x: str, *bounds: str) -> Any:
    kind = _bounds_kind(op)
    key = _Key(w, op.attributes["key"], list(bounds), kind)
    return w.last("StridedSlice", [x, *key.inputs], **key.masks, T=op.inputs[0].dtype, Index=kind)


def _strided_slice_gradient(w: Writer, op: Operation, dy: str, dims: str, *bounds: str) -> Any:
    kind = op.inputs[1].dtype
    key = _Key(w, op.attributes["key"], list(bounds), kind)
    return w.last(
        "StridedSliceGrad", [dims, *key.inputs, dy], **key.masks, T=op.inputs[0].dtype, Index=kind
    )


def sum_to_shape(w: Writer, x: str, dims: str, dtype: DType, kind: DType = dtypes.int32) -> str:
    """The sum over what was broadcast: the axes along which the target has one element."""
    whole = w.node("Shape", [x], T=dtype, out_type=kind)
    axes = w.node("BroadcastGradientArgs", [dims, whole], T=kind)
    total = w.node("Sum", [x, axes], keep_dims=False, T=dtype, Tidx=kind)
    return w.node("Reshape", [total, dims], T=dtype, Tshape=kind)


def _sum_to_shape(w: Writer, op: Operation, x: str, dims: str) -> Any:
    dtype, kind = op.inputs[0].dtype, op.inputs[1].dtype
    return w.last("Identity", [sum_to_shape(w, x, dims, dtype, kind)], T=dtype)


RULES: Rules = {
    "BatchToSpaceND": same("BatchToSpaceND", dtypes={"T": 0, "Tblock_shape": 1, "Tcrops": 2}),
    "BroadcastTo": same("BroadcastTo", dtypes={"T": 0, "Tidx": 1}),
    "Concat": _joined,
    "ConcatAt": _concat,
    "Const": same("Const", "value", dtypes={"dtype": OUTPUT}),
    "DepthToSpace": same("DepthToSpace", "block_size", "data_format"),
    "DynamicPartition": lambda w, op, *xs: w.last(
        "DynamicPartition", xs, T=op.inputs[0].dtype, num_partitions=len(op.outputs)
    ),
    "DynamicStitch": lambda w, op, *xs: w.last(
        "DynamicStitch", xs, N=len(xs) // 2, T=op.outputs[0].dtype
    ),
    "ExpandDims": _expanded,
    "ExpandDimsAt": same("ExpandDims", dtypes={"T": 0, "Tdim": 1}),
    "Fill": same("Fill", dtypes={"index_type": 0, "T": 1}),
    "Gather": lambda w, op, x, indices: gathered(w, op, x, indices, op.inputs[0].dtype),
    "GatherNd": _gathered_nd,
    "LinSpace": same("LinSpace", dtypes={"T": 0, "Tidx": 2}),
    "MirrorPad": same("MirrorPad", "mode", dtypes={"T": 0, "Tpaddings": 1}),
    "NoOp": same("NoOp", dtypes={}),
    "OneHot": same("OneHot", "axis", dtypes={"TI": 0, "T": OUTPUT}),
    "Pad": same("PadV2", dtypes={"T": 0, "Tpaddings": 1}),
    "Placeholder": _placeholder,
    "PlaceholderWithDefault": same("PlaceholderWithDefault", "shape", dtypes={"dtype": OUTPUT}),
    "Range": same("Range", dtypes={"Tidx": 0}),
    "Reshape": same("Reshape", dtypes={"T": 0, "Tshape": 1}),
    "Reverse": _reversed,
    "ReverseSequence": _reversed_sequences,
    "ScatterNd": _scattered_nd,
    "Shape": same("Shape", "out_type"),
    "Size": same("Size", "out_type"),
    "Slice": same("Slice", dtypes={"T": 0, "Index": 1}),
    "SpaceToBatchND": same("SpaceToBatchND", dtypes={"T": 0, "Tblock_shape": 1, "Tpaddings": 2}),
    "SpaceToDepth": same("SpaceToDepth", "block_size", "data_format"),
    "Split": _split,
    "SplitV": _split_by_sizes,
    "Squeeze": _squeezed,
    "Stack": _stacked,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_gradient,
    "SumToShape": _sum_to_shape,
    "TensorScatterUpdate": same("TensorScatterUpdate", dtypes={"T": 0, "Tindices": 1}),
    "Tile": same("Tile", dtypes={"T": 0, "Tmultiples": 1}),
    "TopK": same("TopKV2", sorted=True),
    "Transpose": _transposed,
    "TransposeAt": same("Transpose", dtypes={"T": 0, "Tperm": 1}),
    "Unstack": _unstacked,
}
