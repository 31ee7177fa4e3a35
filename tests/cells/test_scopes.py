"""A cell starts with the scope that it should have, whatever became of the cells before."""

from typing import Any

GENERATOR = """
from contextlib import contextmanager

@contextmanager
def layer():
    with fb.name_scope("layer"), fb.control_dependencies([fb.constant(1.0)]):
        yield
"""


def test_a_cell_that_fails_leaves_no_scope(notebook: Any) -> None:
    notebook.run("a", GENERATOR)
    # As an interrupt does between the generator's entering and the block's.
    notebook.run("b", "kept = layer(); kept.__enter__(); raise KeyboardInterrupt", fails=True)
    notebook.run("c", "y = fb.constant(2.0, name='y')")
    assert notebook["y"].name == "y:0"
    assert notebook["y"].op.control_inputs == ()
    notebook.run("d", "with fb.name_scope('d'):\n  del kept\n  z = fb.constant(2.0, name='z')")
    assert notebook["z"].name == "d/z:0"


def test_a_scope_that_a_cell_enters_on_purpose_stays(notebook: Any) -> None:
    notebook.run("a", "around = fb.name_scope('around'); around.__enter__()")
    notebook.run("b", "1 / 0", fails=True)
    notebook.run("c", "y = fb.constant(2.0, name='y')")
    assert notebook["y"].name == "around/y:0"
    notebook.run("d", "around.__exit__(None, None, None)\nz = fb.constant(2.0, name='z')")
    assert notebook["z"].name == "z:0"
