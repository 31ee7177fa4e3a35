"""ONNX's own test cases of its operators, through `fb.onnx.load`.

The onnx package makes them, model and data, with its reference results. Every case runs.

What draws random numbers is compared in shape and dtype. bfloat16 is compared to two of its steps:
the reference rounds to it at other places.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires
from tests.op_checks import about

onnx = pytest.importorskip("onnx")
pytestmark = requires(module="onnx")

from flowbook.graph.model import dtypes  # noqa: E402
from flowbook.onnx.reading.node import ValueNeededError  # noqa: E402
from flowbook.onnx.reading.operators import OPERATORS, UNSUPPORTED  # noqa: E402

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"}
RANDOM |= {"RandomUniform", "RandomUniformLike"}
WITH_GRAPHS = {"If", "Loop", "Scan"}
BFLOAT16_TOLERANCE = 2.0**-6


def collected() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(collect_testcases(None), key=lambda case: case.name)


def nodes_of(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def types_of(model: Any) -> set[tuple[str, str]]:
    return {(node.domain, node.op_type) for node in nodes_of(model.graph)}


CASES = collected()

# By the type of their first node.
BY_TYPE: dict[str, list[Any]] = {}
for each in CASES:
    BY_TYPE.setdefault(each.model.graph.node[0].op_type, []).append(each)


def array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def loaded(case: Any, graph: fb.Graph) -> Any:
    """The model; inputs whose values decide what is built are fixed where it asks for that."""
    names = [info.name for info in case.model.graph.input]
    given = dict(zip(names, map(array, case.data_sets[0][0]), strict=False))
    values: dict[str, Any] = {}
    while True:
        try:
            return fb.onnx.load(case.model, graph=graph, values=values)
        except ValueNeededError as error:
            if not error.inputs or set(error.inputs) <= values.keys():
                raise
            values |= {name: given[name] for name in error.inputs}


def draws(case: Any) -> bool:
    if {type for _, type in types_of(case.model)} & RANDOM:
        return True
    inputs = case.data_sets[0][0]
    # The third input of Dropout says whether it is training.
    is_dropout = ("", "Dropout") in types_of(case.model)
    return is_dropout and len(inputs) > 2 and bool(array(inputs[2]))


def agree(found: Any, wanted: Any, case: Any) -> None:
    wanted = np.asarray(array(wanted))
    found = np.asarray(found)
    assert found.shape == wanted.shape
    if wanted.dtype.kind in "OSU":
        as_bytes = [s.encode() if isinstance(s, str) else bytes(s) for s in wanted.ravel()]
        assert list(found.ravel()) == as_bytes
        return
    assert found.dtype == wanted.dtype
    if draws(case):
        return
    rtol = case.rtol
    if found.dtype == dtypes.bfloat16.numpy:
        rtol = max(rtol, BFLOAT16_TOLERANCE)
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    if dtypes.as_dtype(found.dtype) in dtypes.SMALL:
        # Not one step apart: they have few values.
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
        return
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=case.atol)


@pytest.mark.parametrize("type", BY_TYPE)
def test_values(type: str) -> None:
    for case in BY_TYPE[type]:
        with about(case.name):
            check_values(case)


def check_values(case: Any) -> None:
    graph = fb.Graph()
    model = loaded(case, graph)
    names = [info.name for info in case.model.graph.input]
    with fb.Session(graph=graph) as sess:
        for inputs, outputs in case.data_sets:
            given = dict(zip(names, map(array, inputs), strict=False))
            feeds = {t: given[name] for name, t in model.inputs.items()}
            found = sess.run(list(model.outputs.values()), feeds)
            for value, wanted in zip(found, outputs, strict=True):
                is_list = isinstance(wanted, list)
                pairs = zip(value, wanted, strict=True) if is_list else [(value, wanted)]
                for part, right in pairs:
                    agree(part, right, case)


def test_the_list_of_unsupported_types_is_sorted_and_has_no_type_that_is_translated() -> None:
    assert list(UNSUPPORTED) == sorted(UNSUPPORTED)
    assert not UNSUPPORTED.keys() & OPERATORS.keys()


def test_every_operator_of_the_newest_opset_is_translated_expanded_or_listed() -> None:
    missing = []
    for schema in onnx.defs.get_all_schemas():
        key = (schema.domain, schema.name)
        is_function = schema.has_function or schema.has_context_dependent_function
        if schema.deprecated or schema.domain != "" or schema.name in WITH_GRAPHS:
            continue
        if key not in OPERATORS and key not in UNSUPPORTED and not is_function:
            missing.append(schema.name)
    assert not missing


def test_no_case_has_a_type_that_is_refused() -> None:
    assert len(CASES) > 1800
    assert not {type for case in CASES for type in types_of(case.model)} & UNSUPPORTED.keys()
