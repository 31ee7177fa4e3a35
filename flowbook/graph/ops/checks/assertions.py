"""Assertions: operations that fail the step, with the values, where a condition does not hold.

What the graph alone decides is decided at construction: an assertion that cannot hold is an error
there, and one that always holds checks nothing in runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ml_dtypes import finfo

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import as_dtype, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import ASSERTS
from flowbook.graph.numerics.tensor_text import text_of
from flowbook.graph.ops.basis.constants import convert_to_tensor, no_op
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import rank as rank_of
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.math.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
)
from flowbook.graph.ops.math.complex import abs as abs_of
from flowbook.graph.ops.reduction.reductions import reduce_all, reduce_any

__all__ = [
    "Assert",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_scalar",
    "assert_type",
]


def _condition(condition: Tensor, data: Sequence[Tensor], **_: Any) -> list[Shape]:
    if condition.shape.rank not in (None, 0):
        raise InvalidArgumentError(
            f"the condition is a scalar, not of shape {condition.shape}",
            hint="fb.reduce_all(condition) says whether it holds throughout",
        )
    return []


def _assert(xp: Any, condition: Any, *data: Any, summarize: int) -> tuple[()]:
    if condition.ndim:
        raise InvalidArgumentError(
            f"the condition is a scalar, not of shape {list(condition.shape)}"
        )
    if not condition:
        raise _failed(data, summarize)
    return ()


def _failed(data: Sequence[Any], summarize: int) -> InvalidArgumentError:
    values = " ".join(text_of(value, summarize) for value in data)
    return InvalidArgumentError(f"assertion failed: {values}")


assert_op: OpDef[Operation] = OpDef(
    "Assert",
    "condition: bool, data: *data ->",
    attributes={"summarize": 3},
    infer=_condition,
    kernel=_assert,
    kinds=HOST,
    host_args=("condition",),
    touches=ASSERTS,
    only_moves=True,
)


@assert_op.front
def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """Fail the step, showing values, if a condition does not hold.

    Args:
        condition: a bool scalar.
        data: a list of tensors or values that the error shows.
        summarize: how many elements at the beginning and the end of each dimension it shows, 3 by
            default; -1 shows all.

    Returns:
        The operation. It runs if it is fetched, or if something waits for it.

    Raises:
        InvalidArgumentError: in the run, if the condition does not hold.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None])
    >>> with fb.control_dependencies([fb.Assert(fb.size(x) > 0, ["no elements:", x])]):
    ...     mean = fb.reduce_mean(x)
    """
    if not isinstance(data, list | tuple):
        raise InvalidTypeError(f"what to show is a list of tensors, not {data!r}")
    return assert_op(
        condition, list(data), summarize=3 if summarize is None else summarize, name=name
    )


_CHECKED = """

    Args:
        x: of a real number dtype.{y}
        data: a list of tensors or values that the error shows; by default {default}.
        summarize: how many elements at the beginning and the end of each dimension it shows, 3 by
            default; -1 shows all.
        message: what the error says first.
        name: the operation's name.

    Returns:
        The operation. It runs if it is fetched, or if something waits for it.

    Raises:
        InvalidArgumentError: if it does not hold; in the run, where it is known only then.
    """


def _of_two(name: str, symbol: str, condition: OpDef, words: str) -> Callable[..., Operation]:
    def check(
        x: Any,
        y: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        what = f"x {symbol} y does not hold for all elements"
        x, y = _both(x, y)
        shown = _shown(what, message, data, x=x, y=y)
        return _hold_throughout(condition, x, y, shown, summarize, name)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Fail the step unless `x` {words} `y`, for all elements." + _CHECKED.format(
        y="\n        y: of the same dtype; the two broadcast.", default="`x` and `y`"
    )
    return composed(check)


def _of_sign(name: str, symbol: str, condition: OpDef, words: str) -> Callable[..., Operation]:
    def check(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        what = f"x {symbol} 0 does not hold for all elements"
        x = convert_to_tensor(x)
        shown = _shown(what, message, data, x=x)
        zero = convert_to_tensor(np.zeros((), x.dtype.numpy))
        return _hold_throughout(condition, x, zero, shown, summarize, name)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Fail the step unless `x` is {words}, for all elements." + _CHECKED.format(
        y="", default="`x`"
    )
    return composed(check)


def _both(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of one dtype; a value takes that of a tensor."""
    if not isinstance(x, Tensor) and isinstance(y, Tensor):
        return convert_to_tensor(x, y.dtype), y
    x = convert_to_tensor(x)
    return x, convert_to_tensor(y, x.dtype)


def _shown(
    what: str, message: str | None, data: Sequence[Any] | None, **tensors: Tensor
) -> list[Any]:
    """What the error of an assertion shows."""
    first = f"{message}: {what}" if message else what
    if data is not None:
        return [first, *data]
    return [first, *(i for n, t in tensors.items() for i in (f"\n{n} ({t.name}) =", t))]


def _hold_throughout(
    condition: OpDef,
    x: Tensor,
    y: Tensor,
    shown: list[Any],
    summarize: int | None,
    name: str | None,
) -> Operation:
    """An assertion that a condition of two tensors holds for all elements."""
    known = constant_value(x), constant_value(y)
    if known[0] is None or known[1] is None:
        return Assert(reduce_all(condition(x, y)), shown, summarize, name=name)
    try:
        assert condition.kernel is not None
        holds = condition.kernel(np, *known)
    except ValueError:
        condition(x, y)  # Says why the two do not broadcast.
        raise
    return _decided(bool(np.all(holds)), shown, summarize, name)


def _decided(
    holds: bool, shown: list[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """What becomes of an assertion whose condition is known already."""
    if not holds:
        raise _failed([_now(item) for item in shown], 3 if summarize is None else summarize)
    return no_op(name=name)


def _now(item: Any) -> Any:
    if not isinstance(item, Tensor):
        return item.encode() if isinstance(item, str) else item
    known = constant_value(item)
    return item.name.encode() if known is None else known


assert_equal = _of_two("assert_equal", "==", equal, "equals")
assert_none_equal = _of_two("assert_none_equal", "!=", not_equal, "differs from")
assert_less = _of_two("assert_less", "<", less, "is below")
assert_less_equal = _of_two("assert_less_equal", "<=", less_equal, "is at most")
assert_greater = _of_two("assert_greater", ">", greater, "is above")
assert_greater_equal = _of_two("assert_greater_equal", ">=", greater_equal, "is at least")
assert_positive = _of_sign("assert_positive", ">", greater, "positive")
assert_negative = _of_sign("assert_negative", "<", less, "negative")
assert_non_negative = _of_sign("assert_non_negative", ">=", greater_equal, "not negative")
assert_non_positive = _of_sign("assert_non_positive", "<=", less_equal, "not positive")


@composed
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fail the step unless `abs(x - y) <= atol + rtol * abs(y)`, for all elements.

    Args:
        x: of a floating-point dtype.
        y: of the same dtype; the two broadcast.
        rtol: the relative tolerance, 10 times the dtype's epsilon by default.
        atol: the absolute tolerance, likewise.
        data: a list of tensors or values that the error shows; by default `x` and `y`.
        summarize: how many elements at the beginning and the end of each dimension it shows.
        message: what the error says first.

    Raises:
        InvalidArgumentError: in the run, if it does not hold.
    """
    x, y = _both(x, y)
    if not x.dtype.is_floating:
        raise InvalidTypeError(
            f"assert_near takes floating-point tensors, not {x.dtype.name}",
            hint="fb.assert_equal compares integers",
        )
    least = 10 * float(finfo(x.dtype.numpy).eps)  # type: ignore[no-untyped-call]
    bounds = [convert_to_tensor(least if t is None else t, x.dtype) for t in (rtol, atol)]
    near = less_equal(abs_of(x - y), bounds[1] + bounds[0] * abs_of(y))
    shown = _shown("x and y are not near throughout", message, data, x=x, y=y)
    return Assert(reduce_all(near), shown, summarize, name=name)


@composed
def assert_rank(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fail the step unless `x` has a certain number of dimensions.

    Args:
        x: of any dtype.
        rank: the number, an int or an int32 scalar tensor.
        data: a list of tensors or values that the error shows; by default `x`'s shape.
        summarize: how many elements at the beginning and the end of each dimension it shows.
        message: what the error says first.

    Raises:
        InvalidArgumentError: if it has another; in the run, where it is known only then.
    """
    return _rank(x, [rank], equal, data, summarize, message, name)


@composed
def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fail the step unless `x` has at least so many dimensions. Arguments as for `assert_rank`."""
    return _rank(x, [rank], greater_equal, data, summarize, message, name)


@composed
def assert_rank_in(
    x: Any,
    ranks: Sequence[Any],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fail the step unless `x` has one of several numbers of dimensions.

    Arguments as for `assert_rank`, with a sequence `ranks`.
    """
    return _rank(x, list(ranks), equal, data, summarize, message, name)


def _rank(
    x: Any,
    ranks: list[Any],
    condition: OpDef,
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    x = convert_to_tensor(x)
    wanted = [convert_to_tensor(rank, int32) for rank in ranks]
    for rank in wanted:
        if rank.shape.rank not in (None, 0):
            raise InvalidArgumentError(f"a rank is a scalar, not of shape {rank.shape}")
    numbers = [constant_value(rank) for rank in wanted]
    words = "at least " if condition is greater_equal else ""
    listed = " or ".join("?" if n is None else str(n) for n in numbers)
    first = f"{x.name} {x.shape} has not {words}{listed} dimensions"
    shown = [f"{message}: {first}" if message else first, *(data or [])]
    if x.shape.rank is not None and all(n is not None for n in numbers):
        assert condition.kernel is not None
        holds = any(condition.kernel(np, x.shape.rank, n) for n in numbers)
        return _decided(holds, shown, summarize, name)
    actual = rank_of(x)
    found = [condition(actual, rank) for rank in wanted]
    if data is None:
        shown += ["but the shape", shape_of(x)]
    return Assert(reduce_any(stack(found)), shown, summarize, name=name)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """See at construction that a tensor is a scalar; returns it.

    Raises:
        InvalidArgumentError: if it is not known to be one.
    """
    tensor = convert_to_tensor(tensor, name=name)
    if tensor.shape.rank != 0:
        first = f"{tensor.name} is not known to be a scalar: its shape is {tensor.shape}"
        raise InvalidArgumentError(f"{message}: {first}" if message else first)
    return tensor  # type: ignore[no-any-return]


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """See at construction that a tensor has a dtype.

    Returns:
        An operation that does nothing, as there is nothing left to check.

    Raises:
        InvalidTypeError: if it has another.
    """
    tensor, wanted = convert_to_tensor(tensor), as_dtype(tf_type)
    return _has_type(tensor, tensor.dtype is wanted, wanted.name, message, name or "assert_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """See at construction that a tensor has an integer dtype.

    Returns:
        An operation that does nothing, as there is nothing left to check.

    Raises:
        InvalidTypeError: if it has another.
    """
    tensor = convert_to_tensor(x)
    is_integer = tensor.dtype.is_integer
    return _has_type(tensor, is_integer, "an integer dtype", message, name or "assert_integer")


def _has_type(
    tensor: Tensor, holds: bool, wanted: str, message: str | None, name: str
) -> Operation:
    if not holds:
        first = f"{tensor.name} is {tensor.dtype.name}, not {wanted}"
        raise InvalidTypeError(f"{message}: {first}" if message else first)
    with tensor.graph.as_default():
        return no_op(name=name)
