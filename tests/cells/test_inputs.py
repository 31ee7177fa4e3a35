"""Inputs of cells that run again: they begin anew, and nothing stays behind."""

from __future__ import annotations

import gc
import threading

BATCHES = "batch = fb.train.batches(np.arange(100), 5, epochs=None)"
GENERATOR = """
def elements():
    try:
        yield from range(10**9)
    finally:
        ends.append(1)
number = fb.train.from_generator(elements, fb.int32, [])
"""


def test_batches_begin_anew_with_their_cell(notebook) -> None:
    notebook.run("numpy", "import numpy as np")
    notebook.run("input", BATCHES)
    notebook.run("session", "sess = fb.Session()")
    for _ in range(3):
        notebook.run("use", "found = sess.run(batch), sess.run(batch)")
        assert [batch.tolist()[0] for batch in notebook["found"]] == [0, 5]
        notebook.run("input", BATCHES)
    notebook.run("end", "sess.close()")


def test_a_generator_is_closed_when_its_cell_runs_again(notebook) -> None:
    before = set(threading.enumerate())
    notebook.run("ends", "ends = []")
    notebook.run("input", GENERATOR)
    notebook.run("session", "sess = fb.Session()")
    for number in range(5):
        notebook.run("use", "found = sess.run(number)")
        assert notebook["found"] == 0
        notebook.run("input", GENERATOR)
        notebook.run("other", "sess.run(fb.constant(1))")
        gc.collect()
        assert len(notebook["ends"]) == number + 1
    notebook.run("end", "sess.close()")
    assert set(threading.enumerate()) <= before  # Some of other tests may have ended since.
