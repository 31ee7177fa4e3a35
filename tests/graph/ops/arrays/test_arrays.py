"""What cannot be arranged, joined, filled, gathered or learnt from is refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError


AT_CONSTRUCTION = [
    (lambda x: fb.zeros([2.5]), "not all integers"),
    (lambda x: fb.tile(x, [1, -1]), "a multiple is not negative"),
    (lambda x: fb.pad(x, [[0, 0], [0, 0]], constant_values=[1.0]), "'constant_values' is a scalar"),
    (lambda x: fb.split(x, [-1, 4], 1), "a size is not negative"),
    (lambda x: fb.unsorted_segment_sum(x, [0, 1], -1), "number of segments is not negative"),
    (lambda x: fb.unsorted_segment_sum(x, [0, 1], [3]), "'num_segments' is a scalar"),
    (lambda x: fb.nn.bias_add(x, x), "the bias is a vector"),
    (lambda x: fb.clip_by_value(x, fb.zeros([4, 2, 3]), 1.0), "do not broadcast"),
    (
        lambda x: fb.nn.softmax_cross_entropy_with_logits(labels=fb.zeros([3]), logits=x),
        "labels of shape",
    ),
    (
        lambda x: fb.nn.softmax_cross_entropy_with_logits(labels=1.0, logits=2.0),
        "at least one dimension",
    ),
    (
        lambda x: fb.nn.sparse_softmax_cross_entropy_with_logits(labels=0, logits=2.0),
        "at least one dimension",
    ),
    (lambda x: fb.reshape(x, [4]), r"6 elements of shape \[2, 3\] do not fit the shape \[4\]"),
    (lambda x: fb.reshape(x, [4, -1]), r"do not fit the shape \[4, -1\]: 6 is not a multiple of 4"),
    (
        lambda x: fb.reshape(x, [4, fb.placeholder(fb.int32, [])]),
        r"do not fit the shape \[4, \?\]: 6 is not a multiple of 4",
    ),
    (lambda x: fb.reshape(x, [-1, -1]), "at most one -1"),
    (lambda x: fb.reshape(x, [[6]]), "vector"),
    (lambda x: fb.expand_dims(x, 4), "out of range"),
    (lambda x: fb.squeeze(x, 0), "only 1 can be squeezed"),
    (lambda x: fb.transpose(x, [0]), "does not order"),
    (lambda x: fb.transpose(x, [0, 0]), "twice"),
    (lambda x: fb.transpose(x, [0, 2]), "out of range"),
    (lambda x: fb.concat([x, fb.zeros([3, 2])], 0), "differ in more than axis 0"),
    (lambda x: fb.concat([x, x], 2), "out of range"),
    (lambda x: fb.concat([], 0), "at least one"),
    (lambda x: fb.concat([fb.constant(1.0)], 0), "scalars cannot"),
    (lambda x: fb.stack([x, fb.zeros([3, 2])]), "not compatible"),
    (lambda x: fb.split(x, 2, 1), "cannot be split into 2 equal"),
    (lambda x: fb.split(x, [1, 3], 1), "4 together"),
    (lambda x: fb.unstack(x, 3), "has 2 elements, not 3"),
    (lambda x: fb.tile(x, [1]), "1 multiples do not fit"),
    (lambda x: fb.pad(x, [[0, 0]]), "paddings of shape"),
    (lambda x: fb.pad(x, [[0, 0], [-1, 0]]), "not negative"),
    (lambda x: fb.zeros([2, -1]), "not negative"),
    (lambda x: fb.fill([2], [1.0, 2.0]), "scalar"),
    (lambda x: fb.range(0, 5, 0), "step other than 0"),
    (lambda x: fb.linspace(0.0, 1.0, 0), "at least one point"),
    (lambda x: fb.one_hot([1], -1), "depth"),
    (lambda x: fb.gather(fb.constant(1.0), [0]), "no rows"),
    (lambda x: fb.add_n([x, fb.zeros([3])]), "not compatible"),
    (lambda x: fb.add_n([]), "at least one|needs"),
    (lambda x: fb.nn.bias_add(x, fb.zeros([2])), "does not fit the last dimension"),
    (lambda x: fb.nn.softmax(x, 2), "out of range"),
    (lambda x: fb.unsorted_segment_sum(x, [0, 1, 2], 3), "does not begin"),
    (lambda x: fb.reshape(x, fb.Shape([None, 3])), "not fully known"),
]


@pytest.mark.parametrize(
    ("build", "message"),
    AT_CONSTRUCTION,
    ids=[f"{i}: {message}" for i, (_, message) in enumerate(AT_CONSTRUCTION)],
)
def test_errors_at_construction(build: Any, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        build(fb.zeros([2, 3]))
    assert "test_arrays.py, line" in str(caught.value)


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_cross_entropy_along_any_axis(axis: int) -> None:
    labels, logits = np.random.default_rng(3).random((2, 4, 3, 2))
    losses = fb.nn.softmax_cross_entropy_with_logits
    found = losses(labels=labels, logits=logits, axis=axis)
    last = losses(labels=np.moveaxis(labels, axis, -1), logits=np.moveaxis(logits, axis, -1))
    np.testing.assert_array_equal(*evaluate([found, last]))


def test_what_is_no_class_is_not_in_the_top() -> None:
    scores = fb.constant([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    for k in (2, fb.constant(2, fb.int64)):
        assert evaluate(fb.nn.in_top_k(scores, [2, 0, -1], k)).tolist() == [False, True, False]


IN_THE_RUN = [
    (lambda x, n: fb.pad(x, fb.reshape(n, [1, 2])), [1, 1], "paddings"),
    (
        lambda x, n: fb.nn.softmax_cross_entropy_with_logits(labels=fb.zeros([3]), logits=x),
        [0],
        "labels of shape",
    ),
    (
        lambda x, n: fb.nn.sparse_softmax_cross_entropy_with_logits(labels=n, logits=x),
        [0],
        "do not fit logits",
    ),
    (lambda x, n: fb.reshape(x, n), [4], "6 elements"),
    (lambda x, n: fb.squeeze(x, 1), [0], "only 1 can be squeezed"),
    (lambda x, n: fb.transpose(x, [0, 2, 1]), [0], "does not order"),
    (lambda x, n: fb.concat([x, fb.zeros([3, 2])], 0), [0], "cannot be joined"),
    (lambda x, n: fb.stack([x, fb.zeros([3, 2])]), [0], "cannot be stacked"),
    (lambda x, n: fb.split(x, [1, 3], 1)[0], [0], "has 3"),
    (lambda x, n: fb.unstack(x, 5)[0], [0], "not 5"),
    (lambda x, n: fb.tile(x, n), [2], "multiples"),
    (lambda x, n: fb.zeros(n), [-1], "not negative"),
    (lambda x, n: fb.fill([2, 1], n), [1], "'value' is a scalar"),
    (lambda x, n: fb.range(fb.reshape(n, n)), [1], "'limit' is a scalar"),
    (lambda x, n: fb.linspace(0.0, 1.0, fb.reshape(n, n)), [1], "'num' is a scalar"),
    (lambda x, n: fb.one_hot(n, fb.reshape(n, n)), [1], "'depth' is a scalar"),
    (lambda x, n: fb.eye(fb.reshape(n, n)), [1], "'num_rows' is a scalar"),
    (lambda x, n: fb.unsorted_segment_sum([1.0], n, fb.reshape(n, n)), [1], "scalar, not"),
    (lambda x, n: fb.range(0, 5, n[0]), [0], "step other than 0"),
    (lambda x, n: fb.linspace(0.0, 1.0, n[0]), [0], "at least one point"),
    (lambda x, n: fb.one_hot([1], n[0]), [-3], "depth"),
    (lambda x, n: fb.gather(x, n), [2], "index 2 is out of range: there are 2"),
    (lambda x, n: fb.gather(x, n), [-1], "index -1 is out of range"),
    (lambda x, n: fb.gather(x, n, 1), [3], "index 3 is out of range: there are 3"),
    (lambda x, n: fb.add_n([x, fb.zeros([3])]), [0], "does not broadcast"),
    (lambda x, n: fb.nn.bias_add(x, fb.zeros([2])), [0], "last dimension"),
    (lambda x, n: fb.unsorted_segment_sum(x, [0, 1], n[0]), [1], "segment id 1"),
    (lambda x, n: fb.unsorted_segment_sum(x, [0, 1, 2], n[0]), [3], "does not begin"),
    (lambda x, n: fb.clip_by_value(x, fb.zeros([4, 2, 3]), 1.0), [0], "do not broadcast"),
]


@pytest.mark.parametrize(
    ("build", "values", "message"),
    IN_THE_RUN,
    ids=[f"{i}: {message}" for i, (_, _, message) in enumerate(IN_THE_RUN)],
)
def test_errors_in_the_run(build: Any, values: Any, message: str) -> None:
    x, n = fb.placeholder(fb.float32), fb.placeholder(fb.int32, [None])
    with pytest.raises(Error, match=message):
        evaluate(build(x, n), {x: np.zeros((2, 3)), n: values})


def test_gather_checks_constants_at_construction() -> None:
    with pytest.raises(fb.errors.InvalidIndexError, match="index 5 is out of range"):
        fb.gather(fb.zeros([3]), [0, 5])


def test_shapes_may_mix_ints_and_tensors() -> None:
    x = fb.placeholder(fb.float32, [None, 4])
    n = fb.shape(x)[0]
    feeds = {x: np.zeros((3, 4))}
    assert evaluate(fb.reshape(x, [n * 2, -1]), feeds).shape == (6, 2)
    assert evaluate(fb.ones([n, 2]), feeds).shape == (3, 2)
    assert fb.ones([n, 2]).shape == [None, 2]
    assert evaluate(fb.reshape(fb.ones([1]), []), feeds).shape == ()


@pytest.mark.parametrize(
    ("arguments", "dtype"),
    [
        ((5,), fb.int32),
        ((2, 8), fb.int32),
        ((2, 9, 3), fb.int32),
        ((9, 2, -3), fb.int32),
        ((0.0, 1.0, 0.25), fb.float32),
        ((5, 2), fb.int32),
        ((3.0,), fb.float32),
    ],
)
def test_ranges(arguments: Any, dtype: fb.DType) -> None:
    x = fb.range(*arguments)
    expected = np.arange(*arguments)
    assert x.dtype is dtype
    assert x.shape == expected.shape
    np.testing.assert_allclose(evaluate(x), expected)


def test_the_limit_is_not_in_a_range() -> None:
    made = fb.range(0.0, 0.3, 0.1)
    assert made.shape == [3]
    np.testing.assert_allclose(evaluate(made), [0, 0.1, 0.2], rtol=1e-6)


@pytest.mark.parametrize(
    ("dims", "wanted", "expected"),
    [
        ((0, 28, 28), [0, -1], (0, 784)),
        ((3, 0), [-1, 0], (3, 0)),
        ((0,), [-1, 0], (1, 0)),
        ((0, 4), [-1], (0,)),
        ((0, 4), [-1, 2], (0, 2)),
    ],
)
def test_what_is_left_of_no_elements(dims: Any, wanted: Any, expected: Any) -> None:
    assert fb.reshape(fb.zeros(dims), wanted).shape == list(expected)
    x = fb.placeholder(fb.float32)
    shape = fb.placeholder(fb.int32)
    result = evaluate(fb.reshape(x, shape), {x: np.zeros(dims, np.float32), shape: wanted})
    assert result.shape == expected


def test_some_elements_do_not_fit_none() -> None:
    with pytest.raises(Error, match="do not fit"):
        fb.reshape(fb.zeros([2, 3]), [0, -1])


def test_shapes_known_in_part_do_not_fit() -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    assert fb.reshape(x, [2, 6]).shape == [2, 6]
    with pytest.raises(Error, match="8 is not a multiple of 3"):
        fb.reshape(x, [2, 4])
    pair = fb.placeholder(fb.int32, [2])
    vector, anything = fb.placeholder(fb.float32, [None]), fb.placeholder(fb.float32)
    assert fb.tile(anything, pair).shape.rank == 2
    assert fb.slice(anything, pair, fb.placeholder(fb.int32)).shape.rank == 2
    with pytest.raises(Error, match="2 multiples do not fit"):
        fb.tile(vector, pair)
    with pytest.raises(Error, match="'size' has 2 elements"):
        fb.slice(vector, [0], pair)


@pytest.mark.parametrize("dtype", [None, fb.zeros, 1.5, np.ones(2), dict, "a", {}, [1, 2]])
def test_what_is_no_dtype(dtype: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="is not a dtype"):
        fb.cast(1.0, dtype)
    with pytest.raises(fb.errors.InvalidTypeError, match="is not a dtype"):
        fb.cast(1.0, fb.constant(2))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.dtype(">f4"), fb.float32),
        (np.float16, fb.float16),
        ("f8", fb.float64),
        (object, fb.string),
    ],
)
def test_what_is_a_dtype(dtype: Any, expected: fb.DType) -> None:
    assert fb.as_dtype(dtype) is expected


def test_what_is_no_shape_and_no_order() -> None:
    with pytest.raises(Error, match="int64"):
        fb.zeros([2**70])
    with pytest.raises(Error, match="does not order"):
        fb.transpose(fb.zeros([2, 3]), 1)
    assert fb.transpose(fb.zeros([2, 3]), fb.constant([1, 0])).shape == [3, 2]
    with pytest.raises(Error, match=r"differ in length(.|\n)*hint: pad them"):
        fb.matmul([[1.0], [2.0, 3.0]], fb.zeros([2, 2]))
    with pytest.raises(fb.errors.InvalidTypeError, match="not a variable"):
        fb.is_variable_initialized(fb.constant(1))  # type: ignore[arg-type]


def test_no_axes_squeeze_all() -> None:
    assert fb.squeeze(fb.zeros([1, 2, 1]), []).shape == [2]


def test_borders_of_bools_and_strings() -> None:
    assert evaluate(fb.zeros([2], fb.string)).tolist() == [b"", b""]
    assert evaluate(fb.pad([True], [[1, 0]])).tolist() == [False, True]
    assert evaluate(fb.pad(["a"], [[0, 1]])).tolist() == [b"a", b""]
    assert evaluate(fb.pad([1, 2], [[0, 1]], "reflect")).tolist() == [1, 2, 1]


def test_ranges_of_tensors_and_dtypes() -> None:
    n = fb.placeholder(fb.int64, [])
    assert fb.range(n).dtype is fb.int64
    assert evaluate(fb.range(n), {n: 3}).tolist() == [0, 1, 2]
    assert fb.range(3, dtype=fb.float16).dtype is fb.float16
    assert fb.range(np.int64(3)).dtype is fb.int64
    assert evaluate(fb.range(n, 5, dtype=fb.float32), {n: 3}).tolist() == [3.0, 4.0]


def test_a_list_of_nothing_is_of_any_dtype() -> None:
    assert evaluate(fb.bincount([], minlength=2)).tolist() == [0, 0]
    assert evaluate(fb.gather([1, 2], [])).dtype == np.int32
    assert evaluate(fb.strings.lower([])).tolist() == []
    with pytest.raises(fb.errors.InvalidTypeError, match="one of int32, int64"):
        fb.bincount(np.zeros(0))


def test_filled() -> None:
    for made, expected in (
        (fb.zeros([2], fb.bool), [False, False]),
        (fb.ones([2], fb.uint8), [1, 1]),
        (fb.ones([]), 1.0),
        (fb.fill([2], "a"), [b"a", b"a"]),
        (fb.zeros_like(fb.constant([1, 2])), [0, 0]),
        (fb.ones_like([1.0, 2.0], fb.int32), [1, 1]),
        (fb.eye(2), [[1, 0], [0, 1]]),
        (fb.eye(2, batch_shape=fb.constant([1], fb.int64)), [[[1, 0], [0, 1]]]),
        (fb.linspace(0.0, 1.0, 3), [0, 0.5, 1]),
    ):
        value = evaluate(made)
        assert value.dtype == made.dtype.numpy
        assert value.tolist() == expected


def test_the_shape_of_a_batch_of_matrices_with_unknown_sides() -> None:
    rows = fb.placeholder_with_default(2, None)
    known = fb.eye(rows, 3, batch_shape=(4, 5))
    assert (known.shape, evaluate(known).shape) == (fb.Shape([4, 5, None, 3]), (4, 5, 2, 3))


def test_one_hot_of_bytes() -> None:
    labels = fb.constant(np.array([1, 255], np.uint8))
    assert evaluate(fb.one_hot(labels, 3)).tolist() == [[0, 1, 0], [0, 0, 0]]


def test_one_hot_defaults() -> None:
    x = fb.one_hot([0, 2], 3)
    assert x.dtype is fb.float32
    assert evaluate(x).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert fb.one_hot([0], 2, True, False).dtype is fb.bool
    assert evaluate(fb.one_hot([[0], [1]], 2, axis=1)).shape == (2, 2, 1)


def test_moments() -> None:
    array = np.random.default_rng(0).normal(3, 2, (4, 5))
    x = fb.constant(array)
    for axes in (0, [0, 1], -1, None):
        found = evaluate(list(fb.nn.moments(x, axes)))
        axis = tuple(axes) if isinstance(axes, list) else axes
        np.testing.assert_allclose(found[0], array.mean(axis))
        np.testing.assert_allclose(found[1], array.var(axis))


def test_labels_that_are_no_classes() -> None:
    labels, logits = fb.placeholder(fb.int32, [None]), fb.zeros([2, 3])
    loss = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    for wrong in (3, -1):
        with pytest.raises(fb.errors.InvalidIndexError, match=f"label {wrong} is out of range"):
            evaluate(loss, {labels: [0, wrong]})
    with pytest.raises(Error, match="one label for each row"):
        fb.nn.sparse_softmax_cross_entropy_with_logits(labels=[[0], [1]], logits=logits)


def test_losses_of_far_out_logits_are_finite() -> None:
    logits = fb.constant([[1000.0, 0.0], [-1000.0, 0.0]])
    sparse = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 1], logits=logits)
    full = fb.nn.softmax_cross_entropy_with_logits(labels=[[0.0, 1.0]] * 2, logits=logits)
    single = fb.nn.sigmoid_cross_entropy_with_logits(
        labels=fb.constant([0.0, 1.0]), logits=fb.constant([1000.0, 1000.0])
    )
    for loss in evaluate([sparse, full, single]):
        np.testing.assert_allclose(loss, [1000, 0])


def test_a_loss_builds_no_second_derivative_unasked() -> None:
    logits = fb.placeholder(fb.float32, [2, 3])
    loss = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=logits)
    fb.gradients(loss, logits)
    assert "Softmax" not in {op.type for op in fb.get_default_graph().operations}


def test_split_into_equal_parts() -> None:
    pieces = fb.split(fb.constant(np.arange(6).reshape(2, 3)), 3, -1)
    assert [p.shape for p in pieces] == [[2, 1]] * 3
    assert evaluate(pieces[2]).tolist() == [[2], [5]]
    x = fb.placeholder(fb.float32, [None])
    halves = fb.split(x, 2)
    assert evaluate(halves[1], {x: [1.0, 2.0, 3.0, 4.0]}).tolist() == [3, 4]
    with pytest.raises(Error, match="cannot be split into 2 equal pieces"):
        evaluate(halves, {x: [1.0]})
    with pytest.raises(Error, match="num="):
        fb.unstack(fb.placeholder(fb.float32, [None]))


def test_the_gradient_of_what_is_tiled_so_often_as_only_the_run_knows() -> None:
    x = fb.placeholder(fb.float32)
    [gradient] = fb.gradients(fb.tile(x, [2, 1]), x)
    assert evaluate(gradient, {x: np.zeros((1, 3))}).tolist() == [[2, 2, 2]]
    multiples, weights = fb.placeholder(fb.int32), fb.placeholder(fb.float32)
    [gradient] = fb.gradients(fb.tile(x, multiples) * weights, x)
    rows = np.arange(12).reshape(2, 6)
    feeds = {x: np.zeros((1, 3)), multiples: [2, 2], weights: rows}
    assert evaluate(gradient, feeds).tolist() == [[18, 22, 26]]
    assert evaluate(gradient, {x: 1.0, multiples: np.zeros(0), weights: 5.0}).tolist() == 5


def test_the_gradient_of_repeats_along_an_axis_from_the_end_of_an_unknown_rank() -> None:
    x = fb.placeholder(fb.float32)
    [gradient] = fb.gradients(fb.repeat(x, [1, 0, 2], axis=-1) * [[1.0, 2.0, 3.0]], x)
    assert evaluate(gradient, {x: np.zeros((1, 3))}).tolist() == [[1, 0, 5]]


def test_the_gradient_of_a_bias_of_unknown_rank() -> None:
    x, bias = fb.placeholder(fb.float32), fb.constant([1.0, 2.0])
    [gradient] = fb.gradients(fb.nn.bias_add(x, bias), bias)
    assert evaluate(gradient, {x: np.zeros((3, 4, 2))}).tolist() == [12, 12]


def test_strings_are_compared() -> None:
    words = fb.constant(["a", "b"])
    assert evaluate(fb.equal(words, "b")).tolist() == [False, True]
    assert evaluate(fb.not_equal(words[0], "a")).dtype == bool


def test_zeros_like_are_of_any_dtype() -> None:
    words = fb.constant(["a", "b"])
    assert evaluate(fb.zeros_like(words)).tolist() == [b"", b""]
    assert evaluate(fb.zeros_like(words, fb.int32)).tolist() == [0, 0]
    partly = fb.placeholder(fb.complex64, [None, 2])
    ones = fb.ones_like(partly, fb.float32, name="ones")
    assert (ones.name, ones.shape) == ("ones:0", [None, 2])
    assert evaluate(ones, {partly: [[1j, 2]]}).tolist() == [[1, 1]]
    assert evaluate(fb.zeros_like(ones, fb.string), {partly: [[1j, 2]]}).tolist() == [[b"", b""]]


def test_constants_of_the_graph_decide_the_shapes_of_parts() -> None:
    x = fb.placeholder(fb.float32, [None, 7, 5])
    n = fb.placeholder(fb.int32, [])
    assert x[: fb.constant(2), fb.size(x[0, 0]) : -1].shape == [None, 1, 5]
    assert x[:, fb.shape(x)[2] :: 2].shape == [None, 1, 5]
    assert x[:, n:, fb.constant(1)].shape == [None, None]
    with pytest.raises(fb.errors.InvalidIndexError, match="index 7"):
        x[0, fb.constant(7)]
    unknown = fb.placeholder(fb.int32)
    assert fb.zeros([unknown, 2]).shape == [None, 2]


def test_sizes_that_are_known_in_part_tell_what_they_can() -> None:
    n, pair = fb.placeholder(fb.int32, []), fb.placeholder(fb.int32, [2])
    x, anything = fb.zeros([4, 4]), fb.placeholder(fb.float32)
    assert fb.pad(x, [[1, 2], pair]).shape.dims == (7, None)
    assert fb.pad(x, [fb.constant([1, 1]), [0, n]]).shape.dims == (6, None)
    assert fb.pad(x, fb.concat([[[1, 2]], [pair]], 0)).shape.dims == (7, None)
    assert fb.tile(x, [n, 2]).shape.dims == (None, 8)
    assert fb.slice(x, [0, 0], [n, 2]).shape.dims == (None, 2)
    assert fb.reshape(anything, fb.concat([pair, [3, 5]], 0)).shape.dims == (None, None, 3, 5)
    with pytest.raises(fb.errors.InvalidArgumentError, match="not negative"):
        fb.pad(x, [[-1, 2], pair])
    with pytest.raises(fb.errors.InvalidArgumentError, match="not negative"):
        fb.tile(x, [n, -2])


def test_what_is_not_repeated_and_what_has_no_blocks_is_known_without_the_sizes() -> None:
    unknown = fb.placeholder(fb.int32)
    assert fb.broadcast_to(fb.zeros([2, 1]), fb.placeholder(fb.int32, [3])).shape.dims == (
        None,
        2,
        None,
    )
    x = fb.placeholder(fb.float32, [6, None, None, 5])
    assert fb.space_to_batch_nd(x, [2, 3], unknown).shape.dims == (36, None, None, 5)
    assert fb.batch_to_space_nd(x, [2, 3], unknown).shape.dims == (1, None, None, 5)
    blocks = fb.placeholder(fb.int32, [2])
    assert fb.space_to_batch_nd(x, blocks, unknown).shape.dims == (None, None, None, 5)
    with pytest.raises(fb.errors.InvalidArgumentError, match="blocks are positive"):
        fb.space_to_batch_nd(x, [2, 0], unknown)


def test_one_dimension_that_only_the_run_knows_is_what_the_others_leave() -> None:
    n = fb.placeholder(fb.int32, [])
    assert fb.reshape(fb.zeros([4, 6]), [n, 3]).shape.dims == (8, 3)
    assert fb.reshape(fb.zeros([0, 6]), [n, 0]).shape.dims == (None, 0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="do not fit"):
        fb.reshape(fb.zeros([4, 6]), [n, 7])


def test_no_dimension_of_a_run_is_negative() -> None:
    shape = fb.placeholder(fb.int32, [2])
    with pytest.raises(fb.errors.InvalidArgumentError, match="do not fit"):
        evaluate(fb.reshape(fb.zeros([2, 3]), shape), {shape: [-2, 3]})


def test_an_array_is_stacked_as_the_list_of_its_parts() -> None:
    rows = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert evaluate(fb.stack(rows, axis=1)).tolist() == rows.T.tolist()
    assert fb.stack(rows).dtype is fb.int16
    with pytest.raises(fb.errors.InvalidTypeError, match="a list of tensors"):
        fb.stack(np.float32(1.0))


def test_none_are_batch_dimensions() -> None:
    assert evaluate(fb.gather([[1, 2], [3, 4]], [1], axis=1, batch_dims=None)).tolist() == [
        [2],
        [4],
    ]


def test_permutations_that_do_not_fit_in_the_run() -> None:
    x = fb.placeholder(fb.float32)
    for perm in ([0, 1], [0, 1, 3], [0, 1, 2, 3]):
        with pytest.raises(Error, match="does not order the dimensions"):
            evaluate(fb.transpose(x, perm), {x: np.zeros((2, 3, 4))})


def test_lengths_and_the_longest_may_differ_in_dtype() -> None:
    lengths = fb.constant([1, 2], fb.int64)
    mask = fb.sequence_mask(lengths, fb.placeholder_with_default(3, []))
    assert evaluate(mask).tolist() == [[True, False, False], [True, True, False]]


def test_sizes_and_ranks_decide_shapes() -> None:
    x = fb.placeholder(fb.float32, [2, 3])
    assert fb.zeros([fb.size(x), fb.rank(x)]).shape == [6, 2]
    n = fb.placeholder(fb.float32, [None, 3])
    assert fb.zeros(fb.cast(fb.shape(n), fb.int64)).shape == [None, 3]
    assert fb.zeros([fb.shape(x)[0] // fb.shape(n)[0]]).shape == [None]
    zero = fb.shape(fb.placeholder(fb.float32, [0]))[0]
    assert fb.zeros([7 // zero]).shape == [None]


def test_a_shape_that_is_ensured() -> None:
    x = fb.placeholder(fb.float32, [None, None])
    y = fb.ensure_shape(x, [None, 3], name="y")
    assert (y.name, y.shape) == ("y:0", [None, 3])
    assert fb.ensure_shape(fb.ensure_shape(x, [2, None]), [None, 3]).shape == [2, 3]
    assert evaluate(y, {x: [[1, 2, 3]]}).tolist() == [[1, 2, 3]]
    assert evaluate(fb.gradients(y * y, x)[0], {x: [[1, 2, 3]]}).tolist() == [[2, 4, 6]]
    with pytest.raises(Error, match=r"the shape \[1, 2\] does not fit \[\?, 3\]"):
        evaluate(y, {x: [[1, 2]]})
    with pytest.raises(Error, match=r"\[\?, 3\] and \[2, 4\]"):
        fb.ensure_shape(y, [2, 4])
