"""Tensors to checkpoints and back, within a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb

InvalidArgument = fb.errors.InvalidArgumentError


def run(fetches: Any, feeds: Any = None) -> Any:
    with fb.Session() as sess:
        for _ in range(2):  # Kernel by kernel, and as code.
            sess.run(fetches, feeds)
        return sess.run(fetches, feeds)


def test_any_tensors_are_saved_and_restored(tmp_path: Path) -> None:
    path = fb.placeholder(fb.string, [], name="path")
    values = {
        "a": fb.constant([[1.0, 2.0]]) * 2.0,
        "text": fb.constant([b"x", b""]),
        "small": fb.cast(fb.constant([1.0]), fb.float8_e4m3fn),
    }
    save = fb.train.save_tensors(path, values)
    assert save.type == "Save"
    assert run(save, {path: str(tmp_path / "it")}) is None
    like: dict[str, Any] = {**values, "a": (fb.float32, [None, 2])}
    restored = fb.train.restore_tensors(path, like)
    assert {n: str(t.shape) for n, t in restored.items()} == {
        "a": "[?, 2]",
        "text": "[2]",
        "small": "[1]",
    }
    found = run(restored, {path: str(tmp_path)})
    assert found["a"].tolist() == [[2.0, 4.0]]
    assert found["text"].tolist() == [b"x", b""]
    assert found["small"].astype(float).tolist() == [1.0]


def test_a_variable_begins_with_what_was_saved(tmp_path: Path) -> None:
    run(fb.train.save_tensors(str(tmp_path / "it"), {"old": [1.0, 2.0]}))
    v = fb.Variable(fb.train.restore_tensors(str(tmp_path), {"old": (fb.float32, [2])})["old"])
    with fb.Session() as sess:
        assert sess.run(fb.assign_add(v, [1.0, 1.0])).tolist() == [2.0, 3.0]


def test_what_a_saver_saved_is_restored_and_the_other_way_round(tmp_path: Path) -> None:
    v = fb.Variable([1.0, 2.0], name="v")
    with fb.Session() as sess:
        fb.train.Saver().save(sess, tmp_path / "it")
        restored = fb.train.restore_tensors(str(tmp_path / "it"), {"v": v})["v"]
        assert sess.run(restored).tolist() == [1.0, 2.0]
        sess.run(fb.train.save_tensors(str(tmp_path / "it"), {"v": v * 3.0}))
        fb.train.Saver().restore(sess, tmp_path / "it")
        assert sess.run(v).tolist() == [3.0, 6.0]


def test_within_a_run_they_go_in_the_order_of_construction(tmp_path: Path) -> None:
    path = str(tmp_path / "it")
    x = fb.placeholder(fb.float32, [])
    save = fb.train.save_tensors(path, {"x": x})
    first = fb.train.restore_tensors(path, {"x": x})["x"]
    again = fb.train.save_tensors(path, {"x": x + 1.0})
    second = fb.train.restore_tensors(path, {"x": x})["x"]
    with fb.Session() as sess:
        for value in (1.0, 5.0, 9.0):
            found = sess.run([second, first, again, save], {x: value})
            assert found[:2] == [value + 1.0, value]


def test_what_is_not_as_declared(tmp_path: Path) -> None:
    path = str(tmp_path / "it")
    run(fb.train.save_tensors(path, {"weights": [1.0, 2.0]}))
    for like in ((fb.float64, [2]), (fb.float32, [3])):
        wrong = fb.train.restore_tensors(path, {"weights": like})
        with pytest.raises(InvalidArgument, match=r"'weights' as float32 \[2\], not as"):
            run(wrong)
    with pytest.raises(fb.errors.NotFoundError, match="no 'weight'") as caught:
        run(fb.train.restore_tensors(path, {"weight": (fb.float32, [2])}))
    assert caught.value.hint == "did you mean 'weights'?"
    with pytest.raises(fb.errors.NotFoundError, match="there is no checkpoint"):
        run(fb.train.restore_tensors(str(tmp_path / "no"), {"weights": (fb.float32, [2])}))


def test_what_cannot_be_written_names_the_operation(tmp_path: Path) -> None:
    save = fb.train.save_tensors("/proc/nowhere/it", {"x": 1.0}, name="saving")
    with pytest.raises(fb.errors.OpError, match="Save 'saving'"):
        run(save)


@pytest.mark.parametrize("wrong", [[1.0], {1: 1.0}, "x"])
def test_what_has_no_names(wrong: Any) -> None:
    for function in (fb.train.save_tensors, fb.train.restore_tensors):
        with pytest.raises(fb.errors.InvalidTypeError, match="by their names"):
            function("path", wrong)


def test_what_is_no_dtype_and_shape() -> None:
    for wrong in (fb.float32, (fb.float32,), ("float99", [1])):
        with pytest.raises(fb.errors.InvalidTypeError):
            fb.train.restore_tensors("path", {"a": wrong})


def test_they_are_stored_with_their_graph(tmp_path: Path) -> None:
    path = str(tmp_path / "it")
    x = fb.placeholder(fb.float32, [2], name="x")
    fb.train.save_tensors(path, {"x": x}, name="save")
    fb.train.restore_tensors(path, {"x": x}, name="restore")
    graph = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    with fb.Session(graph) as sess:
        sess.run("save", {"x:0": np.array([1.0, 2.0], np.float32)})
        assert sess.run("restore:0").tolist() == [1.0, 2.0]
