"""One node of a model, as the functions that translate it see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, UnimplementedError
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import dtype_of, to_array
from flowbook.onnx.package import onnx
from flowbook.onnx.reading.budget import Budget
from flowbook.onnx.sums import Sums, fixed
from flowbook.onnx.values import Values

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors, whose number is known."""

    tensors: tuple[Any, ...]


class Nothing(Enum):
    """An optional value that is not there."""

    NOTHING = "nothing"


NOTHING = Nothing.NOTHING

# What nodes compute from.
Value = Tensor | TensorSequence | Nothing


class ValueNeededError(UnimplementedError):
    """A node is built only for values of an input that a run alone would know.

    Attributes:
        inputs: the names of the model's inputs that determine it; fixed, they make it known.
    """

    def __init__(self, inputs: list[str], message: str) -> None:
        given = ", ".join(f"{name!r}: ..." for name in inputs)
        hint = f"fix what determines it: load(..., values={{{given}}})" if inputs else None
        super().__init__(message, hint=hint)
        self.inputs = inputs


class Node:
    """A node of a model: its attributes, its inputs and what is known of their values.

    Attributes:
        type: the operator's type, such as "Conv".
        domain: of the operator; "" for ONNX's own.
        name: the node's, perhaps "".
        opset: the version of the domain's operator set that the model uses.
        inputs: the tensors, or sequences of them; None for optional ones that are absent.
    """

    def __init__(
        self,
        proto: Any,
        inputs: Sequence[Value | None],
        opset: int,
        values: Values,
        budget: Budget,
    ) -> None:
        self.type: str = proto.op_type
        self.domain: str = proto.domain
        self.name: str = proto.name
        self.opset = opset
        self.inputs: list[Any] = list(inputs)
        self._names = list(proto.input)
        self._outputs = list(proto.output)
        self._attributes = {a.name: a for a in proto.attribute}
        self._values = values
        self._budget = budget

    def spend(self, pieces: int) -> None:
        """Take so many pieces that are built one by one from what the model may have.

        Raises:
            ResourceExhaustedError: if fewer are left.
        """
        self._budget.spend(pieces, str(self))

    def compute(self, elements: int) -> None:
        """Take so many elements of what is computed now from what the model may have.

        Raises:
            ResourceExhaustedError: if fewer are left.
        """
        self._budget.compute(elements, str(self))

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute: a number, str, list of those, or array; the default if it is absent."""
        proto = self._attributes.get(name)
        if proto is None:
            return default
        kinds = proto.AttributeType
        if proto.type == kinds.TENSOR:
            return to_array(proto.t)
        if proto.type == kinds.STRING:
            return proto.s.decode("utf-8", "replace")
        if proto.type == kinds.STRINGS:
            return [s.decode("utf-8", "replace") for s in proto.strings]
        if proto.type in (kinds.FLOAT, kinds.INT, kinds.FLOATS, kinds.INTS):
            value = onnx("helper").get_attribute_value(proto)
            return value if proto.type in (kinds.FLOAT, kinds.INT) else list(value)
        raise UnimplementedError(f"{self} has an attribute {name!r} of kind {proto.type}")

    def need(self, name: str) -> Any:
        """An attribute that must be there."""
        value = self.get(name)
        if value is None:
            raise InvalidArgumentError(f"{self} lacks its attribute {name!r}")
        return value

    def dtype(self, name: str, default: int = 1) -> DType:
        """The dtype that an attribute names by ONNX's number."""
        return dtype_of(self.get(name, default))

    def wants(self, output: int) -> bool:
        """Whether the model names an output of the node, and so may use it."""
        return output < len(self._outputs) and self._outputs[output] != ""

    @property
    def output_count(self) -> int:
        """How many outputs the node names."""
        return len(self._outputs)

    def known(self, tensor: Tensor | None) -> Array | None:
        """A tensor's value, if the graph alone determines it."""
        return None if tensor is None else self._values.of(tensor)

    def sizes(self, position: int, tensor: Tensor, axes: Sequence[int]) -> list[int | None] | None:
        """The new sizes of some axes of a tensor, as an input holds them.

        Returns:
            The sizes, None for those of axes that keep theirs; None if the input is absent.

        Raises:
            ValueNeededError: if only a run knows a size that changes.
        """
        if position < len(self.inputs) and self.inputs[position] is not None:
            sums = Sums(self._values)
            old = [sums.size(tensor, axis) for axis in axes]
            new = sums.each(self.inputs[position]) or []
            if len(new) == len(old):
                found = [None if n == o else fixed(n) for n, o in zip(new, old, strict=True)]
                if all(n == o or f is not None for n, o, f in zip(new, old, found, strict=True)):
                    return found
        value = self.value(position)
        return None if value is None else [int(n) for n in value.reshape(-1)]

    def decides(self, position: int) -> bool:
        """Whether what is built may depend on the value of an input, as it is known."""
        return self._values.deciding(self.inputs[position]) is not None

    def holds(self, tensor: Tensor) -> bool:
        """Whether a condition is known to be true."""
        found = self.known(tensor)
        return found is not None and bool(found.all())

    def truth(self, position: int) -> bool:
        """The single truth that an input holds.

        Raises:
            ValueNeededError: if only a run knows it.
        """
        return bool(self.number(position))

    def value(self, position: int) -> Array | None:
        """The value of an input, which what is built depends on; None if it is absent.

        Raises:
            ValueNeededError: if only a run knows it.
        """
        if position >= len(self.inputs) or self.inputs[position] is None:
            return None
        tensor = self.inputs[position]
        assert tensor is not None
        found = self._values.deciding(tensor)
        if found is None:
            raise ValueNeededError(
                self._values.determining(tensor),
                f"{self} needs the value of {self._names[position]!r} before the run: "
                "it decides what is built",
            )
        return found

    def ints(self, name: str, position: int, since: int) -> list[int] | None:
        """Whole numbers that are an attribute in opsets before `since`, an input after."""
        if self.opset < since:
            found = self.get(name)
            return None if found is None else [int(i) for i in np.ravel(found)]
        value = self.value(position)
        return None if value is None else [int(i) for i in np.ravel(value)]

    def number(self, position: int) -> Any:
        """The single number that an input holds, or None if it is absent."""
        value = self.value(position)
        return None if value is None else value.reshape(-1)[0].item()

    def rank(self, tensor: Tensor) -> int:
        """The rank of a tensor.

        Raises:
            UnimplementedError: if it is not known.
        """
        if tensor.shape.rank is None:
            shaping = self._values.shaping(tensor)
            if shaping:
                raise ValueNeededError(shaping, f"{self} needs the rank of {tensor.name}")
            raise UnimplementedError(f"{self} needs the rank of {tensor.name}, which is not known")
        return tensor.shape.rank

    def dims(self, tensor: Tensor, first: int = 0) -> list[int]:
        """The dimensions of a tensor from one on, all known.

        Raises:
            UnimplementedError: if one is not known.
        """
        return [self.size(tensor, axis) for axis in range(first, self.rank(tensor))]

    def size(self, tensor: Tensor, axis: int) -> int:
        """A dimension of a tensor.

        Raises:
            UnimplementedError: if it is not known.
        """
        self.rank(tensor)
        found: int | None = tensor.shape[axis]
        if found is None:
            shaping = self._values.shaping(tensor)
            what = f"{self} needs dimension {axis} of {tensor.name}, of whose shape {tensor.shape}"
            if shaping:
                raise ValueNeededError(shaping, f"{what} is known")
            raise UnimplementedError(
                f"{what} is known",
                hint="give the model's inputs their sizes: load(..., shapes={input: [...]})",
            )
        return found

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front.

        Raises:
            InvalidArgumentError: if there is none such.
        """
        if not -rank <= axis < max(rank, 1):
            raise InvalidArgumentError(f"{self} has the axis {axis}, of a tensor of rank {rank}")
        return axis % rank if rank else 0

    def along(self, tensor: Tensor, default: int) -> int:
        """The axis of a tensor that the attribute `axis` names, counted from the front.

        Raises:
            InvalidArgumentError: if there is none such.
            UnimplementedError: if the rank is not known.
        """
        return self.axis(self.get("axis", default), self.rank(tensor))

    def refuse(self, what: str) -> UnimplementedError:
        """The error for a form of the operator that has no translation."""
        return UnimplementedError(f"{self}: {what} is not supported")

    def __str__(self) -> str:
        return f"the ONNX node {self.type}" + (f" {self.name!r}" if self.name else "")
