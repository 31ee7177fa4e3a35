"""Python's operators on tensors, dtypes of results, and errors of arithmetic and linear algebra."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError


@pytest.mark.parametrize(
    "apply",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64, np.uint8])
def test_binary_operators_have_numpys_meaning(apply: Any, dtype: Any) -> None:
    a, b = np.array([7, 5, 3], dtype), np.array([2, 5, 4], dtype)
    with np.errstate(all="ignore"):
        expected = apply(a, b)
        reverse = apply(9, b)
    results = evaluate(
        [apply(fb.constant(a), b), apply(a, fb.constant(b)), apply(9, fb.constant(b))]
    )
    for result, wanted in zip(results, (expected, expected, reverse), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


@pytest.mark.parametrize("apply", [operator.and_, operator.or_, operator.xor])
def test_logical_operators(apply: Any) -> None:
    for a, b in (
        (np.array([True, False]), np.array([True, True])),
        (np.array([6, 5], np.int32), np.array([3, 1], np.int32)),
    ):
        assert evaluate(apply(fb.constant(a), b)).tolist() == apply(a, b).tolist()
        assert evaluate(~fb.constant(a)).tolist() == (~a).tolist()
    with pytest.raises(fb.errors.InvalidTypeError):
        fb.logical_and(fb.constant([1]), fb.constant([1]))


def test_unary_operators() -> None:
    x = fb.constant([-1.5, 2.0])
    for result, expected in zip(
        evaluate([-x, +x, abs(x), x**2.0, 2.0**x]),
        ([1.5, -2], [-1.5, 2], [1.5, 2], [2.25, 4], [2**-1.5, 4]),
        strict=True,
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "quotient"),
    [
        (fb.int8, fb.float32),
        (fb.uint8, fb.float32),
        (fb.int16, fb.float32),
        (fb.uint16, fb.float32),
        (fb.int32, fb.float64),
        (fb.uint32, fb.float64),
        (fb.int64, fb.float64),
        (fb.uint64, fb.float64),
        (fb.float16, fb.float16),
        (fb.float32, fb.float32),
        (fb.complex64, fb.complex64),
    ],
)
def test_division_is_true_division(dtype: fb.DType, quotient: fb.DType) -> None:
    x = fb.cast(fb.constant([3, 4]), dtype)
    for y in (x / x, x / 2, 12 / x, fb.divide(x, [2, 2])):
        assert y.dtype is quotient
        assert evaluate(y).dtype == quotient.numpy
    assert evaluate(x / 2).tolist() == [1.5, 2.0]


def test_division_of_python_numbers() -> None:
    assert evaluate(fb.divide(3, 2)) == 1.5
    assert fb.divide(3.0, 2.0).dtype is fb.float32
    assert evaluate(fb.Variable(3) / 2) == 1.5


@pytest.mark.parametrize("apply", [operator.floordiv, operator.mod])
def test_integers_are_not_divided_by_zero(apply: Any) -> None:
    x, y = fb.constant([1, 2]), fb.constant([1, 0])
    with pytest.raises(Error, match="divided by zero"):
        evaluate(apply(x, y))
    floats = evaluate(apply(fb.constant([1.0]), fb.constant([0.0])))
    assert not np.isfinite(floats[0])


@pytest.mark.parametrize("x", [7, -7])
@pytest.mark.parametrize("y", [3, -3])
def test_quotients_and_remainders_follow_the_divisor(x: int, y: int) -> None:
    for dtype in (fb.int32, fb.float32):
        a, b = fb.cast(x, dtype), fb.cast(y, dtype)
        assert evaluate([a // b, a % b]) == [x // y, x % y]


@pytest.mark.parametrize("apply", [fb.floordiv, fb.mod, fb.truncatediv, fb.truncatemod, fb.pow])
def test_of_no_integers_none_is_divided_by_zero(apply: Any) -> None:
    x = fb.constant(np.zeros((0, 3), np.int32))
    assert evaluate(apply(x, fb.constant([[0, -1, 2]]))).shape == (0, 3)


def test_integers_have_no_negative_powers() -> None:
    with pytest.raises(Error, match="negative power"):
        evaluate(fb.constant([2, 3]) ** fb.constant([1, -1]))
    assert evaluate(fb.constant([2, 3]) ** 2).tolist() == [4, 9]


def test_powers_at_zero_have_finite_gradients() -> None:
    x, y = fb.constant([0.0, 0.0, 2.0]), fb.constant([0.0, 2.0, 0.0])
    dx, dy = evaluate(fb.gradients(x**y, [x, y]))
    assert dx.tolist() == [0, 0, 0]
    np.testing.assert_allclose(dy, [0, 0, np.log(2)], rtol=1e-6)


def test_where_lets_no_gradient_through_to_what_was_not_chosen() -> None:
    x = fb.constant([0.0, 4.0])
    y = fb.where(x > 0.0, fb.sqrt(fb.where(x > 0.0, x, 1.0)), 0.0)
    [gradient] = fb.gradients(y, x)
    assert evaluate(gradient).tolist() == [0, 0.25]


def test_dtypes_do_not_mix() -> None:
    x, y = fb.constant([1.0]), fb.constant([1])
    with pytest.raises(fb.errors.InvalidTypeError, match="never converted silently"):
        x + y
    with pytest.raises(fb.errors.InvalidTypeError):
        y + 1.5


def test_complex_gradients_go_downhill() -> None:
    """The gradient of |f(z)|^2 is twice the direction of steepest ascent's conjugate."""
    start = np.array([1.0 + 2j, -0.5 + 0.25j])

    def loss(z: Any) -> Any:
        w = (z * (0.5 - 1j) + 1j) / (z - 3.0) - z
        return fb.reduce_sum(w * fb.conj(w))

    z = fb.placeholder(fb.complex128, [2])
    value = loss(z)
    [gradient] = fb.gradients(fb.real(value), z)
    found = evaluate(gradient, {z: start})
    step = 1e-6
    for k in range(2):
        slopes = []
        for direction in (1, 1j):
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved[k] += sign * step * direction
                ends.append(evaluate(value, {z: moved}).real)
            slopes.append((ends[0] - ends[1]) / (2 * step))
        # As in TensorFlow: for a real loss, df/dx + i df/dy.
        np.testing.assert_allclose(found[k], complex(*slopes), rtol=1e-5)


def test_complex_products() -> None:
    a = fb.placeholder(fb.complex128, [2, 2])
    value = np.array([[1 + 1j, 2], [0.5j, -1]])
    other = np.array([[0.5, 1j], [1 - 1j, 2]])
    product = fb.matmul(a, other)
    [gradient] = fb.gradients(product, a, np.ones((2, 2)))
    np.testing.assert_allclose(evaluate(product, {a: value}), value @ other)
    np.testing.assert_allclose(evaluate(gradient, {a: value}), np.ones((2, 2)) @ other.conj().T)


# Matrix products


def product(a: Any, b: Any, **flags: bool) -> Any:
    return fb.matmul(fb.placeholder(fb.float32, a), fb.placeholder(fb.float32, b), **flags)


@pytest.mark.parametrize(
    ("a", "b", "flags", "hint"),
    [
        ([32, 784], [10, 784], {}, "pass transpose_b=True"),
        ([784, 32], [784, 10], {}, "pass transpose_a=True"),
        ([784, 32], [10, 784], {}, "exchange the two: matmul(b, a) fits"),
        ([784, 32], [10, 784], {"transpose_b": True}, "pass transpose_a=True"),
        ([32, 784], [784, 10], {"transpose_b": True}, "pass transpose_b=False"),
        ([32, 784], [10, 20], {}, None),
        ([5, 2, 3], [4, 7], {}, None),
    ],
)
def test_inner_dimensions_that_differ(a: Any, b: Any, flags: Any, hint: str | None) -> None:
    with pytest.raises(Error, match="inner dimensions differ") as caught:
        product(a, b, **flags)
    text = str(caught.value)
    assert f"{a}" in text
    assert f"{b}" in text
    assert "test_operators.py" in text
    assert caught.value.hint is None if hint is None else hint in str(caught.value.hint)


def test_inner_dimensions_that_differ_in_the_run() -> None:
    a, b = fb.placeholder(fb.float32, [None, None]), fb.placeholder(fb.float32, [None, None])
    with pytest.raises(Error, match=r"inner dimensions differ: \[2, 3\] x \[4, 3\]") as caught:
        evaluate(a @ b, {a: np.zeros((2, 3)), b: np.zeros((4, 3))})
    assert caught.value.hint == "pass transpose_b=True"
    c = fb.placeholder(fb.float32)
    with pytest.raises(Error, match="at least two dimensions"):
        evaluate(c @ b, {c: np.zeros(3), b: np.zeros((3, 3))})
    with pytest.raises(Error, match="batch dimensions"):
        evaluate(c @ fb.zeros([3, 3, 3]), {c: np.zeros((2, 3, 3))})


@pytest.mark.parametrize(
    ("a", "b"),
    [([3], [3]), ([2, 3], [3]), ([3], [3, 2]), ([4, 2, 3], [3]), ([3], [4, 3, 2])],
)
def test_vectors_as_in_numpy(a: Any, b: Any) -> None:
    x, y = np.arange(np.prod(a, dtype=float)), np.arange(np.prod(b, dtype=float)) + 1
    x, y = x.reshape(a), y.reshape(b)
    s, t = fb.constant(x), fb.constant(y)
    z = s @ t
    assert z.shape == np.matmul(x, y).shape
    np.testing.assert_allclose(evaluate(z), np.matmul(x, y))
    np.testing.assert_allclose(evaluate(x @ t), np.matmul(x, y))
    shapes = [g.shape for g in fb.gradients(z, [s, t])]
    assert shapes == [a, b]


def test_the_cost_of_a_product() -> None:
    op = product([32, 784], [784, 10]).op
    assert op.op_def.cost(op) == 2 * 32 * 784 * 10


def test_a_singular_matrix_has_no_inverse() -> None:
    with pytest.raises(Error, match="singular"):
        evaluate(fb.matrix_inverse(fb.zeros([2, 2])))
    with pytest.raises(Error, match="square"):
        fb.matrix_inverse(fb.zeros([2, 3]))


@pytest.mark.parametrize(
    ("one", "other", "hint"),
    [
        (fb.int32, fb.float32, "fb.float32"),
        (fb.float32, fb.int32, "fb.float32"),
        (fb.float32, fb.float64, "fb.float32"),
        (fb.float64, fb.float32, "fb.float64"),
        (fb.complex64, fb.float64, "fb.complex64"),
        (fb.int64, fb.bool, "fb.int64"),
        (fb.bool, fb.uint8, "fb.uint8"),
        (fb.int32, fb.int64, "fb.int32"),
    ],
)
def test_the_conversion_that_is_proposed_keeps_values(one: Any, other: Any, hint: str) -> None:
    with pytest.raises(fb.errors.InvalidTypeError) as caught:
        fb.concat([fb.placeholder(one, [2]), fb.placeholder(other, [2])], 0)
    assert caught.value.hint == f"convert one: fb.cast(..., {hint})"


def test_strings_are_not_added() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"fb.strings.join\(\[x, y\]\)"):
        fb.constant("a") + "b"


def test_strings_are_not_cast() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"fb.strings.to_number\(x\)"):
        fb.cast(fb.constant("1"), fb.float32)
    with pytest.raises(fb.errors.InvalidTypeError, match=r"fb.strings.as_string\(x\)"):
        fb.cast(fb.constant(1), fb.string)


@pytest.mark.parametrize(
    "apply",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.pow,
        operator.lt,
        operator.ge,
    ],
)
def test_arrays_on_the_left_build_operations(apply: Any) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    values = np.asarray([3.0, 4.0], np.float32)
    for left in (np.asarray([5.0, 7.0], np.float32), np.float32(2.5)):
        with fb.Session() as sess:
            found = sess.run(apply(left, x), {x: values})
        np.testing.assert_allclose(found, apply(left, values))


def test_arrays_and_tensors_are_not_equal() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    assert (np.ones(2) == x) is False
    assert (np.ones(2) != x) is True


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (lambda x: np.sin(x), r"(?s)np\.sin takes arrays, and <Tensor 'x:0'.*use fb\.sin, or"),
        (lambda x: np.spacing(x), r"(?s)np\.spacing takes arrays.*the function of Flowbook, or"),
        (lambda x: np.add.reduce(x), r"np\.add takes arrays"),
        (lambda x: np.add(np.ones(2), x, out=np.ones(2)), r"np\.add takes arrays"),
        (lambda x: f"{x:.3f}", r'(?s)"?\.3f.*f"\{sess\.run\(tensor\):\.3f\}"'),
        (lambda x: x.__setitem__(0, 1.0), r"(?s)cannot be assigned to.*fb\.assign_slice"),
    ],
    ids=["sin", "spacing", "reduce", "out", "format", "setitem"],
)
def test_what_needs_values_says_so(apply: Any, message: str) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    with pytest.raises(fb.errors.InvalidTypeError, match=message):
        apply(x)
    assert f"{x}" == str(x)


def test_elements_of_a_variable_are_not_assigned_to() -> None:
    W = fb.Variable(fb.zeros([2, 2]), name="W")
    with pytest.raises(fb.errors.InvalidTypeError, match=r"'W'.* cannot be assigned to"):
        W[0, 0] = 1.0
