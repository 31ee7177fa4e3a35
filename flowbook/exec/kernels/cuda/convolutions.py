"""Convolutions of float32 on GPUs by cuDNN, where it is installed, and their gradients.

Data keeps its layout, channels last. Filters are small, and are reordered in each call. What cuDNN
does not do, such as three dimensions, is computed by the definitions' own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from flowbook.exec.devices import gpu as _gpu  # noqa: F401  # Admits kernels for its kind.
from flowbook.exec.kernels.cuda.cudnn import Convolution, Direction, Unsupported, library
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import DType, float32
from flowbook.graph.model.registry import special_kernel
from flowbook.graph.model.shape import Shape
from flowbook.graph.ops.windows import convolution, depthwise
from flowbook.graph.ops.windows.convolution_kernels import check_gradients, placed
from flowbook.graph.ops.windows.windows import AxisWindows, Padding

Ints = tuple[int, ...]
Kernel = Callable[..., Any]

# Computations of more shapes than large networks have.
_KEPT = 512
# cuDNN's axes between batch and channels.
_AXES = 2


class _Plan:
    """How a convolution is told to cuDNN: in two dimensions, with as much padding before as after.

    Args:
        xp: CuPy.
        direction: what is computed of it.
        is_depthwise: whether each channel has filters of its own.
        input: the shape of the input; of the filters likewise, as the operation has them.

    Raises:
        Unsupported: if cuDNN does not do it.
    """

    def __init__(
        self,
        xp: Any,
        direction: Direction,
        is_depthwise: bool,
        input: Ints,
        filters: Ints,
        strides: Ints,
        padding: Padding,
        dilations: Ints,
    ) -> None:
        found = library()
        self.windows = placed(input, filters, strides, padding, dilations)
        channels_in, channels = filters[-2:]
        if is_depthwise:
            channels *= channels_in
        outputs = tuple(w.output for w in self.windows)
        if found is None or len(strides) > _AXES or 0 in (*input, *filters, *outputs):
            raise Unsupported("cuDNN is not there, or does not do that")
        self.channels = channels
        self._input, self._filters = input, filters
        self._output = (input[0], *outputs, channels)
        self._is_depthwise = is_depthwise
        windows = [*[_NO_WINDOWS] * (_AXES - len(strides)), *self.windows]
        self._is_padded = any(w.before != w.after for w in windows)
        around = [(w.before, w.after) if self._is_padded else (0, 0) for w in windows]
        inner = zip(windows, around, strict=True)
        self._inner = tuple(slice(before, before + w.input) for w, (before, _) in inner)
        self._whole = (
            input[0],
            *(w.input + sum(beside) for w, beside in zip(windows, around, strict=True)),
            input[-1],
        )
        self._compute = Convolution(
            found,
            xp,
            direction,
            self._whole,
            (channels, *(w.size for w in windows), 1 if is_depthwise else channels_in),
            (input[0], *(w.output for w in windows), channels),
            padding=tuple(0 if self._is_padded else w.before for w in windows),
            strides=tuple(w.stride for w in windows),
            dilations=tuple(w.dilation for w in windows),
            groups=channels_in if is_depthwise else 1,
        )

    def forward(self, xp: Any, input: Any, filters: Any) -> Any:
        """The output."""
        found = self._compute(xp, self._with_padding(xp, input), self._turned(xp, filters))
        return found.reshape(self._output)

    def by_input(self, xp: Any, filters: Any, slopes: Any) -> Any:
        """The gradient by the input."""
        found = self._compute(xp, self._turned(xp, filters), xp.ascontiguousarray(slopes))
        return xp.ascontiguousarray(found[(slice(None), *self._inner)]).reshape(self._input)

    def by_filters(self, xp: Any, input: Any, slopes: Any) -> Any:
        """The gradient by the filters."""
        found = self._compute(xp, self._with_padding(xp, input), xp.ascontiguousarray(slopes))
        if self._is_depthwise:
            found = found.reshape(found.shape[:-1])
        return xp.ascontiguousarray(xp.moveaxis(found, 0, -1)).reshape(self._filters)

    def _with_padding(self, xp: Any, input: Any) -> Any:
        if not self._is_padded:
            return xp.ascontiguousarray(input)
        padded = xp.zeros(self._whole, input.dtype)
        target = padded[(slice(None), *self._inner)]
        target[...] = input.reshape(target.shape)
        return padded

    def _turned(self, xp: Any, filters: Any) -> Any:
        """The filters with the channels that come out first."""
        if self._is_depthwise:
            filters = filters.reshape((*filters.shape[:-2], self.channels))
        return xp.ascontiguousarray(xp.moveaxis(filters, -1, 0))


# Of an axis that is not there.
_NO_WINDOWS = AxisWindows(1, 1, 1, 1, 0, 0, 1)


@lru_cache(_KEPT)
def _plan(device: int, xp: Any, direction: Direction, *how: Any) -> _Plan | None:
    """How something is computed on a GPU; None if cuDNN does not do it."""
    try:
        return _Plan(xp, direction, *how)
    except Unsupported:
        return None


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
    shapes = (is_depthwise, input.shape, filters.shape)
    plan = _plan(xp.cuda.runtime.getDevice(), xp, Direction.FORWARD, *shapes, *how)
    return own(xp, input, filters, *how) if plan is None else plan.forward(xp, input, filters)


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
    shapes = (is_depthwise, tuple(input_sizes.tolist()), filters.shape)
    plan = _plan(xp.cuda.runtime.getDevice(), xp, Direction.BY_INPUT, *shapes, *how)
    if plan is None:
        return own(xp, input_sizes, filters, out_backprop, *how)
    check_gradients(out_backprop, shapes[1][0], plan.windows, plan.channels)
    return plan.by_input(xp, filters, out_backprop)


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
    shapes = (is_depthwise, input.shape, tuple(filter_sizes.tolist()))
    plan = _plan(xp.cuda.runtime.getDevice(), xp, Direction.BY_FILTERS, *shapes, *how)
    if plan is None:
        return own(xp, input, filter_sizes, out_backprop, *how)
    check_gradients(out_backprop, len(input), plan.windows, plan.channels)
    return plan.by_filters(xp, input, out_backprop)


def _is_single(dtypes: Sequence[DType], shapes: Sequence[Shape], how: Mapping[str, Any]) -> bool:
    # The first input of a gradient may be a shape; the last is always data.
    return dtypes[-1] is float32


def _register(op_def: OpDef[Any], kernel: Kernel, is_depthwise: bool) -> None:
    assert op_def.kernel is not None
    special_kernel(op_def.type, "gpu", _is_single)(partial(kernel, is_depthwise, op_def.kernel))


for _module, _forward, _is_depthwise in (
    (convolution, convolution.conv_op, False),
    (depthwise, depthwise.depthwise_op, True),
):
    _register(_forward, _convolve, _is_depthwise)
    _register(_module.input_gradient_op, _input_gradient, _is_depthwise)
    _register(_module.filter_gradient_op, _filter_gradient, _is_depthwise)
