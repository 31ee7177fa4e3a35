"""Graphs of TensorFlow 1, read and run: `tests/record_tensorflow_files.py` recorded them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.tensorflow.messages_pb2 import GraphDef, MetaGraphDef, QueueRunnerDef
from tests.need import requires

DATA = Path(__file__).parent / "data"
FILES = {
    "flow": "flow.pb",
    "functions": "functions.pb",
    "images": "images.pb",
    "mlp": "mlp.pb",
    "recurrent": "recurrent.pb",
    "references": "references.meta",
    "resources": "resources.meta",
    "saved": "saved",
}
crc = requires(distribution="google-crc32c")


def recorded(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was fed and what came out, by the names of tensors."""
    with np.load(DATA / f"{name}.npz") as file:
        values = dict(file)
    parts: dict[str, dict[str, Any]] = {"in": {}, "out": {}}
    for key in values:
        side, _, tensor = key.partition("/")
        parts[side][tensor] = values[key]
    return parts["in"], parts["out"]


def graph_def(*lines: str) -> GraphDef:
    """A graph of lines such as "y Relu x ^init"."""
    message = GraphDef()
    for line in lines:
        name, op, *inputs = line.split()
        node = message.node.add(name=name, op=op, input=inputs)
        if op in ("Placeholder", "VariableV2", "VarHandleOp"):
            node.attr["dtype"].type = 1
        if op in ("VariableV2", "VarHandleOp"):
            node.attr["shape"].shape.CopyFrom(node.attr["shape"].shape)
    return message


@crc
@pytest.mark.parametrize("name", FILES)
def test_a_graph_computes_what_it_computed_there(name: str) -> None:
    feeds, wanted = recorded(name)
    model = fb.tensorflow.load(DATA / FILES[name])
    with fb.Session() as sess:
        if model.variables:
            model.restore(sess)
        given = {model[k]: v for k, v in feeds.items()}
        # The first run goes kernel by kernel, the second as generated code.
        for _ in range(2):
            found = sess.run([model[k] for k in wanted], given)
            for value, right in zip(found, wanted.values(), strict=True):
                assert (value.dtype, value.shape) == (right.dtype, right.shape)
                np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-6)


@crc
@pytest.mark.parametrize("name", ["references", "resources"])
def test_training_goes_on_as_it_did_there(name: str) -> None:
    feeds, _ = recorded(name)
    model = fb.tensorflow.load(DATA / FILES[name])
    with fb.Session() as sess:
        restored = model.restore(sess)
        assert set(restored) == set(model.variables)
        given = {model[k]: v for k, v in feeds.items()}
        losses = [sess.run([model["loss:0"], model["train"]], given)[0] for _ in range(5)]
        np.testing.assert_allclose(losses, np.load(DATA / f"{name}_losses.npy"), rtol=1e-5)
        assert sess.run(model["global_step:0"]) == 8
        assert sess.run(model["spelt:0"]).tolist() == [b"a", b"bc"]
    parts = {"net/w/part_0", "net/w/part_1"} if name == "references" else {"net/w"}
    trained = {v.op.name for v in model.graph.variables(trainable=True)}
    assert trained == {"net/b", "net/v", *parts}


def test_steps_of_optimizers_are_those_there() -> None:
    model = fb.tensorflow.load(gzip.decompress((DATA / "steps.meta.gz").read_bytes()))
    with np.load(DATA / "steps.npz") as file:
        after = dict(file)
    assert {*after} == {*model.variables}
    assert len({name.partition("/")[0] for name in after}) == 43
    with fb.Session() as sess:
        for _ in range(2):
            sess.run(model["all"])
        found = sess.run(model.variables)
    for name, value in found.items():
        np.testing.assert_allclose(value, after[name], rtol=2e-5, atol=2e-6, err_msg=name)


@crc
def test_a_loaded_graph_is_differentiated_and_trained() -> None:
    feeds, _ = recorded("references")
    model = fb.tensorflow.load(DATA / "references.meta", name="old", outputs=["loss:0"])
    assert model.outputs["loss:0"].op.name == "old/loss"
    assert not any("Momentum" in name for name in model.variables)
    train = fb.train.GradientDescentOptimizer(0.5).minimize(model.outputs["loss:0"])
    with fb.Session() as sess:
        model.restore(sess)
        given = {model[k]: v for k, v in feeds.items()}
        first, *_, last = (sess.run([model["loss:0"], train], given)[0] for _ in range(20))
    assert last < 0.5 * first


def test_a_loop_is_differentiated() -> None:
    feeds, _ = recorded("recurrent")
    model = fb.tensorflow.load(DATA / "recurrent.pb")
    x = model.inputs["x"]
    total = fb.reduce_sum(fb.square(model["state:0"]))
    given = {model[k]: v for k, v in feeds.items()}
    dx = fb.gradients(total, [x])[0]
    with fb.Session() as sess:
        found, value = sess.run([dx, total], given)
        moved = feeds["x:0"].copy()
        moved[0, 1, 2] += 1e-2
        other = sess.run(total, {**given, x: moved})
    assert found[0, 1, 2] == pytest.approx((other - value) / 1e-2, rel=0.05)
    assert not found[1, 2:].any()  # Beyond the second sequence's length.


def test_gradients_that_tensorflow_made_of_loops_are_read() -> None:
    feeds, wanted = recorded("gradients")
    message = gzip.decompress((DATA / "gradients.pb.gz").read_bytes())
    model = fb.tensorflow.load(message, name="there")
    mine = fb.tensorflow.load(message, name="here", outputs=["loss"])
    # Gradients that Flowbook builds are the same, of the loss alone.
    built = fb.gradients(mine["loss:0"], [mine["x:0"], mine["rows:0"]])
    with fb.Session() as sess:
        given = {m[name]: value for name, value in feeds.items() for m in (model, mine)}
        for _ in range(3):
            # The value is looked at without a word: what changes is gone when the run ends.
            assert sess.peek(model["loss:0"], given) == pytest.approx(wanted["loss:0"])
            found = sess.run([model[name] for name in wanted], given)
            for name, value in zip(wanted, found, strict=True):
                np.testing.assert_allclose(value, wanted[name], rtol=1e-5, err_msg=name)
            for value, name in zip(sess.run(built, given), ("dx:0", "drows:0"), strict=True):
                np.testing.assert_allclose(value, wanted[name], rtol=1e-5, err_msg=name)
    with pytest.raises(fb.errors.UnimplementedError) as caught:
        fb.gradients(model["loss:0"], model["x:0"])
    assert "outputs=[loss]" in str(caught.value.hint)


def test_names_scopes_and_what_is_waited_for_are_kept() -> None:
    message = graph_def(
        "x Placeholder", "deep/y Relu x", "side Neg x", "z Identity deep/y ^side", "all NoOp ^z"
    )
    message.node[1].device = "/device:CPU:0"
    model = fb.tensorflow.load(message, name="part")
    assert model.scope == "part/"
    z = model["z"]
    assert (z.name, [op.name for op in z.control_inputs]) == ("part/z", ["part/side"])
    assert model["deep/y:0"].op.device == "/device:cpu:0"
    assert list(model.outputs) == ["side", "z"]
    cleared = fb.tensorflow.load(message, name="part", clear_devices=True)
    assert cleared.scope == "part_1/"
    assert cleared["deep/y"].device == ""
    fb.tensorflow.load(message)
    with pytest.raises(fb.errors.AlreadyExistsError):
        fb.tensorflow.load(message)


def test_tensors_stand_for_those_of_the_graph() -> None:
    x = fb.constant([-1.0, 2.0])
    message = graph_def("x Placeholder", "y Relu x")
    model = fb.tensorflow.load(message, input_map={"x:0": x}, name="part")
    with fb.Session() as sess:
        assert sess.run(model["y:0"]).tolist() == [0.0, 2.0]


def test_of_a_node_whose_values_are_given_nothing_is_read() -> None:
    message = graph_def("d Dataset", "i IteratorGetNext d", "y Add i i:1", "z Neg i:1")
    given = {"i:0": fb.constant([1.0]), "i:1": fb.constant([2.0])}
    model = fb.tensorflow.load(message, input_map=given, outputs=["y:0"], name="part")
    with fb.Session() as sess:
        assert sess.run(model["y:0"]).tolist() == [3.0]
    del given["i:0"]
    model = fb.tensorflow.load(message, input_map=given, outputs=["z:0"], name="other")
    with pytest.raises(fb.errors.UnimplementedError, match="i:0 is not read"):
        fb.tensorflow.load(message, input_map=given, outputs=["y:0"])
    with pytest.raises(fb.errors.NotFoundError, match="no tensor 'j:0'"):
        fb.tensorflow.load(message, input_map={**given, "j:0": given["i:1"]}, outputs=["z:0"])


def test_text_binary_and_messages_are_the_same() -> None:
    message = graph_def("x Placeholder", "y Relu x")
    meta = MetaGraphDef(graph_def=message)
    signature = meta.signature_def["serving"]
    signature.inputs["points"].name = "x:0"
    signature.outputs["kept"].name = "y:0"
    binary = [each.SerializeToString() for each in (message, meta)]
    texts = [str(each).encode() for each in (message, meta)]
    for form in (message, meta, *binary, *texts):
        with fb.Graph().as_default():
            model = fb.tensorflow.load(form)
            assert model["y:0"].op.type == "Relu"
            assert list(model.inputs) == ["x"]
            if form is meta:
                assert model.signatures["serving"].outputs["kept"] is model["y:0"]


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        (
            graph_def("a Run", "b Run", "c Hop"),
            "Unimplemented",
            r"Hop \(1, .* 'c'\), Run \(2",
        ),
        (graph_def("a Relu b"), "InvalidArgument", "takes 'b', which is no node"),
        (graph_def("a Relu b", "b Relu a"), "InvalidArgument", "wait for each other"),
        (graph_def("a NoOp", "a NoOp"), "InvalidArgument", "several nodes named 'a'"),
        (graph_def("a Placeholder", "b Relu a:3"), "InvalidArgument", "there is no a:3"),
        (graph_def("a Placeholder", "b Add a"), "InvalidArgument", "'b'"),
        (graph_def("a Placeholder", "b Cast a"), "InvalidArgument", "lacks its attribute 'DstT'"),
        (b"nothing of the kind", "DataLoss", "not a GraphDef"),
        (b"", "DataLoss", "not a GraphDef"),
        ("no/such.pb", "NotFound", "no file"),
        (17, "InvalidType", "path, bytes or a GraphDef"),
    ],
)
def test_what_cannot_be_read_is_refused_and_leaves_nothing(
    message: Any, error: str, text: str
) -> None:
    with pytest.raises(getattr(fb.errors, f"{error}Error"), match=text):
        fb.tensorflow.load(message)
    assert not fb.get_default_graph().operations


def test_a_variable_without_an_initial_value_waits_for_one() -> None:
    message = graph_def("w VariableV2", "w/read Identity w")
    model = fb.tensorflow.load(message)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match="initial_value"):
            sess.run(model["w/read:0"])
        sess.run(fb.assign(model.variables["w"], 3.0))
        assert sess.run(model["w/read:0"]) == 3.0


def test_what_runs_after_a_write_reads_what_was_written() -> None:
    """Though it takes the value from a read before, as nodes that take references do there."""
    message = graph_def(
        "w VariableV2",
        "x Placeholder",
        "w/Assign Assign w x",
        "w/read Identity w",
        "same Identity w/read",
        "add AssignAdd w x",
        "before Neg w/read",
        "after Neg w/read ^add",
        "later Neg same ^before ^after",
        "sum Add add w/read",
        "all NoOp ^later ^sum",
        "v VariableV2",
        "other AssignAdd v x",
        "aside Neg w/read ^other",
    )
    model = fb.tensorflow.load(message)
    with fb.Session() as sess:
        given = {model["x:0"]: 3.0}
        sess.run(model["w/Assign"], given)
        wanted = ["before:0", "after:0", "later:0", "sum:0"]
        for _ in range(2):
            assert sess.run([model[each] for each in wanted], given) == [-3.0, -6.0, -6.0, 12.0]
            sess.run(model["w/Assign"], given)
    # What runs after no write takes the read that the graph has.
    for name in ("before:0", "aside:0"):
        assert model[name].op.inputs[0].op.name == "w/read"


def test_a_reference_goes_into_a_branch_as_it_is() -> None:
    for kind, switch, write in (
        ("VariableV2", "RefSwitch", "AssignAdd"),
        ("VarHandleOp", "Switch", "AssignAddVariableOp"),
    ):
        message = graph_def(
            f"w {kind}",
            "x Placeholder",
            "zero IsNan x",
            f"s {switch} w zero",
            "t Switch x zero",
            f"add {write} s t",
        )
        model = fb.tensorflow.load(message, name=kind)
        with fb.Session() as sess:
            sess.run(fb.assign(model.variables["w"], 1.0))
            sess.run(model["add"], {model["x:0"]: 3.0})
            assert sess.run(model.variables["w"]) == 4.0


def test_an_operation_may_be_asked_for() -> None:
    model = fb.tensorflow.load(graph_def("x Placeholder", "all NoOp ^x"), outputs=["all", "x:0"])
    assert model.outputs["all"] is model["all"]


def test_queues_are_filled_by_their_runners() -> None:
    graph = graph_def(
        "limit VariableV2",
        "one Const",
        "limit/Assign Assign limit one",
        "count CountUpTo limit",
        "queue FIFOQueueV2",
        "put QueueEnqueueV2 queue count",
        "n Const",
        "taken QueueDequeueManyV2 queue n",
        "size QueueSizeV2 queue",
    )
    nodes = {node.name: node for node in graph.node}
    nodes["limit"].attr["dtype"].type = 3
    for name, value in (("one", 1), ("n", 3)):
        tensor = nodes[name].attr["value"].tensor
        nodes[name].attr["dtype"].type = tensor.dtype = 3
        tensor.int_val.append(value)
    nodes["count"].attr["limit"].i = 7
    for name in ("queue", "taken"):
        nodes[name].attr["component_types"].list.type.append(3)
    nodes["queue"].attr["shapes"].list.shape.add()
    nodes["queue"].attr["capacity"].i = 2
    message = MetaGraphDef(graph_def=graph)
    runner = QueueRunnerDef(queue_name="queue", enqueue_op_name=["put", "put"])
    message.collection_def["queue_runners"].bytes_list.value.append(runner.SerializeToString())
    for outputs in (None, ["taken:0"]):
        with fb.Graph().as_default(), fb.Session() as sess:
            model = fb.tensorflow.load(message, outputs=outputs)
            found = [sess.run(model["taken:0"]).tolist() for _ in range(2)]
            assert sorted(found[0] + found[1]) == [1, 2, 3, 4, 5, 6]
            with pytest.raises(fb.errors.OutOfRangeError):
                sess.run(model["taken:0"])
    message.collection_def["queue_runners"].bytes_list.value.append(b"none")
    with pytest.raises(fb.errors.DataLossError, match="no queue runner"):
        fb.tensorflow.load(message)


def test_text_is_split_at_each_character_of_a_delimiter() -> None:
    graph = graph_def("lines Const", "delimiter Const", "parts StringSplit lines delimiter")
    for node, texts, rank in zip(graph.node, ([b"a, b", b",,"], [b", "]), (1, 0), strict=False):
        tensor = node.attr["value"].tensor
        node.attr["dtype"].type = tensor.dtype = 7
        tensor.string_val.extend(texts)
        if rank:
            tensor.tensor_shape.dim.add(size=len(texts))
    found = fb.tensorflow.load(graph)
    graph.node[2].attr["skip_empty"].b = False
    kept = fb.tensorflow.load(graph, name="kept")
    with fb.Session() as sess:
        assert sess.run(found["parts:1"]).tolist() == [b"a", b"b"]
        assert sess.run(found["parts:0"]).tolist() == [[0, 0], [0, 1]]
        assert sess.run(kept["parts:1"]).tolist() == [b"a", b"", b"b", b"", b"", b""]
        assert sess.run(kept["parts:2"]).tolist() == [2, 3]


def test_a_constant_of_any_size_is_not_made() -> None:
    message = graph_def("x Const")
    tensor = message.node[0].attr["value"].tensor
    message.node[0].attr["dtype"].type = tensor.dtype = 1
    tensor.tensor_shape.dim.add(size=1 << 40)
    tensor.float_val.append(1.0)
    with pytest.raises(fb.errors.ResourceExhaustedError, match="repeats an element"):
        fb.tensorflow.load(message)
    tensor.tensor_shape.dim[0].size = 3
    model = fb.tensorflow.load(message)
    with fb.Session() as sess:
        assert sess.run(model["x:0"]).tolist() == [1.0, 1.0, 1.0]


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_file_raises_an_error_of_flowbooks(data: st.DataObject) -> None:
    content = bytearray((DATA / data.draw(st.sampled_from(["flow.pb", "mlp.pb"]))).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with fb.Graph().as_default():
        try:
            fb.tensorflow.load(bytes(content[: data.draw(st.integers(1, len(content)))]))
        except fb.errors.OpError:
            assert not fb.get_default_graph().operations
