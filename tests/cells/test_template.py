"""Templates whose cells run again: which variables their calls find."""

from typing import Any

import pytest

TEMPLATE = "layer = fb.template(lambda x: x * fb.Variable([2.0], name='w'), 'layer')"
FIRST = "a = layer(fb.constant([1.0]))"
SECOND = "b = layer(fb.constant([10.0]))"
TRAIN = "sess.run(fb.assign_add(layer.variables()[0], [1.0]))"
VALUES = "values = [v.tolist() for v in sess.run([a, b])]"


@pytest.fixture
def built(notebook: Any) -> Any:
    """A template, two cells that call it, and a session that has trained its variable."""
    notebook.run("t", TEMPLATE)
    notebook.run("1", FIRST)
    notebook.run("2", SECOND)
    notebook.run("s", f"sess = fb.Session(); {TRAIN}")
    return notebook


@pytest.mark.parametrize("again", ["t", "1", "2", "t1", "t2", "12", "21", "t21", "t12"])
def test_cells_that_run_again_find_what_there_is(built: Any, again: str) -> None:
    sources = {"t": TEMPLATE, "1": FIRST, "2": SECOND}
    operations, retirements = built.graph.operations, built.graph.retirements
    for cell in again:
        built.run(cell, sources[cell])
        assert built.graph.operations == operations
        assert built.graph.retirements == retirements
        assert built.graph.stale() == []
    built.run("v", VALUES)
    assert built["values"] == [[3.0], [30.0]]


def test_what_the_first_call_makes_otherwise_makes_others_stale(built: Any) -> None:
    built.run("t", TEMPLATE.replace("2.0", "5.0"))
    assert built.graph.stale() == []
    built.run("1", FIRST)
    assert built.graph.stale().cells == ("cell [3]", "cell [4]")
    built.run("2", SECOND)
    assert built.graph.stale().cells == ("cell [4]",)
    built.run("s", "sess = fb.Session()")
    built.run("v", VALUES)
    assert built["values"] == [[5.0], [50.0]]
    assert [v.name for v in built.graph.variables()] == ["layer/w:0"]


def test_a_call_that_asks_for_more_says_which_cell_to_run(built: Any) -> None:
    built.run("t", TEMPLATE.replace("'w')", "'w') + fb.Variable(1.0, name='b')"))
    built.run("2", SECOND, fails=True)
    assert "run its cell again" in built.output
    built.run("1", FIRST)
    built.run("2", SECOND)
    built.run("v", VALUES)
    assert built["values"] == [[4.0], [31.0]]


@pytest.mark.parametrize("emptied", ["1", "t"])
def test_without_its_first_call_the_second_is_the_first(notebook: Any, emptied: str) -> None:
    notebook.run("t", f"{TEMPLATE}\n{FIRST}" if emptied == "t" else TEMPLATE)
    if emptied == "1":
        notebook.run("1", FIRST)
    notebook.run("2", SECOND)
    [before] = notebook.graph.variables()
    notebook.run(emptied, TEMPLATE if emptied == "t" else "pass")
    notebook.run("2", SECOND)
    [after] = notebook["layer"].variables()
    assert after is not before
    assert notebook.graph.variables() == [after]
    assert notebook.graph.stale() == []


def test_one_cell_defines_and_calls_twice(notebook: Any) -> None:
    source = f"{TEMPLATE}\n{FIRST}\n{SECOND}"
    notebook.run("t", source)
    operations = notebook.graph.operations
    notebook.run("t", source)
    assert notebook.graph.operations == operations
    notebook.run("t", source.replace("2.0", "4.0"))
    notebook.run("v", f"sess = fb.Session(); {VALUES}")
    assert notebook["values"] == [[4.0], [40.0]]
    assert [v.name for v in notebook.graph.variables()] == ["layer/w:0"]


def test_a_first_call_that_fails_is_made_again(notebook: Any) -> None:
    notebook.run("t", TEMPLATE)
    notebook.run("1", FIRST + "\n1 / 0", fails=True)
    notebook.run("1", FIRST)
    assert [v.name for v in notebook.graph.variables()] == ["layer/w:0"]
