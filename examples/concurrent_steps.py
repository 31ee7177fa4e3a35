"""Concurrent steps: while one step is with a device, the next is with the device before it.

The stages of a model lie on several devices, and each needs what the one before gives. In a single
step all devices but one wait. Some steps at once, from as many threads, keep them all busy.

`python -m examples.concurrent_steps steps.svg` draws what is planned for five steps at once on
three devices, and prints how many more steps that makes in a second.

Source: white paper, section 7, "Concurrent Steps for Model Computation Pipelining" and figure 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import flowbook as fb
from examples import figures


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


def planned(session: fb.Session, stages: Stages, x: Any, count: int) -> Any:
    """The plan of so many steps that begin at once, as if they were one.

    Args:
        session: whose devices they are.
        stages: what a step runs.
        x: what would be fed, an array [batch, width].
        count: how many steps there are. The operations of each lie in a scope, "step0" and so on.
    """
    inputs = [fb.placeholder(fb.float32, x.shape) for _ in range(count)]
    outputs = []
    for number, each in enumerate(inputs):
        with fb.name_scope(f"step{number}"):
            outputs.append(stages(each))
    return session.explain(outputs, dict.fromkeys(inputs, x.shape))


def predicted_throughput(session: fb.Session, stages: Stages, x: Any, count: int) -> float:
    """How many steps end in a second of simulated time, if so many begin at once; as `planned`."""
    return count / planned(session, stages, x, count).seconds


def main(count: int = 5, figure: Any = None) -> float:
    """Plan so many steps on three devices; return how many more end in a second than of one."""
    stages = Stages(256, ["cpu:0", "cpu:1", "cpu:2"])
    x = np.ones([128, 256])
    with fb.Session(cpus=3) as sess:
        alone, together = (predicted_throughput(sess, stages, x, each) for each in (1, count))
        plan = planned(sess, stages, x, count)
    figures.lanes(figure, plan, lambda name: int(name[4]) if name.startswith("step") else None)
    print(f"{together / alone:.2f} times as many steps in a second, of at most three")
    return together / alone


if __name__ == "__main__":
    figures.run(main)
