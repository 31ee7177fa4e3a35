"""Where the parts of a step exchange values: before or after, once, and what if one fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.engine.parts.rendezvous import Key, Port, Receiver, Rendezvous
from flowbook.exec.plan.failure import LoopPlace
from flowbook.graph.model.retag import DEAD


class Call:
    """Who is told of what has come."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.errors: list[BaseException] = []
        self.cancel: Any = None

    def complete(self, outputs: Any) -> None:
        self.found += outputs

    def fail(self, error: BaseException) -> None:
        self.errors.append(error)

    def on_cancel(self, callback: Any) -> None:
        self.cancel = callback


HERE, THERE = Cpu(0), Cpu(1)


def rendezvous_of_two() -> Rendezvous:
    return Rendezvous(2, {device.name: device.incarnation for device in (HERE, THERE)})


def port_of(rendezvous: Rendezvous, device: Cpu = HERE) -> Port:
    return Port(rendezvous, device, None)  # type: ignore[arg-type]


def received(port: Port, key: str = "a") -> Call:
    call = Call()
    port.receive(key, HERE.name, call, False)  # type: ignore[arg-type]
    return call


@pytest.mark.parametrize("is_first", [True, False])
def test_a_value_is_received_before_or_after_it_is_sent(is_first: bool) -> None:
    rendezvous = rendezvous_of_two()
    here, there = port_of(rendezvous), port_of(rendezvous, THERE)
    value = np.ones(3)
    call = received(there) if is_first else None
    here.send("a", value)
    value[:] = 7.0  # What is on its way is nobody else's.
    call = call or received(there)
    assert [found.tolist() for found in call.found] == [[1.0, 1.0, 1.0]]


def test_iterations_and_keys_are_told_apart_and_the_dead_cross() -> None:
    rendezvous = rendezvous_of_two()
    port = port_of(rendezvous)
    second = port.within((LoopPlace("loop", 1),))
    calls = [received(port), received(second), received(port, "b")]
    second.send("a", np.float32(2.0))
    port.send("b", DEAD)
    assert [len(call.found) for call in calls] == [0, 1, 1]
    assert calls[1].found == [2.0]
    assert calls[2].found == [DEAD]


def test_what_is_sent_or_received_twice_is_an_error() -> None:
    port = port_of(rendezvous_of_two())
    port.send("a", np.float32(1.0))
    with pytest.raises(fb.errors.InternalError, match="'a' was sent twice"):
        port.send("a", np.float32(1.0))
    received(port, "b")
    with pytest.raises(fb.errors.InternalError, match="'b' is received twice"):
        received(port, "b")


def test_who_gives_up_waits_no_longer_and_others_do() -> None:
    port = port_of(rendezvous_of_two())
    one, other = received(port, "a"), received(port, "b")
    one.cancel()
    for key in "ab":
        port.send(key, np.float32(1.0))
    assert (one.found, other.found) == ([], [1.0])
    assert received(port, "a").found == [1.0]


def test_all_fail_with_the_first_error_then_and_later() -> None:
    rendezvous = rendezvous_of_two()
    port = port_of(rendezvous)
    calls = [received(port, "a"), received(port, "b")]
    first, second = ValueError("first"), ValueError("second")
    rendezvous.abort(first)
    rendezvous.abort(second)
    assert [type(call.errors[0]) for call in calls] == [fb.errors.CancelledError] * 2
    assert all(call.errors[0].__cause__ is first for call in calls)
    for late in (lambda: port.send("c", np.float32(1.0)), lambda: received(port, "c")):
        with pytest.raises(fb.errors.CancelledError) as caught:
            late()
        assert caught.value.__cause__ is first


def test_what_a_device_cannot_take_fails_its_receiver() -> None:
    class Full(Cpu):
        def take(self, value: Any) -> Any:
            raise fb.errors.ResourceExhaustedError("no room")

    full, call = Full(1), Call()
    rendezvous = Rendezvous(2, {d.name: d.incarnation for d in (HERE, full)})
    key = Key(HERE.name, HERE.incarnation, "a")
    rendezvous.receive(key, Receiver(full, call))  # type: ignore[arg-type]
    rendezvous.send(key, np.ones(3))
    assert [str(error) for error in call.errors] == ["no room"]


def test_a_device_that_was_started_anew_neither_sends_nor_receives() -> None:
    assert HERE.incarnation != Cpu(0).incarnation
    rendezvous = rendezvous_of_two()
    waiting = received(port_of(rendezvous, THERE))
    refused = f"{HERE.name} is in incarnation 0x[0-9a-f]{{16}}, and the step was prepared for"
    with pytest.raises(fb.errors.AbortedError, match=refused):
        port_of(rendezvous, Cpu(0)).send("a", np.float32(1.0))
    with pytest.raises(fb.errors.AbortedError, match="cpu:1 is in incarnation"):
        received(port_of(rendezvous, Cpu(1)), "b")
    stale = Key(HERE.name, HERE.incarnation ^ 1, "c")
    with pytest.raises(fb.errors.AbortedError, match=refused):
        rendezvous.receive(stale, Receiver(THERE, Call()))  # type: ignore[arg-type]
    # Those that are of the step still meet.
    port_of(rendezvous).send("a", np.float32(2.0))
    assert (waiting.found, waiting.errors) == ([2.0], [])


@pytest.mark.parametrize("number", [0, 1])
def test_a_step_on_a_replaced_device_is_aborted(number: int) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    with fb.device("cpu:0"):
        h = fb.exp(x)
    with fb.device("cpu:1"):
        y = -h
    with fb.Session(cpus=2) as sess:
        assert sess.run(y, {x: [0.0, 0.0]}).tolist() == [-1.0, -1.0]
        [joint] = [each.runner for each in sess._master._programs.kept.values()]  # type: ignore[attr-defined]
        joint._devices[number] = Cpu(number)
        with pytest.raises(fb.errors.AbortedError, match=f"cpu:{number} is in incarnation"):
            sess.run(y, {x: [0.0, 0.0]}, timeout=60)


def test_a_value_of_another_dtype_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    with fb.device("cpu:0"):
        h = fb.exp(x)
    with fb.device("cpu:1"):
        y = -h
    send = Rendezvous.send
    monkeypatch.setattr(
        Rendezvous, "send", lambda self, key, value: send(self, key, value.astype(np.float64))
    )
    with fb.Session(cpus=2) as sess:
        for _ in range(3):
            with pytest.raises(fb.errors.InternalError, match="float64 where its definition says"):
                sess.run(y, {x: [1.0, 2.0]}, timeout=60)
