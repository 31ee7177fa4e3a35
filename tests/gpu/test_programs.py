"""Programs scattered over a GPU and a CPU mean what they mean on a CPU alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.engine.code.test_lowering import programs, starts
from tests.exec.engine.test_joint import hold_against_one, hold_against_python
from tests.exec.random_graphs import examples
from tests.gpu.need import skip_without_gpu

skip_without_gpu()

DEVICES = ["cpu:0", "gpu:0"]


@settings(max_examples=40)
@given(programs(), starts, st.integers(0, 1000))
def test_loops_and_branches(program: Any, start: list[int], seed: int) -> None:
    hold_against_python(program, start, DEVICES, seed)


@settings(max_examples=40)
@given(examples(depth=1), st.integers(0, 1000))
def test_random_graphs(example: Any, seed: int) -> None:
    hold_against_one(example, DEVICES, seed)
