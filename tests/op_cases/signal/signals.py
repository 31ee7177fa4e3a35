"""Signals: frames in plain loops, transforms by their sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import complex128, float64
from flowbook.graph.ops.checks.checking import ensure_shape
from flowbook.graph.ops.linalg import matrix_products
from flowbook.graph.ops.signal import framing, mel, shifting, short_time, window_functions
from tests.op_cases.case import Case

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(3)
SIGNALS = RANDOM.integers(-40, 40, (2, 11)) / 8
FRAMES = RANDOM.integers(-40, 40, (2, 3, 5)) / 8
SPECTRA = RANDOM.normal(size=(2, 3, 5)) + 1j * RANDOM.normal(size=(2, 3, 5))
MANY = RANDOM.normal(size=(2, 40))


def _framed(x: Array, length: int, step: int, more: Array | None = None) -> Array:
    found = []
    for start in range(0, x.shape[-1] if more is not None else x.shape[-1] - length + 1, step):
        part = x[..., start : start + length]
        if more is not None:
            fill = np.full((*x.shape[:-1], length - part.shape[-1]), more)
            part = np.concatenate([part, fill], -1)
        found.append(part)
    return np.stack(found, -2) if found else np.zeros((*x.shape[:-1], 0, length))


def _added(x: Array, step: int, samples: int | None = None) -> Array:
    *outer, count, length = x.shape
    whole = ((count - 1) * step + length if count else 0) if samples is None else samples
    result = np.zeros((*outer, int(whole)), x.dtype)
    for k in range(count):
        result[..., k * step : k * step + length] += x[..., k, :]
    return result


def _hann(length: int) -> Array:
    period = length if length % 2 == 0 else length - 1
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / period)


def _stft(x: Array, length: int, step: int, n: int, window: Array) -> Array:
    return np.fft.rfft(_framed(x, length, step) * window, n)


def _istft(x: Array, length: int, step: int, n: int, window: Array) -> Array:
    signals = np.fft.irfft(x, n)[..., :length]
    fill = np.zeros((*signals.shape[:-1], length - signals.shape[-1]))
    return _added(np.concatenate([signals, fill], -1) * window, step)


def _vorbis(length: int) -> Array:
    return np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2)


def _mdct(x: Array, length: int, window: Array) -> Array:
    n, k = np.arange(length), np.arange(length // 2)
    turned = np.outer(n + 0.5 + length / 4, k + 0.5) * (2 * np.pi / length)
    return 2 * (_framed(x, length, length // 2) * window) @ np.cos(turned)


def _inverse_mdct(x: Array, window: Array) -> Array:
    half = x.shape[-1]
    n, k = np.arange(2 * half), np.arange(half)
    turned = np.outer(k + 0.5, n + 0.5 + half / 2) * (np.pi / half)
    return _added((x @ np.cos(turned)) * window / half, half)


def _mel(x: Array) -> Array:
    """A spectrum's bands, frequency by frequency."""
    scale = lambda hertz: 1127 * np.log(1 + hertz / 700)  # noqa: E731
    edges = np.linspace(scale(125.0), scale(3800.0), 8)
    weights = np.zeros((x.shape[-1], 6))
    for i, hertz in enumerate(np.linspace(0, 4000, x.shape[-1])):
        for j in range(6):
            place = np.interp(scale(hertz), edges[j : j + 3], [0, 1, 0])
            weights[i, j] = place if i else 0
    return x @ weights


def _framing(how: dict[str, Any], reference: Any, note: str, **options: Any) -> Case:
    return Case(
        "Frame",
        lambda x: framing.frame(x, **how),
        [SIGNALS],
        reference,
        [0],
        note=note,
        tensorflow=lambda tf, x: tf.signal.frame(x, **how),
        **options,
    )


CASES = [
    _framing({"frame_length": 4, "frame_step": 3}, lambda x: _framed(x, 4, 3), "some"),
    _framing({"frame_length": 2, "frame_step": 4}, lambda x: _framed(x, 2, 4), "apart"),
    *(
        Case(
            "Frame",
            lambda x, length=length, step=step: framing.frame(
                ensure_shape(x, [None, None]), length, step, pad_end=True, pad_value=2
            ),
            [SIGNALS],
            lambda x, length=length, step=step: _framed(x, length, step, 2),
            [0],
            tensorflow=lambda tf, x, length=length, step=step: tf.signal.frame(
                x, length, step, pad_end=True, pad_value=tf.constant(2, tf.as_dtype(x.dtype))
            ),
            note=f"padded-{length}-{step}",
        )
        for length, step in ((4, 3), (3, 5), (14, 2))
    ),
    _framing(
        {"frame_length": 12, "frame_step": 1}, lambda x: _framed(x, 12, 1), "none", twice=False
    ),
    Case(
        "Frame",
        lambda x, length: framing.frame_op(x, length, frame_step=3),
        [SIGNALS, np.int32(4)],
        lambda x, length: _framed(x, int(length), 3),
        [0],
        fixed=[1],
        empty=[SIGNALS[:0], np.int32(4)],
        note="fed",
    ),
    # The axis needs a rank, which not all checks give.
    Case(
        "Transpose",
        lambda x: framing.frame(ensure_shape(x, [None, None]), 2, 1, axis=0),
        [SIGNALS.T],
        lambda x: np.moveaxis(_framed(x.T, 2, 1), 0, 2),
        tensorflow=lambda tf, x: tf.signal.frame(x, 2, 1, axis=0),
        only=[float64],
        note="frame",
    ),
    *(
        Case(
            "OverlapAndAdd",
            lambda x, step=step: framing.overlap_and_add(x, step),
            [FRAMES],
            lambda x, step=step: _added(x, step),
            [0],
            empty=[FRAMES[:, :0]],
            tensorflow=lambda tf, x, step=step: tf.signal.overlap_and_add(x, step),
            note=str(step),
        )
        for step in (1, 2, 5, 7)
    ),
    Case(
        "OverlapAndAdd",
        lambda x, samples: framing.overlap_and_add_op(x, samples, frame_step=3),
        [FRAMES, np.int32(13)],
        lambda x, samples: _added(x, 3, int(samples)),
        [0],
        fixed=[1],
        note="more",
    ),
    Case(
        "RFFT",
        lambda x: short_time.stft(x, 6, 4),
        [MANY],
        lambda x: _stft(x, 6, 4, 8, _hann(6)),
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.stft(x, 6, 4),
        note="stft",
    ),
    Case(
        "RFFT",
        lambda x: short_time.stft(x, 7, 3, fft_length=9, window_fn=window_functions.hamming_window),
        [MANY],
        lambda x: _stft(x, 7, 3, 9, 0.08 + 0.92 * _hann(7)),
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.stft(
            x, 7, 3, fft_length=9, window_fn=tf.signal.hamming_window
        ),
        note="stft-hamming",
    ),
    *(
        Case(
            "OverlapAndAdd",
            lambda x, y, length=length, n=n: short_time.inverse_stft(
                ensure_shape(x + y, [None, None, 5]), length, 4, n
            ),
            [SPECTRA, SPECTRA[::-1]],
            lambda x, y, length=length, n=n: _istft(x + y, length, 4, n or 8, _hann(length)),
            only=[complex128],
            tolerance=64,
            tensorflow=lambda tf, x, y, length=length, n=n: tf.signal.inverse_stft(
                x + y, length, 4, n
            ),
            note=f"inverse_stft-{length}-{n}",
        )
        for length, n in ((6, None), (8, None), (10, 8), (7, 9))
    ),
    Case(
        "DCT",
        lambda x: short_time.mdct(x, 16),
        [MANY],
        lambda x: _mdct(x, 16, _vorbis(16)),
        [0],
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.mdct(x, 16),
        note="mdct",
    ),
    Case(
        "DCT",
        lambda x: short_time.mdct(x, 8, None, norm="ortho"),
        [MANY],
        lambda x: _mdct(x, 8, np.full(8, np.sqrt(0.5))) / np.sqrt(8),
        [0],
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.mdct(x, 8, None, norm="ortho"),
        note="mdct-ortho",
    ),
    Case(
        "OverlapAndAdd",
        lambda x: short_time.inverse_mdct(ensure_shape(x, [None, None, 4])),
        [FRAMES[..., :4]],
        lambda x: _inverse_mdct(x, _vorbis(8)),
        [0],
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.inverse_mdct(x),
        note="inverse_mdct",
    ),
    Case(
        "OverlapAndAdd",
        lambda x: short_time.inverse_mdct(ensure_shape(x, [None, None, 4]), None, "ortho"),
        [FRAMES[..., :4]],
        lambda x: _inverse_mdct(x, np.full(8, np.sqrt(0.5))) * np.sqrt(8),
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.inverse_mdct(x, None, "ortho"),
        note="inverse_mdct-ortho",
    ),
    *(
        Case(
            "Mul",
            lambda x, n=n, make=make, how=how: x * make(n, dtype=x.dtype, **how),
            [np.ones(n)],
            lambda x, n=n, mean=mean, period=period: (
                mean - (1 - mean) * np.cos(2 * np.pi * np.arange(n) / period)
            ),
            only=[float64],
            tensorflow=lambda tf, x, n=n, make=make, how=how: getattr(tf.signal, make.__name__)(
                n, dtype=tf.float64, **how
            ),
            note=f"{make.__name__}-{n}-{period}",
        )
        for make, mean in (
            (window_functions.hann_window, 0.5),
            (window_functions.hamming_window, 0.54),
        )
        for n, how, period in ((8, {}, 8), (7, {}, 6), (8, {"periodic": False}, 7))
    ),
    *(
        Case(
            "Mul",
            lambda x, n=n: x * window_functions.vorbis_window(n, dtype=x.dtype),
            [np.ones(n)],
            lambda x, n=n: _vorbis(n),
            only=[float64],
            tensorflow=lambda tf, x, n=n: tf.signal.vorbis_window(n, dtype=tf.float64),
            note=f"vorbis_window-{n}",
        )
        for n in (1, 8)
    ),
    Case(
        "MatMul",
        lambda x: matrix_products.matmul(x, mel.linear_to_mel_weight_matrix(6, 11, dtype=x.dtype)),
        [SIGNALS],
        lambda x: _mel(x),
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.matmul(
            x, tf.signal.linear_to_mel_weight_matrix(6, 11, dtype=tf.float64)
        ),
        note="mel",
    ),
    Case(
        "DCT",
        lambda x: mel.mfccs_from_log_mel_spectrograms(ensure_shape(x, [2, 11])),
        [SIGNALS],
        lambda x: (
            (2 * x @ np.cos(np.pi / 11 * np.outer(np.arange(11) + 0.5, np.arange(11))))
            / np.sqrt(22)
        ),
        [0],
        only=[float64],
        tolerance=64,
        tensorflow=lambda tf, x: tf.signal.mfccs_from_log_mel_spectrograms(x),
        note="mfcc",
    ),
    *(
        Case(
            "Roll",
            lambda x, make=make, axes=axes: make(ensure_shape(x, [None, None]), axes),
            [RANDOM.normal(size=(3, 4))],
            lambda x, make=make, axes=axes: getattr(np.fft, make.__name__)(x, axes),
            only=[float64],
            tensorflow=lambda tf, x, make=make, axes=axes: getattr(tf.signal, make.__name__)(
                x, axes
            ),
            note=f"{make.__name__}-{axes}",
        )
        for make in (shifting.fftshift, shifting.ifftshift)
        for axes in (None, -2, (0, 1))
    ),
]
