"""Selecting, ordering, partitioning and reshaping in blocks: errors, defaults, dynamic shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError
InvalidIndex = fb.errors.InvalidIndexError
TypeError_ = fb.errors.InvalidTypeError

X = np.arange(6.0).reshape(2, 3)

AT_CONSTRUCTION: list[tuple[Any, Any, str]] = [
    (
        lambda x: fb.gather(x, [[0, 3]], axis=1),
        InvalidIndex,
        r"index 3 .* 3, from 0 \(element \[0, 1",
    ),
    (lambda x: fb.gather(x, [0, 1, 2], batch_dims=1), Error, "differ in their batch"),
    (lambda x: fb.gather(x, [[0], [1]], axis=0, batch_dims=1), Error, "one of the 1 batch"),
    (lambda x: fb.gather(x, [0], batch_dims=2), Error, "more than the shapes"),
    (lambda x: fb.gather_nd(x, [[0, 0, 0]]), Error, "too long"),
    (lambda x: fb.gather_nd(x, 1), Error, "tensor of vectors"),
    (lambda x: fb.gather_nd(x, [[0, 0], [1, 3]]), InvalidIndex, r"\[1, 3\] lie outside .*\[1\]"),
    (lambda x: fb.gather_nd(x, [[-1, 0]]), InvalidIndex, r"\[-1, 0\] lie outside"),
    (lambda x: fb.scatter_nd([[0]], x, [4]), Error, "do not fit indices"),
    (lambda x: fb.tensor_scatter_nd_update(x, [[0]], [1.0]), Error, "do not fit indices"),
    (lambda x: fb.boolean_mask(x, [True]), Error, "does not fit the shape"),
    (lambda x: fb.boolean_mask(x, True), Error, "at least one dimension"),
    (lambda x: fb.where(x > 1.0, x), TypeError_, "both x and y"),
    (lambda x: fb.sort(x, direction="UP"), Error, "direction"),
    (lambda x: fb.sort(x, 2), Error, "axis 2"),
    (lambda x: fb.nn.top_k(x, 4), Error, "k is 4, but the last axis has 3"),
    (lambda x: fb.nn.nth_element(x, 3), InvalidIndex, "n 3 is out of range"),
    (lambda x: fb.clip_by_norm(x, -1.0), Error, "not negative: -1"),
    (lambda x: fb.clip_by_global_norm([x], -1.0), Error, "not negative: -1"),
    (lambda x: fb.nn.dropout(x, rate=0.5, noise_shape=[2, 2]), Error, "does not broadcast"),
    (lambda x: fb.nn.dropout(x, rate=0.5, noise_shape=[1, 2, 3]), Error, "does not broadcast"),
    (lambda x: fb.nn.dropout(x, rate="half"), TypeError_, "string"),
    (lambda x: fb.random_normal([2], "a"), TypeError_, "string"),
    (lambda x: fb.nn.leaky_relu(x, "a"), TypeError_, "string"),
    (lambda x: fb.nn.l2_normalize(x, epsilon=-1), Error, "not negative: -1"),
    (lambda x: fb.strings.to_hash_bucket_fast("a", 2.5), TypeError_, "2.5"),
    (lambda x: fb.strings.to_hash_bucket_strong("a", 2, "ab"), TypeError_, "two ints"),
    (lambda x: fb.image.random_hue(fb.zeros([2, 2, 3]), "a"), Error, "max_delta"),
    (lambda x: fb.image.central_crop(fb.zeros([2, 2, 3]), "a"), Error, "central_fraction"),
    (lambda x: fb.random_crop(x, [-1, 1]), Error, "no part"),
    (
        lambda x: fb.nn.softmax_cross_entropy_with_logits(labels=x, logits=x, axis=2),
        Error,
        "axis 2",
    ),
    (lambda x: fb.strings.regex_replace("a", "(a", ""), Error, "no regular expression"),
    (lambda x: fb.unique(x), Error, "'x' is a vector"),
    (lambda x: fb.unique([1], fb.float32), TypeError_, "int32 or int64"),
    (lambda x: fb.searchsorted([1.0, 2.0], x), Error, "more than the last axis"),
    (lambda x: fb.searchsorted(x, x, "both"), Error, "'left' or 'right'"),
    (lambda x: fb.unravel_index([0, 6], [2, 3]), InvalidIndex, r"index 6 .*in the shape \[2, 3\]"),
    (lambda x: fb.reverse(x, [0, 0]), Error, "twice"),
    (lambda x: fb.reverse_sequence(x, [1, 4], 1), Error, r"length 4 \(element \[1\]\)"),
    (lambda x: fb.reverse_sequence(x, [1], 1), Error, "1 lengths"),
    (lambda x: fb.reverse_sequence(x, [1, 1], 0), Error, "both 0"),
    (lambda x: fb.roll(x, [1, 2], 0), Error, "one for each"),
    (lambda x: fb.roll(x, 1, [0, 1]), Error, "one for each"),
    (lambda x: fb.repeat(x, [1, 2], 1), Error, "2 repeats"),
    (lambda x: fb.repeat(x, -1, 1), Error, "not negative: -1"),
    (lambda x: fb.pad(x, [[0, 0], [3, 0]], "REFLECT"), Error, "more than axis 1"),
    (lambda x: fb.pad(x, [[0, 0], [3, 0]], "WRAP"), Error, "'SYMMETRIC'"),
    (lambda x: fb.segment_sum(x, [1, 0]), Error, r"not sorted: 0 \(element \[1\]\) follows 1"),
    (lambda x: fb.segment_sum(x, [-1, 0]), Error, "not negative"),
    (lambda x: fb.segment_sum(x, [0, 0, 0]), Error, "3 segment ids for the 2 rows"),
    (lambda x: fb.dynamic_partition(x, [0, 2], 2), InvalidIndex, r"partition 2 .*\(element \[1\]"),
    (lambda x: fb.dynamic_partition(x, [0], 2), Error, "does not begin"),
    (lambda x: fb.dynamic_stitch([[0], [1]], [x]), Error, "2 lists of indices for 1"),
    (lambda x: fb.dynamic_stitch([[0]], [x]), Error, "does not begin"),
    (lambda x: fb.split(x, [1, 1], 1), Error, "2 together"),
    (lambda x: fb.split(x, [-1, -1], 1), Error, "may be -1"),
    (lambda x: fb.split(x, [4, -1], 1), Error, "4 together"),
    (lambda x: fb.space_to_depth(x, 2), Error, "4 dimensions"),
    (lambda x: fb.space_to_depth(fb.zeros([1, 3, 4, 1]), 2), Error, "height 3 is not divisible"),
    (lambda x: fb.depth_to_space(fb.zeros([1, 3, 4, 6]), 2), Error, "depth 6 is not divisible"),
    (lambda x: fb.space_to_batch_nd(x, [2], [[0, 0]]), Error, "size 3 is not divisible by 2"),
    (lambda x: fb.space_to_batch_nd(x, [2, 2], [[0, 0]] * 2), Error, "more than the shape"),
    (lambda x: fb.batch_to_space_nd(x, [2], [[7, 0]]), Error, "are more than the 6"),
    (lambda x: fb.batch_to_space_nd(x, [3], [[0, 0]]), Error, "batch 2 is not divisible by 3"),
    (lambda x: fb.broadcast_static_shape([2], [3]), Error, "do not broadcast"),
    (lambda x: fb.placeholder_with_default(x, [2, 2]), Error, "the default of shape"),
    (lambda x: fb.meshgrid(x, indexing="ji"), Error, "'xy' or 'ij'"),
    (
        lambda x: fb.extract_image_patches(x, [1, 2, 2, 1], [1] * 4, [1] * 4, "same"),
        Error,
        "padding",
    ),
    (
        lambda x: fb.extract_image_patches(x, [2, 2, 2, 1], [1] * 4, [1] * 4, "SAME"),
        Error,
        "'ksizes' is",
    ),
    (lambda x: fb.edit_distance(x, x), TypeError_, "sparse tensors"),
]


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    AT_CONSTRUCTION,
    ids=[f"{k}: {message}" for k, (_, _, message) in enumerate(AT_CONSTRUCTION)],
)
def test_errors_at_construction(build: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        build(fb.constant(X))


IN_THE_RUN: list[tuple[Any, Any, Any, str]] = [
    (lambda x, n: fb.gather(x, n, batch_dims=1), [[3], [0]], InvalidIndex, "index 3"),
    (lambda x, n: fb.gather(x, n, batch_dims=1), [[0], [0], [0]], Error, "batch"),
    (lambda x, n: fb.gather_nd(x, n), [[0, 3]], InvalidIndex, r"\[0, 3\] lie outside"),
    (lambda x, n: fb.gather_nd(x, n), [[0, 3, 1]], Error, "too long"),
    (lambda x, n: fb.scatter_nd(n, x, [2]), [[0]], Error, "do not fit"),
    (lambda x, n: fb.scatter_nd(n, [1.0], [2]), [[2]], InvalidIndex, "lie outside"),
    (lambda x, n: fb.tensor_scatter_nd_update(x, n, [1.0]), [[0]], Error, "do not fit"),
    (lambda x, n: fb.boolean_mask(x, n > 0), [1, 1, 1], Error, "does not fit"),
    (lambda x, n: fb.nn.top_k(x, n), 4, Error, "k is 4"),
    (lambda x, n: fb.nn.nth_element(x, n), -1, InvalidIndex, "n -1 is out of range"),
    (lambda x, n: fb.unique(n), [[1]], Error, "is a vector"),
    (lambda x, n: fb.setdiff1d(n, [1]), [[1]], Error, "is a vector"),
    (lambda x, n: fb.invert_permutation(n), [0, 2], InvalidIndex, "index 2"),
    (lambda x, n: fb.invert_permutation(n), [0, 0], Error, "1 is missing"),
    (lambda x, n: fb.unravel_index(n, [2, 2]), [4], InvalidIndex, "index 4"),
    (lambda x, n: fb.searchsorted(x, [[1.0]]), 0, Error, "more than the last axis"),
    (lambda x, n: fb.reverse(x, 2), 0, Error, "axis 2"),
    (lambda x, n: fb.reverse_sequence(x, n, 1), [1, -1], Error, "length -1"),
    (lambda x, n: fb.roll(x, n, [0, 1]), [1], Error, "one for each"),
    (lambda x, n: fb.repeat(x, n, 0), [1, 2, 3], Error, "do not fit the 2"),
    (lambda x, n: fb.repeat(x, n, 0), [1, -2], Error, "not negative: -2"),
    (lambda x, n: fb.pad(x, n, "SYMMETRIC"), [[0, 0], [4, 0]], Error, "more than axis 1"),
    (lambda x, n: fb.segment_max(x, n), [1, 0], Error, "not sorted"),
    (lambda x, n: fb.segment_max(x, n), [1], Error, "1 segment ids"),
    (lambda x, n: fb.unsorted_segment_max(x, n, 2), [0, 2], InvalidIndex, "segment id 2"),
    (lambda x, n: fb.dynamic_partition(x, n, 2), [0, -1], InvalidIndex, "partition -1"),
    (lambda x, n: fb.dynamic_stitch([n], [x]), [0, -1], InvalidIndex, "index -1"),
    (lambda x, n: fb.dynamic_stitch([n], [x]), [0], Error, "does not begin"),
    (lambda x, n: fb.split(x, n, 1, num=2), [1, 1], Error, "2 together"),
    (lambda x, n: fb.split(x, n, 1, num=2), [1, 1, 1], Error, "not those of 2"),
    (lambda x, n: fb.split(x, 2, 1), 0, Error, "cannot be split into 2"),
    (lambda x, n: fb.space_to_depth(x, 2), 0, Error, "4 dimensions"),
    (lambda x, n: fb.space_to_batch_nd(x, n, [[0, 0]]), [2], Error, "not divisible"),
    (lambda x, n: fb.batch_to_space_nd(x, n, [[0, 0]]), [3], Error, "not divisible"),
    (lambda x, n: fb.broadcast_dynamic_shape(n, fb.shape(x)), [5, 2], Error, "do not broadcast"),
    (lambda x, n: fb.check_numerics(x / 0.0, "loss"), 0, Error, r"loss: 1 NaN and 5 Inf among 6"),
]


@pytest.mark.parametrize(
    ("build", "value", "kind", "message"),
    IN_THE_RUN,
    ids=[f"{k}: {message}" for k, (*_, message) in enumerate(IN_THE_RUN)],
)
def test_errors_in_the_run(build: Any, value: Any, kind: Any, message: str) -> None:
    x, n = fb.placeholder(fb.float64), fb.placeholder(fb.int32)
    with pytest.raises(kind, match=message):
        evaluate(build(x, n), {x: X, n: value})


def test_shapes_that_depend_on_values_are_partly_known() -> None:
    x, n = fb.placeholder(fb.float32, [4, 5]), fb.placeholder(fb.int32, [4])
    assert fb.where(x > 0.0).shape == [None, 2]
    assert fb.boolean_mask(x, n > 0).shape == [None, 5]
    assert fb.boolean_mask(x, [True, False, True, True]).shape == [3, 5]
    assert fb.unique(n).y.shape == [None]
    assert fb.unique(n).idx.shape == [4]
    assert [p.shape for p in fb.dynamic_partition(x, n, 2)] == [[None, 5]] * 2
    assert fb.dynamic_stitch([n], [x]).shape == [None, 5]
    assert fb.segment_sum(x, n).shape == [None, 5]
    assert fb.segment_sum(x, [0, 0, 1, 7]).shape == [8, 5]
    assert fb.nn.top_k(x, n[0]).values.shape == [4, None]
    assert fb.repeat(x, n, 0).shape == [None, 5]
    assert fb.repeat(x, [0, 1, 2, 3], 0).shape == [6, 5]
    assert fb.sequence_mask([1, 3]).shape == [2, 3]
    assert fb.sequence_mask(n).shape == [4, None]
    assert fb.zeros(fb.broadcast_dynamic_shape([4, 1], [5])).shape == [4, 5]


def test_a_gradient_goes_to_the_one_that_was_written_last() -> None:
    first, second = fb.constant([1.0, 2.0]), fb.constant([3.0, 4.0])
    whole = fb.dynamic_stitch([[0, 0], [1, 0]], [first, second])
    found = evaluate(fb.gradients(whole * [2.0, 3.0], [first, second]))
    assert [g.tolist() for g in found] == [[0, 0], [3, 2]]


def test_a_gather_along_another_axis_or_of_batches_has_a_dense_gradient() -> None:
    x = fb.constant(X)
    for y in (fb.gather(x, [1], axis=1), fb.gather(x, [[1], [1]], batch_dims=1)):
        [gradient] = fb.gradients(y, x)
        assert isinstance(gradient, fb.Tensor)
        assert evaluate(gradient).tolist() == [[0, 1, 0], [0, 1, 0]]
    [gradient] = fb.gradients(fb.gather(x, [1]), x)
    assert isinstance(gradient, fb.IndexedSlices)


def test_batches_are_counted_from_the_indices_rank() -> None:
    x, k = fb.constant(X), fb.constant([[2], [0]])
    assert evaluate(fb.gather(x, k, batch_dims=-1)).tolist() == [[2], [3]]
    with pytest.raises(Error, match="not known before the run"):
        fb.gather(x, fb.placeholder(fb.int32), batch_dims=-1)


def test_a_default_serves_where_nothing_is_fed() -> None:
    default = fb.placeholder_with_default([1.0, 2.0], [None])
    assert default.shape == [None]
    doubled = default * 2.0
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run(doubled).tolist() == [2, 4]
            assert sess.run(doubled, {default: [5.0]}).tolist() == [10]


def test_masks_of_lengths() -> None:
    n = fb.placeholder(fb.int64, [None])
    mask = fb.sequence_mask(n)
    assert evaluate(mask, {n: [0, 2]}).tolist() == [[False, False], [True, True]]
    assert evaluate(mask, {n: []}).shape == (0, 0)
    assert evaluate(fb.sequence_mask([2], 3, fb.float32)).tolist() == [[1, 1, 0]]
    with pytest.raises(TypeError_, match="int32 or int64"):
        fb.sequence_mask([1.5])


def test_grids() -> None:
    x, y = np.array([1, 2, 3]), np.array([10, 20])
    for indexing in ("xy", "ij"):
        found = evaluate(fb.meshgrid(x, y, indexing=indexing))
        for value, wanted in zip(found, np.meshgrid(x, y, indexing=indexing), strict=True):
            np.testing.assert_array_equal(value, wanted)
    n = fb.placeholder(fb.int32, [None])
    [a, b] = fb.meshgrid(n, [7])
    assert a.shape == [1, None]
    assert evaluate([a, b], {n: [1, 2]})[1].tolist() == [[7, 7]]
    [single] = fb.meshgrid(n)
    assert evaluate(single, {n: [1, 2]}).tolist() == [1, 2]


def test_batches_of_identities() -> None:
    n = fb.placeholder(fb.int32, [2])
    assert evaluate(fb.eye(2, batch_shape=n), {n: [3, 1]}).shape == (3, 1, 2, 2)
    assert fb.eye(2, 3, [4], fb.bool).shape == [4, 2, 3]


def test_several_shapes() -> None:
    found = fb.shape_n([fb.zeros([2, 3]), fb.zeros([4])], fb.int64)
    assert [s.dtype for s in found] == [fb.int64] * 2
    assert [s.tolist() for s in evaluate(found)] == [[2, 3], [4]]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=600), st.integers(0, 600))
def test_selecting_agrees_with_sorting(values: list[int], k: int) -> None:
    count = min(k, len(values))
    for dtype in (np.int8, np.float32):
        with fb.Graph().as_default():
            best = evaluate(list(fb.nn.top_k(np.array(values, dtype), count)))
        wanted = sorted(range(len(values)), key=lambda i: (-values[i], i))[:count]
        assert best[1].tolist() == wanted
        assert best[0].tolist() == [values[i] for i in wanted]


def test_nan_is_the_largest() -> None:
    values = np.zeros(1000, np.float32)
    values[[3, 700]] = np.nan
    best = evaluate(list(fb.nn.top_k(values, 3)))
    assert best[1].tolist() == [3, 700, 0]
    assert np.isnan(best[0][:2]).all()
    order = evaluate(fb.argsort(values))
    assert order[-2:].tolist() == [3, 700]


def test_half_precision_sums_are_made_in_single() -> None:
    many = np.ones(5000, np.float16)
    ids = np.zeros(5000, np.int32)
    for total in (fb.segment_sum(many, ids), fb.unsorted_segment_sum(many[:, None], ids, 1)):
        assert total.dtype is fb.float16
        np.testing.assert_array_equal(evaluate(total).ravel(), [5000])
    assert evaluate(fb.segment_mean(many, ids)).tolist() == [1]


def test_means_of_integers_go_towards_zero_and_are_of_their_dtype() -> None:
    rows = fb.constant([[100, -3], [101, -4], [127, 2]], fb.int8)
    sorted_ones = fb.segment_mean(rows, [0, 0, 2])
    assert sorted_ones.dtype is fb.int8
    expected = [[100, -3], [0, 0], [127, 2]]
    assert evaluate(sorted_ones).tolist() == expected
    assert evaluate(fb.unsorted_segment_mean(rows, [0, 0, 2], 3)).tolist() == expected
    huge = fb.constant([2**61 + 1, 2**61 + 3])
    assert evaluate(fb.segment_mean(huge, [0, 0])).tolist() == [2**61 + 2]
    with pytest.raises(fb.errors.InvalidTypeError, match="no whole number"):
        fb.unsorted_segment_sqrt_n(rows, [0, 0, 2], 3)


def test_strings_are_parted_and_compared() -> None:
    words = fb.constant(["b", "a", "b", "c"])
    found = evaluate([*fb.unique(words)])
    assert [f.tolist() for f in found] == [[b"b", b"a", b"c"], [0, 1, 0, 2]]
    assert evaluate(fb.setdiff1d(words, ["a"]).out).tolist() == [b"b", b"b", b"c"]
    parts = evaluate(fb.dynamic_partition(words, [1, 0, 0, 1], 2))
    assert [p.tolist() for p in parts] == [[b"a", b"b"], [b"b", b"c"]]
    assert evaluate(fb.dynamic_stitch([[2, 0]], [words[:2]])).tolist() == [b"a", b"", b"b"]


def test_a_vector_chooses_among_rows() -> None:
    """As in TensorFlow 1, also where the matrix is square and broadcasting would fit."""
    x, y = np.arange(9.0).reshape(3, 3), -np.ones((3, 3))
    chosen = evaluate(fb.where(np.array([True, False, True]), x, y))
    np.testing.assert_array_equal(chosen, [[0, 1, 2], [-1, -1, -1], [6, 7, 8]])
    rows = fb.placeholder(fb.float64, [None, 2, 8])
    many = fb.where(fb.placeholder_with_default([True, False], [None]), rows, -rows)
    assert many.shape == [None, 2, 8]
    [gradient] = fb.gradients(many, [rows])
    signs = evaluate(gradient, {rows: np.ones((2, 2, 8))})
    np.testing.assert_array_equal(signs[:, 0, 0], [1, -1])


def test_a_vector_beside_a_scalar_broadcasts() -> None:
    chosen = evaluate(fb.where(np.array([True, False]), np.ones((3, 2)), 0.0))
    np.testing.assert_array_equal(chosen, [[1, 0]] * 3)
