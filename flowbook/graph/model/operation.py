"""An operation: a node of the graph (white paper, section 2).

Invariant: an operation does not change after it joined its graph. Five things are about it rather
than part of it and may change: its `site`, when a re-run cell builds the same operation from
another line; its name when it is retired (`name@generation`); the `variable` that stands for the
handle which it produces; of a loop's Merge the NextIteration that closes it; and of a function, or
of its call, what was found of its `inner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from flowbook.graph.model.attributes import same_attributes
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.tensor import Tensor

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.definition.op_def import OpDef
    from flowbook.graph.model.context import Context
    from flowbook.graph.model.dtypes import DType
    from flowbook.graph.model.origin.site import Site
    from flowbook.graph.model.resource_key import ResourceKey
    from flowbook.graph.model.shape import Shape

__all__ = ["Operation"]


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "colocation_groups": "operation.colocation",
    "get_attr": "operation.attributes[name]",
    "node_def": "operation.attributes, operation.inputs and operation.control_inputs",
    "run": "sess.run(operation, feeds)",
    "traceback": "operation.site",
    "values": "operation.outputs",
}


@elsewhere(_ELSEWHERE)
class Operation:
    """A node of a graph.

    Attributes:
        name: unique in its graph.
        op_def: what it computes and how.
        inputs: the tensors that it takes.
        outputs: the tensors that it produces.
        dtypes: of the outputs.
        shapes: what is known of the outputs' shapes.
        control_inputs: operations that must end before it starts.
        attributes: values fixed at construction, by name; a read-only view.
        settled_by: tensors whose values attributes were given, such as a constant for an axis; of
            a constant also those whose known shapes determine it. None of an operation that owns a
            resource: it keeps that while its attributes stay the same.
        device: the requested device, in full or in part, or an empty string.
        colocation: operations whose device it must share.
        container: the container of its resource, if it has one; empty means the session's.
        key: the key of its resource, if it owns one.
        context: where its outputs are in the control flow; None outside of all loops and branches.
            Those of a Switch are each in a branch of that (`context.context_of`).
        closes: of a NextIteration the Merge that takes its output in the next iteration. It is no
            input: inputs are built before what takes them.
        closed_by: of a Merge the latest operation that closes it, or None.
        site: where it was defined.
        graph: the graph that it belongs to.
        id: its place in the order of construction.
        retired: whether a redefinition by its notebook cell took it out of the graph.
        variable: the variable whose handle it produces, or None. It lives as long as its handle:
            a retired one can still be initialised.
        inner: of a function the body, and of a call of one the copy that it stands for, once
            someone has asked for it (`flowbook.graph.functions`).
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "closed_by",
        "closes",
        "colocation",
        "container",
        "context",
        "control_inputs",
        "device",
        "dtypes",
        "graph",
        "id",
        "inner",
        "inputs",
        "key",
        "name",
        "op_def",
        "outputs",
        "retired",
        "settled_by",
        "shapes",
        "site",
        "variable",
    )

    def __init__(
        self,
        graph: Graph,
        op_def: OpDef[Any],
        inputs: tuple[Tensor, ...],
        attributes: Mapping[str, Any],
        dtypes: tuple[DType, ...],
        shapes: tuple[Shape, ...],
        site: Site,
    ) -> None:
        self.graph = graph
        self.op_def = op_def
        self.inputs = inputs
        self.attributes = attributes
        self.dtypes = dtypes
        self.shapes = shapes
        self.outputs: tuple[Tensor, ...]
        if len(dtypes) == 1:  # The common case, in half the time.
            self.outputs = (Tensor(self, 0, dtypes[0], shapes[0]),)
        else:
            self.outputs = tuple(map(Tensor, repeat(self), count(), dtypes, shapes))
        self.site = site
        self.retired = False
        self.id = -1
        self.name = ""
        self.control_inputs: tuple[Operation, ...] = ()
        self.settled_by: tuple[Tensor, ...] = ()
        self.device = ""
        self.colocation: tuple[Operation, ...] = ()
        self.container = ""
        self.context: Context | None = None
        self.closes: Operation | None = None
        self.closed_by: Operation | None = None
        self.key: ResourceKey | None = None
        self.variable: Any = None
        self.inner: Any = None

    @property
    def type(self) -> str:
        """The name of its operation type, such as "MatMul"."""
        return self.op_def.type

    def is_same_as(self, other: Operation) -> bool:
        """Whether both mean the same: type, inputs, control inputs, attributes, constraints."""
        return (
            self.op_def is other.op_def
            and self.inputs == other.inputs
            and self.control_inputs == other.control_inputs
            and self.settled_by == other.settled_by
            and self.closes is other.closes
            and self.context == other.context
            and self.device == other.device
            and self.container == other.container
            and self.colocation == other.colocation
            and same_attributes(self.attributes, other.attributes)
        )

    def replace_inputs(self, others: Mapping[Operation, Operation]) -> None:
        """Refer to other operations that mean the same, before it joins its graph."""
        self.inputs = tuple([others.get(t.op, t.op).outputs[t.index] for t in self.inputs])
        self.settled_by = tuple([others.get(t.op, t.op).outputs[t.index] for t in self.settled_by])
        self.control_inputs = tuple([others.get(o, o) for o in self.control_inputs])
        self.colocation = tuple([others.get(o, o) for o in self.colocation])
        if self.closes is not None:
            self.closes = others.get(self.closes, self.closes)

    def put_in_scope(self, prefix: str) -> None:
        """Let the frame that it enters have its name in a name scope, before it joins its graph."""
        name = prefix + self.attributes["frame_name"]
        self.attributes = MappingProxyType({**self.attributes, "frame_name": name})

    def __repr__(self) -> str:
        return f"<Operation '{self.name}' type={self.type}>"
