"""A kernel beside an expression means the same, of few elements and of many."""

from typing import Any

import numpy as np
import pytest

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.registry import op_definitions

BOTH = {
    name: op_def
    for name, op_def in op_definitions().items()
    if op_def.expression is not None and not op_def.is_inlined and op_def.is_builtin
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e30, -1e30, 1.0, -1.0, 6.0, 7.0]


def inputs(op_def: OpDef, size: int) -> list[Any]:
    random = np.random.default_rng(7)
    found: list[Any] = []
    for place, argument in enumerate(op_def.inputs):
        values = (random.standard_normal(size) * 3).astype(np.float32)
        values[: len(SPECIAL)] = np.roll(SPECIAL, place)
        found.append(values > 0 if argument.token == "bool" else values)
    return found


@pytest.mark.parametrize("size", [12, 20_000])
@pytest.mark.parametrize("name", BOTH)
def test_kernel_and_expression_agree(name: str, size: int) -> None:
    op_def = BOTH[name]
    given = inputs(op_def, size)
    assert op_def.expression is not None
    assert op_def.kernel is not None
    attributes = {key: op_def.attributes[key] for key in op_def.kernel_attributes(op_def.kernel)}
    with np.errstate(all="ignore"):
        found = op_def.kernel(np, *given, **attributes)
        expected = op_def.expression.kernel()(np, *given, *op_def.attributes.values())
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_there_are_such_kernels() -> None:
    assert {"Relu", "Relu6", "Where"} <= BOTH.keys()
