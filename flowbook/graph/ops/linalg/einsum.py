"""Sums of products over named dimensions.

The kernel contracts two operands at a time, each pair by one product of matrices where the
dimensions allow it.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import NUMBERS
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Dims, Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics import products
from flowbook.graph.ops.basis.broadcasting import sum_to_shape
from flowbook.graph.ops.basis.conjugation import conjugate
from flowbook.graph.ops.basis.filling import fill
from flowbook.graph.ops.basis.shaping import shape_op

__all__ = ["einsum"]

REST = "..."


def _normalised(equation: str, count: int) -> str:
    """An equation without spaces and with its output, checked in itself."""
    if not isinstance(equation, str):
        raise InvalidTypeError(f"an equation is a string such as 'ij,jk->ik', not {equation!r}")
    text = equation.replace(" ", "")
    left, arrow, output = text.partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise InvalidArgumentError(
            f"the equation {equation!r} has {counted(len(terms), 'term')} for "
            f"{counted(count, 'input')}"
        )
    for term in (*terms, output):
        rest = term.replace(REST, "", 1)
        if any(c not in string.ascii_letters for c in rest):
            raise InvalidArgumentError(
                f"the equation {equation!r} is not of letters, ',', '->' and one '...' per term"
            )
    labels = left.replace(REST, "").replace(",", "")
    if not arrow:
        output = REST * (REST in left) + "".join(
            sorted(c for c in {*labels} if labels.count(c) == 1)
        )
    named = output.replace(REST, "")
    if len({*named}) != len(named):
        raise InvalidArgumentError(f"the output of {equation!r} names a dimension twice")
    missing = sorted({*named} - {*labels})
    if missing:
        raise InvalidArgumentError(
            f"the output of {equation!r} names {', '.join(missing)}, which no input has"
        )
    # A "..." that no input has stands for no dimensions.
    return f"{left}->{output if REST in left else named}"


def _terms(equation: str) -> tuple[list[str], str]:
    left, _, output = equation.partition("->")
    return left.split(","), output


def _labelled(term: str, dims: Any, equation: str) -> tuple[dict[str, Any], Any]:
    """The dimension of each label of a term, and what its ellipsis stands for."""
    before, ellipsis, after = term.partition(REST)
    named = len(before) + len(after)
    if len(dims) < named or (not ellipsis and len(dims) > named):
        raise InvalidArgumentError(
            f"the term {term!r} of {equation!r} does not fit the shape {Shape(dims)}"
        )
    end = len(dims) - len(after)
    found: dict[str, Any] = {}
    for label, d in (
        *zip(before, dims, strict=False),
        *zip(after, dims[end:], strict=True),
    ):
        if found.get(label) is not None and d is not None and found[label] != d:
            raise InvalidArgumentError(
                f"{label!r} in {equation!r} is both {found[label]} and {d} in the shape "
                f"{Shape(dims)}"
            )
        found[label] = d if found.get(label) is None else found[label]
    return found, tuple(dims[len(before) : end])


def _sizes(equation: str, shapes: Sequence[Any]) -> tuple[dict[str, Any], Shape]:
    """The dimension of each label, and the shape that ellipses stand for together."""
    terms, _ = _terms(equation)
    sizes: dict[str, Any] = {}
    rest = Shape(())
    for term, dims in zip(terms, shapes, strict=True):
        if dims is None:
            if REST in term:
                rest = UNKNOWN
            continue
        found, batch = _labelled(term, dims, equation)
        for label, d in found.items():
            if sizes.get(label) is not None and d is not None and sizes[label] != d:
                raise InvalidArgumentError(
                    f"{label!r} in {equation!r} is both {sizes[label]} and {d}: shapes "
                    + ", ".join(str(Shape(s)) for s in shapes)
                )
            sizes[label] = d if sizes.get(label) is None else sizes[label]
        if rest.dims is not None:
            rest = broadcast_shapes(rest, Shape.of(batch))
    return sizes, rest


def _check_rest(equation: str, rest: Any) -> None:
    if rest and REST not in _terms(equation)[1]:
        raise InvalidArgumentError(
            f"the output of {equation!r} has no '...' for the dimensions {Shape(rest)}"
        )


def _einsum_shape(inputs: list[Tensor], equation: str, sums_rest: bool) -> Shape:
    sizes, rest = _sizes(equation, [t.shape.dims for t in inputs])
    if not sums_rest:
        _check_rest(equation, rest.dims)
    _, output = _terms(equation)
    before, ellipsis, after = output.partition(REST)
    if ellipsis and rest.dims is None:
        return UNKNOWN
    middle: Dims = (rest.dims or ()) if ellipsis else ()
    return Shape.of((*(sizes.get(c) for c in before), *middle, *(sizes.get(c) for c in after)))


# The kernel. Its labels are integers: those of the equation, and below zero those of ellipses.

Labels = tuple[int, ...]


@lru_cache(maxsize=1024)
def _plan(
    equation: str, sums_rest: bool, shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[Labels], Labels, list[tuple[int, ...]]]:
    """The labels of each input and of the output, and the order of contraction."""
    _, rest = _sizes(equation, shapes)
    assert rest.dims is not None
    if not sums_rest:
        _check_rest(equation, rest.dims)
    terms, output = _terms(equation)
    inputs = []
    for term, dims in zip(terms, shapes, strict=True):
        named = len(term.replace(REST, ""))
        inputs.append(_numbered(term, len(dims) - named))
    return inputs, _numbered(output, len(rest.dims)), _order(inputs, output, shapes, rest)


def _numbered(term: str, rest: int) -> Labels:
    before, ellipsis, after = term.partition(REST)
    middle = range(-rest, 0) if ellipsis else ()
    return (*map(ord, before), *middle, *map(ord, after))


def _order(
    inputs: list[Labels], output: str, shapes: tuple[tuple[int, ...], ...], rest: Shape
) -> list[tuple[int, ...]]:
    if len(inputs) < 3:
        return [tuple(range(len(inputs)))]
    named = {label: i for i, label in enumerate(sorted({c for term in inputs for c in term}))}
    operands: list[Any] = []
    for term, dims in zip(inputs, shapes, strict=True):
        operands += [np.broadcast_to(np.float32(0), dims), [named[c] for c in term]]
    result = _numbered(output, len(rest.dims or ()))
    path = np.einsum_path(*operands, [named[c] for c in result], optimize="greedy")[0]
    return [tuple(step) for step in path[1:]]


def _einsum(xp: Any, *inputs: Any, equation: str, sums_rest: bool) -> Any:
    labels, output, order = _plan(equation, sums_rest, tuple([x.shape for x in inputs]))
    dtype = inputs[0].dtype
    if dtype.char == "e":
        # Half precision has no fast product, and sums of it lose digits.
        inputs = tuple([x.astype(np.float32) for x in inputs])
    waiting = list(zip(inputs, labels, strict=True))
    for chosen in order:
        parts = [waiting.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        while len(parts) > 1:
            left = {c for _, names in (*waiting, *parts[2:]) for c in names}
            last = len(parts) == 2 and not waiting
            kept = (
                output
                if last
                else tuple(
                    dict.fromkeys(
                        c for c in (*parts[0][1], *parts[1][1]) if c in left or c in output
                    )
                )
            )
            parts[:2] = [(_contracted(xp, parts[0], parts[1], kept), kept)]
        waiting.append(parts[0])
    [(result, names)] = waiting
    if names != output:
        result = _reduced(xp, result, names, output)
    return result if result.dtype == dtype else result.astype(dtype)


def _reduced(xp: Any, array: Any, names: Labels, kept: Labels) -> Any:
    """One operand with its diagonals taken, what is not kept summed, and the rest in order."""
    unique = tuple(dict.fromkeys(names))
    if unique != names:
        array = xp.einsum(array, _small(names, names), _small(unique, names))
    gone = tuple(i for i, c in enumerate(unique) if c not in kept)
    if gone:
        array = xp.sum(array, axis=gone, dtype=array.dtype)
        unique = tuple(c for c in unique if c in kept)
    order = [unique.index(c) for c in kept]
    return array if order == sorted(order) else xp.transpose(array, order)


def _small(names: Labels, among: Labels) -> list[int]:
    """Labels as the small numbers that NumPy wants."""
    return [among.index(c) for c in names]


def _contracted(
    xp: Any, left: tuple[Any, Labels], right: tuple[Any, Labels], output: Labels
) -> Any:
    """The sum of the products of two operands."""
    a, in_a = _without_repeated(left, right, output)
    b, in_b = _without_repeated(right, left, output)
    own_a = tuple(c for c in dict.fromkeys(in_a) if c in output or c in in_b)
    own_b = tuple(c for c in dict.fromkeys(in_b) if c in output or c in in_a)
    shared = [c for c in own_a if c in own_b]
    batch = [c for c in shared if c in output]
    summed = [c for c in shared if c not in output]
    free_a = [c for c in own_a if c not in own_b]
    free_b = [c for c in own_b if c not in own_a]
    # Dimensions of ellipses that only one has, or that broadcast, stay apart as a batch.
    for c in [c for c in free_a + free_b if c < 0]:
        batch.append(c)
    free_a, free_b = [c for c in free_a if c >= 0], [c for c in free_b if c >= 0]
    if not summed or (batch and not free_a and not free_b):
        # Products of single elements, or many short sums: no work for a product of matrices.
        a, b = _reduced(xp, a, in_a, own_a), _reduced(xp, b, in_b, own_b)
        among = (*own_a, *own_b)
        return xp.einsum(a, _small(own_a, among), b, _small(own_b, among), _small(output, among))
    in_order_a = (*(c for c in batch if c in own_a), *free_a, *summed)
    in_order_b = (*(c for c in batch if c in own_b), *summed, *free_b)
    a, b = _reduced(xp, a, in_a, in_order_a), _reduced(xp, b, in_b, in_order_b)
    sizes_a = dict(zip(in_order_a, a.shape, strict=True))
    sizes_b = dict(zip(in_order_b, b.shape, strict=True))
    rows, inner = [sizes_a[c] for c in free_a], _product([sizes_a[c] for c in summed])
    columns = [sizes_b[c] for c in free_b]
    heads = [[sizes.get(c, 1) for c in batch] for sizes in (sizes_a, sizes_b)]
    x = xp.reshape(a, (*heads[0], _product(rows), inner))
    y = xp.reshape(b, (*heads[1], inner, _product(columns)))
    whole = np.broadcast_shapes(*map(tuple, heads))
    result = xp.reshape(products.matmul(xp, x, y), (*whole, *rows, *columns))
    order = (*batch, *free_a, *free_b)
    where = [order.index(c) for c in output]
    return result if where == sorted(where) else xp.transpose(result, where)


def _without_repeated(
    operand: tuple[Any, Labels], other: tuple[Any, Labels], output: Labels
) -> tuple[Any, Labels]:
    """An operand without the dimensions along which it would be repeated only to be summed."""
    array, names = operand
    gone = [
        i
        for i, c in enumerate(names)
        if c < 0 and c not in output and array.shape[i] == 1 and c in other[1]
    ]
    if not gone:
        return operand
    array = array[tuple(0 if i in gone else slice(None) for i in range(len(names)))]
    return array, tuple(c for i, c in enumerate(names) if i not in gone)


def _product(dims: Sequence[int]) -> int:
    result = 1
    for d in dims:
        result *= d
    return result


def _einsum_gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    terms, output = _terms(op.attributes["equation"])
    return [_gradient_of_operand(k, list(op.inputs), terms, output, dy) for k in range(len(terms))]


def _gradient_of_operand(
    k: int, inputs: list[Tensor], terms: list[str], output: str, dy: Tensor
) -> Tensor:
    x, term = inputs[k], terms[k]
    operands = [dy, *(conjugate(t) for i, t in enumerate(inputs) if i != k)]
    names = [output, *(t for i, t in enumerate(terms) if i != k)]
    available = {*"".join(names).replace(REST, "")}
    before, ellipsis, after = term.partition(REST)
    labels = "".join(dict.fromkeys(before + after))
    for label in labels:
        if label not in available:
            # It was summed alone: its gradient is repeated along it.
            axis = before.index(label) if label in before else after.index(label) - len(after)
            operands.append(_ones_along(x, axis))
            names.append(label)
    repeated = len(labels) != len(before) + len(after)
    stretched = bool(ellipsis) and any(REST in t for i, t in enumerate(terms) if i != k)
    if not repeated and not stretched:
        return _build(names, term, operands)
    found = _build(names, ellipsis + labels, operands)
    if stretched:
        found = sum_to_shape(found, _build([term], ellipsis + labels, [x]))
    if repeated:
        return einsum_diagonal_op(found, x, equation=f"{ellipsis}{labels}->{term}")
    return _build([ellipsis + labels], term, [found])


def _ones_along(x: Tensor, axis: int) -> Tensor:
    known = None if x.shape.dims is None else x.shape.dims[axis]
    length = shape_op(x)[axis] if known is None else known
    return fill([length], np.ones((), x.dtype.numpy))


def _build(names: list[str], output: str, operands: list[Tensor]) -> Tensor:
    equation = f"{','.join(names)}->{output}"
    return einsum_op(operands, equation=equation, sums_rest=True)


def _einsum_flops(op: Operation) -> int:
    if len(op.inputs) == 1 and op.inputs[0].shape.size == op.outputs[0].shape.size:
        return 0  # Nothing is summed.
    sizes, rest = _sizes(op.attributes["equation"], [t.shape.dims for t in op.inputs])
    total = 2 * (rest.size or 0) if len(op.inputs) > 1 else rest.size or 0
    for d in sizes.values():
        total *= d or 0
    return total


einsum_op: OpDef = OpDef(
    "Einsum",
    "inputs: N*T -> output: T",
    T=NUMBERS,
    # For gradients: dimensions of '...' that the output lacks are summed, not refused.
    attributes={"equation": REQUIRED, "sums_rest": False},
    infer=_einsum_shape,
    kernel=_einsum,
    grad=_einsum_gradient,
    aliases={0: 0},
    cost=_einsum_flops,
)


@einsum_op.front
def einsum(equation: str, *inputs: Any, name: str | None = None) -> Tensor:
    """Sums of products of tensors, over the dimensions that an equation leaves out.

    Args:
        equation: for each input a term that names its dimensions by letters, after `->` those of
            the result: "ij,jk->ik" is the product of matrices. A letter twice in one term takes a
            diagonal. `...` stands for any further dimensions, which broadcast. Without `->` the
            result has those of `...` and then, in alphabetical order, all that are named once.
        inputs: tensors of one number dtype.

    Raises:
        InvalidArgumentError: if the equation does not fit the inputs; in the run, where it is
            known only then.

    >>> import flowbook as fb
    >>> fb.einsum("bij,bjk->bik", fb.zeros([5, 2, 3]), fb.zeros([5, 3, 4])).shape
    Shape([5, 2, 4])
    """
    if len(inputs) == 1 and isinstance(inputs[0], list | tuple) and "," in str(equation):
        inputs = tuple(inputs[0])
    text = _normalised(equation, len(inputs))
    return einsum_op(list(inputs), equation=text, name=name)


def _on_diagonal(xp: Any, values: Any, like: Any, equation: str) -> Any:
    [source], term = _terms(equation)
    result = xp.zeros(like.shape, dtype=values.dtype)
    count = result.ndim - len(term.replace(REST, ""))
    names = _numbered(term, count)
    places = xp.einsum(result, _small(names, names), _small(_numbered(source, count), names))
    places[...] = values
    return result


def _diagonal_shape(values: Tensor, like: Tensor, equation: str) -> Shape:
    if not isinstance(equation, str):
        raise InvalidTypeError(f"an equation is a string, not {equation!r}")
    return like.shape


einsum_diagonal_op = OpDef(
    "EinsumDiagonal",
    "values: T, like: T -> output: T",
    T=NUMBERS,
    attributes={"equation": REQUIRED},
    infer=_diagonal_shape,
    kernel=_on_diagonal,
    grad=lambda op, dy: (_build(*_reversed(op), [dy]), None),
    only_moves=True,
)


def _reversed(op: Operation) -> tuple[list[str], str]:
    [source], term = _terms(op.attributes["equation"])
    return [term], source
