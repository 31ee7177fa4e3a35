"""LeNet-5 as published, 60,000 parameters that are trained.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
1998, section II.B. The codes of the output layer are random here, and not drawn letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowbook as fb

# Which maps of S2 each map of C3 looks at (table I there).
_SEEN = (
    *(tuple((i + k) % 6 for k in range(3)) for i in range(6)),
    *(tuple((i + k) % 6 for k in range(4)) for i in range(6)),
    *(((i % 6), (i + 1) % 6, (i + 3) % 6, (i + 4) % 6) for i in range(3)),
    tuple(range(6)),
)


def _squashed(x: Any) -> Any:
    return 1.7159 * fb.tanh(x * (2 / 3))


def _uniform(fan_in: int) -> Any:
    return fb.initializers.random_uniform(-2.4 / fan_in, 2.4 / fan_in)


def _convolution(x: Any, filters: int, name: str) -> Any:
    start = _uniform(25 * x.shape[-1])
    return fb.layers.conv2d(x, filters, 5, kernel_initializer=start, name=name)


def _subsampled(x: Any, name: str) -> Any:
    """The sum of 2 x 2 places, times one trained coefficient for each map, plus one bias."""
    maps = x.shape[-1]
    with fb.name_scope(name):
        coefficient = fb.Variable(fb.fill([maps], 0.25), name="coefficient")
        bias = fb.Variable(fb.zeros([maps]), name="bias")
        return _squashed(4.0 * fb.nn.avg_pool(x, 2, 2, "VALID") * coefficient + bias)


def _partly_connected(x: Any, seen: Sequence[Sequence[int]], name: str) -> Any:
    """A convolution whose maps each see only some of the maps below."""
    with fb.name_scope(name):
        maps = [
            _convolution(fb.gather(x, list(inputs), axis=3), 1, f"map{i}")
            for i, inputs in enumerate(seen)
        ]
        return fb.concat(maps, 3)


def lenet(images: Any, codes: Any = None) -> Any:
    """How far each image is from the code of each class: the smallest is the class.

    Args:
        images: [batch, 32, 32, 1], background about -0.1 and ink about 1.175.
        codes: [84, 10], -1 and 1.

    Returns:
        [batch, 10], the penalties.
    """
    if codes is None:
        codes = np.random.default_rng(1998).choice([-1.0, 1.0], [84, 10]).astype(np.float32)
    c1 = _squashed(_convolution(images, 6, "C1"))
    s2 = _subsampled(c1, "S2")
    c3 = _squashed(_partly_connected(s2, _SEEN, "C3"))
    s4 = _subsampled(c3, "S4")
    c5 = _squashed(_convolution(s4, 120, "C5"))
    start = _uniform(120)
    f6 = _squashed(fb.layers.dense(fb.layers.flatten(c5), 84, kernel_initializer=start, name="F6"))
    return fb.reduce_sum(fb.squared_difference(fb.expand_dims(f6, 2), codes), 1)


def loss(penalties: Any, labels: Any) -> Any:
    """The penalty of the right class, against those of the others (equation 9 there)."""
    right = fb.reduce_sum(penalties * fb.one_hot(labels, 10), 1)
    constant = fb.fill([fb.shape(penalties)[0], 1], -0.1)
    others = fb.reduce_logsumexp(fb.concat([-penalties, constant], 1), 1)
    return fb.reduce_mean(right + others)
