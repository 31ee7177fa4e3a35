"""Fractional pools: where windows lie, their means, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError
IMAGES = np.random.default_rng(0).normal(size=(2, 13, 20, 3))
RATIO = [1.0, 1.5, 2.3, 1.0]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("pseudo_random", [True, False])
@pytest.mark.parametrize("kind", [fb.nn.fractional_max_pool, fb.nn.fractional_avg_pool])
def test_windows_cover_all_and_differ_by_one(kind: Any, pseudo_random: bool, known: bool) -> None:
    x = fb.placeholder(fb.float64, IMAGES.shape if known else None)
    pool = kind(x, RATIO, pseudo_random)
    if known:
        assert pool.output.shape == [2, 8, 8, 3]
    seen = set()
    with fb.Session() as sess:
        for _ in range(12):
            found = sess.run(pool, {x: IMAGES})
            assert found.output.shape == (2, 8, 8, 3)
            for places, length in (
                (found.row_pooling_sequence, 13),
                (found.col_pooling_sequence, 20),
            ):
                assert (places[0], places[-1]) == (0, length)
                assert {*np.diff(places).tolist()} <= {length // 8, length // 8 + 1}
            seen.add(found.row_pooling_sequence.tobytes())
    assert len(seen) > 1


@pytest.mark.parametrize("overlapping", [False, True])
def test_maxima_and_means_of_the_windows(overlapping: bool) -> None:
    largest = fb.nn.fractional_max_pool(IMAGES, RATIO, False, overlapping, seed=1)
    mean = fb.nn.fractional_avg_pool(IMAGES, RATIO, False, overlapping, seed=1)
    with fb.Session() as sess:
        for pool, reduced in ((sess.run(largest), np.max), (sess.run(mean), np.mean)):
            rows, columns = pool.row_pooling_sequence, pool.col_pooling_sequence
            for i, j in np.ndindex(8, 8):
                part = IMAGES[
                    :,
                    rows[i] : rows[i + 1] + overlapping,
                    columns[j] : columns[j + 1] + overlapping,
                ]
                np.testing.assert_allclose(pool.output[:, i, j], reduced(part, axis=(1, 2)))


def test_seeds_decide_where_windows_lie() -> None:
    def drawn() -> Any:
        with fb.Graph().as_default(), fb.Session() as sess:
            pool = fb.nn.fractional_max_pool(IMAGES, [1, 1.4, 1.4, 1], seed=7)
            return [sess.run(pool.col_pooling_sequence).tolist() for _ in range(3)]

    assert drawn() == drawn()


def test_no_gradient_but_to_the_images() -> None:
    x = fb.constant(IMAGES)
    for kind in (fb.nn.fractional_max_pool, fb.nn.fractional_avg_pool):
        [slope] = fb.gradients(fb.reduce_sum(kind(x, RATIO, seed=2).output), x)
        assert evaluate(slope).sum() == pytest.approx(2 * 8 * 8 * 3)


@pytest.mark.parametrize(
    ("ratio", "message"),
    [
        ([1.0, 0.5, 2.0, 1.0], "from 1 on"),
        ([2.0, 1.5, 2.0, 1.0], "pooling_ratio is"),
        (1.5, "pooling_ratio is"),
        ([1.0, 14.0, 2.0, 1.0], "13 elements cannot shrink by 14.0"),
    ],
)
def test_factors_that_cannot_be(ratio: Any, message: str) -> None:
    with pytest.raises(Error, match=message):
        fb.nn.fractional_max_pool(IMAGES, ratio)


def test_what_else_is_refused() -> None:
    with pytest.raises(Error, match="batch, height, width, channels"):
        fb.nn.fractional_max_pool(IMAGES[0], RATIO)
    with pytest.raises(Error, match="floating-point images, not int64"):
        fb.nn.fractional_avg_pool(IMAGES.astype(np.int64), RATIO)
    pool = fb.nn.fractional_max_pool(IMAGES, RATIO)
    with (
        pytest.raises(Error, match=r"windows of rows begin .* not at \[0, 5, 5"),
        fb.Session() as s,
    ):
        s.run(pool.output, {pool.row_pooling_sequence: [0, 5, 5, 6, 7, 8, 9, 10, 13]})
