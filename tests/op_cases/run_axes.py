"""Operations whose axis only the run knows: the rows of those that have it as an attribute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant
from tests.op_cases.case import Case, converted, natural


def with_axis_input(case: Case) -> Case | None:
    """A row with the axis as its last input; None where the row is not about one operation."""
    op_def = op_named(case.type)
    if op_def.with_axis_input is None:
        return None
    name = op_def.with_axis_input.inputs[-1].name

    def build(*tensors: Tensor) -> Any:
        fixed = _outputs(case.build(*tensors[:-1]))
        op = fixed[0].op
        given = {**op.attributes, name: tensors[-1]}
        return _outputs(op_def(*op_def.grouped(op.inputs, op.attributes), **given))[: len(fixed)]

    with Graph().as_default():
        outputs = _outputs(case.build(*map(constant, converted(case, case.inputs, natural(case)))))
    op = outputs[0].op
    if {output.op for output in outputs} != {op} or op.type != case.type:
        return None
    axis = op.attributes[name]
    if axis is None:
        return None
    known = np.array(axis, np.int32)
    return replace(
        case,
        type=op_def.with_axis_input.type,
        build=build,
        inputs=[*case.inputs, known],
        reference=lambda *inputs: case.reference(*inputs[:-1]),
        empty=None if case.empty is None else [*case.empty, known],
        special=None if case.special is None else [*case.special, known],
        by_value=True,
        tensorflow=None,
    )


def _outputs(built: Any) -> list[Tensor]:
    return list(built) if isinstance(built, list | tuple) else [built]
