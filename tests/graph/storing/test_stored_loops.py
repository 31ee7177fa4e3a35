"""Loops and branches in stored graphs run, are differentiated and imported like any others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.storing.graph_pb2 import GraphDef


def build() -> tuple[fb.Tensor, fb.Variable, fb.Tensor]:
    """A loop within a loop, a branch within that, all of them with what they take from outside."""
    x = fb.placeholder(fb.float32, [], name="x")
    W = fb.Variable(2.0, name="W")

    def body(i: Any, v: Any) -> Any:
        _, inner = fb.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * W), (0, v))
        return i + 1, fb.cond(inner > 20.0, lambda: inner / x, lambda: inner + x)

    y = fb.while_loop(lambda i, v: i < 3, body, (0, x), name="loop")[1]
    return x, W, fb.identity(y, name="y")


def model() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        build()
    return graph


def python(x: float, w: float) -> float:
    v = x
    for _ in range(3):
        v = v * w * w
        v = v / x if v > 20.0 else v + x
    return v


def slope(function: Callable[[float], float], at: float, step: float = 1e-4) -> float:
    return (function(at + step) - function(at - step)) / (2 * step)


def check(x: fb.Tensor, W: fb.Variable, y: fb.Tensor) -> None:
    """Run, differentiate, and differentiate again."""
    dx, dW = fb.gradients(y, [x, W])
    (dxW,) = fb.gradients(dx, [W])
    with fb.Session() as sess:
        for at in (0.3, 1.5):
            found = sess.run([y, dx, dW, dxW], {x: at})
            np.testing.assert_allclose(found, expected(at), rtol=1e-4, atol=1e-3)


def expected(x: float) -> list[float]:
    return [
        python(x, 2.0),
        slope(lambda v: python(v, 2.0), x),
        slope(lambda w: python(x, w), 2.0),
        slope(lambda w: slope(lambda v: python(v, w), x), 2.0),
    ]


def parts_of(graph: fb.Graph) -> tuple[fb.Tensor, fb.Variable, fb.Tensor]:
    (W,) = graph.variables()
    return graph.get_tensor_by_name("x:0"), W, graph.get_tensor_by_name("y:0")


def test_a_stored_loop_runs_and_is_differentiated_twice() -> None:
    again = fb.Graph.from_bytes(model().to_bytes())
    with again.as_default():
        check(*parts_of(again))
    assert fb.Graph.from_bytes(again.to_bytes()).to_bytes() == again.to_bytes()


def test_a_loop_with_its_gradient_is_stored_and_differentiated_once_more(tmp_path: Path) -> None:
    graph = model()
    with graph.as_default():
        x, W, y = parts_of(graph)
        fb.identity(fb.gradients(y, [x])[0], name="dx")
    graph.save(tmp_path / "model.graph")
    again = fb.Graph.load(tmp_path / "model.graph")
    with again.as_default():
        x, W, y = parts_of(again)
        (dxW,) = fb.gradients(again.get_tensor_by_name("dx:0"), [W])
        with fb.Session() as sess:
            found = sess.run(dxW, {x: 0.3})
        assert found == pytest.approx(expected(0.3)[-1], rel=1e-3)
        check(x, W, y)


def test_a_loop_imported_twice_is_two_loops() -> None:
    stored, found = model().to_bytes(), []
    for name in ("one", "two"):
        x, y = fb.import_graph_def(stored, return_elements=["x:0", "y:0"], name=name)
        W = fb.get_default_graph().variables()[-1]
        check(x, W, y)
        found.append((x, y))
    (x, y), (x_too, y_too) = found
    with fb.Session() as sess:
        values = sess.run([y, y_too, y + y_too], {x: 0.3, x_too: 1.5})
        assert values == pytest.approx([python(0.3, 2), python(1.5, 2), sum(values[:2])])


def test_one_imported_loop_after_another() -> None:
    stored, x = model().to_bytes(), fb.placeholder(fb.float32, [])
    (y,) = fb.import_graph_def(stored, {"x": x}, ["y:0"])
    (z,) = fb.import_graph_def(stored, {"x": y}, ["y:0"])
    (dx,) = fb.gradients(z, [x])
    with fb.Session() as sess:
        found = sess.run([z, dx], {x: 0.3})
    composed = lambda v: python(python(v, 2.0), 2.0)  # noqa: E731
    assert found == pytest.approx([composed(0.3), slope(composed, 0.3)], rel=1e-3, abs=1e-3)


def test_an_imported_loop_is_named_in_the_scope_and_complete() -> None:
    fb.import_graph_def(model(), name="m")
    graph = fb.get_default_graph()
    inside = next(o for o in graph.operations if o.name == "m/loop/Add")
    with pytest.raises(fb.errors.InvalidArgumentError, match="inside of the loop 'm/loop'"):
        fb.identity(inside.outputs[0])
    again = fb.Graph.from_bytes(graph.to_bytes())
    with again.as_default():
        inside = again.get_operation_by_name("m/loop/Add")
        with pytest.raises(fb.errors.InvalidArgumentError, match="inside of the loop 'm/loop'"):
            fb.identity(inside.outputs[0])


def test_branches_of_a_stored_graph_are_complete() -> None:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [])
        fb.cond(x > 0, lambda: fb.exp(x, name="inside"), lambda: x)
    again = fb.Graph.from_bytes(graph.to_bytes())
    inside = again.get_tensor_by_name("cond/inside:0")
    with again.as_default(), pytest.raises(fb.errors.InvalidArgumentError, match="inside of a br"):
        fb.identity(inside)


def by_hand(name: str) -> fb.Tensor:
    entered = fb.control_flow.enter(fb.constant(0), "loop", name=f"{name}/enter")
    merged = fb.control_flow.merge([entered], name=f"{name}/merge")
    goes_on = fb.control_flow.loop_cond(merged.output < 3)
    sides = fb.control_flow.switch(merged.output, goes_on)
    fb.control_flow.next_iteration(sides.output_true + 1, merged, name=f"{name}/next")
    return fb.control_flow.exit(sides.output_false, name=f"{name}/exit")


def test_loops_of_one_name_are_not_joined() -> None:
    with fb.Graph().as_default() as graph:
        by_hand("a")
    by_hand("b")
    with pytest.raises(fb.errors.AlreadyExistsError, match="a loop 'loop' already"):
        fb.import_graph_def(graph, name="")
    (found,) = fb.import_graph_def(graph, return_elements=["a/exit:0"])
    with fb.Session() as sess:
        assert sess.run([found, "b/exit:0"]) == [3, 3]


def test_imports_inside_of_a_loop() -> None:
    with fb.Graph().as_default() as plain:
        x = fb.placeholder(fb.float32, [], name="x")
        fb.multiply(x, 2.0, name="y")
    outside = fb.constant(10.0)

    def body(i: Any, v: Any) -> Any:
        (twice,) = fb.import_graph_def(plain, {"x": v}, ["y:0"])
        (other,) = fb.import_graph_def(plain, {"x": outside}, ["y:0"])
        return i + 1, twice + other

    start = fb.constant(1.0)
    _, v = fb.while_loop(lambda i, v: i < 3, body, (0, start))
    (slope_of_start,) = fb.gradients(v, [start])
    with fb.Session() as sess:
        assert sess.run([v, slope_of_start]) == [8 + 20 * 7, 8]


def test_loops_and_variables_are_not_imported_into_a_loop() -> None:
    with fb.Graph().as_default() as looping:
        by_hand("a")
    with fb.Graph().as_default() as varying:
        fb.Variable(1.0)
    for graph, what in ((looping, "a loop or a branch"), (varying, "a variable")):
        stored = graph.to_bytes()
        with pytest.raises(fb.errors.UnimplementedError, match=f"what has {what} in it"):
            fb.while_loop(lambda i: i < 3, partial(_importing, stored), [0])
        names = [o.name for o in fb.get_default_graph().operations]
        assert not [name for name in names if "import" in name]


def _importing(stored: bytes, i: Any) -> Any:
    fb.import_graph_def(stored)
    return i + 1


# What is wrong in a file, and what is said of it.

Damage = Callable[[GraphDef], Any]


def stored(message: GraphDef, name: str) -> Any:
    return next(op for op in message.operations if op.name == name)


def place(message: GraphDef, name: str) -> int:
    return [op.name for op in message.operations].index(name)


def closes(name: str, other: str) -> Damage:
    def change(message: GraphDef) -> None:
        stored(message, name).closes = place(message, other) + 1

    return change


def attribute(name: str, key: str, kind: str, value: Any) -> Damage:
    def change(message: GraphDef) -> None:
        operation = stored(message, name)
        (found,) = [a for a in operation.attributes if a.name == key]
        found.value.Clear()
        setattr(found.value, kind, value)

    return change


def two_loops() -> GraphDef:
    with fb.Graph().as_default() as graph:
        for name in ("a", "b"):
            fb.while_loop(
                lambda i, s: i < 2, lambda i, s: (i + 1, s), (0, fb.constant("x")), name=name
            )
    return GraphDef.FromString(graph.to_bytes())


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (closes("b/NextIteration", "a/Merge"), "NextIteration 'b/NextIteration': it closes no"),
        (closes("a/NextIteration", "a/LoopCond"), "'a/NextIteration': it closes no Merge of its"),
        (closes("a/NextIteration_1", "a/Merge"), "gives string, but 'a/Merge', which it closes"),
        (closes("a/Add", "a/Merge"), "Add 'a/Add': it closes a loop, which its type does not"),
        (lambda m: stored(m, "a/NextIteration").ClearField("closes"), "it closes no Merge of its"),
        (
            lambda m: setattr(stored(m, "a/NextIteration"), "closes", 10**6),
            "refers to operation 999999",
        ),
        (attribute("a/Enter", "frame_name", "integer", 3), "a loop is named by a string, not 3"),
        (attribute("a/Enter", "frame_name", "text", ""), "a loop is named by a string, not ''"),
        (attribute("a/Enter", "parallel_iterations", "integer", 0), "at least one iteration"),
        (attribute("a/Enter", "frame_name", "text", "b"), "is in the loop"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(damage: Damage, text: str) -> None:
    message = two_loops()
    damage(message)
    with pytest.raises(fb.errors.OpError, match=text):
        fb.Graph.from_bytes(message.SerializeToString())
    before = fb.get_default_graph().to_bytes()
    with pytest.raises(fb.errors.OpError, match=text):
        fb.import_graph_def(message.SerializeToString())
    assert fb.get_default_graph().to_bytes() == before


def test_a_merge_is_closed_once() -> None:
    message = two_loops()
    again = message.operations.add()
    again.CopyFrom(stored(message, "a/NextIteration"))
    again.name = "a/again"
    with pytest.raises(fb.errors.OpError, match="'a/Merge' is closed by 'a/NextIteration' already"):
        fb.Graph.from_bytes(message.SerializeToString())


def test_a_loop_that_nothing_closes_or_leaves_is_sound() -> None:
    message = two_loops()
    for name in ("a/NextIteration", "a/Exit"):
        operation = stored(message, name)
        operation.type, operation.closes = "Identity", 0
    graph = fb.Graph.from_bytes(message.SerializeToString())
    with fb.Session(graph) as sess:
        assert sess.run("b/Exit:0") == 2
