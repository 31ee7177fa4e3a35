"""Marks on the penalties of a model's weights, so that a loss can be asked for them."""

from __future__ import annotations

from flowbook.graph.definition.inference import same_as_input
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.ancestors import ancestors
from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE

penalty_op = OpDef(
    "Penalty",
    "input: T -> output: T",
    T=FLOATS,
    infer=same_as_input,
    kernel=lambda xp, x: x,
    grad=lambda op, dy: dy,
    aliases={0: 0},
    only_moves=True,
    doc="A scalar to add to the loss, which `fb.layers.regularization_loss` finds by this mark.",
)


def penalties_of(loss: Tensor) -> list[Tensor]:
    """The marked penalties of variables that a loss depends on, in the order of construction."""
    operations = ancestors(loss.op, by_control=False)
    handles = {op for op in operations if op.op_def.owns == VARIABLE.name}
    return [
        op.outputs[0]
        for op in loss.graph.operations
        if op.op_def is penalty_op
        and op not in operations
        and handles & ancestors(op, by_control=False)
    ]
