"""Sparse tensors, IndexedSlices and tuples are fed and fetched whole."""

from collections import namedtuple

import numpy as np
import pytest
import scipy.sparse

import flowbook as fb

INDICES = np.array([[0, 2], [1, 1]])
VALUES = np.array([5.0, 7.0], np.float32)
SHAPE = np.array([2, 3])
VALUE = fb.SparseTensorValue(INDICES, VALUES, SHAPE)
DENSE = [[0.0, 0.0, 5.0], [0.0, 7.0, 0.0]]


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


@pytest.fixture
def x():
    return fb.sparse.placeholder(fb.float32, [None, 3], name="x")


def same(found, wanted):
    assert type(found) is type(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def slices():
    return fb.IndexedSlices(
        fb.placeholder(fb.float32, [None, 2], name="rows"),
        fb.placeholder(fb.int32, [None], name="indices"),
        fb.constant([4, 2], name="shape"),
    )


# Sparse tensors


def test_a_fed_sparse_tensor_is_fetched_as_it_was_fed(sess, x):
    for _ in range(3):
        same(sess.run(x, {x: VALUE}), VALUE)


@pytest.mark.parametrize(
    "value",
    [
        VALUE,
        tuple(VALUE),
        list(VALUE),
        ([[0, 2], [1, 1]], [5, 7], (2, 3)),
        (INDICES.astype(np.int32), VALUES.astype(np.float64), SHAPE.astype(np.uint8)),
    ],
)
def test_three_arrays_are_a_value(sess, x, value):
    dense = fb.sparse.to_dense(x)
    for _ in range(3):
        assert sess.run(dense, {x: value}).tolist() == DENSE


def test_sparse_tensors_stand_anywhere_in_fetches(sess, x):
    doubled = x * 2.0
    for _ in range(3):
        found = sess.run({"a": [x, doubled.values], "b": (doubled,)}, {x: VALUE})
        same(found["a"][0], VALUE)
        same(found["b"][0], fb.SparseTensorValue(INDICES, VALUES * 2, SHAPE))


def test_dense_and_sparse_feeds_go_together(sess, x):
    y = fb.placeholder(fb.float32, [3])
    product = fb.sparse.to_dense(x * y)
    for _ in range(2):
        assert sess.run(product, {y: [1.0, 2.0, 3.0], x: VALUE}).tolist() == [
            [0.0, 0.0, 15.0],
            [0.0, 14.0, 0.0],
        ]


def test_any_sparse_tensor_may_be_fed(sess):
    x = fb.sparse.from_dense([[1.0, 0.0, 2.0]])
    total = fb.reduce_sum(x.values)
    assert sess.run(total) == 3.0
    assert sess.run(total, {x: ([[0, 1]], [9.0], [1, 3])}) == 9.0


def test_its_tensors_may_be_fed_one_by_one(sess, x):
    feeds = {x.indices: INDICES, "x/values:0": VALUES, x.dense_shape: SHAPE}
    assert sess.run(fb.sparse.to_dense(x), feeds).tolist() == DENSE


@pytest.mark.parametrize("dtype", [fb.string, fb.bool, fb.int64, fb.complex64])
def test_every_dtype(sess, dtype):
    x = fb.sparse.placeholder(dtype)
    values = np.array([b"a", b""], object) if dtype is fb.string else np.ones(2, dtype.numpy)
    value = fb.SparseTensorValue(INDICES, values, SHAPE)
    same(sess.run(x, {x: value}), value)


def test_without_elements(sess, x):
    value = fb.SparseTensorValue(np.zeros((0, 2), int), np.zeros(0, np.float32), np.array([0, 3]))
    same(sess.run(x, {x: value}), value)


WRONG = {
    "no triple": (VALUES, "not three arrays"),
    "a dense array": ([[1.0, 2.0]], "not three arrays"),
    "slices": (fb.IndexedSlicesValue(VALUES, INDICES, SHAPE), "not three arrays"),
    "index": ((INDICES + 1, VALUES, SHAPE), r"indices\[0\] is \[1, 3\], which lies outside"),
    "negative": ((INDICES - 1, VALUES, SHAPE), r"indices\[0\] is \[-1, 1\], which lies outside"),
    "count": ((INDICES, VALUES[:1], SHAPE), "for 2 indices"),
    "rank": ((INDICES, VALUES, [2, 3, 1]), r"does not fit \[\?, 3\]"),
    "dimension": ((INDICES, VALUES, [2, 4]), r"does not fit \[\?, 3\]"),
    "negative dimension": ((INDICES, VALUES, [-2, 3]), "no dimension is negative"),
    "vector": ((INDICES[0], VALUES, SHAPE), r"indices have the shape \[2\]"),
    "scalar shape": ((INDICES, VALUES, 3), "dense_shape is a vector"),
    "kind of indices": ((INDICES + 0.5, VALUES, SHAPE), "indices: values of float64"),
    "kind of values": ((INDICES, ["a", "b"], SHAPE), "values: values of string"),
}


@pytest.mark.parametrize(("value", "match"), WRONG.values(), ids=WRONG)
def test_a_value_that_does_not_fit_is_refused(sess, x, value, match):
    dense = fb.sparse.to_dense(x)
    for call in (
        lambda: sess.run(dense, {x: value}),
        lambda: sess.make_callable(dense, [x])(value),
        lambda: sess.partial_run(dense, [x]).run(dense, {x: value}),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=match) as caught:
            call()
        assert "the value fed for <SparseTensor shape=[?, 3]" in str(caught.value)
        assert "test_compound_feeds.py, line" in str(caught.value)


def test_a_symbolic_value_is_refused(sess, x):
    with pytest.raises(fb.errors.InvalidTypeError, match="not three arrays"):
        sess.run(x, {x: x})
    with pytest.raises(fb.errors.InvalidTypeError, match="symbolic"):
        sess.run(x, {x: (x.indices, VALUES, SHAPE)})


@pytest.mark.parametrize("other", ["x/values:0", "x/values", "x/indices:0"])
def test_no_tensor_is_fed_twice(sess, x, other):
    with pytest.raises(fb.errors.InvalidArgumentError, match="fed twice"):
        sess.run(x, {x: VALUE, other: VALUES})
    with pytest.raises(fb.errors.InvalidArgumentError, match="fed twice"):
        sess.make_callable(x, [x, other])


def test_two_sparse_tensors_that_share_a_tensor_are_not_both_fed(sess, x):
    y = x * 2.0
    with pytest.raises(fb.errors.InvalidArgumentError, match="'x/indices:0' is fed twice"):
        sess.run(x, {x: VALUE, y: VALUE})


def test_a_sparse_tensor_of_another_graph_is_refused(sess):
    with fb.Graph().as_default():
        other = fb.sparse.placeholder(fb.float32)
    for call in (lambda: sess.run(other), lambda: sess.run(fb.constant(1.0), {other: VALUE})):
        with pytest.raises(fb.errors.InvalidArgumentError, match="different graphs"):
            call()


def test_an_unfed_one_is_missed_by_name(sess, x):
    with pytest.raises(fb.errors.InvalidArgumentError, match="x/indices"):
        sess.run(x)


def test_callables(sess, x):
    y = fb.placeholder(fb.float32, [])
    f = sess.make_callable([x * y, y], [y, x])
    for _ in range(3):
        found, two = f(2.0, VALUE)
        same(found, fb.SparseTensorValue(INDICES, VALUES * 2, SHAPE))
        assert two == 2.0


def test_partial_runs(sess, x):
    y = fb.placeholder(fb.float32, [], name="y")
    product, dense = x * y, fb.sparse.to_dense(x)
    step = sess.partial_run([dense, product], [y, x])
    with pytest.raises(fb.errors.InvalidArgumentError, match="not fed yet"):
        step.run(dense, {y: 2.0})
    fed = [a.copy() for a in VALUE]
    assert step.run(dense, {x: fed}).tolist() == DENSE
    fed[1][:] = 0.0
    with pytest.raises(fb.errors.InvalidArgumentError, match="already been fed"):
        step.run(product, {x: VALUE})
    same(step.run(product, {y: 2.0}), fb.SparseTensorValue(INDICES, VALUES * 2, SHAPE))


def test_a_refused_value_leaves_a_partial_run_as_it_was(sess, x):
    y = fb.placeholder(fb.float32, [], name="y")
    product = x * y
    step = sess.partial_run(product, [x, y])
    with pytest.raises(fb.errors.InvalidArgumentError, match="lies outside"):
        step.run(product, {y: 3.0, x: (INDICES + 1, VALUES, SHAPE)})
    found = step.run(product, {y: 2.0, x: VALUE})
    same(found, fb.SparseTensorValue(INDICES, VALUES * 2, SHAPE))


def test_fed_arrays_are_not_kept_or_changed(sess, x):
    fed = [a.copy() for a in VALUE]
    found = sess.run(x, {x: fed})
    for array in found:
        array[...] = 0
    same(fb.SparseTensorValue(*fed), VALUE)


# IndexedSlices


def test_slices_are_fed_and_fetched(sess):
    x = slices()
    dense = x.as_tensor()
    value = fb.IndexedSlicesValue(
        np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([3, 1], np.int32), np.array([4, 2])
    )
    for fed in (value, tuple(value), ([[1.0, 2.0], [3.0, 4.0]], [3, 1], [4, 2])):
        for _ in range(2):
            found, whole = sess.run([x, dense], {x: fed})
            assert type(found) is fb.IndexedSlicesValue
            np.testing.assert_array_equal(found.values, value.values)
            assert whole.tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]


def test_the_gradient_of_a_gather_can_be_fed(sess):
    W = fb.Variable(np.zeros([4, 2], np.float32))
    [gradient] = fb.gradients(fb.reduce_sum(fb.gather(W, [1, 2])), [W])
    update = fb.scatter_sub(W, gradient.indices, gradient.values)
    value = fb.IndexedSlicesValue(np.ones([2, 2], np.float32), np.array([3, 0]), np.array([4, 2]))
    assert sess.run(update, {gradient: value}).tolist()[3] == [-1.0, -1.0]


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (VALUE, "not three arrays"),
        (([[1.0, 2.0]], [4], [4, 2]), r"indices\[0\] is 4, which is out of range"),
        (([[1.0, 2.0]], [-1], [4, 2]), r"indices\[0\] is -1"),
        (([[1.0, 2.0]], [0, 1], [4, 2]), r"values have the shape \[1, 2\]"),
        (([[1.0, 2.0, 3.0]], [0], [4, 2]), r"values have the shape \[1, 3\]"),
        (([[1.0, 2.0]], [[0]], [4, 2]), "indices are a vector"),
        (([[1.0, 2.0]], [0], []), "a scalar has no rows"),
    ],
)
def test_slices_that_do_not_fit_are_refused(sess, value, match):
    x = slices()
    with pytest.raises(fb.errors.InvalidArgumentError, match=match):
        sess.run(x, {x: value})


def test_a_matrix_of_scipy_is_refused_with_a_way_to_feed_it(sess, x):
    matrix = scipy.sparse.csr_matrix(np.diag([1.0, 2.0]))
    with pytest.raises(fb.errors.InvalidTypeError, match="it is csr_matrix, not three") as caught:
        sess.run(x, {x: matrix})
    m = matrix.tocsr().tocoo()
    assert "np.stack([m.row, m.col], 1), m.data, m.shape" in caught.value.hint
    value = fb.SparseTensorValue(np.stack([m.row, m.col], 1), m.data, m.shape)
    fed = fb.sparse.placeholder(fb.float32, [2, 2])
    np.testing.assert_array_equal(sess.run(fb.sparse.to_dense(fed), {fed: value}), np.diag([1, 2]))


# Tuples


def test_the_state_of_a_network_is_fed_as_it_was_fetched(sess):
    c, h = fb.placeholder(fb.float32, [2], name="c"), fb.placeholder(fb.float32, [2], name="h")
    later = (c + 1.0, h * 2.0)
    state = ([1.0, 2.0], [3.0, 4.0])
    for _ in range(3):
        after = sess.run(later, {(c, h): state})
        assert [v.tolist() for v in after] == [[state[0][0] + 1, state[0][1] + 1], [6.0, 8.0]]
        state = (after[0], state[1])


def test_tuples_of_keys_nest(sess, x):
    Pair = namedtuple("Pair", "first second")
    a, b = fb.placeholder(fb.float32, [], name="a"), fb.Variable(1.0, name="b")
    keys = Pair(((a,), "a2:0"), (b, x))
    a2 = fb.placeholder(fb.float32, [], name="a2")
    fetches = [a, a2, b, fb.sparse.to_dense(x)]
    values = [[[3.0], 4.0], (5.0, VALUE)]
    first = sess.run(fetches, {keys: values})
    assert first[:3] == [3.0, 4.0, 5.0]
    assert first[3].tolist() == DENSE
    assert sess.run(b) == 1.0
    assert sess.make_callable(fetches, [keys])(values)[:3] == [3.0, 4.0, 5.0]
    step = sess.partial_run(fetches, [keys])
    assert step.run(fetches, {keys: values})[:3] == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (([1.0], [2.0], [3.0]), "with a tuple or list of 2 values, not 3"),
        (1.0, "with a tuple or list of 2 values, not 1.0"),
        (np.zeros((2, 1)), r"not array\("),
        (None, "not None"),
        ("ab", "not 'ab'"),
        (([1.0], [[2.0]]), "which does not fit"),
    ],
)
def test_a_tuple_takes_as_many_values(sess, value, message):
    a, b = fb.placeholder(fb.float32, [1]), fb.placeholder(fb.float32, [1])
    for _ in range(2):
        with pytest.raises(fb.errors.InvalidArgumentError, match=message):
            sess.run(a + b, {(a, b): value})
    assert sess.run(a + b, {(a, b): ([1.0], [2.0])}).tolist() == [3.0]


def test_what_a_tuple_feeds_is_fed_once(sess):
    a = fb.placeholder(fb.float32, [], name="a")
    for feeds in ({(a, a): (1.0, 2.0)}, {(a,): (1.0,), a: 2.0}, {("a:0", a): (1.0, 2.0)}):
        with pytest.raises(fb.errors.InvalidArgumentError, match="fed twice"):
            sess.run(a, feeds)
    with pytest.raises(fb.errors.InvalidTypeError, match="cannot be fed"):
        sess.run(a, {(a, 3): (1.0, 2.0)})
    assert sess.run(a, {(): (), a: 1.0}) == 1.0


def test_slices_without_the_shape_of_the_whole(sess):
    slices = fb.IndexedSlices(fb.placeholder(fb.float32, [None, 2]), fb.placeholder(fb.int32))
    doubled = slices * 2.0
    given = fb.IndexedSlicesValue(np.ones((3, 2), np.float32), np.array([4, 0, 4]))
    for value in (given, given[:2]):
        result = sess.run(doubled, {slices: value})
        np.testing.assert_array_equal(result.values, 2 * given.values)
        np.testing.assert_array_equal(result.indices, given.indices)
        assert result.dense_shape is None


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ((np.ones((1, 2)), [0], [3, 2]), "not two arrays"),
        ((np.ones((1, 2)), [-1]), "is out of range"),
        ((np.ones((2, 2)), [0]), "goes with 1 index\n"),
    ],
)
def test_slices_without_a_shape_that_do_not_fit(sess, value, match):
    slices = fb.IndexedSlices(fb.placeholder(fb.float32), fb.placeholder(fb.int32))
    with pytest.raises(fb.errors.InvalidArgumentError, match=match):
        sess.run(slices, {slices: value})


def test_the_whole_needs_its_shape():
    slices = fb.IndexedSlices(fb.constant([[1.0]]), fb.constant([3]))
    with pytest.raises(fb.errors.InvalidArgumentError, match="the shape of the whole is not known"):
        fb.reduce_sum(slices)
