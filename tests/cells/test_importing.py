"""A cell that imports a graph may run again, as one that builds may."""

from typing import Any

IMPORT = "y, = fb.import_graph_def(stored, return_elements=['y:0'])"
BUILD = """\
with fb.Graph().as_default() as stored:
    W = fb.Variable(2.0, name="W")
    fb.multiply(W, {factor}, name="y")
"""


def test_the_same_import_gives_the_same_operations(notebook: Any) -> None:
    notebook.run("a", BUILD.format(factor=3.0))
    notebook.run("b", IMPORT)
    y, variables = notebook["y"], notebook.graph.variables()
    names = notebook.names
    notebook.run("b", IMPORT)
    assert notebook["y"] is y
    assert notebook.names == names
    assert notebook.graph.variables() == variables


def test_another_import_redefines_what_differs(notebook: Any) -> None:
    notebook.run("a", BUILD.format(factor=3.0))
    notebook.run("b", IMPORT)
    old, [W] = notebook["y"], notebook.graph.variables()
    notebook.run("a", BUILD.format(factor=5.0))
    notebook.run("b", IMPORT)
    assert old.op.retired
    assert notebook["y"].name == "import/y:0"
    assert notebook.graph.variables() == [W]
    notebook.run("c", "value = fb.Session().run(y)")
    assert notebook["value"] == 10.0


def test_an_import_that_is_gone_is_retired(notebook: Any) -> None:
    notebook.run("a", BUILD.format(factor=3.0))
    notebook.run("b", IMPORT)
    notebook.run("b", "pass")
    assert not notebook.names
    assert not notebook.graph.variables()


def test_two_cells_import_side_by_side(notebook: Any) -> None:
    notebook.run("a", BUILD.format(factor=3.0))
    notebook.run("b", IMPORT)
    notebook.run("c", IMPORT)
    notebook.run("b", IMPORT)
    assert {name.split("/")[0] for name in notebook.names} == {"import", "import_1"}


def test_the_site_names_the_cell(notebook: Any) -> None:
    notebook.run("a", BUILD.format(factor=3.0))
    notebook.run("b", IMPORT)
    place = notebook["y"].op.site.place
    assert place == "imported by cell [2], line 1, from cell [1], line 3"


def test_a_cell_that_imports_again_keeps_what_it_has(notebook: Any) -> None:
    notebook.run("a", "fb.reduce_sum(fb.ones([2, 3]), fb.constant(1, name='one'), name='total')")
    notebook.run("b", "stored = fb.get_default_graph().to_bytes()")
    for _ in range(2):
        notebook.run("c", "fb.import_graph_def(stored, name='copy')")
        total = notebook.graph.get_operation_by_name("copy/total")
        assert [t.name for t in total.settled_by] == ["copy/one:0"]
    assert notebook.graph.retirements == 0


LOOP = """\
with fb.Graph().as_default() as stored:
    W = fb.Variable(2.0, name="W")
    body = lambda i, v: (i + 1, fb.cond(v > 100.0, lambda: v, lambda: v * {factor} * W))
    y = fb.identity(fb.while_loop(lambda i, v: i < 2, body, (0, 1.0))[1], name="y")
"""
DIFFERENTIATED = f"{IMPORT}\ndW, = fb.gradients(y, fb.get_default_graph().variables())"


def test_an_imported_loop_stays_where_it_is_the_same(notebook: Any) -> None:
    notebook.run("a", LOOP.format(factor=3.0))
    notebook.run("b", DIFFERENTIATED)
    found, names = [notebook["y"], notebook["dW"]], notebook.names
    notebook.run("b", DIFFERENTIATED)
    assert [notebook["y"], notebook["dW"]] == found
    assert notebook.names == names
    assert notebook.graph.retirements == 0
    notebook.run("c", "value = fb.Session().run([y, dW])")
    assert notebook["value"] == [36.0, 36.0]


def test_an_imported_loop_that_differs_is_another_loop(notebook: Any) -> None:
    notebook.run("a", LOOP.format(factor=3.0))
    notebook.run("b", IMPORT)
    notebook.run("old", "old = y + 0.0")
    notebook.run("a", LOOP.format(factor=5.0))
    notebook.run("b", IMPORT)
    assert notebook["y"].name == "import/y:0"
    notebook.run("c", "dW, = fb.gradients(y, fb.get_default_graph().variables())")
    notebook.run("d", "value = fb.Session().run([y, dW])")
    assert notebook["value"] == [100.0, 100.0]
    notebook.run("e", "fb.options.stale = 'ignore'\nbefore = fb.Session().run(old)")
    notebook.run("f", "fb.options.stale = 'warn'")
    assert notebook["before"] == 36.0
