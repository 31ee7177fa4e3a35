"""Rules for writing variables: those of TensorFlow that are resources."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.arrays import gathered
from flowbook.tensorflow.written.types import Rules, same


def _variable(w: Writer, op: Operation) -> Any:
    how = {k: op.attributes[k] for k in ("dtype", "shape")}
    return w.last("VarHandleOp", [], **how, shared_name=w.nodes[op], container=op.container)


def _write(type: str, *kinds: tuple[str, int]) -> Any:
    """A write, and a read after it: the write of a resource gives nothing itself."""

    def rule(w: Writer, op: Operation, handle: str, *inputs: str) -> Any:
        dtype = op.attributes["dtype"]
        indices = {name: op.inputs[i].dtype for name, i in kinds}
        wrote = w.node(type, [handle, *inputs], dtype=dtype, **indices)
        return w.last("ReadVariableOp", [handle, f"^{wrote}"], dtype=dtype)

    return rule


def _assigned(w: Writer, op: Operation, handle: str, value: str) -> Any:
    if not op.attributes["is_initializer"]:
        return _write("AssignVariableOp")(w, op, handle, value)
    # It has the name by which TensorFlow's own readers know what initialises the variable.
    dtype = op.attributes["dtype"]
    wrote = w.last("AssignVariableOp", [handle, value], dtype=dtype)[0]
    if not op.graph.consumers(op.outputs[0]):
        return wrote
    return w.node("ReadVariableOp", [handle, f"^{wrote}"], dtype=dtype)


def _gathered(w: Writer, op: Operation, handle: str, indices: str) -> Any:
    how = op.attributes
    if how["axis"]:
        raise UnimplementedError("a gather along another axis than the first of a variable")
    given = {"dtype": how["dtype"], "Tindices": op.inputs[1].dtype}
    return w.last("ResourceGather", [handle, indices], batch_dims=how["batch_dims"], **given)


def _frozen_read(w: Writer, op: Operation, value: str) -> Any:
    """A read of a variable whose value is a constant."""
    return w.last("Identity", [value], T=op.attributes["dtype"])


def _frozen_gather(w: Writer, op: Operation, value: str, indices: str) -> Any:
    """Rows of a variable whose value is a constant."""
    return gathered(w, op, value, indices, op.attributes["dtype"])


_ROWS = (("Tindices", 1),)

RULES: Rules = {
    **{
        f"Scatter{what}": _write(f"ResourceScatter{what}", *_ROWS)
        for what in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
    },
    "Assign": _assigned,
    "AssignAdd": _write("AssignAddVariableOp"),
    "AssignSub": _write("AssignSubVariableOp"),
    "IsInitialized": same("VarIsInitializedOp", dtypes={}),
    "ReadVariable": same("ReadVariableOp", "dtype", dtypes={}),
    "Variable": _variable,
    "VariableGather": _gathered,
}

# Where variables are constants of their values.
FROZEN: Rules = {"ReadVariable": _frozen_read, "VariableGather": _frozen_gather}
