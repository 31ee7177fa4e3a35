"""Records what TensorFlow's optimizers, schedules and moving averages compute.

    benchmarks/.peers/bin/python -m tests.record_training

It runs where TensorFlow is installed, and writes `tests/recorded/training.npz`, which
`tests/train/test_tensorflow.py` holds Flowbook's values against.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.record_tensorflow import RECORDED
from tests.train.settings import (
    AVERAGES,
    BOUNDARIES,
    COUNTS,
    OPTIMIZERS,
    SCHEDULES,
    START,
    VALUES,
    dense_gradients,
    sparse_gradients,
)

STEPS = 10


def optimizer(tf: Any, made: Any, dtype: Any, is_sparse: bool) -> np.ndarray:
    """The values of a variable after each step."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.Variable(START.astype(dtype), use_resource=True)
        gradient = tf.placeholder(dtype, [None, START.shape[1]])
        indices = tf.placeholder(tf.int32, [None])
        if is_sparse:
            train = made().apply_gradients(
                [(tf.IndexedSlices(gradient, indices, dense_shape=START.shape), x)]
            )
        else:
            train = made().apply_gradients([(gradient, x)])
        sess.run(tf.global_variables_initializer())
        found = []
        feeds: list[Any] = (
            [{gradient: g, indices: i} for g, i in sparse_gradients(STEPS)]
            if is_sparse
            else [{gradient: g} for g in dense_gradients(STEPS)]
        )
        for fed in feeds:
            sess.run(train, fed)
            found.append(sess.run(x))
        return np.array(found)


def schedule(tf: Any, make: Any) -> np.ndarray:
    """The values of a schedule, by the counter."""
    with tf.Graph().as_default(), tf.Session() as sess:
        step = tf.placeholder(tf.int64, [])
        rate = make(step)
        rate = rate() if callable(rate) else rate
        return np.array([sess.run(rate, {step: count}) for count in COUNTS])


def averages(tf: Any, decay: float, is_counted: bool, is_corrected: bool) -> np.ndarray:
    """The averages of a variable and of a tensor after each step."""
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(tf.float32, START.shape)
        x = tf.Variable(START.astype(np.float32), use_resource=True)
        step = tf.Variable(0, trainable=False, use_resource=True)
        moved = tf.assign(x, fed)
        average = tf.train.ExponentialMovingAverage(
            decay, step if is_counted else None, is_corrected
        )
        tensor = fed * 2.0
        with tf.control_dependencies([moved]):
            move = average.apply([x, tensor])
        with tf.control_dependencies([move]):
            counted = tf.assign_add(step, 1)
        sess.run(tf.global_variables_initializer())
        found = []
        for value in dense_gradients(STEPS):
            sess.run([move, counted], {fed: value})
            found.append(sess.run([average.average(x), average.average(tensor)]))
        return np.array(found)


def main() -> None:
    """Record everything."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    found: dict[str, np.ndarray] = {}
    for name, (kind, arguments, is_known) in OPTIMIZERS.items():
        if not is_known:
            continue
        # TensorFlow refuses float64 variables there.
        is_narrow = kind.startswith("Proximal")
        for dtype in (np.float32,) if is_narrow else (np.float32, np.float64):
            for form in ("dense", "sparse"):
                found[f"{name}/{form}/{np.dtype(dtype).name}"] = optimizer(
                    tf,
                    lambda kind=kind, arguments=arguments: getattr(tf.train, kind)(**arguments),
                    dtype,
                    form == "sparse",
                )
    for name, (kind, arguments) in SCHEDULES.items():
        found[f"schedule/{name}"] = schedule(
            tf,
            lambda step, kind=kind, arguments=arguments: getattr(tf.train, kind)(
                0.3, step, **arguments
            ),
        )
    found["schedule/piecewise"] = schedule(
        tf,
        lambda step: tf.train.piecewise_constant(step, [np.int64(b) for b in BOUNDARIES], VALUES),
    )
    for name, setting in AVERAGES.items():
        found[f"average/{name}"] = averages(tf, *setting)
    RECORDED.mkdir(exist_ok=True)
    np.savez_compressed(RECORDED / "training.npz", **found)
    print(f"{len(found)} recordings")


if __name__ == "__main__":
    main()
