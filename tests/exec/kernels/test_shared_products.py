"""Products that are cut are the products; where they are cut nobody's lateness decides."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.kernels import blas, crew, gemm_plan, onednn, shared_products
from flowbook.exec.kernels.blas import Blas
from flowbook.exec.kernels.native_crew import gemms
from flowbook.exec.kernels.onednn import Library
from flowbook.exec.kernels.shared_products import factorise, multiply
from tests.need import requires

THREADS = 3

needs_onednn = requires(distribution="onednn-cpu-gomp")


class Counted:
    """A library of three threads, and which limits were asked for."""

    def __init__(self) -> None:
        self.number = THREADS
        self.limits: list[int] = []

    def limit(self, threads: int) -> None:
        self.number = threads
        self.limits.append(threads)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """The libraries have three threads, though tests have one; three processors are at hand."""
    counted = Counted()
    fake = Blas(lambda: counted.number, counted.limit)
    monkeypatch.setattr(blas, "library", lambda module: fake if module == blas.NUMPYS else None)
    monkeypatch.setattr(shared_products, "processors", lambda: THREADS)
    monkeypatch.setattr(onednn, "for_products", lambda: None)
    return counted


@pytest.fixture
def with_onednn(monkeypatch: pytest.MonkeyPatch, library: Counted) -> onednn.Library:
    found = onednn.library()
    assert found is not None
    monkeypatch.setattr(onednn, "for_products", lambda: found)
    return found


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch, library: Counted) -> list[int]:
    """Small products are cut too; into how many parts each was."""
    for name in ("_SMALL", "_SMALL_BY_VECTOR", "_LEAST_PART", "_LARGE"):
        monkeypatch.setattr(shared_products, name, 64)
    monkeypatch.setattr(shared_products, "_ROWS", 2)
    monkeypatch.setattr(shared_products, "_COLUMNS", 2)
    monkeypatch.setattr(shared_products, "_LEAST", 2)
    found: list[int] = []

    def share(function: Callable[..., object], parts: Any, threads: int) -> None:
        found.append(len(parts))
        assert threads == THREADS
        assert library.number == 1 or function.__name__ == "limited"
        crew.share(function, parts, threads)

    monkeypatch.setattr(shared_products, "share", share)
    return found


@st.composite
def factors(draw: st.DrawFn) -> tuple[Any, Any]:
    batch = draw(st.lists(st.integers(0, 12), max_size=2))
    rows, inner, columns = (draw(st.integers(0, 16)) for _ in range(3))

    def factor(*matrix: int) -> Any:
        dims = [draw(st.sampled_from([d, 1])) for d in batch][draw(st.integers(0, len(batch))) :]
        random = np.random.default_rng(draw(st.integers(0, 99)))
        if draw(st.booleans()):
            return random.standard_normal((*dims, *matrix)).astype(dtype)
        return random.standard_normal((*dims, *matrix[::-1])).astype(dtype).swapaxes(-1, -2)

    dtype = draw(st.sampled_from([np.float32, np.float64, np.complex64, np.int32]))
    return factor(rows, inner), factor(inner, columns)


def _check_products() -> None:
    @given(factors())
    def check(both: tuple[Any, Any]) -> None:
        x, y = both
        expected = np.matmul(x, y)
        found = multiply(x, y)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        out = np.full_like(expected, 7)
        assert multiply(x, y, out) is out
        assert np.array_equal(out, found)

    check()


def test_a_cut_product_is_the_product(cuts: list[int]) -> None:
    _check_products()
    assert max(cuts) > THREADS


@needs_onednn
def test_so_it_is_by_onednn(cuts: list[int], with_onednn: onednn.Library, monkeypatch: Any) -> None:
    monkeypatch.setattr(gemms, "native", None)
    by_onednn = 0

    def limited(threads: int, function: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal by_onednn
        by_onednn += 1
        assert threads == 1
        return Library.limited(with_onednn, threads, function, *arguments)

    monkeypatch.setattr(with_onednn, "limited", limited)
    limited.__name__ = "limited"
    _check_products()
    assert by_onednn > 20
    assert max(cuts) > THREADS


@needs_onednn
def test_onednn_makes_float32_on_one_thread_whoever_calls(
    with_onednn: onednn.Library, monkeypatch: Any
) -> None:
    monkeypatch.setattr(gemms, "native", None)
    threads = with_onednn.quick.omp_get_max_threads
    inside = []

    class Watching(gemm_plan.Plan):
        def make(self, *given: Any) -> None:
            inside.append(threads())
            super().make(*given)

    monkeypatch.setattr(gemm_plan, "Plan", Watching)
    x, y = np.ones((301, 302), np.float32), np.ones((302, 303), np.float32)

    def multiplied() -> None:
        assert (multiply(x, y) == 302).all()
        assert threads() == THREADS

    with_onednn.limited(THREADS, multiplied)
    assert len(inside) > 1
    assert set(inside) == {1}


@needs_onednn
def test_onednn_is_not_asked_for_small_products_or_other_dtypes(
    library: Counted, monkeypatch: Any
) -> None:
    def refuse() -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(onednn, "for_products", refuse)
    for shape, dtype in (((64, 64), np.float32), ((65, 65), np.float64), ((5, 60, 60), np.float32)):
        multiply(np.ones(shape, dtype), np.ones(shape, dtype))
    with pytest.raises(AssertionError, match="asked"):
        multiply(np.ones((65, 65), np.float32), np.ones((65, 65), np.float32))


@needs_onednn
def test_a_product_without_memory_is_an_error(
    with_onednn: onednn.Library, monkeypatch: Any
) -> None:
    """Its gemm tells by a number that it has not enough for its own copies."""
    failing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    address = ctypes.cast(failing, ctypes.c_void_p).value or 0
    monkeypatch.setattr(with_onednn, "gemm", with_onednn.gemm._replace(address=address))
    monkeypatch.setattr(gemms, "native", None)
    x = np.ones((100, 100), np.float32)
    with pytest.raises(MemoryError, match="oneDNN's status 1"):
        multiply(x, x)


def test_who_does_the_parts_does_not_show_in_the_bits(
    cuts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, 37, 53)), random.standard_normal((53, 71))
    usual = multiply(x, y)

    def by_others(function: Callable[..., object], parts: Any, threads: int) -> None:
        others = [Thread(target=function, args=part) for part in parts]
        for other in reversed(others):
            other.start()
        for other in others:
            other.join()

    def by_oneself(function: Callable[..., object], parts: Any, threads: int) -> None:
        for part in parts:
            function(*part)

    for share in (by_others, by_oneself):
        monkeypatch.setattr(shared_products, "share", share)
        assert np.array_equal(multiply(x, y), usual)


@pytest.mark.parametrize(
    ("shape", "parts", "axis"),
    [
        (((100, 784), (784, 500)), 6, 1),
        (((1000, 300), (300, 100)), 6, 0),
        (((20, 400), (400, 800)), 12, 1),
        (((20, 400), (400, 160)), 2, 1),
        (((9, 4, 64, 64), (9, 4, 64, 64)), 9, 0),
        (((2048, 2048), (2048, 1)), 8, 0),
        (((32, 784), (784, 10)), 1, 0),
        (((8, 4096), (4096, 15)), 1, 0),
    ],
)
def test_where_products_are_cut(shape: Any, parts: int, axis: int) -> None:
    x, y = (np.broadcast_to(np.float32(0), dims) for dims in shape)
    out = np.zeros((*x.shape[:-1], y.shape[-1]))
    where = shared_products._cut(out.shape, x.shape[-1], THREADS)
    cut = list(shared_products._parts(x, y, out, *where))
    assert len(cut) == parts
    for left, right, part in cut:
        assert (*part.shape[:-2], left.shape[-2], right.shape[-1]) == part.shape
        part += 1
    # All of it, once.
    assert (out == 1).all()
    sizes = [part.shape[axis] for *_, part in cut]
    assert sum(sizes) == out.shape[axis]
    assert max(sizes) - min(sizes) <= (16 if axis else 8)


def test_one_thread_is_no_reason_to_cut(cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((40, 40))
    monkeypatch.setattr(shared_products, "processors", lambda: 1)
    assert (multiply(x, x) == 40).all()
    assert cuts == []


def test_a_product_that_gains_nothing_has_one_thread(library: Counted) -> None:
    x = np.ones((100, 300), np.float32)
    multiply(x, np.ones((300, 8), np.float32))
    # This is small enough for OpenBLAS to leave it to one thread by itself,
    assert library.limits == []
    multiply(x, np.ones((300, 16), np.float32))
    assert library.limits == [1, THREADS]
    # but not by a vector.
    multiply(x, np.ones((300, 1), np.float32))
    assert library.limits == [1, THREADS] * 2


def test_shapes_that_do_not_fit_say_what_numpy_says(cuts: list[int]) -> None:
    for shapes in (((20, 30), (31, 20)), ((2, 20, 30), (3, 30, 20))):
        x, y = map(np.ones, shapes)
        with pytest.raises(ValueError, match=r"mismatch|broadcast"):
            multiply(x, y)


def test_an_interrupt_gives_the_library_its_threads_back(
    library: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(function: Callable[..., object], parts: Any, threads: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shared_products, "share", interrupted)
    x = np.ones((200, 200))
    with pytest.raises(KeyboardInterrupt):
        multiply(x, x)
    assert library.number == THREADS


@pytest.mark.parametrize(("rows", "limits"), [(8, [1]), (1023, [1]), (1024, [2])])
def test_large_factorisations_have_the_threads_there_are_processors_for(
    library: Counted, monkeypatch: pytest.MonkeyPatch, rows: int, limits: list[int]
) -> None:
    monkeypatch.setattr(shared_products, "processors", lambda: 2)
    matrix = np.broadcast_to(np.float32(1), (rows, 2000))
    found = factorise(lambda *given, **named: (given, named), matrix, 5, full=True)
    assert found == ((matrix, 5), {"full": True})
    assert library.limits == [*limits, THREADS]


def test_the_option_says_how_many_threads(library: Counted, monkeypatch: Any) -> None:
    monkeypatch.setattr(shared_products, "processors", lambda: 1)
    seen: list[int] = []
    monkeypatch.setattr(
        shared_products, "share", lambda function, parts, threads: seen.append(threads)
    )
    x = np.ones((200, 200))
    multiply(x, x)
    assert seen == []
    # As the option does, which asks for more than there are processors.
    monkeypatch.setitem(vars(fb.options), "intra_op_threads", THREADS)
    multiply(x, x)
    assert seen == [THREADS]


def _products() -> dict[str, Callable[[Any], fb.Tensor]]:
    def convolved(x: fb.Tensor) -> fb.Tensor:
        images = fb.reshape(x, [1, 8, 8, 16])
        return fb.nn.conv2d(images, fb.ones([3, 3, 16, 16], fb.float64), [1, 1, 1, 1], "SAME")

    def summed(x: fb.Tensor) -> fb.Tensor:
        rows = [x[i : i + 2] for i in range(0, 32, 2)]
        return fb.add_n([fb.matmul(row, row, transpose_a=True) for row in rows])

    return {
        "matmul": lambda x: fb.matmul(x, x, transpose_b=True),
        "in half precision": lambda x: fb.matmul(fb.cast(x, fb.float16), fb.ones([32, 9], "half")),
        "of a batch": lambda x: fb.matmul(fb.reshape(x, [4, 8, 32]), x, transpose_b=True),
        "einsum": lambda x: fb.einsum("ij,kj->ik", x, x),
        "tensordot": lambda x: fb.tensordot(x, x, [[0], [0]]),
        "convolution": convolved,
        "sum of products": summed,
    }


@pytest.mark.parametrize("name", _products())
def test_kernels_have_their_products_cut(cuts: list[int], name: str) -> None:
    random = np.random.default_rng(0)
    value = random.standard_normal((32, 32))
    x = fb.placeholder(fb.float64, [32, 32])
    fed = _products()[name](x)
    folded = _products()[name](fb.constant(value))
    with fb.Session() as sess:
        found = sess.run(fed, {x: value})
        assert cuts
        constant = sess.run(folded)
    if name == "sum of products":
        # What is folded is not joined: its sum has another order.
        np.testing.assert_allclose(constant, found)
    else:
        assert np.array_equal(constant, found)


FACTORISATIONS: dict[str, Callable[..., Any]] = {
    "inverse": fb.matrix_inverse,
    "determinant": fb.matrix_determinant,
    "logarithm of the determinant": lambda x: fb.log_matrix_determinant(x)[1],
    "solution": lambda x: fb.matrix_solve(x, x),
    "singular values": lambda x: fb.svd(x, compute_uv=False),
    "singular vectors": lambda x: fb.svd(x)[1],
    "eigenvalues": fb.self_adjoint_eigvals,
    "eigenvectors": lambda x: fb.self_adjoint_eig(x)[1],
    "Cholesky": fb.cholesky,
    "QR": lambda x: fb.qr(x)[0],
    "exponential": fb.matrix_exponential,
}


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_factorisations_have_one_thread(library: Counted, name: str) -> None:
    x = fb.placeholder(fb.float64, [3, 3])
    with fb.Session() as sess:
        sess.run(FACTORISATIONS[name](x), {x: np.eye(3) * 2})
    assert library.limits[:2] == [1, THREADS]


BY_SCIPY: dict[str, Callable[..., Any]] = {
    "triangular": lambda x: fb.matrix_triangular_solve(x, x),
    "LU": lambda x: fb.lu(x)[0],
    "Schur": fb.matrix_square_root,
}


@pytest.mark.parametrize("name", BY_SCIPY)
def test_what_scipy_factorises_has_one_thread_of_its_library(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    counted = Counted()
    fake = Blas(lambda: counted.number, counted.limit)
    monkeypatch.setattr(blas, "library", lambda module: fake if module == blas.SCIPYS else None)
    x = fb.placeholder(fb.float64, [3, 3])
    with fb.Session() as sess:
        sess.run(BY_SCIPY[name](x), {x: np.eye(3) * 2})
    assert counted.limits[:2] == [1, THREADS]
