"""Moments and normalisations: accuracy at extremes, modes, errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from tests.interpreter import evaluate

nn = fb.nn

ONES, ZEROS = np.ones(4, np.float32), np.zeros(4, np.float32)


def far_off(deviation: float = 1e-2, mean: float = 1e6) -> np.ndarray:
    """Many values beside whose mean their deviation is small, of channels that differ."""
    random = np.random.default_rng(1)
    values = mean + deviation * random.normal(size=(16, 16, 16, 4)) * [1, 10, 100, 1000]
    return values.astype(np.float32)


def test_moments_beside_a_large_mean() -> None:
    x = far_off()
    exact = x.astype(np.float64)
    mean, variance = evaluate(list(nn.moments(x, [0, 1, 2])))
    np.testing.assert_allclose(mean, exact.mean((0, 1, 2)), rtol=1e-7)
    np.testing.assert_allclose(variance, exact.var((0, 1, 2)), rtol=1e-5)
    weights = np.random.default_rng(2).integers(1, 4, x.shape).astype(np.float32)
    mean, variance = evaluate(list(nn.weighted_moments(x, [0, 1, 2], weights)))
    wanted = np.average(exact, (0, 1, 2), weights)
    np.testing.assert_allclose(mean, wanted, rtol=1e-7)
    spread = np.average((exact - wanted) ** 2, (0, 1, 2), weights)
    np.testing.assert_allclose(variance, spread, rtol=1e-4)


@pytest.mark.parametrize("axes", [[0], [0, 1], [1]])
def test_moments_where_every_sixteenth_element_is_far_from_the_mean(axes: list[int]) -> None:
    x = np.random.default_rng(4).normal(5, 1e-3, size=(1024, 1024)).astype(np.float32)
    x[::16] += 1e4
    x[:, ::16] += 1e4
    exact = x.astype(np.float64)
    mean, variance = evaluate(list(nn.moments(x, axes)))
    np.testing.assert_allclose(mean, exact.mean(tuple(axes)), rtol=1e-6)
    np.testing.assert_allclose(variance, exact.var(tuple(axes)), rtol=1e-5)


@pytest.mark.parametrize("axes", [[0], [1], [0, 1]])
def test_a_variance_beyond_the_dtype_is_infinite(axes: list[int]) -> None:
    x = np.random.default_rng(5).normal(0, 1e20, size=(1024, 1024)).astype(np.float32)
    _, variance = evaluate(list(nn.moments(x, axes)))
    assert np.isposinf(variance).all()


@cache
def adversaries(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Values of which the variance is easily lost, over the first axis."""
    random = np.random.default_rng(6)
    noise = random.normal(size=shape)
    signs = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)[:, None] + 0 * noise
    on_sample, off_sample = noise + 5, noise + 5
    on_sample[0] += 1e6
    off_sample[1] += 1e6
    one_step = np.full(shape, 1e6)
    one_step[3] += 0.0625
    return {
        "alternating": signs,
        "alternating far off": 1e6 + signs,
        "sorted": np.sort(noise, 0) * 1e4,
        "an outlier on the sample": on_sample,
        "an outlier off the sample": off_sample,
        "noise far off": 1e6 + noise,
        "one step of rounding": one_step,
    }


@pytest.mark.parametrize("shape", [(1024, 64), (512, 3), (5000, 20), (2000, 300)], ids=str)
@pytest.mark.parametrize("name", adversaries((16, 1)))
@pytest.mark.parametrize("axis", [0, 1])
def test_moments_of_adversaries(name: str, shape: tuple[int, int], axis: int) -> None:
    values = adversaries(shape)[name].astype(np.float32)
    x = np.ascontiguousarray(values.T) if axis else values
    exact = x.astype(np.float64)
    t = fb.constant(x)
    outputs = [*nn.moments(t, [axis]), fb.reduce_variance(t, axis), fb.reduce_std(t, axis)]
    mean, variance, same, deviation = evaluate(outputs)
    near = 1e-7 * np.abs(exact).max()
    np.testing.assert_allclose(mean, exact.mean(axis), rtol=1e-6, atol=near)
    for found in (variance, same, deviation.astype(np.float64) ** 2):
        np.testing.assert_allclose(found, exact.var(axis), rtol=2e-5)


def test_the_gradient_of_reduce_variance_beside_a_large_mean() -> None:
    x = fb.constant(far_off(1.0).reshape(-1, 4))
    exact = far_off(1.0).reshape(-1, 4).astype(np.float64)
    [slope] = fb.gradients(fb.reduce_variance(x, 0), [x])
    wanted = 2 * (exact - exact.mean(0)) / len(exact)
    np.testing.assert_allclose(evaluate(slope) / wanted.std(0), wanted / wanted.std(0), atol=1e-4)


def test_equal_values_have_no_variance() -> None:
    x = np.full((50, 50, 50, 4), 1e6 / 3, np.float32)
    outputs = [*nn.moments(x, [0, 1, 2]), *nn.fused_batch_norm(x, ONES, ZEROS)]
    mean, variance, y, batch_mean, batch_variance = evaluate(outputs)
    np.testing.assert_array_equal([mean, batch_mean], np.full((2, 4), x[0, 0, 0, 0]))
    np.testing.assert_array_equal([variance, batch_variance], np.zeros((2, 4)))
    np.testing.assert_array_equal(y, np.zeros(x.shape))


def test_batch_normalisation_of_halves_with_single_statistics() -> None:
    random = np.random.default_rng(5)
    x = random.uniform(size=(3, 4)).astype(np.float16)
    parameters = random.uniform(0.5, 1.5, (4, 4)).astype(np.float32)
    mean, variance, offset, scale = (fb.constant(p) for p in parameters)
    y = fb.nn.batch_normalization(x, mean, variance, offset, scale, 0.001)
    wanted = (x - parameters[0]) / np.sqrt(parameters[1] + 0.001) * parameters[3] + parameters[2]
    assert y.dtype is fb.float16
    np.testing.assert_array_equal(evaluate(y), wanted.astype(np.float16))


def test_batch_normalisation_beside_a_large_mean() -> None:
    x = fb.constant(far_off())
    exact = far_off().astype(np.float64)
    dy = np.random.default_rng(3).normal(size=exact.shape)
    y, mean, variance = nn.fused_batch_norm(x, ONES, ZEROS, epsilon=1e-5)
    [dx] = fb.gradients(y, [x], dy.astype(np.float32))
    found = evaluate([y, mean, variance, dx])
    axes = (0, 1, 2)
    spread = np.sqrt(exact.var(axes) + 1e-5)
    normal = (exact - exact.mean(axes)) / spread
    wanted = (dy - dy.mean(axes) - normal * (dy * normal).mean(axes)) / spread
    np.testing.assert_allclose(found[0], normal, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], exact.mean(axes), rtol=1e-7)
    np.testing.assert_allclose(found[2], exact.var(axes, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(found[3] * spread, wanted * spread, rtol=1e-4, atol=1e-4)


def test_many_rows_beside_a_large_mean() -> None:
    x = far_off().reshape(-1, 4).repeat(20, 0)
    exact = x.astype(np.float64)
    y, _, variance = nn.fused_batch_norm(x, ONES, ZEROS, epsilon=1e-5)
    found = evaluate([y, variance])
    spread = np.sqrt(exact.var(0) + 1e-5)
    np.testing.assert_allclose(found[0], (exact - exact.mean(0)) / spread, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], exact.var(0), rtol=1e-4)


def test_the_gradient_of_variance_beside_a_large_mean() -> None:
    x = fb.constant(far_off().reshape(-1, 4))
    exact = far_off().reshape(-1, 4).astype(np.float64)
    _, variance = nn.moments(x, 0)
    [slope] = fb.gradients(variance, [x])
    wanted = 2 * (exact - exact.mean(0)) / len(exact)
    np.testing.assert_allclose(evaluate(slope) / wanted.std(0), wanted / wanted.std(0), atol=1e-4)


def test_layer_normalisation_beside_a_large_mean() -> None:
    x = far_off(1.0).reshape(64, -1)
    exact = x.astype(np.float64)
    wanted = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(evaluate(nn.layer_normalization(x)), wanted, rtol=1e-5, atol=1e-5)


def test_given_statistics_beside_a_large_mean() -> None:
    x = far_off(1.0)
    mean, variance = np.full(4, 1e6, np.float32), np.full(4, 4.0, np.float32)
    y, *_ = nn.fused_batch_norm(x, ONES, ZEROS, mean, variance, is_training=False)
    wanted = (x.astype(np.float64) - 1e6) / np.sqrt(4.001)
    np.testing.assert_allclose(evaluate(y), wanted, rtol=1e-5)


def test_half_precision_is_normalised_in_single() -> None:
    x = (np.random.default_rng(4).normal(size=(64, 4, 4, 4)) * 1000).astype(np.float16)
    outputs = nn.fused_batch_norm(x, ONES, ZEROS)
    mean, variance = nn.moments(x, [0, 1, 2])
    assert [t.dtype for t in outputs] == [fb.float16, fb.float32, fb.float32]
    assert (mean.dtype, variance.dtype) == (fb.float16, fb.float16)
    exact = x.astype(np.float64)
    y, batch_mean, batch_variance = evaluate(outputs)
    wanted = (exact - exact.mean((0, 1, 2))) / exact.std((0, 1, 2))
    np.testing.assert_allclose(y, wanted, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(batch_mean, exact.mean((0, 1, 2)), rtol=1e-4)
    np.testing.assert_allclose(batch_variance, exact.var((0, 1, 2), ddof=1), rtol=1e-4)
    small = x[:, 0, 0] / np.float16(100)
    np.testing.assert_allclose(evaluate(nn.layer_normalization(small)).std(-1), 1, rtol=1e-2)


def test_training_and_inference() -> None:
    x = np.random.default_rng(5).normal(size=(8, 3, 3, 4)).astype(np.float32)
    mean, variance = ONES * 0.5, ONES * 2
    y, same_mean, same_variance = nn.fused_batch_norm(
        x, ONES * 3, ONES, mean, variance, is_training=False
    )
    plain = nn.batch_normalization(x, mean, variance, ONES, ONES * 3, 0.001)
    bare = nn.batch_normalization(x, mean, variance, None, None, 0.001)
    values = evaluate([y, plain, bare, same_mean, same_variance])
    np.testing.assert_allclose(values[0], (x - 0.5) / np.sqrt(2.001) * 3 + 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[2], (x - 0.5) / np.sqrt(2.001), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(values[3:], [mean, variance])


def test_one_element_has_no_unbiased_variance() -> None:
    _, _, variance = nn.fused_batch_norm(np.ones((1, 1, 1, 4), np.float32), ONES, ZEROS)
    np.testing.assert_array_equal(evaluate(variance), np.zeros(4))


def test_moments_keep_dimensions() -> None:
    x = fb.placeholder(fb.float32, [None, 3, 4])
    assert [t.shape for t in nn.moments(x, [0, 2])] == [[3], [3]]
    assert [t.shape for t in nn.moments(x, [0, -1], keepdims=True)] == [[1, 3, 1]] * 2
    assert [t.shape for t in nn.moments(x, None)] == [[], []]
    weighted = nn.weighted_moments(x, [1], np.ones((3, 1)), keepdims=True)
    assert [t.shape for t in weighted] == [[None, 1, 4]] * 2


def test_sufficient_statistics_give_moments() -> None:
    x = np.random.default_rng(6).normal(size=(5, 3, 4)) + 100
    for shift in (None, np.full((1, 4), 100.0)):
        statistics = nn.sufficient_statistics(x, [0, 1], shift)
        found = evaluate([*nn.normalize_moments(*statistics), statistics[0]])
        np.testing.assert_allclose(np.squeeze(found[0]), x.mean((0, 1)))
        np.testing.assert_allclose(np.squeeze(found[1]), x.var((0, 1)), rtol=1e-9)
        assert found[2] == 15


def test_sufficient_statistics_of_an_empty_batch_count_what_it_would_have() -> None:
    x = fb.placeholder(fb.float32, [None, 3, None])
    for axes, expected in (([1, 2], 6), ([0, 1], 0), ([-2], 3), ([], 1), (None, 0)):
        count = nn.sufficient_statistics(x, axes)[0]
        assert evaluate(count, {x: np.zeros((0, 3, 2))}) == expected


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_lengths_of_any_size(size: float) -> None:
    x = (np.array([[3.0, -4.0], [0.0, 0.0]]) * size).astype(np.float32)
    y = nn.l2_normalize(x, 1, epsilon=0.0 if size < 1 else 1e-12)
    np.testing.assert_allclose(evaluate(y)[0], [0.6, -0.8], rtol=1e-6)
    zeros = nn.l2_normalize(x * 0, 1)
    np.testing.assert_array_equal(
        evaluate([zeros, *fb.gradients(zeros, [zeros.op.inputs[0]])])[0], 0
    )


def test_group_normalisation_of_each_channel_and_of_all() -> None:
    x = np.random.default_rng(7).normal(size=(2, 3, 5, 4))
    each = nn.group_normalization(x, 4, epsilon=0.0)
    together = nn.group_normalization(x, 1, epsilon=0.0)
    found = evaluate([each, together])
    np.testing.assert_allclose(found[0].mean((1, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(found[0].std((1, 2)), 1)
    np.testing.assert_allclose(
        found[1], evaluate(nn.layer_normalization(x, axis=[1, 2, 3], epsilon=0))
    )
    nothing = nn.group_normalization(np.zeros((0, 3, 4)), 2)
    assert evaluate(nothing).shape == (0, 3, 4)


def test_only_a_scale_or_only_an_offset() -> None:
    x = np.random.default_rng(8).normal(size=(3, 4))
    plain, scaled, shifted = (
        nn.layer_normalization(x, *given) for given in ((), (ONES * 2,), (None, ONES))
    )
    found = evaluate([plain, scaled, shifted])
    np.testing.assert_allclose(found[1], found[0] * 2)
    np.testing.assert_allclose(found[2], found[0] + 1)


X4 = np.zeros((2, 3, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: nn.moments(np.ones(3, np.int32), [0]), InvalidTypeError, "int32"),
        (lambda: nn.moments(X4, [4]), InvalidArgumentError, "axis 4"),
        (
            lambda: nn.fused_batch_norm(X4, ONES, ZEROS, data_format="CNHW"),
            InvalidArgumentError,
            "not 'CNHW'",
        ),
        (lambda: nn.fused_batch_norm(X4, ONES[:3], ZEROS), InvalidArgumentError, r"\[3\]"),
        (lambda: nn.fused_batch_norm(X4, ONES, ZEROS[:1]), InvalidArgumentError, "and offset"),
        (lambda: nn.fused_batch_norm(X4, ONES, ZEROS, ONES), InvalidArgumentError, "is_training"),
        (
            lambda: nn.fused_batch_norm(X4, ONES, ZEROS, is_training=False),
            InvalidArgumentError,
            "are needed",
        ),
        (lambda: nn.layer_normalization(X4, axis=[]), InvalidArgumentError, "one axis at least"),
        (lambda: nn.layer_normalization(X4, axis=4), InvalidArgumentError, "axis 4 is out"),
        (lambda: nn.group_normalization(X4, 3), InvalidArgumentError, "divides the 4"),
        (lambda: nn.group_normalization(X4, 1.5), InvalidTypeError, "ints, not 1.5"),
        (lambda: nn.local_response_normalization(X4, -1), InvalidArgumentError, "-1"),
        (lambda: nn.local_response_normalization(X4[0]), InvalidArgumentError, "not compatible"),
    ],
)
def test_errors(build: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        build()


def test_the_run_finds_scales_that_do_not_fit() -> None:
    x, scale = fb.placeholder(fb.float32), fb.placeholder(fb.float32)
    y = nn.layer_normalization(x, scale)
    with fb.Session() as sess, pytest.raises(InvalidArgumentError, match=r"\[3\] does not broad"):
        sess.run(y, {x: X4, scale: [1.0, 2.0, 3.0]})
