"""Constants, placeholders, and the shapes of arrays."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.dtypes import int32
from flowbook.graph.ops.arrays.gathering import one_hot
from flowbook.graph.ops.arrays.reversing import reverse, reverse_sequence
from flowbook.graph.ops.arrays.spaces import (
    batch_to_space_nd,
    depth_to_space,
    space_to_batch_nd,
    space_to_depth,
)
from flowbook.graph.ops.basis.constants import (
    constant,
    identity,
    placeholder,
    placeholder_with_default,
    prevent_gradient,
)
from flowbook.graph.ops.basis.joining import concat, split, stack, unstack
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import expand_dims, shape, size, squeeze
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.reduction.scans import cumsum
from flowbook.tensorflow.node import Node, Rules, named


def _joined(axis_first: bool) -> Any:
    def rule(n: Node, *inputs: Any) -> Any:
        axis, values = (inputs[0], inputs[1:]) if axis_first else (inputs[-1], inputs[:-1])
        return concat(list(values), axis, name=n.scope)

    return rule


def _split(n: Node, axis: Any, value: Any) -> Any:
    return split(value, n.whole("num_split"), axis, name=n.scope)


def _split_by_sizes(n: Node, value: Any, sizes: Any, axis: Any) -> Any:
    return split(value, sizes, axis, num=n.whole("num_split"), name=n.scope)


def _shapes(n: Node, *inputs: Any) -> Any:
    return [shape(x, out_type=n.dtype("out_type", int32)) for x in inputs]


def _pad(n: Node, x: Any, paddings: Any, value: Any = 0) -> Any:
    return pad(x, paddings, constant_values=value, name=n.scope)


def _space_to_batch(n: Node, x: Any, paddings: Any) -> Any:
    return space_to_batch_nd(x, [n.whole("block_size")] * 2, paddings, name=n.scope)


def _batch_to_space(n: Node, x: Any, crops: Any) -> Any:
    return batch_to_space_nd(x, [n.whole("block_size")] * 2, crops, name=n.scope)


def _concat_offset(n: Node, axis: Any, *shapes: Any) -> Any:
    """Where each of several joined arrays begins."""
    axis = int(n.known(axis, "the axis"))
    # All of it takes all of them: of constants alone it would not be in the loop that they are in.
    table = stack(list(shapes))
    ends = cumsum(table[:, axis], exclusive=True)
    places = one_hot(axis, size(table[0]), 1, 0, dtype=table.dtype)
    return unstack(expand_dims(ends, 1) * places, len(shapes))


def _layout(n: Node) -> str:
    return n.text("data_format", "NHWC")


RULES: Rules = {
    "BatchToSpace": _batch_to_space,
    "Concat": _joined(axis_first=True),
    "ConcatOffset": _concat_offset,
    "ConcatV2": _joined(axis_first=False),
    "ConjugateTranspose": named(transpose, conjugate=lambda n: True),
    "Const": named(constant, value=lambda n: n.array("value")),
    "DepthToSpace": named(
        depth_to_space, block_size=lambda n: n.whole("block_size"), data_format=_layout
    ),
    "EnsureShape": named(ensure_shape, shape=lambda n: n.shape("shape")),
    "GuaranteeConst": named(identity),
    "MirrorPad": named(pad, mode=lambda n: n.text("mode")),
    "OneHot": named(one_hot, axis=lambda n: n.whole("axis", -1)),
    "Pack": lambda n, *inputs: stack(list(inputs), axis=n.whole("axis"), name=n.scope),
    "Pad": _pad,
    "PadV2": _pad,
    **dict.fromkeys(
        ("Placeholder", "PlaceholderV2"),
        named(placeholder, dtype=lambda n: n.dtype("dtype"), shape=lambda n: n.shape("shape")),
    ),
    "PlaceholderWithDefault": named(placeholder_with_default, shape=lambda n: n.shape("shape")),
    "PreventGradient": named(prevent_gradient, message=lambda n: n.text("message")),
    "Reverse": lambda n, x, dims: reverse(
        x, [i for i, d in enumerate(n.known(dims, "which axes")) if d], name=n.scope
    ),
    "ReverseSequence": named(
        reverse_sequence,
        seq_axis=lambda n: n.whole("seq_dim"),
        batch_axis=lambda n: n.whole("batch_dim"),
    ),
    "ReverseV2": named(reverse),
    "Shape": named(shape, out_type=lambda n: n.dtype("out_type", int32)),
    "ShapeN": _shapes,
    "Size": named(size, out_type=lambda n: n.dtype("out_type", int32)),
    "Snapshot": named(identity),
    "SpaceToBatch": _space_to_batch,
    "SpaceToDepth": named(
        space_to_depth, block_size=lambda n: n.whole("block_size"), data_format=_layout
    ),
    "Split": _split,
    "SplitV": _split_by_sizes,
    "Squeeze": named(squeeze, axis=lambda n: n.ints("squeeze_dims") or None),
    "Unpack": named(unstack, num=lambda n: n.whole("num"), axis=lambda n: n.whole("axis")),
}
