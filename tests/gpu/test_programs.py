"""Programs scattered over a GPU and a CPU mean what they mean on a CPU alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from tests.exec.engine.code.test_lowering import STATE, build, interpret, programs, starts
from tests.exec.engine.test_joint import assert_same, outcome, scatter
from tests.exec.random_graphs import examples
from tests.gpu.need import skip_without_gpu

skip_without_gpu()

DEVICES = ["cpu:0", "gpu:0"]


@settings(max_examples=40)
@given(programs(), starts, st.integers(0, 1000))
def test_loops_and_branches(program: Any, start: list[int], seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch, fb.Graph().as_default():
        scatter(patch, seed)
        feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        variable = fb.Variable(1, name="variable")
        ends: list[Any] = []
        values = build(program, feeds, variable, ends)
        kept = [1]
        with fb.Session(devices=DEVICES) as sess:
            for _ in range(3):
                found = sess.run([*values, *ends], dict(zip(feeds, start, strict=True)), timeout=60)
                state = list(start)
                interpret(program, state, kept)
                assert [int(v) for v in found[:STATE]] == state
                assert int(sess.run(variable)) == kept[0]


@settings(max_examples=40)
@given(examples(depth=1), st.integers(0, 1000))
def test_random_graphs(example: Any, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        scatter(patch, seed)
        with fb.Session(example.graph) as one, fb.Session(example.graph, devices=DEVICES) as both:
            both._master.store.entropy = one._master.store.entropy
            for _ in range(3):
                for fetches, feeds in example.steps:
                    wanted = outcome(one, fetches, feeds)
                    assert_same(outcome(both, fetches, feeds), wanted)
