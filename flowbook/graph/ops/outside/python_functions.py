"""Python functions as operations.

Invariant: a function sees copies, which no way of writing makes anything else of, such as a
variable; they are read-only, so that writing to them is no silent mistake. It gives up what it
returns: results are copied too, and have exactly the dtypes that were promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, REQUIRED, OpDef
from flowbook.graph.model.convert import to_array
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    OpError,
    without_internal_frames,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import OUTSIDE, Touch

__all__ = ["py_func"]


def _gradient(op: Operation, *dys: Tensor | None) -> Any:
    grad = op.attributes["grad"]
    if grad is None:
        raise NotFoundError(
            "no gradient is defined for it",
            op,
            hint="give py_func a `grad`, or put fb.stop_gradient before it",
        )
    try:
        return grad(op, *dys)
    except OpError:
        raise
    except Exception as error:
        raise InvalidArgumentError(
            f"its gradient function raised {type(error).__name__}: {error}", op
        ) from without_internal_frames(error)


def _call(xp: Any, *inputs: Any, func: Callable[..., Any], Tout: tuple[DType, ...]) -> Any:
    returned = func(*[_read_only_copy(value) for value in inputs])
    results = returned if _is_sequence(returned) else [returned]
    if not Tout and returned is None:
        results = []
    if len(results) != len(Tout):
        raise InvalidArgumentError(
            f"{_name(func)} returned {_described(returned)} where {_promised(Tout)}",
            hint="a list is one value for each dtype; one value is an array"
            if _is_sequence(returned)
            else None,
        )
    return tuple(_checked(func, i, *pair) for i, pair in enumerate(zip(results, Tout, strict=True)))


def _call_on_thread(
    context: Any, *inputs: Any, func: Callable[..., Any], Tout: tuple[DType, ...]
) -> None:
    context.call(partial(_call_named, context.xp, *inputs, func=func, Tout=Tout), _name(func))


# The names of the functions that a step is in, where somebody wants to know.
running: ContextVar[list[str] | None] = ContextVar("flowbook_running_functions", default=None)


def _call_named(xp: Any, *inputs: Any, func: Callable[..., Any], Tout: tuple[DType, ...]) -> Any:
    names = running.get()
    if names is None:
        return _call(xp, *inputs, func=func, Tout=Tout)
    names.append(_name(func))
    try:
        return _call(xp, *inputs, func=func, Tout=Tout)
    finally:
        names.remove(_name(func))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _described(value: Any) -> str:
    return f"a list of {len(value)}" if _is_sequence(value) else f"one {type(value).__name__}"


def _promised(Tout: tuple[DType, ...]) -> str:
    if not Tout:
        return "none was promised"
    names = ", ".join(t.name for t in Tout)
    return f"one {names} was promised" if len(Tout) == 1 else f"{len(Tout)} were promised: {names}"


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or repr(func)


def _read_only_copy(value: Any) -> Any:
    copy = np.array(value)
    copy.flags.writeable = False
    return copy


def _checked(func: Callable[..., Any], index: int, value: Any, dtype: DType) -> Any:
    try:
        array = to_array(value, dtype)
    except OpError as error:
        raise InvalidArgumentError(
            f"result {index} of {_name(func)} is not {dtype.name}: {error.message}",
            hint=error.hint,
        ) from None
    return np.array(array, order="C")


def _unknown_shapes(inp: Sequence[Tensor], Tout: tuple[DType, ...], **_: Any) -> list[Shape]:
    return [UNKNOWN] * len(Tout)


def _function_op(
    type: str, touches: Touch | None, kernel: Callable[..., Any], is_async: bool
) -> OpDef[Any]:
    return OpDef(
        type,
        "inp: *inp -> outputs: *Tout",
        attributes={"func": REQUIRED, "Tout": REQUIRED, "grad": None},
        infer=_unknown_shapes,
        kernel=kernel,
        is_async=is_async,
        kinds=HOST,
        grad=_gradient,
        touches=touches,
        aliases={},
        runs_users_code=True,
        cost=uncounted,
    )


py_func_op = _function_op("PyFunc", OUTSIDE, _call_named, is_async=False)
py_func_stateless_op = _function_op("PyFuncStateless", None, _call_on_thread, is_async=True)


@py_func_op.front
def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
    *,
    grad: Callable[..., Any] | None = None,
) -> Any:
    """Call a Python function in every run that needs it.

    Args:
        func: takes a copy of each input, a read-only array, and returns an array or a number, or a
            list or tuple of one for each dtype.
        inp: its inputs, a list of tensors or values of any dtypes.
        Tout: the dtype of what it returns, or a list of dtypes for as many results.
        stateful: whether it does more than compute its results from its inputs. If so, its calls
            happen in the order of construction, on the thread that runs the step, and none is
            merged with another or left out. If not, each call has a thread of its own, so that
            they may overlap and even wait for one another.
        grad: builds its gradient: `grad(op, *dys)`, with the gradient of each result, gives that
            of each input, None where there is none. Another `py_func` may compute it.

    Returns:
        A tensor of unknown shape, or a list of them if `Tout` is a list (of none: the operation).

    A timeout ends the wait for any function, and so does an interrupt; the error names those that
    still run. In a run with a timeout no function is called on the caller's own thread.

    Raises:
        InvalidArgumentError: in the run, if results do not fit `Tout` in number or dtype.
        InvalidTypeError: if `func` cannot be called.

    Without `grad` it has no gradient: asking for one is a LookupError.

    >>> import flowbook as fb
    >>> doubled = fb.py_func(lambda x: 2 * x, [fb.constant(4.0)], fb.float32)
    >>> with fb.Session() as sess:
    ...     print(sess.run(doubled))
    8.0
    """
    if not callable(func):
        raise InvalidTypeError(f"py_func takes a function, not {func!r}")
    if not _is_sequence(inp):
        raise InvalidTypeError(f"the inputs are a list of tensors, not {inp!r}")
    dtypes = tuple(as_dtype(t) for t in (Tout if _is_sequence(Tout) else [Tout]))
    op_def = py_func_op if stateful else py_func_stateless_op
    if grad is not None and not callable(grad):
        raise InvalidTypeError(f"a gradient is built by a function, not by {grad!r}")
    outputs = op_def(list(inp), func=func, Tout=dtypes, grad=grad, name=name)
    return outputs if _is_sequence(Tout) else outputs[0]
