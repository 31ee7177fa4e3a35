"""Sums of products over named or numbered dimensions: `einsum` and `tensordot`.

The kernel contracts two operands at a time, each pair by one product of matrices where the
dimensions allow it.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from flowbook.graph.dtypes import NUMBERS
from flowbook.graph.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.op_def import REQUIRED, OpDef
from flowbook.graph.operation import Operation
from flowbook.graph.ops.arithmetic import conjugate
from flowbook.graph.ops.axes import all_in_range, as_axis
from flowbook.graph.ops.broadcasting import sum_to_shape
from flowbook.graph.ops.filling import fill
from flowbook.graph.ops.inference import constant_value
from flowbook.graph.ops.linalg import both
from flowbook.graph.ops.located import located
from flowbook.graph.ops.shaping import shape_op
from flowbook.graph.registry import op_named
from flowbook.graph.shape import UNKNOWN, Dims, Shape
from flowbook.graph.shape import broadcast as broadcast_shapes
from flowbook.graph.tensor import Tensor

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
            f"the equation {equation!r} has {len(terms)} terms for {count} inputs"
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
    if missing or (REST in output and REST not in left):
        raise InvalidArgumentError(
            f"the output of {equation!r} names {', '.join(missing) or REST}, which no input has"
        )
    return f"{left}->{output}"


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
    order = (*batch, *free_a, *free_b)
    a = _reduced(xp, a, in_a, (*(c for c in batch if c in own_a), *free_a, *summed))
    b = _reduced(xp, b, in_b, (*(c for c in batch if c in own_b), *summed, *free_b))
    heads = [
        tuple(x.shape[[c for c in batch if c in own].index(c)] if c in own else 1 for c in batch)
        for x, own in ((a, own_a), (b, own_b))
    ]
    rows, columns = a.shape[a.ndim - len(free_a) - len(summed) :], b.shape[b.ndim - len(free_b) :]
    rows = rows[: len(free_a)]
    inner = b.shape[b.ndim - len(free_b) - len(summed) : b.ndim - len(free_b)]
    if summed:
        x = xp.reshape(a, (*heads[0], _product(rows), _product(inner)))
        y = xp.reshape(b, (*heads[1], _product(inner), _product(columns)))
        result = xp.matmul(x, y)
    else:
        x = xp.reshape(a, (*heads[0], *rows, *(1,) * len(columns)))
        y = xp.reshape(b, (*heads[1], *(1,) * len(rows), *columns))
        result = xp.multiply(x, y)
    result = xp.reshape(result, (*np.broadcast_shapes(*heads), *rows, *columns))
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


def _product(dims: tuple[int, ...]) -> int:
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
        return einsum_diagonal_op(  # type: ignore[no-any-return]
            found, x, equation=f"{ellipsis}{labels}->{term}"
        )
    return _build([ellipsis + labels], term, [found])


def _ones_along(x: Tensor, axis: int) -> Tensor:
    known = None if x.shape.dims is None else x.shape.dims[axis]
    length = op_named("StridedSlice").public(shape_op(x), axis) if known is None else known
    return fill([length], np.ones((), x.dtype.numpy))  # type: ignore[no-any-return]


def _build(names: list[str], output: str, operands: list[Tensor]) -> Tensor:
    equation = f"{','.join(names)}->{output}"
    result: Tensor = einsum_op(operands, equation=equation, sums_rest=True)
    return result


def _einsum_flops(op: Operation) -> int:
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
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the equation does not fit the inputs; in the run, where it is
            known only then.

    >>> import flowbook as fb
    >>> fb.einsum("bij,bjk->bik", fb.zeros([5, 2, 3]), fb.zeros([5, 3, 4])).shape
    Shape([5, 2, 4])
    """
    __tracebackhide__ = True
    if len(inputs) == 1 and isinstance(inputs[0], list | tuple) and "," in str(equation):
        inputs = tuple(inputs[0])
    with located("Einsum"):
        text = _normalised(equation, len(inputs))
    result: Tensor = einsum_op(list(inputs), equation=text, name=name)
    return result


def _on_diagonal(xp: Any, values: Any, like: Any, equation: str) -> Any:
    [source], term = _terms(equation)
    result = xp.zeros(like.shape, dtype=values.dtype)
    count = result.ndim - len(term.replace(REST, ""))
    names = _numbered(term, count)
    places = xp.einsum(result, _small(names, names), _small(_numbered(source, count), names))
    places[...] = values
    return result


einsum_diagonal_op = OpDef(
    "EinsumDiagonal",
    "values: T, like: T -> output: T",
    T=NUMBERS,
    attributes={"equation": REQUIRED},
    infer=lambda values, like, equation: like.shape,
    kernel=_on_diagonal,
    grad=lambda op, dy: (_build(*_reversed(op), [dy]), None),
    aliases={},
    cost=lambda op: 0,
)


def _reversed(op: Operation) -> tuple[list[str], str]:
    [source], term = _terms(op.attributes["equation"])
    return [term], source


# Tensordot


def _free(rank: int, axes: tuple[int, ...]) -> list[int]:
    return [i for i in range(rank) if i not in axes]


def _both_axes(axes: Any, rank_a: int, rank_b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The summed axes of both, counted from the first."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(rank_a, rank_b):
            raise InvalidArgumentError(
                f"{axes} axes cannot be summed of {rank_a} and {rank_b} dimensions"
            )
        return tuple(range(rank_a - axes, rank_a)), tuple(range(axes))
    return all_in_range(axes[0], rank_a), all_in_range(axes[1], rank_b)


def _dot_shape(a: Tensor, b: Tensor, axes: Any) -> Shape:
    if a.shape.dims is None or b.shape.dims is None:
        return UNKNOWN
    p, q = a.shape.dims, b.shape.dims
    of_a, of_b = _both_axes(axes, len(p), len(q))
    for i, j in zip(of_a, of_b, strict=True):
        if None not in (p[i], q[j]) and p[i] != q[j]:
            raise InvalidArgumentError(
                f"axis {i} of {a.shape} and axis {j} of {b.shape} differ in size"
            )
    return Shape.of((*(p[i] for i in _free(len(p), of_a)), *(q[j] for j in _free(len(q), of_b))))


def _dot(xp: Any, a: Any, b: Any, axes: Any) -> Any:
    of_a, of_b = _both_axes(axes, a.ndim, b.ndim)
    if any(a.shape[i] != b.shape[j] for i, j in zip(of_a, of_b, strict=True)):
        raise InvalidArgumentError(
            f"axes {list(of_a)} of {list(a.shape)} and {list(of_b)} of {list(b.shape)} differ "
            "in size"
        )
    dtype = a.dtype
    if dtype.char == "e":
        a, b = a.astype(np.float32), b.astype(np.float32)
    return xp.tensordot(a, b, (of_a, of_b)).astype(dtype, copy=False)


def _dot_gradient(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    a, b = op.inputs
    if a.shape.rank is None or b.shape.rank is None:
        raise InvalidArgumentError("the gradient of tensordot needs inputs of known rank")
    of_a, of_b = _both_axes(op.attributes["axes"], a.shape.rank, b.shape.rank)
    letters = iter(string.ascii_letters)
    names_a = [next(letters) for _ in range(a.shape.rank)]
    names_b = [next(letters) for _ in range(b.shape.rank)]
    for i, j in zip(of_a, of_b, strict=True):
        names_b[j] = names_a[i]
    term_a, term_b = "".join(names_a), "".join(names_b)
    output = "".join(c for c in term_a + term_b if (c in term_a) != (c in term_b))
    return (
        _build([output, term_b], term_a, [dy, conjugate(b)]),
        _build([term_a, output], term_b, [conjugate(a), dy]),
    )


def _dot_flops(op: Operation) -> int:
    a, b = op.inputs[0].shape, op.inputs[1].shape
    if a.dims is None or b.dims is None:
        return 0
    of_a, _ = _both_axes(op.attributes["axes"], len(a.dims), len(b.dims))
    total = 2 * (op.outputs[0].shape.size or 0)
    for i in of_a:
        total *= a.dims[i] or 0
    return total


tensordot_op = OpDef(
    "TensorDot",
    "a: T, b: T -> product: T",
    T=NUMBERS,
    attributes={"axes": REQUIRED},
    infer=_dot_shape,
    kernel=_dot,
    grad=_dot_gradient,
    aliases={},
    cost=_dot_flops,
)


@tensordot_op.front
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over axes of two tensors.

    Args:
        a: of a number dtype.
        b: of the same dtype.
        axes: how many, an int: the last ones of `a` with the first ones of `b`; or a pair of ints
            or of sequences of them, the axes of `a` and those of `b`. It may be a constant tensor.
        name: the operation's name.

    Returns:
        A tensor whose dimensions are the others of `a` and then those of `b`.

    Raises:
        InvalidArgumentError: if the sizes differ; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.tensordot(fb.zeros([2, 3, 4]), fb.zeros([4, 3, 5]), [[1, 2], [1, 0]]).shape
    Shape([2, 5])
    """
    __tracebackhide__ = True
    with located("TensorDot"):
        a, b = both(a, b)
        chosen = _as_axes(axes)
    result: Tensor = tensordot_op(a, b, axes=chosen, name=name)
    return result


def _as_axes(axes: Any) -> Any:
    if isinstance(axes, Tensor):
        known = constant_value(axes)
        if known is None:
            raise InvalidArgumentError(f"axes are fixed when the graph is built, not {axes!r}")
        axes = known
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if not isinstance(axes, list | tuple):
        return as_axis(axes)
    if len(axes) != 2:
        raise InvalidArgumentError(f"axes are an int or a pair, not {axes!r}")
    pair = tuple(
        tuple(as_axis(i) for i in side)
        if isinstance(side, list | tuple | np.ndarray)
        else (as_axis(side),)
        for side in axes
    )
    if len(pair[0]) != len(pair[1]):
        raise InvalidArgumentError(f"axes name {len(pair[0])} of a but {len(pair[1])} of b")
    return pair
