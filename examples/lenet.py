"""LeNet-5 as published, 60,000 parameters that are trained.

`python -m examples.lenet` trains it on the small digits of scikit-learn, made larger. The figure
that shows what it has learnt is the share of digits it has never seen that it reads correctly.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
1998, section II.B. The codes of the output layer are random here, and not drawn letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import flowbook as fb
from examples import figures

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


def main(steps: int = 200, batch: int = 32, seed: int = 1, figure: Any = None) -> float:
    """Train; return the share of held-out digits that it knows."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    pixels = 1.275 / 16 * np.kron(digits.images[order], np.ones([4, 4])) - 0.1
    answers = digits.target[order]

    images = fb.placeholder(fb.float32, [None, 32, 32, 1], name="images")
    labels = fb.placeholder(fb.int32, [None], name="labels")
    penalties = lenet(images)
    step = fb.train.AdamOptimizer(2e-3).minimize(loss(penalties, labels))
    with fb.Session() as sess:
        for _ in range(steps):
            rows = rng.integers(200, len(pixels), batch)
            sess.run(step, {images: pixels[rows, ..., None], labels: answers[rows]})
        found = sess.run(penalties, {images: pixels[:200, ..., None]}).argmin(1)
    figures.readings(figure, pixels[:50], found, answers)
    right = float(np.mean(found == answers[:200]))
    print(f"{right:.1%} of 200 digits that it has never seen are right")
    return right


if __name__ == "__main__":
    figures.run(main)
