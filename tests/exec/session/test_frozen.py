"""A model in one file, with its values, that runs where nobody has the code."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb

InvalidArgument = fb.errors.InvalidArgumentError

ELSEWHERE = """
import sys
import numpy as np
import flowbook as fb

graph = fb.Graph.load(sys.argv[1])
assert not graph.variables()
with fb.Session(graph) as sess:
    found = sess.run(["out:0", "rows:0"], {"images": np.load(sys.argv[2])})
np.savez(sys.argv[3], *found)
"""


@pytest.fixture
def sess() -> Any:
    with fb.Session() as session:
        yield session


def test_another_process_computes_the_same(sess: fb.Session, tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    W = fb.Variable(fb.random_normal([3, 2]), name="W")
    table = fb.Variable(np.arange(6.0).reshape(3, 2), name="table")
    _, y = fb.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, fb.tanh(a + W[0])), [0, x @ W])
    out = fb.cond(fb.reduce_sum(x) > 0.0, lambda: y * fb.reduce_max(W), lambda: y)
    rows = fb.gather(table, [2, 0])
    sess.run(fb.assign(table, np.arange(6.0).reshape(3, 2) + 0.5))
    images = np.ones([4, 3], np.float32)
    wanted = sess.run([out, rows], {x: images})
    fb.save_graph(tmp_path / "model", {"out": out, "rows": rows}, {"images": x}, sess)
    np.save(tmp_path / "images.npy", images)
    paths = [str(tmp_path / name) for name in ("model", "images.npy", "found.npz")]
    subprocess.run([sys.executable, "-c", ELSEWHERE, *paths], check=True, timeout=100)
    with np.load(paths[2]) as found:
        for name, value in zip(found.files, wanted, strict=True):
            assert found[name].dtype == value.dtype
            assert found[name].tobytes() == value.tobytes()


def test_what_is_not_named_keeps_its_name(sess: fb.Session, tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    v = fb.Variable(2.0, name="v")
    y = fb.multiply(x, v, name="y")
    fb.save_graph(tmp_path / "model", y, x)
    graph = fb.Graph.load(tmp_path / "model")
    assert [op.type for op in graph.operations] == ["Placeholder", "Const", "Identity", "Mul"]
    with fb.Session(graph) as other:
        assert other.run("y:0", {"x": 3.0}) == 6.0
    fb.save_graph(tmp_path / "model", ["y"], ["x:0"], sess)
    assert fb.Graph.load(tmp_path / "model").has_operation("y")


def test_any_tensor_may_be_fed(sess: fb.Session, tmp_path: Path) -> None:
    images = fb.placeholder(fb.float32, [2], name="images")
    hidden = images * fb.Variable(2.0)
    out = hidden + 1.0
    fb.save_graph(tmp_path / "model", {"out": out}, {"hidden": hidden}, sess)
    graph = fb.Graph.load(tmp_path / "model")
    assert not graph.has_operation("images")
    with fb.Session(graph) as other:
        assert other.run("out:0", {"hidden": [1.0, 2.0]}).tolist() == [2.0, 3.0]


def test_a_variable_itself_is_its_value(sess: fb.Session, tmp_path: Path) -> None:
    v = fb.Variable([1.0, 2.0], name="v")
    fb.save_graph(tmp_path / "model", {"v_now": v}, sess=sess)
    with fb.Session(fb.Graph.load(tmp_path / "model")) as other:
        assert other.run("v_now:0").tolist() == [1.0, 2.0]


def test_what_cannot_be_saved_for_others(sess: fb.Session, tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    v = fb.Variable(2.0, name="v")
    path = tmp_path / "model"
    with pytest.raises(InvalidArgument, match="'x'"):
        fb.save_graph(path, {"y": x * v}, {}, sess)
    for changed in (fb.assign_add(v, 1.0), fb.cast(fb.is_variable_initialized(v), fb.int32)):
        with pytest.raises(InvalidArgument, match="values in place of variables"):
            fb.save_graph(path, {"y": changed}, {}, sess)
    with pytest.raises(fb.errors.UnimplementedError, match="Python code"):
        fb.save_graph(path, {"y": fb.py_func(abs, [v], fb.float32)}, {}, sess)
    with pytest.raises(InvalidArgument, match="name of another operation"):
        fb.save_graph(path, {"x": x * v}, {"x": x}, sess)
    with pytest.raises(InvalidArgument, match="name of another operation"):
        fb.save_graph(path, {"y": fb.add(x, 1.0, name="z")}, {"z": x}, sess)
    assert not path.exists()


@pytest.mark.parametrize("wrong", [5, [5], {1: "v"}, {"y": None}])
def test_what_is_no_tensor(wrong: Any, sess: fb.Session, tmp_path: Path) -> None:
    v = fb.Variable(2.0, name="v")
    assert v.op.name == "v"
    with pytest.raises(fb.errors.InvalidTypeError):
        fb.save_graph(tmp_path / "model", wrong, {}, sess)
    with pytest.raises(InvalidArgument, match="nothing to compute"):
        fb.save_graph(tmp_path / "model", [], {}, sess)
    with pytest.raises(InvalidArgument, match="two tensors of one operation"):
        fb.save_graph(tmp_path / "model", [v, v], {}, sess)


def test_whose_values_are_meant(tmp_path: Path) -> None:
    v = fb.Variable(2.0, name="v")
    ambiguous = pytest.raises(fb.errors.FailedPreconditionError, match="whose values")
    with ambiguous:
        fb.save_graph(tmp_path / "model", {"y": v})
    with fb.Session() as one, fb.Session(), ambiguous:
        one.run(fb.assign(v, 3.0))
        fb.save_graph(tmp_path / "model", {"y": v})
    # Without variables nobody has to say.
    fb.save_graph(tmp_path / "model", {"y": fb.constant(1.0)})
