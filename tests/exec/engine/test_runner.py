"""The life of what runs a program goes forward only, whichever threads take it there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import flowbook as fb
from flowbook.exec.engine.runner import Stage
from tests.exec.state.executors import runner_of


def test_a_slow_first_run_takes_back_nothing() -> None:
    """Two further runs begin and end while the first is held in its kernel."""
    is_held, may_end = threading.Event(), threading.Event()

    def hold_first(value: np.ndarray) -> np.ndarray:
        if value == 1.0:
            is_held.set()
            assert may_end.wait(60)
        return value

    x = fb.placeholder(fb.float32, [])
    y = fb.py_func(hold_first, [x], fb.float32)
    with fb.Session() as sess, ThreadPoolExecutor(1) as pool:
        _, runner = runner_of(sess, y, {x: None})
        assert runner.stage is Stage.NEW
        first = pool.submit(sess.run, y, {x: 1.0})
        try:
            assert is_held.wait(60)
            for stage in (Stage.CHECKED, Stage.WRITTEN):
                assert sess.run(y, {x: 2.0}) == 2.0
                assert runner.stage is stage
        finally:
            may_end.set()
        assert first.result(60) == 1.0
        assert runner.stage is Stage.WRITTEN
