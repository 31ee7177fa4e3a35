"""Queues of cells that run again: they are kept or replaced, and their runners stop."""

from __future__ import annotations

import gc
import threading
import weakref

CELL = """
queue = fb.FIFOQueue({capacity}, fb.int32, shapes=[[]], name="numbers")
count = fb.Variable(0, name="count")
runner = fb.train.QueueRunner(queue, queue.enqueue(fb.count_up_to(count, 10**9)))
taken = queue.dequeue()
"""


def feeding() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "flowbook numbers_runner"]


def test_runners_stop_when_their_cell_runs_again_and_start_again(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "first = sess.run(taken)")
    [thread] = feeding()
    notebook.run("queue", CELL.format(capacity=4))
    thread.join(60)
    assert feeding() == []
    notebook.run("use", "second = sess.run(taken); third = sess.run(taken)")
    # The same queue and the same counter: nothing is lost or comes twice.
    assert [notebook["first"], notebook["second"], notebook["third"]] == [0, 1, 2]
    assert len(feeding()) <= 1
    notebook.run("end", "sess.close()")
    assert feeding() == []


def test_a_queue_that_is_made_otherwise_is_another(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "sess.run(taken)")
    old = weakref.ref(notebook["sess"]._master.store.find(notebook["queue"].op.key))
    notebook.run("queue", CELL.format(capacity=5))
    notebook.run("use", "value = sess.run(taken)")
    [thread] = feeding()
    gc.collect()
    assert old() is None
    assert thread.is_alive()
    notebook.run("end", "sess.close()")


def test_nothing_stays_behind(notebook) -> None:
    notebook.run("session", "sess = fb.Session()")
    for number in range(30):
        notebook.run("queue", CELL.format(capacity=4 + number % 2))
        notebook.run("use", "value = sess.run(taken)")
    assert len(feeding()) == 1
    gc.collect()
    resources = [k for k in notebook["sess"]._master.store._own if k.name == "numbers"]
    assert len(resources) <= 2
    assert len(notebook["sess"].feeding._feeders) == 1
    notebook.run("end", "sess.close()")
    assert feeding() == []


def test_deleting_the_cell_stops_its_runners(notebook) -> None:
    notebook.run("queue", CELL.format(capacity=4))
    notebook.run("session", "sess = fb.Session()")
    notebook.run("use", "value = sess.run(taken)")
    [thread] = feeding()
    notebook.run("other", "1", deleted=["queue"])
    thread.join(60)
    assert feeding() == []
    notebook.run("end", "sess.close()")
