"""Kernels of float32 on the CPU by oneDNN, where it is installed: convolutions, pools, and more.

Data keeps its layout, channels last. Filters are small, and are reordered in each call into the
layout that oneDNN is fastest with. What it does not do, or would do otherwise than the definitions
say, runs by their own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import c_float, c_int64
from functools import partial
from typing import Any

import numpy as np

from flowbook.exec.devices import cpu as _cpu  # noqa: F401  # Admits kernels for its kind.
from flowbook.exec.kernels import onednn
from flowbook.exec.kernels.onednn import Axes, Computation, Unsupported, computation, numbers
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import DType, bfloat16, float32
from flowbook.graph.model.registry import special_kernel
from flowbook.graph.model.shape import Shape
from flowbook.graph.ops.windows import (
    convolution,
    convolution_kernels,
    depthwise,
    pooling,
    pooling_kernels,
)
from flowbook.graph.ops.windows import response_normalisation as normalisation
from flowbook.graph.ops.windows.windows import AxisWindows, Padding

__all__ = ["special_kernels"]

Ints = tuple[int, ...]
Kernel = Callable[..., Any]

_types: list[str] = []


def special_kernels() -> dict[str, str]:
    """Which types of operations have a faster kernel than NumPy's, and why they have not.

    Convolutions and pools of float32 and bfloat16, and local response normalisation, run in oneDNN
    where it is installed (`pip install onednn-cpu-gomp`, for Linux on x86-64). Both kernels compute
    the same but for the order of their sums, and so but for rounding. What oneDNN does not do well
    runs in NumPy all the same, and so do float16 and float64. A kernel that a user registers goes
    before either.

    Returns:
        For each such type "oneDNN" and its version, or "NumPy: " and the reason.

    >>> import flowbook as fb
    >>> "Convolution" in fb.special_kernels()
    True
    """
    return dict.fromkeys(sorted(_types), onednn.told())


def _data_axes(shape: Ints) -> Axes:
    """Where in data oneDNN's axes are: batch, channels, and those between."""
    return (0, len(shape) - 1, *range(1, len(shape) - 1))


# Convolutions

# Channels that fill a vector register.
_THIN = 16


class _Convolution:
    """How a convolution is told to oneDNN.

    Attributes:
        input: the shape and the axes of the input; filters and output likewise.
    """

    def __init__(
        self,
        is_depthwise: bool,
        input: Ints,
        filters: Ints,
        strides: Ints,
        padding: Padding,
        dilations: Ints,
    ) -> None:
        windows = convolution_kernels.placed(input, filters, strides, padding, dilations)
        channels = filters[-2] * filters[-1] if is_depthwise else filters[-1]
        output = (input[0], *(w.output for w in windows), channels)
        if 0 in (*input, *filters, *output):
            raise Unsupported("nothing to compute")
        if not is_depthwise and all(w.is_trivial for w in windows) and min(filters[-2:]) < _THIN:
            raise Unsupported("a product of thin matrices, which BLAS is faster at")
        between = range(len(windows))
        last = len(windows)
        # Channels out and in; of depthwise filters groups, of one channel each, go first.
        first = (last, last + 1, None) if is_depthwise else (last + 1, last)
        self.input = input, _data_axes(input)
        self.filters = filters, (*first, *between)
        self.output = output, _data_axes(output)
        self.places = _places(windows)

    def forward(self, made: Computation) -> onednn.Handle:
        """The description of the convolution, which those of its gradients refer to."""
        return made.describe(
            "convolution_forward",
            onednn.FORWARD,
            onednn.CONVOLUTION_DIRECT,
            made.plain(*self.input),
            made.any(*self.filters),
            None,
            made.plain(*self.output),
            *self.places,
        )


def _places(windows: Sequence[AxisWindows]) -> Sequence[Any]:
    """How windows lie, as oneDNN is told it; its dilations count what is between elements."""
    told = [(w.stride, w.dilation - 1, w.before, w.after) for w in windows]
    return [numbers(values) for values in zip(*told, strict=True)]


@computation
def _forward(made: Computation, *given: Any) -> None:
    told = _Convolution(*given)
    input, filters = made.array(*told.input), made.array(*told.filters)
    output = made.result(*told.output)
    arguments = {onednn.SRC: input, onednn.WEIGHTS: filters, onednn.DST: output}
    made.add(told.forward(made), arguments)


@computation
def _by_input(made: Computation, *given: Any) -> None:
    told = _Convolution(*given)
    if told.input[0][-1] == 1:
        raise Unsupported("oneDNN computes sixteen channels, and is three times as slow")
    filters, slopes = made.array(*told.filters), made.array(*told.output)
    result = made.result(*told.input)
    described = made.describe(
        "convolution_backward_data",
        onednn.CONVOLUTION_DIRECT,
        made.plain(*told.input),
        made.any(*told.filters),
        made.plain(*told.output),
        *told.places,
        told.forward(made),
    )
    arguments = {onednn.DIFF_DST: slopes, onednn.WEIGHTS: filters, onednn.DIFF_SRC: result}
    made.add(described, arguments)


@computation
def _by_filters(made: Computation, *given: Any) -> None:
    told = _Convolution(*given)
    input, slopes = made.array(*told.input), made.array(*told.output)
    result = made.result(*told.filters)
    described = made.describe(
        "convolution_backward_weights",
        onednn.CONVOLUTION_DIRECT,
        made.plain(*told.input),
        made.any(*told.filters),
        None,
        made.plain(*told.output),
        *told.places,
        told.forward(made),
    )
    arguments = {onednn.SRC: input, onednn.DIFF_DST: slopes, onednn.DIFF_WEIGHTS: result}
    made.add(described, arguments)


def _convolve(
    is_depthwise: bool,
    own: Kernel,
    xp: Any,
    input: Any,
    filters: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    how = (strides, padding, dilations)
    made = _forward(is_depthwise, input.shape, filters.shape, *how)
    if made is None or not made.fits(input, filters):
        return own(xp, input, filters, *how)
    (output,) = made(input, filters)
    return output


def _input_gradient(
    is_depthwise: bool,
    own: Kernel,
    xp: Any,
    input_sizes: Any,
    filters: Any,
    out_backprop: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    how = (strides, padding, dilations)
    made = _by_input(is_depthwise, tuple(input_sizes.tolist()), filters.shape, *how)
    if made is None or not made.fits(filters, out_backprop):
        return own(xp, input_sizes, filters, out_backprop, *how)
    (result,) = made(filters, out_backprop)
    return result


def _filter_gradient(
    is_depthwise: bool,
    own: Kernel,
    xp: Any,
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Ints,
    padding: Padding,
    dilations: Ints,
) -> Any:
    how = (strides, padding, dilations)
    made = _by_filters(is_depthwise, input.shape, tuple(filter_sizes.tolist()), *how)
    if made is None or not made.fits(input, out_backprop):
        return own(xp, input, filter_sizes, out_backprop, *how)
    (result,) = made(input, out_backprop)
    return result


# Pools

# oneDNN takes the maximum from here on, and passes over NaN.
_LOWEST = np.finfo(np.float32).min


class _Pool:
    """How a pool is told to oneDNN.

    Attributes:
        input: the shape and the axes of the input; output likewise.
    """

    def __init__(
        self,
        algorithm: int,
        input: Ints,
        ksize: Ints,
        strides: Ints,
        padding: Padding,
        dilations: Ints,
    ) -> None:
        windows = pooling_kernels.placed(input, ksize, strides, padding, dilations)
        output = tuple(w.output for w in windows)
        if 0 in (*input, *output) or any(map(_has_empty, windows)):
            raise Unsupported("nothing to compute")
        moving = windows[1:-1]
        strides, dilations, before, after = _places(moving)
        sizes = numbers([w.size for w in moving])
        self.input = input, _data_axes(input)
        self.output = output, _data_axes(output)
        self.algorithm = algorithm
        self.places = (strides, sizes, dilations, before, after)

    def forward(self, made: Computation, kind: int) -> onednn.Handle:
        """The description of the pool, which that of its gradient refers to."""
        return made.describe(
            "pooling_forward",
            kind,
            self.algorithm,
            made.plain(*self.input),
            made.plain(*self.output),
            *self.places,
        )

    def backward(self, made: Computation, forward: onednn.Handle) -> onednn.Handle:
        """The description of its gradient."""
        return made.describe(
            "pooling_backward",
            self.algorithm,
            made.plain(*self.input),
            made.plain(*self.output),
            *self.places,
            forward,
        )


def _has_empty(windows: AxisWindows) -> bool:
    """Whether a window holds nothing but padding."""
    held = {i for k in range(windows.size) for i in range(windows.output)[windows.tap(k)[0]]}
    return len(held) < windows.output


@computation
def _pool(made: Computation, *given: Any, **how: Any) -> None:
    told = _Pool(*given, **how)
    input, output = made.array(*told.input), made.result(*told.output)
    described = told.forward(made, onednn.FORWARD_INFERENCE)
    made.add(described, {onednn.SRC: input, onednn.DST: output})


@computation
def _max_gradient(made: Computation, *given: Any, **how: Any) -> None:
    """From the input and the gradient to that of the input, and the output."""
    told = _Pool(onednn.POOLING_MAX, *given, **how)
    input, slopes = made.array(*told.input), made.array(*told.output)
    result, output = made.result(*told.input), made.result(*told.output)
    forward = told.forward(made, onednn.FORWARD)
    # Where the maxima lie.
    workspace = made.between(forward, onednn.WORKSPACE)
    made.add(forward, {onednn.SRC: input, onednn.DST: output, onednn.WORKSPACE: workspace})
    backward = told.backward(made, forward)
    made.add(
        backward,
        {onednn.DIFF_DST: slopes, onednn.WORKSPACE: workspace, onednn.DIFF_SRC: result},
    )


@computation
def _mean_gradient(made: Computation, *given: Any, **how: Any) -> None:
    told = _Pool(onednn.POOLING_MEAN_OF_EXISTING, *given, **how)
    slopes, result = made.array(*told.output), made.result(*told.input)
    backward = told.backward(made, told.forward(made, onednn.FORWARD))
    made.add(backward, {onednn.DIFF_DST: slopes, onednn.DIFF_SRC: result})


def _max_pool(own: Kernel, xp: Any, input: Any, **how: Any) -> Any:
    made = _pool(onednn.POOLING_MAX, input.shape, **how)
    if made is None or not made.fits(input) or not xp.min(input) > _LOWEST:
        return own(xp, input, **how)
    (output,) = made(input)
    return output


def _max_pool_gradient(
    own: Kernel, xp: Any, orig_input: Any, orig_output: Any, grad: Any, **how: Any
) -> Any:
    made = _max_gradient(orig_input.shape, **how)
    if made is not None and made.fits(orig_input, grad) and xp.min(orig_input) > _LOWEST:
        result, output = made(orig_input, grad)
        # Any edge may be fed: where the output is another, so are its maxima.
        if xp.array_equal(output, orig_output):
            return result
    return own(xp, orig_input, orig_output, grad, **how)


def _avg_pool(own: Kernel, xp: Any, input: Any, **how: Any) -> Any:
    made = _pool(onednn.POOLING_MEAN_OF_EXISTING, input.shape, **how)
    if made is None or not made.fits(input):
        return own(xp, input, **how)
    (output,) = made(input)
    return output


def _avg_pool_gradient(own: Kernel, xp: Any, orig_input_shape: Any, grad: Any, **how: Any) -> Any:
    made = _mean_gradient(tuple(orig_input_shape.tolist()), **how)
    if made is None or not made.fits(grad):
        return own(xp, orig_input_shape, grad, **how)
    (result,) = made(grad)
    return result


def _keeps_channels(how: Mapping[str, Any]) -> bool:
    """Whether windows are of single channels."""
    return bool(how["ksize"][-1] == how["strides"][-1] == 1)


# Local response normalisation


def _settings(radius: int, bias: float, alpha: float, beta: float) -> tuple[Any, ...]:
    """The settings as oneDNN takes them; its alpha is divided by the size of windows."""
    size = 2 * radius + 1
    return c_int64(size), c_float(alpha * size), c_float(beta), c_float(bias)


@computation
def _normalization(made: Computation, shape: Ints, *settings: Any) -> None:
    axes = _data_axes(shape)
    input, output = made.array(shape, axes), made.result(shape, axes)
    described = _normalizing(made, onednn.FORWARD_INFERENCE, shape, settings)
    made.add(described, {onednn.SRC: input, onednn.DST: output})


@computation
def _normalization_gradient(made: Computation, shape: Ints, *settings: Any) -> None:
    axes = _data_axes(shape)
    input, slopes, result = (
        made.array(shape, axes),
        made.array(shape, axes),
        made.result(shape, axes),
    )
    forward = _normalizing(made, onednn.FORWARD, shape, settings)
    layout = made.plain(shape, axes)
    backward = made.describe(
        "lrn_backward",
        onednn.LRN_ACROSS_CHANNELS,
        layout,
        layout,
        layout,
        *_settings(*settings),
        forward,
    )
    output, workspace = (made.between(forward, n) for n in (onednn.DST, onednn.WORKSPACE))
    made.add(forward, {onednn.SRC: input, onednn.DST: output, onednn.WORKSPACE: workspace})
    made.add(
        backward,
        {
            onednn.SRC: input,
            onednn.DIFF_DST: slopes,
            onednn.WORKSPACE: workspace,
            onednn.DIFF_SRC: result,
        },
    )


def _normalizing(made: Computation, kind: int, shape: Ints, settings: Any) -> onednn.Handle:
    if 0 in shape:
        raise Unsupported("nothing to compute")
    layout = made.plain(shape, _data_axes(shape))
    return made.describe(
        "lrn_forward", kind, onednn.LRN_ACROSS_CHANNELS, layout, layout, *_settings(*settings)
    )


def _normalize(
    own: Kernel, xp: Any, input: Any, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    how = (depth_radius, bias, alpha, beta)
    made = _normalization(input.shape, *how)
    if made is None or not made.fits(input):
        return own(xp, input, *how)
    (output,) = made(input)
    return output


def _normalize_gradient(
    own: Kernel,
    xp: Any,
    input: Any,
    dy: Any,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Any:
    how = (depth_radius, bias, alpha, beta)
    made = _normalization_gradient(input.shape, *how)
    if made is None or not made.fits(input, dy):
        return own(xp, input, dy, *how)
    (result,) = made(input, dy)
    return result


def _has_few_neighbours(how: Mapping[str, Any]) -> bool:
    """Whether windows are as large as networks have them.

    oneDNN 3.2 crashes making the gradient for windows of one channel, and is slow at large ones.
    """
    return how["depth_radius"] in range(1, 6)


# Which operations


def _register(
    op_def: OpDef[Any],
    kernel: Kernel,
    suits: Callable[[Mapping[str, Any]], bool] = lambda how: True,
) -> None:
    """Register a kernel for float32; its first argument is the one that does what it cannot."""
    own = op_def.kernel
    assert own is not None
    _types.append(op_def.type)

    def is_for(dtypes: Sequence[DType], shapes: Sequence[Shape], how: Mapping[str, Any]) -> bool:
        # The first input of a gradient may be a shape; the last is always data. That of bfloat16
        # arrives as float32, as with every kernel.
        return dtypes[-1] in (float32, bfloat16) and suits(how)

    special_kernel(op_def.type, "cpu", is_for)(partial(kernel, own))


_register(convolution.conv_op, partial(_convolve, False))
_register(convolution.input_gradient_op, partial(_input_gradient, False))
_register(convolution.filter_gradient_op, partial(_filter_gradient, False))
_register(depthwise.depthwise_op, partial(_convolve, True))
_register(depthwise.input_gradient_op, partial(_input_gradient, True))
_register(depthwise.filter_gradient_op, partial(_filter_gradient, True))
_register(pooling.max_pool_op, _max_pool, _keeps_channels)
_register(pooling.max_pool_gradient, _max_pool_gradient, _keeps_channels)
_register(pooling.avg_pool_op, _avg_pool, _keeps_channels)
_register(pooling.avg_pool_gradient, _avg_pool_gradient, _keeps_channels)
_register(normalisation.normalize_responses_op, _normalize, _has_few_neighbours)
_register(normalisation.normalize_responses_gradient_op, _normalize_gradient, _has_few_neighbours)
