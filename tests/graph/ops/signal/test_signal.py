"""Signals: there and back, slopes through spectra, and what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError
RANDOM = np.random.default_rng(4)


@pytest.mark.parametrize(("length", "step"), [(16, 4), (16, 8), (15, 4), (12, 5), (4, 4)])
@pytest.mark.parametrize("window", [fb.signal.hamming_window, fb.signal.vorbis_window])
def test_short_time_transforms_there_and_back(length: int, step: int, window: Any) -> None:
    signals = RANDOM.normal(size=(3, 100))
    spectra = fb.signal.stft(signals, length, step, window_fn=window)
    undo = fb.signal.inverse_stft_window_fn(step, window)
    back = evaluate(fb.signal.inverse_stft(spectra, length, step, window_fn=undo))
    whole = slice(length - step, back.shape[-1] - length + step)
    assert back[:, whole].size
    np.testing.assert_allclose(back[:, whole], signals[:, whole], atol=1e-12)


def test_samples_that_no_window_has_seen_are_zero() -> None:
    # Frames beside one another: what the window's zero falls on is lost, and nothing else.
    signals = RANDOM.normal(size=24)
    spectra = fb.signal.stft(signals, 8, 8)
    undo = fb.signal.inverse_stft_window_fn(8)
    back = evaluate(fb.signal.inverse_stft(spectra, 8, 8, window_fn=undo))
    signals[::8] = 0.0
    np.testing.assert_allclose(back, signals, atol=1e-12)


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("window", [fb.signal.vorbis_window, None])
def test_modified_cosine_transforms_there_and_back(window: Any, norm: str | None) -> None:
    signals = RANDOM.normal(size=(3, 64))
    padded = fb.pad(signals, [[0, 0], [8, 8]])
    there = fb.signal.mdct(padded, 16, window, pad_end=True, norm=norm)
    back = evaluate(fb.signal.inverse_mdct(there, window, norm))
    np.testing.assert_allclose(back[:, 8:72], signals, atol=1e-12)


def test_slopes_through_the_spectrum_of_frames() -> None:
    x = fb.placeholder(fb.float64, [30])
    loss = fb.reduce_sum(fb.abs(fb.signal.stft(x, 8, 3, pad_end=True)) ** 2)
    [slope] = fb.gradients(loss, x)
    at = RANDOM.normal(size=30)
    found = evaluate(slope, {x: at})
    for k in range(30):
        step = 1e-6 * (np.arange(30) == k)
        ends = [evaluate(loss, {x: at + sign * step}) for sign in (1, -1)]
        assert found[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-6)


def test_a_model_of_speech_knows_its_shapes() -> None:
    signals = fb.placeholder(fb.float32, [None, None])
    spectra = fb.abs(fb.signal.stft(signals, 400, 160, pad_end=True))
    bands = spectra @ fb.signal.linear_to_mel_weight_matrix(40, 257, 16000, 80.0, 7600.0)
    cepstra = fb.signal.mfccs_from_log_mel_spectrograms(fb.log(bands + 1e-6))[..., :13]
    assert cepstra.shape == [None, None, 13]
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run(cepstra, {signals: np.ones((2, 1000))}).shape == (2, 7, 13)


REFUSED = {
    "length": (lambda x: fb.signal.frame(x, 0, 1), "frame_length is at least 1, not 0"),
    "fraction": (lambda x: fb.signal.frame(x, 2, 1.5), "frame_step is fixed .* not 1.5"),
    "scalar": (lambda x: fb.signal.frame(1.0, 2, 1), r"\[..., samples\]"),
    "axis": (lambda x: fb.signal.frame(x, 2, 1, axis=3), "axis 3 is out of range"),
    "rank": (
        lambda x: fb.signal.frame(fb.placeholder(fb.float32, name="u"), 2, 1, pad_end=True),
        "the rank of u:0 is not known",
    ),
    "frames": (lambda x: fb.signal.overlap_and_add(x, 1), r"\[..., frames, frame_length\]"),
    "real spectra": (lambda x: fb.signal.inverse_stft(x, 4, 2), "spectra are complex"),
    "quarters": (lambda x: fb.signal.mdct(x, 10), "a multiple of 4, not 10"),
    "window": (lambda x: fb.signal.hann_window(0), "at least 1, not 0"),
    "dtype": (lambda x: fb.signal.hann_window(4, dtype=fb.int32), "floating-point dtype"),
    "bands": (
        lambda x: fb.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0),
        "0 <= 125.0 < 5000.0 <= 8000.0 / 2",
    ),
    "shift": (lambda x: fb.signal.fftshift(x, 1), "axis 1 is out of range"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(call: Any, message: str) -> None:
    x = fb.placeholder(fb.float32, [8])
    with pytest.raises(Error, match=message) as caught:
        call(x)
    assert "test_signal.py, line" in str(caught.value)


def test_runs_refuse_frames_that_do_not_fit() -> None:
    frames = fb.placeholder(fb.float32, [None, None])
    total = fb.signal.overlap_and_add(frames, 2)
    with fb.Session() as sess:
        assert sess.run(total, {frames: np.ones((2, 3))}).tolist() == [1, 1, 2, 1, 1]
        assert sess.run(total, {frames: np.ones((0, 3))}).tolist() == []
        samples = total.op.inputs[1]
        with pytest.raises(Error, match="2 frames of 3 at steps of 2 do not fit 4 samples"):
            sess.run(total, {frames: np.ones((2, 3)), samples: 4})
