"""There and back: a model as onnxruntime runs it, and as it is read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def exchanged(
    fetches: Any,
    feeds: dict[fb.Tensor, Any],
    *others: dict[fb.Tensor, Any],
    gradients_of: fb.Tensor | None = None,
) -> Any:
    """The model of tensors, which gives what the session gives: by onnxruntime, and read.

    Args:
        fetches: the tensors.
        feeds: what they are computed from.
        others: other values of that.
        gradients_of: an input; what is read has the same gradients by it.
    """
    labels = {t: f"x{i}" for i, t in enumerate(feeds)}
    made = fb.onnx.save(
        {f"y{i}": t for i, t in enumerate(fetches)}, {n: t for t, n in labels.items()}
    )
    again = fb.onnx.load(made, graph=fb.Graph())
    runtime = inference(made)
    outputs = list(again.outputs.values())
    slopes, read_slopes = [], []
    if gradients_of is not None:
        slopes = _slopes(fetches, gradients_of)
        read_slopes = _slopes(outputs, again.inputs[labels[gradients_of]])
    for given_values in (feeds, *others):
        arrays = {labels[t]: np.asarray(v, t.dtype.numpy) for t, v in given_values.items()}
        with fb.Session(graph=fetches[0].graph) as sess:
            wanted = sess.run([*fetches, *slopes], given_values)
        with fb.Session(graph=again.graph) as sess:
            read = sess.run(
                [*outputs, *read_slopes], {again.inputs[n]: v for n, v in arrays.items()}
            )
        _agree(runtime.run(None, arrays), wanted[: len(outputs)])
        _agree(read, wanted)
    return made


def _slopes(outputs: Any, x: fb.Tensor) -> list[Any]:
    with x.graph.as_default():
        slopes = fb.gradients([y for y in outputs if y.dtype.is_floating], x)
        return [fb.convert_to_tensor(slope) for slope in slopes]


def _agree(found: Any, wanted: Any) -> None:
    for one, right in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-6)


def inference(made: Any) -> Any:
    """A model in onnxruntime; ONNX's own evaluator does not stack what a Loop collects."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(made.SerializeToString(), options)


def types(graph: Any) -> list[str]:
    """The types of nodes, with those of the graphs that they hold."""
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for attribute in node.attribute:
            found += types(attribute.g)
    return found
