"""Models become parts of graphs; what is damaged, hostile or unsupported is refused."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.onnx.reading import budget
from tests.need import requires

onnx = pytest.importorskip("onnx")
pytestmark = requires(module="onnx")

from onnx import TensorProto, helper  # noqa: E402

from tests.onnx.models import dense, model, value  # noqa: E402

X = np.array([[1, 2, 3], [-1, 0, 2]], np.float32)
W = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = np.maximum(X @ W + np.array([1, -20], np.float32), 0)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with fb.Graph().as_default() as graph:
        yield graph


def run(loaded: Any, **feeds: Any) -> Any:
    with fb.Session(graph=loaded.graph) as sess:
        return sess.run(loaded.outputs, {loaded.inputs[k]: v for k, v in feeds.items()})


def refused(given: Any, kind: type[Exception], match: str, **how: Any) -> Any:
    with pytest.raises(kind, match=match) as caught:
        fb.onnx.load(given, **how)
    assert not fb.get_default_graph().operations
    return caught.value


def test_a_model_runs_at_once(graph: fb.Graph) -> None:
    loaded = fb.onnx.load(dense())
    assert loaded.inputs["x"].shape == [None, 3]
    assert set(loaded.initializers) == {"w", "b"}
    assert (loaded.scope, loaded.opset, loaded.graph) == ("net/", 21, graph)
    np.testing.assert_allclose(run(loaded, x=X)["y"], Y)


def test_from_a_file_and_from_bytes(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(dense().SerializeToString())
    for given in (path, str(path), path.read_bytes()):
        np.testing.assert_allclose(run(fb.onnx.load(given), x=X)["y"], Y)


def test_two_models_share_a_graph_and_operations_bear_the_nodes_names() -> None:
    first, second = fb.onnx.load(dense(), name="a"), fb.onnx.load(dense(), name="a")
    assert (first.scope, second.scope) == ("a/", "a_1/")
    names = [op.name for op in first.graph.operations]
    assert "a/layer/mul/MatMul" in names
    assert "a_1/layer/relu/Relu" in names


def test_into_another_graph_than_the_default_one(graph: fb.Graph) -> None:
    other = fb.Graph()
    loaded = fb.onnx.load(dense(), graph=other)
    assert loaded.outputs["y"].graph is other
    assert not graph.operations


def test_stored_values_become_variables_that_train() -> None:
    loaded = fb.onnx.load(dense(), trainable=True)
    assert isinstance(loaded.initializers["w"], fb.Variable)
    loss = fb.reduce_sum(loaded.outputs["y"])
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    with fb.Session() as sess:
        before = sess.run(loss, {loaded.inputs["x"]: X})
        sess.run(train, {loaded.inputs["x"]: X})
        assert sess.run(loss, {loaded.inputs["x"]: X}) < before


def test_a_model_is_differentiated_by_its_input() -> None:
    loaded = fb.onnx.load(dense())
    [dx] = fb.gradients(loaded.outputs["y"], [loaded.inputs["x"]])
    with fb.Session() as sess:
        found = sess.run(dx, {loaded.inputs["x"]: X})
    np.testing.assert_allclose(found, (Y > 0).astype(np.float32) @ W.T)


def test_shapes_narrow_what_a_model_leaves_open() -> None:
    loaded = fb.onnx.load(dense(), shapes={"x": [5, 3]})
    assert loaded.outputs["y"].shape == [5, 2]


def test_values_fix_inputs_and_an_operator_that_needs_one_says_so() -> None:
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"])]
    inputs = [value("x", [2, 3]), value("axes", [1], TensorProto.INT64)]
    proto = model(nodes, inputs, [value("y", [2, 1])])
    error = refused(proto, fb.errors.UnimplementedError, "needs the value of 'axes'")
    assert "values={'axes': ...}" in error.hint
    loaded = fb.onnx.load(proto, values={"axes": [1]})
    assert list(loaded.inputs) == ["x"]
    np.testing.assert_allclose(run(loaded, x=X)["y"], X.sum(1, keepdims=True))


def test_values_and_shapes_of_no_input_are_refused() -> None:
    refused(dense(), fb.errors.InvalidArgumentError, "no input 'z'", values={"z": 1})
    refused(dense(), fb.errors.InvalidArgumentError, "no input 'z'", shapes={"z": [1]})


@pytest.mark.parametrize("length", [6, 7, 9])
def test_the_last_part_may_be_smaller_whatever_the_length(length: int) -> None:
    nodes = [helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1, num_outputs=3)]
    outputs = [value(name, ["batch", None]) for name in "abc"]
    model_ = fb.onnx.load(model(nodes, [value("x", ["batch", None])], outputs))
    x = np.arange(2.0 * length).reshape(2, length)
    with fb.Session() as sess:
        found = sess.run([model_.outputs[name] for name in "abc"], {model_.inputs["x"]: x})
    wanted = np.split(x, range(-(-length // 3), length, -(-length // 3)), axis=1)
    for part, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_shapes_that_a_model_computes_are_known_before_the_run() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["new"], axis=0),
        helper.make_node("Reshape", ["x", "new"], ["y"]),
    ]
    stored = {"zero": np.array([0]), "rest": np.array([-1])}
    loaded = fb.onnx.load(model(nodes, [value("x", [4, 3, 2])], [value("y", [None, None])], stored))
    assert loaded.outputs["y"].shape == [4, 6]


def test_images_are_transposed_at_the_ends_only() -> None:
    kernel = np.ones((2, 2, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "b"], ["d"]),
        helper.make_node("Concat", ["d", "c"], ["e"], axis=1),
        helper.make_node("MaxPool", ["e"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    loaded = fb.onnx.load(
        model(nodes, [value("x", [1, 2, 4, 4])], [value("y", [1, 4, 2, 2])], {"w": kernel})
    )
    stack, seen = [loaded.outputs["y"].op], set()
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack += [t.op for t in op.inputs]
    turned = [op for op in seen if op.type == "Transpose"]
    images = [op for op in turned if op.attributes["perm"] in ((0, 2, 3, 1), (0, 3, 1, 2))]
    assert len(images) == 2
    assert run(loaded, x=np.ones((1, 2, 4, 4), np.float32))["y"].shape == (1, 4, 2, 2)


def test_a_batch_of_any_size_goes_through_a_network_of_images() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], auto_pad="SAME_LOWER", strides=[2, 2]),
        helper.make_node("BatchNormalization", ["a", *["v"] * 4], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        helper.make_node("ConvTranspose", ["c", "w"], ["d"], strides=[2, 2]),
        helper.make_node("Resize", ["d", "", "scales"], ["e"], mode="linear"),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "m"], ["y"], transB=1),
    ]
    random = np.random.default_rng(0)
    stored = {
        "w": random.normal(size=(2, 2, 3, 3)).astype(np.float32),
        "v": np.array([1, 2], np.float32),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "m": random.normal(size=(5, 2)).astype(np.float32),
    }
    proto = model(nodes, [value("x", ["n", 2, 9, 9])], [value("y", ["n", 5])], stored)
    loaded = fb.onnx.load(proto)
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(proto)
    for count in (1, 3):
        x = random.normal(size=(count, 2, 9, 9)).astype(np.float32)
        [wanted] = evaluator.run(None, {"x": x})
        np.testing.assert_allclose(run(loaded, x=x)["y"], wanted, rtol=1e-4, atol=1e-5)


def test_a_failed_model_leaves_what_was_there() -> None:
    with fb.name_scope("outer"):
        kept = fb.constant(1.0, name="net")
        node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)
        with pytest.raises(fb.errors.InvalidArgumentError):
            fb.onnx.load(model([node], [value("x", [3])], [value("y", [3])]))
    assert kept.graph.operations == [kept.op]


def test_a_known_condition_chooses_its_branch() -> None:
    def branch(name: str, type: str) -> Any:
        return helper.make_graph(
            [helper.make_node(type, ["x"], [name])], name, [], [value(name, [3])]
        )

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("t", "Neg"), else_branch=branch("e", "Abs")
    )
    proto = model([node], [value("x", [3])], [value("y", [3])], {"c": np.array(True)})
    np.testing.assert_allclose(run(fb.onnx.load(proto), x=X[0])["y"], -X[0])


def test_local_functions_are_expanded() -> None:
    opsets = [helper.make_opsetid("", 21)]
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], opsets
    )
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="mine")]
    proto = model(
        nodes, [value("x", [3])], [value("y", [3])],
        functions=[twice], opsets=[helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    np.testing.assert_allclose(run(fb.onnx.load(proto), x=X[0])["y"], 2 * X[0])


def test_functions_that_call_each_other_are_refused() -> None:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    functions = [
        helper.make_function(
            "mine", a, ["a"], ["b"], [helper.make_node(b, ["a"], ["b"], domain="mine")], opsets
        )
        for a, b in (("Ping", "Pong"), ("Pong", "Ping"))
    ]
    nodes = [helper.make_node("Ping", ["x"], ["y"], domain="mine")]
    proto = model(
        nodes, [value("x", [3])], [value("y", [3])], functions=functions, opsets=opsets[1:]
    )
    refused(proto, fb.errors.InvalidArgumentError, "calls itself|recurs|call")


def test_functions_that_grow_without_measure_are_refused() -> None:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    functions = []
    for i in range(30):
        inner = ("Neg", "") if i == 0 else (f"F{i - 1}", "mine")
        nodes = [
            helper.make_node(inner[0], ["a"], ["m"], domain=inner[1]),
            helper.make_node(inner[0], ["m"], ["b"], domain=inner[1]),
        ]
        functions.append(helper.make_function("mine", f"F{i}", ["a"], ["b"], nodes, opsets))
    nodes = [helper.make_node("F29", ["x"], ["y"], domain="mine")]
    proto = model(
        nodes, [value("x", [3])], [value("y", [3])], functions=functions, opsets=opsets[1:]
    )
    refused(proto, fb.errors.ResourceExhaustedError, "expand to")


def test_operators_without_a_translation_are_named_together() -> None:
    nodes = [
        helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[1, 1]),
        helper.make_node("Unheard", ["x"], ["z"], domain="mine"),
    ]
    inputs = [value("x", [1, 1, 4, 4]), value("rois", [1, 5])]
    outputs = [value("y", [1, 1, 1, 1]), value("z", [None])]
    proto = model(nodes, inputs, outputs, opsets=[helper.make_opsetid("mine", 1)])
    error = refused(proto, fb.errors.UnimplementedError, "MaxRoiPool, mine.Unheard")
    assert "depends on values" in error.hint


def test_sequences_are_lists_while_a_model_is_read() -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
        helper.make_node("SequenceInsert", ["s", "extra"], ["t"]),
        helper.make_node("SequenceAt", ["t", "last"], ["y"]),
        helper.make_node("ConcatFromSequence", ["t"], ["z"], axis=0, new_axis=1),
    ]
    stored = {"extra": np.ones(3, np.float32), "last": np.array(-1)}
    outputs = [value("y", [3]), value("z", [3, 3])]
    loaded = fb.onnx.load(model(nodes, [value("x", [2, 3])], outputs, stored))
    found = run(loaded, x=X)
    np.testing.assert_array_equal(found["y"], np.ones(3))
    np.testing.assert_array_equal(found["z"], [*X, np.ones(3)])


HUGE = 2**62
MEL = (2**40, 16, 8000, 0.0, 4000.0)


def _nested_loops(depth: int, count: int) -> Any:
    """Loops in loops, of which no single one is long, and which carry a sequence."""

    def sequence(name: str) -> Any:
        return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, [])

    def body(level: int) -> Any:
        state = f"state{level}"
        nodes = [helper.make_node("Identity", [f"goes_on{level}"], [f"still{level}"])]
        if level < depth:
            inner = body(level + 1)
            nodes.append(helper.make_node("Loop", ["n", "", state], [f"next{level}"], body=inner))
        else:
            nodes.append(helper.make_node("SequenceInsert", [state, "x"], [f"next{level}"]))
        inputs = [
            value(f"i{level}", [], TensorProto.INT64),
            value(f"goes_on{level}", [], TensorProto.BOOL),
            sequence(state),
        ]
        outputs = [value(f"still{level}", [], TensorProto.BOOL), sequence(f"next{level}")]
        return helper.make_graph(nodes, f"body{level}", inputs, outputs)

    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["first"]),
        helper.make_node("Loop", ["n", "", "first"], ["last"], body=body(1)),
        helper.make_node("SequenceAt", ["last", "n"], ["y"]),
    ]
    return model(nodes, [value("x", [])], [value("y", [])], {"n": np.array(count, np.int64)})


def _one(type: str, inputs: dict[str, Any], stored: Any = None, **attributes: Any) -> Any:
    stored = stored or {}
    dtypes = {"x": TensorProto.FLOAT}
    infos = [value(n, s, dtypes.get(n, TensorProto.INT64)) for n, s in inputs.items()]
    names = [*inputs, *stored]
    return model(
        [helper.make_node(type, names, ["y"], **attributes)], infos, [value("y", ["any"])], stored
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _one("Split", {"x": [HUGE]}, num_outputs=HUGE), "parts for 1 outputs"),
        (lambda: _one("Split", {"x": ["n"]}, num_outputs=HUGE), "parts for 1 outputs"),
        (lambda: _one("LRN", {"x": [1, 3, 4, 4]}, size=HUGE), "pieces built one by one"),
        (
            lambda: _one(
                "Col2Im", {"x": [1, 4, 4]}, {"i": np.array([2**31] * 2), "b": np.array([1, 1])}
            ),
            "elements computed while it is read",
        ),
        (
            lambda: _one(
                "MelWeightMatrix", {}, {n: np.array(v) for n, v in zip("blrmn", MEL, strict=True)}
            ),
            "elements computed while it is read",
        ),
        (
            lambda: _one("STFT", {"x": [1, HUGE, 1]}, {"s": np.array(1), "w": np.ones(4, "f4")}),
            "elements computed while it is read",
        ),
        (
            lambda: _one(
                "TfIdfVectorizer",
                {"ids": [1, HUGE]},
                max_gram_length=2,
                max_skip_count=HUGE,
                min_gram_length=1,
                mode="TF",
                ngram_counts=[0, 1],
                ngram_indexes=[0, 1],
                pool_int64s=[1, 2, 3],
            ),
            "pieces built one by one",
        ),
        (lambda: _one("Slice", {"x": [4], "s": [HUGE], "e": [HUGE]}), "pieces built one by one"),
        (lambda: _one("SplitToSequence", {"x": [HUGE]}), "pieces built one by one"),
        (
            lambda: _one("SplitToSequence", {"x": [HUGE]}, {"size": np.array(1, np.int64)}),
            "pieces built one by one",
        ),
        (
            lambda: _one(
                "RNN",
                {"x": [HUGE, 1, 2]},
                {"w": np.ones([1, 2, 2], np.float32), "r": np.ones([1, 2, 2], np.float32)},
                hidden_size=2,
            ),
            "pieces built one by one",
        ),
        (lambda: _nested_loops(2, 40), "1000 in all"),
        (lambda: _nested_loops(3, 11), "1000 in all"),
    ],
    ids=map(str, itertools.count()),
)
def test_small_models_that_ask_for_very_much_are_refused(
    make: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "MOST_PIECES", 1000)
    kinds = (fb.errors.ResourceExhaustedError, fb.errors.UnimplementedError)
    with fb.Graph().as_default(), pytest.raises(kinds, match=message):
        fb.onnx.load(make())


def test_a_newer_operator_set_is_refused() -> None:
    refused(model([], [], [], opset=99), fb.errors.UnimplementedError, "operator set 99")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (b"", fb.errors.DataLossError),
        (b"no model", fb.errors.DataLossError),
        (3, fb.errors.InvalidTypeError),
        ("/nowhere/at/all.onnx", fb.errors.NotFoundError),
    ],
)
def test_what_is_no_model_is_refused(given: Any, kind: type[Exception]) -> None:
    refused(given, kind, ".")


def test_damaged_bytes_are_refused_and_never_crash() -> None:
    data = dense().SerializeToString()
    random = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[random.integers(len(damaged))] = random.integers(256)
        with fb.Graph().as_default() as graph:
            try:
                fb.onnx.load(bytes(damaged))
            except fb.errors.OpError:
                assert not graph.operations


def test_a_cycle_and_a_missing_value_are_refused() -> None:
    cycle = [helper.make_node("Neg", ["b"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    refused(model(cycle, [], [value("a", [1])]), fb.errors.InvalidArgumentError, "not valid ONNX")
    missing = [helper.make_node("Neg", ["nothing"], ["a"])]
    refused(model(missing, [], [value("a", [1])]), fb.errors.InvalidArgumentError, "not valid")


def test_an_output_of_another_dtype_than_declared_is_refused() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)
    proto = model([node], [value("x", [3])], [value("y", [3])])
    refused(proto, fb.errors.InvalidArgumentError, "declared as float32")


def test_element_types_without_a_dtype_are_refused() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT6E2M3)
    proto = model([node], [value("x", [3])], [value("y", [3], TensorProto.FLOAT6E2M3)])
    refused(proto, fb.errors.UnimplementedError, "FLOAT6E2M3")


# Tensors in other files


def external(location: str, **entries: Any) -> Any:
    proto = dense()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(entry))
    return proto


def test_other_files_are_read_below_a_given_folder_only(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"1234" + W.tobytes() + b"rest")
    proto = external("data/w.bin", offset=4, length=W.nbytes)
    refused(proto, fb.errors.InvalidArgumentError, "other files")
    np.testing.assert_allclose(run(fb.onnx.load(proto, base_folder=tmp_path), x=X)["y"], Y)


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "", "C:/w", "l/w"]
)
def test_paths_that_lead_out_of_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    (tmp_path / "w").write_bytes(W.tobytes())
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "l").symlink_to(tmp_path)
    error = fb.errors.InvalidArgumentError
    refused(external(location), error, "plain file below", base_folder=folder)


@pytest.mark.parametrize("entries", [{"offset": -4}, {"length": 10**12}, {"offset": "x"}])
def test_places_outside_of_a_file_are_refused(tmp_path: Path, entries: Any) -> None:
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    error = fb.errors.InvalidArgumentError
    refused(external("w.bin", **entries), error, "the data of|the place of", base_folder=tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    refused(external("w.bin"), fb.errors.NotFoundError, "no file", base_folder=tmp_path)


# The package


def test_importing_flowbook_does_not_import_onnx() -> None:
    program = "import sys, flowbook; flowbook.onnx.load; print('onnx' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == "False"


def test_without_the_package_the_error_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(fb.errors.UnimplementedError) as caught:
        fb.onnx.load(b"")
    assert caught.value.hint == "pip install onnx"


# Numbers of few bits


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two_are_rounded_as_asked(mode: str, saturate: int) -> None:
    kind = TensorProto.FLOAT8E8M0
    given = {"round_mode": mode, "saturate": saturate}
    node = helper.make_node("Cast", ["x"], ["y"], to=kind, **given)
    proto = model([node], [value("x", [None])], [value("y", [None], kind)], opset=24)
    most = float(np.finfo(np.float32).max)
    x = [0.0, 1.0, 1.4, 1.5, 1.6, -3.0, 2.0**-127, 2.0**-126 * 1.5, 1e-45, 2.0**127 * 1.25]
    x += [2.0**127 * 1.5, most, -most, np.inf, -np.inf, np.nan]
    x = np.array(x, np.float32)
    wanted = onnx.numpy_helper.to_float8e8m0(x, bool(saturate), mode)
    found = run(fb.onnx.load(proto), x=x)["y"]
    assert found.dtype == wanted.dtype
    assert found.view(np.uint8).tolist() == wanted.view(np.uint8).tolist()


def test_weights_of_four_bits_are_moved_and_scaled() -> None:
    whole = np.arange(-8, 8).reshape(2, 8)
    nodes = [
        helper.make_node("Transpose", ["q"], ["turned"]),
        helper.make_node("DequantizeLinear", ["turned", "scale"], ["w"], block_size=4, axis=0),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    scale = np.array([[0.5, 1.0], [2.0, 0.25]], np.float32)
    stored = {"q": whole.astype(fb.int4.numpy), "scale": scale}
    proto = model(nodes, [value("x", [1, 8])], [value("y", [1, 2])], stored)
    x = np.linspace(-1, 1, 8, dtype=np.float32)[None]
    loaded = fb.onnx.load(proto)
    assert loaded.initializers["q"].dtype is fb.int4
    wanted = x @ (whole.T * np.repeat(scale, 4, 0))
    np.testing.assert_allclose(run(loaded, x=x)["y"], wanted, rtol=1e-5)
