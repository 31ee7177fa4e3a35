"""Rules for writing what moves windows over images: ONNX has channels first."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.transfer.refusals import rank_of
from flowbook.onnx.saving.rules.types import Rules
from flowbook.onnx.saving.writer import Writer


def _first(w: Writer, x: str, rank: int) -> str:
    return w.transpose(x, (0, rank - 1, *range(1, rank - 1)))


def _last(w: Writer, x: str, rank: int) -> str:
    return w.transpose(x, (0, *range(2, rank), 1))


def _padding(padding: Any) -> dict[str, Any]:
    if isinstance(padding, str):
        return {"auto_pad": "SAME_UPPER"} if padding == "SAME" else {}
    return {"pads": [a for a, _ in padding] + [b for _, b in padding]}


def _filter_dims(op: Operation) -> tuple[int, ...]:
    dims = op.inputs[1].shape.dims
    if dims is None or None in dims:
        raise UnimplementedError(f"filters whose shape is not known, {op.inputs[1].name}")
    return dims  # type: ignore[return-value]


def _convolution(w: Writer, op: Operation, x: str, filters: str) -> Any:
    rank = rank_of(op.inputs[1])
    dims = _filter_dims(op)
    found = w.node(
        "Conv",
        [_first(w, x, rank), w.transpose(filters, (rank - 1, rank - 2, *range(rank - 2)))],
        kernel_shape=dims[:-2],
        strides=op.attributes["strides"],
        dilations=op.attributes["dilations"],
        **_padding(op.attributes["padding"]),
    )
    return _last(w, found, rank)


def _depthwise(w: Writer, op: Operation, x: str, filters: str) -> Any:
    height, width, channels, multiplier = _filter_dims(op)
    weights = w.transpose(filters, (2, 3, 0, 1))
    weights = w.reshape(weights, [channels * multiplier, 1, height, width])
    found = w.node(
        "Conv",
        [_first(w, x, 4), weights],
        group=channels,
        kernel_shape=(height, width),
        strides=op.attributes["strides"],
        dilations=op.attributes["dilations"],
        **_padding(op.attributes["padding"]),
    )
    return _last(w, found, 4)


def _transposed(w: Writer, op: Operation, _: str, filters: str, dy: str) -> Any:
    rank = rank_of(op.inputs[1])
    dims = _filter_dims(op)
    inner, outer = op.outputs[0].shape.dims, op.inputs[2].shape.dims
    if inner is None or outer is None or None in (*inner[1:-1], *outer[1:-1]):
        raise UnimplementedError("a transposed convolution whose sizes are not known")
    how = op.attributes
    pads, extra = [], []
    for i, (size, given) in enumerate(zip(inner[1:-1], outer[1:-1], strict=True)):
        assert size is not None
        assert given is not None
        extent = (dims[i] - 1) * how["dilations"][i] + 1
        whole = (given - 1) * how["strides"][i] + extent
        if how["padding"] == "SAME":
            total = max(whole - size, 0)
            pair = (total // 2, total - total // 2)
        else:
            pair = (0, 0) if isinstance(how["padding"], str) else how["padding"][i]
        pads.append(pair)
        extra.append(size - (whole - sum(pair)))
    found = w.node(
        "ConvTranspose",
        [_first(w, dy, rank), w.transpose(filters, (rank - 1, rank - 2, *range(rank - 2)))],
        kernel_shape=dims[:-2],
        strides=how["strides"],
        dilations=how["dilations"],
        pads=[a for a, _ in pads] + [b for _, b in pads],
        output_padding=extra,
    )
    return _last(w, found, rank)


def _pool(type: str) -> Any:
    def rule(w: Writer, op: Operation, x: str) -> Any:
        how = op.attributes
        rank = len(how["ksize"])
        if how["ksize"][-1] != 1 or how["strides"][-1] != 1 or rank < 3:
            raise UnimplementedError("a pool along the channels")
        padding = how["padding"]
        spread = {} if set(how["dilations"]) == {1} else {"dilations": how["dilations"][1:-1]}
        found = w.node(
            type,
            [_first(w, x, rank)],
            kernel_shape=how["ksize"][1:-1],
            strides=how["strides"][1:-1],
            **spread,
            **_padding(padding if isinstance(padding, str) else padding[1:-1]),
        )
        return _last(w, found, rank)

    return rule


def _response_normalisation(w: Writer, op: Operation, x: str) -> Any:
    how = op.attributes
    size = 2 * how["depth_radius"] + 1
    found = w.node(
        "LRN",
        [_first(w, x, 4)],
        size=size,
        # ONNX takes the mean of the squares where TensorFlow takes their sum.
        alpha=how["alpha"] * size,
        beta=how["beta"],
        bias=how["bias"],
    )
    return _last(w, found, 4)


def _resize(w: Writer, op: Operation, x: str, size: str) -> Any:
    how = op.attributes
    mode = {"nearest": "nearest", "bilinear": "linear"}.get(how["method"])
    if mode is None:
        raise UnimplementedError(f"resizing by {how['method']}")
    if how["align_corners"]:
        places = "align_corners"
    else:
        places = "half_pixel" if how["half_pixel_centers"] else "asymmetric"
    rounding = "floor"
    if mode == "nearest" and (how["half_pixel_centers"] or how["align_corners"]):
        rounding = "round_prefer_ceil"
    first = _first(w, x, 4)
    dims = op.inputs[0].shape.dims
    if dims is None or dims[0] is None or dims[3] is None:
        # Onnxruntime loses sizes of two axes alone, where it moves transpositions.
        head = w.node("Shape", [first], start=0, end=2)
    else:
        head = w.integers([dims[0], dims[3]])
    found = w.node(
        "Resize",
        [first, "", "", w.node("Concat", [head, w.long(size)], axis=0)],
        mode=mode,
        coordinate_transformation_mode=places,
        nearest_mode=rounding if mode == "nearest" else None,
    )
    return _last(w, found, 4)


RULES: Rules = {
    "AvgPool": _pool("AveragePool"),
    "Convolution": _convolution,
    "ConvolutionBackpropInput": _transposed,
    "DepthwiseConvolution": _depthwise,
    "LRN": _response_normalisation,
    "MaxPool": _pool("MaxPool"),
    "Resize": _resize,
}
