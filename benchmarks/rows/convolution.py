"""A convolution as networks have it: 3 x 3, 32 to 64 channels, 32 images of 32 x 32, NHWC float32.

Forward; and forward with the gradients by the input and by the filters. PyTorch gets its
channels-last layout, which is the same memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row


def _arrays() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return random.standard_normal(shape, dtype=np.float32)

    return normal(32, 32, 32, 32), normal(3, 3, 32, 64) / np.float32(17), normal(32, 32, 32, 64)


def _sample(results: Any) -> Any:
    """Every hundredth element: enough to prove the work."""
    return np.concatenate([np.asarray(result, np.float64).ravel()[::100] for result in results])


def _flowbook(with_gradients: bool, fb: Any) -> Case:
    images, filters, slopes = _arrays()
    graph = fb.Graph()
    with graph.as_default():
        x, f = (fb.placeholder(fb.float32, a.shape) for a in (images, filters))
        dy = fb.placeholder(fb.float32, slopes.shape)
        y = fb.nn.conv2d(x, f, 1, "SAME")
        fetched = [y, *fb.gradients(y, [x, f], dy)] if with_gradients else [y]
    session = fb.Session(graph=graph)
    feeds = {x: images, f: filters, dy: slopes} if with_gradients else {x: images, f: filters}
    return Case(lambda: session.run(fetched, feeds), _sample(session.run(fetched, feeds)))


def _tf1(with_gradients: bool, tf: Any) -> Case:
    images, filters, slopes = _arrays()
    graph = tf.Graph()
    with graph.as_default():
        x, f = (tf.placeholder(tf.float32, a.shape) for a in (images, filters))
        dy = tf.placeholder(tf.float32, slopes.shape)
        y = tf.nn.conv2d(x, f, 1, "SAME")
        fetched = [y, *tf.gradients(y, [x, f], dy)] if with_gradients else [y]
    session = tf1.session(tf, graph)
    feeds = {x: images, f: filters, dy: slopes} if with_gradients else {x: images, f: filters}
    return Case(lambda: session.run(fetched, feeds), _sample(session.run(fetched, feeds)))


def _jax(with_gradients: bool, jax: Any) -> Case:
    images, filters, slopes = (jax.numpy.asarray(a) for a in _arrays())

    def convolve(x: Any, f: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, f, (1, 1), "SAME", dimension_numbers=layout)

    def both(x: Any, f: Any, dy: Any) -> Any:
        y, back = jax.vjp(convolve, x, f)
        return y, *back(dy)

    compiled = jax.jit(both if with_gradients else lambda x, f, dy: (convolve(x, f),))

    def step() -> Any:
        return jax.block_until_ready(compiled(images, filters, slopes))

    return Case(step, _sample(step()))


def _torch(with_gradients: bool, torch: Any) -> Case:
    images, filters, slopes = (torch.from_numpy(a) for a in _arrays())
    x = images.permute(0, 3, 1, 2).requires_grad_(with_gradients)
    f = filters.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    f.requires_grad_(with_gradients)
    dy = slopes.permute(0, 3, 1, 2)

    def step() -> Any:
        y = torch.nn.functional.conv2d(x, f, padding=1)
        return (y, *torch.autograd.grad(y, [x, f], dy)) if with_gradients else (y,)

    def as_ours(results: Any) -> Any:
        y, *gradients = (result.detach() for result in results)
        found = [y.permute(0, 2, 3, 1)]
        if gradients:
            found += [gradients[0].permute(0, 2, 3, 1), gradients[1].permute(2, 3, 1, 0)]
        return [result.contiguous().numpy() for result in found]

    return Case(step, _sample(as_ours(step())))


def _row(name: str, title: str, with_gradients: bool, target: float) -> Row:
    systems = {"flowbook": _flowbook, "tf1": _tf1, "jax": _jax, "torch": _torch}
    return Row(
        name=name,
        title=title,
        cases={system: partial(make, with_gradients) for system, make in systems.items()},
        target=AtMost(target),
        unit="ms",
        rtol=1e-3,
        atol=1e-2,
        rounds=20,
        notes=("JAX and PyTorch: the arrays are theirs already. PyTorch: channels last.",),
    )


_WORK = "conv 3 x 3, 32 to 64 channels, 32 images of 32 x 32"

ROWS = (
    _row("conv", _WORK, False, 5.2e-3),
    _row("conv_gradients", f"{_WORK}, with both gradients", True, 16e-3),
)
