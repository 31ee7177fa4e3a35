"""GoogLeNet, the first Inception network: 22 layers with parameters.

`python -m examples.googlenet` trains one that is an eighth as wide on the small digits of
scikit-learn, made larger. The figure is the share of digits it has never seen that it reads.

Source: Szegedy et al., "Going deeper with convolutions", 2014, table 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import flowbook as fb
from examples import figures


class Inception(NamedTuple):
    """The sizes of one module, in the order of the table's columns."""

    one: int
    reduce3: int
    three: int
    reduce5: int
    five: int
    pool: int


MODULES = {
    "3a": Inception(64, 96, 128, 16, 32, 32),
    "3b": Inception(128, 128, 192, 32, 96, 64),
    "4a": Inception(192, 96, 208, 16, 48, 64),
    "4b": Inception(160, 112, 224, 24, 64, 64),
    "4c": Inception(128, 128, 256, 24, 64, 64),
    "4d": Inception(112, 144, 288, 32, 64, 64),
    "4e": Inception(256, 160, 320, 32, 128, 128),
    "5a": Inception(256, 160, 320, 32, 128, 128),
    "5b": Inception(384, 192, 384, 48, 128, 128),
}


class Logits(NamedTuple):
    """[batch, classes] each: the classifier's, and of two that help to train it."""

    main: Any
    first: Any
    second: Any


def _convolution(x: Any, filters: int, size: int, name: str, stride: int = 1) -> Any:
    how = {"activation": fb.nn.relu, "kernel_initializer": fb.initializers.he_normal()}
    return fb.layers.conv2d(x, filters, size, stride, "SAME", **how, name=name)


def inception(x: Any, sizes: Inception, name: str) -> Any:
    """Four branches side by side: windows of 1, 3 and 5, and pooling."""
    with fb.name_scope(name):
        one = _convolution(x, sizes.one, 1, "1x1")
        three = _convolution(_convolution(x, sizes.reduce3, 1, "3x3_reduce"), sizes.three, 3, "3x3")
        five = _convolution(_convolution(x, sizes.reduce5, 1, "5x5_reduce"), sizes.five, 5, "5x5")
        pool = _convolution(fb.nn.max_pool(x, 3, 1, "SAME"), sizes.pool, 1, "pool_proj")
        return fb.concat([one, three, five, pool], 3)


def _helper(x: Any, classes: int, training: Any, part: int, name: str) -> Any:
    with fb.name_scope(name):
        x = fb.nn.avg_pool(x, 5, 3, "VALID")
        x = fb.layers.flatten(_convolution(x, 128 // part, 1, "conv"))
        x = fb.layers.dense(x, 1024 // part, fb.nn.relu, name="fc")
        x = fb.layers.dropout(x, 0.7, training)
        return fb.layers.dense(x, classes, name="classifier")


def _pooled(x: Any) -> Any:
    return fb.nn.max_pool(x, 3, 2, "SAME")


def _normalized(x: Any) -> Any:
    return fb.nn.local_response_normalization(x, 2, 1.0, 2e-5, 0.75)


def googlenet(
    images: Any,
    classes: int = 1000,
    training: Any = False,
    with_helpers: bool = False,
    part: int = 1,
) -> Logits:
    """The logits of the classes.

    Args:
        images: [batch, 224, 224, 3]; smaller ones will do.
        classes: how many there are.
        training: a bool, or a bool tensor: whether dropout acts.
        with_helpers: whether the two auxiliary classifiers are there, which training uses.
        part: by what the widths of the layers are divided.
    """
    x = _normalized(_pooled(_convolution(images, 64 // part, 7, "conv1", stride=2)))
    x = _convolution(x, 64 // part, 1, "conv2_reduce")
    x = _convolution(x, 192 // part, 3, "conv2")
    x = _pooled(_normalized(x))
    helpers: dict[str, Any] = {}
    for name, sizes in MODULES.items():
        if name in ("4a", "5a"):
            x = _pooled(x)
        if with_helpers and name in ("4b", "4e"):
            helpers[name] = _helper(x, classes, training, part, f"helper_{name}")
        x = inception(x, Inception(*(size // part for size in sizes)), f"inception_{name}")
    x = fb.layers.dropout(fb.reduce_mean(x, [1, 2]), 0.4, training)
    main = fb.layers.dense(x, classes, name="classifier")
    return Logits(main, helpers.get("4b"), helpers.get("4e"))


def loss(logits: Logits, labels: Any) -> Any:
    """Cross entropy; the auxiliary classifiers count 0.3 each."""
    entropy = fb.losses.sparse_softmax_cross_entropy
    helpers = [each for each in (logits.first, logits.second) if each is not None]
    return sum((0.3 * entropy(labels, each) for each in helpers), entropy(labels, logits.main))


def main(steps: int = 300, batch: int = 32, seed: int = 1, figure: Any = None) -> float:
    """Train a thin one; return the share of held-out digits that it knows."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    pixels = np.kron(digits.images[order] / 8 - 1, np.ones([12, 12]))[..., None]
    answers = digits.target[order]

    images = fb.placeholder(fb.float32, [None, 96, 96, 1], name="images")
    labels = fb.placeholder(fb.int32, [None], name="labels")
    training = fb.placeholder_with_default(False, [], name="training")
    logits = googlenet(images, 10, training, with_helpers=True, part=8)
    step = fb.train.AdamOptimizer(2e-3).minimize(loss(logits, labels))
    with fb.Session() as sess:
        for _ in range(steps):
            rows = rng.integers(200, len(pixels), batch)
            sess.run(step, {images: pixels[rows], labels: answers[rows], training: True})
        found = sess.run(logits.main, {images: pixels[:200]}).argmax(1)
    figures.readings(figure, digits.images[order[:50]], found, answers)
    right = float(np.mean(found == answers[:200]))
    print(f"{right:.1%} of 200 digits that it has never seen are right")
    return right


if __name__ == "__main__":
    figures.run(main)
