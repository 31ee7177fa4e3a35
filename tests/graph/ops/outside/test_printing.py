"""What is printed, where, when, and how often."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.interpreter import evaluate


def test_print_writes_values_between_texts(capsys: Any) -> None:
    x = fb.constant([1.5, 2.0])
    v = fb.Variable(3, name="v")
    evaluate(fb.print("x =", x, {"a": v, 1: "s"}, [x, None], (7,), v, 0.5, end="!\n"))
    assert capsys.readouterr() == (
        "",
        "x = [1.5 2.0] {'a': 3, 1: 's'} [[1.5 2.0], None] (7,) 3 0.5!\n",
    )


def test_print_writes_the_parts_of_sparse_tensors(capsys: Any) -> None:
    evaluate(fb.print(fb.sparse.eye(2), {"x": fb.sparse.eye(1)}))
    assert capsys.readouterr().err == (
        "SparseTensor(indices=[[0 0]\n [1 1]], values=[1.0 1.0], dense_shape=[2 2]) "
        "{'x': SparseTensor(indices=[[0 0]], values=[1.0], dense_shape=[1 1])}\n"
    )


def test_print_to_either_stream(capsys: Any) -> None:
    evaluate(fb.print("out", output_stream=sys.stdout))
    evaluate(fb.print("a", "b", output_stream=sys.stderr, sep="-", end=""))
    evaluate(fb.print("c", output_stream=sys.__stdout__))
    assert capsys.readouterr() == ("out\nc\n", "a-b")


def test_a_stream_is_looked_up_in_the_run(monkeypatch: Any) -> None:
    operation = fb.print("text")
    monkeypatch.setattr(sys, "stderr", None)
    assert evaluate(operation) is None


def test_prints_of_a_step_come_in_the_order_of_construction(capsys: Any) -> None:
    x = fb.placeholder(fb.float32)
    prints = [fb.print(n, x * float(n)) for n in range(5)]
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(prints[::-1], {x: 2.0})
            assert capsys.readouterr().err == "0 0.0\n1 2.0\n2 4.0\n3 6.0\n4 8.0\n"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_Print_passes_its_input_through(executor: Any, capsys: Any) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = fb.Print(x, [x * 2.0, fb.shape(x), "text"], "now: ")
    assert (y.dtype, y.shape) == (fb.float32, [2])
    [slope] = fb.gradients(y * 3.0, [x])
    with fb.Session() as sess:
        value, gradient = run_in(executor, sess, [y, slope], {x: np.float32([1, 2])})
    assert (value.tolist(), gradient.tolist()) == ([1, 2], [3, 3])
    assert "now: [2.0 4.0] [2] text\n" in capsys.readouterr().err


def test_Print_stops_after_the_first(capsys: Any) -> None:
    x = fb.Print(fb.constant(1.0), [fb.range(9)], first_n=2, summarize=1)
    silent = fb.Print(fb.constant(1.0), ["never"], first_n=0)
    for _ in range(2):
        with fb.Session() as sess:
            for _ in range(5):
                sess.run([x, silent])
        assert capsys.readouterr().err == "[0 ... 8]\n" * 2


def test_Print_is_stored(capsys: Any) -> None:
    fb.Print(fb.constant(1.0), [2.0], "m ", name="p")
    graph = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    with fb.Session(graph=graph) as sess:
        assert sess.run("p:0") == 1
    assert capsys.readouterr().err == "m 2.0\n"


def test_errors() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="output_stream is"):
        fb.print("a", output_stream="file:///tmp/x")
    with pytest.raises(fb.errors.InvalidTypeError, match="a list of tensors"):
        fb.Print(1.0, fb.constant(1.0))
    with pytest.raises(fb.errors.InvalidArgumentError, match="2 placeholders"):
        fb.strings.format("{} {}", fb.constant(1))


def test_format() -> None:
    text = fb.strings.format("% of %", [np.arange(3), "all"], placeholder="%")
    assert evaluate(text) == b"[0 1 2] of all"
    assert text.shape == []
    with fb.Session() as sess:
        assert sess.run(fb.strings.format("é {}", "ü")).decode() == "é ü"
