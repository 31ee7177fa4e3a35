"""Starts runners before anything waits at their queues."""

from __future__ import annotations

import threading

from flowbook.exec.queue_threads import Coordinator
from flowbook.exec.session.session import Session
from flowbook.graph.model.errors import InvalidTypeError

__all__ = ["start_queue_runners"]


def start_queue_runners(sess: Session, coord: Coordinator | None = None) -> list[threading.Thread]:
    """Start the runners of a session's graph; by itself each starts when its queue is waited at.

    Args:
        sess: the session whose steps fill the queues.
        coord: an `fb.train.Coordinator` that stops them, and is stopped by the first that fails.

    Returns:
        The threads that it has started.

    Raises:
        InvalidTypeError: if it is no session.
        FailedPreconditionError: if the session is closed.
    """
    if not isinstance(sess, Session):
        raise InvalidTypeError(f"runners run in an fb.Session, not {sess!r}")
    sess.extend()
    return sess.feeding.start_all(sess.graph.operations, coord)
