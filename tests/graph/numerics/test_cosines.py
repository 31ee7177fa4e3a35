"""Cosine transforms by Fourier transforms are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.devices.simulated import Simulated
from flowbook.graph.numerics.cosines import cosine_transform

TRANSFORMS = [(1, None), *((kind, norm) for kind in (2, 3, 4) for norm in (None, "ortho"))]


@pytest.mark.parametrize(("kind", "norm"), TRANSFORMS)
@given(
    length=st.integers(2, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
)
def test_they_are_scipys(kind: int, norm: str | None, length: int, dtype: type, seed: int) -> None:
    signals = np.random.default_rng(seed).normal(size=(2, length)).astype(dtype)
    device = Simulated()
    found = device.fetch(cosine_transform(device.xp, device.own(signals), kind, norm))
    assert found.dtype == dtype
    wanted = scipy.fft.dct(signals.astype(np.float64), kind, norm=norm)
    tolerance = 40 * np.finfo(dtype).eps * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)
