"""What `tensor.set_shape` says: it is known from then on, and checked."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building import verify

ONES = np.ones((2, 3), np.float32)


def test_what_is_said_adds_up_and_what_is_built_knows_it() -> None:
    x = fb.placeholder(fb.float32, name="x")
    before = fb.nn.relu(x)
    x.set_shape([None, 3])
    x.set_shape([2, None])
    x.set_shape(None)
    assert x.shape == [2, 3]
    assert (x @ fb.ones([3, 5])).shape == [2, 5]
    assert before.shape.rank is None
    built = len(x.graph.operations)
    x.set_shape([2, 3])
    assert len(x.graph.operations) == built
    verify.check(x.graph)


def test_what_contradicts_is_refused_and_changes_nothing() -> None:
    x = fb.placeholder(fb.float32, [None, 3], name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match="not compatible") as refused:
        x.set_shape([None, 4])
    assert "x:0 float32 [?, 3]" in str(refused.value)
    with pytest.raises(fb.errors.InvalidArgumentError, match="not compatible"):
        x.set_shape([3])
    assert x.shape == [None, 3]
    assert len(x.graph.operations) == 1


def test_what_is_fed_is_checked() -> None:
    x = fb.placeholder(fb.float32, name="x")
    x.set_shape([None, 3])
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"fed for 'x:0' .* \[2, 4\]"):
            sess.run(x * 2, {x: np.ones((2, 4))})
        assert sess.run(x * 2, {x: ONES}).tolist() == (ONES * 2).tolist()


def test_what_is_fed_again_is_checked_by_what_was_said_meanwhile() -> None:
    x = fb.placeholder(fb.float32, name="x")
    wide = np.ones((2, 4), np.float32)
    with fb.Session() as sess:
        sess.run(x * 2, {x: wide})
        x.set_shape([None, 3])
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"fed for 'x:0' .* \[2, 4\]"):
            sess.run(x * 3, {x: wide})


def test_what_is_computed_is_checked_and_not_trusted() -> None:
    x = fb.py_func(lambda: np.ones((2, 4), np.float32), [], fb.float32)
    before = x * 2
    x.set_shape([2, 3])
    after = x * 2
    with fb.Session() as sess:
        for _ in range(3):  # Kernel by kernel, and as generated code.
            assert sess.run([x, before])[1].shape == (2, 4)
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[2, 4\] does not fit"):
                sess.run(after)


def test_gradients_are_those_of_all_uses() -> None:
    x = fb.placeholder(fb.float32)
    before = fb.reduce_sum(x * 3)
    x.set_shape([2, 3])
    loss = before + fb.reduce_sum(x * x)
    (dx,) = fb.gradients(loss, [x])
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(dx, {x: 2 * ONES}), 7 * ONES)


def test_a_stored_graph_tells_as_much() -> None:
    x = fb.placeholder(fb.float32, name="x")
    fb.nn.relu(x, name="before")
    x.set_shape([None, 3])
    fb.nn.relu(x, name="after")
    data = x.graph.to_bytes()
    loaded = fb.Graph.from_bytes(data)
    assert loaded.to_bytes() == data
    verify.check(loaded)
    kept = loaded.get_tensor_by_name("x:0")
    assert kept.shape == [None, 3]
    with loaded.as_default(), pytest.raises(fb.errors.InvalidArgumentError):
        kept.set_shape([None, 4])
    assert [op.name for op in kept.consumers()] == ["before", "SetShape"]
    with loaded.as_default():
        assert (kept + 1).op.inputs[0].op.type == "SetShape"


def test_a_tensor_that_stands_for_an_imported_one_is_checked() -> None:
    with fb.Graph().as_default() as inner:
        fb.nn.relu(fb.placeholder(fb.float32, name="x"), name="y")
    x = fb.placeholder(fb.float32)
    x.set_shape([2, 3])
    (y,) = fb.import_graph_def(inner, {"x": x}, ["y:0"])
    assert y.shape == [2, 3]
    assert y.op.inputs[0].op.type == "SetShape"


def test_it_is_said_of_a_loops_own_tensors_and_of_those_around() -> None:
    around = fb.placeholder(fb.float32)

    def body(i: fb.Tensor, total: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        around.set_shape([2])
        own = fb.py_func(lambda n: np.full(2, n, np.float32), [i], fb.float32)

        def inside(j: fb.Tensor, sum_: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
            own.set_shape([2])
            return j + 1, sum_ + own * around

        _, total = fb.while_loop(lambda j, _: j < 2, inside, [0, total])
        assert own.shape == [2]
        return i + 1, total

    total = fb.while_loop(lambda i, _: i < 3, body, [0, fb.zeros([2])])[1]
    assert around.shape == [2]
    with fb.Session() as sess:
        assert sess.run(total, {around: [1.0, 10.0]}).tolist() == [6.0, 60.0]


def test_control_dependencies_do_not_hold_for_it() -> None:
    x = fb.placeholder(fb.float32)
    fails = fb.Assert(fb.constant(False), ["never"])
    with fb.control_dependencies([fails]):
        x.set_shape([2])
    with fb.Session() as sess:
        assert sess.run(x + 1, {x: [1.0, 2.0]}).tolist() == [2.0, 3.0]
