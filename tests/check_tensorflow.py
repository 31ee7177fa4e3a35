"""Holds what is written for TensorFlow, and what is read of its graphs, against TensorFlow itself.

    benchmarks/.peers/bin/python -m tests.check_tensorflow

It runs where TensorFlow is installed, as `python -m benchmarks peers` does it, beside Flowbook in
one process. Of every row of `tests/op_cases` whose type can be written, TensorFlow runs the graph;
of every row that names TensorFlow's operation, Flowbook reads and runs TensorFlow's graph. What
differs, or cannot be read, is listed; what one of the two has no kernel for, is not.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections import Counter
from typing import Any

import numpy as np

import flowbook as fb
from flowbook.tensorflow.written import RULES
from tests.op_cases import CASES
from tests.op_cases.case import Case, converted, natural
from tests.op_checks import built

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


# What TensorFlow says of operations that it has, but not on a CPU, or not of such sizes.
BEYOND = (
    "Current CPU implementations do not yet support",
    "No OpKernel",
    "is not yet supported on the depth dimension",
    "must be strictly greated than zero",
)


# Rows in which TensorFlow computes otherwise, or not at all.
OTHERWISE = {
    "Convolution-no-channels": "it wants a channel",
    "EuclideanNorm-far-out": "its norm overflows where squares do",
    "EuclideanNormAt-far-out": "its norm overflows where squares do",
    "ExpandDimsAt-several": "it adds one axis at a time, where only the run knows which",
    "Polygamma-no-order": "its polygamma of order 0 is NaN at the poles",
    "RightShift-too-far": "what it shifts too far is undefined",
}


def agree(found: Any, wanted: Any) -> None:
    for value, right in zip(found, wanted, strict=True):
        value, right = np.asarray(value), np.asarray(right)
        assert value.dtype == right.dtype, f"{value.dtype} is not {right.dtype}"
        if right.dtype.kind in "OS":
            assert np.array_equal(value, right)
        else:
            np.testing.assert_allclose(value, right, rtol=2e-4, atol=1e-5)


def ran(tf: Any, message: bytes, outputs: list[str], feeds: dict[str, Any], start: bool) -> Any:
    """What TensorFlow computes of a GraphDef."""
    with tf.Graph().as_default():
        graph = tf.GraphDef()
        graph.ParseFromString(message)
        tf.import_graph_def(graph, name="")
        with tf.Session() as sess:
            if start:
                sess.run("init")
            return sess.run(outputs, feeds)


def written(tf: Any, case: Case) -> str:
    """Whether TensorFlow runs what is written of a row."""
    outputs, feeds = built(case, case.inputs)
    with fb.Session(graph=outputs[0].graph) as sess:
        wanted = sess.run(outputs, feeds)
        try:
            message = fb.tensorflow.save(outputs, session=sess).SerializeToString()
        except fb.errors.UnimplementedError:
            return "refused"
    given = {t.name: v for t, v in feeds.items()}
    try:
        found = ran(tf, message, [t.name for t in outputs], given, False)
    except (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError, TypeError) as error:
        if any(text in str(error) for text in BEYOND):
            return "beyond its kernels"
        raise
    agree(found, wanted)
    return "right"


def read(tf: Any, case: Case) -> str:
    """Whether Flowbook runs TensorFlow's graph of a row to the same values."""
    values = converted(case, case.inputs, natural(case))
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        given = {}
        inputs = []
        try:
            for k, value in enumerate(values):
                if k in case.fixed:
                    inputs.append(tf.constant(value))
                else:
                    inputs.append(tf.placeholder(value.dtype, value.shape))
                    given[inputs[-1].name] = value
            import tensorflow

            outputs = case.tensorflow(tensorflow, *inputs)  # type: ignore[misc]
            outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
            names = [t.name for t in outputs]
            wanted = sess.run(names, given)
        except Exception:
            return "not a graph there"
        message = graph.as_graph_def()
    mine = fb.Graph()
    model = fb.tensorflow.load(message, graph=mine, outputs=names)
    with fb.Session(graph=mine) as sess:
        feeds = {model[n]: v for n, v in given.items() if n in model.elements}
        agree(sess.run([model[n] for n in names], feeds), wanted)
    return "right"


def loops() -> tuple[list[Any], dict[Any, Any]]:
    """Loops and branches in each other, with a variable and an array of tensors in them."""
    n = fb.placeholder(fb.int32, [], name="n")
    x = fb.placeholder(fb.float32, [3], name="x")
    W = fb.Variable(np.eye(3, dtype=np.float32) * 0.5 + 0.1, name="W")

    def body(i: Any, y: Any, parts: Any) -> Any:
        even = fb.equal(i % 2, 0)
        y = fb.cond(even, lambda: fb.reshape(fb.matmul(y[None], W), [3]), lambda: y + 1.0)
        _, y = fb.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, z * 1.5), (0, y))
        return i + 1, y, parts.write(i, fb.reduce_sum(y))

    start = (0, x, fb.TensorArray(fb.float32, n))
    _, y, parts = fb.while_loop(lambda i, *_: i < n, body, start)
    return [y, parts.stack()], {n: np.int32(4), x: np.array([0.1, -0.2, 0.3], np.float32)}


def training() -> tuple[list[Any], dict[Any, Any]]:
    """A step of a small network: its loss, a gradient, and a weight afterwards."""
    x = fb.placeholder(fb.float32, [4, 12, 12, 3], name="x")
    y = fb.placeholder(fb.int32, [4], name="y")
    filters = fb.Variable(np.linspace(-1, 1, 108).reshape(3, 3, 3, 4).astype(np.float32))
    hidden = fb.nn.max_pool(fb.nn.relu(fb.nn.conv2d(x, filters, 1, "VALID")), 2, 2, "SAME")
    hidden = fb.layers.batch_normalization(fb.layers.flatten(hidden), training=True)
    W = fb.Variable(np.linspace(-1, 1, 300).reshape(100, 3).astype(np.float32))
    losses = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=fb.matmul(hidden, W))
    loss = fb.reduce_mean(losses)
    [gradient] = fb.gradients(loss, [filters])
    train = fb.train.AdamOptimizer(0.01).minimize(loss)
    with fb.control_dependencies([train]):
        after = fb.identity(W)
    images = np.random.default_rng(0).random((4, 12, 12, 3), np.float32)
    return [loss, gradient, after], {x: images, y: np.array([0, 1, 2, 1], np.int32)}


def models(tf: Any) -> int:
    """Whether TensorFlow runs whole models, their variables frozen or not; how many are wrong."""
    failed = 0
    for build in (loops, training):
        for frozen in (True, False) if build is loops else (False,):
            with fb.Graph().as_default(), fb.Session() as sess:
                fetches, feeds = build()
                message = fb.tensorflow.save(fetches, session=sess if frozen else None)
                wanted = sess.run(fetches, feeds)
            names, given = [t.name for t in fetches], {t.name: v for t, v in feeds.items()}
            try:
                agree(ran(tf, message.SerializeToString(), names, given, not frozen), wanted)
                print(f"model {build.__name__}, frozen={frozen}: right")
            except Exception as error:
                failed += 1
                print(f"model {build.__name__}, frozen={frozen}: {error}")
    return failed


def main() -> int:
    import tensorflow

    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    failed = models(tf)
    for what, check, rows in (
        ("written", written, [c for c in CASES if c.type in RULES]),
        ("read", read, [c for c in CASES if c.tensorflow is not None]),
    ):
        counts: Counter[str] = Counter()
        missing: Counter[str] = Counter()
        for case in rows:
            if case.name in OTHERWISE:
                continue
            try:
                counts[check(tf, case)] += 1
            except fb.errors.UnimplementedError as error:
                counts["not read"] += 1
                missing[error.message.partition("translation: ")[2][:60] or error.message] += 1
            except Exception as error:
                counts["wrong"] += 1
                failed += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                text = " ".join(str(error).split())[:300]
                print(f"{what} {case.name}: {type(error).__name__} {text} ({last.name})")
        print(what, dict(counts))
        for text, count in missing.most_common():
            print(f"  {count} {text}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
