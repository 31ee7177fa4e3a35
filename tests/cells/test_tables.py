"""Look-up tables of cells that run again."""

from __future__ import annotations

CELL = """
table = fb.lookup.MutableHashTable(fb.string, fb.int64, {default})
put, found = table.insert("a", 5), table[["a", "b"]]
"""


def test_a_table_whose_cell_runs_again_unchanged_keeps_what_it_holds(notebook) -> None:
    notebook.run("import", "import flowbook as fb; sess = fb.Session()")
    notebook.run("table", CELL.format(default=-1))
    notebook.run("use", "sess.run(put); values = sess.run(found).tolist()")
    assert notebook["values"] == [5, -1]
    notebook.run("table", CELL.format(default=-1))
    notebook.run("look", "values = sess.run(found).tolist()")
    assert notebook["values"] == [5, -1]
    notebook.run("table", CELL.format(default=-2))
    notebook.run("look", "values = sess.run(found).tolist()")
    assert notebook["values"] == [5, -2]
