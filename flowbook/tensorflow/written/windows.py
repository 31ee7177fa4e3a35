"""Rules for writing what moves windows over images."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.transfer.refusals import rank_of
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.types import Rules


def _padding(op: Operation, rank: int, is_inner: bool) -> dict[str, Any]:
    padding = op.attributes["padding"]
    if isinstance(padding, str):
        return {"padding": padding}
    if not is_inner or rank != 4:
        raise UnimplementedError(f"explicit padding of a {op.type}")
    sizes = [0, 0, *(int(n) for pair in padding for n in pair), 0, 0]
    return {"padding": "EXPLICIT", "explicit_paddings": sizes}


def _how(op: Operation, rank: int) -> dict[str, Any]:
    """The attributes of a convolution, whose windows do not go over batches and channels."""
    given = {k: [1, *op.attributes[k], 1] for k in ("strides", "dilations")}
    return {**given, **_padding(op, rank, True), "T": op.inputs[1].dtype}


def _convolution(suffix: str, which: int) -> Any:
    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        rank = rank_of(op.inputs[which])
        if rank not in (4, 5) or (suffix and rank == 5):
            raise UnimplementedError(f"a {op.type} over {rank - 2} axes")
        name, form = ("Conv2D", "NHWC") if rank == 4 else ("Conv3D", "NDHWC")
        how = _how(op, rank)
        how["T"] = op.inputs[which].dtype
        return w.last(f"{name}{suffix}", inputs, data_format=form, **how)

    return rule


def _depthwise(suffix: str, which: int) -> Any:
    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        if len(set(op.attributes["strides"])) > 1:
            raise UnimplementedError(f"a {op.type} with other strides down than across")
        how = _how(op, 4)
        how["T"] = op.inputs[which].dtype
        return w.last(f"DepthwiseConv2dNative{suffix}", inputs, data_format="NHWC", **how)

    return rule


def _pool(type: str) -> Any:
    def rule(w: Writer, op: Operation, *inputs: str) -> Any:
        how = op.attributes
        rank = len(how["ksize"])
        if rank not in (4, 5) or set(how["dilations"]) != {1}:
            raise UnimplementedError(f"a {op.type} over {rank - 2} axes, or with gaps")
        if rank == 5 and ("Grad" in type or op.inputs[-1].dtype is dtypes.float64):
            raise UnimplementedError("a pool over volumes of float64, or the gradient of one")
        if type != "MaxPool" and (how["ksize"][-1] != 1 or how["strides"][-1] != 1):
            raise UnimplementedError(f"a {op.type} along the channels")
        given = {
            "ksize": list(how["ksize"]),
            "strides": list(how["strides"]),
            "data_format": "NHWC" if rank == 4 else "NDHWC",
            "T": op.inputs[-1].dtype,
            **_padding(op, rank, False),
        }
        return w.last(type if rank == 4 else f"{type}3D", inputs, **given)

    return rule


def _response_normalisation(w: Writer, op: Operation, x: str) -> Any:
    dtype = op.inputs[0].dtype
    if dtype is dtypes.float64:
        raise UnimplementedError("a response normalisation of float64")
    given = {k: op.attributes[k] for k in ("depth_radius", "bias", "alpha", "beta")}
    return w.last("LRN", [x], T=dtype, **given)


def _resize(w: Writer, op: Operation, x: str, size: str) -> Any:
    how = op.attributes
    names = {
        "area": "ResizeArea",
        "bicubic": "ResizeBicubic",
        "bilinear": "ResizeBilinear",
        "nearest": "ResizeNearestNeighbor",
    }
    given = {"align_corners": how["align_corners"], "T": op.inputs[0].dtype}
    if how["method"] != "area":
        given["half_pixel_centers"] = how["half_pixel_centers"]
    dtype, type = op.outputs[0].dtype, names[how["method"]]
    if how["method"] == "nearest" or dtype is dtypes.float32:
        return w.last(type, [x, size], **given)
    # What interpolates gives float32 whatever it takes.
    return w.last("Cast", [w.node(type, [x, size], **given)], SrcT=dtypes.float32, DstT=dtype)


RULES: Rules = {
    "AvgPool": _pool("AvgPool"),
    "AvgPoolGrad": _pool("AvgPoolGrad"),
    "Convolution": _convolution("", 1),
    "ConvolutionBackpropFilter": _convolution("BackpropFilter", 0),
    "ConvolutionBackpropInput": _convolution("BackpropInput", 1),
    "DepthwiseConvolution": _depthwise("", 1),
    "DepthwiseConvolutionBackpropFilter": _depthwise("BackpropFilter", 0),
    "DepthwiseConvolutionBackpropInput": _depthwise("BackpropInput", 1),
    "LRN": _response_normalisation,
    "MaxPool": _pool("MaxPool"),
    "MaxPoolGrad": _pool("MaxPoolGrad"),
    "Resize": _resize,
}
