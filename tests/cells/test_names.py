"""Operations keep the names of their lines when cells run again, changed and unchanged."""

from typing import Any

from flowbook.graph.model.called import called

MODEL = """
x = fb.placeholder(fb.float32, [None, 2], name='given')
hidden = fb.layers.dense(x, 3, activation={activation}, name='layer')
loss = fb.reduce_mean(hidden)
"""


def said(notebook: Any) -> list[str]:
    return [name for op in notebook.graph.operations if "(" in (name := called(op))]


def test_a_cell_that_builds_the_same_or_something_else_names_what_it_has_now(notebook: Any) -> None:
    notebook.run("a", MODEL.format(activation="fb.nn.relu"))
    first = ["x (given)", "hidden (layer/Relu)", "loss (Mean)"]
    assert said(notebook) == first
    notebook.run("a", MODEL.format(activation="fb.nn.relu"))
    assert said(notebook) == first
    # What dense built before its activation is kept, and is not what the line names.
    notebook.run("a", MODEL.format(activation="fb.tanh"))
    assert said(notebook) == ["x (given)", "hidden (layer/Tanh)", "loss (Mean)"]
    notebook.run("a", MODEL.format(activation="fb.tanh").replace("loss =", "cost ="))
    assert said(notebook) == ["x (given)", "hidden (layer/Tanh)", "cost (Mean)"]


def test_what_is_new_before_what_is_kept_does_not_get_its_name(notebook: Any) -> None:
    """The initial value is new and the operations after it stay, though their ids are lower."""
    cell = "v = fb.get_default_graph()\nW = fb.Variable({value}, name='weights')"
    notebook.run("a", cell.format(value="fb.zeros([2])"))
    assert said(notebook) == ["W (weights)"]
    notebook.run("a", cell.format(value="fb.zeros([2]) + 0.0"))
    assert said(notebook) == ["W (weights)"]
