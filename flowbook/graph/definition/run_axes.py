"""Axes that only the run knows: operation types that take them as an input, in host memory.

A definition that says which attribute is an axis has a second type beside it: `Concat` joins along
its attribute `axis`, `ConcatAt` along what its last input holds. All that the second knows it asks
of the first: its kernel, once it knows the axis; its shapes, which are what is so whatever the
axis; its gradient, and how it is built for all elements of a batch, which build with the tensor
where they would with the attribute. What else the first says of itself, the second says too, but
for what names the axis as an attribute or is about a single input.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from flowbook.graph.definition.batching import Batch, Batched, Batching
from flowbook.graph.model.dtypes import INDICES
from flowbook.graph.model.errors import InvalidArgumentError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor

if TYPE_CHECKING:
    from flowbook.graph.definition.op_def import OpDef

# Where there are more ways to choose the axes, nothing is known of the shapes.
_MOST_TRIED = 200


class _Known:
    """An operation as the gradient of the type without the input sees it, and its batching.

    Args:
        op: the operation, whose last input is the axis.
        name: the attribute that it is seen as.
        axis: what stands for it, if that is another tensor.
    """

    def __init__(self, op: Operation, name: str, axis: Tensor | None = None) -> None:
        *inputs, own = op.inputs
        self.inputs = tuple(inputs)
        self.outputs = op.outputs
        self.attributes = {**op.attributes, name: own if axis is None else axis}


class _BatchAlong:
    """A batch as the batching of the type without the input sees it.

    Args:
        batch: the batch.
        op: the operation of one element, whose last input is the axis.
        name: the attribute that it is seen as.
        limit: what axes of one element are below, and not below its negative.
    """

    def __init__(self, batch: Batch, op: Operation, name: str, limit: int) -> None:
        self._batch = batch
        self._op = op
        self._name = name
        self._limit = limit
        self.spread, self.raised = batch.spread, batch.raised
        self.shape_for_all, self.before = batch.shape_for_all, batch.before

    def again(self, op: Any, inputs: Sequence[Tensor], **changed: Any) -> tuple[Tensor, ...]:
        """See `Batch`."""
        axis = {**op.attributes, **changed}[self._name]
        others = {n: value for n, value in changed.items() if n != self._name}
        return self._batch.again(self._op, [*inputs, axis], **others)

    def shifted(self, axis: Any) -> Any:
        """See `Batch`. What is no axis of an element is none of all elements, either."""
        if not isinstance(axis, Tensor):
            return self._batch.shifted(axis)
        cast = op_named("Cast")
        is_too_low = cast(axis < -self._limit, dtype=axis.dtype)
        return axis + cast(axis >= 0, dtype=axis.dtype) - is_too_low


class AxisInput:
    """What is different where an axis is an input.

    Args:
        op_def: the type of which it is an attribute.
        name: the attribute, and the input.
        is_several: whether it is a tuple of axes.
    """

    def __init__(self, op_def: OpDef[Any], name: str, is_several: bool) -> None:
        self._fixed = op_def
        self._name = name
        self._is_several = is_several
        problem = None
        if name not in op_def.attributes:
            problem = f"it has no attribute {name!r}, which is its axis"
        elif op_def.kernel is None:
            problem = "without a kernel it has no axis"
        elif op_def.is_router or op_def.must_be_fed:
            problem = "what routes or must be fed has no axis"
        if problem is not None:
            raise InvalidArgumentError(f"{op_def.type}: {problem}")

    def define(self) -> OpDef[Any]:
        """Make the type."""
        fixed = self._fixed
        assert fixed.kernel is not None
        inputs, _, outputs = fixed.signature.partition("->")
        type_variables: dict[str, Any] = {**fixed.type_variables, "Axis": INDICES}
        own: dict[str, Any] = {
            "infer": self.infer,
            "kernel": self.along(fixed.kernel),
            "expression": None,
            "grad": self._grad(),
            "attributes": {n: v for n, v in fixed.attributes.items() if n != self._name},
            "choices": {n: v for n, v in fixed.choices.items() if n != self._name},
            "after_name": tuple([n for n in fixed.after_name if n != self._name]),
            "host_args": (*fixed.host_args, self._name),
            "reads_as": None if fixed.reads_as is None else fixed.reads_as.with_axis_input,
            "batching": self._batching(),
            # It looks for the axis among the attributes.
            "elements": None,
            # They are about what has one input, or none.
            "keeps_zeros": False,
            "is_constant": False,
            "is_identity": False,
            "axis": None,
            "axes": None,
            "doc": f"As `{fixed.type}`, where only the run knows `{self._name}`.",
            "function": None,
        }
        taken = inspect.signature(type(fixed).__init__).parameters.values()
        said = [p.name for p in taken if p.kind is p.KEYWORD_ONLY and p.name not in own]
        return type(fixed)(
            f"{fixed.type}At",
            f"{inputs.strip()}, {self._name}: Axis -> {outputs.strip()}",
            **own,
            **{name: getattr(fixed, name) for name in said},
            **type_variables,
        )

    def along(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel that calls one of the other type's, once the axis is known."""
        taken = self._fixed.kernel_attributes(kernel)

        def known(xp: Any, *inputs: Any, **attributes: Any) -> Any:
            *rest, axis = inputs
            self._check_rank(Shape.of(axis.shape))
            given = {**attributes, self._name: self._known(tuple(axis.reshape(-1).tolist()))}
            return kernel(xp, *rest, **{name: given[name] for name in taken})

        return known

    def infer(self, *args: Any, **attributes: Any) -> list[Shape]:
        """What is known of the shapes, whatever the axis."""
        *inputs, axis = args
        self._check_rank(axis.shape)
        found: list[tuple[Shape, ...]] = []
        problem: OpError | None = None
        for known in self._candidates(inputs, axis.shape, attributes):
            try:
                found.append(self._shapes(inputs, {**attributes, self._name: known}))
            except InvalidArgumentError as error:
                problem = error
        if found:
            return [reduce(Shape.generalise, shapes) for shapes in zip(*found, strict=True)]
        if problem is not None:  # It is wrong along every axis.
            raise problem
        return [UNKNOWN] * self._number_of_outputs(attributes)

    def _shapes(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Shape, ...]:
        assert self._fixed.infer is not None
        try:
            shapes = self._fixed.infer(*inputs, **attributes)
        except OpError:
            raise
        except Exception as error:  # A user's takes for granted that there is such an axis.
            raise InvalidArgumentError(
                f"its infer raised {type(error).__name__}: {error}"
            ) from error
        return (shapes,) if isinstance(shapes, Shape) else tuple(shapes)

    def _number_of_outputs(self, attributes: Mapping[str, Any]) -> int:
        return sum(
            len(attributes[argument.token]) if argument.is_mixed else 1
            for argument in self._fixed.outputs
        )

    def _candidates(
        self, inputs: Sequence[Any], shape: Shape, attributes: Mapping[str, Any]
    ) -> Iterator[Any]:
        """What the axis may be; nothing where that is not known, or too much."""
        rank = _largest_rank(inputs)
        if rank is None:
            return
        count = shape.size if self._is_several else 1
        counts = [*range(rank + 1)] if count is None else [count]
        limits = [self._limit(rank, count, inputs, attributes) for count in counts]
        if sum(map(math.perm, limits, counts)) <= _MOST_TRIED:
            for limit, count in zip(limits, counts, strict=True):
                yield from map(self._known, itertools.permutations(range(limit), count))

    def _limit(
        self, rank: int, count: int, inputs: Sequence[Any], attributes: Mapping[str, Any]
    ) -> int:
        """What an axis is below: beyond what there is it makes a new dimension, or is wrong."""
        new = tuple(range(rank, rank + count))
        try:
            self._shapes(inputs, {**attributes, self._name: self._known(new)})
        except InvalidArgumentError:
            return rank
        return rank + count

    def _known(self, axes: tuple[int, ...]) -> Any:
        return axes if self._is_several else axes[0]

    def _check_rank(self, shape: Shape) -> None:
        if shape.rank not in ((None, 0, 1) if self._is_several else (None, 0)):
            wanted = "a scalar or a vector" if self._is_several else "a scalar"
            raise InvalidArgumentError(f"{self._name!r} is {wanted}, not of shape {shape}")

    def _grad(self) -> Callable[..., Any] | None:
        """The other type's, which builds with the tensor in the place of the attribute."""
        fixed = self._fixed.grad
        if fixed is None:
            return None

        def grad(op: Operation, *dys: Any, **given: Any) -> tuple[Any, ...]:
            found: Any = fixed(_Known(op, self._name), *dys, **given)
            return (*(found if isinstance(found, list | tuple) else (found,)), None)

        def grad_of_used(op: Operation, *dys: Any, used: Sequence[bool]) -> tuple[Any, ...]:
            return grad(op, *dys, used=used)

        asked = inspect.signature(fixed).parameters.get("used")
        return grad_of_used if asked is not None and asked.kind is asked.KEYWORD_ONLY else grad

    def _batching(self) -> Batching | None:
        """The other type's, which builds with the tensor in the place of the attribute."""
        fixed, name = self._fixed.batching, self._name
        if fixed is None or not fixed.takes_tensors:
            return None

        def build(batch: Batch, op: Operation, inputs: list[Batched]) -> Sequence[Tensor]:
            *others, axis = inputs
            known: Any = _Known(op, name, axis.tensor)
            along = _BatchAlong(batch, op, name, self._limit_of(op))
            return fixed.build(along, known, others)

        def admits(op: Operation, each: list[bool]) -> bool:
            known: Any = _Known(op, name)
            return not each[-1] and fixed.admits(known, each[:-1])

        return Batching(build, admits, fixed.is_alike)

    def _limit_of(self, op: Operation) -> int:
        """What the axis of an operation is below, whose inputs and outputs are of known ranks."""
        *inputs, axis = op.inputs
        grouped = self._fixed.grouped(inputs, op.attributes)
        rank, count = _largest_rank(grouped), axis.shape.size if self._is_several else 1
        assert rank is not None
        # Axes of an unknown number are no new dimensions, or the output's rank were unknown.
        return self._limit(rank, 1 if count is None else count, grouped, op.attributes)


def _largest_rank(inputs: Sequence[Any]) -> int | None:
    """The largest rank among the tensors of inputs; None if one is not known."""
    tensors = [t for each in inputs for t in (each if isinstance(each, list) else [each])]
    ranks = [tensor.shape.rank for tensor in tensors]
    return None if None in ranks else max(ranks)
