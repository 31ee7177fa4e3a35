"""Numbers that count: NumPy's are as good as Python's, truth values and fractions are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.whole_numbers import as_whole

X = [1.0, 2.0]


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3)], ids=repr)
def test_integers_are_whole(value: Any) -> None:
    found = as_whole(value)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float64(3), "3", None, [3]], ids=repr)
def test_others_are_not(value: Any) -> None:
    assert as_whole(value) is None


def test_a_tensor_is_none() -> None:
    assert as_whole(fb.constant(3)) is None


COUNTS: dict[str, Callable[[Any], Any]] = {
    "capacity": lambda n: fb.FIFOQueue(n, fb.float32),
    "record_bytes": lambda n: fb.FixedLengthRecordReader(n),
    "num_threads": lambda n: fb.train.batch([fb.constant(X)], 2, num_threads=n),
    "units": lambda n: fb.layers.dense(fb.constant([X]), n),
    "cpus": lambda n: fb.Session(cpus=n).close(),
    "parallel_iterations": lambda n: fb.while_loop(
        lambda i: i < 3, lambda i: i + 1, [0], parallel_iterations=n
    ),
    "branches": lambda n: fb.switch_case(0, {n: lambda: fb.constant(1)}),
}


@pytest.mark.parametrize("what", COUNTS)
def test_where_something_is_counted_numbers_of_numpy_count_too(what: str) -> None:
    for number in (2, np.int64(2), np.uint16(2)):
        with fb.Graph().as_default():
            COUNTS[what](number)
    for wrong in (True, 2.5, "two"):
        with fb.Graph().as_default(), pytest.raises(fb.errors.InvalidArgumentError):
            COUNTS[what](wrong)


def test_how_often_a_session_does_something() -> None:
    with fb.Session() as sess:
        sess.summarize(every=np.int64(2), seconds=np.float32(0.5))
        with sess.trace(np.int64(5)), sess.retain_feeds(most_bytes=np.int64(1000)):
            sess.run(fb.constant(1))
