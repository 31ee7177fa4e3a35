"""From the arguments of a call to tensors: signatures, dtypes, constants from Python values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from flowbook.graph.building.flow import Flow
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.packing import packed
from flowbook.graph.model import dtypes, registry
from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor

if TYPE_CHECKING:
    from flowbook.graph.definition.op_def import OpDef


def value_of(tensor: Tensor) -> Tensor:
    """A tensor that has a value: a variable's handle, as looked up by its name, stands for that."""
    variable = tensor.op.variable if tensor.dtype is dtypes.resource else None
    return tensor if variable is None else variable.as_tensor(False)


class Argument:
    """One input or output of a signature."""

    __slots__ = ("is_list", "is_mixed", "name", "token")

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"\s*(\w+)\s*:\s*(?:(N\s*\*|\*)\s*)?(\w+)\s*", text)
        if match is None:
            raise InvalidArgumentError(
                f"{text!r} in a signature is not 'name: dtype'", hint="see help(fb.OpDef)"
            )
        self.name, kind, self.token = match.groups()
        self.is_mixed = kind == "*"
        self.is_list = kind is not None


class Resolver:
    """Finds dtypes by a signature and turns values into tensors of them."""

    def __init__(
        self,
        op_def: OpDef[Any],
        graph: Graph,
        attributes: Mapping[str, Any],
        site: sites.Site,
        flow: Flow | None,
    ) -> None:
        self.op_def = op_def
        self.graph = graph
        self.attributes = attributes
        self.site = site
        self.flow = flow
        self.bound: dict[str, tuple[DType, str]] = {}
        self.pending: list[tuple[int, Operation, str]] = []
        self.position = 0

    def inputs(self, args: Sequence[Any]) -> list[Any]:
        """Bind type variables from the tensors first, so that values can take their dtypes."""
        arguments = self.op_def.inputs
        listed = [self._as_list(a, v) for a, v in zip(arguments, args, strict=True)]
        listed = [
            [self._as_tensor(a, v) for v in values]
            for a, values in zip(arguments, listed, strict=True)
        ]
        for argument, values in zip(arguments, listed, strict=True):
            for value in values:
                if isinstance(value, Tensor):
                    self._check(argument, value.dtype, value.name)
        result = []
        for argument, values in zip(arguments, listed, strict=True):
            tensors = [self._tensor(argument, i, v) for i, v in enumerate(values)]
            result.append(tensors if argument.is_list else tensors[0])
        return result

    def _as_tensor(self, argument: Argument, value: Any) -> Any:
        """A tensor, if something stands for one; a value as it is."""
        is_handle = argument.token == "resource"
        if hasattr(value, "as_tensor"):
            value = value.as_tensor(is_handle)
        elif isinstance(value, Tensor):
            value = value if is_handle else value_of(value)
        else:
            value = packed(value)
        if self.flow is not None and isinstance(value, Tensor):
            return self.flow.captured(value)
        return value

    def _as_list(self, argument: Argument, value: Any) -> list[Any]:
        if not argument.is_list:
            return [value]
        if not isinstance(value, list | tuple):
            raise InvalidTypeError(f"{argument.name!r} is a list of tensors, not {value!r}")
        return list(value)

    def _check(self, argument: Argument, dtype: DType, what: str) -> None:
        if argument.is_mixed:
            return
        token = argument.token
        allowed = self._wanted(token)
        if isinstance(allowed, DType):
            if dtype is not allowed:
                raise InvalidTypeError(
                    f"{argument.name!r} is {allowed.name}, but {what} is {dtype.name}",
                    hint=f"convert it: fb.cast(x, fb.{allowed.name})",
                )
            return
        if dtype not in allowed:
            names = ", ".join(t.name for t in allowed)
            hint = None
            if dtypes.float32 in allowed and (dtype.is_integer or dtype is dtypes.bool):
                hint = "convert it: fb.cast(x, fb.float32)"
            elif dtype in dtypes.SMALL:
                hint = _to_compute_with(dtype, allowed)
            elif dtype is dtypes.string:
                hint = self.op_def.for_strings
            raise InvalidTypeError(
                f"{argument.name!r} is one of {names}, but {what} is {dtype.name}", hint=hint
            )
        known = self.bound.get(token)
        if known is None:
            self.bound[token] = (dtype, what)
        elif known[0] is not dtype:
            raise InvalidTypeError(
                f"{known[1]} is {known[0].name}, but {what} is {dtype.name}: "
                "dtypes are never converted silently",
                hint=_conversion(known[0], dtype),
            )

    def _wanted(self, token: str) -> Any:
        """The dtype that a token stands for, or the tuple of those that it admits."""
        if token in self.op_def.type_variables:
            return self.op_def.type_variables[token]
        if token in dtypes.BY_NAME:
            return dtypes.BY_NAME[token]
        return dtypes.as_dtype(self.attributes[token])

    def _tensor(self, argument: Argument, index: int, value: Any) -> Tensor:
        position, self.position = self.position, self.position + 1
        if isinstance(value, Tensor):
            return value
        wanted: DType | None = None
        if not argument.is_mixed:
            admitted = self._wanted(argument.token)
            bound = self.bound.get(argument.token)
            wanted = admitted if isinstance(admitted, DType) else bound[0] if bound else None
        array = self._array(argument, value, wanted)
        constant = constant_operation(self.graph, array, self.site)
        suffix = f"{argument.name}_{index}" if argument.is_list else argument.name
        self.pending.append((position, constant, suffix))
        return constant.outputs[0]

    def _array(self, argument: Argument, value: Any, wanted: DType | None) -> np.ndarray[Any, Any]:
        if wanted is dtypes.resource:
            raise InvalidTypeError(f"{argument.name!r} is a variable, not {value!r}")
        try:
            array = to_array(value, wanted)
        except OpError as error:
            bound = self.bound.get(argument.token)
            because = f" (the dtype of {bound[1]})" if bound else ""
            error.message = f"{argument.name!r}: {error.message}{because}"
            raise
        if wanted is None and not argument.is_mixed:
            array = self._admit(argument, value, array)
        return array

    def _admit(
        self, argument: Argument, value: Any, array: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Python's integers serve where only floating point is admitted, empty lists anywhere."""
        admitted = self._wanted(argument.token)
        dtype = dtype_of(array)
        plain = not isinstance(value, np.ndarray | np.generic)
        if dtype not in admitted and plain and not array.size:
            array = np.empty(array.shape, admitted[0].numpy)
        elif dtype not in admitted and dtype.is_integer and plain and dtypes.float32 in admitted:
            array = to_array(array, dtypes.float32)
        elif dtype not in admitted and dtype is dtypes.int32 and plain and dtypes.int64 in admitted:
            array = to_array(array, dtypes.int64)
        self._check(argument, dtype_of(array), repr(argument.name))
        return array

    def outputs(self) -> list[DType]:
        """The dtypes of the outputs."""
        found: list[DType] = []
        for argument in self.op_def.outputs:
            if argument.is_mixed:
                named = self.attributes[argument.token]
                if not isinstance(named, tuple):
                    raise InvalidTypeError(
                        f"{argument.token!r} is a tuple of dtypes, not {named!r}"
                    )
                found.extend(map(dtypes.as_dtype, named))
            elif argument.token in self.op_def.type_variables:
                if argument.token not in self.bound:
                    raise InvalidArgumentError("a list is empty, so that no input gives a dtype")
                found.append(self.bound[argument.token][0])
            else:
                found.append(self._wanted(argument.token))
        return found


def constant_operation(graph: Graph, array: np.ndarray[Any, Any], site: sites.Site) -> Operation:
    """A constant that has not joined its graph yet. The array is copied and made read-only."""
    owned = np.array(array, order="C")
    owned.flags.writeable = False
    dtype = dtype_of(owned)
    return Operation(
        graph,
        registry.op_named("Const"),
        (),
        MappingProxyType({"value": owned, "dtype": dtype}),
        (dtype,),
        (Shape.of(owned.shape),),
        site,
    )


def _to_compute_with(small: DType, allowed: Sequence[DType]) -> str | None:
    """How to make a number of few bits one that an operation admits."""
    wanted = [dtypes.float32, dtypes.int32]
    if small in dtypes.SMALL_INTS:
        wanted.reverse()
    found = next((t for t in wanted if t in allowed), None)
    if found is None:
        return None
    return f"{small.name} is only stored; convert it: fb.cast(x, fb.{found.name})"


def _conversion(one: DType, other: DType) -> str | None:
    """How to make two dtypes one: the one that loses less of its values becomes the other."""
    if dtypes.string in (one, other):
        return None
    to = max(one, other, key=lambda t: (t.is_numeric, not t.is_integer, t.is_complex))
    return f"convert one: fb.cast(..., fb.{to.name})"
