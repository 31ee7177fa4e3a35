"""Inputs of cells that run again: they begin anew, and nothing stays behind."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

import flowbook as fb

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


def test_what_only_has_a_function_called_source_goes_on(notebook) -> None:
    definition = """
draw = fb.OpDef(
    "DrawsFromItsOwn",
    "-> y: float32",
    attributes={"graph_seed": 1, "seed": 2, "source": len},
    infer=lambda **_: fb.Shape([]),
    kernel=lambda xp, state: xp.asarray(state.uniform((), fb.float32)),
    touches=fb.Touch(fb.Access.DRAW),
    owns="random_state",
)
"""
    notebook.run("definition", definition)
    notebook.run("use", "y = draw()")
    notebook.run("session", "sess = fb.Session()")
    notebook.run("first", "first = sess.run(y)")
    notebook.run("use", "y = draw()")
    notebook.run("second", "second = sess.run(y)")
    assert notebook["first"] != notebook["second"]
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


def test_what_takes_from_the_same_files_goes_on_with_their_first_records(
    notebook, tmp_path: Path
) -> None:
    with fb.train.RecordWriter(tmp_path / "a.records") as records:
        for number in range(30):
            records.write(b"%d" % number)
    cell = f"batch = fb.train.record_batches({str(tmp_path)!r} + '/*.records', 5, shuffle={{}})"
    notebook.run("input", cell.format(1))
    notebook.run("model", "numbers = fb.strings.to_number(batch)")
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "first = sess.run(numbers).tolist()")
    kept = notebook["batch"]
    notebook.run("input", cell.format(1))
    assert notebook["batch"] is kept
    notebook.run(
        "use", "again = [n for b in fb.train.until_end(sess, numbers) for n in b.tolist()]"
    )
    assert notebook["again"][:5] == notebook["first"]
    assert sorted(notebook["again"]) == [*range(30)]
    notebook.run("input", cell.format(2))
    assert notebook["batch"] is not kept
    notebook.run("end", "sess.close()")


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("used", [1, 20])
def test_what_takes_from_the_same_arrays_goes_on_with_the_first_again(
    notebook, prefetch: int, used: int
) -> None:
    cell = f"batch = fb.train.batches(x, 5, epochs={{epochs}}, prefetch={prefetch})"
    notebook.run("arrays", "import numpy as np; x = np.arange(40)")
    notebook.run("input", cell.format(epochs=1))
    notebook.run("model", "total = fb.reduce_sum(batch)")
    notebook.run("session", "sess = fb.Session()")
    notebook.run(
        "use", f"found = [t for t, _ in zip(fb.train.until_end(sess, total), range({used}))]"
    )
    for _ in range(2):
        kept = notebook["batch"]
        notebook.run("input", cell.format(epochs=1))
        assert notebook["batch"] is kept
        notebook.run("use", "found = [int(t) for t in fb.train.until_end(sess, total)]")
        queue = notebook["sess"]._master.stores.find(kept.op.inputs[0].op.key)
        assert queue.state() == 8  # So many batches a checkpoint says that it has given.
        assert notebook["found"] == [10 + 25 * number for number in range(8)]
    notebook.run("input", cell.format(epochs=2))
    assert notebook["batch"] is not kept
    notebook.run("arrays", "x = np.arange(40)")  # Others, though they are equal.
    kept = notebook["batch"]
    notebook.run("input", cell.format(epochs=2))
    assert notebook["batch"] is not kept
    notebook.run("end", "sess.close()")
