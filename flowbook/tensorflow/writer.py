"""The GraphDef that grows while operations are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.names import name_from
from flowbook.graph.model.context import Frame, chain, is_everywhere, runs_in
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import DType, as_dtype, resource, variant
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.tensorflow.elements import number_of, to_shape, to_tensor
from flowbook.tensorflow.messages_pb2 import AttrValue, DataType, GraphDef

Array = np.ndarray[Any, Any]


class Writer:
    """Collects nodes, which rules add to. An output of a node is a text: "node" or "node:1".

    Attributes:
        graph: the GraphDef.
        names: the outputs that stand for tensors.
        nodes: the nodes that stand for operations.
    """

    def __init__(self) -> None:
        self.graph = GraphDef()
        self.graph.versions.producer = 27
        self.names: dict[Tensor, str] = {}
        self.nodes: dict[Operation, str] = {}
        self._taken: set[str] = set()
        self._entered: dict[tuple[str, Frame], str] = {}
        self._dtypes: dict[str, DType] = {}  # Of what stands for variables' values.
        self._op: Operation | None = None

    def reserve(self, operations: Sequence[Operation]) -> None:
        """Have nodes called as their operations are, before others take these names."""
        for op in operations:
            self.nodes[op] = self.fresh(name_from(op.name))

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        found, count = name, 0
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def begin(self, op: Operation, inputs: Sequence[Tensor]) -> list[str]:
        """Have what is added from now on belong to an operation; the outputs that it takes."""
        self._op = op
        return [self.taken(t) for t in inputs]

    def placeholder(self, label: str, tensor: Tensor) -> None:
        """Have a node that is fed stand for a tensor."""
        self._op = None
        self._add("Placeholder", label, [], {"dtype": tensor.dtype, "shape": tensor.shape})
        self.names[tensor] = label

    def stored(self, name: str, value: Array) -> str:
        """The output of a constant outside of all loops."""
        self._op = None
        label = self.fresh(name_from(name))
        self._dtypes[label] = as_dtype(value.dtype)
        self._add("Const", label, [], {"value": value, "dtype": self._dtypes[label]})
        return label

    def taken(self, tensor: Tensor) -> str:
        """The output that stands for a tensor, where the operation runs that is being written.

        What is there in every frame enters the loops that the operation is in.
        """
        name = self.names[tensor]
        if not is_everywhere(tensor.op):
            return name
        return self.brought(name, self._dtypes.get(name, tensor.dtype))

    def brought(self, name: str, dtype: DType, origin: Operation | None = None) -> str:
        """An output taken into the loops that the operation is in, but those of its origin.

        Args:
            name: the output.
            dtype: its dtype.
            origin: what gives it; None of what is outside of all loops.
        """
        assert self._op is not None
        outer = [] if origin is None else list(chain(runs_in(origin)))
        around = [c for c in chain(runs_in(self._op)) if isinstance(c, Frame) and c not in outer]
        for frame in reversed(around):
            key = (name, frame)
            if key not in self._entered:
                label = self.fresh(f"{name.replace(':', '_')}/Enter")
                self._add("Enter", label, [name], {"T": dtype, **loop(frame, is_constant=True)})
                self._entered[key] = label
            name = self._entered[key]
        return name

    def constant(self, value: Any, dtype: DType | None = None) -> str:
        """The output of another constant."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype.numpy)
        label = self.fresh(f"{self._label()}/constant")
        self._add("Const", label, [], {"value": array, "dtype": as_dtype(array.dtype)})
        return self.brought(label, as_dtype(array.dtype))

    def integers(self, values: Any) -> str:
        """The output of a vector, or of a scalar, of int32."""
        return self.constant(np.array(values, np.int32))

    def node(self, type: str, inputs: Sequence[str], /, **attributes: Any) -> str:
        """Add a node on the way to what an operation gives; its first output."""
        label = self.fresh(f"{self._label()}/{type}")
        return self._add(type, label, inputs, attributes, waits=True)

    def last(self, type: str, inputs: Sequence[str], /, **attributes: Any) -> list[str]:
        """Add the node that stands for the operation itself; its outputs, one for each."""
        assert self._op is not None
        self._add(type, self.nodes[self._op], inputs, attributes, waits=True)
        return [self._output(i) for i in range(len(self._op.outputs))]

    def several(self, outputs: Sequence[str]) -> list[str]:
        """Have the node that stands for the operation give what several others give."""
        assert self._op is not None
        return self.last("IdentityN", outputs, T=[t.dtype for t in self._op.outputs])

    def _output(self, port: int) -> str:
        return f"{self._label()}:{port}" if port else self._label()

    def _label(self) -> str:
        assert self._op is not None
        return self.nodes[self._op]

    def _add(
        self, type: str, label: str, inputs: Sequence[str], attributes: Any, waits: bool = False
    ) -> str:
        """Add a node, which waits for what the operation waits for, or is there before."""
        node = self.graph.node.add(name=label, op=type)
        node.input.extend(inputs)
        if self._op is not None:
            node.device = _device(self._op.device)
            if self._op.colocation:
                beside = [f"loc:@{self.nodes[o]}" for o in self._op.colocation if o in self.nodes]
                node.attr["_class"].CopyFrom(attribute(beside))
            if waits:
                waited = [f"^{self.nodes[each]}" for each in self._op.control_inputs]
                node.input.extend(dict.fromkeys(waited))
        for name, value in attributes.items():
            if value is not None:
                node.attr[name].CopyFrom(attribute(value))
        return label


def loop(frame: Frame, is_constant: bool) -> dict[str, Any]:
    """The attributes of an Enter."""
    return {
        "frame_name": frame.name,
        "is_constant": is_constant,
        "parallel_iterations": frame.parallel_iterations,
    }


def attribute(value: Any) -> AttrValue:
    """An attribute of a node.

    Raises:
        UnimplementedError: if nodes have none of the kind.
    """
    if isinstance(value, bool):
        return AttrValue(b=value)
    if isinstance(value, int | np.integer):
        return AttrValue(i=int(value))
    if isinstance(value, float):
        return AttrValue(f=value)
    if isinstance(value, str):
        return AttrValue(s=value.encode())
    if isinstance(value, DType):
        return AttrValue(type=number_of_any(value))
    if isinstance(value, Shape):
        return AttrValue(shape=to_shape(value))
    if isinstance(value, np.ndarray):
        return AttrValue(tensor=to_tensor(value))
    if isinstance(value, list | tuple):
        listed = AttrValue.ListValue()
        if value and isinstance(value[0], DType):
            listed.type.extend(number_of_any(v) for v in value)
        elif value and isinstance(value[0], str):
            listed.s.extend(v.encode() for v in value)
        else:
            listed.i.extend(int(v) for v in value)
        return AttrValue(list=listed)
    raise UnimplementedError(f"TensorFlow has no attributes such as {value!r:.80}")


def number_of_any(dtype: DType) -> Any:
    """The number of a dtype, those of handles included."""
    if dtype is variant:
        return DataType.DT_FLOAT  # What an array of tensors flows as.
    return DataType.DT_RESOURCE if dtype is resource else number_of(dtype)


def _device(name: str) -> str:
    """A device as TensorFlow calls it: kinds in capital letters."""
    spec = DeviceSpec.parse(name)
    parts = [f"/job:{spec.job}" if spec.job else ""]
    parts.append("" if spec.task is None else f"/task:{spec.task}")
    if spec.kind:
        parts.append(f"/device:{spec.kind.upper()}:{'*' if spec.index is None else spec.index}")
    return "".join(parts)
