"""Concurrent steps: while one step is with a device, the next is with the device before it.

The stages of a model lie on several devices, and each needs what the one before gives. In a single
step all devices but one wait. Some steps at once, from as many threads, keep them all busy.

Source: white paper, section 7, "Concurrent Steps for Model Computation Pipelining" and figure 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flowbook as fb


class Stages:
    """Dense layers, each on a device of its own.

    Args:
        width: of their inputs and outputs.
        devices: such as `["cpu:0", "cpu:1", "cpu:2"]`, the first layer's first.
    """

    def __init__(self, width: int, devices: Sequence[str]) -> None:
        self.devices = devices
        self.kernels = []
        for device in devices:
            with fb.device(device):
                start = fb.initializers.glorot_uniform()([width, width])
                self.kernels.append(fb.Variable(start, name="kernel"))

    def __call__(self, x: Any) -> Any:
        """What the last makes of an input [batch, width]."""
        for device, kernel in zip(self.devices, self.kernels, strict=True):
            with fb.device(device):
                x = fb.tanh(x @ kernel)
        return x


def run_at_once(
    session: fb.Session, fetch: Any, feeds: Iterable[dict[Any, Any]], count: int
) -> list[Any]:
    """What the runs with these feeds give, in their order; so many are under way at once."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda each: session.run(fetch, each), feeds))


def predicted_throughput(session: fb.Session, stages: Stages, x: Any, count: int) -> float:
    """How many steps end in a second of simulated time, if so many begin at once.

    Args:
        session: whose devices they are.
        stages: what a step runs.
        x: what would be fed, an array [batch, width].
        count: how many steps there are; they are planned as if they were one.
    """
    inputs = [fb.placeholder(fb.float32, x.shape) for _ in range(count)]
    plan = session.explain([stages(each) for each in inputs], dict.fromkeys(inputs, x.shape))
    return count / plan.seconds
