"""Gradients of pools of maxima on GPUs, by one kernel, not by many for each place of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.exec.devices import gpu as _gpu  # noqa: F401  # Admits kernels for its kind.
from flowbook.exec.kernels.cuda.launching import launch
from flowbook.graph.model.dtypes import DType, float32, float64
from flowbook.graph.model.registry import special_kernel
from flowbook.graph.model.shape import Shape
from flowbook.graph.ops.windows.pooling import max_pool_gradient
from flowbook.graph.ops.windows.pooling_kernels import check_pooled, placed
from flowbook.graph.ops.windows.windows import AxisWindows

# Of an axis that is not there.
_NO_WINDOWS = AxisWindows(1, 1, 1, 1, 0, 0, 1)


def _is_of_images(dtypes: Sequence[DType], shapes: Sequence[Shape], how: Mapping[str, Any]) -> bool:
    """Whether windows lie in one or two dimensions, of floats that the kernel has."""
    ksize = how["ksize"]
    lies_within = ksize[0] == ksize[-1] == how["strides"][0] == how["strides"][-1] == 1
    return dtypes[0] in (float32, float64) and len(ksize) in (3, 4) and lies_within


@special_kernel(max_pool_gradient.type, "gpu", _is_of_images)
def _max_pool_gradient(xp: Any, orig_input: Any, orig_output: Any, grad: Any, **how: Any) -> Any:
    windows = placed(orig_input.shape, **how)
    check_pooled("an argument", orig_output, windows)
    check_pooled("its gradient", grad, windows)
    result = xp.empty(orig_input.shape, grad.dtype)
    moving = windows[1:-1] if len(windows) == 4 else (_NO_WINDOWS, windows[1])
    places = [(w.input, w.size, w.stride, w.dilation, w.before, w.output) for w in moving]
    launch(
        "pooling",
        f"max_gradient_{grad.dtype}",
        result.size,
        result,
        *map(xp.ascontiguousarray, (orig_input, orig_output, grad)),
        np.uint64(result.size),
        np.int32(orig_input.shape[-1]),
        *[np.int32(number) for along in places for number in along],
    )
    return result
