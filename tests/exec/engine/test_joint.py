"""Steps on several devices: programs scattered over them at random mean what they mean on one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.plan import place
from tests.exec.engine.test_lowering import STATE, build, interpret, programs, starts
from tests.exec.random_graphs import examples


def scattered(seed: int) -> Any:
    """A choice of devices that nobody would make."""
    draw = random.Random(seed)
    return draw.choice


@settings(max_examples=60, deadline=None)
@given(programs(), starts, st.integers(0, 1000))
def test_loops_and_branches_across_devices(program: Any, start: list[int], seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch, fb.Graph().as_default():
        patch.setattr(place, "_choose", scattered(seed))
        feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        variable = fb.Variable(1, name="variable")
        ends: list[Any] = []
        values = build(program, feeds, variable, ends)
        state, kept = list(start), [1]
        with fb.Session(cpus=3) as sess:
            for _ in range(3):
                found = sess.run([*values, *ends], dict(zip(feeds, start, strict=True)), timeout=60)
                state = list(start)
                interpret(program, state, kept)
                assert [int(v) for v in found[:STATE]] == state
                assert int(sess.run(variable)) == kept[0]


@settings(max_examples=60, deadline=None)
@given(examples(), st.integers(0, 1000))
def test_random_graphs_across_devices(example: Any, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, "_choose", scattered(seed))
        with fb.Session(example.graph) as one, fb.Session(example.graph, cpus=3) as three:
            three._master.store.entropy = one._master.store.entropy
            for _ in range(3):
                for fetches, feeds in example.steps:
                    wanted = outcome(one, fetches, feeds)
                    assert_same(outcome(three, fetches, feeds), wanted)


def outcome(sess: fb.Session, fetches: Any, feeds: Any) -> Any:
    try:
        return sess.run(fetches, feeds, timeout=60)
    except fb.errors.OpError as error:
        return type(error)


def assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, type) or isinstance(found, type):
        assert found is wanted
        return
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
