"""The convolutional network of TensorFlow's CIFAR-10 tutorial, 1,068,298 parameters.

Two convolutions with pooling and local response normalisation, two dense layers, ten classes;
images are cut to 24 x 24. After A. Krizhevsky's cuda-convnet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import flowbook as fb
from examples import figures


def _normal(stddev: float) -> Any:
    return fb.initializers.truncated_normal(stddev=stddev)


def _convolution(x: Any, bias: float, name: str) -> Any:
    start = {
        "kernel_initializer": _normal(0.05),
        "bias_initializer": fb.initializers.constant(bias),
    }
    return fb.layers.conv2d(x, 64, 5, padding="SAME", activation=fb.nn.relu, **start, name=name)


def _dense(x: Any, units: int, name: str) -> Any:
    start = {
        "kernel_initializer": _normal(0.04),
        "bias_initializer": fb.initializers.constant(0.1),
    }
    small = fb.regularizers.l2(0.002)
    return fb.layers.dense(x, units, fb.nn.relu, **start, kernel_regularizer=small, name=name)


def _normalized(x: Any) -> Any:
    return fb.nn.local_response_normalization(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)


def _pooled(x: Any) -> Any:
    return fb.nn.max_pool(x, 3, 2, "SAME")


def cifar10(images: Any) -> Any:
    """The logits of ten classes.

    Args:
        images: [batch, 24, 24, 3].

    Returns:
        [batch, 10].
    """
    first = _normalized(_pooled(_convolution(images, 0.0, "conv1")))
    second = _pooled(_normalized(_convolution(first, 0.1, "conv2")))
    third = _dense(fb.layers.flatten(second), 384, "local3")
    fourth = _dense(third, 192, "local4")
    return fb.layers.dense(fourth, 10, kernel_initializer=_normal(1 / 192), name="softmax_linear")


def loss(logits: Any, labels: Any) -> Any:
    """Cross entropy and the penalties of the dense layers' weights."""
    mean = fb.losses.sparse_softmax_cross_entropy(labels, logits)
    return mean + fb.layers.regularization_loss(mean)


def training_step(total: Any, rate: float = 0.1) -> Any:
    """One step of gradient descent, with moving averages of all variables."""
    step = fb.train.GradientDescentOptimizer(rate).minimize(total)
    averages = fb.train.ExponentialMovingAverage(0.9999)
    with fb.control_dependencies([step]):
        return averages.apply(total.graph.variables(trainable=True))


def main(steps: int = 120, batch: int = 32, seed: int = 1, figure: Any = None) -> float:
    """Train on digits, in colours that say nothing; return the share of held-out ones it knows."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    pixels = np.kron(digits.images[order] / 8 - 1, np.ones([3, 3]))[..., None]
    pixels = pixels * rng.uniform(0.5, 1, (len(pixels), 1, 1, 3))
    answers = digits.target[order]

    images = fb.placeholder(fb.float32, [None, 24, 24, 3], name="images")
    labels = fb.placeholder(fb.int32, [None], name="labels")
    logits = cifar10(images)
    step = training_step(loss(logits, labels))
    with fb.Session() as sess:
        for _ in range(steps):
            rows = rng.integers(200, len(pixels), batch)
            sess.run(step, {images: pixels[rows], labels: answers[rows]})
        found = sess.run(logits, {images: pixels[:200]}).argmax(1)
    figures.readings(figure, pixels[:50] / 2 + 0.5, found, answers)
    right = float(np.mean(found == answers[:200]))
    print(f"{right:.1%} of 200 digits that it has never seen are right")
    return right


if __name__ == "__main__":
    figures.run(main)
