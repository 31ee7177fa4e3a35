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
    """The kernel begins otherwise: its Assign is new, and what follows stays as it was."""
    cell = (
        "x = fb.placeholder(fb.float32, [None, 2])\n"
        "h = fb.layers.dense(x, 3, kernel_initializer={})"
    )
    for initializer, value in (("fb.zeros", 0.0), ("fb.ones", 3.0)):
        notebook.run("a", cell.format(initializer))
        assert said(notebook) == ["x (Placeholder)", "h (dense/BiasAdd)"]
        notebook.run("b", "with fb.Session() as sess: got = sess.run(h, {x: [[1.0, 2.0]]})")
        assert notebook["got"][0, 0] == value
