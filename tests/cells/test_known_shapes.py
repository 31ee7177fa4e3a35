"""What a cell says of a tensor's shape does not hold until it says it again."""

from typing import Any

import pytest

X = "x = fb.placeholder(fb.float32, name='x')"
SAYS = "early = fb.nn.relu(x, name='early')\nx.set_shape([None, {0}])\nlate = fb.nn.relu(x)"


def test_a_cell_that_runs_again_changes_nothing(notebook: Any) -> None:
    notebook.run("a", X)
    notebook.run("b", SAYS.format(3))
    names, late = notebook.names, notebook["late"]
    version = notebook.graph.version
    notebook.run("b", SAYS.format(3))
    assert (notebook.names, notebook.graph.version) == (names, version)
    assert notebook["late"] is late
    assert notebook["x"].shape == [None, 3]
    assert notebook.graph.stale() == []


def test_a_cell_may_say_otherwise(notebook: Any) -> None:
    notebook.run("a", X)
    notebook.run("b", SAYS.format(3))
    notebook.run("c", "y = x * 2")
    notebook.run("b", SAYS.format(4).replace("relu(x, ", "relu6(x, "))
    assert notebook["x"].shape == notebook["late"].shape == [None, 4]
    # What came before it in the cell knew nothing of it, then or now.
    assert notebook["early"].shape.rank is None
    assert [item.cells for item in notebook.graph.stale()] == [("cell [3]",)]


@pytest.mark.parametrize("end", ["deleted", "edited", "failed"])
def test_what_is_not_said_again_holds_no_longer(notebook: Any, end: str) -> None:
    notebook.run("a", X)
    notebook.run("b", "x.set_shape([None, 3])")
    if end == "deleted":
        notebook.run("c", "pass", deleted=["b"])
    elif end == "edited":
        notebook.run("b", "pass")
    else:
        notebook.run("b", "1 / 0", fails=True)
    assert notebook["x"].shape.rank is None
    notebook.run("d", "y = x * 2")
    assert notebook["y"].op.inputs[0] is notebook["x"]
    notebook.run("b", "x.set_shape([None, 3])")
    assert notebook["x"].shape == [None, 3]


def test_a_second_cell_says_more(notebook: Any) -> None:
    notebook.run("a", X)
    notebook.run("b", "x.set_shape([None, 3])")
    notebook.run("c", "x.set_shape([2, None])")
    notebook.run("b", "x.set_shape([None, 3])")
    assert notebook["x"].shape == [2, 3]
    notebook.run("b", "x.set_shape([None, 4])")
    assert notebook["x"].shape == [None, 4]
    assert [item.cells for item in notebook.graph.stale()] == [("cell [3]",)]
    notebook.run("c", "x.set_shape([2, None])")
    assert notebook["x"].shape == [2, 4]
    assert notebook.graph.stale() == []
