"""Spectra as ears hear them: bands that are equally wide on the mel scale, and their cepstra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import FLOATS, DType, as_dtype, float32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant, convert_to_tensor
from flowbook.graph.ops.signal.cosines import dct
from flowbook.graph.ops.windows.windows import whole

__all__ = ["linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms"]


def _mel(hertz: Any) -> Any:
    """HTK's formula, where 1000 Hz are 1000 mel."""
    return 1127.0 * np.log1p(hertz / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DType = float32,
    name: str | None = None,
) -> Tensor:
    """The matrix that makes a spectrum one of mel bands, each a triangle of frequencies.

    Args:
        num_mel_bins: how many bands.
        num_spectrogram_bins: how many frequencies a spectrum has, from 0 to half of `sample_rate`:
            `fft_length // 2 + 1` of `stft`.
        sample_rate: samples per second.
        lower_edge_hertz: where the first band begins.
        upper_edge_hertz: where the last band ends.
        dtype: a floating-point one.
        name: the constant's name.

    Returns:
        [num_spectrogram_bins, num_mel_bins] weights; that of frequency 0 is 0.

    Raises:
        InvalidArgumentError: if the frequencies are not in order.

    >>> import flowbook as fb
    >>> spectra = fb.abs(fb.signal.stft(fb.zeros([8000]), 256, 128))
    >>> (spectra @ fb.signal.linear_to_mel_weight_matrix(40)).shape
    Shape([61, 40])
    """
    bands = whole("num_mel_bins", num_mel_bins)
    bins = whole("num_spectrogram_bins", num_spectrogram_bins)
    wanted = as_dtype(dtype)
    rate, low, high = float(sample_rate), float(lower_edge_hertz), float(upper_edge_hertz)
    if bands < 1 or bins < 1:
        raise InvalidArgumentError(f"{bins} frequencies do not make {bands} bands")
    if not 0 <= low < high <= rate / 2:
        raise InvalidArgumentError(
            f"0 <= {low} < {high} <= {rate} / 2 is not true of the frequencies"
        )
    if wanted not in FLOATS:
        raise InvalidTypeError(f"weights are of a floating-point dtype, not {wanted.name}")
    edges = np.linspace(_mel(low), _mel(high), bands + 2)
    places = _mel(np.linspace(0, rate / 2, bins))[:, None]
    width = np.diff(edges)
    rising, falling = (places - edges[:-2]) / width[:-1], (edges[2:] - places) / width[1:]
    weights = np.maximum(0, np.minimum(rising, falling))
    weights[0] = 0
    return constant(weights.astype(wanted.numpy), name=name or "linear_to_mel_weight_matrix")


@composed
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """The mel-frequency cepstral coefficients of spectra.

    Args:
        log_mel_spectrograms: [..., bands] of float32 or float64, logarithms; their number is known.

    Returns:
        The same shape and dtype: the orthogonal cosine transform but for the first, which is larger
        by the root of 2. Of speech the first 13 are kept.
    """
    x = convert_to_tensor(log_mel_spectrograms)
    bands = x.shape.dims[-1] if x.shape.dims else None
    if not bands:
        raise InvalidArgumentError(f"how many bands {x.name} has is not known: {x.shape}")
    return dct(x * (1 / math.sqrt(2 * bands)), 2, name=name)
