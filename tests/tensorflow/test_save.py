"""Graphs written for TensorFlow, and read back: `tests/check_tensorflow.py` runs them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.tensorflow.messages_pb2 import GraphDef


def again(message: GraphDef) -> Any:
    """What is read of what was written, in a graph of its own."""
    return fb.tensorflow.load(message, graph=fb.Graph())


def same(fetches: list[Any], feeds: dict[Any, Any], session: fb.Session, frozen: bool) -> Any:
    """The model read back, after seeing that it computes the same."""
    wanted = session.run(fetches, feeds)
    model = again(fb.tensorflow.save(fetches, session=session if frozen else None))
    with fb.Session(graph=model.graph) as other:
        given = {model[t.name]: v for t, v in feeds.items()}
        found = other.run([model[t.name] for t in fetches], given)
    for value, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-6)
    return model


@pytest.mark.parametrize("frozen", [True, False])
def test_loops_branches_and_what_enters_them(frozen: bool) -> None:
    n = fb.placeholder(fb.int32, [], name="n")
    x = fb.placeholder(fb.float32, [3], name="x")
    W = fb.Variable(np.eye(3, dtype=np.float32) * 0.5 + 0.1, name="W")

    def inner(i: Any, y: Any, parts: Any) -> Any:
        even = fb.equal(i % 2, 0)
        y = fb.cond(even, lambda: fb.reshape(fb.matmul(y[None], W), [3]), lambda: y + 1.0)
        _, y = fb.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, z * 1.5), (0, y))
        return i + 1, y, parts.write(i, fb.reduce_sum(y))

    _, y, parts = fb.while_loop(
        lambda i, *_: i < n, inner, (0, x, fb.TensorArray(fb.float32, n, name="parts"))
    )
    fetches = [fb.identity(y, name="y"), fb.identity(parts.stack(), name="sums")]
    with fb.Session() as sess:
        model = same(fetches, {n: 4, x: np.array([0.1, -0.2, 0.3])}, sess, frozen)
        message = fb.tensorflow.save(fetches, session=sess if frozen else None)
    assert bool(model.variables) is not frozen
    # What is outside of loops is taken into them: TensorFlow has it there no other way.
    takers = {node.op for node in message.node if "W" in node.input}
    assert takers - {"AssignVariableOp"} == {"Enter"}


def test_a_step_of_training_is_written_with_its_variables() -> None:
    x = fb.placeholder(fb.float32, [4, 3], name="x")
    W = fb.Variable([[0.5], [-1.0], [2.0]], name="W")
    loss = fb.reduce_mean(fb.square(fb.matmul(x, W)), name="loss")
    train = fb.train.AdamOptimizer(0.1).minimize(loss, name="train")
    message = fb.tensorflow.save([loss, train])
    assert {node.op for node in message.node} >= {"VarHandleOp", "ReadVariableOp", "NoOp"}
    [init] = [node for node in message.node if node.name == "init"]
    assert "^W/Assign" in init.input
    model = again(message)
    values = np.arange(12.0).reshape(4, 3)

    def losses(graph: fb.Graph, fetches: Any, key: Any) -> list[float]:
        with fb.Session(graph=graph) as sess:
            return [float(sess.run(fetches, {key: values})[0]) for _ in range(4)]

    wanted = losses(loss.graph, [loss, train], x)
    found = losses(model.graph, [model["loss:0"], model["train"]], model["x:0"])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert found[-1] < found[0]


def test_what_draws_checks_and_acts_outside(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "text").write_bytes(b"read")
    x = fb.placeholder(fb.float32, [1, 1, 1, 3], name="x")
    with fb.control_dependencies([fb.Assert(fb.reduce_all(x > 0.0), [x], name="check")]):
        shown = fb.Print(x, [x], message="shown", name="shown")
    text = fb.strings.join([fb.read_file(str(tmp_path / "text")), "it"], "-", name="text")
    normal = fb.nn.local_response_normalization(shown, 1, 1.0, 0.5, 0.75, name="normal")
    drawn = [
        fb.random_uniform([3], seed=1),
        fb.random_uniform([3], 2, 5, fb.int64, seed=1),
        fb.random_normal([3], seed=1),
        fb.truncated_normal([3], seed=1),
        fb.random_shuffle(fb.range(3), seed=1),
    ]
    fetches = [text, normal, *drawn]
    model = again(fb.tensorflow.save(fetches))
    right = np.ones((1, 1, 1, 3), np.float32)
    with fb.Session() as sess, fb.Session(graph=model.graph) as other:
        wanted = sess.run(fetches, {x: right})
        found = other.run([model[t.name] for t in fetches], {model["x:0"]: right})
        assert found[0] == wanted[0] == b"read-it"
        assert np.allclose(found[1], wanted[1])
        for value, one in zip(found[2:], wanted[2:], strict=True):
            assert (value.shape, value.dtype) == (one.shape, one.dtype)
        assert set(found[3]) <= {2, 3, 4}
        assert sorted(found[6]) == [0, 1, 2]
        assert capfd.readouterr().err.count("shown") == 2
        with pytest.raises(fb.errors.InvalidArgumentError, match="check"):
            other.run(model["normal:0"], {model["x:0"]: -right})


def test_names_devices_colocation_and_order_are_written() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="deep/x")
    with fb.device("cpu:0"):
        y = fb.nn.relu(x, name="deep/y")
    with fb.colocate_with(y), fb.control_dependencies([y.op]):
        z = fb.negative(x, name="z")
    nodes = {node.name: node for node in fb.tensorflow.save([z]).node}
    assert set(nodes) == {"deep/x", "deep/y", "z"}
    assert nodes["deep/y"].device == "/device:CPU:0"
    assert list(nodes["z"].input) == ["deep/x", "^deep/y"]
    assert nodes["z"].attr["_class"].list.s == [b"loc:@deep/y"]
    assert [d.size for d in nodes["deep/x"].attr["shape"].shape.dim] == [-1, 2]


def test_a_graph_is_cut_at_its_inputs() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    middle = fb.py_func(lambda v: v, [x], fb.float32, name="middle")
    y = fb.square(fb.ensure_shape(middle, [2], name="known"), name="y")
    with pytest.raises(fb.errors.UnimplementedError, match="PyFunc"):
        fb.tensorflow.save(y)
    message = fb.tensorflow.save(y, inputs=[middle])
    nodes = {node.name: node.op for node in message.node}
    assert nodes["middle"] == "Placeholder"
    assert "x" not in nodes


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    fb.tensorflow.save(fb.exp(x, name="y"), tmp_path / "y.pb")
    fb.tensorflow.save(fb.exp(x, name="z"), tmp_path / "z.pbtxt", as_text=True)
    assert (tmp_path / "z.pbtxt").read_text().startswith("node {")
    for name in ("y.pb", "z.pbtxt"):
        model = fb.tensorflow.load(tmp_path / name, name="back")
        assert model.outputs[name[0]].op.type == "Exp"
    own = fb.py_func(lambda: 1.0, [], fb.float32)
    with pytest.raises(fb.errors.UnimplementedError, match="PyFunc"):
        fb.tensorflow.save([own], tmp_path / "no.pb")
    assert not (tmp_path / "no.pb").exists()


def test_all_that_cannot_be_written_is_told_at_once() -> None:
    one = fb.py_func(lambda: 1.0, [], fb.float32)
    other = fb.matrix_rank(fb.ones([2, 2]))
    with pytest.raises(fb.errors.UnimplementedError, match=r"MatrixRank, PyFunc \(2\)"):
        fb.tensorflow.save([one, other, fb.py_func(lambda: 1.0, [], fb.float32)])
    x = fb.placeholder(fb.float32, name="x")
    bad = [fb.einsum("ab,bc,cd->ad", x, x, x, name="e"), fb.transpose(x, name="t")]
    with pytest.raises(fb.errors.UnimplementedError, match=r"(?s)'e'.*'t'"):
        fb.tensorflow.save(bad)
    v = fb.Variable(1.0)
    with fb.Session() as sess, pytest.raises(fb.errors.UnimplementedError, match="AssignAdd"):
        fb.tensorflow.save(fb.assign_add(v, 1.0), session=sess)
    with pytest.raises(fb.errors.InvalidTypeError, match="tensors and operations"):
        fb.tensorflow.save(["x"])
