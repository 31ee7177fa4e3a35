"""GoogLeNet, the first Inception network: 22 layers with parameters.

Source: Szegedy et al., "Going deeper with convolutions", 2014, table 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flowbook as fb


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
    """[batch, classes] each: the classifier's, and those of the two that help to train it."""

    main: Any
    first: Any
    second: Any


def _convolution(x: Any, filters: int, size: int, name: str, stride: int = 1) -> Any:
    start = fb.initializers.he_normal()
    relu = fb.nn.relu
    return fb.layers.conv2d(
        x, filters, size, stride, "SAME", activation=relu, kernel_initializer=start, name=name
    )


def inception(x: Any, sizes: Inception, name: str) -> Any:
    """Four branches side by side: windows of 1, 3 and 5, and pooling."""
    with fb.name_scope(name):
        one = _convolution(x, sizes.one, 1, "1x1")
        three = _convolution(_convolution(x, sizes.reduce3, 1, "3x3_reduce"), sizes.three, 3, "3x3")
        five = _convolution(_convolution(x, sizes.reduce5, 1, "5x5_reduce"), sizes.five, 5, "5x5")
        pool = _convolution(fb.nn.max_pool(x, 3, 1, "SAME"), sizes.pool, 1, "pool_proj")
        return fb.concat([one, three, five, pool], 3)


def _helper(x: Any, classes: int, training: Any, name: str) -> Any:
    with fb.name_scope(name):
        x = fb.nn.avg_pool(x, 5, 3, "VALID")
        x = fb.layers.flatten(_convolution(x, 128, 1, "conv"))
        x = fb.layers.dense(x, 1024, fb.nn.relu, name="fc")
        x = fb.layers.dropout(x, 0.7, training)
        return fb.layers.dense(x, classes, name="classifier")


def googlenet(
    images: Any, classes: int = 1000, training: Any = False, with_helpers: bool = False
) -> Logits:
    """The logits of the classes.

    Args:
        images: [batch, 224, 224, 3].
        classes: how many there are.
        training: a bool, or a bool tensor: whether dropout acts.
        with_helpers: whether the two auxiliary classifiers are there, which training uses.
    """

    def pooled(x: Any) -> Any:
        return fb.nn.max_pool(x, 3, 2, "SAME")

    def normalized(x: Any) -> Any:
        return fb.nn.local_response_normalization(x, 2, 1.0, 2e-5, 0.75)

    x = normalized(pooled(_convolution(images, 64, 7, "conv1", stride=2)))
    x = _convolution(_convolution(x, 64, 1, "conv2_reduce"), 192, 3, "conv2")
    x = pooled(normalized(x))
    helpers: dict[str, Any] = {}
    for name, sizes in MODULES.items():
        if name in ("4a", "5a"):
            x = pooled(x)
        if with_helpers and name in ("4b", "4e"):
            helpers[name] = _helper(x, classes, training, f"helper_{name}")
        x = inception(x, sizes, f"inception_{name}")
    x = fb.layers.dropout(fb.reduce_mean(x, [1, 2]), 0.4, training)
    main = fb.layers.dense(x, classes, name="classifier")
    return Logits(main, helpers.get("4b"), helpers.get("4e"))


def loss(logits: Logits, labels: Any) -> Any:
    """Cross entropy; the auxiliary classifiers count 0.3 each."""

    def entropy(each: Any) -> Any:
        return fb.reduce_mean(
            fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=each)
        )

    helpers = [each for each in (logits.first, logits.second) if each is not None]
    return sum((0.3 * entropy(each) for each in helpers), entropy(logits.main))
