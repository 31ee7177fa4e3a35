"""Loops and branches that a cell builds again: the same loop stays, another one takes its place."""

import random
import warnings
from typing import Any

import numpy as np
import pytest

import flowbook as fb

LOOP = """
x = fb.placeholder(fb.float32, [], name='x')
_, y = fb.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * x), (0, x))
[dy] = fb.gradients(y, [x])
"""
NESTED = """
x = fb.placeholder(fb.float32, [], name='x')
def body(i, t):
    def inner(j, t):
        return j + 1, t + x * fb.random_uniform([])
    _, t = fb.while_loop(lambda j, _: j < i, inner, (0, t))
    return i + 1, fb.cond(t > 5, lambda: t - 1.0, lambda: t * 2.0)
_, y = fb.while_loop(lambda i, t: i < 3, body, (0, x))
"""


SUMMARISED = """
x = fb.placeholder(fb.float32, [], name='x')
def body(i, t):
    fb.summary.scalar('t', t, last=True)
    return i + 1, t * x
_, y = fb.while_loop(lambda i, t: i < 3, body, (0, x))
"""

RECURRENT = """
x = fb.placeholder(fb.float32, [None, 2, 3])
kernel = fb.Variable(fb.ones([7, 4]), name='kernel')
matrix = fb.identity(kernel)
cell = lambda x, h: fb.nn.rnn_cell(x, h, matrix)
outputs, y = fb.nn.dynamic_rnn(cell, x, fb.zeros([2, 4]), time_major=True)
grads = fb.gradients(y, [x, kernel])
"""


@pytest.mark.parametrize("source", [LOOP, NESTED, SUMMARISED, RECURRENT])
def test_the_same_loop_stays(notebook: Any, source: str) -> None:
    notebook.run("a", source)
    notebook.run("b", "z = y + 1.0")
    before, retirements = notebook.graph.operations, notebook.graph.retirements
    y = notebook["y"]
    for _ in range(3):
        notebook.run("a", source)
        assert notebook["y"] is y
        assert notebook.graph.operations == before
        assert notebook.graph.retirements == retirements
        assert notebook.graph.stale() == []
    assert y.op.site.place.startswith("cell [5]")


def test_another_body_is_another_loop(notebook: Any) -> None:
    notebook.run("a", LOOP)
    notebook.run("s", "sess = fb.Session()")
    notebook.run("b", "z = y + 1.0")
    notebook.run("c", "before = sess.run([y, dy, z], {x: 2.0})")
    old = notebook["y"]
    notebook.run("a", LOOP.replace("t * x", "t + x"))
    assert notebook["y"] is not old
    assert old.op.retired
    assert (notebook["y"].name, old.name) == ("while/Exit_1:0", "while/Exit_1@1:0")
    # What another cell built of the old loop runs on that, beside the new one.
    with pytest.warns(UserWarning, match="cell"):
        notebook.run("d", "now = sess.run([y, dy, z], {x: 2.0})")
    assert notebook["before"] == [16, 32, 17]
    assert notebook["now"] == [8, 4, 17]
    notebook.run("b", "z = y + 1.0")
    notebook.run("e", "now = sess.run(z, {x: 2.0})")
    assert notebook["now"] == 9
    notebook.run("a", LOOP)
    notebook.run("e", "now = sess.run([y, dy], {x: 2.0})")
    assert notebook["now"] == [16, 32]


def test_a_loop_that_fails_leaves_the_old_one(notebook: Any) -> None:
    notebook.run("a", LOOP)
    before, y = notebook.graph.operations, notebook["y"]
    notebook.run("a", LOOP.replace("t * x", "1 / 0"), fails=True)
    assert not y.op.retired
    assert notebook.graph.get_operation_by_name("while/Exit_1") is y.op
    assert set(before) <= set(notebook.graph.operations)
    notebook.run("a", LOOP)
    assert notebook["y"] is y


def test_another_branch(notebook: Any) -> None:
    source = (
        "x = fb.placeholder(fb.float32, [], name='x')\n"
        "y = fb.cond(x > 0, lambda: x * 2.0, lambda: fb.constant(7.0))\n"
    )
    notebook.run("a", source)
    y, before = notebook["y"], notebook.graph.operations
    notebook.run("a", source)
    assert notebook["y"] is y
    assert notebook.graph.operations == before
    notebook.run("a", source.replace("2.0", "3.0"))
    assert notebook["y"] is not y
    notebook.run("b", "found = [fb.Session().run(y, {x: at}) for at in (1.0, -1.0)]")
    assert notebook["found"] == [3, 7]


BODIES = [
    "t * t, u * x",
    "t * x, u * u",
    "fb.sin(t) * u, fb.cond(t[0] > 0.5, lambda: t * u, lambda: t)",
]
GRADIENTS = [
    "[dy] = fb.gradients(y, [x])",
    "[dy] = fb.gradients(y * u, [x])",
    "_, [dy] = fb.gradients(y, [x]), fb.gradients(u, [x])",
    "_, [dy] = fb.gradients(u, [x]), fb.gradients(y, [x])",
    "[dy] = fb.gradients(fb.gradients(y * u, [x]), [x])",
]


def two_variables(body: str) -> str:
    return (
        "x = fb.placeholder(fb.float64, [None], name='x')\n"
        f"_, y, u = fb.while_loop(lambda i, t, u: i < 3, lambda i, t, u: (i + 1, {body}), "
        "(0, x * 0.5, x))\n"
    )


def built_alone(body: str, gradient: str, at: Any) -> Any:
    with fb.Graph().as_default(), fb.Session() as sess:
        names: dict[str, Any] = {"fb": fb}
        exec(two_variables(body) + gradient, names)
        return sess.run(names["dy"], {names["x"]: at})


@pytest.mark.parametrize("seed", range(5))
def test_gradients_of_a_kept_loop_and_those_they_replace(notebook: Any, seed: int) -> None:
    """Each value is what its definition meant when it was built, whatever was built again since."""
    drawn, at = random.Random(seed), np.array([0.7, 0.9])
    body, gradient = BODIES[0], GRADIENTS[0]
    notebook.run("loop", two_variables(body))
    meant: dict[str, tuple[str, str]] = {}
    for cell in ["gradient", "use", *drawn.choices(["loop", "gradient", "gradient", "use"], k=12)]:
        if cell == "loop":
            body = drawn.choice(BODIES)
            notebook.run("loop", two_variables(body))
        elif cell == "gradient":
            gradient = drawn.choice(GRADIENTS)
            notebook.run("gradient", gradient)
            meant["dy"] = body, gradient
        else:
            notebook.run("use", "z = dy * 1.0")
            meant["z"] = meant["dy"]
        with warnings.catch_warnings(), fb.Session() as sess:
            warnings.simplefilter("ignore", fb.errors.StaleDefinitionWarning)
            for name, wanted in meant.items():
                found = sess.run(notebook[name], {notebook["x"]: at})
                np.testing.assert_allclose(found, built_alone(*wanted, at))


def test_a_gradient_that_keeps_something_else_is_another_one(notebook: Any) -> None:
    notebook.run(
        "own",
        "taken = [0]\n"
        "own = fb.OpDef('OwnProduct', 'a: T, b: T -> c: T', T=(fb.float64,),\n"
        "    infer=lambda a, b: a.shape, kernel=lambda xp, a, b: a * b,\n"
        "    grad=lambda op, dy: (dy * op.inputs[taken[0]], None))\n",
    )
    notebook.run("a", two_variables("own(t, u), u + 1.0"))
    notebook.run("b", "[dy] = fb.gradients(y, [x])")
    notebook.run("c", "z = dy + 1.0")
    before = notebook["dy"]
    with fb.Session() as sess:
        first = sess.run(notebook["z"], {notebook["x"]: [1.5]})
    notebook.run("b", "taken[0] = 1; [dy] = fb.gradients(y, [x])")
    assert notebook["dy"] is not before
    with fb.Session() as sess, pytest.warns(fb.errors.StaleDefinitionWarning, match="cell"):
        now = sess.run([notebook["dy"], notebook["z"]], {notebook["x"]: [1.5]})
    assert now[1] == first != now[0] + 1


def test_a_loop_over_elements_runs_beside_what_took_its_place(notebook: Any) -> None:
    notebook.run("a", "y = fb.map_fn(lambda x: x * 2.0, fb.constant([0.0, 1.0, 2.0]))")
    notebook.run("b", "z = y + 1.0")
    notebook.run("a", "y = fb.map_fn(lambda x: x * 4.0, fb.constant([0.0, 1.0, 2.0]))")
    with fb.Session() as sess, pytest.warns(fb.errors.StaleDefinitionWarning, match="cell"):
        y, z = sess.run([notebook["y"], notebook["z"]])
    assert (y.tolist(), z.tolist()) == ([0.0, 4.0, 8.0], [1.0, 3.0, 5.0])
