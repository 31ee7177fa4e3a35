"""What a graph means, in the plainest way: the oracle for both executors.

It walks the operations that the fetches need, in an order that keeps the rules for state (a
read that nothing orders after a write sees the value before it; writes in the order of
construction), and calls the CPU's kernels. It plans, frees and shares nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from flowbook.graph.definition.widened import widened
from flowbook.graph.model.errors import FailedPreconditionError, InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import asked_of, kernel_for
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.outside.python_functions import py_func_op, py_func_stateless_op


class PlainVariable:
    """A variable's resource: an array, copied on every way in and out."""

    def __init__(self) -> None:
        self.value: np.ndarray | None = None

    @property
    def is_initialized(self) -> bool:
        return self.value is not None

    def read(self) -> np.ndarray:
        if self.value is None:
            raise FailedPreconditionError("Attempting to use uninitialized value")
        return self.value.copy()

    def assign(self, value: np.ndarray) -> np.ndarray:
        self.value = np.array(value)
        return self.read()

    def update(self, ufunc: Callable[..., Any], value: np.ndarray) -> np.ndarray:
        return self.assign(ufunc(self.read(), value))

    def scatter(self, ufunc: np.ufunc | None, indices: Any, updates: Any) -> np.ndarray:
        value = self.read()
        for place, row in zip(
            np.ravel(indices),
            np.broadcast_to(updates, (*np.shape(indices), *value.shape[1:])).reshape(
                np.size(indices), *value.shape[1:]
            ),
            strict=True,
        ):
            value[place] = row if ufunc is None else ufunc(value[place], row)
        return self.assign(value)

    def scatter_parts(self, ufunc: np.ufunc | None, place: Callable[[Any], Any]) -> np.ndarray:
        value = self.read()
        flat, rows, dims = place(value.shape)
        parts = value.reshape(dims)
        for i, number in enumerate(flat):
            parts[number] = rows[i] if ufunc is None else ufunc(parts[number], rows[i])
        return self.assign(value)

    def write(self, place: Callable[[Any], Any], updates: Any) -> np.ndarray:
        value = self.read()
        value[place(value.shape)] = updates
        return self.assign(value)

    def gather(self, indices: Any) -> np.ndarray:
        return np.take(self.read(), indices, axis=0)


class PlainRandomState:
    """A random operation's resource; any generator will do here."""

    def __init__(self, name: str) -> None:
        self.generator = np.random.default_rng(zlib.crc32(name.encode()))

    def uniform(self, shape: Any, dtype: Any) -> np.ndarray:
        return self.generator.random(tuple(shape)).astype(dtype.numpy)

    def normal(self, shape: Any, dtype: Any) -> np.ndarray:
        return self.generator.standard_normal(tuple(shape)).astype(dtype.numpy)

    def reserve(self, blocks: int) -> tuple[Any, Any]:
        words = self.generator.integers(0, 2**32, 6).tolist()
        return tuple(words[:2]), tuple(words[2:])

    def integers(self, shape: Any, low: Any, high: Any, dtype: Any) -> np.ndarray:
        return self.generator.integers(int(low), int(high), tuple(shape), dtype.numpy)


class PlainCounter:
    """The resource of what happens only so many times."""

    def __init__(self) -> None:
        self.runs = -1

    def next(self) -> int:
        self.runs += 1
        return self.runs


def plain_resource(operation: Operation) -> Any:
    """A stand-in for the resource that an operation owns."""
    kind = operation.op_def.owns
    if kind == "counter":
        return PlainCounter()
    return PlainVariable() if kind == "variable" else PlainRandomState(operation.name)


class Interpreter:
    """Runs fetches of a graph; variables keep their values between runs.

    Args:
        make_resource: makes the resource that an operation owns.
    """

    def __init__(self, make_resource: Callable[[Operation], Any] = plain_resource) -> None:
        self.make_resource = make_resource
        self.resources: dict[Operation, Any] = {}
        self._bound: dict[Operation, tuple[Callable[..., Any], Tensor | None]] = {}

    def run(self, fetches: Any, feeds: Mapping[Tensor, Any] | None = None) -> Any:
        """The values of a tensor or operation, or a list of them."""
        if not isinstance(fetches, list | tuple):
            return self.run([fetches], feeds)[0]
        values = _given(feeds)
        fetched = [f.as_tensor(False) if hasattr(f, "as_tensor") else f for f in fetches]
        needed = _needed([f.op if isinstance(f, Tensor) else f for f in fetched], values)
        self._initialise(needed, feeds, values)
        self.execute(_ordered(needed, values), values)
        return [values[f] if isinstance(f, Tensor) else None for f in fetched]

    def execute(self, operations: Iterable[Operation], values: dict[Tensor, Any]) -> None:
        """Add to `values` what operations give, one after the other."""
        with np.errstate(all="ignore"):
            for operation in operations:
                bound = self._bound.get(operation)
                if bound is None:
                    bound = self._bound[operation] = self._bind(operation)
                kernel, only = bound
                result = kernel(*[values[t] for t in operation.inputs])
                if only is not None:
                    values.setdefault(only, result)
                    continue
                outputs = operation.outputs
                assert len(result) == len(outputs), f"{operation} gave {len(result)} outputs"
                for tensor, value in zip(outputs, result, strict=True):
                    values.setdefault(tensor, value)

    def _bind(self, operation: Operation) -> tuple[Callable[..., Any], Tensor | None]:
        """What computes an operation from its inputs, and its output if that is one value."""
        op_def = operation.op_def
        leading = []
        if op_def.owns is not None:
            self.resources[operation] = self.make_resource(operation)
            leading = [self.resources[operation]]
        if op_def.kernel is None:
            if not leading:
                raise InvalidArgumentError(f"{operation.name} is not fed", operation)
            return lambda: self.resources[operation], operation.outputs[0]
        if op_def is py_func_stateless_op:
            op_def = py_func_op  # Which means the same, without a thread.
        asked = asked_of(operation)
        kernel = kernel_for(op_def, "cpu", asked)
        assert kernel is not None
        names = op_def.kernel_attributes(kernel)
        kernel = widened(op_def, asked.dtypes, operation.dtypes, kernel)
        attributes = {name: operation.attributes[name] for name in names}
        is_single = len(op_def.outputs) == 1 and not op_def.outputs[0].is_list
        return (
            partial(kernel, np, *leading, **attributes),
            operation.outputs[0] if is_single else None,
        )

    def _initialise(
        self, needed: Iterable[Operation], feeds: Any, values: Mapping[Tensor, Any]
    ) -> None:
        for operation in needed:
            op_def = operation.op_def
            if op_def.access not in (Access.READ, Access.WRITE) or not op_def.needs_value:
                continue
            handle = operation.inputs[0]
            resource = self.resources.get(handle.op)
            if resource is not None and resource.is_initialized:
                continue
            initializer = next(c for c in handle.consumers() if c.op_def.initializes(c))
            self.run([initializer], feeds)


def _given(feeds: Mapping[Tensor, Any] | None) -> dict[Tensor, Any]:
    return {t: np.asarray(value, t.dtype.numpy) for t, value in (feeds or {}).items()}


def _needed(targets: Iterable[Operation], fed: Mapping[Tensor, Any]) -> list[Operation]:
    found: set[Operation] = set()
    stack = [op for op in targets if not _is_fed(op, fed)]
    while stack:
        operation = stack.pop()
        if operation in found:
            continue
        found.add(operation)
        stack.extend(t.op for t in operation.inputs if t not in fed)
        for waited in operation.control_inputs:
            # A feed gives values; it cannot write, or do what happens outside.
            if waited.op_def.access in (Access.WRITE, Access.OUTSIDE) or not _is_fed(waited, fed):
                stack.append(waited)
    return sorted(found, key=lambda op: op.id)


def _is_fed(operation: Operation, fed: Mapping[Tensor, Any]) -> bool:
    return bool(operation.outputs) and all(t in fed for t in operation.outputs)


def _ordered(operations: list[Operation], fed: Mapping[Tensor, Any]) -> list[Operation]:
    """The operations in an order that keeps inputs, control inputs and the rules for state."""
    touching: dict[Tensor, list[Operation]] = {}
    for op in operations:
        if op.op_def.access in (Access.READ, Access.WRITE):
            touching.setdefault(op.inputs[0], []).append(op)
    if not touching:
        return operations  # They stand in the order of construction, which keeps the others.
    before: dict[Operation, set[Operation]] = {
        op: {t.op for t in op.inputs if t not in fed} | set(op.control_inputs) for op in operations
    }

    def comes_before(first: Operation, second: Operation) -> bool:
        stack, seen = [second], set()
        while stack:
            op = stack.pop()
            if op is first:
                return True
            if op not in seen:
                seen.add(op)
                stack.extend(before.get(op, ()))
        return False

    def put_before(first: Operation, second: Operation) -> None:
        if not comes_before(second, first):
            before[second].add(first)

    for users in touching.values():
        writes = [op for op in users if op.op_def.access is Access.WRITE]
        for i, write in enumerate(writes):
            for later in writes[i + 1 :]:
                put_before(write, later)
    for users in touching.values():
        writes = [op for op in users if op.op_def.access is Access.WRITE]
        for write in writes:
            for read in users:
                if read.op_def.access is Access.READ:
                    put_before(read, write)
    done: dict[Operation, None] = {}
    waiting = list(operations)
    while waiting:
        ready = next(op for op in waiting if all(b in done or b not in before for b in before[op]))
        waiting.remove(ready)
        done[ready] = None
    return list(done)


def evaluate(fetches: Any, feeds: Mapping[Tensor, Any] | None = None) -> Any:
    """Run once, with fresh state."""
    return Interpreter().run(fetches, feeds)


def function_of(
    changing: Tensor, fetch: Tensor, feeds: Mapping[Tensor, Any]
) -> Callable[[Any], Any]:
    """A tensor's value as a function of what one of the fed tensors is.

    It is what `evaluate` gives. What does not depend on the changing tensor is computed once.
    """
    values = _given(feeds)
    order = _ordered(_needed([fetch.op], values), values)
    if not all(operation.op_def.is_pure for operation in order):
        return lambda value: evaluate(fetch, {**feeds, changing: value})
    reached, again, once = {changing}, [], []
    for operation in order:
        is_reached = not reached.isdisjoint(operation.inputs)
        (again if is_reached else once).append(operation)
        if is_reached:
            reached.update(t for t in operation.outputs if t not in values)
    interpreter = Interpreter()
    interpreter.execute(once, values)

    def compute(value: Any) -> Any:
        found = {**values, **_given({changing: value})}
        interpreter.execute(again, found)
        return found[fetch]

    return compute
