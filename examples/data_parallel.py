"""Data parallelism: replicas of a model on several devices, which share its variables.

Synchronous replicas ("towers") compute one step together, each from its share of the batch: the
step is that of one large batch. Asynchronous replicas have a step and a thread each, and wait for
nobody: each changes the variables as soon as it can, by a gradient at values that others may have
changed since.

`python -m examples.data_parallel` trains two towers that read digits. The figure that shows what
they have learnt is the share of digits they have never seen that they read correctly.

Source: white paper, section 7, "Data Parallel Training" and figure 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import flowbook as fb
from examples import figures


def replicas(loss: Callable[..., Any], batch: Sequence[Any], devices: Sequence[str]) -> list[Any]:
    """The loss of each device's share of a batch.

    Args:
        loss: of a batch, a scalar. The variables that it reads are shared where they are there
            before, or a template's (`fb.template`).
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


def main(steps: int = 300, batch: int = 64, seed: int = 1, figure: Any = None) -> float:
    """Train two towers, each on a device; return the share of held-out digits that they know."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    digits = load_digits()
    order = rng.permutation(len(digits.data))
    pixels, answers = digits.data[order] / 16, digits.target[order]

    def classify(images: Any) -> Any:
        hidden = fb.layers.dense(images, 64, fb.nn.relu)
        return fb.layers.dense(hidden, 10)

    model = fb.template(classify, "classifier")
    images = fb.placeholder(fb.float32, [None, 64], name="images")
    labels = fb.placeholder(fb.int32, [None], name="labels")
    losses = replicas(
        lambda images, labels: fb.losses.sparse_softmax_cross_entropy(labels, model(images)),
        [images, labels],
        ["cpu:0", "cpu:1"],
    )
    step = synchronous(losses, fb.train.AdamOptimizer(3e-3))
    scores = model(images)
    with fb.Session(cpus=2) as sess:
        for _ in range(steps):
            rows = rng.integers(200, len(pixels), batch)
            sess.run(step, {images: pixels[rows], labels: answers[rows]})
        found = sess.run(scores, {images: pixels[:200]}).argmax(1)
    figures.readings(figure, pixels[:50].reshape(-1, 8, 8), found, answers)
    right = float(np.mean(found == answers[:200]))
    print(f"{right:.1%} of 200 digits that they have never seen are right")
    return right


if __name__ == "__main__":
    figures.run(main)
