"""`fb.sparse` against the same functions of dense arrays; its gradients; what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.registry import op_definitions
from tests.interpreter import evaluate

INDICES = np.array([[0, 1], [0, 3], [2, 0], [2, 2]])
VALUES = np.array([0.5, -1.5, 2.0, 3.0])
OTHER_INDICES = np.array([[0, 0], [0, 3], [1, 1], [2, 2]])
OTHER_VALUES = np.array([1.5, 2.5, -4.0, 1.0])
SHAPE = np.array([3, 4])
LINE = np.array([[1.0, 2.0, 3.0, 4.0]])


def dense_of(indices, values, shape=SHAPE):
    result = np.zeros(tuple(shape))
    np.add.at(result, tuple(indices.T), values)
    return result


def elements(dense):
    """The sparse value of a tensor whose every element but zero is there."""
    return np.argwhere(dense), dense[np.nonzero(dense)], dense.shape


def at(dense, other, result):
    """The sparse value of a result that has elements wherever one of two has."""
    found = (dense != 0) | (other != 0)
    return np.argwhere(found), result[found], dense.shape


def softmax(x):
    powers = np.where(x != 0, np.exp(x), 0)
    total = powers.sum(axis=1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


# By name: a function of the module and of sparse tensors, which TensorFlow's module takes as well,
# and the same for dense arrays, giving indices, values and dense shapes.
ONE = {
    "reorder": (lambda s, x: s.reorder(x), elements),
    "transpose": (lambda s, x: s.transpose(x), lambda d: elements(d.T)),
    "transpose by perm": (lambda s, x: s.transpose(x, [0, 1]), elements),
    "reshape": (
        lambda s, x: s.reshape(s.reorder(x), [2, -1, 3]),
        lambda d: elements(d.reshape(2, 2, 3)),
    ),
    "slice": (
        lambda s, x: s.slice(s.reorder(x), [0, 1], [9, 2]),
        lambda d: elements(d[:9, 1:3]),
    ),
    "split": (
        lambda s, x: s.split(sp_input=s.reorder(x), num_split=3, axis=1),
        lambda d: (*elements(d[:, :2]), *elements(d[:, 2:3]), *elements(d[:, 3:])),
    ),
    "expand_dims": (
        lambda s, x: s.expand_dims(s.reorder(x), 1),
        lambda d: elements(d[:, None]),
    ),
    "expand_dims last": (
        lambda s, x: s.expand_dims(s.reorder(x)),
        lambda d: elements(d[..., None]),
    ),
    "retain": (
        lambda s, x: s.retain(s.reorder(x), np.array([True, False, True, True])),
        lambda d: elements(np.where(d == -1.5, 0, d)),
    ),
    "fill_empty_rows": (
        lambda s, x: [*s.fill_empty_rows(s.reorder(x), np.float64(7.0))],
        lambda d: (*elements(d + [[0.0], [7.0], [0.0]] * (np.arange(4) == 0)), ~d.any(axis=1)),
    ),
    "reset_shape": (lambda s, x: s.reset_shape(s.reorder(x)), lambda d: elements(d[:3, :4])),
    "reset_shape to": (
        lambda s, x: s.reset_shape(s.reorder(x), [5, 4]),
        lambda d: elements(np.pad(d, [(0, 2), (0, 0)])),
    ),
    "softmax": (lambda s, x: s.softmax(s.reorder(x)), lambda d: elements(softmax(d))),
    "reduce_sum": (lambda s, x: s.reduce_sum(x, 1), lambda d: (d.sum(1),)),
    "reduce_sum keepdims": (
        lambda s, x: s.reduce_sum(x, axis=[-2], keepdims=True),
        lambda d: (d.sum(0, keepdims=True),),
    ),
    "reduce_sum all": (lambda s, x: s.reduce_sum(x), lambda d: (d.sum(),)),
    "reduce_sum all keepdims": (
        lambda s, x: s.reduce_sum(x, keepdims=True),
        lambda d: (d.sum(keepdims=True),),
    ),
    "reduce_max": (
        lambda s, x: s.reduce_max(s.reorder(x), axis=0),
        lambda d: (np.where(d.any(0), np.where(d == 0, -np.inf, d).max(0), 0),),
    ),
    "reduce_max all": (
        lambda s, x: s.reduce_max(s.reorder(x), keepdims=True),
        lambda d: (np.where(d == 0, -np.inf, d).max(keepdims=True),),
    ),
    "reduce_sum_sparse": (
        lambda s, x: s.reduce_sum_sparse(x, 1),
        lambda d: elements(d.sum(1)),
    ),
    "reduce_sum_sparse keepdims": (
        lambda s, x: s.reduce_sum_sparse(x, axis=[-2], keepdims=True),
        lambda d: elements(d.sum(0, keepdims=True)),
    ),
    "reduce_sum_sparse all": (
        lambda s, x: s.reduce_sum_sparse(x),
        lambda d: (np.zeros((1, 0)), d.sum()[None], np.zeros(0)),
    ),
    "reduce_max_sparse": (
        lambda s, x: s.reduce_max_sparse(s.reorder(x), axis=0),
        lambda d: elements(np.where(d.any(0), np.where(d == 0, -np.inf, d).max(0), 0)),
    ),
    "multiplied": (lambda s, x: s.reorder(x) * LINE, lambda d: elements(d * LINE)),
    "divided": (
        lambda s, x: s.reorder(x) / LINE[:, :3].T,
        lambda d: elements(d / LINE[:, :3].T),
    ),
    "to_dense": (lambda s, x: s.to_dense(s.reorder(x)), lambda d: (d,)),
    "to_dense default": (
        lambda s, x: s.to_dense(s.reorder(x), np.float64(9.0)),
        lambda d: (np.where(d == 0, 9.0, d),),
    ),
    "matmul": (
        lambda s, x: s.sparse_dense_matmul(x, np.eye(4, 2) + 1),
        lambda d: (d @ (np.eye(4, 2) + 1),),
    ),
}
TWO = {
    "add": (lambda s, x, y: s.add(x, y), lambda d, e: at(d, e, d + e)),
    "add from a threshold": (
        lambda s, x, y: s.add(x, y, np.float64(2.5)),
        lambda d, e: elements(np.where((d * e != 0) & (abs(d + e) < 2.5), 0, d + e)),
    ),
    "maximum": (lambda s, x, y: s.maximum(x, y), lambda d, e: at(d, e, np.maximum(d, e))),
    "minimum": (lambda s, x, y: s.minimum(x, y), lambda d, e: at(d, e, np.minimum(d, e))),
    "concat": (
        lambda s, x, y: s.concat(1, [x, y]),
        lambda d, e: elements(np.concatenate([d, e], 1)),
    ),
    "concat three": (
        lambda s, x, y: s.concat(-2, [x, y, x]),
        lambda d, e: elements(np.concatenate([d, e, d], 0)),
    ),
}
EACH = pytest.mark.parametrize("name", [*ONE, *TWO])


def function_of(name):
    """The functions of a row, of two sparse tensors each."""
    if name in TWO:
        return TWO[name]
    of_sparse, of_dense = ONE[name]
    return lambda s, x, y: of_sparse(s, x), lambda d, e: of_dense(d)


def flat(x):
    """The tensors of a sparse tensor, or of a list or tuple of some."""
    if isinstance(x, list | tuple):
        return [part for item in x for part in flat(item)]
    return [x.indices, x.values, x.dense_shape] if isinstance(x, fb.SparseTensor) else [x]


def built(name, known=True, dtype=fb.float64, turned=False):
    """A row's outputs, the tensors of the values, and feeds."""
    shape = [3, 4] if known else None if name not in NEED_RANK else [None, None]
    x, y = (fb.sparse.placeholder(dtype, shape, name=n) for n in "xy")
    place = [2, 0, 3, 1] if turned and name not in ("add", "maximum", "minimum") else [0, 1, 2, 3]
    feeds = {
        x.indices: INDICES[place],
        x.values: VALUES[place].astype(dtype.numpy),
        x.dense_shape: SHAPE,
        y.indices: OTHER_INDICES,
        y.values: OTHER_VALUES.astype(dtype.numpy),
        y.dense_shape: SHAPE,
    }
    return flat(function_of(name)[0](fb.sparse, x, y)), [x.values, y.values], feeds


# Counting dimensions from the last, or one by one, needs to know how many there are.
NEED_RANK = {
    "split",
    "expand_dims",
    "expand_dims last",
    "reduce_sum",
    "reduce_sum keepdims",
    "reduce_max",
    "reduce_sum_sparse",
    "reduce_sum_sparse keepdims",
    "reduce_sum_sparse all",
    "reduce_max_sparse",
    "transpose",
}


@EACH
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("turned", [False, True], ids=["in order", "any order"])
def test_values_are_those_of_dense_arrays(name, known, turned):
    if turned and name.startswith(("multiplied", "divided")):
        return
    outputs, _, feeds = built(name, known, turned=turned)
    expected = function_of(name)[1](
        dense_of(INDICES, VALUES), dense_of(OTHER_INDICES, OTHER_VALUES)
    )
    with fb.Session() as sess:
        for _ in range(2):
            results = sess.run(outputs, feeds)
            for output, result, wanted in zip(outputs, results, expected, strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-12)
                assert result.dtype == output.dtype.numpy
                assert output.shape.is_compatible_with(result.shape)


@EACH
def test_gradients_reach_the_values(name):
    outputs, values, feeds = built(name)
    floats = [o for o in outputs if o.dtype.is_floating]
    loss = fb.add_n([fb.reduce_sum(fb.square(o) + fb.sin(o)) for o in floats])
    found = [g for g in fb.gradients(loss, values) if g is not None]
    assert len(found) == 1 + (name in TWO)
    for x, gradient in zip(values, found, strict=False):
        assert isinstance(gradient, fb.Tensor)
        exact = evaluate(gradient, feeds)
        for place in range(4):
            step = 1e-6 * (np.arange(4) == place)
            ends = [evaluate(loss, {**feeds, x: feeds[x] + s * step}) for s in (1, -1)]
            assert exact[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-7)


@EACH
@pytest.mark.parametrize("dtype", [fb.float16, fb.float32], ids=str)
def test_dtypes_stay(name, dtype):
    outputs, _, feeds = built(name, dtype=dtype)
    for value, output in zip(evaluate(outputs, feeds), outputs, strict=True):
        assert value.dtype == output.dtype.numpy


SHAPES = {
    "reorder": [3, 4],
    "transpose": [4, 3],
    "reshape": [2, 2, 3],
    "slice": [3, 2],
    "expand_dims": [3, 1, 4],
    "reset_shape to": [5, 4],
    "softmax": [3, 4],
    "add": [3, 4],
    "maximum": [3, 4],
    "concat": [3, 8],
    "concat three": [9, 4],
}


@pytest.mark.parametrize("name", SHAPES)
def test_dense_shapes_are_known_where_they_can_be(name):
    x, y = fb.sparse.placeholder(fb.float64, [3, 4]), fb.sparse.placeholder(fb.float64, [3, 4])
    assert function_of(name)[0](fb.sparse, x, y).shape == SHAPES[name]


def test_parts_of_dense_shapes_are_known():
    x = fb.sparse.placeholder(fb.float32, [None, 4])
    assert x.shape == [None, 4]
    assert fb.sparse.to_dense(x).shape == [None, 4]
    assert fb.sparse.reduce_sum(x, 0).shape == [4]
    assert fb.sparse.reduce_sum(x, 0, keepdims=True).shape == [1, 4]
    assert fb.sparse.concat(0, [x, x]).shape == [None, 4]
    assert [p.shape for p in fb.sparse.split(fb.sparse.eye(3, 5), 2, 1)] == [[3, 3], [3, 2]]


# Other dtypes


def test_strings_and_bools_are_arranged_and_made_dense():
    for values, empty in (([b"a", b"b", b"c", b"d"], b""), ([True, True, True, True], False)):
        x = fb.SparseTensor(INDICES[::-1], values[::-1], SHAPE)
        dense = fb.sparse.to_dense(fb.sparse.reorder(x))
        back = fb.sparse.from_dense(dense)
        whole, again = evaluate(dense), evaluate(back.values)
        assert whole.tolist()[1] == [empty] * 4
        assert [whole[tuple(i)] for i in INDICES] == values
        assert again.tolist() == values


def test_eye():
    x = fb.sparse.eye(2, 3, dtype=fb.int32)
    assert repr(x) == "<SparseTensor shape=[2, 3] dtype=int32>"
    assert evaluate(fb.sparse.to_dense(x)).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_to_indicator():
    sets = fb.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 5]], [3, 1, 0, 3], [3, 9])
    found = evaluate(fb.sparse.to_indicator(sets, 4))
    assert found.astype(int).tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]]
    with pytest.raises(fb.errors.InvalidIndexError, match=r"indices\[0\] is \[0, 3\]"):
        evaluate(fb.sparse.to_indicator(sets, 3))


def test_mask():
    rows = fb.IndexedSlices(
        fb.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        fb.constant([4, 0, 7]),
        fb.constant([9, 2]),
    )
    kept = fb.sparse.mask(rows, [0, 1])
    with fb.Session() as sess:
        value = sess.run(kept)
    assert value.indices.tolist() == [4, 7]
    assert value.values.tolist() == [[1.0, 2.0], [5.0, 6.0]]


def test_functions_of_the_elements():
    x = fb.SparseTensor(INDICES, VALUES, SHAPE)
    doubled = fb.sparse.map_values(fb.multiply, x, y=2.0)
    for found, wanted in (
        (-x, -VALUES),
        (doubled, 2 * VALUES),
        (fb.sparse.map_values(fb.cast, x, fb.int32), VALUES.astype(np.int32)),
        (fb.sparse.map_values(fb.subtract, doubled, x), VALUES),
        (fb.sparse.map_values(lambda a, b: fb.exp(b), 1.0, b=x), np.exp(VALUES)),
    ):
        indices, values, shape = evaluate([found.indices, found.values, found.dense_shape])
        np.testing.assert_array_equal(indices, INDICES)
        np.testing.assert_allclose(values, wanted, rtol=1e-15)
        assert values.dtype == wanted.dtype
        np.testing.assert_array_equal(shape, SHAPE)
    [slope] = fb.gradients(fb.sparse.map_values(fb.square, x).values, x.values)
    np.testing.assert_allclose(evaluate(slope), 2 * VALUES)
    other = fb.SparseTensor(OTHER_INDICES, OTHER_VALUES, SHAPE)
    for call, match in (
        (lambda: fb.sparse.map_values(fb.add, x, other), "indices of their own"),
        (lambda: fb.sparse.map_values(fb.abs, VALUES), "no sparse tensor"),
        (lambda: fb.sparse.map_values(fb.reduce_sum, x), "'values' has the shape"),
        (lambda: fb.exp(x), r"fb.sparse.map_values\(function, x\)"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=match):
            call()


KEEP_ZEROS = [d for d in op_definitions().values() if d.is_builtin and d.keeps_zeros]


@pytest.mark.parametrize("op_def", KEEP_ZEROS, ids=lambda d: d.type)
def test_functions_that_keep_zeros_take_sparse_tensors(op_def):
    [variable] = op_def.type_variables.values()
    for dtype in (fb.float64, fb.complex128):
        if dtype not in variable:
            continue
        given = {
            name: fb.float64
            for name, default in op_def.attributes.items()
            if default is fb.REQUIRED
        }
        x = fb.sparse.placeholder(dtype, [3, 4])
        feeds = {x: (INDICES, (VALUES / 4).astype(dtype.numpy), SHAPE)}
        found = op_def(x, **given)
        assert found.shape == [3, 4]
        with fb.Session() as sess:
            whole, wanted = sess.run(
                [fb.sparse.to_dense(found), op_def(fb.sparse.to_dense(x), **given)], feeds
            )
            zero = sess.run(op_def(fb.zeros([2], dtype), **given))
        np.testing.assert_array_equal(whole, wanted)
        np.testing.assert_array_equal(zero, 0)


def test_public_functions_of_one_argument_take_sparse_tensors():
    x = fb.sparse.placeholder(fb.float64, [3, 4])
    feeds = {x: (INDICES, VALUES, SHAPE)}
    whole = dense_of(INDICES, VALUES)
    with fb.Session() as sess:
        for found, wanted in (
            (abs(x), abs(whole)),
            (fb.abs(x=x), abs(whole)),
            (fb.abs(fb.sparse.map_values(fb.complex, x, x)), abs(whole + 1j * whole)),
            (fb.round(x), np.round(whole)),
            (fb.round(fb.cast(x, fb.int32)), whole.astype(np.int32)),
            (fb.identity(x, name="same"), whole),
            (fb.negative(fb.square(x)), -(whole**2)),
        ):
            assert isinstance(found, fb.SparseTensor)
            result = sess.run(fb.sparse.to_dense(found), feeds)
            np.testing.assert_allclose(result, wanted, rtol=1e-15)
    assert fb.get_default_graph().get_operation_by_name("same").type == "Identity"
    [slope] = fb.gradients(fb.square(x).values, x.values)
    np.testing.assert_array_equal(evaluate(slope, {x.values: VALUES}), 2 * VALUES)


def test_shape_size_and_rank_are_of_the_whole():
    known = fb.SparseTensor(INDICES, VALUES, SHAPE)
    value = fb.SparseTensorValue(INDICES, VALUES, SHAPE)
    unknown = fb.sparse.placeholder(fb.float64)
    feeds = {unknown: value}
    with fb.Session() as sess:
        for x in (known, value, unknown):
            shape, size, rank = fb.shape(x, fb.int64), fb.size(x), fb.rank(x, name="r")
            assert [t.dtype for t in (shape, size, rank)] == [fb.int64, fb.int32, fb.int32]
            found = sess.run([shape, size, rank], feeds)
            assert [v.tolist() for v in found] == [[3, 4], 12, 2]
    assert fb.zeros(fb.shape(known)).shape == [3, 4]
    nothing = fb.SparseTensor(np.zeros((1, 0), np.int64), [5.0], np.zeros(0, np.int64))
    assert [evaluate(f(nothing)).tolist() for f in (fb.shape, fb.size, fb.rank)] == [[], 1, 0]


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_products_of_complex_matrices(adjoint_a, adjoint_b):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
    product = fb.sparse.sparse_dense_matmul(fb.sparse.from_dense(a), b, adjoint_a, adjoint_b)
    wanted = (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)
    np.testing.assert_allclose(evaluate(product), wanted)


def test_addition_to_a_dense_tensor_in_either_order():
    x, dense = fb.sparse.eye(2), np.ones((2, 2), np.float32)
    for total in (fb.sparse.add(x, dense), fb.sparse.add(dense, x)):
        assert evaluate(total).tolist() == [[2.0, 1.0], [1.0, 2.0]]


def test_products_with_dense_tensors_stay_sparse():
    x = fb.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    values = np.array([[5, 6], [7, 8]], np.float32)
    for dense in (values, fb.constant(values), fb.Variable(values)):
        for product in (x * dense, dense * x):
            assert isinstance(product, fb.SparseTensor)
            assert evaluate(product.values).tolist() == [12.0, 21.0]


def test_dense_shapes_beyond_int64_need_no_memory():
    n = 2**62
    x = fb.SparseTensor([[n - 1, 3], [5, n - 1]], [1.0, 2.0], [n, n])
    y = fb.sparse.reorder(fb.sparse.add(fb.sparse.transpose(x), x))
    with fb.Session() as sess:
        value = sess.run(fb.sparse.slice(y, [5, n - 1], [1, 1]))
    assert value.values.tolist() == [2.0]
    assert value.indices.tolist() == [[0, 0]]


def test_segments():
    data = fb.placeholder(fb.float64, [None, 2])
    rows = np.arange(8.0).reshape(4, 2)
    feeds = {data: rows}
    indices, ids = [3, 0, 1], [0, 0, 2]
    total = fb.sparse_segment_sum(data, indices, ids)
    mean = fb.sparse_segment_mean(data, indices, ids, 4)
    root = fb.sparse_segment_sqrt_n(data, indices, ids)
    assert total.shape == [3, 2]
    assert mean.shape == [4, 2]
    np.testing.assert_allclose(evaluate(total, feeds), [rows[3] + rows[0], [0, 0], rows[1]])
    np.testing.assert_allclose(evaluate(mean, feeds)[0], (rows[3] + rows[0]) / 2)
    np.testing.assert_allclose(evaluate(root, feeds)[0], (rows[3] + rows[0]) / np.sqrt(2))
    [gradient] = fb.gradients(fb.reduce_sum(mean), data)
    assert isinstance(gradient, fb.IndexedSlices)
    expected = [[0.5, 0.5], [1, 1], [0, 0], [0.5, 0.5]]
    np.testing.assert_allclose(evaluate(gradient.as_tensor(), feeds), expected)


def test_as_many_segments_as_the_last_id_says():
    ids = fb.placeholder(fb.int32, [None])
    total = fb.sparse_segment_sum([[1.0], [2.0]], fb.zeros_like(ids), ids)
    assert evaluate(total, {ids: np.array([0, 2], np.int32)}).tolist() == [[1.0], [0.0], [1.0]]
    assert evaluate(total, {ids: np.array([], np.int32)}).shape == (0, 1)


# What is refused

ERRORS = {
    "no sparse tensor": (lambda x: fb.sparse.reorder(3.0), "a SparseTensor is wanted, not 3.0"),
    "indices": (lambda x: fb.SparseTensor([0, 1], [1.0], [2]), r"\[n, r\], not \[2\]"),
    "kind": (lambda x: fb.SparseTensor([[0.5]], [1.0], [2]), "where int64 is wanted"),
    "count": (lambda x: fb.SparseTensor([[0]], [1.0, 2.0], [2]), "1 index cannot go with 2 values"),
    "rank": (lambda x: fb.SparseTensor([[0]], [1.0], [2, 2]), "1 numbers.* 2 dimensions"),
    "as a tensor": (lambda x: fb.add(x, 1.0), "stands where a dense tensor is wanted"),
    "convert": (fb.convert_to_tensor, "fb.sparse.to_dense"),
    "constant": (fb.constant, "fb.sparse.to_dense"),
    "differentiate by": (lambda x: fb.gradients(x.values, x), "x.values"),
    "perm": (lambda x: fb.sparse.transpose(x, [0, 0]), "names a dimension twice"),
    "perm's length": (lambda x: fb.sparse.transpose(x, [0]), "does not permute 2 dimensions"),
    "size": (lambda x: fb.sparse.reshape(x, [5, 5]), r"12 elements .* do not fit \[5, 5\]"),
    "two unknown": (lambda x: fb.sparse.reshape(x, [-1, -1]), "more than one -1"),
    "start": (lambda x: fb.sparse.slice(x, [-1, 0], [1, 1]), "not negative"),
    "start's length": (lambda x: fb.sparse.slice(x, [0], [1]), "1 numbers for 2 dimensions"),
    "parts": (lambda x: fb.sparse.split(x, 5, 1), "length 4 cannot be split into 5"),
    "nothing": (lambda x: fb.sparse.concat(0, []), "nothing to put together"),
    "no list": (lambda x: fb.sparse.concat(0, x), "a list of sparse tensors"),
    "ranks": (lambda x: fb.sparse.concat(0, [x, fb.sparse.expand_dims(x)]), "differ in rank"),
    "other dims": (lambda x: fb.sparse.concat(0, [x, fb.sparse.eye(5)]), "differ in dimension 1"),
    "shapes": (lambda x: fb.sparse.add(x, fb.sparse.eye(3)), "do not go together"),
    "dtypes": (
        lambda x: fb.sparse.add(x, fb.sparse.eye(3, 4, fb.int32)),
        "float32, but b is int32",
    ),
    "no broadcast": (lambda x: x * np.ones((2, 3, 4), np.float32), "does not broadcast"),
    "dense sum": (lambda x: fb.sparse.add(x, np.ones(4, np.float32)), "do not broadcast"),
    "smaller": (lambda x: fb.sparse.reset_shape(x, [3, 3]), "smaller .* in dimension 1"),
    "inner": (lambda x: fb.sparse.sparse_dense_matmul(x, np.ones((3, 2), np.float32)), "inner dim"),
    "axis": (lambda x: fb.sparse.reduce_sum(x, 2), "axis 2 is out of range"),
    "mask": (lambda x: fb.sparse.mask(x, [0]), "fb.sparse.retain"),
    "as many bools": (lambda x: fb.sparse.retain(x, [True] * 3), "bools of shape"),
    "means of ints": (lambda x: fb.sparse_segment_mean([[1]], [0], [0]), "floating-point"),
    "old name": (lambda x: fb.sparse_placeholder, "fb.sparse.placeholder"),
}


@pytest.mark.parametrize(("call", "match"), ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_is_refused_at_construction(call, match):
    x = fb.SparseTensor(INDICES, VALUES.astype(np.float32), SHAPE)
    with pytest.raises((fb.errors.InvalidArgumentError, AttributeError), match=match) as caught:
        call(x)
    if isinstance(caught.value, fb.errors.OpError) and match not in ("fb.sparse.to_dense",):
        assert "test_sparse.py, line" in str(caught.value)


IN_RUNS = {
    "index": (
        lambda x: fb.sparse.reorder(x).values,
        ([[9, 9]], [1.0], [3, 4]),
        r"\[9, 9\], which lies",
    ),
    "order": (
        lambda x: fb.sparse.to_dense(x),
        ([[1, 0], [0, 0]], [1.0, 2.0], [3, 4]),
        r"indices\[1\] is \[0, 0\], which comes after \[1, 0\]",
    ),
    "twice": (
        lambda x: fb.sparse.to_dense(x),
        ([[1, 0], [1, 0]], [1.0, 2.0], [3, 4]),
        r"indices\[1\] is \[1, 0\], which comes twice",
    ),
    "negative": (lambda x: fb.sparse.to_dense(x), ([[0, 0]], [1.0], [-3, 4]), "negative dimension"),
    "size": (lambda x: fb.sparse.reshape(x, [5]).indices, ([[0, 0]], [1.0], [3, 4]), "do not fit"),
    "shapes": (
        lambda x: fb.sparse.add(x, fb.sparse.eye(2)).values,
        ([[0, 0]], [1.0], [3, 4]),
        "do not go together",
    ),
    "dense": (
        lambda x: fb.sparse.add(x, fb.zeros([2, 2])),
        ([[0, 0]], [1.0], [3, 4]),
        "do not go together",
    ),
    "inner": (
        lambda x: fb.sparse.sparse_dense_matmul(x, fb.zeros([2, 2])),
        ([[0, 0]], [1.0], [3, 4]),
        "inner dimensions differ",
    ),
    "segment ids": (
        lambda x: fb.sparse_segment_sum(fb.zeros([9, 1]), [0, 1], x.indices[0]),
        ([[3, 1]], [1.0], [3, 4]),
        "segment ids are in order, but 1 at 1 comes after 3",
    ),
}


@pytest.mark.parametrize(("call", "value", "match"), IN_RUNS.values(), ids=IN_RUNS)
def test_what_only_the_run_sees_is_refused_there(call, value, match):
    x = fb.sparse.placeholder(fb.float32)
    indices, values, shape = value
    feeds = {x.indices: indices, x.values: values, x.dense_shape: shape}
    with fb.Session() as sess:
        for _ in range(2):
            with pytest.raises((IndexError, ValueError), match=match) as caught:
                sess.run(call(x), feeds)
            assert isinstance(caught.value, fb.errors.OpError)
            assert "test_sparse.py, line" in str(caught.value)


# Elsewhere


def test_networks_take_and_give_sparse_tensors():
    ids = fb.sparse.placeholder(fb.int64, [None, None], name="ids")
    table = fb.Variable(np.arange(8.0).reshape(4, 2), name="table")
    means = fb.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    logits = fb.placeholder(fb.float32, [None, 2, 3])
    [decoded], _ = fb.nn.ctc_greedy_decoder(logits, [4, 4])
    text = fb.sparse.to_dense(decoded, default_value=-1)
    with fb.Session() as sess:
        fed = ([[0, 0], [0, 1], [1, 0]], [3, 1, 0], [2, 2])
        assert sess.run(means, {ids: fed}).tolist() == [[4.0, 5.0], [0.0, 1.0]]
        steps = np.eye(3, dtype=np.float32)[[[0, 1], [0, 2], [2, 2], [1, 0]]]
        assert sess.run(text, {logits: steps}).tolist() == [[0, 1], [1, 0]]
        assert isinstance(sess.run(decoded, {logits: steps}), fb.SparseTensorValue)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 1], [-1, 0], []])
@pytest.mark.parametrize("type", ["sum", "max"])
def test_reductions_where_only_the_run_knows_the_rank(type, axis, keepdims) -> None:
    known = fb.SparseTensor(INDICES, VALUES, SHAPE)
    unknown = fb.sparse.placeholder(fb.float64)
    fed = fb.SparseTensorValue(INDICES, VALUES, SHAPE)
    dense, sparse = (
        getattr(fb.sparse, name) for name in (f"reduce_{type}", f"reduce_{type}_sparse")
    )
    with fb.Session() as sess:
        expected = sess.run(dense(known, axis, keepdims))
        found = dense(unknown, axis, keepdims)
        np.testing.assert_array_equal(sess.run(found, {unknown: fed}), expected)
        [slope] = fb.gradients(found * found, unknown.values)
        [wanted] = fb.gradients(dense(known, axis, keepdims) ** 2.0, known.values)
        np.testing.assert_array_equal(sess.run(slope, {unknown: fed}), sess.run(wanted))
        parts = sess.run(sparse(known, axis, keepdims))
        for part, value in zip(
            sess.run(sparse(unknown, axis, keepdims), {unknown: fed}), parts, strict=True
        ):
            assert part.shape == value.shape
            np.testing.assert_array_equal(part, value)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_the_run_does_not_find(axis) -> None:
    x = fb.sparse.placeholder(fb.float64)
    fed = fb.SparseTensorValue(INDICES, VALUES, SHAPE)
    with fb.Session() as sess:
        for reduced in (fb.sparse.reduce_sum(x, axis), fb.sparse.reduce_max_sparse(x, axis)):
            with pytest.raises(fb.errors.InvalidIndexError, match="outside the shape"):
                sess.run(reduced, {x: fed})
