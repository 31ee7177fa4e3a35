"""Candidate samplers: what they draw, how often, and that the number of classes costs nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import Interpreter, evaluate

RIGHT = np.array([[0, 3], [1, 9]])


def probabilities(name: str) -> np.ndarray:
    k = np.arange(10)
    return {
        "uniform": np.full(10, 0.1),
        "log_uniform": np.log((k + 2) / (k + 1)) / math.log(11),
        "fixed_unigram": np.array([0, 0, *range(1, 9)]) ** 0.75 / (np.arange(9) ** 0.75).sum(),
    }[name]


def sample(name: str, count: int, unique: bool, **options: Any) -> Any:
    if name == "fixed_unigram":
        options |= {"unigrams": range(1, 9), "num_reserved_ids": 2, "distortion": 0.75}
    sampler = getattr(fb.nn, f"{name}_candidate_sampler")
    return sampler(RIGHT, 2, count, unique, 10, **options)


NAMES = pytest.mark.parametrize("name", ["uniform", "log_uniform", "fixed_unigram"])


@NAMES
def test_with_repetition(name: str) -> None:
    sampled, right, drawn = evaluate(list(sample(name, 20_000, False)))
    assert (sampled.dtype, right.dtype, drawn.dtype) == (np.int64, np.float32, np.float32)
    p = probabilities(name)
    counts = np.bincount(sampled, minlength=10)
    assert (abs(counts - 20_000 * p) <= 5 * np.sqrt(20_000 * p)).all()
    np.testing.assert_allclose(right, 20_000 * p[RIGHT], rtol=1e-5)
    np.testing.assert_allclose(drawn, 20_000 * p[sampled], rtol=1e-5)


@NAMES
def test_without_repetition(name: str) -> None:
    outputs = sample(name, 5, True)
    assert [t.shape for t in outputs] == [[5], [2, 2], [5]]
    interpreter = Interpreter()
    runs = [interpreter.run(list(outputs)) for _ in range(2000)]
    sampled, right, drawn = map(np.stack, zip(*runs, strict=True))
    assert (np.diff(np.sort(sampled)) > 0).all()
    # All of a run follow from the same number of draws.
    tries = np.log1p(-drawn.astype(float)) / np.log1p(-probabilities(name)[sampled])
    counts = np.round(tries[:, :1])
    np.testing.assert_allclose(tries, np.broadcast_to(counts, tries.shape), rtol=1e-2)
    assert (counts >= 5).all()
    # The expected counts approximate how often classes are really drawn.
    often = np.bincount(sampled.ravel(), minlength=10)[RIGHT] / 2000
    np.testing.assert_allclose(often, right.mean(0), atol=0.06)


@NAMES
def test_all_classes_can_be_drawn(name: str) -> None:
    count = 8 if name == "fixed_unigram" else 10
    sampled = evaluate(sample(name, count, True)[0])
    assert sorted(sampled.tolist()) == list(range(10 - count, 10))


@NAMES
def test_seeds_and_sessions(name: str) -> None:
    sampled = sample(name, 6, True, seed=4)[0]
    assert sampled.op.attributes["seed"] == 4
    draws = []
    for _ in range(2):
        with fb.Session(graph=sampled.graph) as sess:
            draws.append([sess.run(sampled).tolist() for _ in range(3)])
    assert draws[0] == draws[1]
    assert draws[0][0] != draws[0][1]
    loaded = fb.Graph.from_bytes(sampled.graph.to_bytes())
    with fb.Session(graph=loaded) as sess:
        assert sess.run(sampled.name).tolist() == draws[0][0]


def test_shards_are_parts() -> None:
    sampled, right, _ = fb.nn.fixed_unigram_candidate_sampler(
        [[0], [1]], 1, 1000, False, 2, unigrams=[1, 2, 3, 4], num_shards=2, shard=1
    )
    sampled, right = evaluate([sampled, right])
    np.testing.assert_allclose(right[:, 0], [1000 / 3, 2000 / 3], rtol=1e-6)
    assert abs((sampled == 1).mean() - 2 / 3) < 0.1


def test_the_number_of_classes_costs_nothing() -> None:
    # Work by the range would take hours.
    for classes in (1000, 10**12):
        for name in ("uniform", "log_uniform"):
            sampler = getattr(fb.nn, f"{name}_candidate_sampler")
            sampled, *_ = evaluate(list(sampler([[1]], 1, 100, True, classes)))
            assert ((sampled >= 0) & (sampled < classes)).all()


def test_all_candidates() -> None:
    sampled, right, drawn = evaluate(list(fb.nn.all_candidate_sampler(RIGHT, 2, 4, True)))
    assert sampled.tolist() == [0, 1, 2, 3]
    assert right.tolist() == [[1, 1]] * 2
    assert drawn.tolist() == [1] * 4
    assert (sampled.dtype, right.dtype) == (np.int64, np.float32)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fb.nn.uniform_candidate_sampler(RIGHT, 2, 11, True, 10), "11 different classes"),
        (lambda: fb.nn.uniform_candidate_sampler(RIGHT, 3, 2, True, 10), "differ"),
        (lambda: fb.nn.uniform_candidate_sampler(RIGHT, 2, 0, True, 10), "at least 1"),
        (lambda: fb.nn.uniform_candidate_sampler(RIGHT, 2, 1.5, True, 10), "is an int"),
        (lambda: fb.nn.uniform_candidate_sampler([[0.5]], 1, 1, True, 10), "int64"),
        (
            lambda: fb.nn.fixed_unigram_candidate_sampler(RIGHT, 2, 2, True, 5, unigrams=[1, 2]),
            "there are 2 classes",
        ),
        (
            lambda: fb.nn.fixed_unigram_candidate_sampler(RIGHT, 2, 2, True, 2, unigrams=[1, 0]),
            "cannot be drawn of 1",
        ),
        (
            lambda: fb.nn.fixed_unigram_candidate_sampler(RIGHT, 2, 2, True, 2, unigrams=[1, -1]),
            "none negative",
        ),
        (
            lambda: fb.nn.fixed_unigram_candidate_sampler(
                RIGHT, 2, 2, True, 2, unigrams=[1, 1], shard=1
            ),
            "shard 1 of 1",
        ),
    ],
)
def test_errors_at_construction(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        build()
    assert "test_candidate_sampling.py" in str(caught.value)


def test_errors_in_the_run() -> None:
    right = fb.placeholder(fb.int64)
    sampled = fb.nn.log_uniform_candidate_sampler(right, 1, 2, True, 10)[0]
    with pytest.raises(fb.errors.InvalidIndexError, match="class 10 is out of range"):
        evaluate(sampled, {right: [[10]]})
    for wrong in ([1], [[1, 2]]):
        with pytest.raises(fb.errors.InvalidArgumentError, match="not \\[batch, 1\\]"):
            evaluate(sampled, {right: wrong})


# Losses over a sample


@pytest.mark.parametrize("loss", [fb.nn.sampled_softmax_loss, fb.nn.nce_loss])
def test_a_step_touches_the_rows_of_the_sample(loss: Any) -> None:
    weights = fb.Variable(fb.random_normal([1000, 4]))
    biases = fb.Variable(fb.zeros([1000]))
    inputs, labels = fb.placeholder(fb.float32, [None, 4]), fb.placeholder(fb.int32, [None, 1])
    losses = loss(weights, biases, labels, inputs, 20, 1000)
    assert losses.shape.rank == 1
    grads = fb.gradients(losses, [weights, biases])
    assert all(isinstance(g, fb.IndexedSlices) for g in grads)
    types = [op.type for op in losses.graph.operations if "Variable" in op.type]
    assert types.count("VariableGather") == 2
    feeds = {inputs: np.ones((3, 4)), labels: [[0], [5], [999]]}
    value, rows = evaluate([losses, grads[0].values], feeds)
    assert value.shape == (3,)
    assert np.isfinite(value).all()
    assert rows.shape == (23, 4)


@pytest.mark.parametrize("dtype", fb.FLOATS)
@pytest.mark.parametrize("loss", [fb.nn.sampled_softmax_loss, fb.nn.nce_loss])
def test_hits_and_large_logits_do_no_harm(loss: Any, dtype: fb.DType) -> None:
    weights = fb.constant(np.array([[1e4], [-1e4], [1.0]]), dtype)
    inputs = fb.constant(np.ones((2, 1)), dtype)
    drawn = fb.constant(np.array([0, 0, 1])), fb.constant(np.ones((2, 2), np.float32)), fb.ones([3])
    losses = loss(
        weights,
        fb.zeros([3], dtype),
        [[0, 0], [2, 1]],
        inputs,
        3,
        3,
        num_true=2,
        sampled_values=drawn,
        remove_accidental_hits=True,
    )
    [slope] = fb.gradients(losses, [weights])
    value, slope = evaluate([losses, slope.as_tensor()])
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()


def test_labels_are_columns() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="expand_dims"):
        fb.nn.nce_loss(fb.zeros([9, 2]), fb.zeros([9]), [1, 2], fb.zeros([2, 2]), 3, 9)


def test_labels_that_come_behind_the_inputs_are_told_so() -> None:
    weights, inputs = fb.zeros([9, 4]), fb.zeros([2, 4])
    for loss in (fb.nn.nce_loss, fb.nn.sampled_softmax_loss):
        with pytest.raises(fb.errors.InvalidTypeError, match="labels come before inputs"):
            loss(weights, fb.zeros([9]), inputs, [[1], [2]], 3, 9)
