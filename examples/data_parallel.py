"""Data parallelism: replicas of a model on several devices, which share its variables.

Synchronous replicas ("towers") compute one step together, each from its share of the batch: the
step is that of one large batch. Asynchronous replicas have a step and a thread each, and wait for
nobody: each changes the variables as soon as it can, by a gradient at values that others may have
changed since.

Source: white paper, section 7, "Data Parallel Training" and figure 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flowbook as fb


def replicas(loss: Callable[..., Any], batch: Sequence[Any], devices: Sequence[str]) -> list[Any]:
    """The loss of each device's share of a batch.

    Args:
        loss: of a batch, a scalar. The variables that it reads are shared, since they are there
            before.
        batch: such as images and labels; their first dimension can be divided by the devices.
        devices: such as `["cpu:0", "cpu:1"]`.
    """
    shares = zip(*(fb.split(each, len(devices)) for each in batch), strict=True)
    losses = []
    for device, share in zip(devices, shares, strict=True):
        with fb.device(device), fb.name_scope("replica"):
            losses.append(loss(*share))
    return losses


def synchronous(losses: Sequence[Any], optimizer: Any) -> Any:
    """One step of all replicas: gradients are computed where the losses are, and then added."""
    return optimizer.minimize(fb.add_n(list(losses)) / len(losses))


def asynchronous(losses: Sequence[Any], optimizer: Any) -> list[Any]:
    """A step for each replica."""
    return [optimizer.minimize(loss) for loss in losses]


def run_asynchronously(
    session: fb.Session, steps: Sequence[Any], feeds: Sequence[Iterable[Any]]
) -> None:
    """Run each step in a thread of its own, once with each of its feeds."""

    def work(step: Any, own: Iterable[Any]) -> None:
        for each in own:
            session.run(step, each)

    with ThreadPoolExecutor(len(steps)) as threads:
        for each in [threads.submit(work, *both) for both in zip(steps, feeds, strict=True)]:
            each.result()
