"""Floats of 8 and 4 bits, integers of 4 and 2: stored, fed, moved and cast, never computed with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.dtypes import SMALL_INTS
from tests.interpreter import evaluate

SMALL = pytest.mark.parametrize("dtype", fb.SMALL, ids=str)
INTS = pytest.mark.parametrize("dtype", SMALL_INTS, ids=str)


def values(dtype: fb.DType, shape: Any = (2, 3)) -> np.ndarray:
    """Powers of two and zeros, or 0 to 3, as far as a dtype holds them."""
    numbers = np.resize([1, 2, 0.5, 4, 1, 2], shape)
    if dtype in SMALL_INTS:
        numbers = np.resize([0, 1, dtype.min, dtype.max], shape)
    return numbers.astype(dtype.numpy)


def same(found: Any, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


# What they are


@SMALL
def test_names_numpy_and_groups(dtype: fb.DType) -> None:
    assert getattr(fb, dtype.name) is dtype
    assert fb.as_dtype(dtype.name) is dtype
    assert fb.as_dtype(getattr(ml_dtypes, dtype.name)) is dtype
    assert dtype.numpy.itemsize == dtype.size == 1
    assert dtype not in fb.VALUES
    assert not dtype.is_numeric


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (fb.float8_e4m3fn, -448, 448),
        (fb.float8_e4m3fnuz, -240, 240),
        (fb.float8_e5m2, -57344, 57344),
        (fb.float8_e5m2fnuz, -57344, 57344),
        (fb.float8_e8m0fnu, 2.0**-127, 2.0**127),
        (fb.float4_e2m1fn, -6, 6),
        (fb.int4, -8, 7),
        (fb.uint4, 0, 15),
        (fb.int2, -2, 1),
        (fb.uint2, 0, 3),
    ],
    ids=str,
)
def test_limits(dtype: fb.DType, low: float, high: float) -> None:
    assert (float(dtype.min), float(dtype.max)) == (low, high)


# Entering and leaving


@SMALL
def test_constants_feeds_and_fetches(dtype: fb.DType) -> None:
    given = values(dtype)
    x = fb.placeholder(dtype, [None, 3])
    with fb.Session() as sess:
        for _ in range(2):
            constant, fed = sess.run([fb.constant(given), fb.identity(x)], {x: given})
            same(constant, given)
            same(fed, given)
        wide = given.astype(np.float32 if dtype in fb.SMALL_FLOATS else np.int64)
        same(sess.run(x, {x: wide}), given)
        same(sess.run(x, {x: np.zeros((0, 3))}), np.zeros((0, 3), dtype.numpy))
    same(evaluate(fb.constant([1, 1], dtype)), np.ones(2, dtype.numpy))


def test_floats_are_fed_rounded() -> None:
    assert evaluate(fb.constant([0.3, 17.0], fb.float8_e4m3fn)).tolist() == [0.3125, 16.0]


@INTS
def test_integers_must_fit_and_floats_are_none(dtype: fb.DType) -> None:
    x = fb.placeholder(dtype, [1])
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match=f"16 does not fit {dtype.name}"):
            sess.run(x, {x: [16]})
        for wrong in ([1.5], np.ones(1, ml_dtypes.bfloat16), [1j]):
            with pytest.raises(fb.errors.InvalidTypeError, match=f"where {dtype.name} is wanted"):
                sess.run(x, {x: wrong})


@SMALL
def test_they_are_fed_where_wider_ones_are_wanted(dtype: fb.DType) -> None:
    given = values(dtype)
    x = fb.placeholder(fb.float64, [2, 3])
    with fb.Session() as sess:
        assert sess.run(x, {x: given}).tolist() == given.astype(np.float64).tolist()
    n = fb.placeholder(fb.int32, [2, 3])
    with fb.Session() as sess:
        if dtype in SMALL_INTS:
            assert sess.run(n, {n: given}).tolist() == given.astype(np.int32).tolist()
        else:
            with pytest.raises(fb.errors.InvalidTypeError, match="where int32 is wanted"):
                sess.run(n, {n: given})


@SMALL
def test_variables_keep_them_and_take_no_sums(dtype: fb.DType) -> None:
    given = values(dtype)
    v = fb.Variable(given, name="v")
    with fb.Session() as sess:
        sess.run(v.initializer)
        same(sess.run(v), given)
        same(sess.run(fb.assign(v, given[::-1])), np.ascontiguousarray(given[::-1]))
        same(sess.run(fb.scatter_update(v, [0], given[:1])), given[[0, 0]])
        same(sess.run(fb.assign(v[1:], given[1:])), given)
        same(sess.run(fb.scatter_nd_update(v, [[1]], given[:1])), given[[0, 0]])
    for add in (fb.assign_add, fb.assign_sub):
        with pytest.raises(fb.errors.InvalidTypeError, match="only stored") as caught:
            add(v, given)
        assert "fb.cast" in str(caught.value)
    with pytest.raises(fb.errors.InvalidTypeError, match="only stored"):
        fb.scatter_add(v, [0], given[:1])


# Storing graphs


def test_round_trips(tmp_path: Path) -> None:
    with fb.Graph().as_default() as graph:
        for dtype in fb.SMALL:
            x = fb.placeholder(dtype, [2, 3], name=f"x_{dtype.name}")
            whole = fb.concat([x, fb.constant(values(dtype))], 0)
            fb.cast(whole, fb.float32, name=f"y_{dtype.name}")
            fb.constant(values(dtype, ()))
    graph.save(tmp_path / "a.graph")
    for again in (fb.Graph.from_bytes(graph.to_bytes()), fb.Graph.load(tmp_path / "a.graph")):
        assert again.to_bytes() == graph.to_bytes()
        with fb.Session(graph=again) as sess:
            for dtype in fb.SMALL:
                given = values(dtype)
                found = sess.run(f"y_{dtype.name}:0", {f"x_{dtype.name}:0": given})
                assert found.tolist() == np.concatenate([given, given]).astype(np.float32).tolist()


def test_equal_bytes_of_different_dtypes_stay_apart() -> None:
    """NumPy writes the names of all these dtypes alike."""
    constants = [fb.constant(np.array([1, 3], np.uint8).view(t.numpy)) for t in fb.SMALL]
    with fb.Session() as sess:
        for _ in range(2):
            found = sess.run([fb.cast(c, fb.float32) for c in constants] + constants)
            for value, dtype in zip(found[len(fb.SMALL) :], fb.SMALL, strict=True):
                assert value.dtype == dtype.numpy
            for value, other in zip(found, found[len(fb.SMALL) :], strict=False):
                assert value.tolist() == other.astype(np.float32).tolist()


# Moving


def zeros(array: np.ndarray, shape: Any) -> np.ndarray:
    """What `fb.constant(0, dtype)` is; of what has no zero, NaN."""
    return np.zeros(shape).astype(array.dtype)


def placed(array: np.ndarray, shape: Any, key: Any) -> np.ndarray:
    found = zeros(array, shape)
    found[key] = array
    return found


MOVES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "band": (
        lambda x: fb.matrix_band_part(x, 0, -1),
        lambda a: np.where(np.tri(2, 3, -1) == 1, zeros(a, ()), a),
    ),
    "batches": (
        lambda x: fb.batch_to_space_nd(fb.space_to_batch_nd(x[None], [2], [[0, 0]]), [2], [[0, 0]]),
        lambda a: a[None],
    ),
    "choose": (
        lambda x: fb.where([[True, False, True]] * 2, x, x[:, ::-1]),
        lambda a: np.where([True, False, True], a, a[:, ::-1]),
    ),
    "depths": (
        lambda x: fb.depth_to_space(fb.reshape(fb.tile(x, [1, 2]), [1, 1, 3, 4]), 2),
        lambda a: np.tile(a, [1, 2]).reshape(3, 2, 2).swapaxes(0, 1).reshape(1, 2, 6, 1),
    ),
    "diagonal": (
        lambda x: fb.matrix_diag(x),
        lambda a: np.stack([placed(r, (3, 3), np.diag_indices(3)) for r in a]),
    ),
    "diagonal part": (fb.matrix_diag_part, lambda a: np.diagonal(a)),
    "gather_nd": (lambda x: fb.gather_nd(x, [[1, 2], [0, 0]]), lambda a: a[[1, 0], [2, 0]]),
    "mask": (lambda x: fb.boolean_mask(x, [False, True]), lambda a: a[1:]),
    "mirror": (
        lambda x: fb.pad(x, [[0, 0], [1, 1]], "REFLECT"),
        lambda a: np.pad(a, [[0, 0], [1, 1]], "reflect"),
    ),
    "pad": (
        lambda x: fb.pad(x, [[1, 0], [0, 2]]),
        lambda a: placed(a, (3, 5), np.s_[1:, :3]),
    ),
    "partition": (lambda x: fb.dynamic_partition(x, [1, 0], 2)[0], lambda a: a[1:]),
    "patches": (
        lambda x: fb.extract_image_patches(
            x[None, :, :, None], [1, 1, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"
        ),
        lambda a: np.stack([a[:, :-1], a[:, 1:]], -1)[None],
    ),
    "print": (lambda x: fb.Print(x, [x], first_n=0), lambda a: a),
    "roll": (lambda x: fb.roll(x, 1, 1), lambda a: np.roll(a, 1, 1)),
    "sequences": (
        lambda x: fb.reverse_sequence(x, [2, 3], seq_axis=1),
        lambda a: np.stack([a[0, [1, 0, 2]], a[1, ::-1]]),
    ),
    "set diagonal": (
        lambda x: fb.matrix_set_diag(x, x[:, 2]),
        lambda a: np.where(np.eye(2, 3) == 1, a[:, 2:], a),
    ),
    "sparse": (
        lambda x: fb.sparse.to_dense(
            fb.SparseTensor([[0, 1], [2, 0]], fb.gather_nd(x, [[0, 0], [1, 2]]), [3, 2]), x[0, 1]
        ),
        lambda a: np.array([[a[0, 1], a[0, 0]], [a[0, 1]] * 2, [a[1, 2], a[0, 1]]]),
    ),
    "stitch": (
        lambda x: fb.dynamic_stitch([[1], [0]], [x[:1], x[1:]]),
        lambda a: a[::-1],
    ),
    "tile": (lambda x: fb.tile(x, [2, 1]), lambda a: np.tile(a, [2, 1])),
    "transpose matrices": (lambda x: fb.matrix_transpose(x[None]), lambda a: a.T[None]),
    "update": (
        lambda x: fb.tensor_scatter_nd_update(x, [[1]], x[:1]),
        lambda a: np.stack([a[0], a[0]]),
    ),
    "zeros": (fb.zeros_like, lambda a: zeros(a, (2, 3))),
    "broadcast": (lambda x: fb.broadcast_to(x, [2, 2, 3]), lambda a: np.stack([a, a])),
    "concat": (lambda x: fb.concat([x, x], 1), lambda a: np.concatenate([a, a], 1)),
    "expand": (lambda x: fb.expand_dims(x, 1), lambda a: a[:, None]),
    "fill": (lambda x: fb.fill([2], x[0, 0]), lambda a: np.stack([a[0, 0]] * 2)),
    "gather": (lambda x: fb.gather(x, [2, 0], axis=1), lambda a: a[:, [2, 0]]),
    "identity": (fb.identity, lambda a: a),
    "repeat": (lambda x: fb.repeat(x, 2, 0), lambda a: np.repeat(a, 2, 0)),
    "reshape": (lambda x: fb.reshape(x, [3, 2]), lambda a: a.reshape(3, 2)),
    "reverse": (lambda x: fb.reverse(x, [1]), lambda a: a[:, ::-1]),
    "slice": (lambda x: fb.slice(x, [0, 1], [2, 2]), lambda a: a[:, 1:]),
    "split": (lambda x: fb.split(x, 3, 1)[1], lambda a: a[:, 1:2]),
    "squeeze": (lambda x: fb.squeeze(x[:1]), lambda a: a[0]),
    "stack": (lambda x: fb.stack([x, x]), lambda a: np.stack([a, a])),
    "steps": (lambda x: x[::-1, ::2], lambda a: a[::-1, ::2]),
    "transpose": (fb.transpose, lambda a: a.T),
    "unstack": (lambda x: fb.unstack(x)[1], lambda a: a[1]),
}


PUT_ZEROS = {"band", "diagonal", "diagonal part", "patches", "set diagonal", "zeros"}


@SMALL
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, dtype: fb.DType) -> None:
    move, expected = MOVES[name]
    x = fb.placeholder(dtype, [2, 3])
    if name in PUT_ZEROS and dtype is fb.float8_e8m0fnu:
        with pytest.raises(fb.errors.InvalidTypeError, match="float8_e8m0fnu"):
            move(x)
        return
    y = move(x)
    assert y.dtype is dtype
    given = values(dtype)
    with fb.Session() as sess:
        for _ in range(2):
            same(sess.run(y, {x: given}), np.array(expected(given), order="C"))
        shape, size, rank = sess.run([fb.shape(x), fb.size(x), fb.rank(x)], {x: given})
    assert (shape.tolist(), size, rank) == ([2, 3], 6, 2)


# Casting


@SMALL
@pytest.mark.parametrize("source", [*fb.FLOATS, *fb.INTS, fb.bool], ids=str)
def test_casts_are_those_of_ml_dtypes(source: fb.DType, dtype: fb.DType) -> None:
    numbers = [0, 1, 2, 3, 7, 12, 100] + ([] if source.name[0] in "ub" else [-1, -3, -8])
    given = np.array(numbers).astype(source.numpy)
    if source.is_floating:
        given = np.concatenate([given, np.array([0.3, 2.5, 1e4]).astype(source.numpy)])
    with np.errstate(all="ignore"):
        wanted = given.astype(dtype.numpy)
        back = wanted.astype(source.numpy)
    x = fb.placeholder(source, [None])
    y = fb.cast(x, dtype)
    assert y.dtype is dtype
    with fb.Session() as sess:
        for _ in range(2):
            found, returned = sess.run([y, fb.cast(y, source)], {x: given})
            same(found, wanted)
            is_number = ~np.isnan(wanted.astype(np.float32))
            if not source.is_floating:
                is_number &= np.isfinite(wanted.astype(np.float32))
            assert returned[is_number].tolist() == back[is_number].tolist()


@SMALL
@pytest.mark.parametrize("source", fb.SMALL, ids=str)
def test_casts_among_them(source: fb.DType, dtype: fb.DType) -> None:
    given = values(source)
    wide = given.astype(np.float32 if source in fb.SMALL_FLOATS else np.int8)
    with np.errstate(all="ignore"):
        same(evaluate(fb.cast(fb.constant(given), dtype)), wide.astype(dtype.numpy))


def test_casts_from_complex_and_to_bool() -> None:
    assert evaluate(fb.cast([1 + 2j, 0j], fb.int4)).tolist() == [1, 0]
    for dtype in (fb.int2, fb.float8_e5m2):
        assert evaluate(fb.cast(fb.constant([1, 0], dtype), fb.bool)).tolist() == [True, False]


def test_bits_of_eight_are_read_and_fewer_refused() -> None:
    read = fb.bitcast(np.array([127, 128], np.uint8), fb.float8_e8m0fnu)
    assert evaluate(read).tolist() == [1, 2]
    ones = fb.constant(np.ones(2, fb.float8_e4m3fn.numpy))
    assert evaluate(fb.bitcast(ones, fb.uint8)).tolist() == [56, 56]
    with pytest.raises(fb.errors.InvalidTypeError, match="int4 is no number of whole bytes"):
        fb.bitcast(np.array([1], np.uint8), fb.int4)


# What is refused


@SMALL
def test_arithmetic_is_refused_with_a_hint(dtype: fb.DType) -> None:
    x = fb.placeholder(dtype, [2], name="x")
    wanted = "int32" if dtype in SMALL_INTS else "float32"
    for compute in (lambda: x + x, lambda: x * 2, lambda: fb.equal(x, x), lambda: fb.reduce_sum(x)):
        with pytest.raises(fb.errors.InvalidTypeError, match=dtype.name) as caught:
            compute()
        assert f"fb.cast(x, fb.{wanted})" in str(caught.value)
    with pytest.raises(fb.errors.InvalidTypeError, match=dtype.name) as caught:
        fb.sqrt(x)
    assert "fb.cast(x, fb.float32)" in str(caught.value)


@SMALL
def test_no_gradient_flows_through_them(dtype: fb.DType) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = fb.reduce_sum(fb.cast(fb.cast(x, dtype), fb.float32))
    assert fb.gradients(y, x) == [None]
