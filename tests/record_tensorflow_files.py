"""Records files of TensorFlow 1, and what their graphs compute: `tests/tensorflow/data`.

    benchmarks/.peers/bin/python -m tests.record_tensorflow_files [model ...]

It runs where TensorFlow is installed, as `python -m benchmarks peers` does it. The tests need none:
they read these files, and compare with the recorded values. Each model is a graph, and a file
`<model>.npz` of what was fed ("in/x:0") and what came out ("out/y:0").
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

DATA = Path(__file__).parent / "tensorflow" / "data"
MODELS: dict[str, Callable[[Any], None]] = {}


def model(build: Callable[[Any], None]) -> Callable[[Any], None]:
    MODELS[build.__name__] = build
    return build


def record(name: str, sess: Any, outputs: list[str], feeds: dict[str, Any]) -> None:
    values = sess.run(outputs, feeds)
    found = {f"in/{k}": np.asarray(v) for k, v in feeds.items()}
    found |= {f"out/{k}": np.asarray(v) for k, v in zip(outputs, values, strict=True)}
    np.savez_compressed(DATA / f"{name}.npz", **found)


def without_ops(message: Any) -> bytes:
    """A MetaGraph without the definitions of the operations that it uses, which are most of it."""
    message.meta_info_def.ClearField("stripped_op_list")
    return message.SerializeToString()


def frozen(tf: Any, name: str, sess: Any, outputs: list[str], feeds: dict[str, Any]) -> None:
    """A graph whose variables are constants, and what it computes."""
    nodes = [output.partition(":")[0] for output in outputs]
    graph = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, nodes)
    (DATA / f"{name}.pb").write_bytes(graph.SerializeToString())
    record(name, sess, outputs, feeds)


def drawn(*shape: int) -> np.ndarray:
    return np.random.RandomState(7).randn(*shape).astype(np.float32)


@model
def mlp(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("u", [6, 8])) + 0.1, name="hidden")
    w = tf.get_variable("w", [8, 3], initializer=tf.glorot_uniform_initializer(seed=3))
    b = tf.get_variable("b", initializer=[0.5, -0.5, 0.0])
    scores = tf.nn.bias_add(tf.matmul(hidden, w), b, name="scores")
    tf.nn.softmax(scores, name="probabilities")
    tf.argmax(scores, 1, name="choice")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        frozen(tf, "mlp", sess, ["probabilities:0", "choice:0"], {"x:0": drawn(4, 6)})


@model
def images(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 12, 12, 3], name="x")
    filters = tf.get_variable("filters", [3, 3, 3, 4], use_resource=True)
    y = tf.nn.conv2d(x, filters, [1, 2, 2, 1], "SAME")
    scale = tf.get_variable("scale", initializer=[1.0, 0.5, 2.0, 1.5])
    offset = tf.get_variable("offset", initializer=[0.1, 0.2, -0.3, 0.0])
    moments = tf.constant([0.1, -0.1, 0.2, 0.0]), tf.constant([1.0, 0.5, 2.0, 0.7])
    y, *_ = tf.nn.fused_batch_norm(y, scale, offset, *moments, is_training=False)
    y = tf.nn.relu6(tf.nn.lrn(y, 2, 1.0, 0.5, 0.75))
    depthwise = tf.get_variable("depthwise", [3, 3, 4, 2])
    y = tf.nn.depthwise_conv2d(y, depthwise, [1, 1, 1, 1], "VALID")
    y = tf.nn.max_pool(tf.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]]), 2, 2, "SAME")
    y = tf.nn.leaky_relu(tf.nn.avg_pool(y, 2, 1, "VALID"))
    large = tf.image.resize_bilinear(y, [5, 7], align_corners=True, name="large")
    part = large[:, ::-1, 1:-1, tf.newaxis, ..., 0]
    tf.concat([tf.reduce_mean(y, [1, 2]), tf.reduce_max(part, [1, 2])[:, 0, None]], -1, "found")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        frozen(tf, "images", sess, ["found:0", "large:0"], {"x:0": drawn(2, 12, 12, 3)})


class Cell:
    """A recurrent cell of five units: the classes of TensorFlow 1 are gone from today's."""

    state_size = output_size = 5

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def zero_state(self, batch: Any, dtype: Any) -> Any:
        return self.tf.zeros([batch, 5], dtype)

    def __call__(self, x: Any, state: Any, scope: Any = None) -> Any:
        weights = self.tf.get_variable("weights", [8, 10])
        gate, new = self.tf.split(self.tf.matmul(self.tf.concat([x, state], 1), weights), 2, 1)
        gate = self.tf.sigmoid(gate)
        state = gate * state + (1 - gate) * self.tf.tanh(new)
        return state, state


@model
def recurrent(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, None, 3], name="x")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    outputs, state = tf.nn.dynamic_rnn(Cell(tf), x, lengths, dtype=tf.float32)
    tf.identity(outputs, name="outputs")
    tf.identity(state, name="state")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = {"x:0": drawn(2, 4, 3), "lengths:0": np.array([4, 2], np.int32)}
        frozen(tf, "recurrent", sess, ["outputs:0", "state:0"], feeds)


@model
def flow(tf: Any) -> None:
    """Branches and loops in each other, a loop whose variable grows, and an array of tensors."""
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [3], name="x")
    chosen = tf.cond(n > 2, lambda: x * 2.0, lambda: tf.stop_gradient(x) - 1.0)

    def outer(i: Any, total: Any) -> Any:
        _, inner = tf.while_loop(
            lambda j, t: j < i, lambda j, t: (j + 1, t + tf.cast(j, tf.float32)), (0, total)
        )
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner, lambda: inner * chosen)

    _, nested = tf.while_loop(lambda i, t: i < n, outer, (0, chosen))
    tf.identity(nested, name="nested")
    _, grown = tf.while_loop(
        lambda i, t: i < n,
        lambda i, t: (i + 1, tf.concat([t, [tf.cast(i, tf.float32)]], 0)),
        (0, tf.zeros([1])),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )
    tf.identity(grown, name="grown")
    squares = tf.TensorArray(tf.int32, n)
    _, squares = tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, i * i)), (0, squares)
    )
    tf.identity(squares.stack(), name="squares")
    with tf.control_dependencies([tf.Assert(n > 0, [n])]):
        tf.identity(n, name="checked")
    with tf.Session() as sess:
        outputs = ["nested:0", "grown:0", "squares:0", "checked:0"]
        frozen(tf, "flow", sess, outputs, {"n:0": 4, "x:0": drawn(3)})


@model
def gradients(tf: Any) -> None:
    """The gradients that TensorFlow makes of loops: stacks, stacks of stacks, changing arrays."""
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [3], name="x")
    rows = tf.placeholder(tf.float32, [4, 3], name="rows")
    given = tf.TensorArray(tf.float32, 4).unstack(rows)

    def outer(i: Any, total: Any, made: Any) -> Any:
        _, inner = tf.while_loop(
            lambda j, t: j < i, lambda j, t: (j + 1, tf.sin(t) * x), (0, total + given.read(i))
        )
        inner = tf.cond(tf.equal(i % 2, 0), lambda: inner * inner, lambda: tf.tanh(inner))
        return i + 1, inner, made.write(i, inner)

    start = (0, x, tf.TensorArray(tf.float32, 4, element_shape=[3]))
    _, last, made = tf.while_loop(lambda i, *_: i < n, outer, start)
    # Of what is not gathered the gradient is zero.
    loss = tf.reduce_sum(tf.square(made.gather([0, 2]))) + tf.reduce_sum(last)
    pieces = tf.TensorArray(tf.float32, 2, infer_shape=False).split(rows, [1, 3])
    loss += tf.reduce_sum(pieces.concat() ** 3) * tf.cast(pieces.size(), tf.float32)
    tf.identity(loss, name="loss")
    for name, gradient in zip(("dx", "drows"), tf.gradients(loss, [x, rows]), strict=True):
        tf.identity(gradient, name=name)
    with tf.Session() as sess:
        message = sess.graph.as_graph_def().SerializeToString()
        (DATA / "gradients.pb.gz").write_bytes(gzip.compress(message, mtime=0))
        feeds = {"n:0": np.int32(4), "x:0": drawn(3), "rows:0": drawn(4, 3)}
        record("gradients", sess, ["loss:0", "dx:0", "drows:0"], feeds)


@model
def functions(tf: Any) -> None:
    """Functions that call one another, and branches and loops by functions."""
    import tensorflow

    @tensorflow.function
    def largest(a: Any) -> Any:
        values, places = tf.nn.top_k(a, 2)
        return values * 2.0, places

    def body(i: Any, a: Any, out: Any) -> Any:
        a = tf.cond(i % 2 > 0, lambda: tf.tanh(a), lambda: a + x)
        return i + 1, a, out.write(i, tf.reduce_sum(a))

    tf.enable_control_flow_v2()
    x = tf.placeholder(tf.float32, [4], name="x")
    n = tf.placeholder(tf.int32, [], name="n")
    values, places = largest(x)
    tf.identity(values, name="values")
    tf.identity(places, name="places")
    _, y, out = tf.while_loop(lambda i, *_: i < n, body, (0, x, tf.TensorArray(tf.float32, n)))
    tf.identity(out.stack(), name="sums")
    branches = [lambda: y * 2.0, lambda: tf.nn.relu(y), lambda: tf.zeros([4])]
    tf.identity(tf.switch_case(n - 3, branches), name="chosen")
    tf.disable_control_flow_v2()
    with tf.Session() as sess:
        message = sess.graph.as_graph_def()
        (DATA / "functions.pb").write_bytes(message.SerializeToString())
        outputs = ["values:0", "places:0", "sums:0", "chosen:0"]
        record("functions", sess, outputs, {"x:0": drawn(4), "n:0": np.int32(4)})


# What steps of optimizers take beside variables and gradients.
SETTINGS = {
    "alpha": 0.1, "beta": 0.7, "beta1": 0.9, "beta1_power": 0.81, "beta2": 0.99,
    "beta2_power": 0.98, "epsilon": 1e-3, "l1": 0.02, "l2": 0.03, "l2_shrinkage": 0.01,
    "logbase": 1.0, "lr": 0.1, "lr_power": -0.5, "momentum": 0.8, "rho": 0.9, "sign_decay": 0.5,
}  # fmt: skip
STEPS = [
    "AdaMax", "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "Adam", "AdamWithAmsgrad", "AddSign",
    "CenteredRMSProp", "Ftrl", "FtrlV2", "GradientDescent", "KerasMomentum", "Momentum",
    "PowerSign", "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
]  # fmt: skip


@model
def steps(tf: Any) -> None:
    """Two steps of every optimizer, dense and sparse, with what they may be told to do."""
    import tensorflow
    from tensorflow.python.framework import op_def_registry

    flags = ({}, {"use_nesterov": True}, {"update_slots": False}, {"multiply_linear_by_lr": True})
    rng, made, variables = np.random.RandomState(1), [], []
    for step in STEPS:
        for type in (f"ResourceApply{step}", f"ResourceSparseApply{step}"):
            found = op_def_registry.get(type)
            names = [] if found is None else [each.name for each in found.attr]
            for flag in (each for each in flags if found is not None and {*each} <= {*names}):
                scope = "_".join((type, *flag))
                given = {}
                for argument in found.input_arg:
                    name = argument.name
                    if argument.type == tensorflow.resource.as_datatype_enum:
                        start = rng.rand(4, 2).astype(np.float32)
                        start -= 0.5 if name in ("var", "linear", "gradient_accumulator") else -0.1
                        variable = tf.get_variable(
                            f"{scope}/{name}", initializer=start, use_resource=True
                        )
                        variables.append(variable)
                        given[name] = variable.handle
                    elif name == "indices":
                        given[name] = tf.constant([3, 0], tf.int32)
                    elif name in ("grad", "delta"):
                        rows = 2 if "Sparse" in type else 4
                        given[name] = tf.constant((rng.rand(rows, 2) - 0.4).astype(np.float32))
                    elif name == "global_step":
                        given[name] = tf.constant(4, tf.int64)
                    else:
                        given[name] = tf.constant(np.float32(SETTINGS[name]))
                make = getattr(tensorflow.raw_ops, type)
                made.append(make(**given, **flag, name=f"{scope}/step"))
    tf.group(*made, name="all")
    message = without_ops(tf.train.export_meta_graph(strip_default_attrs=True))
    (DATA / "steps.meta.gz").write_bytes(gzip.compress(message, mtime=0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            sess.run("all")
        values = sess.run(variables)
    after = {v.op.name: value for v, value in zip(variables, values, strict=True)}
    np.savez_compressed(DATA / "steps.npz", **after)


def later(tf: Any) -> None:
    """A saved model of TensorFlow 2, whose graph is functions."""
    module = tf.Module()
    module.w = tf.Variable(drawn(2, 2), name="w")
    module.count = tf.Variable(0, name="count")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def serve(x: Any) -> Any:
        module.count.assign_add(1)
        for _ in tf.range(3):
            x = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, module.w), lambda: x + 1.0)  # noqa: B023
        return {"y": x, "count": module.count.read_value()}

    module.serve = serve
    save_small(tf, module, "later")
    (DATA / "later" / "assets").rmdir()
    x = drawn(3, 2)
    np.savez_compressed(DATA / "later.npz", x=x, y=serve(tf.constant(x))["y"].numpy())


def vocabulary(tf: Any) -> None:
    """A saved model of TensorFlow 2 with tables, one of which is filled by a file beside it."""
    look = tf.lookup
    file = Path(tempfile.mkdtemp()) / "words.txt"
    file.write_text("the\nof\nzebra\n")
    lines = look.TextFileInitializer(
        str(file),
        tf.string,
        look.TextFileIndex.WHOLE_LINE,
        tf.int64,
        look.TextFileIndex.LINE_NUMBER,
    )
    pairs = look.KeyValueTensorInitializer(tf.constant([7, 3], tf.int64), ["seven", "three"])
    module = tf.Module()
    module.w = tf.Variable(drawn(6, 2), name="w")
    module.ids = look.StaticVocabularyTable(lines, 3)
    module.names = look.StaticHashTable(pairs, "?")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "x")])
    def serve(x: Any) -> Any:
        ids = module.ids.lookup(x)
        names = module.names.lookup(ids + 3)
        return {"rows": tf.gather(module.w, ids), "names": names, "size": module.ids.size()}

    module.serve = serve
    save_small(tf, module, "vocabulary")
    words = np.array(["of", "cat", "the", "dog", ""], object)
    found = {key: value.numpy() for key, value in serve(tf.constant(words)).items()}
    strings = {"words": words.astype(str), "names": found.pop("names").astype(str)}
    np.savez_compressed(DATA / "vocabulary.npz", **strings, **found)


def adapted(tf: Any) -> None:
    """A saved model of TensorFlow 2 with a table that its checkpoint fills."""
    module = tf.Module()
    module.ids = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    module.ids.insert(tf.constant(["to", "be"]), tf.constant([3, 4], tf.int64))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "x")])
    def serve(x: Any) -> Any:
        return {"ids": module.ids.lookup(x)}

    module.serve = serve
    save_small(tf, module, "adapted")
    (DATA / "adapted" / "assets").rmdir()


def save_small(tf: Any, module: Any, name: str) -> None:
    """A saved model without what nobody reads here."""
    from tensorflow.core.protobuf import saved_model_pb2

    folder = DATA / name
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    (folder / "fingerprint.pb").unlink()
    file = folder / "saved_model.pb"
    message = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    message.meta_graphs[0].ClearField("object_graph_def")
    without_ops(message.meta_graphs[0])
    file.write_bytes(message.SerializeToString())


def trained(tf: Any, name: str, use_resource: bool, optimizer: Any) -> None:
    """A model with its optimizer's step, its checkpoint, and the losses of five more steps."""
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    with tf.variable_scope("net", use_resource=use_resource):
        partitioner = tf.fixed_size_partitioner(2)
        w = tf.get_variable("w", [4, 6], partitioner=None if use_resource else partitioner)
        b = tf.get_variable("b", [6], initializer=tf.zeros_initializer())
        v = tf.get_variable("v", [6, 3])
        count = tf.get_variable("words", initializer=tf.constant(["a", "bc"]), trainable=False)
    step = tf.train.get_or_create_global_step()
    hidden = tf.tanh(tf.matmul(x, tf.convert_to_tensor(w)) + b)
    logits = tf.matmul(hidden, v, name="logits")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    tf.summary.scalar("loss_summary", loss)
    tf.summary.merge_all()
    train = optimizer.minimize(loss, step, name="train")
    tf.identity(count, name="spelt")
    # The one names variables as they are, the other otherwise.
    renamed = {f"saved/{v.op.name}": v for v in tf.global_variables()}
    saver = tf.train.Saver(renamed if use_resource else None)
    feeds = {"x:0": drawn(8, 4), "y:0": np.arange(8) % 3}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train, feeds)
        saver.save(sess, str(DATA / name), write_state=False, write_meta_graph=False)
        meta = tf.train.export_meta_graph(
            saver_def=saver.as_saver_def(), strip_default_attrs=use_resource
        )
        (DATA / f"{name}.meta").write_bytes(without_ops(meta))
        record(name, sess, ["logits:0", "loss:0"], feeds)
        later = [sess.run([loss, train], feeds)[0] for _ in range(5)]
        np.save(DATA / f"{name}_losses.npy", np.array(later))


@model
def references(tf: Any) -> None:
    trained(tf, "references", False, tf.train.MomentumOptimizer(0.1, 0.9))


@model
def resources(tf: Any) -> None:
    trained(tf, "resources", True, tf.train.AdamOptimizer(0.05))


@model
def saved(tf: Any) -> None:
    """A saved model, as text, and its variables."""
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2

    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=[[1.0, -1.0], [0.5, 2.0]], use_resource=True)
    y = tf.matmul(x, w, name="y")
    folder = DATA / "saved"
    for file in folder.rglob("*"):
        if file.is_file():
            file.unlink()
    for each in (folder / "assets", folder / "variables", folder):
        if each.exists():
            each.rmdir()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(folder))
        signature = tf.saved_model.predict_signature_def({"points": x}, {"turned": y})
        builder.add_meta_graph_and_variables(sess, ["serve"], {"serving_default": signature})
        builder.save(as_text=True)
        text = folder / "saved_model.pbtxt"
        model = text_format.Parse(text.read_text(), saved_model_pb2.SavedModel())
        without_ops(model.meta_graphs[0])
        text.write_text(text_format.MessageToString(model))
        record("saved", sess, ["y:0"], {"x:0": drawn(3, 2)})


def main(names: list[str]) -> None:
    import tensorflow

    DATA.mkdir(parents=True, exist_ok=True)
    saved = {"adapted": adapted, "later": later, "vocabulary": vocabulary}
    for name in names or saved:
        if name in saved:
            saved[name](tensorflow)
    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    for name in (name for name in names or MODELS if name in MODELS):
        with tf.Graph().as_default():
            tf.set_random_seed(11)
            MODELS[name](tf)
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
