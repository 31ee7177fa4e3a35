"""Initial values have the variance, the bounds and the structure that their names promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.train.layers.initializers import fans
from tests.interpreter import evaluate

SHAPE = (3, 3, 40, 60)
FAN_IN, FAN_OUT = 9 * 40, 9 * 60


def drawn(initializer: Any, shape: Any = SHAPE, dtype: Any = fb.float64) -> Any:
    tensor = initializer(shape, dtype)
    assert (tensor.dtype, tensor.shape) == (dtype, shape)
    return evaluate(tensor)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((), (1, 1)), ((7,), (7, 7)), ((7, 3), (7, 3)), ((5, 2, 7, 3), (70, 30))],
)
def test_fans(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    assert fans(shape) == expected


@pytest.mark.parametrize(
    ("make", "variance"),
    [
        (fb.initializers.glorot_uniform, 2 / (FAN_IN + FAN_OUT)),
        (fb.initializers.glorot_normal, 2 / (FAN_IN + FAN_OUT)),
        (fb.initializers.he_uniform, 2 / FAN_IN),
        (fb.initializers.he_normal, 2 / FAN_IN),
        (fb.initializers.lecun_uniform, 1 / FAN_IN),
        (fb.initializers.lecun_normal, 1 / FAN_IN),
    ],
)
def test_variances(make: Any, variance: float) -> None:
    values = drawn(make(seed=1))
    assert abs(values.var() / variance - 1) < 0.05
    assert abs(values.mean()) < 0.05 * np.sqrt(variance)
    limit = np.sqrt(3 * variance) if "uniform" in make.__name__ else 2.3 * np.sqrt(variance)
    assert abs(values).max() <= limit


def test_variance_scaling_by_what_leaves() -> None:
    values = drawn(fb.initializers.variance_scaling(3.0, "fan_out", "untruncated_normal", seed=1))
    assert abs(values.var() * FAN_OUT / 3 - 1) < 0.05


@pytest.mark.parametrize(
    "arguments",
    [{"scale": 0}, {"mode": "fan"}, {"distribution": "cauchy"}, {"distribution": "normal"}],
)
def test_bad_arguments_are_refused(arguments: Any) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=next(iter(arguments))):
        fb.initializers.variance_scaling(**arguments)


@pytest.mark.parametrize("shape", [(8, 3), (3, 8), (5, 5), (2, 3, 4), (2, 2, 20)])
@pytest.mark.parametrize("dtype", [fb.float64, fb.float32, fb.float16])
def test_orthogonal(shape: tuple[int, ...], dtype: fb.DType) -> None:
    q = drawn(fb.initializers.orthogonal(2.0, seed=3), shape, dtype)
    q = q.reshape(-1, shape[-1]).astype(np.float64)
    gram = q @ q.T if q.shape[0] < q.shape[1] else q.T @ q
    tolerance = {fb.float64: 1e-12, fb.float32: 1e-5, fb.float16: 2e-2}[dtype]
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=tolerance)


def test_plain_ones() -> None:
    initializers = fb.initializers
    np.testing.assert_array_equal(drawn(initializers.zeros(), (2, 3)), np.zeros((2, 3)))
    np.testing.assert_array_equal(drawn(initializers.ones(), (2, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(drawn(initializers.constant(7), (2,)), [7, 7])
    np.testing.assert_array_equal(drawn(initializers.constant([1, 2]), (2,)), [1, 2])
    assert drawn(initializers.constant(), (2,)).tolist() == [0, 0]
    values = drawn(initializers.random_uniform())
    assert 0 <= values.min() < 0.1 < 0.9 < values.max() < 1
    assert abs(drawn(initializers.random_normal()).std() - 1) < 0.1
    values = drawn(initializers.random_uniform(2, 3))
    assert 2 <= values.min() < values.max() < 3
    assert abs(drawn(initializers.random_normal(5, 2)).std() - 2) < 0.1
    assert abs(drawn(initializers.truncated_normal(0, 1))).max() <= 2


def test_the_dtype_is_single_by_default() -> None:
    for name in dir(fb.initializers):
        made = getattr(fb.initializers, name)()([4, 4])
        assert (made.dtype, made.shape) == (fb.float32, [4, 4])


def test_identity() -> None:
    assert drawn(fb.initializers.identity(2.0), (2, 3)).tolist() == [[2, 0, 0], [0, 2, 0]]
    with pytest.raises(fb.errors.InvalidArgumentError, match="two dimensions"):
        fb.initializers.identity()([3])
