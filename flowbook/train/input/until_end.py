"""The loop over an input, from its first batch to its last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flowbook.exec.session.session import Session
from flowbook.graph.model.errors import InvalidTypeError, OutOfRangeError

__all__ = ["until_end"]


def until_end(sess: Session, fetches: Any, feeds: Mapping[Any, Any] | None = None) -> Iterator[Any]:
    """Run the same fetches until an input has come to its end; gives what each run gave.

    Args:
        sess: the session.
        fetches: as for `sess.run`.
        feeds: as for `sess.run`, the same in each run.

    >>> import numpy as np
    >>> import flowbook as fb
    >>> batch = fb.train.batches(np.arange(6), 2)
    >>> with fb.Session() as sess:
    ...     for total in fb.train.until_end(sess, fb.reduce_sum(batch)):
    ...         print(total)
    1
    5
    9
    """
    if not isinstance(sess, Session):
        raise InvalidTypeError(f"runs are made by an fb.Session, not {sess!r}")
    return _runs(sess, fetches, feeds)


def _runs(sess: Session, fetches: Any, feeds: Mapping[Any, Any] | None) -> Iterator[Any]:
    while True:
        try:
            values = sess.run(fetches, feeds)
        except OutOfRangeError:
            return
        yield values
