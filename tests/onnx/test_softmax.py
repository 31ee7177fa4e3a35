"""The softmax family, as it was before and as it is since opset 13, and a network that ends in it.

A softmax sees differences: of logits in the thousands of millions, whose steps in float32 are
hundreds, a single other rounding makes a certainty of it. So SqueezeNet with weights all alike, as
the onnx package brings it, gives each of its 1000 classes the same only if these are equal to the
last bit; the values before need not be those of another runtime to the last bit for that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires
from tests.onnx.exchange import inference
from tests.onnx.models import model, value

onnx = pytest.importorskip("onnx")
pytestmark = [requires(module="onnx"), requires(module="onnxruntime")]

from onnx import helper, numpy_helper  # noqa: E402

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


@pytest.mark.parametrize("type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [7, 11, 12, 13])
def test_axes_of_all_opsets(type: str, opset: int) -> None:
    for shape in ((2, 3, 4), (2, 7, 1, 1)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        for axis in (None, 0, 1, 2, *([-1, -2] if opset >= 11 else [])):
            node = helper.make_node(type, ["x"], ["y"], **({} if axis is None else {"axis": axis}))
            for dims in (shape, [None] * len(shape)):
                proto = model([node], [value("x", dims)], [value("y", dims)], opset=opset)
                loaded = fb.onnx.load(proto, graph=fb.Graph())
                with fb.Session(graph=loaded.graph) as sess:
                    found = sess.run(loaded.outputs["y"], {loaded.inputs["x"]: x})
                [right] = inference(proto).run(None, {"x": x})
                np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-7)


def test_a_network_whose_classes_are_all_alike() -> None:
    proto = onnx.shape_inference.infer_shapes(onnx.load(LIGHT / "light_squeezenet.onnx"))
    [last] = [node for node in proto.graph.node if node.op_type == "Softmax"]
    before = [info for info in proto.graph.value_info if info.name == last.input[0]]
    proto.graph.output.extend(before)
    loaded = fb.onnx.load(proto)
    [image] = loaded.inputs.values()
    x = np.random.default_rng(0).normal(size=image.shape.as_list()).astype(np.float32)
    with fb.Session() as sess:
        shares, logits = sess.run([*loaded.outputs.values()], {image: x})
    stored = onnx.TensorProto()
    stored.ParseFromString((LIGHT / "light_squeezenet_output_0.pb").read_bytes())
    np.testing.assert_allclose(shares, numpy_helper.to_array(stored), rtol=1e-6)
    [_, other] = inference(proto).run(None, {image.op.name.rpartition("/")[2]: x})
    np.testing.assert_allclose(logits, other, rtol=1e-5)
    # More than the softmax would forgive, had it not come to all classes alike.
    assert np.spacing(logits.max()) > 100


def test_the_softmax_is_that_of_its_own_logits() -> Any:
    """One step in one of a thousand logits of that size is a certainty."""
    node = helper.make_node("Softmax", ["x"], ["y"])
    proto = model([node], [value("x", [1, 4, 1, 1])], [value("y", [1, 4, 1, 1])], opset=9)
    x = np.full([1, 4, 1, 1], 6.769e9, np.float32)
    x[0, 2] = np.nextafter(x[0, 2], np.float32(np.inf))
    loaded = fb.onnx.load(proto)
    with fb.Session() as sess:
        found = sess.run(loaded.outputs["y"], {loaded.inputs["x"]: x})
    np.testing.assert_array_equal(found.ravel(), [0, 0, 1, 0])
    np.testing.assert_array_equal(found, inference(proto).run(None, {"x": x})[0])
