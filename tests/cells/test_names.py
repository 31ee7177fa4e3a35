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


def test_names_stay_where_others_become_free(notebook: Any) -> None:
    notebook.run("start", "sess = fb.Session(); x = fb.ones([1, 3])")
    notebook.run("a", "h = fb.layers.dense(x, 2); c = fb.constant(1.0)")
    notebook.run("b", "g = fb.layers.dense(x, 2); d = fb.constant(2.0)")
    notebook.run(
        "train",
        "kernel, bias = fb.get_default_graph().variables()[-2:]\n"
        "sess.run([fb.assign(kernel, fb.ones([3, 2])), fb.assign(bias, [7.0, 8.0])])",
    )
    before = notebook["g"], notebook["d"]
    notebook.run("a", "pass")
    notebook.run("b", "g = fb.layers.dense(x, 2); d = fb.constant(2.0)")
    assert (notebook["g"], notebook["d"]) == before
    assert notebook["sess"].run(notebook["g"]).tolist() == [[10.0, 11.0]]
    assert notebook.graph.stale() == []
    notebook.run("a", "h = fb.layers.dense(x, 2); c = fb.constant(1.0)")
    notebook.run("b", "d = fb.constant(2.0)")
    notebook.run("b", "d = fb.constant(2.0); g = fb.layers.dense(x, 2)")
    assert [tensor.op.name for tensor in (notebook["d"], before[1])] == ["Const_1"] * 2
    assert notebook["g"].op.name == "dense_1/BiasAdd"
