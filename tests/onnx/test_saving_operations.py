"""Every row of `tests/op_cases` whose type can be written, written as ONNX and computed by ONNX.

The model must give, by ONNX's reference evaluator and read back by `fb.onnx.load`, what the session
gives. What cannot be written must say so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires
from tests.op_cases import CASES
from tests.op_cases.case import Case
from tests.op_checks import built

reference = pytest.importorskip("onnx.reference")
pytestmark = [requires(module="onnx"), requires(module="onnxruntime")]

from flowbook.onnx.saving.rules import RULES, RUN_AXES, arrays  # noqa: E402
from tests.onnx.exchange import exchanged, inference  # noqa: E402

# What the reference evaluator does not compute as ONNX defines it: rows, or a type.
BEYOND_THE_EVALUATOR = {
    "ConvolutionBackpropInput-no-channels": "it cannot reshape arrays without elements",
    "EuclideanNorm-far-out": "its norm overflows where squares do",
    "GatherNd-whole": "it cannot reshape arrays without elements",
    "LRN": "it normalises as many channels as there are examples",
    "LogSumExp-far-out": "its logarithm of a sum of zeros is NaN",
}
# Their rows are of signed integers, which ONNX does not shift.
UNSIGNED_ONLY = {"LeftShift", "RightShift"}

ROWS = [case for case in CASES if case.type in RULES]


@cache
def saved(case: Case, **how: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """The model, what the session computes, and the feeds by the inputs' names."""
    outputs, feeds = built(case, case.inputs)
    with fb.Session(graph=outputs[0].graph) as sess:
        wanted = sess.run(outputs, feeds)
    model = fb.onnx.save(
        {f"output{i}": t for i, t in enumerate(outputs)},
        {f"x{i}": t for i, t in enumerate(feeds)},
        **how,
    )
    return model, wanted, {f"x{i}": value for i, value in enumerate(feeds.values())}


def evaluated(model: Any, feeds: dict[str, Any]) -> Any:
    """What ONNX's reference evaluator gives; it warns where exponentials overflow."""
    with np.errstate(all="ignore"):
        return reference.ReferenceEvaluator(model).run(None, feeds)


def agree(found: Any, wanted: Any) -> None:
    for value, right in zip(found, wanted, strict=True):
        assert value.shape == right.shape
        assert value.dtype == right.dtype
        np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_row_is_written_or_refused(case: Case) -> None:
    try:
        model, wanted, feeds = saved(case)
    except fb.errors.UnimplementedError:
        return  # Which types must be written is the next test's.
    graph = fb.Graph()
    again = fb.onnx.load(model, graph=graph)
    with fb.Session(graph=graph) as sess:
        names = {again.inputs[name]: value for name, value in feeds.items()}
        agree(sess.run(list(again.outputs.values()), names), wanted)
    if BEYOND_THE_EVALUATOR.keys().isdisjoint((case.name, case.type)):
        agree(evaluated(model, feeds), wanted)


def test_every_type_with_a_rule_has_a_row_that_is_written() -> None:
    written = set()
    for case in ROWS:
        if case.type not in written:
            try:
                saved(case)
            except fb.errors.UnimplementedError:
                continue
            written.add(case.type)
    # Few arrays are in rows, as they cannot be fed; `test_flow.py` writes them in loops.
    assert RULES.keys() - written - arrays.RULES.keys() == UNSIGNED_ONLY


@pytest.mark.parametrize("opset", [18, 19, 23, 25])
@pytest.mark.parametrize("type", ["Convolution", "Mean", "MatMul", "Pad", "Resize", "Split"])
def test_operator_sets(type: str, opset: int) -> None:
    case = next(case for case in ROWS if case.type == type)
    model, wanted, feeds = saved(case, opset=opset)
    assert model.opset_import[0].version == opset
    agree(evaluated(model, feeds), wanted)


@pytest.mark.parametrize("shift", ["left_shift", "right_shift"])
def test_shifts_of_unsigned_integers(shift: str) -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.uint8, [3], name="x")
        model = fb.onnx.save({"y": getattr(fb, shift)(x, fb.constant(2, fb.uint8))}, {"x": x})
    values = np.array([1, 8, 255], np.uint8)
    [found] = reference.ReferenceEvaluator(model).run(None, {"x": values})
    wanted = values << np.uint8(2) if shift == "left_shift" else values >> np.uint8(2)
    np.testing.assert_array_equal(found, wanted)


ALONG_AXES = {
    "All": lambda x, axis: fb.reduce_all(x > 2, axis),
    "Any": lambda x, axis: fb.reduce_any(x > 2, axis, keepdims=True),
    "Cumsum": lambda x, axis: fb.cumsum(x, axis[0], exclusive=True, reverse=True),
    "Deviation": fb.reduce_std,
    "EuclideanNorm": fb.reduce_euclidean_norm,
    "ExpandDims": fb.expand_dims,
    "LogSumExp": fb.reduce_logsumexp,
    "Max": lambda x, axis: fb.reduce_max(x, axis, keepdims=True),
    "Mean": fb.reduce_mean,
    "Min": lambda x, axis: fb.reduce_min(x, axis[0]),
    "Moments": lambda x, axis: fb.concat(fb.nn.moments(x, axis), 0),
    "Prod": fb.reduce_prod,
    "Reverse": fb.reverse,
    "Squeeze": lambda x, axis: fb.squeeze(fb.reshape(x, [2, 1, 3]), axis - axis + 1),
    "Sum": fb.reduce_sum,
    "Variance": lambda x, axis: fb.reduce_variance(x, axis, keepdims=True),
}


@pytest.mark.parametrize("axes", [[0], [1], [-1]], ids=str)
@pytest.mark.parametrize("type", ALONG_AXES)
def test_axes_that_only_the_run_knows(type: str, axes: list[int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with fb.Graph().as_default() as graph:
        feeds = {fb.placeholder(fb.float32, [2, 3]): x, fb.placeholder(fb.int32, [1]): axes}
        y = ALONG_AXES[type](*feeds)
        assert f"{type}At" in {op.type for op in graph.operations}
        with fb.Session() as sess:
            wanted = sess.run(y, feeds)
        model = fb.onnx.save({"y": y}, dict(zip("xa", feeds, strict=True)))
    [found] = evaluated(model, {"x": x, "a": np.array(axes, np.int32)})
    agree([found], [wanted])


def test_no_axes_are_none_and_not_all() -> None:
    with fb.Graph().as_default():
        x, axes = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.int32, [None])
        model = fb.onnx.save({"y": fb.reduce_sum(x, axes, keepdims=True)}, {"x": x, "a": axes})
    values = np.array([1, 2], np.float32)
    [found] = evaluated(model, {"x": values, "a": np.array([], np.int32)})
    np.testing.assert_array_equal(found, values)


def test_every_rule_for_axes_that_only_the_run_knows_is_tried() -> None:
    assert ALONG_AXES.keys() == RUN_AXES.keys()


def test_axes_that_follow_from_a_rank_are_attributes() -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [2, 3])
        last = fb.rank(x) - 1
        y = fb.concat([x, fb.reduce_sum(x, last, keepdims=True)], last)
        model = fb.onnx.save({"y": y}, {"x": x})
    values = np.ones([2, 3], np.float32)
    [found] = evaluated(model, {"x": values})
    np.testing.assert_array_equal(found, [[1, 1, 1, 3]] * 2)


def test_axes_that_onnx_has_as_attributes_are_refused_where_only_the_run_knows_them() -> None:
    with fb.Graph().as_default():
        x, axis = fb.placeholder(fb.float32, [2, 3]), fb.placeholder(fb.int32, [], name="axis")
        with pytest.raises(fb.errors.UnimplementedError, match=r"Concat along .* axis:0"):
            fb.onnx.save({"y": fb.concat([x, x], axis)}, {"x": x, "axis": axis})


@pytest.mark.parametrize("dtype", [fb.int32, fb.int64])
def test_the_loss_of_classes_and_its_gradient(dtype: Any) -> None:
    with fb.Graph().as_default():
        x, labels = fb.placeholder(fb.float32, [None, 3, 4]), fb.placeholder(dtype, [None, 3])
        loss = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
        feeds = {x: np.linspace(-3, 900, 24).reshape(2, 3, 4), labels: [[0, 1, 2], [3, 3, 0]]}
        exchanged([loss, *fb.gradients(loss, x)], feeds, gradients_of=x)


def test_the_loss_of_probabilities_and_its_gradient() -> None:
    with fb.Graph().as_default():
        x, labels = fb.placeholder(fb.float32, [None, 3]), fb.placeholder(fb.float32, [None, 3])
        loss = fb.nn.softmax_cross_entropy_with_logits(labels=labels, logits=x)
        feeds = {x: [[1, 2, -9], [0, 0, -np.inf]], labels: [[0.5, 0.5, 0.5], [0.2, 0.8, 0]]}
        exchanged([loss, *fb.gradients(loss, x)], feeds)


@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("shape", [(None, 4, 5, 3), (2, 4, 5, None)], ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
def test_images_in_another_size_of_batches_of_open_size(
    method: int, shape: Any, align_corners: bool
) -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, shape)
        y = fb.image.resize_images(x, [7, 3], method, align_corners)
        exchanged([y], {x: np.random.default_rng(0).random((2, 4, 5, 3))})


def test_images_of_any_size_come_to_one_size() -> None:
    """What is read has to know it, for its weights."""
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [None, None, None, 3])
        model = fb.onnx.save({"y": fb.image.resize_images(x, [2, 3])}, {"x": x})
        image = np.random.default_rng(0).random((2, 4, 5, 3)).astype(np.float32)
        with fb.Session() as sess:
            wanted = sess.run(fb.image.resize_images(x, [2, 3]), {x: image})
    agree(inference(model).run(None, {"x": image}), [wanted])
    with fb.Graph().as_default():
        again = fb.onnx.load(model, shapes={"x": [None, 4, 5, 3]})
        with fb.Session() as sess:
            agree([sess.run(again.outputs["y"], {again.inputs["x"]: image})], [wanted])
