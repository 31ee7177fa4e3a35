"""A function of each element, computed for all elements at once: `vectorized_map`.

The function's body is built once, for one element, as that of `fb.function` is. Each operation in
it is then built for all elements: its form for all is found by its type (`_FORMS`), or is the
operation as it is, where that is elementwise. What takes nothing of an element is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph
from flowbook.graph.control_flow.over_elements import counted, map_fn, require_function
from flowbook.graph.control_flow.structure import leaves, mapped, packed_like
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import broadcast_inputs
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
        f"{without.site.place}, has no form for all of them at once",
        NotVectorizedWarning,
    )

    def called(element: Any) -> Any:
        found = copied(definition, leaves(element), "element")
        return packed_like(result, found[: len(definition.results)])

    return map_fn(called, structure, mapped(lambda t: t.dtype, result))


class _Value(NamedTuple):
    """What stands for a tensor of the body.

    Attributes:
        tensor: what stands for it.
        rank: the rank of one element.
        is_each: whether it has a first dimension, of one for each element.
    """

    tensor: Tensor
    rank: int
    is_each: bool


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
            if not self._each.isdisjoint(op.inputs) and op.type not in _OF_ALL_ALIKE:
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
        return _is_elementwise(op) or (op.type in _FORMS and _FORMS[op.type].admits(op, each))

    def results(self) -> list[Tensor]:
        """What the body gives for all elements."""
        for op in self._operations:
            inputs = [self._value(t) for t in op.inputs]
            found: Sequence[Tensor]
            if not any(value.is_each for value in inputs):
                found = self.again(op, [value.tensor for value in inputs])
            elif _is_elementwise(op):
                found = _lined_up(self, op, inputs)
            else:
                found = _FORMS[op.type].build(self, op, inputs)
            self._tensors.update(zip(op.outputs, found, strict=True))
        return [self.spread(self._value(t)) for t in self._definition.results]

    def _value(self, tensor: Tensor) -> _Value:
        return _Value(
            self._tensors.get(tensor, tensor), tensor.shape.rank or 0, tensor in self._each
        )

    def again(self, op: Operation, inputs: Sequence[Tensor], **changed: Any) -> tuple[Tensor, ...]:
        """Build an operation of the body with other inputs and attributes; give its outputs."""
        attributes = op.op_def.complete({**op.attributes, **changed})
        inferred = op.op_def.infer_outputs(self._graph, inputs, attributes)
        site = op.site.called_at(self._site)
        made = Operation(self._graph, op.op_def, tuple(inputs), attributes, *inferred, site)
        name = op.name.removeprefix(self._definition.prefix)
        return self._graph.add(made, name).outputs

    def spread(self, value: _Value) -> Tensor:
        """A value with a first dimension, of the same for each element if there was none."""
        if value.is_each:
            return value.tensor
        return broadcast_to(value.tensor, self.vector(shape_of(value.tensor)))

    def vector(self, dims: Any) -> Tensor:
        """The shape of all elements, by that of one."""
        return self.before(self._count, dims)

    def before(self, first: Any, rest: Any) -> Tensor:
        """A vector of ints with one more at its begin."""
        rest = convert_to_tensor(rest)
        return concat([convert_to_tensor([first], rest.dtype), rest], 0)


# Forms for all elements

Build = Callable[[_Whole, Operation, list[_Value]], Sequence[Tensor]]


class _Form(NamedTuple):
    """How an operation is built for all elements.

    Attributes:
        build: gives its outputs.
        admits: whether it has that form, where these of its inputs differ between elements.
    """

    build: Build
    admits: Callable[[Operation, list[bool]], bool] = lambda op, each: not any(each[1:])


def _always(op: Operation, each: list[bool]) -> bool:
    return True


def _is_elementwise(op: Operation) -> bool:
    op_def = op.op_def
    return (
        op_def.expression is not None
        or op_def.infer is broadcast_inputs
        or op_def.keeps_zeros
        or op.type in _ELEMENTWISE
    )


def _raised(value: _Value, rank: int) -> Tensor:
    """A value for all elements, of elements of a higher rank, to which it broadcasts."""
    tensor = value.tensor
    for _ in range(rank - value.rank if value.is_each else 0):
        tensor = expand_dims(tensor, 1)
    return tensor


def _lined_up(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    rank = max(value.rank for value in inputs)
    return whole.again(op, [_raised(value, rank) for value in inputs])


def _as_it_is(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    return whole.again(op, [value.tensor for value in inputs])


def _alike(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    return whole.again(op, [whole.spread(value) for value in inputs])


def _shifted(axis: int | Sequence[int]) -> Any:
    """An axis of an element, or several, as those of all elements."""
    if isinstance(axis, int):
        return axis + 1 if axis >= 0 else axis
    return tuple([_shifted(each) for each in axis])


def _along(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    axis = op.attributes["axis"]
    if axis is None:
        axis = range(inputs[0].rank)
    return whole.again(op, [value.tensor for value in inputs], axis=_shifted(axis))


def _joined(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    axis = _shifted(op.attributes["axis"])
    return whole.again(op, [whole.spread(value) for value in inputs], axis=axis)


def _squeezed(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    axis = op.attributes["axis"]
    if axis is None:
        axis = tuple([i for i, dim in enumerate(op.inputs[0].shape) if dim == 1])
    return whole.again(op, [inputs[0].tensor], axis=_shifted(axis))


def _transposed(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    perm = op.attributes["perm"]
    if perm is None:
        perm = range(inputs[0].rank)[::-1]
    perm = (0, *[p % inputs[0].rank + 1 for p in perm])
    return whole.again(op, [inputs[0].tensor], perm=perm)


def _part(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    key = (("slice", None, None, None), *op.attributes["key"])
    return whole.again(op, [value.tensor for value in inputs], key=key)


def _shaped(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    known = op.outputs[0].shape
    dims = known.as_list() if known.is_fully_defined else inputs[1].tensor
    value = _raised(inputs[0], known.rank or 0) if op.type == "BroadcastTo" else inputs[0].tensor
    return whole.again(op, [value, whole.vector(convert_to_tensor(dims, inputs[1].tensor.dtype))])


def _tiled(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    return whole.again(op, [inputs[0].tensor, whole.before(1, inputs[1].tensor)])


def _padded(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    tensor, paddings, *constants = [value.tensor for value in inputs]
    none = convert_to_tensor([[0, 0]], paddings.dtype)
    return whole.again(op, [tensor, concat([none, paddings], 0), *constants])


def _gathered(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    params, indices = inputs
    axis, batch_dims = op.attributes["axis"] % params.rank, op.attributes["batch_dims"]
    if not batch_dims and not indices.is_each:
        return whole.again(op, [params.tensor, indices.tensor], axis=axis + 1)
    if not batch_dims and not params.is_each and not axis:
        return whole.again(op, [params.tensor, indices.tensor])
    both = [whole.spread(params), whole.spread(indices)]
    return whole.again(op, both, axis=axis + 1, batch_dims=batch_dims + 1)


def _shape(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    return [whole.again(op, [inputs[0].tensor])[0][1:]]


def _rank(whole: _Whole, op: Operation, inputs: list[_Value]) -> Sequence[Tensor]:
    return [convert_to_tensor(inputs[0].rank)]


# What differs between no two elements, whatever these are.
_OF_ALL_ALIKE = ("Rank", "Shape")

# Beside what has an expression, broadcasts its inputs or keeps zeros. MatMul broadcasts all but the
# last two dimensions.
_ELEMENTWISE = (
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "Cast",
    "CheckNumerics",
    "Digamma",
    "Erf",
    "Erfc",
    "Erfinv",
    "Identity",
    "Lgamma",
    "MatMul",
    "Ndtri",
    "NormalDistribution",
    "OnesLike",
    "PopulationCount",
    "PreventGradient",
    "SaturateCast",
    "StopGradient",
    "ZerosLike",
)

# Those whose attribute `axis` says along what they compute.
_ALONG = (
    "All",
    "Any",
    "ArgMax",
    "ArgMin",
    "ArgSort",
    "Cumprod",
    "Cumsum",
    "CumulativeLogsumexp",
    "Deviation",
    "EuclideanNorm",
    "ExpandDims",
    "LogSoftmax",
    "LogSumExp",
    "Max",
    "Mean",
    "Min",
    "OneHot",
    "Prod",
    "Reverse",
    "Softmax",
    "Sort",
    "Split",
    "Sum",
    "Unstack",
    "Variance",
)

# Those that compute with the last dimensions of their first input, whatever comes before.
_OF_THE_LAST = (
    "BiasAdd",
    "Cholesky",
    "MatrixDeterminant",
    "MatrixDiag",
    "MatrixDiagPart",
    "MatrixInverse",
    "MatrixTranspose",
    "TopK",
)

_FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(_ALONG, _Form(_along)),
    **dict.fromkeys(_OF_THE_LAST, _Form(_as_it_is)),
    **dict.fromkeys(("Concat", "Stack"), _Form(_joined, _always)),
    **dict.fromkeys(("BroadcastTo", "Reshape"), _Form(_shaped)),
    "AddN": _Form(_alike, _always),
    "Gather": _Form(_gathered, _always),
    "Pad": _Form(_padded),
    "Rank": _Form(_rank),
    "Shape": _Form(_shape),
    "Squeeze": _Form(_squeezed),
    "StridedSlice": _Form(_part),
    "Tile": _Form(_tiled),
    "Transpose": _Form(_transposed),
    "VariableGather": _Form(
        _as_it_is, lambda op, each: not op.attributes["axis"] and not op.attributes["batch_dims"]
    ),
}
