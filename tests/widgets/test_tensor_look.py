"""What is shown of a value: right, and bounded, whatever the value is."""

from __future__ import annotations

import io
import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from flowbook.graph.model.dtypes import MOVABLE
from flowbook.widgets.tensor_look import LARGEST_SIDE, MOST_BINS, look


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_statistics() -> None:
    value = np.array([-1.0, 0.0, 3.0, np.nan, np.inf, -np.inf], np.float32)
    shown, _ = look(value)
    assert (shown["dtype"], shown["shape"], shown["bytes"]) == ("float32", [6], 24)
    assert shown["text"] == "[-1.0 0.0 3.0 nan inf -inf]"
    assert dict(map(tuple, shown["statistics"])) == {
        "min": "-1",
        "max": "3",
        "mean": "0.66667",
        "std": "1.6997",
        "zeros": "1 (16.7 %)",
        "NaN": "1 (16.7 %)",
        "Inf": "2 (33.3 %)",
    }
    histogram = shown["histogram"]
    assert sum(histogram["counts"]) == 3
    assert (histogram["edges"][0], histogram["edges"][-1]) == (-1.0, 3.0)


def test_scalars_and_strings_are_text() -> None:
    assert look(np.float32(0.5))[0] == {
        "dtype": "float32",
        "shape": [],
        "bytes": 4,
        "text": "0.5",
    }
    shown, pictures = look(b"<b>\xff" + b"a" * 1_000_000)
    assert (shown["dtype"], shown["bytes"], pictures) == ("string", 1_000_004, [])
    assert shown["text"].startswith("<b>\\xffaaa")
    assert len(shown["text"]) < 300
    shown, _ = look(np.asarray([b"line"] * 30, object))
    assert shown["text"].endswith("line\nand 10 more")


def test_integers_have_a_bar_each() -> None:
    shown, _ = look(np.array([3, 3, 5], np.int64))
    assert shown["histogram"] == {
        "edges": [2.5, 3.5, 4.5, 5.5],
        "counts": [2, 0, 1],
        "of": "values",
    }
    extremes = np.array([-(2**63), 2**63 - 1], np.int64)
    shown, _ = look(extremes)
    assert dict(map(tuple, shown["statistics"]))["min"] == str(-(2**63))
    assert sum(shown["histogram"]["counts"]) == 2


def test_one_value_has_one_bin() -> None:
    shown, _ = look(np.full(7, 0.5))
    assert shown["histogram"] == {"edges": [0.5, 0.5], "counts": [7], "of": "values"}


def test_the_largest_numbers_do_not_overflow() -> None:
    big = np.finfo(np.float64).max
    shown, _ = look(np.array([-big, big, big]))
    assert sum(shown["histogram"]["counts"]) == 3
    assert "inf" not in json.dumps(shown).lower().replace('"inf"', "")


def test_complex_numbers_show_their_magnitudes() -> None:
    shown, _ = look(np.array([3 + 4j, 0]))
    assert dict(map(tuple, shown["statistics"]))["max"] == "5"
    assert shown["histogram"]["of"] == "magnitudes"


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ((28, 28), 1),
        ((28, 28, 1), 1),
        ((28, 28, 3), 1),
        ((28, 28, 4), 1),
        ((9, 28, 28, 3), 4),
        ((9, 28, 28), 4),
        ((784,), 0),
        ((2, 100), 0),
        ((5, 5, 3, 64), 0),
        ((0, 28, 28, 3), 0),
        ((6, 97), 0),
    ],
)
def test_what_looks_like_a_picture(shape: tuple[int, ...], count: int) -> None:
    shown, pictures = look(np.linspace(0.0, 1.0, int(np.prod(shape))).reshape(shape))
    assert len(pictures) == len(shown.get("pictures", [])) == count
    assert all(pixels(png).shape[:2] == (28, 28) for png in pictures)


def test_pictures_keep_their_values() -> None:
    value = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    shown, [png] = look(value)
    assert shown["scale"] == ["0", "255"]
    np.testing.assert_array_equal(pixels(png), value)
    shown, [png] = look(np.linspace(-3.0, 5.0, 64).reshape(8, 8))
    assert shown["scale"] == ["-3", "5"]
    assert (pixels(png).min(), pixels(png).max()) == (0, 255)
    colours = np.zeros((8, 8, 3), np.uint8)
    colours[0, 0] = 1, 2, 200
    np.testing.assert_array_equal(pixels(look(colours)[1][0]), colours)
    broken = np.zeros((8, 8))
    broken[2, 3] = np.nan
    broken[4, 4] = 1.0
    [png] = look(broken)[1]
    assert pixels(png)[2, 3].tolist() == [214, 51, 132]
    assert pixels(png)[4, 4].tolist() == [255, 255, 255]


def test_large_pictures_are_made_smaller() -> None:
    value = np.zeros((2000, 1000))
    value[:, 500:] = 1.0
    shown, [png] = look(value)
    small = pixels(png)
    assert shown["pictures"] == [[125, 250]]
    assert max(small.shape) <= LARGEST_SIDE
    assert (small[:, 0] == 0).all()
    assert (small[:, -1] == 255).all()


@pytest.mark.parametrize("dtype", MOVABLE, ids=str)
def test_every_dtype_is_shown(dtype: Any) -> None:
    value: Any = np.ones((8, 8)).astype(dtype.numpy)
    if dtype.name == "string":
        value[:] = b"one"
    shown, _ = look(value)
    assert shown["dtype"] == dtype.name
    json.dumps(shown, allow_nan=False)


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
    )
)
def test_it_agrees_with_numpy_and_is_bounded(value: Any) -> None:
    shown, pictures = look(value)
    json.dumps(shown, allow_nan=False)
    wide = value.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if "histogram" in shown:
        histogram = shown["histogram"]
        assert sum(histogram["counts"]) == finite.size
        assert len(histogram["counts"]) <= MOST_BINS
    # Rounded up, the largest numbers of all could not be read again.
    if "statistics" in shown and finite.size and np.abs(finite).max() < 1e308:
        told = dict(map(tuple, shown["statistics"]))
        assert float(told["min"]) == pytest.approx(finite.min(), rel=1e-4)
        assert float(told["max"]) == pytest.approx(finite.max(), rel=1e-4)
        with np.errstate(all="ignore"):
            mean = finite.mean()
        if np.isfinite(mean):
            largest = np.abs(finite).max()
            assert float(told["mean"]) == pytest.approx(mean, rel=1e-4, abs=1e-9 * largest)
    assert len(pictures) == len(shown.get("pictures", []))


def test_short_floats_are_widened() -> None:
    shown, _ = look(np.full(1000, 300.0, ml_dtypes.bfloat16))
    assert dict(map(tuple, shown["statistics"]))["mean"] == "300"
