"""Networks as ONNX models: variables, names, cuts, files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires

reference = pytest.importorskip("onnx.reference")
onnx = pytest.importorskip("onnx")
pytestmark = requires(module="onnx")


@pytest.fixture(autouse=True)
def graph() -> Any:
    with fb.Graph().as_default() as graph:
        yield graph


def evaluated(model: Any, **feeds: Any) -> Any:
    with np.errstate(all="ignore"):
        return reference.ReferenceEvaluator(model).run(None, feeds)


def perceptron() -> tuple[fb.Tensor, fb.Tensor, fb.Variable]:
    x = fb.placeholder(fb.float32, [None, 4], name="x")
    w = fb.Variable(fb.random_normal([4, 3], seed=1), name="w")
    b = fb.Variable(fb.zeros([3]), name="b")
    return x, fb.nn.softmax(x @ w + b, name="scores"), w


def network() -> tuple[fb.Tensor, fb.Tensor]:
    """A small network of images: convolutions, normalisation, pools, a residual, a dense layer."""
    x = fb.placeholder(fb.float32, [None, 8, 8, 3], name="x")
    w1 = fb.Variable(fb.random_normal([3, 3, 3, 4], stddev=0.3, seed=1))
    h = fb.nn.conv2d(x, w1, 1, "SAME")
    h = fb.nn.batch_normalization(h, fb.zeros([4]), fb.ones([4]), fb.ones([4]), fb.ones([4]), 1e-3)
    h = fb.nn.relu(h)
    d = fb.nn.depthwise_conv2d(h, fb.Variable(fb.ones([3, 3, 4, 1]) / 9.0), [1, 1, 1, 1], "SAME")
    h = fb.nn.max_pool(h + fb.nn.swish(d), 2, 2, "VALID")
    h = fb.nn.avg_pool(h, 3, 1, "SAME")
    flat = fb.reshape(h, [-1, 4 * 4 * 4])
    w2 = fb.Variable(fb.random_normal([64, 10], stddev=0.1, seed=2))
    return x, fb.nn.log_softmax(fb.nn.layer_normalization(flat) @ w2)


def transformer() -> tuple[fb.Tensor, fb.Tensor]:
    """A block of attention with the usual layers around it."""
    x = fb.placeholder(fb.float32, [2, 5, 8], name="x")
    weights = [fb.Variable(fb.random_normal([8, 8], stddev=0.3, seed=i)) for i in range(4)]
    h = x + fb.nn.multi_head_attention(x, x, x, 2, *weights)
    h = fb.nn.layer_normalization(h, fb.ones([8]), fb.zeros([8]))
    up = fb.Variable(fb.random_normal([8, 16], stddev=0.3, seed=5))
    down = fb.Variable(fb.random_normal([16, 8], stddev=0.3, seed=6))
    return x, h + fb.nn.gelu(h @ up) @ down


@pytest.mark.parametrize("build", [network, transformer], ids=lambda build: build.__name__)
def test_a_network_means_the_same_in_onnx_and_read_back(build: Any, tmp_path: Path) -> None:
    x, y = build()
    dims = [2 if d is None else d for d in x.shape]
    image = np.random.default_rng(0).normal(size=dims).astype(np.float32)
    path = tmp_path / "net.onnx"
    with fb.Session() as sess:
        wanted = sess.run(y, {x: image})
        model = fb.onnx.save({"y": y}, {"x": x}, path, session=sess)
    np.testing.assert_allclose(evaluated(model, x=image)[0], wanted, rtol=1e-4, atol=1e-5)
    again = fb.onnx.load(path, graph=fb.Graph())
    with fb.Session(graph=again.graph) as sess:
        found = sess.run(again.outputs["y"], {again.inputs["x"]: image})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_variables_are_stored_with_the_values_of_the_session() -> None:
    x, y, w = perceptron()
    with fb.Session() as sess:
        sess.run(fb.assign_add(w, fb.ones([4, 3])))
        model = fb.onnx.save(y, x, session=sess)
        value = sess.run(w)
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    np.testing.assert_array_equal(stored["w"], value)
    assert [i.name for i in model.graph.input] == ["x"]
    assert [o.name for o in model.graph.output] == ["scores"]


def test_a_variable_needs_a_session() -> None:
    x, y, _ = perceptron()
    with pytest.raises(fb.errors.InvalidArgumentError, match="session's to say"):
        fb.onnx.save(y, x)


def test_unknown_dimensions_stay_open() -> None:
    x, y, _ = perceptron()
    with fb.Session() as sess:
        model = fb.onnx.save(y, x, session=sess)
    dims = [(d.dim_param, d.dim_value) for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert dims == [("x_0", 0), ("", 4)]
    for count in (1, 5):
        found = evaluated(model, x=np.ones((count, 4), np.float32))
        assert found[0].shape == (count, 3)


def test_the_graph_is_cut_at_inputs_that_are_no_placeholders() -> None:
    x = fb.placeholder(fb.float32, [3])
    unwritable = fb.digamma(x)
    y = unwritable * 2
    model = fb.onnx.save({"y": y}, {"h": unwritable})
    np.testing.assert_allclose(evaluated(model, h=np.ones(3, np.float32))[0], [2, 2, 2])
    assert [n.op_type for n in model.graph.node] == ["Mul", "Identity"]


def test_what_cannot_be_written_is_named_at_once_and_no_file_appears(tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [3])
    y = fb.digamma(x) + fb.lgamma(x) + fb.digamma(2 * x)
    path = tmp_path / "net.onnx"
    path.write_bytes(b"before")
    with pytest.raises(fb.errors.UnimplementedError, match=r"Digamma \(2\), Lgamma"):
        fb.onnx.save(y, x, path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_forms_that_cannot_be_written_are_named_with_their_operations() -> None:
    x = fb.placeholder(fb.float32, [2, 3])
    y = fb.pad(x, [[1, 1], [1, 1]], "SYMMETRIC", name="border")
    with pytest.raises(fb.errors.UnimplementedError, match=r"SYMMETRIC.*'border'"):
        fb.onnx.save(y, x)


def test_dtypes_that_onnx_has_no_operator_for() -> None:
    x = fb.placeholder(fb.complex64, [2])
    with pytest.raises(fb.errors.UnimplementedError, match="ONNX has no operators"):
        fb.onnx.save(fb.exp(x), x)


def test_a_placeholder_that_is_no_input() -> None:
    x, z = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.float32, [2], name="z")
    with pytest.raises(fb.errors.InvalidArgumentError, match="'z', which is not among the inputs"):
        fb.onnx.save(x + z, x)


def test_what_writes_is_no_inference() -> None:
    x, _, w = perceptron()
    with pytest.raises(fb.errors.UnimplementedError, match="AssignAdd"):
        fb.onnx.save({"w": fb.assign_add(w, fb.ones([4, 3]))}, {"x": x})


@pytest.mark.parametrize("opset", [17, 99])
def test_operator_sets_that_are_not_written(opset: int) -> None:
    x = fb.placeholder(fb.float32, [2])
    with pytest.raises(fb.errors.InvalidArgumentError, match="18 to 28"):
        fb.onnx.save(x * 2, x, opset=opset)


def test_an_input_as_output_and_constants_alone() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    model = fb.onnx.save({"same": x, "seven": fb.constant([3, 4]) + 4}, {"x": x})
    same, seven = evaluated(model, x=np.ones(2, np.float32))
    np.testing.assert_array_equal(same, [1, 1])
    np.testing.assert_array_equal(seven, [7, 8])


def test_strings_truths_and_halves() -> None:
    text = fb.placeholder(fb.string, [2])
    half = fb.placeholder(fb.bfloat16, [2])
    truth = fb.placeholder(fb.bool, [2])
    chosen = fb.where(truth, text, fb.constant([b"a", b"b"]))
    model = fb.onnx.save({"t": chosen, "h": half * 2}, {"text": text, "half": half, "truth": truth})
    again = fb.onnx.load(model)
    with fb.Session() as sess:
        feeds = {"text": [b"x", b"y"], "half": [1.5, 2.0], "truth": [True, False]}
        found = sess.run(again.outputs, {again.inputs[k]: v for k, v in feeds.items()})
    assert list(found["t"]) == [b"x", b"b"]
    np.testing.assert_array_equal(found["h"].astype(np.float32), [3, 4])


@pytest.mark.parametrize("given", [3, "x", [3]])
def test_what_is_no_tensor(given: Any) -> None:
    x = fb.placeholder(fb.float32, [2])
    with pytest.raises(fb.errors.InvalidTypeError, match="fetches are tensors"):
        fb.onnx.save(given, x)


def test_names_that_meet_are_refused() -> None:
    x = fb.placeholder(fb.float32, [2])
    with pytest.raises(fb.errors.InvalidArgumentError, match="both named 'x'"):
        fb.onnx.save({"x": x * 2}, {"x": x})


def test_a_folder_that_is_not_there() -> None:
    x = fb.placeholder(fb.float32, [2])
    with pytest.raises(fb.errors.InvalidArgumentError, match="cannot be written"):
        fb.onnx.save({"y": x * 2}, {"x": x}, "/nowhere/at/all.onnx")


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [2])
    link = tmp_path / "newest.onnx"
    link.symlink_to(tmp_path / "first.onnx")
    fb.onnx.save({"y": x * 2}, {"x": x}, link)
    assert link.is_symlink()
    assert list(fb.onnx.load(tmp_path / "first.onnx", graph=fb.Graph()).outputs) == ["y"]
    with pytest.raises(fb.errors.InvalidArgumentError, match="no regular file"):
        fb.onnx.save({"y": x * 2}, {"x": x}, tmp_path)


@pytest.mark.parametrize("dtype", fb.SMALL, ids=str)
def test_numbers_of_few_bits_are_written(tmp_path: Path, dtype: fb.DType) -> None:
    """Casts saturate in ONNX unless they are told not to."""
    x = fb.placeholder(fb.float32, [2, 3], name="x")
    q = fb.placeholder(dtype, [2, 3], name="q")
    weights = fb.constant(np.ones((2, 3)).astype(dtype.numpy))
    outputs = {"moved": fb.transpose(q), "sum": x + fb.cast(weights, fb.float32)}
    if dtype is not fb.float8_e8m0fnu:
        outputs["cast"] = fb.cast(fb.cast(x, dtype), fb.float32)
    path = tmp_path / "net.onnx"
    fb.onnx.save(outputs, {"x": x, "q": q}, path, opset=25)
    given = np.array([[1, 2, 1e6], [-3, 0.3, -1e6]], np.float32)
    stored = np.ones((2, 3)).astype(dtype.numpy)
    with fb.Session() as sess:
        wanted = sess.run(outputs, {x: given, q: stored})
    with fb.Graph().as_default(), fb.Session() as sess:
        loaded = fb.onnx.load(path)
        feeds = {loaded.inputs["x"]: given, loaded.inputs["q"]: stored}
        found = sess.run(loaded.outputs, feeds)
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype
        assert found[name].tobytes() == value.tobytes()


def test_casts_to_bare_exponents_are_not_written(tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [3], name="x")
    with pytest.raises(fb.errors.UnimplementedError, match="takes no sign"):
        fb.onnx.save(fb.cast(x, fb.float8_e8m0fnu), x, tmp_path / "net.onnx", opset=25)
