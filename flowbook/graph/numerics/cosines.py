"""Discrete cosine transforms: SciPy's on the host, and by Fourier transforms elsewhere.

Source: Makhoul, "A fast cosine transform in one and two dimensions", 1980.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def cosine_transform(xp: Any, signals: Any, type: int, norm: str | None = None) -> Any:
    """The cosine transforms of signals along the last axis.

    Args:
        xp: NumPy or a module like it.
        signals: [..., n] of float32 or float64; n is at least 1, for type 1 at least 2.
        type: 1, 2, 3 or 4.
        norm: None, or "ortho" for an orthogonal map, not of type 1.

    Returns:
        An array of the signals' shape and dtype.
    """
    if xp is np:
        import scipy.fft

        return scipy.fft.dct(signals, type, norm=norm)
    length = signals.shape[-1]
    found = _TRANSFORMS[type](xp, _scaled(xp, signals, type, norm), length)
    if norm == "ortho":
        found = found * (1 / math.sqrt(2 * length))
        if type == 2:
            found[..., :1] *= 1 / math.sqrt(2)
    return found.astype(signals.dtype, copy=False)


def _scaled(xp: Any, signals: Any, type: int, norm: str | None) -> Any:
    """Signals whose first elements count as much as the orthogonal map wants."""
    if type != 3 or norm != "ortho":
        return signals
    return xp.concatenate([signals[..., :1] * math.sqrt(2), signals[..., 1:]], axis=-1)


def _turns(xp: Any, parts: Any, whole: int, like: Any) -> Any:
    """Complex numbers of magnitude 1 at parts of half a turn, as exact as the signals."""
    angles = np.exp(1j * np.pi * parts / whole)
    return xp.asarray(angles.astype(np.complex64 if like.dtype == np.float32 else np.complex128))


def _first(xp: Any, signals: Any, length: int) -> Any:
    return xp.fft.rfft(xp.concatenate([signals, signals[..., -2:0:-1]], axis=-1)).real


def _second(xp: Any, signals: Any, length: int) -> Any:
    spectrum = xp.fft.rfft(xp.concatenate([signals, signals[..., ::-1]], axis=-1))
    return (spectrum[..., :length] * _turns(xp, -np.arange(length), 2 * length, signals)).real


def _third(xp: Any, signals: Any, length: int) -> Any:
    spectrum = signals * _turns(xp, np.arange(length), 2 * length, signals)
    return xp.fft.irfft(spectrum, 2 * length)[..., :length] * (2 * length)


def _fourth(xp: Any, signals: Any, length: int) -> Any:
    turned = signals * _turns(xp, -np.arange(length), 2 * length, signals)
    spectrum = xp.fft.fft(turned, 2 * length)[..., :length]
    return 2 * (spectrum * _turns(xp, -np.arange(length) - 0.5, 2 * length, signals)).real


_TRANSFORMS = {1: _first, 2: _second, 3: _third, 4: _fourth}
