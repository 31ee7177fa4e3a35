"""Runs that wait, on threads of their own, and how a test knows that they do."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

import flowbook as fb


class Waiting:
    """A run on a thread of its own, which waits."""

    def __init__(self, sess: fb.Session, fetches: Any, **how: Any) -> None:
        self.found: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(sess, fetches, how), daemon=True)
        self._thread.start()

    def _run(self, sess: fb.Session, fetches: Any, how: Any) -> None:
        try:
            self.found = sess.run(fetches, **how)
        except BaseException as error:
            self.error = error

    def result(self) -> Any:
        """What it gave, or raises what it raised; none may hang."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "a run hangs"
        if self.error is not None:
            raise self.error
        return self.found


def waiters(sess: fb.Session, queue: Any) -> int:
    """How many operations wait at a queue."""
    resource = sess._master.stores.find(queue.op.key)
    return 0 if resource is None else sum(map(len, resource._lines))


def attempts_at(sess: fb.Session, queues: list[Any]) -> set[Any]:
    """What operations want that wait at some queues."""
    found: set[Any] = set()
    for queue in queues:
        resource = sess._master.stores.find(queue.op.key)
        if resource is not None:
            with resource._lock:
                found.update(*resource._lines)
    return found


def steps_that_wait(sess: fb.Session) -> set[Any]:
    """The steps, or parts of steps, that have begun all that they can, and wait now."""
    executions = sess._master._engine.executions
    with executions._lock:
        return {step for step in executions._steps if step.current_wait() is not None}


def begun(sess: fb.Session, queue: Any, fetches: Any, **how: Any) -> Waiting:
    """A run that has come to wait at a queue, having asked for all that it can, or has ended."""
    return begun_at(sess, [queue], fetches, **how)


def begun_at(sess: fb.Session, queues: list[Any], fetches: Any, **how: Any) -> Waiting:
    """As `begun`, at one of some queues."""
    before = attempts_at(sess, queues), steps_that_wait(sess)
    run = Waiting(sess, fetches, **how)
    # Others may leave as it comes: that as many wait as before says nothing.
    while run._thread.is_alive() and (
        attempts_at(sess, queues) <= before[0] or steps_that_wait(sess) <= before[1]
    ):
        threading.Event().wait(0.001)
    return run


def given_up(
    sess: fb.Session, fetches: Any, waits: str, feeds: Any = None
) -> fb.errors.DeadlineExceededError:
    """The error of a run whose timeout ends it while it waits, by a pattern of what it says."""
    seconds = 0.02
    while True:
        with pytest.raises(fb.errors.DeadlineExceededError) as caught:
            sess.run(fetches, feeds, timeout=seconds)
        # On a busy machine it may not have begun to wait.
        if re.search(waits, str(caught.value)):
            return caught.value
        assert seconds < 20, f"{waits!r} is not in {caught.value}"
        seconds *= 2
