"""Connectionist temporal classification, beyond the values of `tests/op_cases/nn/ctc.py`."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from tests.interpreter import evaluate

LOGITS = np.random.default_rng(4).normal(size=(6, 2, 4)).astype(np.float32)


def labels(indices: Any, values: Any) -> Any:
    return SimpleNamespace(
        indices=np.array(indices, np.int64).reshape(-1, 2),
        values=np.array(values, np.int32),
        dense_shape=np.array([2, 3], np.int64),
    )


SOME = labels([[0, 0], [0, 1], [1, 0]], [0, 2, 1])


def test_the_batch_may_come_first() -> None:
    loss = fb.nn.ctc_loss(SOME, LOGITS, [6, 5])
    other = fb.nn.ctc_loss(SOME, LOGITS.swapaxes(0, 1), [6, 5], time_major=False)
    assert loss.shape == other.shape == [2]
    np.testing.assert_array_equal(*evaluate([loss, other]))


def test_the_order_of_labels_is_that_of_their_indices() -> None:
    turned = labels([[1, 0], [0, 2], [0, 0]], [1, 2, 0])
    values = [evaluate(fb.nn.ctc_loss(given, LOGITS, [6, 5])) for given in (SOME, turned)]
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("dtype", fb.FLOATS)
def test_extreme_logits(dtype: fb.DType) -> None:
    for mask in (np.arange(4) == 1, np.arange(6)[:, None, None] > 2):
        x = fb.constant(np.where(mask, 1e4, LOGITS), dtype)
        loss = fb.nn.ctc_loss(SOME, x, [6, 5])
        value, slope = evaluate([loss, fb.gradients(loss, [x])[0]])
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()
        # Each step's gradient is a difference of probabilities.
        np.testing.assert_allclose(slope.sum(2), 0, atol=5e-3)
        assert (abs(slope) <= 1.001).all()


def test_long_sequences() -> None:
    random = np.random.default_rng(0)
    x = fb.constant(random.normal(size=(2000, 1, 30)).astype(np.float32) * 3)
    given = labels([[0, k] for k in range(300)], random.integers(0, 29, 300))
    loss = fb.nn.ctc_loss(given, x, [2000])
    value, slope = evaluate([loss, fb.gradients(loss, [x])[0]])
    assert value > 1000
    np.testing.assert_allclose(slope.sum(2), 0, atol=1e-5)


def test_nan_stays_in_its_sequence() -> None:
    x = LOGITS.copy()
    x[2, 0, 1] = np.nan
    value, clean = (evaluate(fb.nn.ctc_loss(SOME, x, [6, 5])) for x in (x, LOGITS))
    assert np.isnan(value[0])
    assert value[1] == clean[1]


def test_no_steps() -> None:
    only_second = labels([[1, 0]], [1])
    x = fb.constant(LOGITS)
    loss = fb.nn.ctc_loss(only_second, x, [0, 1])
    value, slope = evaluate([loss, fb.gradients(loss, [x])[0]])
    logs = LOGITS[0, 1] - np.logaddexp.reduce(LOGITS[0, 1])
    np.testing.assert_allclose(value, [0, -logs[1]], rtol=1e-6)
    assert (slope[:, 0] == 0).all()
    assert (slope[1:] == 0).all()


def test_second_derivatives_where_there_is_nothing_to_differ() -> None:
    # No steps, no path, and one left out.
    x = fb.constant(np.stack([LOGITS[:, 0]] * 3, 1), fb.float64)
    given = labels([[0, 0], [1, 0], [1, 1], [2, 0], [2, 1]], [0, 1, 1, 0, 1])
    loss = fb.nn.ctc_loss(given, x, [0, 2, 1], ignore_longer_outputs_than_inputs=True)
    [slope] = fb.gradients(loss, [x])
    [curve] = fb.gradients(slope * np.arange(slope.shape.size).reshape(slope.shape), [x])
    value, found = evaluate([loss, curve])
    assert np.isinf(value[1])
    assert np.isfinite(found).all()
    assert (found[:, [0, 2]] == 0).all()
    # Where nothing spells the labels the gradient is softmax, and so is this its derivative.
    [softmax_curve] = fb.gradients(
        fb.nn.softmax(x)[:2, 1] * np.arange(slope.shape.size).reshape(slope.shape)[:2, 1], [x]
    )
    np.testing.assert_allclose(found[:, 1], evaluate(softmax_curve)[:, 1], atol=1e-12)


def test_the_first_gradient_does_not_prepare_a_second() -> None:
    x = fb.placeholder(fb.float32, [6, 2, 4])
    fb.gradients(fb.nn.ctc_loss(SOME, x, [6, 5]), [x])
    assert "CTCLossGradAlong" not in {op.type for op in x.graph.operations}


@pytest.mark.parametrize(
    ("given", "lengths", "message"),
    [
        (SOME, [1, 5], "sequence 0 has 2 labels for 1 step"),
        (SOME, [7, 5], "sequence 0 has length 7, of 6 steps"),
        (SOME, [6, -1], "length -1"),
        (labels([[0, 0]], [3]), [6, 5], "label 3 is out of range"),
        (labels([[0, 0]], [-1]), [6, 5], "label -1"),
        (labels([[2, 0]], [1]), [6, 5], "out of range for a batch of 2"),
    ],
)
def test_errors_in_the_run(given: Any, lengths: Any, message: str) -> None:
    with pytest.raises(fb.errors.OpError, match=message):
        evaluate(fb.nn.ctc_loss(given, LOGITS, lengths))


def test_errors_at_construction() -> None:
    for build, message in (
        (lambda: fb.nn.ctc_loss([1, 2], LOGITS, [6, 5]), "sparse tensor"),
        (lambda: fb.nn.ctc_loss(SOME, LOGITS, [6, 5, 4]), "2"),
        (lambda: fb.nn.ctc_loss(SOME, LOGITS[0], [6, 5]), "3"),
        (lambda: fb.nn.ctc_beam_search_decoder(LOGITS, [6, 5], 2, 3), "no 3 paths"),
        (lambda: fb.nn.ctc_beam_search_decoder(LOGITS, [6, 5], 0), "at least 1"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
            build()
        assert "test_ctc.py" in str(caught.value)


def test_decoding_a_confident_sequence() -> None:
    path = [0, 0, 3, 0, 2, 3, 3, 1]
    logits = np.eye(4)[path][:, None] * 20
    for decoder in (fb.nn.ctc_greedy_decoder, fb.nn.ctc_beam_search_decoder):
        [decoded], score = decoder(logits, [8], merge_repeated=decoder is fb.nn.ctc_greedy_decoder)
        values, shape, _ = evaluate([decoded.values, decoded.dense_shape, score])
        assert values.tolist() == [0, 0, 2, 1]
        assert shape.tolist() == [1, 4]


def test_a_narrow_beam_runs_out() -> None:
    decoded, score = fb.nn.ctc_beam_search_decoder(LOGITS, [0, 1], 10, 2)
    lengths, score = evaluate([[d.dense_shape for d in decoded][1], score])
    assert score[0].tolist() == [0, -np.inf]
    assert lengths.tolist()[0] == 2
    assert np.isfinite(score[1]).all()


def test_shapes_are_checked_in_the_run() -> None:
    x, lengths = fb.placeholder(fb.float32), fb.placeholder(fb.int32)
    indices, values = fb.placeholder(fb.int64), fb.placeholder(fb.int32)
    given = SimpleNamespace(indices=indices, values=values, dense_shape=[2, 3])
    loss = fb.nn.ctc_loss(given, x, lengths)
    right = {x: LOGITS, lengths: [6, 5], indices: SOME.indices, values: SOME.values}
    assert evaluate(loss, right).shape == (2,)
    for wrong, message in (
        ({x: LOGITS[0]}, "one length for each"),
        ({lengths: [6]}, "one length for each"),
        ({indices: SOME.indices[:, 0]}, "one index"),
        ({values: SOME.values[:1]}, "one index"),
        ({x: LOGITS[:, :, :0]}, "the blank"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=message):
            evaluate(loss, right | wrong)


@given(st.data())
def test_repeated_labels_are_collapsed(data: Any) -> None:
    batch, most = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6))
    labels = np.array(
        [[data.draw(st.integers(0, 2)) for _ in range(most)] for _ in range(batch)], np.int64
    )
    lengths = [data.draw(st.integers(0, most)) for _ in range(batch)]
    wanted = [
        [k for k, _ in itertools.groupby(row[:n])]
        for row, n in zip(labels.tolist(), lengths, strict=True)
    ]
    with fb.Graph().as_default(), fb.Session() as sess:
        x = fb.placeholder(fb.int64, None if data.draw(st.booleans()) else [None, None])
        collapsed, left = sess.run(fb.nn.collapse_repeated(x, lengths), {x: labels})
    assert left.tolist() == [len(row) for row in wanted]
    assert collapsed.shape == (batch, max(map(len, wanted)))
    assert [row[:n].tolist() for row, n in zip(collapsed, left, strict=True)] == wanted
    assert collapsed.sum() == sum(map(sum, wanted))


def test_labels_to_collapse_are_a_matrix() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[batch, most\]"):
        fb.nn.collapse_repeated([1, 2], [2])
