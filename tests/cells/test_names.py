"""Operations keep the names of their lines when cells run again, changed and unchanged."""

from typing import Any

from flowbook.graph.model.origin.called import called

# In a function: IPython compiles each statement of a cell by itself.
MODEL = """
def build():
    x = fb.placeholder(fb.float32, [None, 2], name='given')
    hidden = fb.layers.dense(x, 3, activation={activation}, name='layer')
    other = fb.exp(x)
    loss = fb.reduce_mean(hidden)
build()
"""


def said(notebook: Any) -> list[str]:
    return [name for op in notebook.graph.operations if "(" in (name := called(op))]


def test_a_cell_that_builds_the_same_or_something_else_names_what_it_has_now(notebook: Any) -> None:
    notebook.run("a", MODEL.format(activation="fb.nn.relu"))
    first = ["x (given)", "hidden (layer/Relu)", "other (Exp)", "loss (Mean)"]
    assert said(notebook) == first
    notebook.run("a", MODEL.format(activation="fb.nn.relu"))
    assert said(notebook) == first
    # What dense built before its activation is kept, and is not what the line names.
    notebook.run("a", MODEL.format(activation="fb.tanh"))
    changed = ["x (given)", "other (Exp)", "hidden (layer/Tanh)", "loss (Mean)"]
    assert said(notebook) == changed
    notebook.run("a", MODEL.format(activation="fb.tanh").replace("loss =", "cost ="))
    assert said(notebook) == [*changed[:-1], "cost (Mean)"]
