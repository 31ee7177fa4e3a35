from __future__ import annotations

from typing import Any

import pytest

import flowbook as fb
from tests.explain.models import classifier


def rules(**asked: Any) -> list[str]:
    return [finding.rule for finding in fb.lint(**asked)]


def test_a_sound_model_has_no_findings() -> None:
    model = classifier()
    assert rules(loss=model.loss) == []
    assert not fb.lint()
    assert "nothing" in repr(fb.lint())


@pytest.mark.parametrize(
    ("a", "b", "is_found"),
    [
        ([4], [4, 1], True),
        ([4, 1], [4], True),
        ([None], [None, 1], True),
        ([None], [4, 1], True),
        ([4], [3, 1], False),
        ([4, 1], [1, 4], False),
        ([4], [2, 4], False),
        ([], [4, 1], False),
        ([1], [4, 1], False),
        (None, [4, 1], False),
        ([2, 3], [5, 1, 3], False),
        ([5, 3], [5, 1, 3], True),
    ],
)
def test_broadcast(a: Any, b: Any, is_found: bool) -> None:
    x, y = fb.placeholder(fb.float32, a), fb.placeholder(fb.float32, b)
    z = x - y
    assert rules() == ["broadcast"] * is_found
    if is_found:
        [finding] = fb.lint()
        assert finding.operation is z.op
        assert str(x.shape) in finding.message


@pytest.mark.parametrize(
    ("condition", "a", "b", "is_found"),
    [([4, 1], [4], [4], True), ([4], [4], [4, 1], True), ([4], [4], [], False)],
)
def test_broadcast_among_three(condition: Any, a: Any, b: Any, is_found: bool) -> None:
    x, y = fb.placeholder(fb.float32, a), fb.placeholder(fb.float32, b)
    fb.where(fb.placeholder(fb.bool, condition), x, y)
    assert rules() == ["broadcast"] * is_found


def test_a_variable_is_no_batch() -> None:
    x = fb.placeholder(fb.float32, [None, 1])
    w = fb.Variable([1.0, 2.0, 3.0])
    assert (x * w).shape == [None, 3]
    assert rules() == []
    assert (fb.placeholder(fb.float32, [3, 1]) * w).shape == [3, 3]
    assert rules() == ["broadcast"]


def test_an_axis_that_was_written_is_meant() -> None:
    lengths = fb.placeholder(fb.int32, [None])
    fb.less(fb.range(5), fb.expand_dims(lengths, 1))
    fb.less(fb.range(5), lengths[:, None])
    fb.less(fb.range(5), 2 * lengths[:, None] + 1)
    fb.less(fb.constant([1.0, 2.0, 3.0, 4.0, 5.0]), fb.cast(lengths[:, None], fb.float32))
    x = fb.placeholder(fb.float32, [None, 3, 4])
    fb.nn.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert rules() == []


def test_a_column_that_was_cut_is_not_meant() -> None:
    x, labels = fb.placeholder(fb.float32, [None, 3]), fb.placeholder(fb.float32, [None])
    assert (x[:, 1:2] - labels).shape == [None, None]
    assert rules() == ["broadcast"]


def test_unused_variables() -> None:
    used = fb.Variable(1.0, name="used")
    fb.Variable(2.0, name="forgotten")
    fb.Variable(3.0, name="counter", trainable=False)
    other = fb.Variable(4.0, name="other") * 2.0
    loss = used * 2.0
    assert [f.operation.name for f in fb.lint()] == ["forgotten"]
    assert [f.operation.name for f in fb.lint(loss=loss)] == ["forgotten", "other"]
    assert other.graph is used.graph


def test_gradients_that_are_none() -> None:
    w = fb.Variable([[1.0, 2.0]], name="w")
    v = fb.Variable([[1.0, 2.0]], name="v")
    hard = fb.argmax(w, 1, name="hard")
    loss = fb.reduce_sum(fb.cast(hard, fb.float32) * fb.reduce_sum(v))
    [finding] = fb.lint(loss=loss)
    assert (finding.rule, finding.operation) == ("no gradient", w.op)
    assert "ArgMax 'hard'" in finding.message
    assert fb.gradients(loss, [w, v])[0] is None


def test_a_gradient_that_a_gradient_function_leaves_out() -> None:
    v, w = fb.Variable(1.0, name="v"), fb.Variable(-1.0, name="w")
    loss = fb.copysign(fb.exp(v), w)
    before = len(fb.get_default_graph().operations)
    [finding] = fb.lint(loss=loss)
    assert (finding.rule, finding.operation) == ("no gradient", w.op)
    assert len(fb.get_default_graph().operations) == before
    assert fb.gradients(loss, [v, w])[1] is None
    assert rules(loss=loss * fb.exp(w)) == []


def test_a_stopped_gradient_is_named() -> None:
    w = fb.Variable(1.0, name="w")
    [finding] = fb.lint(loss=fb.stop_gradient(w, name="stop") * 2.0)
    assert "StopGradient 'stop'" in finding.message
    assert not fb.lint(loss=fb.stop_gradient(w) * w)


def test_softmax_twice() -> None:
    logits = fb.placeholder(fb.float32, [None, 3])
    labels = fb.placeholder(fb.int32, [None])
    probabilities = fb.reshape(fb.nn.softmax(logits), [-1, 3])
    fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    assert rules() == []
    fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=probabilities)
    fb.log(fb.nn.softmax(logits))
    assert rules() == ["softmax twice", "log of softmax"]


def test_a_softmax_is_one_in_whatever_shape_and_order_it_is_shown() -> None:
    turned = fb.OpDef(
        "TurnedForLint",
        "x: T -> y: T",
        T=fb.VALUES,
        infer=lambda x: x.shape,
        kernel=lambda xp, x: x[::-1],
        aliases={0: 0},
        spreads_nonfinite=("x",),
        cost=lambda op: 0,
        computes=False,
    )
    axis = fb.placeholder(fb.int32, [])
    probabilities = fb.nn.softmax(fb.placeholder(fb.float32, [None, 3]))
    for shown in (
        turned(probabilities),
        fb.transpose(probabilities),
        fb.expand_dims(probabilities, axis),
        fb.ensure_shape(probabilities, [4, 3]),
        fb.stop_gradient(probabilities),
    ):
        fb.log(shown)
    assert rules() == ["log of softmax"] * 5
    # Of a part it is not known whether it is what rounds to 0.
    fb.log(probabilities[:, 0])
    fb.log(fb.reduce_sum(probabilities, 1))
    assert len(rules()) == 5


def test_a_loss_is_a_tensor() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=r"loss=\.\.\."):
        fb.lint(fb.constant(1.0))  # type: ignore[arg-type]
    with pytest.raises(fb.errors.InvalidTypeError, match="loss"):
        fb.lint(loss=1.0)  # type: ignore[arg-type]


def test_variables_of_loops_are_used_and_trained() -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    w = fb.Variable(fb.ones([3, 3]))
    _, y = fb.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y @ w), (0, x))
    assert not list(fb.lint(loss=fb.reduce_sum(y)))
    _, z = fb.while_loop(lambda i, _: i < 2, lambda i, z: (i + 1, fb.floor(z @ w)), (0, x))
    [finding] = fb.lint(loss=fb.reduce_sum(z))
    assert finding.rule == "no gradient"
    assert "only through Floor 'while_1/Floor'" in finding.message
