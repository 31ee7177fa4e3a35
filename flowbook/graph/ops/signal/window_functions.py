"""Windows: weights of a frame's samples, which fade it in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS, DType, as_dtype, float32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant
from flowbook.graph.ops.windows.windows import whole

__all__ = ["hamming_window", "hann_window", "vorbis_window"]


def _window(
    what: str, window_length: Any, dtype: Any, weights: Callable[[int], Any], name: str | None
) -> Tensor:
    length, wanted = whole("window_length", window_length), as_dtype(dtype)
    if length < 1:
        raise InvalidArgumentError(f"window_length is at least 1, not {length}")
    if wanted not in FLOATS:
        raise InvalidTypeError(f"a window is of a floating-point dtype, not {wanted.name}")
    found = weights(length).astype(wanted.numpy)
    return constant(found, name=name or what)


def _raised_cosine(mean: float, periodic: bool) -> Callable[[int], Any]:
    def weights(length: int) -> Any:
        if length == 1:
            return np.ones(1)
        # TensorFlow's windows of odd length are never periodic.
        period = length if periodic and length % 2 == 0 else length - 1
        return mean - (1 - mean) * np.cos(2 * np.pi * np.arange(length) / period)

    return weights


def hann_window(
    window_length: int, periodic: bool = True, dtype: DType = float32, name: str | None = None
) -> Tensor:
    """Weights that rise from 0 to 1 and fall again as a cosine.

    Args:
        window_length: how many samples, an int.
        periodic: leave the last 0 out, so that overlapping windows add up to a constant. As in
            TensorFlow it is there in windows of odd length all the same.
        dtype: a floating-point one.
        name: the constant's name.

    Returns:
        [window_length] weights.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.signal.hann_window(4)))
    [0.  0.5 1.  0.5]
    """
    return _window("hann_window", window_length, dtype, _raised_cosine(0.5, periodic), name)


def hamming_window(
    window_length: int, periodic: bool = True, dtype: DType = float32, name: str | None = None
) -> Tensor:
    """As `hann_window`, from 0.08 to 1."""
    return _window("hamming_window", window_length, dtype, _raised_cosine(0.54, periodic), name)


def vorbis_window(window_length: int, dtype: DType = float32, name: str | None = None) -> Tensor:
    """Weights whose squares add up to 1 where windows overlap by half: for `mdct`.

    Arguments as for `hann_window`.
    """

    def weights(length: int) -> Any:
        return np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2)

    return _window("vorbis_window", window_length, dtype, weights, name)
