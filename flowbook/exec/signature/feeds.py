"""What is fed: which tensor each key means, and whether its value fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.graph.building.graph import Graph, mixed_graphs
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, OpError
from flowbook.graph.model.origin.called import called, tensor_called
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.model.touch import VARIABLE
from flowbook.graph.ops.state.session_tensors import TensorHandle, takes_handles
from flowbook.graph.ops.state.variables import Variable

# How many different shapes a feed remembers to have accepted.
_REMEMBERED = 64

# Dicts are told at once; other mappings are asked for what they are.
MAPPINGS = (dict, Mapping)


def feedable(graph: Graph, key: Any) -> Tensor:
    """The tensor that a key of the feeds means; a variable's handle means all its reads.

    Raises:
        InvalidTypeError: if it is not a tensor, a variable or a name.
        NotFoundError: if the name is not in the graph.
        InvalidArgumentError: if it belongs to another graph or cannot be fed.
    """
    if isinstance(key, str):
        tensor = _named(graph, key)
    elif isinstance(key, Variable):
        tensor = key.handle
    elif isinstance(key, Tensor):
        tensor = key
    else:
        raise InvalidTypeError(
            f"{key!r} of type {type(key).__name__} cannot be fed",
            hint="the keys of feeds are tensors, variables or their names, sparse tensors, and "
            "tuples of them",
        )
    if tensor.graph is not graph:
        raise mixed_graphs([(tensor.name, tensor.graph), ("this session", graph)])
    if tensor.dtype is resource and tensor.op.op_def.owns != VARIABLE.name:
        raise InvalidArgumentError(
            f"{tensor.name} is a handle, not of a variable, and cannot be fed",
            hint="feed what is read or taken with it",
        )
    if tensor.dtype is variant:
        raise InvalidArgumentError(
            f"{tensor.name} is of the dtype that only loops and branches hand on, and cannot be fed"
        )
    if tensor in graph.members.unfeedable:
        raise InvalidArgumentError(
            f"feeding {tensor_called(tensor)!r} was prevented", hint="see graph.prevent_feeding"
        )
    return tensor


def _named(graph: Graph, name: str) -> Tensor:
    if ":" in name:
        return graph.get_tensor_by_name(name)
    operation = graph.get_operation_by_name(name)
    if not operation.outputs:
        raise InvalidArgumentError(f"operation {name!r} has no output that could be fed")
    return operation.outputs[0]


class Feed:
    """One fed tensor of a signature, which checks and converts the values given for it.

    Attributes:
        tensor: the tensor, or a variable's handle.
    """

    __slots__ = ("_accepted", "_known", "_numpy", "dtype", "shape", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        if tensor.dtype is resource:
            self.dtype = tensor.op.attributes["dtype"]
            self.shape = tensor.op.attributes["shape"]
        else:
            self.dtype, self.shape = tensor.dtype, tensor.shape
        self._known = tensor.shape
        self._numpy = self.dtype.numpy
        self._accepted: set[tuple[int, ...]] = set()

    @property
    def is_current(self) -> bool:
        """Whether no more has become known of the tensor's shape since."""
        return self._known is self.tensor.shape

    def value(self, value: Any) -> Any:
        """The value as an array of the tensor's dtype.

        Raises:
            InvalidTypeError: if the value is symbolic or of another kind.
            InvalidArgumentError: if it does not fit.
        """
        if (
            type(value) is np.ndarray
            and value.dtype is self._numpy
            and value.shape in self._accepted
            and not value.dtype.hasobject
        ):
            return value
        try:
            if isinstance(value, TensorHandle) and takes_handles(self.tensor):
                value = value.handle
            array = to_array(value, self.dtype)
        except OpError as error:
            raise self._refused(error, value) from None
        if array.shape not in self._accepted:
            self._check_shape(array.shape)
            if len(self._accepted) < _REMEMBERED:
                self._accepted.add(array.shape)
        return array

    def _refused(self, error: OpError, value: Any) -> OpError:
        if isinstance(value, Arithmetic):
            return InvalidTypeError(
                f"the value fed for {tensor_called(self.tensor)!r} is itself symbolic: {value!r}",
                hint="fetch it first, and feed the array",
            )
        error.message = f"the value fed for {tensor_called(self.tensor)!r}: {error.message}"
        error.details.append(self._where())
        return error

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        dims = self.shape.dims
        if dims is None or dims == shape or self.shape.is_compatible_with(shape):
            return
        if len(dims) != len(shape):
            wrong = f"it has {counted(len(shape), 'dimension')} instead of {len(dims)}"
        else:
            wrong = "; ".join(
                f"dimension {i} is {given} instead of {wanted}"
                for i, (given, wanted) in enumerate(zip(shape, dims, strict=True))
                if wanted is not None and given != wanted
            )
        error = InvalidArgumentError(
            f"the value fed for {tensor_called(self.tensor)!r} has the shape {list(shape)}, "
            f"which does not fit {self.shape}: {wrong}"
        )
        error.details.append(self._where())
        raise error

    def _where(self) -> str:
        consumers = [called(c) for c in self.tensor.consumers()[:3]]
        used = f", used by {', '.join(map(repr, consumers))}" if consumers else ""
        return f"{tensor_called(self.tensor)} is defined at {self.tensor.op.site}{used}"


def check_mapping(feeds: Any) -> None:
    """Refuse feeds that are no dict, nor anything like it."""
    if feeds is not None and not isinstance(feeds, MAPPINGS):
        raise InvalidTypeError(
            f"feeds is a dict from tensors to values, not {type(feeds).__name__}",
            hint="sess.run(fetches, {x: value})",
        )


def check_no_duplicates(fed: Sequence[Tensor]) -> None:
    """Refuse one tensor fed twice, as by object and by name."""
    if len(set(fed)) < len(fed):
        twice = next(tensor for tensor in fed if fed.count(tensor) > 1)
        raise InvalidArgumentError(f"{twice.name!r} is fed twice")
