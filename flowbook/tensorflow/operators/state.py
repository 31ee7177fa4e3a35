"""Reads and writes of variables, by references and by handles of resources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.dtypes import int32
from flowbook.graph.ops.arrays import scattering
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.arrays.indexing_nd import gather_nd
from flowbook.graph.ops.basis.constants import no_op
from flowbook.graph.ops.basis.shaping import shape
from flowbook.graph.ops.state import writing
from flowbook.graph.ops.state.variables import assign_op, is_initialized_op
from flowbook.tensorflow.node import Node, Reference, Rule, Rules, value_of


def _write(op_def: OpDef[Any]) -> Rule:
    def rule(n: Node, ref: Reference, *inputs: Any) -> Any:
        new = op_def(ref.handle, *map(value_of, inputs), **ref.typed, name=n.scope)
        return replace(ref, written=new)

    return rule


def _read(n: Node, ref: Reference) -> Any:
    return ref.value(n.scope)


def _initialized(n: Node, ref: Reference) -> Any:
    return is_initialized_op(ref.handle, name=n.scope)


def _gathered(n: Node, ref: Reference, indices: Any) -> Any:
    # The sum of the rows' gradients is sparse where what is gathered from is the variable itself.
    source: Any = ref.variable if ref.handle is ref.variable.handle else ref.value()
    return gather(source, value_of(indices), batch_dims=n.whole("batch_dims"), name=n.scope)


def _counted(n: Node, ref: Reference) -> Any:
    limit = n.whole("limit")
    return writing.count_up_to_op(ref.handle, limit=limit, **ref.typed, name=n.scope)


RULES: Rules = {
    **dict.fromkeys(("CountUpTo", "ResourceCountUpTo"), _counted),
    "DisableCopyOnRead": lambda n, ref: no_op(name=n.scope),
    **dict.fromkeys(("Assign", "AssignVariableOp"), _write(assign_op)),
    **dict.fromkeys(("AssignAdd", "AssignAddVariableOp"), _write(writing.assign_add_op)),
    **dict.fromkeys(("AssignSub", "AssignSubVariableOp"), _write(writing.assign_sub_op)),
    **dict.fromkeys(("IsVariableInitialized", "VarIsInitializedOp"), _initialized),
    **{
        f"{prefix}Scatter{what}": _write(op_def)
        for prefix in ("", "Resource")
        for what, op_def in {
            "Add": writing.scatter_add_op,
            "Div": writing.scatter_div_op,
            "Max": writing.scatter_max_op,
            "Min": writing.scatter_min_op,
            "Mul": writing.scatter_mul_op,
            "NdAdd": scattering.scatter_nd_add_op,
            "NdSub": scattering.scatter_nd_sub_op,
            "NdUpdate": scattering.scatter_nd_update_op,
            "Sub": writing.scatter_sub_op,
            "Update": writing.scatter_update_op,
        }.items()
    },
    "ReadVariableOp": _read,
    "ResourceGather": _gathered,
    "ResourceGatherNd": lambda n, ref, indices: gather_nd(
        ref.value(), value_of(indices), name=n.scope
    ),
    "VariableShape": lambda n, ref: shape(
        ref.value(), out_type=n.dtype("out_type", int32), name=n.scope
    ),
}
