"""The coordinator: several threads that stop together."""

from __future__ import annotations

import re
import sys
import threading

import pytest

import flowbook as fb
from flowbook.train import Coordinator


def started(*functions: object) -> list[threading.Thread]:
    threads = [threading.Thread(target=f, daemon=True) for f in functions]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    return threads


def test_all_stop_when_one_asks() -> None:
    coord = Coordinator()
    threads = started(*[lambda: coord.wait_for_stop()] * 3)
    assert not coord.should_stop()
    assert not coord.wait_for_stop(0.0)
    started(coord.request_stop)
    coord.join(threads)
    assert coord.should_stop()
    assert coord.joined
    assert not any(thread.is_alive() for thread in threads)


def test_the_first_error_counts() -> None:
    coord = Coordinator()
    coord.request_stop(ValueError("first"))
    coord.request_stop(KeyError("second"))
    with pytest.raises(ValueError, match="first"):
        coord.join()
    with pytest.raises(ValueError, match="first"):
        coord.raise_requested_exception()
    coord.clear_stop()
    assert not coord.should_stop()
    coord.raise_requested_exception()


def test_an_error_after_the_stop_is_none() -> None:
    coord = Coordinator()
    coord.request_stop()
    coord.request_stop(ValueError("of the stop"))
    coord.join()


def test_the_end_of_the_input_is_no_error() -> None:
    coord = Coordinator(clean_stop_exception_types=[KeyError])
    coord.request_stop(fb.errors.OutOfRangeError("the end"))
    coord.join()
    coord.clear_stop()
    coord.request_stop(KeyError("clean"))
    coord.join()


def test_what_a_block_raises_stops_all() -> None:
    coord = Coordinator()

    def work() -> None:
        with coord.stop_on_exception():
            raise ValueError("work")

    with pytest.raises(ValueError, match="work"):
        coord.join(started(work))


def test_registered_threads_are_waited_for() -> None:
    coord, end = Coordinator(), threading.Event()
    [thread] = started(end.wait)
    coord.register_thread(thread)
    coord.request_stop()
    with pytest.raises(fb.errors.DeadlineExceededError, match=re.escape(f"seconds: {thread.name}")):
        coord.join(stop_grace_period_secs=0.0)
    coord.join(stop_grace_period_secs=0.0, ignore_live_threads=True)
    end.set()
    coord.join()
    assert not thread.is_alive()


def test_functions_are_called_when_all_stop() -> None:
    coord, called = Coordinator(), []
    coord.call_on_stop(lambda: called.append("before"))
    coord.request_stop()
    coord.request_stop()
    coord.call_on_stop(lambda: called.append("after"))
    assert called == ["before", "after"]


def test_a_reason_is_what_python_says_of_an_exception() -> None:
    coord = Coordinator()
    try:
        raise ValueError("first")
    except ValueError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(ValueError, match="first"):
        coord.join()
    coord.clear_stop()
    coord.request_stop(sys.exc_info())  # There is none.
    coord.join()


def test_a_reason_is_an_exception() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="is an exception"):
        Coordinator().request_stop("why")  # type: ignore[arg-type]
