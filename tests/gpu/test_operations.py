"""Operations on a GPU give what they give on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.gpu import Gpu
from flowbook.graph.model.registry import kernel_for, op_named
from tests.exec.devices.test_kinds import compare, examples, is_about_arrays, run
from tests.gpu.need import skip_without_gpu
from tests.op_cases import CASES, Case
from tests.op_cases.case import admitted, natural

skip_without_gpu()

# What gives vectors whose signs, or phases, every library chooses.
WITH_VECTORS = {"SelfAdjointEig", "Svd"}

EVERYTHING = [
    case
    for case in CASES
    if kernel_for(op_named(case.type), "gpu") is not None and not is_about_arrays(case.type)
]
HERE = [case for case in EVERYTHING if case.type not in WITH_VECTORS]


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name)
def test_the_kernel_is_right(case: Case) -> None:
    compare(case, examples(case, case.inputs, natural(case)), Gpu())


@pytest.mark.parametrize(
    "case", [case for case in EVERYTHING if case.special is not None], ids=lambda case: case.name
)
def test_so_it_is_of_nan_and_infinities(case: Case) -> None:
    compare(case, examples(case, case.special, natural(case)), Gpu())


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name)
def test_so_it_is_of_narrow_and_of_whole_numbers(case: Case) -> None:
    for dtype in {*admitted(case)} & {fb.float16, fb.float32, fb.int32, fb.complex64}:
        compare(case, examples(case, case.inputs, dtype), Gpu())


def composed(type: str, parts: list[np.ndarray]) -> np.ndarray:
    """The matrices that were decomposed into values and vectors."""
    values, left = parts[0], parts[1][..., : parts[0].shape[-1]]
    right = parts[2][..., : values.shape[-1]] if type == "Svd" else left
    return (left * values[..., None, :]) @ np.conj(np.swapaxes(right, -1, -2))


@pytest.mark.parametrize(
    "case", [case for case in EVERYTHING if case.type in WITH_VECTORS], ids=lambda case: case.name
)
def test_decompositions_are_those_of_the_matrices(case: Case) -> None:
    for dtype in {*admitted(case)} & {fb.float32, fb.float64, fb.complex64, fb.complex128}:
        tolerance = 4 * case.tolerance * np.finfo(dtype.numpy).eps
        for operation, inputs, wanted in examples(case, case.inputs, dtype):
            found = run(operation, inputs, Gpu())
            assert [part.dtype for part in found] == [part.dtype for part in wanted]
            assert [part.shape for part in found] == [part.shape for part in wanted]
            np.testing.assert_allclose(found[0], wanted[0], rtol=tolerance, atol=tolerance)
            if len(found) > 1 and found[1].size:
                whole = composed(case.type, found)
                np.testing.assert_allclose(whole, inputs[0], rtol=tolerance, atol=tolerance)
                for vectors in found[1:]:
                    products = np.conj(np.swapaxes(vectors, -1, -2)) @ vectors
                    eye = np.broadcast_to(np.eye(vectors.shape[-1]), products.shape)
                    np.testing.assert_allclose(products, eye, atol=tolerance)


def test_matrices_without_a_factor_or_an_inverse_are_noticed() -> None:
    singular = fb.constant(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]]))
    for matrices in (singular, singular[1]):
        with fb.device("gpu:0"):
            failing = [
                fb.cholesky(matrices - 1.0),
                fb.matrix_inverse(matrices),
                fb.matrix_solve(matrices, fb.ones([2, 1], fb.float64)),
            ]
        with fb.Session(devices=["gpu:0"]) as sess:
            for tensor in failing:
                with pytest.raises(fb.errors.InvalidArgumentError):
                    sess.run(tensor)


@pytest.mark.parametrize("size", [1, 1000, 1_000_003])
def test_random_numbers_are_the_cpus(size: int) -> None:
    def draws(device: str) -> list[np.ndarray]:
        with fb.Graph().as_default(), fb.device(device):
            fb.set_random_seed(3)
            made = [
                fb.random_uniform([size], seed=1),
                fb.random_uniform([size], dtype=fb.float64, seed=2),
                fb.random_uniform([size], -5, 1 << 30, fb.int32, seed=3),
                fb.random_uniform([size], -5, 1 << 60, fb.int64, seed=4),
                fb.random_normal([size], seed=5),
                fb.random_normal([size], dtype=fb.float64, seed=6),
            ]
            with fb.Session(devices=["cpu:0", "gpu:0"]) as sess:
                sess.run(made)
                return sess.run(made)

    there, here = draws("gpu:0"), draws("cpu:0")
    for found, wanted in zip(there[:4], here[:4], strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(there[4], here[4], rtol=0, atol=1e-5)
    np.testing.assert_allclose(there[5], here[5], rtol=0, atol=1e-13)


def test_indices_outside_are_an_error_and_change_nothing() -> None:
    with fb.device("gpu:0"):
        table = fb.Variable(np.zeros((4, 3), np.float32), name="table")
        i = fb.placeholder(fb.int32, [None])
        rows = fb.gather(table, i)
        add = fb.scatter_add(table, i, fb.ones_like(rows))
    with fb.Session(devices=["gpu:0"]) as sess:
        for _ in range(3):
            for op in (rows, add):
                with pytest.raises(fb.errors.InvalidIndexError):
                    sess.run(op, {i: [1, 4]})
            assert not sess.run(table).any()
        sess.run(add, {i: [1, 1, 3]})
        np.testing.assert_array_equal(sess.run(table)[:, 0], [0, 2, 0, 1])
