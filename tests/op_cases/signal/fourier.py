"""Fourier transforms. References are sums over all frequencies, written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import COMPLEX, complex64, complex128, float32, float64
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.signal import cosines, fourier
from tests.op_cases.case import Array, Case

SIGNAL = (np.arange(48.0) * 7 % 11 - 5.0).reshape(2, 2, 3, 4) / 4
REAL_OF = {complex64: float32, complex128: float64}
COMPLEX_OF = {real: complex for complex, real in REAL_OF.items()}
WAVES = SIGNAL + 1j * SIGNAL[::-1, ::-1]


def _transform(x: Array, count: int, sign: int) -> Array:
    """The sums over the last dimensions, by matrices of roots of unity."""
    for axis in range(-count, 0):
        n = x.shape[axis]
        k = np.arange(n)
        roots = np.exp(sign * 2j * np.pi * (np.outer(k, k) % max(n, 1)) / max(n, 1))
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ roots, -1, axis)
    return x


def _inverse(x: Array, count: int) -> Array:
    return _transform(x, count, 1) / max(int(np.prod(x.shape[-count:])), 1)


def _forward(count: int) -> Callable[[Array], Array]:
    return lambda x: _transform(x, count, -1)


def _backward(count: int) -> Callable[[Array], Array]:
    return lambda x: _inverse(x, count)


def _adjoint_of_spectrum(dy: Array, n: int) -> Array:
    """The gradient of a spectrum of real signals with n elements, by its definition."""
    k, j = np.arange(n // 2 + 1), np.arange(n)
    return (dy @ np.exp(2j * np.pi * np.outer(k, j) / n)).real


def _adjoint_of_signal(dy: Array, n: int) -> Array:
    """The gradient of real signals with n elements, by its definition."""
    k, j = np.arange(n // 2 + 1), np.arange(n)
    weights = np.where((k == 0) | (2 * k == n), 1.0, 2.0) / n
    return (dy @ np.exp(-2j * np.pi * np.outer(j, k) / n)) * weights


def _fitted(x: Array, lengths: Any) -> Array:
    for axis, n in zip(range(-len(lengths), 0), lengths, strict=True):
        x = np.moveaxis(x, axis, 0)[:n]
        x = np.concatenate([x, np.zeros((n - len(x), *x.shape[1:]))])
        x = np.moveaxis(x, 0, axis)
    return x


def _spectrum(x: Array, lengths: Any) -> Array:
    whole = _transform(_fitted(x, lengths), len(lengths), -1)
    return whole[..., : lengths[-1] // 2 + 1]


def _signal(x: Array, lengths: Any) -> Array:
    """The real part of the sum over the frequencies kept, those that stand for two twice."""
    n = lengths[-1]
    x = _fitted(x, (*lengths[:-1], n // 2 + 1))
    if len(lengths) > 1:
        inner = np.moveaxis(x, -1, -len(lengths))
        x = np.moveaxis(_inverse(inner, len(lengths) - 1), -len(lengths), -1)
    k, j = np.arange(n // 2 + 1), np.arange(n)
    weights = np.where((k == 0) | (2 * k == n), 1.0, 2.0)
    return ((x * weights) @ np.exp(2j * np.pi * np.outer(k, j) / n)).real / n


def _parts(x: Tensor) -> list[Tensor]:
    """A complex tensor, and its real and imaginary parts to differentiate."""
    real = REAL_OF[x.dtype]
    return [x, cast(x, real), cast(x * -1j, real)]


def _cosine_matrix(type: int, n: int) -> Array:
    """Each type's sum, as a matrix [k, j]."""
    k, j = np.arange(n)[:, None], np.arange(n)
    if type == 1:
        inner = np.where((j == 0) | (j == n - 1), 1.0, 2.0)
        return inner * np.cos(np.pi * k * j / max(n - 1, 1))
    if type == 2:
        return 2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))
    if type == 3:
        return np.where(j == 0, 1.0, 2.0) * np.cos(np.pi * j * (2 * k + 1) / (2 * n))
    return 2 * np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n))


def _orthogonal(type: int, n: int) -> Array:
    matrix = _cosine_matrix(type, n)
    if type == 3:
        return _orthogonal(2, n).T
    return matrix / np.sqrt((matrix**2).sum(1, keepdims=True))


def _cosine_case(type: int, norm: str | None) -> Case:
    return Case(
        "DCT",
        lambda x: cosines.dct(x, type, norm=norm),
        [SIGNAL[0]],
        lambda x: x @ (_orthogonal if norm else _cosine_matrix)(type, x.shape[-1]).T,
        [0],
        empty=[np.zeros((0, 3))],
        tolerance=16,
        note=f"{type}{norm or ''}",
    )


def _signal_gradient(dy: Tensor, shape: Tensor, n: int) -> list[Tensor]:
    found = fourier.irfft_gradient_op(dy, shape, fft_length=(n,), Tout=COMPLEX_OF[dy.dtype])
    return _parts(found)


def _real_case(function: Any, lengths: Any, given: bool, **options: Any) -> Case:
    fft_length = lengths if given else None
    return Case(
        "RFFT",
        lambda x: _parts(function(x, fft_length)),
        [SIGNAL],
        lambda x: (y := _spectrum(x, lengths), y.real, y.imag),
        [0],
        tolerance=64,
        note=f"{len(lengths)}-{lengths if given else ''}",
        **options,
    )


def _half_case(function: Any, lengths: Any, given: bool, tensorflow: Any = None) -> Case:
    fft_length = lengths if given else None
    return Case(
        "IRFFT",
        lambda x: function(x, fft_length),
        [WAVES],
        lambda x: _signal(x, lengths),
        empty=[np.zeros((0, 2, 3, 4))],
        only=COMPLEX[:1] if tensorflow else COMPLEX,
        tolerance=64,
        note=f"{len(lengths)}-{lengths if given else ''}{'-single' if tensorflow else ''}",
        tensorflow=tensorflow and (lambda tf, x: tensorflow(tf)(x, fft_length)),
    )


CASES = [
    *(
        Case(
            type,
            function,
            [WAVES],
            reference,
            only=only,
            empty=[np.zeros((2, 0, 3, 4))],
            tolerance=64,
            note=note,
            tensorflow=tensorflow if note else None,
        )
        for type, function, reference, tensorflow in (
            ("FFT", fourier.fft, _forward(1), lambda tf, x: tf.signal.fft(x)),
            ("IFFT", fourier.ifft, _backward(1), lambda tf, x: tf.signal.ifft(x)),
            ("FFT2D", fourier.fft2d, _forward(2), lambda tf, x: tf.signal.fft2d(x)),
            ("IFFT2D", fourier.ifft2d, _backward(2), lambda tf, x: tf.signal.ifft2d(x)),
            ("FFT3D", fourier.fft3d, _forward(3), lambda tf, x: tf.signal.fft3d(x)),
            ("IFFT3D", fourier.ifft3d, _backward(3), lambda tf, x: tf.signal.ifft3d(x)),
        )
        # TensorFlow computes most transforms of doubles in single precision.
        for note, only in (("", COMPLEX), ("single", COMPLEX[:1]))
    ),
    *(
        Case(
            type,
            lambda x, function=function, norm=norm: function(x, norm=norm),
            [WAVES],
            lambda x, count=count, sign=sign, power=power: (
                _transform(x, count, sign) / np.prod(x.shape[-count:]) ** power
            ),
            only=COMPLEX,
            tolerance=64,
            note=norm,
        )
        for type, function, count, sign, powers in (
            ("FFT2D", fourier.fft2d, 2, -1, {"forward": 1, "ortho": 0.5}),
            ("IFFT", fourier.ifft, 1, 1, {"forward": 0, "ortho": 0.5}),
        )
        for norm, power in powers.items()
    ),
    _real_case(fourier.rfft, (4,), False, empty=[np.zeros((2, 0, 4))]),
    _real_case(fourier.rfft, (3,), True),
    _real_case(fourier.rfft, (7,), True),
    _real_case(fourier.rfft2d, (3, 4), False),
    _real_case(fourier.rfft2d, (4, 3), True),
    _real_case(fourier.rfft3d, (2, 3, 4), False),
    _real_case(fourier.rfft3d, (3, 2, 5), True),
    Case(
        "RFFT",
        fourier.rfft2d,
        [SIGNAL],
        lambda x: _spectrum(x, (3, 4)),
        only=[float32],
        tolerance=64,
        note="single",
        tensorflow=lambda tf, x: tf.signal.rfft2d(x),
    ),
    *(
        _half_case(function, lengths, given, tensorflow)
        for function, lengths, given, public in (
            (fourier.irfft, (6,), False, lambda tf: tf.signal.irfft),
            (fourier.irfft, (7,), True, lambda tf: tf.signal.irfft),
            (fourier.irfft, (4,), True, lambda tf: tf.signal.irfft),
            (fourier.irfft2d, (3, 6), False, lambda tf: tf.signal.irfft2d),
            (fourier.irfft2d, (4, 5), True, lambda tf: tf.signal.irfft2d),
            (fourier.irfft3d, (2, 3, 6), False, lambda tf: tf.signal.irfft3d),
        )
        for tensorflow in (None, public)
    ),
    *(
        Case(
            "RFFTGrad",
            lambda dy, shape: fourier.rfft_gradient_op(dy, shape, Tout=REAL_OF[dy.dtype]),
            [WAVES[0, 0], np.array([3, n])],
            lambda dy, shape, n=n: _adjoint_of_spectrum(dy, n),
            fixed=[1],
            only=COMPLEX,
            tolerance=64,
            note=str(n),
        )
        for n in (6, 7)
    ),
    *(
        Case(
            "IRFFTGrad",
            lambda dy, shape, n=n: _parts(
                fourier.irfft_gradient_op(dy, shape, fft_length=(n,), Tout=COMPLEX_OF[dy.dtype])
            ),
            [SIGNAL[0, 0][:, :n], np.array([3, n // 2 + 1])],
            lambda dy, shape, n=n: (y := _adjoint_of_signal(dy, n), y.real, y.imag),
            [0],
            fixed=[1],
            tolerance=64,
            note=str(n),
        )
        for n in (3, 4)
    ),
    *(_cosine_case(type, norm) for type in (2, 3, 4) for norm in (None, "ortho")),
    _cosine_case(1, None),
    Case(
        "DCT",
        lambda x: [cosines.idct(x, norm="ortho"), cosines.idct(x), cosines.idct(x, 3)],
        [SIGNAL[0]],
        lambda x: (
            x @ _orthogonal(2, 4),
            x @ np.linalg.inv(_cosine_matrix(2, 4)).T * 8,
            x @ np.linalg.inv(_cosine_matrix(3, 4)).T * 8,
        ),
        [0],
        only=[float32, float64],
        tolerance=16,
        note="inverse",
    ),
    Case(
        "DCT",
        lambda x: [cosines.idct(x, norm="ortho"), cosines.dct(x), cosines.dct(x, 1)],
        [SIGNAL[0]],
        lambda x: (
            x @ _orthogonal(2, 4),
            x @ _cosine_matrix(2, 4).T,
            x @ _cosine_matrix(1, 4).T,
        ),
        only=[float32],
        tolerance=16,
        note="single",
        tensorflow=lambda tf, x: [
            tf.signal.idct(x, norm="ortho"),
            tf.signal.dct(x),
            tf.signal.dct(x, 1),
        ],
    ),
]
