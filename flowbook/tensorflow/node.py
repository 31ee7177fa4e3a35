"""One node of a graph, as the rules that translate it see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import constant_value
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, UnimplementedError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable, read_variable
from flowbook.tensorflow.elements import dtype_of, shape_of, to_array
from flowbook.tensorflow.messages_pb2 import DataType, NodeDef

Array = np.ndarray[Any, Any]


class Everywhere:
    """What stands for a handle that is the same in every branch, and in every loop."""


@dataclass(frozen=True, eq=False)
class Table(Everywhere):
    """What stands for the handle of a table that never changes.

    Attributes:
        keys: [n], sorted.
        values: [n], of these keys.
    """

    keys: Array
    values: Array


@dataclass(frozen=True)
class Reference:
    """What a node gives that stands for a variable: a reference to it, or the handle of a resource.

    Attributes:
        variable: the variable.
        handle: its handle, which may have gone into a branch or a loop.
        is_resource: whether it is the handle of a resource: nothing but a read gives a value of it.
        written: what it was given, by the node that gives this reference; None if by none.
    """

    variable: Variable
    handle: Tensor
    is_resource: bool
    written: Tensor | None = None

    @property
    def typed(self) -> dict[str, Any]:
        """The attributes of operations on the variable."""
        return {"dtype": self.variable.dtype, "shape": self.variable.shape}

    def value(self, name: str | None = None) -> Tensor:
        """The variable's value here, by a read of that name where one is needed."""
        if self.written is not None:
            return self.written
        return read_variable(self.handle, **self.typed, name=name)


def value_of(item: Any) -> Any:
    """What a node computes with: the value of a variable that it is given a reference to."""
    return item.value() if isinstance(item, Reference) else item


class Node:
    """A node: its attributes, and what is known of its inputs.

    Attributes:
        type: the type of operation, such as "Conv2D".
        name: its name in the graph that it comes from.
        scope: the name that the operation of Flowbook gets: that name, as one of a scope.
        inputs: what the nodes before give: tensors, References, Arrays.
        closes: of a NextIteration: what the Merge gave that it leads back to.
        shape_of_loop: of an Enter: what is known of the variable's shape in all iterations.
        shares_arrays: of a TensorArray: whether it changes in place, for gradients made of it.
        table: of a look-up table: what it holds, or why it is not read.
    """

    def __init__(self, proto: NodeDef, inputs: list[Any], scope: str) -> None:
        self.type: str = proto.op
        self.name: str = proto.name
        self.scope = scope
        self.inputs = inputs
        self.closes: Tensor | None = None
        self.shape_of_loop: Shape | None = None
        self.shares_arrays = False
        self.table: Table | str = ""
        self._attributes = proto.attr

    def _attribute(self, name: str, kind: str) -> Any:
        """An attribute; None if it is absent.

        Raises:
            InvalidArgumentError: if it is of another kind.
        """
        if name not in self._attributes:
            return None
        message = self._attributes[name]
        if message.WhichOneof("value") != kind:
            raise InvalidArgumentError(f"{self} has an attribute {name!r} that is no {kind!r}")
        return getattr(message, kind)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        found = self._attribute(name, "b")
        return default if found is None else bool(found)

    def whole(self, name: str, default: int = 0) -> int:
        """An attribute that is a whole number."""
        found = self._attribute(name, "i")
        return default if found is None else int(found)

    def number(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        found = self._attribute(name, "f")
        return default if found is None else float(found)

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is text."""
        found = self._attribute(name, "s")
        return default if found is None else found.decode("utf-8", "replace")

    def ints(self, name: str, default: tuple[int, ...] = ()) -> list[int]:
        """An attribute that is a list of whole numbers."""
        found = self._attribute(name, "list")
        return list(default) if found is None or not found.i else [int(i) for i in found.i]

    def numbers(self, name: str, default: tuple[float, ...] = ()) -> list[float]:
        """An attribute that is a list of numbers."""
        found = self._attribute(name, "list")
        return list(default) if found is None or not found.f else [float(f) for f in found.f]

    def texts(self, name: str) -> list[str]:
        """An attribute that is a list of texts."""
        found = self._attribute(name, "list")
        return [] if found is None else [s.decode("utf-8", "replace") for s in found.s]

    def dtype(self, name: str, default: DType | None = None) -> DType:
        """An attribute that is a dtype."""
        found = self._attribute(name, "type")
        if found is not None:
            return dtype_of(found)
        if default is None:
            raise InvalidArgumentError(f"{self} lacks its attribute {name!r}")
        return default

    def holds_handles(self, name: str) -> bool:
        """Whether an attribute is the dtype of handles, which here are values of no dtype."""
        return bool(self._attribute(name, "type") == DataType.DT_RESOURCE)

    def dtypes(self, name: str) -> list[DType]:
        """An attribute that is a list of dtypes."""
        found = self._attribute(name, "list")
        return [] if found is None else [dtype_of(number) for number in found.type]

    def shape(self, name: str) -> Shape:
        """An attribute that is a shape; an unknown one if it is absent."""
        found = self._attribute(name, "shape")
        return Shape() if found is None else shape_of(found)

    def shapes(self, name: str) -> list[Shape]:
        """An attribute that is a list of shapes."""
        found = self._attribute(name, "list")
        return [] if found is None else [shape_of(each) for each in found.shape]

    def array(self, name: str) -> Array:
        """An attribute that is a tensor."""
        found = self._attribute(name, "tensor")
        if found is None:
            raise InvalidArgumentError(f"{self} lacks its attribute {name!r}")
        return to_array(found)

    def known(self, tensor: Tensor, what: str) -> Array:
        """The value of an input on which depends what is built.

        Raises:
            UnimplementedError: if only a run knows it.
        """
        found = constant_value(tensor)
        if found is None:
            raise UnimplementedError(f"{self} is read only if {what} is known before the run")
        return found

    def __str__(self) -> str:
        return f"the {self.type} node {self.name!r}"


# What the operation of a type becomes: a tensor, a Reference, an operation, or a list of what the
# node gives, None in it for what is not read. It gets the node and its inputs.
Rule = Callable[..., Any]
Rules = dict[str, Rule]


def named(function: Callable[..., Any], **attributes: Callable[[Node], Any]) -> Rule:
    """The rule of a type that is one function here, of the same inputs.

    Args:
        function: it takes `name=`.
        attributes: the values of its keywords, from the node.
    """

    def rule(n: Node, *inputs: Any) -> Any:
        return function(*inputs, name=n.scope, **{k: get(n) for k, get in attributes.items()})

    return rule
