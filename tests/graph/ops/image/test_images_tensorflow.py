"""The image functions give what TensorFlow's do, by values recorded from TensorFlow."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate
from tests.record_images import CROP_SEEDS, CROPS, FILES, PROGRAMS, crop_digest
from tests.record_tensorflow import RECORDED, digest


@cache
def recording() -> dict[str, np.ndarray]:
    with np.load(RECORDED / "images.npz") as file:
        return dict(file)


def recorded(name: str, pixels: np.ndarray) -> np.ndarray:
    assert recording()[f"{name}/digest"] == digest([pixels]), (
        "the pixels are not those of the recording; run tests/record_images.py"
    )
    return recording()[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    pixels, program = PROGRAMS[name]
    wanted = recorded(name, pixels)
    found = evaluate(program(fb.image, fb.constant(pixels)))
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", FILES)
def test_files_that_tensorflow_wrote(name: str) -> None:
    pixels, _, decode = FILES[name]
    wanted = recorded(name, pixels)
    found = evaluate(decode(fb.image, fb.constant(recording()[f"{name}/file"].tobytes())))
    assert found.dtype == wanted.dtype
    near(found, wanted, name)


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_same_pixels(name: str) -> None:
    pixels, encode, decode = FILES[name]
    wanted = recorded(name, pixels)
    contents = encode(fb.image, fb.constant(pixels))
    near(evaluate(decode(fb.image, contents)), wanted, name)
    if name.startswith("jpeg"):  # The same quality makes about the same size.
        size = recording()[f"{name}/file"].size
        assert abs(len(evaluate(contents).item()) - size) < 0.05 * size


@pytest.mark.parametrize("name", CROPS)
def test_random_parts(name: str) -> None:
    assert recording()[f"{name}/digest"] == crop_digest(name)
    objects, size, how = CROPS[name]
    fb.set_random_seed(87654321)
    parts = [
        fb.image.sample_distorted_bounding_box(size, [objects], seed, **how) for seed in CROP_SEEDS
    ]
    with fb.Session() as sess:
        found = sess.run(parts)
    for port in range(3):
        values = np.stack([part[port] for part in found])
        np.testing.assert_allclose(values, recording()[f"{name}/{port}"], rtol=1e-6)


def near(found: np.ndarray, wanted: np.ndarray, name: str) -> None:
    """PNG loses nothing. TensorFlow takes the faster and coarser of libjpeg's transforms."""
    assert found.shape == wanted.shape
    apart = np.abs(found.astype(float) - wanted)
    if name == "png as grey":  # It cuts off what Pillow rounds.
        assert apart.max() <= 1
    elif name.startswith("png"):
        assert not apart.any()
    else:
        assert apart.max() <= 6
        assert apart.mean() < 1.5
