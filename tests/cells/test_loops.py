"""Loops and branches that a cell builds again: the same loop stays, another one takes its place."""

from typing import Any

import pytest

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


@pytest.mark.parametrize("source", [LOOP, NESTED, SUMMARISED])
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
