"""The ONNX graph that grows while operations are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import DType, int64
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.onnx.elements import NUMBERS, to_tensor
from flowbook.onnx.package import onnx
from flowbook.onnx.saving.trial import Trial
from flowbook.onnx.sums import Sums
from flowbook.onnx.values import Values

Array = np.ndarray[Any, Any]


class Writer:
    """Collects nodes and stored values, which rules add to.

    Attributes:
        opset: the operator set that is written for.
        nodes: the NodeProtos, in order.
        stored: the arrays by their names.
        values: what is known of tensors' values.
        sums: whole numbers as sums.
        trial: shapes where all open sizes are one.
    """

    def __init__(self, opset: int, trial: Trial) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.stored: dict[str, Array] = {}
        self.values = Values()
        self.sums = Sums(self.values)
        self.trial = trial
        self._taken: set[str] = set()
        self._numbers: dict[Any, str] = {}
        self._turned: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._scope = ""

    @contextmanager
    def writing_to(self, nodes: list[Any]) -> Iterator[None]:
        """Add nodes to other ones for a while."""
        around, scope = self.nodes, self._scope
        self.nodes = nodes
        try:
            yield
        finally:
            self.nodes, self._scope = around, scope

    def enter(self, operation: Operation) -> None:
        """Name what is added from now on after an operation."""
        self._scope = operation.name

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        found, count = name, 0
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def node(self, type: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; attributes that are None are left out.

        Returns:
            The name of its output, or a list of them if there is more than one.
        """
        names = [self.fresh(f"{self._scope}:{i}" if i else self._scope) for i in range(outputs)]
        given = {k: v for k, v in attributes.items() if v is not None}
        label = self.fresh(f"{self._scope}/{type}")
        self.nodes.append(onnx("helper").make_node(type, list(inputs), names, label, **given))
        return names if outputs > 1 else names[0]

    def nodes_of(
        self, type: str, inputs: Sequence[str], outputs: int, **attributes: Any
    ) -> list[str]:
        """Add a node; the names of its outputs, however many there are."""
        found = self.node(type, inputs, outputs, **attributes)
        return found if isinstance(found, list) else [found]

    def constant(self, value: Any, dtype: DType | None = None) -> str:
        """The name of a stored array; equal small ones are stored once."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype.numpy)
        key = (array.dtype, array.shape, array.tobytes()) if array.size <= 64 else None
        if key is not None and array.dtype != object and key in self._numbers:
            return self._numbers[key]
        name = self.fresh(f"{self._scope}/constant")
        self.stored[name] = array
        if key is not None:
            self._numbers[key] = name
        return name

    def integers(self, values: Any) -> str:
        """The name of a stored vector of int64."""
        return self.constant(np.array(list(values), np.int64))

    def integer(self, value: int) -> str:
        """The name of a stored scalar of int64."""
        return self.constant(np.array(value, np.int64))

    def cast(self, name: str, dtype: DType) -> str:
        """The value in another dtype."""
        if name in self.stored:
            return self.constant(self.stored[name], dtype)
        found: str = self.node("Cast", [name], to=NUMBERS[dtype])
        return found

    def long(self, name: str) -> str:
        """A whole number or a vector of them as int64, which ONNX wants for shapes and indices."""
        is_long = name in self.stored and self.stored[name].dtype == np.int64
        return name if is_long else self.cast(name, int64)

    def transpose(self, name: str, perm: Sequence[int]) -> str:
        """The value with its dimensions in another order; what undoes another is left out."""
        order = tuple(int(p) for p in perm)
        if order == tuple(range(len(order))):
            return name
        if name in self.stored:
            return self.constant(np.ascontiguousarray(self.stored[name].transpose(order)))
        if name in self._turned:
            source, before = self._turned[name]
            combined = tuple(before[p] for p in order)
            if combined == tuple(range(len(order))):
                return source
        found: str = self.node("Transpose", [name], perm=order)
        self._turned[found] = (name, order)
        return found

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The value in another shape, one of whose dimensions may be -1."""
        found: str = self.node("Reshape", [name, self.integers(shape)])
        return found

    def known(self, tensor: Tensor) -> Array:
        """The value of an input that must be known now.

        Raises:
            UnimplementedError: if it is not.
        """
        found = self.values.of(tensor)
        if found is None:
            raise UnimplementedError(f"the value of {tensor.name} is not known before the run")
        return found

    def tensors(self, used: set[str]) -> list[Any]:
        """The TensorProtos of those stored arrays that are used."""
        return [to_tensor(array, name) for name, array in self.stored.items() if name in used]
