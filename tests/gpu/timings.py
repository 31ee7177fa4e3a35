"""How long things take on a GPU and on the CPU: `python -m tests.gpu.timings`, where a GPU is.

Each row is the least of several tries. Nothing is asserted: a person compares.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flowbook as fb
from flowbook.exec.devices.cuda import why_not
from flowbook.exec.devices.gpu import Gpu

Row = tuple[str, float, float | None]
Step = Callable[[], Any]

_TRIES = 20


def least(step: Step) -> float:
    """The shortest of several tries, in seconds."""
    for _ in range(4):  # Kernels are compiled, and the step is code.
        step()
    found = []
    for _ in range(_TRIES):
        begin = time.perf_counter()
        step()
        found.append(time.perf_counter() - begin)
    return min(found)


def copies() -> Iterator[Row]:
    """What goes over and back, and the host waits for."""
    device = Gpu()
    for size in (4, 1 << 20, 1 << 26):
        host = np.ones(size, np.uint8)
        there = device.put(host)
        yield (
            f"{size:,} bytes there and back",
            least(lambda h=host: device.fetch(device.put(h))),
            None,
        )
        yield f"{size:,} bytes back", least(lambda t=there: device.fetch(t)), None


def products(device: str) -> dict[str, float]:
    """Products of matrices; the number is the dimension."""
    found = {}
    for size in (256, 1024, 4096):
        with fb.Graph().as_default(), fb.device(device):
            x = fb.Variable(np.ones((size, size), np.float32))
            y = fb.reduce_sum(fb.matmul(x, x))
            with fb.Session(devices=["cpu:0", *_gpu(device)]) as sess:
                found[f"product of matrices of {size}"] = least(lambda s=sess, y=y: s.run(y))
    return found


def overhead(device: str) -> dict[str, float]:
    """A hundred small kernels after each other."""
    with fb.Graph().as_default(), fb.device(device):
        x = fb.placeholder(fb.float32, [16])
        y = x
        for _ in range(100):
            y = fb.tanh(y)
        with fb.Session(devices=["cpu:0", *_gpu(device)]) as sess:
            return {"100 small kernels": least(lambda: sess.run(y, {x: np.ones(16, np.float32)}))}


def training(device: str) -> dict[str, float]:
    """Steps of a network, and of one with convolutions, with their updates."""
    return {
        "dense network": _trained(device, [256, 784], _dense),
        "convolutional network": _trained(device, [32, 32, 32, 3], _conv),
    }


def _trained(device: str, shape: list[int], layers: Callable[[fb.Tensor], fb.Tensor]) -> float:
    random = np.random.default_rng(0)
    with fb.Graph().as_default(), fb.device(device):
        x = fb.placeholder(fb.float32, shape)
        labels = fb.placeholder(fb.int32, shape[:1])
        loss = fb.losses.sparse_softmax_cross_entropy(labels, layers(x))
        train = fb.train.AdamOptimizer(1e-3).minimize(loss)
        feeds = {x: random.normal(size=shape), labels: random.integers(0, 10, shape[0])}
        with fb.Session(devices=["cpu:0", *_gpu(device)]) as sess:
            return least(lambda: sess.run([loss, train], feeds))


def _gpu(device: str) -> list[str]:
    return [device] if device.startswith("gpu") else []


def _dense(x: fb.Tensor) -> fb.Tensor:
    return fb.layers.dense(fb.layers.dense(x, 1024, activation=fb.nn.relu), 10)


def _conv(x: fb.Tensor) -> fb.Tensor:
    for filters in (32, 64):
        x = fb.layers.conv2d(x, filters, 3, padding="SAME", activation=fb.nn.relu)
        x = fb.layers.max_pooling2d(x, 2, 2)
    return fb.layers.dense(fb.layers.flatten(x), 10)


def main() -> int:
    """Print the table; return the exit status."""
    reason = why_not(0)
    if reason is not None:
        print(f"no GPU is here: {reason}", file=sys.stderr)
        return 1
    rows = list(copies())
    for measure in (overhead, products, training):
        there, here = measure("gpu:0"), measure("cpu:0")
        rows += [(name, there[name], here[name]) for name in there]
    print(f"{'':40}{'GPU, us':>12}{'CPU, us':>12}")
    for name, there, here in rows:
        print(f"{name:40}{there * 1e6:12,.0f}{'' if here is None else f'{here * 1e6:12,.0f}'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
