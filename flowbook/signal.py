"""Signals: frames, windows, and transforms frame by frame. Names are those of TensorFlow 1.

Transforms of whole signals are `fb.fft` and its like.
"""

from flowbook._renamed import no_such_name_in
from flowbook.graph.ops.signal.framing import frame, overlap_and_add
from flowbook.graph.ops.signal.mel import (
    linear_to_mel_weight_matrix,
    mfccs_from_log_mel_spectrograms,
)
from flowbook.graph.ops.signal.shifting import fftshift, ifftshift
from flowbook.graph.ops.signal.short_time import (
    inverse_mdct,
    inverse_stft,
    inverse_stft_window_fn,
    mdct,
    stft,
)
from flowbook.graph.ops.signal.window_functions import hamming_window, hann_window, vorbis_window

__all__ = [
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "ifftshift",
    "inverse_mdct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "linear_to_mel_weight_matrix",
    "mdct",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
    "vorbis_window",
]

__getattr__ = no_such_name_in(__name__)
