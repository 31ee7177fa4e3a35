"""What operations are called: the Python variable that their line gives their value to."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.origin.called import called, described, tensor_called, variable_name


def names() -> dict[str, str]:
    """The variables of all operations that have one, by the operations' names."""
    found = {op.name: variable_name(op) for op in fb.get_default_graph().operations}
    return {name: variable for name, variable in found.items() if variable}


def test_a_line_names_what_it_assigns() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="given")
    first = second = fb.square(x)  # noqa: F841
    left, right = fb.exp(x), -x
    low, high = fb.unstack(x, axis=1, num=2)
    noted: fb.Tensor = (x *
        fb.tanh(x))  # fmt: skip
    model = SimpleNamespace()
    model.bias = x[0]
    noted += right
    mean, variance = fb.nn.moments(x, [0])
    held = {"no": fb.sin(x)}
    held["name"] = fb.cos(x)
    if (walrus := fb.log(x)) is not None:
        print(fb.abs(walrus, name="alone"))
    assert names() == {
        "given": "x",
        "Square": "first",
        "Exp": "left",
        "Neg": "right",
        "Unstack": "low, high",
        "StridedSlice": "model.bias",
        "Add": "noted",
        "Log": "walrus",
    }
    assert [called(each.op) for each in (x, second, left)] == [
        "x (given)",
        "first (Square)",
        "left (Exp)",
    ]
    assert described(noted.op) == "noted (Add 'Add')"
    assert [tensor_called(each) for each in (low, high, mean)] == [
        "low (Unstack:0)",
        "high (Unstack:1)",
        mean.name,
    ]
    assert variance.op.name != mean.op.name
    assert held


def test_the_value_of_an_expression_has_the_name_and_not_its_parts() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="x")
    hidden = fb.layers.dense(x, 3, activation=fb.nn.relu, name="layer")
    normal = fb.layers.batch_normalization(hidden, training=True, name="normal")
    chosen = fb.cond(fb.reduce_sum(normal) > 0, lambda: hidden, lambda: hidden * 2)
    count = fb.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    loss = fb.reduce_mean(fb.square(chosen))
    optimizer = fb.train.AdamOptimizer(0.1)
    step = (optimizer
        .minimize(loss))  # fmt: skip
    assert names() == {
        "x": "x",
        "layer/Relu": "hidden",
        "cond/Merge": "chosen",
        "while/Exit": "count",
        "Mean": "loss",
        "Adam": "step",
    }
    assert (step.name, count[0].name) == ("Adam", "while/Exit:0")


def test_a_function_names_what_each_call_builds_and_a_caller_what_it_gets() -> None:
    def layer(x: fb.Tensor) -> fb.Tensor:
        inner = fb.square(x)
        return fb.exp(inner)

    @fb.function
    def body(x: fb.Tensor) -> fb.Tensor:
        given = fb.tanh(x)
        return given

    one = layer(fb.constant(1.0, name="one"))
    two = body(layer(one))
    assert names() == {
        "Square": "inner",
        "Square_1": "inner",
        "functions/body/Tanh": "given",
        "body/Tanh": "two",
    }
    assert two.op.name == "body/Tanh"


def test_a_name_stands_for_the_value_that_it_is_given_last() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    h = fb.square(x)
    h = fb.exp(h)
    other = h = fb.tanh(h)
    assert other is h
    assert names() == {"x": "x", "Tanh": "other"}


def test_a_loop_names_nothing() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    value = fb.square(x)
    for _ in range(3):
        value = fb.exp(value)
    fetched = [last := fb.sin(each) for each in (x, value)]
    assert names() == {"x": "x"}
    assert fetched[1] is last


def test_a_name_that_says_the_same_is_not_said_twice() -> None:
    W = fb.Variable(np.zeros(2, np.float32), name="layer/W")
    model = SimpleNamespace(b=None)
    model.b = fb.Variable(np.zeros(2, np.float32), name="b")
    other = fb.Variable(np.zeros(2, np.float32), name="c")
    assert [called(v.op) for v in (W, model.b, other)] == ["layer/W", "b", "other (c)"]


def test_gradients_have_no_name_of_the_line_that_they_cite() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    loss = fb.reduce_sum(fb.square(x))
    [slope] = fb.gradients(loss, [x])
    assert slope.op.site.line == loss.op.site.line
    assert names() == {"x": "x", "Sum": "loss"}


def test_code_without_its_source_names_nothing() -> None:
    built: dict[str, Any] = {"fb": fb}
    exec(compile("y = fb.constant(1.0)", "nowhere.py", "exec"), built)
    assert called(built["y"].op) == "Const"


def test_a_stored_graph_tells_the_names() -> None:
    x = fb.placeholder(fb.float32, [2], name="given")
    loss = fb.reduce_sum(fb.square(x))
    fb.gradients(loss, [x])
    before = names()
    stored = fb.Graph.from_bytes(x.graph.to_bytes())
    with fb.Graph().as_default():
        fb.import_graph_def(stored, name="")
        assert names() == before == {"given": "x", "Sum": "loss"}
    fb.import_graph_def(stored, name="in")
    assert names() == before | {"in/given": "x", "in/Sum": "loss"}


def test_errors_say_the_variable_beside_the_name() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="given")
    inverse = fb.matrix_inverse(x)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError) as caught:
        sess.run(inverse, {x: np.ones((3, 2), np.float32)})
    text = str(caught.value)
    assert text.startswith(f"inverse ({inverse.op.type} {inverse.op.name!r}): ")
    assert "inputs: x (given:0) float32" in text
