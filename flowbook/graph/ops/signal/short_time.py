"""Transforms of a signal frame by frame: how its spectrum changes with time; and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.public import public
from flowbook.graph.model.dtypes import DType, complex64, float32, float64
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.repeating import tile
from flowbook.graph.ops.arrays.reversing import reverse
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import concat, split
from flowbook.graph.ops.basis.padding import pad
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.math.no_nan import div_no_nan
from flowbook.graph.ops.signal.cosines import dct
from flowbook.graph.ops.signal.fourier import irfft, rfft
from flowbook.graph.ops.signal.framing import frame, overlap_and_add
from flowbook.graph.ops.signal.window_functions import hann_window, vorbis_window
from flowbook.graph.ops.windows.windows import whole

__all__ = ["inverse_mdct", "inverse_stft", "inverse_stft_window_fn", "mdct", "stft"]

# Called with a length and `dtype=`, it gives weights of that length.
WindowFunction = Callable[..., Any]


def _fft_length(frame_length: Any, given: Any) -> int:
    """The length of a transform: by default the next power of 2."""
    if given is not None:
        return whole("fft_length", given)
    length = whole("frame_length", frame_length)
    if length < 1:
        raise InvalidArgumentError(f"frame_length is at least 1, not {length}")
    return int(1 << (length - 1).bit_length())


@composed
def stft(
    signals: Any,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: WindowFunction | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform: the spectrum of each frame of a signal.

    Args:
        signals: [..., samples], float32 or float64.
        frame_length: how many samples a frame holds, an int.
        frame_step: how many samples one frame is from the next, an int.
        fft_length: how many samples are transformed: frames are cut, or filled up with zeros; by
            default the next power of 2.
        window_fn: what each frame is multiplied by: called with its length and `dtype=`, it gives
            weights. None leaves frames as they are.
        pad_end: fill up the last frames with zeros, where samples are left.

    Returns:
        [..., frames, fft_length // 2 + 1], complex64 or complex128.

    Raises:
        InvalidArgumentError: if the numbers are not positive.

    >>> import flowbook as fb
    >>> fb.signal.stft(fb.zeros([2, 8000]), frame_length=400, frame_step=160).shape
    Shape([2, 48, 257])
    """
    signals = convert_to_tensor(signals)
    length = _fft_length(frame_length, fft_length)
    frames = frame(signals, frame_length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * window_fn(frame_length, dtype=frames.dtype)
    return rfft(frames, [length], name=name)


def inverse_stft_window_fn(
    frame_step: int, forward_window_fn: WindowFunction = hann_window, name: str | None = None
) -> WindowFunction:
    """The window with which `inverse_stft` gives back what `stft` was given.

    Args:
        frame_step: as that of `stft`.
        forward_window_fn: the window of `stft`.
        name: the name scope of what the result builds.

    Returns:
        A function for `inverse_stft`'s `window_fn`: 0 where no window has seen a sample.
    """

    def inverse_window(frame_length: int, dtype: DType = float32) -> Tensor:
        with name_scope(name or "inverse_stft_window_fn"):
            length, step = whole("frame_length", frame_length), whole("frame_step", frame_step)
            if step < 1:
                raise InvalidArgumentError(f"frame_step is at least 1, not {step}")
            window = convert_to_tensor(forward_window_fn(length, dtype=dtype))
            overlaps = -(-length // step)
            squares = pad(window * window, [[0, overlaps * step - length]])
            total = reduce_sum(reshape(squares, [overlaps, step]), 0)
            # Where every window is zero, nothing of the signal is left to be given back.
            return div_no_nan(window, tile(total, [overlaps])[:length])

    return public(inverse_window, "inverse_stft_window_fn")


@composed
def inverse_stft(
    stfts: Any,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: WindowFunction | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal whose frames have given spectra.

    Args:
        stfts: [..., frames, fft_length // 2 + 1], complex64 or complex128.
        frame_length: as for `stft`, and so are frame_step and fft_length.
        frame_step: how many samples one frame is from the next.
        fft_length: how many samples were transformed.
        window_fn: what each frame is multiplied by, or None. The one that undoes `stft` is
            `inverse_stft_window_fn(frame_step)`.

    Returns:
        [..., samples], with `(frames - 1) * frame_step + frame_length` samples. Those at the ends
        that fewer frames hold than others are smaller than they were.

    >>> import numpy as np
    >>> import flowbook as fb
    >>> spectra = fb.signal.stft(np.arange(16.0), 8, 4)
    >>> back = fb.signal.inverse_stft(
    ...     spectra, 8, 4, window_fn=fb.signal.inverse_stft_window_fn(4)
    ... )
    >>> with fb.Session() as sess:
    ...     print(sess.run(back[4:12]).round(6))
    [ 4.  5.  6.  7.  8.  9. 10. 11.]
    """
    stfts = convert_to_tensor(stfts)
    if not stfts.dtype.is_complex:
        raise InvalidTypeError(f"spectra are complex, not {stfts.dtype.name}")
    length, kept = _fft_length(frame_length, fft_length), whole("frame_length", frame_length)
    frames = irfft(stfts, [length])
    if kept > length:
        rank = frames.shape.rank
        if rank is None:
            raise InvalidArgumentError(
                f"the rank of {stfts.name} is not known, and frames are longer than transforms"
            )
        frames = pad(frames, [[0, 0]] * (rank - 1) + [[0, kept - length]])
    frames = frames[..., :kept]
    if window_fn is not None:
        real = float32 if stfts.dtype is complex64 else float64
        frames = frames * window_fn(kept, dtype=real)
    return overlap_and_add(frames, frame_step, name=name)


def _quarters(frame_length: Any) -> int:
    length = whole("frame_length", frame_length)
    if length < 4 or length % 4:
        raise InvalidArgumentError(f"frame_length is a multiple of 4, not {length}")
    return length


@composed
def mdct(
    signals: Any,
    frame_length: int,
    window_fn: WindowFunction | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The modified cosine transform, of frames that overlap by half: as many numbers as samples.

    Args:
        signals: [..., samples], float32 or float64.
        frame_length: how many samples a frame holds, a multiple of 4.
        window_fn: as for `stft`; None multiplies by the root of 1/2. What `inverse_mdct` undoes is
            such that the squares of overlapping halves add up to 1.
        pad_end: fill up the last frame with zeros, where samples are left.
        norm: None, or "ortho" for an orthogonal map.

    Returns:
        [..., frames, frame_length // 2] of the signals' dtype.

    Raises:
        InvalidArgumentError: if the length is no multiple of 4.
    """
    length = _quarters(frame_length)
    frames = frame(convert_to_tensor(signals), length, length // 2, pad_end)
    weights = np.sqrt(0.5) if window_fn is None else window_fn(length, dtype=frames.dtype)
    a, b, c, d = split(frames * weights, 4, -1)
    folded = concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], -1)
    return dct(folded, 4, norm=norm, name=name)


@composed
def inverse_mdct(
    mdcts: Any,
    window_fn: WindowFunction | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The signal whose frames have given modified cosine transforms.

    Args:
        mdcts: [..., frames, frame_length // 2], float32 or float64; the last dimension is known.
        window_fn: as for `mdct`, and so is norm.
        norm: None, or "ortho".

    Returns:
        [..., samples], with `(frames + 1) * (frame_length // 2)` samples. Those of the first and
        the last half frame, which no other frame completes, are not what they were.

    >>> import numpy as np
    >>> import flowbook as fb
    >>> back = fb.signal.inverse_mdct(fb.signal.mdct(np.arange(12.0), 8))
    >>> with fb.Session() as sess:
    ...     print(sess.run(back[4:8]).round(6))
    [4. 5. 6. 7.]
    """
    mdcts = convert_to_tensor(mdcts)
    half = mdcts.shape.dims[-1] if mdcts.shape.dims else None
    if half is None:
        raise InvalidArgumentError(f"how many numbers a frame of {mdcts.name} has is not known")
    length = _quarters(2 * half)
    folded = dct(mdcts, 4, norm=norm)
    a, b = split(folded if norm == "ortho" else folded * (0.5 / half), 2, -1)
    frames = concat([b, -reverse(b, [-1]), -reverse(a, [-1]), -a], -1)
    weights = np.sqrt(0.5) if window_fn is None else window_fn(length, dtype=mdcts.dtype)
    return overlap_and_add(frames * weights, half, name=name)
