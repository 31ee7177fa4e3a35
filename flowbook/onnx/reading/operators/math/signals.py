"""Fourier transforms, and what prepares sounds for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.types import Table


def _complex(node: Node, x: Any) -> Any:
    """Pairs of real and imaginary parts along the last axis, or real numbers, as complex ones."""
    real = x[..., 0]
    imaginary = x[..., 1] if node.size(x, -1) == 2 else fb.zeros_like(real)
    return fb.complex(real, imaginary)


def _pairs(x: Any) -> Any:
    return fb.stack([fb.real(x), fb.imag(x)], axis=-1)


def _of_length(node: Node, x: Any, length: int | None) -> Any:
    """The last axis cut, or filled with zeros, to a length."""
    size = node.size(x, -1)
    if length is None or length == size:
        return x
    if length < size:
        return x[..., :length]
    return fb.pad(x, [[0, 0]] * (node.rank(x) - 1) + [[0, length - size]])


def _dft(node: Node, x: Any, length: Any = None, axis: Any = None) -> Any:
    rank = node.rank(x)
    given = node.get("axis", 1) if node.opset < 20 else node.number(2)
    along = node.axis(-2 if given is None else given, rank)
    wanted = None if length is None else int(node.number(1))
    order = [i for i in range(rank - 1) if i != along] + [along]
    back = [order.index(i) for i in range(rank - 1)]
    data = fb.transpose(_complex(node, x), order)
    if node.get("inverse", 0) and node.get("onesided", 0):
        # Half of the spectrum of real numbers stands for the whole.
        count = 2 * (node.size(data, -1) - 1) if wanted is None else wanted
        half = _of_length(node, data, count // 2 + 1)
        rest = fb.conj(fb.reverse(half[..., 1 : (count + 1) // 2], [rank - 2]))
        found = fb.real(fb.ifft(fb.concat([half, rest], rank - 2)))
        return fb.expand_dims(fb.transpose(found, back), -1)
    data = _of_length(node, data, wanted)
    found = fb.ifft(data) if node.get("inverse", 0) else fb.fft(data)
    if node.get("onesided", 0):
        found = found[..., : node.size(data, -1) // 2 + 1]
    return _pairs(fb.transpose(found, back))


def _stft(node: Node, x: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    hop = int(node.number(1))
    size = int(node.number(3)) if length is not None else node.size(window, 0)
    if x.shape.rank == 2:
        x = fb.expand_dims(x, -1)
    count = (node.size(x, 1) - size) // hop + 1
    node.compute(count * size)
    places = np.arange(count)[:, None] * hop + np.arange(size)[None]
    frames = fb.gather(_complex(node, x), places, axis=1)
    if window is not None:
        frames = frames * fb.complex(window, fb.zeros_like(window))
    found = fb.fft(frames)
    return _pairs(found[..., : size // 2 + 1] if node.get("onesided", 1) else found)


def _mel_weights(node: Node, *_: Any) -> Any:
    bins, length, rate, low, high = (node.number(i) for i in range(5))
    spectrum = length // 2 + 1
    node.compute(spectrum * bins)

    def mel(hertz: Any) -> Any:
        return 2595 * np.log10(1 + hertz / 700)

    edges = np.linspace(mel(low), mel(high), bins + 2, endpoint=False)
    edges = 700 * (10 ** (edges / 2595) - 1)
    edges = ((length + 1) * edges // rate).astype(np.int64)
    weights = np.zeros((spectrum, bins))
    for i in range(bins):
        first, centre, last = edges[i : i + 3]
        if centre == first:
            weights[centre, i] = 1
        else:
            rising = np.arange(first, centre + 1)
            weights[rising, i] = (rising - first) / (centre - first)
        if last > centre:
            falling = np.arange(centre, last)
            weights[falling, i] = (last - falling) / (last - centre)
    return fb.constant(weights.astype(node.dtype("output_datatype").numpy))


TABLE: Table = {"DFT": _dft, "MelWeightMatrix": _mel_weights, "STFT": _stft}
