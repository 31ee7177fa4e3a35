"""A function of each element, computed for all elements at once: `vectorized_map`.

The function's body is built once, for one element, as that of `fb.function` is. Each operation in
it is then built for all elements, as its definition says (`definition/batching.py`). What takes
nothing of an element is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.control_flow.over_elements import counted, map_fn, require_function
from flowbook.graph.control_flow.structure import leaves, mapped, packed_like
from flowbook.graph.definition.batching import Batched
from flowbook.graph.definition.composed import composed
from flowbook.graph.functions.bodies import Argument, built
from flowbook.graph.functions.calls import arguments_of, copied
from flowbook.graph.functions.definition import Definition, is_parameter
from flowbook.graph.model.errors import NotVectorizedWarning
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.basis.broadcasting import broadcast_to
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.basis.shaping import expand_dims, shape_of

__all__ = ["vectorized_map"]


@composed
def vectorized_map(fn: Callable[[Any], Any], elems: Any, name: str | None = None) -> Any:
    """What a function gives for each element along the first dimension, for all at once.

    `fn` is called once, to build what it does to one element; of each operation in it one is built
    that does the same to all elements. Where one has no such form, as what draws numbers, writes a
    variable or loops has none, `fn` is applied in a loop, as by `map_fn`.

    Args:
        fn: called with one element, or the structure of them, gives a tensor or a structure of
            them.
        elems: a tensor, or a nested structure of tensors of one first dimension.

    Returns:
        What `fn` gives, one upon the other, in its structure.

    Raises:
        InvalidTypeError: if `fn` is no function.
        InvalidArgumentError: if a tensor has no first dimension, or these differ.

    Warns:
        NotVectorizedWarning: where it is a loop, naming the operation that makes it one.

    >>> import flowbook as fb
    >>> a = fb.constant([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 3.0]]])
    >>> norms = fb.vectorized_map(lambda m: fb.reduce_sum(fb.matmul(m, m, transpose_b=True)), a)
    >>> with fb.Session() as sess:
    ...     print(sess.run(norms))
    [ 5. 17.]
    """
    require_function(fn)
    structure, count = counted(elems)
    tensors: list[Tensor] = leaves(structure)
    result: Any = None

    def body(given: list[Tensor]) -> Sequence[Tensor]:
        nonlocal result
        result = mapped(convert_to_tensor, fn(packed_like(structure, given)))
        return leaves(result)

    arguments = [Argument("element", t.dtype, t.shape[1:]) for t in tensors]
    definition = built(tensors[0].graph, "element", arguments, body)
    whole = _Whole(definition, tensors, count)
    without = whole.without_form()
    if without is None:
        return packed_like(result, whole.results())
    sites.warn(
        f"vectorized_map loops over the elements: {without.type} {without.name!r}, built at "
        f"{without.site.place}, has no form for all of them at once{_how_to_say(without)}",
        NotVectorizedWarning,
    )

    def called(element: Any) -> Any:
        found = copied(definition, leaves(element), "element")
        return packed_like(result, found[: len(definition.results)])

    return map_fn(called, structure, mapped(lambda t: t.dtype, result))


def _how_to_say(operation: Operation) -> str:
    """How a user's operation, whose definition does not, says its form."""
    if operation.op_def.is_builtin or operation.op_def.batching is not None:
        return ""
    fixed = operation.op_def.fixed_axis
    if fixed is not None and fixed[0].batching is not None:
        return "; Batching(..., takes_tensors=True) says that it is right along a tensor, too"
    return "; OpDef(batching=...) says one, as fb.control_flow.Batching.ELEMENTWISE"


class _Whole:
    """A body for all elements at once.

    Args:
        definition: the body.
        tensors: the elements.
        count: how many there are.
    """

    def __init__(self, definition: Definition, tensors: Sequence[Tensor], count: Any) -> None:
        self._definition = definition
        self._graph: Graph = definition.function.graph
        self._count = count
        self._site = sites.capture()
        self._tensors = dict(
            zip(definition.parameters, arguments_of(definition, tensors), strict=True)
        )
        self._operations = [op for op in definition.operations if not is_parameter(op)]
        self._each = set(definition.parameters[: len(tensors)])
        for op in self._operations:
            batching = op.op_def.batching
            is_alike = batching is not None and batching.is_alike
            if not is_alike and not self._each.isdisjoint(op.inputs):
                self._each.update(op.outputs)

    def without_form(self) -> Operation | None:
        """The first operation that has no form for all elements at once."""
        return next((op for op in self._operations if not self._has_form(op)), None)

    def _has_form(self, op: Operation) -> bool:
        if op.op_def.is_router or op.op_def.access not in (None, Access.READ):
            return False
        each = [t in self._each for t in op.inputs]
        if not any(each):
            return op.op_def.stands_for is None
        if any(t.shape.rank is None for t in (*op.inputs, *op.outputs)):
            return False
        batching = op.op_def.batching
        return batching is not None and batching.admits(op, each)

    def results(self) -> list[Tensor]:
        """What the body gives for all elements."""
        for op in self._operations:
            inputs = [self._value(t) for t in op.inputs]
            batching = op.op_def.batching
            found: Sequence[Tensor]
            if batching is None or not any(value.is_each for value in inputs):
                found = self.again(op, [value.tensor for value in inputs])
            else:
                found = batching.build(self, op, inputs)
            self._tensors.update(zip(op.outputs, found, strict=True))
        return [self.spread(self._value(t)) for t in self._definition.results]

    def _value(self, tensor: Tensor) -> Batched:
        return Batched(
            self._tensors.get(tensor, tensor), tensor.shape.rank or 0, tensor in self._each
        )

    def again(self, op: Operation, inputs: Sequence[Tensor], **changed: Any) -> tuple[Tensor, ...]:
        """See `Batch`."""
        attributes = op.op_def.complete({**op.attributes, **changed})
        inferred = op.op_def.infer_outputs(self._graph, inputs, attributes)
        site = op.site.called_at(self._site)
        made = Operation(self._graph, op.op_def, tuple(inputs), attributes, *inferred, site)
        name = op.name.removeprefix(self._definition.prefix)
        return self._graph.add(made, name).outputs

    def spread(self, value: Batched) -> Tensor:
        """See `Batch`."""
        if value.is_each:
            return value.tensor
        return broadcast_to(value.tensor, self.before(self._count, shape_of(value.tensor)))

    def raised(self, value: Batched, rank: int) -> Tensor:
        """See `Batch`."""
        tensor = value.tensor
        for _ in range(rank - value.rank if value.is_each else 0):
            tensor = expand_dims(tensor, 1)
        return tensor

    def shifted(self, axis: Any) -> Any:
        """See `Batch`."""
        if isinstance(axis, int):
            return axis + 1 if axis >= 0 else axis
        return tuple([self.shifted(each) for each in axis])

    def shape_for_all(self, op: Operation, shape: Tensor) -> Tensor:
        """See `Batch`."""
        known = op.outputs[0].shape
        dims = known.as_list() if known.is_fully_defined else shape
        return self.before(self._count, convert_to_tensor(dims, shape.dtype))

    def before(self, first: Any, rest: Any) -> Tensor:
        """See `Batch`."""
        rest = convert_to_tensor(rest)
        return concat([convert_to_tensor([first], rest.dtype), rest], 0)
