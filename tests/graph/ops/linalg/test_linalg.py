"""Linear algebra beyond its rows: complex gradients, errors, edges, and what is composed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.errors import InvalidArgumentError, UnimplementedError
from tests.graph.ops.math.complex_gradients import check_complex_gradient
from tests.interpreter import evaluate

RANDOM = np.random.default_rng(7)


def waves(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)


SQUARE, TALL, WIDE = waves(3, 3), waves(2, 4, 2), waves(2, 4)
SAFE = SQUARE + 4 * np.eye(3)


def definite(x: Any) -> Any:
    return fb.matmul(x, x, adjoint_b=True) + np.eye(3)


def hermitian(x: Any) -> Any:
    return x + fb.adjoint(x)


def turned_to_real(vectors: Any) -> Any:
    """Columns as they were before any phase: products of each with its own adjoint."""
    return fb.einsum("...ik,...jk->...kij", vectors, fb.conj(vectors))


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "matmul": (fb.matmul, [TALL, WIDE]),
    "matmul-adjoints": (
        lambda a, b: fb.matmul(a, b, adjoint_a=True, adjoint_b=True),
        [TALL, waves(2, 3, 4)],
    ),
    "matvec": (lambda a, b: fb.matvec(a, b, adjoint_a=True), [TALL, waves(2, 4)]),
    "einsum": (lambda a, b: fb.einsum("bij,jk->bki", a, b), [TALL, WIDE]),
    "tensordot": (lambda a, b: fb.tensordot(a, b, [[2], [0]]), [TALL, WIDE]),
    "inverse": (lambda x: fb.matrix_inverse(x, adjoint=True), [SAFE]),
    "determinant": (fb.matrix_determinant, [SAFE]),
    "log-determinant": (lambda x: list(fb.log_matrix_determinant(x)), [SAFE]),
    "solve": (fb.matrix_solve, [SAFE, waves(3, 2)]),
    "solve-adjoint": (
        lambda a, b: fb.matrix_solve(a, b, adjoint=True),
        [SAFE, waves(2, 3, 2)],
    ),
    "triangular": (
        lambda a, b: fb.matrix_triangular_solve(a, b, lower=False, adjoint=True),
        [SAFE, waves(3, 2)],
    ),
    "cholesky": (lambda x: fb.cholesky(definite(x)), [SQUARE]),
    "cholesky-solve": (
        lambda x, b: fb.cholesky_solve(fb.cholesky(definite(x)), b),
        [SQUARE, waves(3, 2)],
    ),
    "logdet": (lambda x: fb.cast(fb.logdet(definite(x)), fb.complex128), [SQUARE]),
    "least-squares": (fb.matrix_solve_ls, [TALL, waves(2, 4, 1)]),
    "least-squares-wide": (fb.matrix_solve_ls, [WIDE, waves(2, 1)]),
    "least-squares-singular-values": (
        lambda a, b: fb.matrix_solve_ls(a, b, fast=False),
        [WIDE, waves(2, 1)],
    ),
    "pinv-tall": (fb.pinv, [TALL]),
    "pinv-wide": (fb.pinv, [WIDE]),
    "qr-tall": (lambda x: list(fb.qr(x)), [TALL]),
    "qr-wide": (lambda x: list(fb.qr(x)), [WIDE]),
    "qr-square": (lambda x: list(fb.qr(x)), [SQUARE]),
    "lu": (lambda x: fb.lu(x)[0], [SQUARE]),
    "svd-values": (
        lambda x: fb.cast(fb.svd(x, compute_uv=False), fb.complex128),
        [TALL],
    ),
    "svd-left": (lambda x: turned_to_real(fb.svd(x)[1]), [TALL]),
    "svd-right": (lambda x: turned_to_real(fb.svd(x)[2]), [WIDE]),
    "svd-both": (
        lambda x: fb.einsum("...ik,...jk->...kij", fb.svd(x)[1], fb.conj(fb.svd(x)[2])),
        [TALL],
    ),
    "eigenvalues": (lambda x: fb.self_adjoint_eigvals(hermitian(x)), [SQUARE]),
    "eigenvectors": (lambda x: turned_to_real(fb.self_adjoint_eig(hermitian(x))[1]), [SQUARE]),
    "exponential": (fb.matrix_exponential, [SQUARE]),
    "root": (fb.matrix_square_root, [SAFE[:2, :2]]),
    "logarithm": (fb.matrix_logarithm, [SAFE[:2, :2]]),
    "trace": (fb.trace, [TALL]),
    "diag": (fb.matrix_diag, [WIDE]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_gradients(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    check_complex_gradient(function, inputs)


# Errors


def run(tensor: Any) -> Any:
    with fb.Session() as sess:
        return sess.run(tensor)


ONES = np.ones((2, 2), np.float32)
NAN = np.array([[1.0, np.nan], [0.0, 1.0]], np.float32)


NO_ANSWER: dict[str, tuple[Callable[[], Any], str]] = {
    "inverse": (lambda: fb.matrix_inverse(ONES), "Input is not invertible"),
    "inverse-nan": (lambda: fb.matrix_inverse(NAN), "Input is not invertible.*NaN"),
    "solve": (lambda: fb.matrix_solve(ONES, ONES), "Input is not invertible"),
    "solve-nan": (lambda: fb.matrix_solve(NAN, ONES), "Input is not invertible.*NaN"),
    "triangular": (
        lambda: fb.matrix_triangular_solve(ONES * 0, ONES),
        "Input is not invertible.*diagonal",
    ),
    "lu": (lambda: fb.lu(ONES)[0], "Input is not invertible"),
    "lu-nan": (lambda: fb.lu(NAN)[0], "Input is not invertible"),
    "cholesky": (lambda: fb.cholesky(-ONES), "not positive definite"),
    "cholesky-inf": (lambda: fb.cholesky(ONES * np.float32(np.inf)), "not positive definite"),
    "cholesky-nan": (lambda: fb.cholesky(NAN.T), "not positive definite"),
    "eigenvectors-nan": (lambda: fb.self_adjoint_eig(NAN)[0], "not successful"),
    "eigenvalues-nan": (lambda: fb.self_adjoint_eigvals(NAN), "not successful"),
    "least-squares": (lambda: fb.matrix_solve_ls(ONES * 0, ONES), "not positive definite"),
}


@pytest.mark.parametrize("name", NO_ANSWER)
def test_what_has_no_answer_says_so_in_the_run(name: str) -> None:
    function, message = NO_ANSWER[name]
    with pytest.raises(InvalidArgumentError, match=message):
        run(function())


FLAT = np.ones((2, 3), np.float32)
SHAPE_ERRORS: dict[str, tuple[Callable[..., Any], list[np.ndarray], str]] = {
    "inverse": (fb.matrix_inverse, [FLAT], "square"),
    "determinant": (fb.matrix_determinant, [FLAT[0]], "square"),
    "slogdet": (fb.log_matrix_determinant, [FLAT], "square"),
    "cholesky": (fb.cholesky, [FLAT], "square"),
    "lu": (fb.lu, [FLAT], "square"),
    "eigh": (fb.self_adjoint_eig, [FLAT], "square"),
    "expm": (fb.matrix_exponential, [FLAT], "square"),
    "sqrtm": (fb.matrix_square_root, [FLAT], "square"),
    "qr": (fb.qr, [FLAT[0]], "at least two"),
    "svd": (fb.svd, [FLAT[0]], "at least two"),
    "pinv": (fb.pinv, [FLAT[0]], "at least two"),
    "transpose": (fb.matrix_transpose, [FLAT[0]], "at least two"),
    "trace": (fb.trace, [FLAT[0]], "at least two"),
    "solve": (fb.matrix_solve, [ONES, np.ones((3, 2), np.float32)], "right-hand side"),
    "triangular": (
        fb.matrix_triangular_solve,
        [ONES, np.ones((3, 2), np.float32)],
        "right-hand side",
    ),
    "batches": (
        fb.matrix_solve,
        [np.ones((2, 2, 2), np.float32), np.ones((3, 2, 2), np.float32)],
        "broadcast|right-hand side",
    ),
    "cross": (fb.cross, [ONES, ONES], "three"),
    "cross-shapes": (fb.cross, [FLAT, FLAT[0]], "compatible|one shape"),
    "band": (lambda x: fb.matrix_band_part(x, 3, 0), [FLAT], "num_lower"),
    "band-upper": (lambda x: fb.matrix_band_part(x, 0, 4), [FLAT], "num_upper"),
    "diagonal": (lambda x: fb.matrix_diag_part(x, k=3), [FLAT], "do not all lie"),
    "set_diag": (fb.matrix_set_diag, [FLAT, FLAT[0]], "do not fit"),
    "diag": (fb.diag, [FLAT[0, 0]], "scalar"),
    "matrix_diag": (fb.matrix_diag, [FLAT[0, 0]], "scalar"),
    "diag-sides": (lambda x: fb.matrix_diag(x, num_rows=2, num_cols=2), [FLAT], "do not fit"),
    "diag-band": (lambda x: fb.matrix_diag(x, k=(-1, 1)), [FLAT], "diagonals -1 to 1"),
    "diag_part": (fb.diag_part, [FLAT], "repeats"),
    "einsum-sizes": (lambda a, b: fb.einsum("ij,jk", a, b), [FLAT, FLAT], "'j'.*both 3 and 2"),
    "einsum-rank": (lambda a: fb.einsum("ijk->", a), [FLAT], "does not fit"),
    "einsum-trace": (lambda a: fb.einsum("ii->", a), [FLAT], "'i'.*both 2 and 3"),
    "einsum-rest": (lambda a: fb.einsum("...i->i", a), [FLAT], "no '...'"),
    "tensordot": (lambda a, b: fb.tensordot(a, b, 1), [FLAT, FLAT], "differ"),
    "tensordot-axes": (lambda a, b: fb.tensordot(a, b, 3), [FLAT, FLAT], "cannot be summed"),
    "matvec": (fb.matvec, [FLAT, FLAT[:, :2]], "inner dimensions|batch|broadcast"),
}


@pytest.mark.parametrize("name", SHAPE_ERRORS)
def test_shapes_that_do_not_fit_say_so_before_the_run_and_in_it(name: str) -> None:
    function, values, message = SHAPE_ERRORS[name]
    with pytest.raises(InvalidArgumentError, match=message):
        function(*[fb.constant(v) for v in values])
    feeds = {fb.placeholder(fb.float32): v for v in values}
    outputs = function(*feeds)
    first = outputs[0] if isinstance(outputs, tuple | list) else outputs
    with fb.Session() as sess, pytest.raises(InvalidArgumentError, match=message):
        sess.run(first, feeds)


def test_an_ellipsis_in_the_output_alone_is_no_dimensions() -> None:
    x = np.arange(18.0).reshape(2, 3, 3)
    found = evaluate(fb.einsum("ijj->i...", fb.constant(x)))
    np.testing.assert_array_equal(found, np.einsum("ijj->i...", x))


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij->ik", "names k"),
        ("ij->ii", "twice"),
        ("ij,jk->ik", "2 terms for 1"),
        ("i1->i", "letters"),
        ("i..j->i", "letters"),
        ("......", "letters"),
    ],
)
def test_equations_are_checked(equation: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        fb.einsum(equation, FLAT)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: fb.matmul(ONES, ONES, transpose_a=True, adjoint_a=True), "both given"),
        (lambda: fb.tensordot(FLAT, FLAT, [[0, 1], [0]]), "2 of a but 1 of b"),
        (lambda: fb.tensordot(FLAT, FLAT, [[0], [0], [0]]), "pair"),
        (lambda: fb.matrix_solve_ls(FLAT, FLAT, l2_regularizer=-1.0), "not negative"),
        (lambda: fb.matrix_solve_ls(FLAT, FLAT, 0.5, fast=False), "no l2_regularizer"),
        (lambda: fb.matrix_diag_part(FLAT, k=(1, 0)), "lowest, highest"),
        (lambda: fb.matrix_diag(FLAT, padding_value=[1, 2]), "is a number"),
        (lambda: fb.lu(ONES, fb.float32), "int32 or int64"),
        (lambda: fb.cholesky(np.ones((2, 2), np.float16)), "one of float32"),
        (lambda: fb.matrix_band_part(FLAT, fb.placeholder(fb.int32), 0), "fixed when"),
    ],
)
def test_arguments_are_checked(function: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        function()


def test_gradients_that_are_not_defined_say_so() -> None:
    x = fb.constant(RANDOM.standard_normal((4, 2)))
    with pytest.raises(UnimplementedError, match="all of Q"):
        fb.gradients(fb.qr(x, full_matrices=True)[0], x)
    with pytest.raises(UnimplementedError, match="all singular vectors"):
        fb.gradients(fb.svd(x, full_matrices=True)[1], x)


# Edges


def test_products_of_half_precision_are_summed_in_single() -> None:
    x = np.full((1, 4096), 1.0, np.float16)
    assert run(fb.matmul(x, x, transpose_b=True)).tolist() == [[4096]]
    assert run(fb.einsum("ij,kj->ik", x, x)).tolist() == [[4096]]
    assert run(fb.tensordot(x, x, [[1], [1]])).tolist() == [[4096]]
    assert fb.matmul(x, x, transpose_b=True).dtype is fb.float16


def test_equal_singular_values_and_eigenvalues_have_gradients_for_values() -> None:
    x = fb.constant(np.eye(3))
    for values in (fb.svd(x)[0], fb.svd(x, compute_uv=False), fb.self_adjoint_eig(x)[0]):
        [gradient] = fb.gradients(values, x)
        np.testing.assert_allclose(run(gradient), np.eye(3), atol=1e-15)


def test_a_wide_matrix_of_unknown_shape_has_a_gradient_of_qr() -> None:
    value = RANDOM.standard_normal((2, 4))
    x = fb.placeholder(fb.float64)
    q, r = fb.qr(x)
    [gradient] = fb.gradients([q, r * r], x)
    known = fb.constant(value)
    q, r = fb.qr(known)
    [wanted] = fb.gradients([q, r * r], known)
    with fb.Session() as sess:
        np.testing.assert_allclose(sess.run(gradient, {x: value}), run(wanted))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 5, 2)])
@pytest.mark.parametrize("options", [{}, {"l2_regularizer": 0.5}, {"fast": False}])
def test_least_squares(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    a = RANDOM.standard_normal(shape)
    b = RANDOM.standard_normal((*shape[:-1], 3))
    weight = options.get("l2_regularizer", 0.0)
    n = shape[-1]
    above = np.concatenate([a, np.broadcast_to(weight**0.5 * np.eye(n), (*shape[:-2], n, n))], -2)
    below = np.concatenate([b, np.zeros((*shape[:-2], n, 3))], -2)
    wanted = np.linalg.pinv(above) @ below
    fed = fb.placeholder(fb.float64)
    for given in (fb.constant(a), fed):
        found = fb.matrix_solve_ls(given, b, **options)
        with fb.Session() as sess:
            np.testing.assert_allclose(sess.run(found, {fed: a}), wanted, rtol=1e-9, atol=1e-12)


def test_least_squares_of_a_matrix_without_full_rank() -> None:
    a, b = np.ones((3, 2)), np.array([[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(run(fb.matrix_solve_ls(a, b, fast=False)), [[1.0], [1.0]])


def test_the_exponential_of_large_and_of_badly_scaled_matrices() -> None:
    big = np.array([[0.0, 1e6], [-1e6, 0.0]])
    turned = run(fb.matrix_exponential(big))
    expected = [[np.cos(1e6), np.sin(1e6)], [-np.sin(1e6), np.cos(1e6)]]
    np.testing.assert_allclose(turned, expected, atol=1e-8)
    nilpotent = np.array([[0.0, 1e-300], [0.0, 0.0]])
    assert run(fb.matrix_exponential(nilpotent)).tolist() == [[1.0, 1e-300], [0.0, 1.0]]


def test_the_gradient_of_the_exponential_does_not_lose_small_matrices_in_large_gradients() -> None:
    x = fb.constant([[0.25, 0.5], [0.0, -0.5]], fb.float64)
    y = fb.matrix_exponential(x)
    small, large = (fb.gradients(y, x, grad_ys=[np.full((2, 2), s)])[0] for s in (1.0, 1e12))
    np.testing.assert_allclose(run(large), 1e12 * run(small), rtol=1e-14)


def test_a_root_squared_and_an_exponentiated_logarithm_are_the_matrix() -> None:
    x = RANDOM.standard_normal((4, 5, 5)) + 4 * np.eye(5)
    root = fb.matrix_square_root(x)
    np.testing.assert_allclose(run(fb.matmul(root, root)), x, rtol=1e-11, atol=1e-11)
    back = fb.matrix_exponential(fb.matrix_logarithm(x.astype(complex)))
    np.testing.assert_allclose(run(back), x, rtol=1e-11, atol=1e-11)


def test_nan_in_one_matrix_of_a_batch_leaves_the_others() -> None:
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    # LAPACK takes the second of these for a singular matrix.
    for bad in (np.full((2, 2), np.nan), np.array([[np.nan, 1.0], [1.0, 1.0]])):
        _check_nan_stays(good, np.stack([good, bad, good]))


def _check_nan_stays(good: Any, batch: Any) -> None:
    for function in (
        fb.matrix_exponential,
        fb.matrix_square_root,
        fb.pinv,
        lambda x: fb.svd(x)[0],
        fb.matrix_determinant,
        lambda x: fb.log_matrix_determinant(x)[0],
        lambda x: fb.log_matrix_determinant(x)[1],
    ):
        found = run(function(batch))
        assert np.isnan(found[1]).all()
        np.testing.assert_allclose(found[0], run(function(good)), rtol=1e-14)
        np.testing.assert_allclose(found[2], found[0])


def test_inputs_of_python_numbers() -> None:
    assert fb.svd([[1, 2], [3, 4]])[0].dtype is fb.float32
    assert fb.self_adjoint_eigvals([[1.0, 0.0], [0.0, 2.0]]).dtype is fb.float32
    assert fb.matrix_inverse([[1, 0], [0, 2]]).dtype is fb.float32
    assert run(fb.matvec([[1, 2], [3, 4]], [1, 1])).tolist() == [3, 7]
    assert run(fb.matmul([[1j, 0], [0, 1]], [[1, 0], [0, 1]], adjoint_a=True))[0, 0] == -1j


def test_axes_and_bands_may_be_constants_of_the_graph() -> None:
    product = fb.tensordot(FLAT, FLAT, fb.constant([[1], [1]]))
    assert run(product).tolist() == [[3, 3], [3, 3]]
    assert run(fb.matrix_band_part(ONES, fb.constant(-1), fb.constant(0))).tolist() == [
        [1, 0],
        [1, 1],
    ]


def test_a_batch_times_one_matrix_has_a_gradient_in_one_product() -> None:
    x, w = fb.placeholder(fb.float32, [None, 5, 3]), fb.constant(np.ones((3, 2), np.float32))
    [gradient] = fb.gradients(fb.matmul(x, w), w)
    assert gradient.op.type == "MatMul"
    assert evaluate(gradient, {x: np.ones((4, 5, 3))}).tolist() == [[20, 20]] * 3
    assert evaluate(gradient, {x: np.ones((0, 5, 3))}).tolist() == [[0, 0]] * 3


def test_matrices_of_shape_known_only_in_the_run_have_gradients() -> None:
    value = np.array([[3.0, 1.0], [1.0, 2.0]])
    for function in (
        fb.matrix_determinant,
        fb.matrix_exponential,
        fb.cholesky,
        fb.pinv,
        fb.trace,
        lambda x: fb.svd(x)[0],
        lambda x: fb.lu(x)[0],
    ):
        x = fb.placeholder(fb.float64)
        [gradient] = fb.gradients(function(x), x)
        assert evaluate(gradient, {x: value}).shape == (2, 2)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_factors_solve_what_their_matrices_solve(batch: tuple[int, ...], kind: Any) -> None:
    a = RANDOM.standard_normal((*batch, 4, 4)).astype(kind)
    b = RANDOM.standard_normal((*batch, 4, 2)).astype(kind)
    if kind is np.complex128:
        a, b = a + 1j * a[..., ::-1], b - 0.5j * b
    matrix, rhs = fb.constant(a), fb.constant(b)
    factors, order = fb.lu(matrix, output_idx_type=fb.int64)
    x = fb.lu_solve(factors, order, rhs, name="x")
    assert (x.name, x.shape) == ("x:0", b.shape)
    np.testing.assert_allclose(run(x), np.linalg.solve(a, b), rtol=1e-9)
    ends = [fb.real(fb.reduce_sum(solved * b)) for solved in (x, fb.matrix_solve(matrix, rhs))]
    found, expected = (fb.gradients(end, [matrix, rhs]) for end in ends)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(run(one), run(other), rtol=1e-7, atol=1e-9)


def test_factors_that_do_not_fit_their_right_hand_side() -> None:
    factors, order = fb.lu(np.eye(3))
    for rows in (2, 4):
        with pytest.raises(fb.errors.InvalidArgumentError):
            fb.lu_solve(factors, order, np.ones((rows, 1)))
        rhs = fb.placeholder(fb.float64)
        with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError):
            sess.run(fb.lu_solve(factors, order, rhs), {rhs: np.ones((rows, 1))})
    with pytest.raises(fb.errors.InvalidTypeError, match="float64 is wanted"):
        fb.lu_solve(factors, order, fb.ones([3, 1]))


def test_a_matrix_with_nan_has_no_rank_of_its_own() -> None:
    assert run(fb.matrix_rank([np.eye(2), np.full((2, 2), np.nan)])).tolist() == [2, 0]


@pytest.mark.parametrize("shape", [(2, 0, 0), (0, 0), (0, 2, 2)])
def test_factors_of_nothing_print_nothing(shape: Any, capfd: Any) -> None:
    factors, order = fb.Session().run(list(fb.lu(np.zeros(shape))))
    assert (factors.shape, order.shape) == (shape, shape[:-1])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("beside", [2, 3])
def test_tridiagonal_systems_as_sequences_and_vectors(beside: int) -> None:
    above, on, below = np.array([1.0, 2.0, 9.0]), np.array([4.0, 5.0, 6.0]), np.array([9.0, 3, 1])
    whole = np.diag(on) + np.diag(above[:2], 1) + np.diag(below[1:], -1)
    given = [above[:beside], on, below[3 - beside :]]
    x = fb.tridiagonal_solve(given, [1.0, 2.0, 3.0], "sequence", name="x")
    y = fb.tridiagonal_matmul(given, np.eye(3), "sequence")
    assert (x.name, x.shape, y.shape) == ("x:0", [3], [3, 3])
    np.testing.assert_allclose(evaluate(x), np.linalg.solve(whole, [1, 2, 3]))
    np.testing.assert_allclose(evaluate(y), whole)


def test_tridiagonal_systems_that_cannot_be_solved() -> None:
    bands, rhs = fb.placeholder(fb.float32, [3, None]), fb.placeholder(fb.float32, [None, 1])
    x = fb.tridiagonal_solve(bands, rhs)
    with fb.Session() as sess:
        for n in (1, 3):
            with pytest.raises(fb.errors.InvalidArgumentError, match="A matrix is singular"):
                sess.run(x, {bands: np.zeros((3, n)), rhs: np.ones((n, 1))})
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"not \[3, 3\] and \[2, 1\]"):
            sess.run(x, {bands: np.ones((3, 3)), rhs: np.ones((2, 1))})
        nan = sess.run(x, {bands: np.full((3, 3), np.nan), rhs: np.ones((3, 1))})
        assert np.isnan(nan).all()
    for call, message in (
        (lambda: fb.tridiagonal_solve(np.ones((2, 3)), np.ones((3, 1))), r"\[..., 3, n\]"),
        (lambda: fb.tridiagonal_solve([bands], rhs, "sequence"), "a sequence of three"),
        (lambda: fb.tridiagonal_solve(bands, rhs, "dense"), "diagonals_format is"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=message):
            call()
