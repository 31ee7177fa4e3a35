"""The convolutional network of TensorFlow's CIFAR-10 tutorial, 1,068,298 parameters.

Two convolutions with pooling and local response normalisation, two dense layers, ten classes;
images are cut to 24 x 24. After A. Krizhevsky's cuda-convnet.
"""

from __future__ import annotations

from typing import Any

import flowbook as fb


def _normal(stddev: float) -> Any:
    return fb.initializers.truncated_normal(stddev=stddev)


def _convolution(x: Any, bias: float, name: str) -> Any:
    return fb.layers.conv2d(
        x,
        64,
        5,
        padding="SAME",
        activation=fb.nn.relu,
        kernel_initializer=_normal(0.05),
        bias_initializer=fb.initializers.constant(bias),
        name=name,
    )


def _dense(x: Any, units: int, name: str) -> Any:
    return fb.layers.dense(
        x,
        units,
        activation=fb.nn.relu,
        kernel_initializer=_normal(0.04),
        bias_initializer=fb.initializers.constant(0.1),
        kernel_regularizer=fb.regularizers.l2(0.002),
        name=name,
    )


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
    entropy = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    mean = fb.reduce_mean(entropy, name="cross_entropy")
    return mean + fb.layers.regularization_loss(mean)


def training_step(total: Any, rate: float = 0.1) -> Any:
    """One step of gradient descent, with moving averages of all variables."""
    step = fb.train.GradientDescentOptimizer(rate).minimize(total)
    averages = fb.train.ExponentialMovingAverage(0.9999)
    with fb.control_dependencies([step]):
        return averages.apply(total.graph.variables(trainable=True))
