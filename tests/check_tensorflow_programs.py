"""Holds whole programs of TensorFlow, read by Flowbook, against TensorFlow itself.

    benchmarks/.peers/bin/python -m tests.check_tensorflow_programs [name ...]

It runs where TensorFlow is installed, as `python -m benchmarks peers` does it. A program of
TensorFlow 1 builds a graph; Flowbook reads its MetaGraph, and both run it from the same values of
variables, several times. A program of TensorFlow 2 is a saved model with a checkpoint. Where a
program names something to differentiate, Flowbook's gradients are held against TensorFlow's.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import flowbook as fb
from flowbook.tensorflow.functions.library import _OUTPUTS
from flowbook.tensorflow.operators import BY_REFERENCE, OPERATORS

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

RNG = np.random.RandomState(5)


def drawn(*shape: int) -> Any:
    return RNG.randn(*shape).astype(np.float32)


@dataclass
class Program:
    """What a program of TensorFlow 1 is to be run for.

    Attributes:
        fetches: names of tensors, and of operations, to run.
        feeds: by names of tensors.
        runs: how often.
        loss: the name of what is differentiated.
        by: the names of the tensors, or variables, that it is differentiated by.
        given: what stands for tensors of the graph, by their names.
    """

    fetches: list[str]
    feeds: dict[str, Any] = field(default_factory=dict)
    runs: int = 2
    loss: str = ""
    by: tuple[str, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)


PROGRAMS: dict[str, Callable[[Any], Program]] = {}
MODELS: dict[str, Callable[[Any], tuple[Any, list[Any]]]] = {}


def program(build: Callable[[Any], Program]) -> Callable[[Any], Program]:
    PROGRAMS[build.__name__] = build
    return build


def model(build: Callable[[Any], tuple[Any, list[Any]]]) -> Any:
    MODELS[build.__name__] = build
    return build


def trained(tf: Any, optimizer: Any, use_resource: bool = False, sparse: bool = False) -> Program:
    """Some steps of an optimizer."""
    x = tf.placeholder(tf.int32, [6], "x") if sparse else tf.placeholder(tf.float32, [6, 4], "x")
    with tf.variable_scope("net", use_resource=use_resource):
        if sparse:
            table = tf.get_variable("table", [20, 4], initializer=tf.initializers.ones())
            x = tf.nn.embedding_lookup(table, x)
        w = tf.get_variable("w", [4, 3])
        b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.constant([0, 1, 2, 0, 1, 2]), logits=tf.matmul(tf.tanh(x), w) + b
    )
    loss = tf.reduce_mean(losses, name="loss")
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies([optimizer.minimize(loss, step)]):
        tf.identity(loss, "loss_of_step")
    feeds = {"x:0": np.array([3, 1, 3, 7, 9, 1]) if sparse else drawn(6, 4)}
    return Program(["loss:0", "loss_of_step:0"], feeds, 5, "loss:0", ("net/w", "net/b"))


for kind, make in {
    "gradient_descent": lambda tf: tf.train.GradientDescentOptimizer(0.3),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda tf: tf.train.AdamOptimizer(0.05),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01
    ),
    "rms_prop": lambda tf: tf.train.RMSPropOptimizer(0.05, momentum=0.5, centered=True),
    "proximal": lambda tf: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
}.items():
    for where in ("references", "resources", "sparse"):
        PROGRAMS[f"{kind}_{where}"] = lambda tf, make=make, where=where: trained(
            tf, make(tf), where != "references", where == "sparse"
        )


@program
def convolutions(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [2, 12, 12, 3], "x")
    w = tf.get_variable("filters", [3, 3, 3, 4])
    y = tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME")
    scale, offset = tf.get_variable("scale", [4]), tf.get_variable("offset", [4])
    y, mean, _ = tf.nn.fused_batch_norm(y, scale, offset)
    moving = tf.get_variable("moving", [4], trainable=False)
    tf.add_to_collection("updates", moving.assign(moving * 0.9 + mean * 0.1))
    y = tf.nn.max_pool(tf.nn.relu(y), 2, 2, "VALID")
    loss = tf.reduce_sum(tf.square(y), name="loss")
    with tf.control_dependencies(tf.get_collection("updates")):
        train = tf.train.GradientDescentOptimizer(0.001).minimize(loss, name="train")
    with tf.control_dependencies([train]):
        tf.identity(moving, "moved")
    by = ("x:0", "filters", "scale")
    return Program(["loss:0", "train", "moved:0"], {"x:0": drawn(2, 12, 12, 3)}, 3, "loss:0", by)


def cell_of(tf: Any) -> Any:
    from tests.record_tensorflow_files import Cell

    return Cell(tf)


@program
def recurrent(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [None, None, 3], "x")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    outputs, state = tf.nn.dynamic_rnn(cell_of(tf), x, lengths, dtype=tf.float32)
    tf.reduce_sum(tf.square(outputs) + state[:, None], name="loss")
    feeds = {"x:0": drawn(2, 4, 3), "lengths:0": np.array([4, 2])}
    return Program(["loss:0"], feeds, 2, "loss:0", ("x:0", "rnn/weights"))


@program
def recurrent_training(tf: Any) -> Program:
    """With the gradients that TensorFlow has built, of which nothing is asked."""
    found = recurrent(tf)
    loss = tf.get_default_graph().get_tensor_by_name("loss:0")
    tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
    return found


def own_gradients(tf: Any, loss: Any) -> Program:
    """A training by the gradients that TensorFlow has built, and these."""
    variables = tf.trainable_variables()
    derived = tf.gradients(loss, variables)
    for place, gradient in enumerate(derived):
        tf.identity(gradient, f"gradient_{place}")
    pairs = zip(derived, variables, strict=True)
    tf.train.GradientDescentOptimizer(0.05).apply_gradients(pairs, name="train")
    return Program([loss.name, *(f"gradient_{i}:0" for i in range(len(derived))), "train"], runs=4)


@program
def loops_with_their_gradients(tf: Any) -> Program:
    """The stacks of a loop, which a branch in it and one in that push to, are read too."""
    x = tf.placeholder(tf.float32, [3, 4], "x")
    w, n = tf.get_variable("w", [4, 4]), tf.placeholder(tf.int32, [], "n")

    def body(i: Any, y: Any) -> Any:
        def other() -> Any:
            z = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.sin(y) * y, lambda: y**3)
            return tf.sigmoid(tf.matmul(z, w))

        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.tanh(tf.matmul(y, w)), other)

    _, y = tf.while_loop(lambda i, y: i < n, body, (0, x))
    found = own_gradients(tf, tf.reduce_sum(y * y, name="loss"))
    found.feeds = {"x:0": drawn(3, 4), "n:0": 5}
    return found


@program
def nested_loops_with_their_gradients(tf: Any) -> Program:
    """Stacks of stacks."""
    x, w = tf.placeholder(tf.float32, [3], "x"), tf.get_variable("w", [3])

    def outer(i: Any, total: Any) -> Any:
        _, inner = tf.while_loop(
            lambda j, t: j <= i, lambda j, t: (j + 1, tf.tanh(t * w) + x), (0, total)
        )
        return i + 1, inner * tf.sin(total)

    _, y = tf.while_loop(lambda i, t: i < 4, outer, (0, x))
    found = own_gradients(tf, tf.reduce_sum(y * y, name="loss"))
    found.feeds = {"x:0": drawn(3)}
    return found


@program
def recurrence_with_its_gradients(tf: Any) -> Program:
    """Arrays that a loop reads and writes, and their gradients."""
    x = tf.placeholder(tf.float32, [None, None, 3], "x")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    outputs, state = tf.nn.dynamic_rnn(cell_of(tf), x, lengths, dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs) + state[:, None], name="loss")
    found = own_gradients(tf, loss)
    found.feeds = {"x:0": drawn(2, 4, 3), "lengths:0": np.array([4, 2])}
    return found


@program
def arrays_with_their_gradients(tf: Any) -> Program:
    """Arrays that are read in part, twice, in pieces, and in a loop of a loop."""
    w = tf.get_variable("w", [6, 2])
    array = tf.TensorArray(tf.float32, 6, clear_after_read=False).unstack(w)
    total = tf.reduce_sum(array.gather([1, 3]) ** 2) + tf.reduce_sum(array.read(1) ** 3)
    pieces = tf.TensorArray(tf.float32, 3, infer_shape=False).split(w, [1, 2, 3])
    total += tf.reduce_sum(pieces.concat() * w) + tf.reduce_sum(array.stack() ** 2)

    def row(i: Any, total: Any) -> Any:
        made = tf.TensorArray(tf.float32, 3)
        _, made = tf.while_loop(
            lambda j, m: j < 3, lambda j, m: (j + 1, m.write(j, array.read(i + j) ** 2)), (0, made)
        )
        return i + 1, total + tf.reduce_sum(tf.sin(made.stack()))

    _, more = tf.while_loop(lambda i, t: i < 3, row, (0, 0.0))
    tf.map_fn(lambda each: each * tf.reduce_sum(each), w, name="mapped")
    mapped = tf.get_default_graph().get_tensor_by_name(
        "mapped/TensorArrayStack/TensorArrayGatherV3:0"
    )
    return own_gradients(tf, tf.add(total + more, tf.reduce_sum(mapped), name="loss"))


@program
def loops_in_loops(tf: Any) -> Program:
    n, x = tf.placeholder(tf.int32, [], "n"), tf.placeholder(tf.float32, [3], "x")

    def outer(i: Any, total: Any) -> Any:
        _, inner = tf.while_loop(
            lambda j, t: j < i, lambda j, t: (j + 1, t * 1.1 + tf.cast(j, tf.float32)), (0, total)
        )
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner, lambda: inner * x)

    _, y = tf.while_loop(lambda i, t: i < n, outer, (0, x))
    tf.reduce_sum(y, name="loss")
    return Program(["loss:0"], {"n:0": 4, "x:0": drawn(3)}, 2, "loss:0", ("x:0",))


@program
def branches_that_write(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [], "x")
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    w = tf.get_variable("w", initializer=1.0, use_resource=False)
    write = tf.cond(x > 0, lambda: v.assign_add(x).op, lambda: tf.group(v.assign(x), tf.no_op()))
    other = tf.cond(x > 0, lambda: tf.assign_add(w, x * 2), lambda: tf.assign(w, -x))
    with tf.control_dependencies([write, other]):
        tf.add(v.read_value(), w.read_value(), "both")
    tf.case([(x < 0, lambda: x * 2), (x > 1, lambda: x * 3)], lambda: x, name="chosen")
    return Program(["both:0"], {"x:0": 2.0}, 3)


@program
def arrays(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [4, 2], "x")
    array = tf.TensorArray(tf.float32, 4).unstack(x)
    out = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    _, out = tf.while_loop(
        lambda i, o: i < 4, lambda i, o: (i + 1, o.write(i, array.read(3 - i) ** 2)), (0, out)
    )
    tf.reduce_sum(out.stack() * x, name="loss")
    tf.map_fn(lambda row: row * tf.reduce_sum(row), x, name="mapped")
    tf.scan(lambda a, row: a + row, x, name="scanned")
    fetches = ["loss:0", "mapped/TensorArrayStack/TensorArrayGatherV3:0"]
    return Program(fetches, {"x:0": drawn(4, 2)}, 2, "loss:0", ("x:0",))


@program
def queues(tf: Any) -> Program:
    names = tf.train.input_producer(tf.range(6), shuffle=False, num_epochs=2)
    batch = tf.train.batch([names.dequeue() * 2], 4, name="batched")
    tf.identity(batch, "batch")
    return Program(["batch:0"], {}, 3)


@program
def queues_by_hand(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [2], "x")
    found = []
    for kind in (tf.FIFOQueue, tf.PaddingFIFOQueue):
        queue = kind(10, [tf.float32, tf.int32], [[2], []])
        with tf.control_dependencies([queue.enqueue([x, 3]), queue.enqueue_many([[x, x], [1, 2]])]):
            found += [queue.dequeue_many(2)[0], queue.size()]
    queue = tf.PriorityQueue(10, [tf.float32], [[]])
    with tf.control_dependencies([queue.enqueue_many([tf.constant([3, 1], tf.int64), x])]):
        found += queue.dequeue()
    queue = tf.RandomShuffleQueue(10, 0, [tf.float32], [[2]])
    with tf.control_dependencies([queue.enqueue([x])]):
        found.append(queue.dequeue())
    for place, tensor in enumerate(found):
        tf.identity(tensor, f"found_{place}")
    fetches = [f"found_{place}:0" for place in (0, 1, 2, 3, 4, 6)]
    return Program(fetches, {"x:0": drawn(2)}, 1)


@program
def lines_of_files(tf: Any) -> Program:
    path = Path(tempfile.mkdtemp()) / "table.csv"
    path.write_text("a,b\n1,2.5\n3,4.5\n5,6.5\n7,8.5\n")
    names = tf.train.string_input_producer([str(path)], shuffle=False)
    key, line = tf.TextLineReader(skip_header_lines=1).read(names)
    first, second = tf.decode_csv(line, [[0], [0.0]])
    batch = tf.train.batch([key, first, second], 3)
    for place, tensor in enumerate(batch):
        tf.identity(tensor, f"part_{place}")
    return Program(["part_0:0", "part_1:0", "part_2:0"], {}, 3)


@program
def records(tf: Any) -> Program:
    path = str(Path(tempfile.mkdtemp()) / "some.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(5):
            feature = {
                "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, 0.5])),
                "s": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i))),
            }
            features = tf.train.Features(feature=feature)
            writer.write(tf.train.Example(features=features).SerializeToString())
    names = tf.train.string_input_producer([path], shuffle=False)
    _, record = tf.TFRecordReader().read(names)
    kinds = {
        "n": tf.FixedLenFeature([], tf.int64),
        "x": tf.FixedLenFeature([2], tf.float32),
        "missing": tf.FixedLenFeature([1], tf.string, b"none"),
        "s": tf.VarLenFeature(tf.int64),
    }
    found = tf.parse_single_example(record, kinds)
    tf.identity(found["x"] * tf.cast(found["n"], tf.float32), "product")
    tf.identity(tf.sparse.to_dense(found["s"]), "dense")
    several = tf.parse_example(tf.stack([record, record]), kinds)
    tf.identity(several["missing"], "missing")
    return Program(["product:0", "dense:0", "missing:0"], {}, 4)


@program
def sparse_embeddings(tf: Any) -> Program:
    table = tf.get_variable("table", [10, 3])
    ids = tf.sparse_placeholder(tf.int64, [3, 4], "ids")
    y = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    z = tf.nn.safe_embedding_lookup_sparse([table], ids, combiner="sqrtn")
    tf.reduce_sum(y * y, name="loss")
    tf.identity(z, "safe")
    feeds = {
        "ids/indices:0": np.array([[0, 0], [0, 2], [2, 1]]),
        "ids/values:0": np.array([3, 4, 3]),
    }
    return Program(["loss:0", "safe:0"], feeds, 2, "loss:0", ("table",))


@program
def graph_convolution(tf: Any) -> Program:
    edges = tf.SparseTensor([[0, 1], [1, 0], [1, 2], [2, 2]], tf.constant(drawn(4)), [3, 3])
    edges = tf.sparse.softmax(tf.sparse.reorder(edges))
    x = tf.placeholder(tf.float32, [3, 4], "x")
    h = tf.nn.relu(tf.sparse_tensor_dense_matmul(edges, tf.matmul(x, tf.get_variable("w", [4, 5]))))
    both = tf.sparse_add(edges, tf.sparse.transpose(edges))
    tf.add(tf.reduce_sum(h), tf.sparse.reduce_sum(both), "loss")
    return Program(["loss:0"], {"x:0": drawn(3, 4)}, 2, "loss:0", ("x:0", "w"))


@program
def sequences(tf: Any) -> Program:
    logits = tf.placeholder(tf.float32, [5, 2, 4], "logits")
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 0], [2, 2])
    losses = tf.nn.ctc_loss(labels, logits, [5, 4])
    tf.reduce_sum(losses, name="loss")
    decoded, scores = tf.nn.ctc_beam_search_decoder(logits, [5, 4], 6, 2)
    tf.identity(decoded[1].values, "second")
    tf.identity(scores, "scores")
    [greedy], _ = tf.nn.ctc_greedy_decoder(logits, [5, 4])
    tf.identity(tf.edit_distance(tf.cast(greedy, tf.int32), labels), "distance")
    fetches = ["loss:0", "second:0", "scores:0", "distance:0"]
    return Program(fetches, {"logits:0": drawn(5, 2, 4)}, 2, "loss:0", ("logits:0",))


@program
def pictures(tf: Any) -> Program:
    x = tf.constant(RNG.randint(0, 255, (16, 12, 3)), tf.uint8)
    y = tf.image.convert_image_dtype(x, tf.float32)
    y = tf.image.adjust_contrast(tf.image.adjust_saturation(tf.image.adjust_hue(y, 0.1), 1.5), 0.7)
    y = tf.image.resize_images(y[None], [8, 9])
    y = tf.image.draw_bounding_boxes(y, tf.constant([[[0.1, 0.1, 0.8, 0.7]]]))
    y = tf.image.per_image_standardization(tf.image.flip_left_right(y[0]))[None]
    tf.identity(tf.image.crop_and_resize(y, [[0.1, 0.2, 0.7, 0.9]], [0], [4, 4]), "crops")
    boxes, scores = tf.constant(np.sort(RNG.rand(9, 4)).astype("f")), tf.constant(RNG.rand(9))
    chosen = tf.image.non_max_suppression(boxes, tf.cast(scores, tf.float32), 5, 0.3)
    tf.identity(chosen, "chosen")
    return Program(["crops:0", "chosen:0"])


@program
def functions(tf: Any) -> Program:
    """TensorFlow 1's own functions, and later ones in its graphs."""
    import tensorflow
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32)
    def early(a: Any, b: Any) -> Any:
        values, places = tf.nn.top_k(a * b, 2)
        return values, tf.cast(places, tf.float32)

    v = tf.get_variable("v", initializer=2.0, use_resource=True)

    @tensorflow.function
    def later(a: Any) -> Any:
        total = v.assign_add(1.0)
        for _ in tf.range(3):
            a = tf.cond(tf.reduce_sum(a) > 0, lambda: a * total, lambda: -a)  # noqa: B023
        return a

    x = tf.placeholder(tf.float32, [4], "x")
    first, second = early(x, x + 1)
    tf.identity(first + second, "early_ones")
    tf.reduce_sum(later(x), name="loss")
    return Program(["early_ones:0", "loss:0"], {"x:0": drawn(4)}, 3)


@program
def later_control_flow(tf: Any) -> Program:
    """Branches and loops by functions, as the last programs of TensorFlow 1 could have them."""
    tf.enable_control_flow_v2()
    try:
        x, n = tf.placeholder(tf.float32, [3], "x"), tf.placeholder(tf.int32, [], "n")
        w = tf.get_variable("w", [3, 3])

        def body(i: Any, y: Any, out: Any) -> Any:
            y = tf.cond(i % 2 > 0, lambda: tf.tanh(tf.linalg.matvec(w, y)), lambda: y + x)
            return i + 1, y, out.write(i, y)

        start = (0, x, tf.TensorArray(tf.float32, n))
        _, y, out = tf.while_loop(lambda i, *_: i < n, body, start)
        y = tf.switch_case(n - 3, [lambda: y * 2, lambda: y * x, lambda: tf.zeros([3])])
        tf.reduce_sum(y + tf.reduce_sum(out.stack(), 0), name="loss")
    finally:
        tf.disable_control_flow_v2()
    feeds = {"x:0": drawn(3), "n:0": 4}
    return Program(["loss:0"], feeds, 2, "loss:0", ("x:0", "w"))


@program
def later_recurrent_training(tf: Any) -> Program:
    """Gradients of a loop by functions, which TensorFlow has built, are read as they are."""
    tf.enable_control_flow_v2()
    try:
        x = tf.placeholder(tf.float32, [5, 3], "x")
        w = tf.get_variable("w", [3, 3])
        _, y = tf.while_loop(
            lambda i, y: i < 5,
            lambda i, y: (i + 1, tf.tanh(tf.linalg.matvec(w, y) + x[i])),
            (0, x[0]),
        )
        loss = tf.reduce_sum(y * y, name="loss")
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, name="train")
        with tf.control_dependencies([train]):
            tf.identity(w.read_value() if hasattr(w, "handle") else w.value(), "after")
    finally:
        tf.disable_control_flow_v2()
    return Program(["loss:0", "train", "after:0"], {"x:0": drawn(5, 3)}, 4, "loss:0", ("x:0", "w"))


@program
def averages_and_schedules(tf: Any) -> Program:
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [3])
    rate = tf.train.exponential_decay(0.5, step, 2, 0.7, staircase=True)
    rate = tf.minimum(rate, tf.train.piecewise_constant(step, [1, 3], [0.4, 0.2, 0.1]))
    loss = tf.reduce_sum(w**2, name="loss")
    optimizer = tf.train.GradientDescentOptimizer(rate)
    pairs = optimizer.compute_gradients(loss)
    clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
    train = optimizer.apply_gradients([(clipped[0], w)], step)
    average = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        group = tf.group(average.apply([w]), name="train")
    with tf.control_dependencies([group]):
        tf.identity(average.average(w).read_value(), "averaged")
        tf.identity(norm, "norm")
    return Program(["loss:0", "averaged:0", "norm:0"], {}, 5)


@program
def partitions(tf: Any) -> Program:
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3)):
        table = tf.get_variable("table", [10, 4])
    ids = tf.placeholder(tf.int32, [5], "ids")
    for strategy in ("div", "mod"):
        tf.nn.embedding_lookup(table, ids, partition_strategy=strategy, name=strategy)
    fetches = ["div:0", "mod:0"]
    return Program(fetches, {"ids:0": np.array([0, 9, 3, 3, 6])})


@program
def texts(tf: Any) -> Program:
    x = tf.constant(["a bc d", "  e ", "f,g"])
    tf.identity(tf.strings.split(x).values, "words")
    tf.strings.to_hash_bucket_fast(x, 100, name="hashed")
    tf.strings.regex_replace(x, "[a-c]", "_", name="replaced")
    tf.strings.length(tf.strings.join([x, x], "+"), name="lengths")
    tf.strings.to_number(tf.strings.substr(["12.5"], 0, 2), name="number")
    fetches = ["words:0", "hashed:0", "replaced:0", "lengths:0", "number:0"]
    return Program(fetches)


@program
def vocabularies(tf: Any) -> Program:
    """Tables that are filled once, by constants and by files."""
    path = Path(tempfile.mkdtemp()) / "words.tsv"
    path.write_text("the\t7\nof\t3\nzebra\t1\n")
    x = tf.placeholder(tf.string, [2, 3], "x")
    whole, number, index = (
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.lookup.TextFileIndex.LINE_NUMBER,
        0,
    )
    counts = tf.lookup.TextFileInitializer(str(path), tf.string, index, tf.int64, 1)
    tf.identity(tf.lookup.StaticHashTable(counts, -1).lookup(x), "counts")
    back = tf.lookup.TextFileInitializer(str(path), tf.int64, number, tf.string, whole)
    back = tf.lookup.StaticHashTable(back, "none")
    tf.identity(back.lookup(tf.constant([2, 0, 5], tf.int64)), "lines")
    tf.identity(back.size(), "size")
    pairs = tf.lookup.KeyValueTensorInitializer(["b", "a"], tf.constant([1.5, 2.5]))
    table = tf.lookup.StaticHashTable(pairs, 0.5)

    def body(i: Any, total: Any) -> Any:
        return i + 1, tf.cond(i > 0, lambda: total + table.lookup(x[i]), lambda: total)

    _, total = tf.while_loop(lambda i, t: i < 2, body, (0, tf.zeros([3])))
    tf.identity(total, "total")
    ids = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(str(path), tf.string, index, tf.int64, number), 4
    )
    tf.identity(ids.lookup(x), "ids")
    feeds = {"x:0": np.array([["of", "b", "the"], ["a", "b", "c"]], object)}
    return Program(["counts:0", "lines:0", "size:0", "total:0", "ids:0"], feeds)


@program
def matrices(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [3, 3], "x")
    a = tf.matmul(x, x, transpose_b=True) + 3.0 * tf.eye(3)
    y = tf.cholesky_solve(tf.cholesky(a), x) + tf.matrix_inverse(a)
    y += tf.matrix_triangular_solve(tf.linalg.band_part(a, -1, 0), x)
    e, _ = tf.linalg.eigh(a)
    loss = tf.reduce_sum(y) + tf.linalg.logdet(a) + tf.reduce_sum(e)
    loss += tf.reduce_sum(tf.linalg.svd(x, compute_uv=False)) + tf.einsum("ij,kj->", x, a)
    tf.identity(loss, "loss")
    tf.spectral.rfft(tf.reshape(x, [9]), name="spectrum")
    tf.signal.inverse_stft(tf.signal.stft(tf.tile(x[0], [8]), 8, 4), 8, 4, name="sound")
    return Program(["loss:0", "spectrum:0"], {"x:0": drawn(3, 3)}, 2, "loss:0", ("x:0",))


@program
def segments(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [6, 2], "x")
    ids = tf.constant([0, 0, 1, 2, 2, 2])
    y = tf.segment_mean(x, ids) + tf.unsorted_segment_max(x, ids, 3)
    y += tf.math.unsorted_segment_sum(tf.gather(x, [5, 1, 1]), [0, 1, 1], 3)
    parts = tf.dynamic_partition(x, [0, 1, 0, 1, 1, 0], 2)
    back = tf.dynamic_stitch([[0, 2, 5], [1, 3, 4]], parts)
    y = tf.reduce_sum(y * y) + tf.reduce_sum(tf.scatter_nd([[1], [3]], x[:2], [4, 2]) ** 2)
    tf.add(y, tf.reduce_sum(tf.cumsum(back) * x), "loss")
    tf.boolean_mask(x, x[:, 0] > 0, name="kept")
    values, _ = tf.nn.top_k(x[:, 0], 3)
    tf.identity(values, "values")
    return Program(["loss:0", "values:0"], {"x:0": drawn(6, 2)}, 2, "loss:0", ("x:0",))


@program
def metrics(tf: Any) -> Program:
    labels, found = tf.placeholder(tf.int64, [4], "l"), tf.placeholder(tf.int64, [4], "p")
    tf.metrics.accuracy(labels, found, name="accuracy")
    tf.metrics.mean(tf.cast(labels, tf.float32), name="mean")
    tf.metrics.auc(tf.cast(labels > 0, tf.int32), tf.sigmoid(tf.cast(found, tf.float32)), name="a")
    fetches = ["accuracy/update_op:0", "mean/update_op:0", "a/update_op:0"]
    feeds = {"l:0": np.array([0, 1, 2, 1]), "p:0": np.array([0, 2, 2, 1])}
    return Program(fetches, feeds, 3)


@program
def data_sets(tf: Any) -> Program:
    """What gives the input is replaced."""
    data = tf.data.Dataset.from_tensor_slices(drawn(4, 3)).batch(4)
    x = tf.data.make_one_shot_iterator(data).get_next()
    tf.reduce_sum(tf.tanh(x), name="loss")
    return Program(["loss:0"], given={"IteratorGetNext:0": drawn(4, 3)})


@program
def checks_and_prints(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [2], "x")
    with tf.control_dependencies([tf.assert_positive(x), tf.Assert(x[0] > 0, [x])]):
        y = tf.check_numerics(tf.log(x), "a log")
    tf.identity(tf.verify_tensor_all_finite(y, "finite"), "checked")
    return Program(["checked:0"], {"x:0": np.array([1.5, 2.0], np.float32)})


@program
def volumes(tf: Any) -> Program:
    x = tf.placeholder(tf.float32, [1, 6, 6, 6, 2], "x")
    w = tf.get_variable("w", [2, 2, 2, 2, 3])
    y = tf.nn.max_pool3d(tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME"), 2, 2, "VALID")
    y = tf.nn.avg_pool3d(y, 2, 1, "VALID")
    loss = tf.reduce_sum(y * y, name="loss")
    tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
    return Program(["loss:0", "train"], {"x:0": drawn(1, 6, 6, 6, 2)}, 3, "loss:0", ("x:0", "w"))


# Saved models of TensorFlow 2


def keras(*shape: int, whole: int = 0) -> Callable[[Any], Any]:
    """A saved model of Keras's layers, which takes arrays of a shape."""

    def register(layers: Callable[[Any, Any], list[Any]]) -> Any:
        def build(tf: Any) -> tuple[Any, list[Any]]:
            k = tf.keras
            net = k.Sequential([k.Input(shape), *layers(k, k.layers)])
            for weights in net.weights:
                weights.assign(RNG.rand(*weights.shape) * 0.5)
            x = RNG.randint(0, whole, (2, *shape)) if whole else drawn(2, *shape)
            return net, [{net.inputs[0].name: x.astype(np.float32)}]

        MODELS[layers.__name__] = build
        return layers

    return register


@keras(5)
def keras_dense(k: Any, layer: Any) -> list[Any]:
    return [
        layer.Dense(4, "relu"),
        layer.Dropout(0.5),
        layer.BatchNormalization(),
        layer.Dense(3, "softmax"),
    ]


@keras(16, 16, 3)
def keras_images(k: Any, layer: Any) -> list[Any]:
    return [
        layer.Conv2D(4, 3, padding="same", activation="relu"),
        layer.BatchNormalization(),
        layer.MaxPooling2D(),
        layer.DepthwiseConv2D(3),
        layer.SeparableConv2D(5, 3),
        layer.Conv2DTranspose(3, 3, 2),
        layer.UpSampling2D(interpolation="bilinear"),
        layer.GlobalAveragePooling2D(),
        layer.Dense(3),
    ]


@keras(7, 3)
def keras_recurrent(k: Any, layer: Any) -> list[Any]:
    return [layer.LSTM(4, return_sequences=True), layer.GRU(5), layer.Dense(2)]


@keras(7, whole=20)
def keras_bidirectional(k: Any, layer: Any) -> list[Any]:
    return [layer.Embedding(20, 6, mask_zero=True), layer.Bidirectional(layer.LSTM(4))]


@keras(12, 4)
def keras_sequences(k: Any, layer: Any) -> list[Any]:
    return [
        layer.Conv1D(5, 3, dilation_rate=2),
        layer.Conv1DTranspose(3, 4, strides=2),
        layer.LayerNormalization(),
        layer.Flatten(),
        layer.Dense(3, "gelu"),
    ]


@model
def keras_attention(tf: Any) -> tuple[Any, list[Any]]:
    k = tf.keras
    x = k.Input((6, 8))
    y = k.layers.LayerNormalization()(k.layers.MultiHeadAttention(2, 4)(x, x) + x)
    net = k.Model(x, k.layers.Dense(2)(y))
    return net, [{net.inputs[0].name: drawn(2, 6, 8)}]


def module(tf: Any, function: Any, *specs: Any, **variables: Any) -> Any:
    """A module with a function of it and some tensors, and variables."""
    found = tf.Module()
    for name, value in variables.items():
        setattr(found, name, tf.Variable(value))
    signature = [tf.TensorSpec(shape, dtype, name) for name, shape, dtype in specs]
    found.serve = tf.function(lambda *xs: function(found, *xs), input_signature=signature)
    return found


@model
def module_branches(tf: Any) -> tuple[Any, list[Any]]:
    def serve(m: Any, x: Any) -> Any:
        y = tf.matmul(x, m.w)
        return {"y": tf.cond(tf.reduce_sum(y) > 0, lambda: y * 2.0, lambda: y - m.w[0])}

    w = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    found = module(tf, serve, ("x", [None, 2], tf.float32), w=w)
    return found, [{"x": sign * np.ones((3, 2), np.float32)} for sign in (1, -1)]


@model
def module_loops(tf: Any) -> tuple[Any, list[Any]]:
    def serve(m: Any, x: Any, n: Any) -> Any:
        def body(i: Any, x: Any, out: Any) -> Any:
            x = tf.tanh(tf.matmul(x, m.w)) + tf.cast(i, tf.float32)
            return i + 1, x, out.write(i, tf.reduce_sum(x))

        start = (0, x, tf.TensorArray(tf.float32, n))
        _, x, out = tf.while_loop(lambda i, *_: i < n, body, start)
        return {"x": x, "sums": out.stack()}

    specs = ("x", [None, 2], tf.float32), ("n", [], tf.int32)
    found = module(tf, serve, *specs, w=np.eye(2, dtype=np.float32) * 0.5)
    return found, [{"x": drawn(3, 2), "n": np.int32(n)} for n in (4, 0)]


@model
def module_state(tf: Any) -> tuple[Any, list[Any]]:
    def add(m: Any, x: Any) -> Any:
        m.n.assign_add(x)
        return m.n * m.w

    def serve(m: Any, x: Any) -> Any:
        inner = tf.function(add)
        first = inner(m, x)
        second = inner(m, x + 1.0)
        return {"first": first, "second": second, "n": m.n.read_value()}

    found = module(tf, serve, ("x", [], tf.float32), n=np.float32(0), w=np.float32(2))
    return found, [{"x": np.float32(3)}, {"x": np.float32(1)}]


@model
def module_cases(tf: Any) -> tuple[Any, list[Any]]:
    def serve(m: Any, i: Any, x: Any) -> Any:
        chosen = tf.switch_case(i, [lambda: x + 1.0, lambda: x * 3.0, lambda: tf.constant(7.0)])
        return {"y": chosen * m.w}

    specs = ("i", [], tf.int32), ("x", [], tf.float32)
    found = module(tf, serve, *specs, w=np.float32(2))
    return found, [{"i": np.int32(i), "x": np.float32(5)} for i in (0, 1, 2, -1, 9)]


@model
def module_vocabulary(tf: Any) -> tuple[Any, list[Any]]:
    path = Path(tempfile.mkdtemp()) / "words.txt"
    path.write_text("the\nof\nzebra\n")
    lookup = tf.lookup
    whole, number = lookup.TextFileIndex.WHOLE_LINE, lookup.TextFileIndex.LINE_NUMBER
    given = lookup.TextFileInitializer(str(path), tf.string, whole, tf.int64, number)

    def serve(m: Any, x: Any) -> Any:
        return {"ids": m.words.lookup(x), "rows": tf.gather(m.w, m.few.lookup(x))}

    found = module(tf, serve, ("x", [None], tf.string), w=np.float32([[1, 2], [3, 4]]))
    found.words = lookup.StaticVocabularyTable(given, 3)
    pairs = lookup.KeyValueTensorInitializer(["of", "a"], tf.constant([1, 0], tf.int64))
    found.few = lookup.StaticHashTable(pairs, 0)
    return found, [{"x": np.array(words, object)} for words in (["of", "the", "x"], ["a"])]


@model
def keras_words(tf: Any) -> tuple[Any, list[Any]]:
    k = tf.keras
    x = k.Input((2,), dtype="string")
    ids = k.layers.StringLookup(vocabulary=["the", "of", "zebra"], num_oov_indices=2)(x)
    net = k.Model(x, k.layers.Embedding(6, 3)(ids))
    return net, [{net.inputs[0].name: np.array([["of", "cat"], ["zebra", "the"]], object)}]


def agree(found: Any, wanted: Any, what: str) -> None:
    if wanted is None:
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"{what}: {found.dtype} is not {wanted.dtype}"
    if wanted.dtype.kind in "OS":
        assert np.array_equal(found, wanted), what
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5, err_msg=what)


def in_graph(model: Any, name: str) -> Any:
    return model.variables[name] if name in model.variables else model[name]


def run_program(tf: Any, build: Callable[[Any], Program]) -> str:
    """Compare a program of TensorFlow 1."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.set_random_seed(3)
        asked = build(tf)
        message = tf.train.export_meta_graph()
        variables = [*tf.global_variables(), *tf.local_variables()]
        named = {v.op.name: v for v in variables}
        gradients = []
        if asked.loss:
            loss = graph.get_tensor_by_name(asked.loss)
            by = [named.get(n) if n in named else graph.get_tensor_by_name(n) for n in asked.by]
            gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, by)]
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        start = {v.op.name: value for v, value in zip(variables, sess.run(variables), strict=True)}
        sess.run(tf.tables_initializer())
        tf.train.start_queue_runners(sess, tf.train.Coordinator())
        feeds = {**asked.feeds, **asked.given}
        derivatives = sess.run(gradients, feeds)
        for name, value in start.items():
            named[name].load(value, sess)
        wanted = [sess.run(asked.fetches, feeds) for _ in range(asked.runs)]
    mine = fb.Graph()
    with mine.as_default(), fb.Session(graph=mine) as sess:
        given = {name: fb.placeholder(np.asarray(v).dtype) for name, v in asked.given.items()}
        model = fb.tensorflow.load(message, outputs=asked.fetches, input_map=given)
        fed = {model[k]: v for k, v in asked.feeds.items() if k in model.elements}
        fed |= {given[k]: v for k, v in asked.given.items()}

        def begin() -> None:
            for name, variable in model.variables.items():
                sess.run(fb.assign(variable, start[name]))

        begin()
        for run, values in enumerate(wanted):
            found = sess.run([in_graph(model, name) for name in asked.fetches], fed)
            for name, value, right in zip(asked.fetches, found, values, strict=True):
                agree(value, right, f"{name} of run {run}")
        if asked.loss:
            begin()
            derived = fb.gradients(model[asked.loss], [in_graph(model, b) for b in asked.by])
            derived = [fb.convert_to_tensor(g) for g in derived]
            for name, value, right in zip(
                asked.by, sess.run(derived, fed), derivatives, strict=True
            ):
                agree(value, right, f"the gradient by {name}")
    return "values and gradients" if asked.loss else "values"


def run_model(tf: Any, build: Callable[[Any], Any]) -> str:
    """Compare a saved model of TensorFlow 2."""
    found, cases = build(tf)
    folder = tempfile.mkdtemp()
    if isinstance(found, tf.keras.Model):
        found.export(folder, verbose=False)
    else:
        tf.saved_model.save(found, folder, signatures=found.serve)
    loaded = tf.saved_model.load(folder)  # Its functions refer to its variables weakly.
    serve = loaded.signatures["serving_default"]
    mine = fb.Graph()
    with mine.as_default(), fb.Session(graph=mine) as sess:
        model = fb.tensorflow.load(folder)
        if model.variables:
            model.restore(sess)
        signature = model.signatures["serving_default"]
        for case in [*cases, *cases]:
            wanted = serve(**{key: tf.constant(value) for key, value in case.items()})
            values = sess.run(signature.outputs, {signature.inputs[k]: v for k, v in case.items()})
            for key, right in wanted.items():
                agree(values[key], right.numpy(), key)
        # A gradient by the first input, where it has one.
        key = next(iter(cases[0]))
        if cases[0][key].dtype != np.float32:
            return "values"
        x = tf.constant(cases[0][key])
        fixed = {k: tf.constant(v) for k, v in cases[0].items()}
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = sum(tf.reduce_sum(y) for y in serve(**{**fixed, key: x}).values())
        right = tape.gradient(total, x)
        if right is None:
            return "values"
        sums = [fb.reduce_sum(y) for y in signature.outputs.values()]
        [derived] = fb.gradients(fb.add_n(sums), [signature.inputs[key]])
        feeds = {signature.inputs[k]: v for k, v in cases[0].items()}
        agree(sess.run(derived, feeds), right.numpy(), "the gradient")
    return "values and gradients"


def outputs_are_named() -> int:
    """How many types that are read name their outputs otherwise than bodies of functions expect."""
    from tensorflow.python.framework import op_def_registry

    wrong = 0
    for type in sorted(OPERATORS.keys() | BY_REFERENCE.keys()):
        found = op_def_registry.get(type)
        names = [] if found is None else [each.name for each in found.output_arg]
        expected = [each.partition("*")[0] for each in _OUTPUTS.get(type, ())]
        # The last ones, which are ragged, are not read.
        if len(names) > 1 and names[: len(expected) or None] != expected:
            wrong += 1
            print(f"{type} names its outputs {names}, and not {expected}")
    return wrong


def main(names: list[str]) -> int:
    import tensorflow

    failed = outputs_are_named()
    later = [name for name in MODELS if not names or name in names]
    early = [name for name in PROGRAMS if not names or name in names]
    for tf, run, chosen, built in (
        (tensorflow, run_model, later, MODELS),
        (tensorflow.compat.v1, run_program, early, PROGRAMS),
    ):
        if run is run_program:
            tf.disable_v2_behavior()
        for name in chosen:
            try:
                print(f"{name}: {run(tf, built[name])}")
            except Exception as error:
                failed += 1
                last = traceback.extract_tb(error.__traceback__)[-1]
                text = " ".join(str(error).split())[:400]
                print(f"{name}: WRONG {type(error).__name__} {text} ({last.name})")
    print(f"{len(later) + len(early) - failed} right, {failed} wrong")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
