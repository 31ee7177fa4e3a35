"""Operations of users' own that route values, defined by public names alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb

DEAD, Retag = fb.control_flow.DEAD, fb.control_flow.Retag


route = fb.OpDef(
    "Route",
    "x: T, side: bool -> no: T, yes: T",
    T=fb.FLOATS,
    infer=lambda x, side: [x.shape, x.shape],
    kernel=lambda xp, x, side: (DEAD, x) if side else (x, DEAD),
    gives_dead=True,
    host_args=("side",),
)
join = fb.OpDef(
    "Join",
    "inputs: N*T -> y: T",
    T=fb.FLOATS,
    infer=lambda inputs: inputs[0].shape,
    kernel=lambda xp, *inputs: next(x for x in inputs if x is not DEAD),
    fires_on_any=True,
)
come_in = fb.OpDef(
    "ComeIn",
    "x: T -> y: T",
    T=fb.FLOATS,
    attributes={"frame_name": "own", "is_constant": False},
    infer=lambda x, **_: x.shape,
    kernel=lambda xp, x: x,
    retag=Retag.PUSH,
)
go_out = fb.OpDef(
    "GoOut",
    "x: T -> y: T",
    T=fb.FLOATS,
    infer=lambda x: x.shape,
    kernel=lambda xp, x: x,
    retag=Retag.POP,
    sees_dead=True,
)


@pytest.mark.parametrize("devices", [["cpu:0"], ["cpu:0", "simulated:0"]])
def test_a_value_goes_one_of_two_ways(devices: list[str]) -> None:
    x, side = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.bool, [])
    no, yes = route(x, side)
    calls: list[Any] = []
    seen = fb.py_func(lambda value: calls.append(value.tolist()) or value, [yes], fb.float32)
    joined = join([no * 2.0, seen])
    with fb.Session(devices=devices) as sess:
        for number in range(4):  # From the second run on, generated code runs.
            feeds: dict[Any, Any] = {x: [1.0, number]}
            assert sess.run(joined, feeds | {side: True}).tolist() == [1.0, number]
            assert sess.run(joined, feeds | {side: False}).tolist() == [2.0, 2.0 * number]
        with pytest.raises(fb.errors.InvalidArgumentError, match="a branch that was not taken"):
            sess.run(yes, {x: [1.0, 2.0], side: False})
    assert calls == [[1.0, number] for number in range(4)]


def test_a_value_goes_into_a_frame_and_out() -> None:
    x = fb.placeholder(fb.float32, [2])
    inside = come_in(x) * 3.0
    with fb.Session() as sess:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(go_out(inside), {x: [1.0, 2.0]}), [3.0, 6.0])
        with pytest.raises(fb.errors.InvalidArgumentError, match="loop 'own'"):
            sess.run(inside, {x: [1.0, 2.0]})
