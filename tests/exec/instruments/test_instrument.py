"""Instruments: what is asked of them, and that runs without them are what they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import flowbook as fb
from flowbook.exec.instruments.attached import Tapped
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.signature.signature import Signature


class Recorder(Instrument):
    """Takes a tensor from every so many-th run."""

    def __init__(self, tensor: fb.Tensor, every: int) -> None:
        self.tensors: Sequence[fb.Tensor] = [tensor]
        self.every = every
        self.began = 0
        self.taken: list[Any] = []
        self.is_closed = False

    def tap(self, signature: Signature, operations: Sequence[fb.Operation]) -> Sequence[Any]:
        return [self] if self.tensors[0].op in operations else []

    def begin(self) -> Callable[[Sequence[Any]], None] | None:
        self.began += 1
        return self.taken.append if self.began % self.every == 0 else None

    def close(self) -> None:
        self.is_closed = True


def prepared_of(sess: fb.Session, fetches: Any) -> Any:
    """What a session has prepared for fetches, and whether it runs with taps."""
    sess.run(fetches)
    call = sess._calls.known[fetches]
    return call.prepared, isinstance(getattr(call.run, "__self__", None), Tapped)


def test_taps_share_a_step_and_their_values_are_apart() -> None:
    calls = []
    x = fb.py_func(lambda: calls.append(1) or 2.0, [], fb.float64)
    y, z = x * 3.0, x + 1.0
    total = y + z
    with fb.Session() as sess:
        first, second = Recorder(y, 1), Recorder(z, 2)
        sess._instruments.add(first)
        sess._instruments.add(second)
        assert [sess.run(total) for _ in range(4)] == [9.0] * 4
        assert [list(t) for t in first.taken] == [[6.0]] * 4
        assert [list(t) for t in second.taken] == [[3.0]] * 2
        assert len(calls) == 4
    assert first.is_closed
    assert second.is_closed


def test_signatures_without_a_tap_keep_what_they_have() -> None:
    y = fb.constant(1.0) * 2.0
    z = fb.constant(5.0)
    with fb.Session() as sess:
        plain = prepared_of(sess, z)
        recorder = Recorder(y, 1)
        sess._instruments.add(recorder)
        assert prepared_of(sess, z) == plain
        assert prepared_of(sess, y)[1]
        sess._instruments.remove(recorder)
        assert not prepared_of(sess, y)[1]
        assert recorder.is_closed
        sess._instruments.remove(recorder)


def test_a_run_that_fails_gives_nothing() -> None:
    x = fb.placeholder(fb.float32, [])
    checked = fb.check_numerics(x, "wrong")
    with fb.Session() as sess:
        recorder = Recorder(checked, 1)
        sess._instruments.add(recorder)
        with pytest.raises(fb.errors.InvalidArgumentError, match="wrong"):
            sess.run(checked, {x: float("nan")})
        assert recorder.taken == []
        assert sess.run(checked, {x: 1.0}) == 1.0
        assert len(recorder.taken) == 1


def test_variables_are_initialised_and_what_was_dropped_is_prepared_anew() -> None:
    v = fb.Variable(2.0)
    y = v * 3.0
    with fb.Session() as sess:
        recorder = Recorder(y, 1)
        sess._instruments.add(recorder)
        assert sess.run(v.value + y) == 8.0
        sess._master._programs.drop_where(lambda prepared: True)
        assert sess.run(v.value + y) == 8.0
        assert [list(t) for t in recorder.taken] == [[6.0]] * 2
