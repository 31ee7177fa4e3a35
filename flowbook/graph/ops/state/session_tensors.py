"""Session handles: what a run computed stays in the session, and another run goes on with it.

The value lives on the device that computed it, and a handle, which is a number to operations, leads
to it. It lives as long as somebody holds the `TensorHandle` that the run gave.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.scopes import device, init_scope, name_scope
from flowbook.graph.definition.inference import nothing, scalar
from flowbook.graph.definition.op_def import NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import MOVABLE, DType, as_dtype
from flowbook.graph.model.errors import FailedPreconditionError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import READS, SESSION_TENSORS, WRITES
from flowbook.graph.ops.basis.constants import convert_to_tensor, placeholder

__all__ = ["TensorHandle", "delete_session_tensor", "get_session_handle", "get_session_tensor"]

Array = np.ndarray[Any, Any]


class Keeper(Protocol):
    """What keeps the values of handles: a resource of a session.

    Attributes:
        asked: the device that was asked for, or an empty string.
    """

    asked: str

    def host_value(self, handle: int) -> Array:
        """The value, in host memory; FailedPreconditionError if it is gone."""

    def drop(self, handle: int) -> None:
        """Let go of a value, if it is there."""


# What the shared name of what keeps them begins with; the device follows.
KEPT = "session_tensors"

# Who keeps the value of which handle.
keepers: weakref.WeakValueDictionary[int, Keeper] = weakref.WeakValueDictionary()


def _drop(handle: int) -> None:
    keeper = keepers.pop(handle, None)
    if keeper is not None:
        keeper.drop(handle)


class TensorHandle:
    """A value that stays in a session, as `sess.run` gives it for `fb.get_session_handle(x)`.

    The session lets go of the value when the last reference to its handle is gone, when it is
    deleted, and at its end. Where an array is wanted, as in feeds of other tensors and in
    `np.asarray`, the handle stands for the value, which is read-only, and on a CPU not copied.

    Attributes:
        handle: the number that leads to it, which the placeholder of `fb.get_session_tensor` takes.
    """

    __slots__ = ("__weakref__", "_finalizer", "handle")

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._finalizer = weakref.finalize(self, _drop, handle)
        self._finalizer.atexit = False

    def delete(self) -> None:
        """Let go of the value now."""
        self._finalizer()

    @property
    def device(self) -> str:
        """The device that was asked for where it was kept, or an empty string."""
        return self._keeper().asked

    @property
    def dtype(self) -> DType:
        """The type of the value's elements."""
        return as_dtype(self._value().dtype)

    @property
    def shape(self) -> Shape:
        """The value's shape."""
        return Shape(self._value().shape)

    def _keeper(self) -> Keeper:
        keeper = keepers.get(self.handle)
        if keeper is None:
            raise FailedPreconditionError(
                f"the value of {self!r} was let go of: it was deleted, or its session closed"
            )
        return keeper

    def _value(self) -> Array:
        return self._keeper().host_value(self.handle)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._value(), dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<TensorHandle {self.handle}>"


kept_tensors_op = OpDef(
    "SessionTensors",
    "-> handle: resource",
    attributes={"shared_name": REQUIRED},
    infer=scalar,
    owns=SESSION_TENSORS.name,
    only_moves=True,
)

get_handle_op = OpDef(
    "GetSessionHandle",
    "tensors: resource, value: T -> handle: int64",
    T=MOVABLE,
    infer=scalar,
    kernel=lambda xp, tensors, value: xp.asarray(tensors.keep(xp.array(value)), "int64"),
    touches=WRITES,
    needs_value=False,
    fetched_as=lambda handle: TensorHandle(int(handle)),
    only_moves=True,
)


def _gone(xp: Any, tensors: Any, handle: Any) -> tuple[()]:
    tensors.delete(int(handle))
    return ()


get_tensor_op = OpDef(
    "GetSessionTensor",
    "tensors: resource, handle: int64 -> value: dtype",
    attributes={"dtype": REQUIRED},
    infer=lambda tensors, handle, dtype: UNKNOWN,
    kernel=lambda xp, tensors, handle, dtype: tensors.typed(int(handle), dtype),
    host_args=("handle",),
    grad=NO_GRADIENT,
    touches=READS,
    needs_value=False,
    aliases={0: 0},
    only_moves=True,
)

delete_tensor_op: OpDef[Operation] = OpDef(
    "DeleteSessionTensor",
    "tensors: resource, handle: int64 ->",
    infer=nothing,
    kernel=_gone,
    host_args=("handle",),
    touches=WRITES,
    needs_value=False,
    only_moves=True,
)


def takes_handles(tensor: Tensor) -> bool:
    """Whether a number is one that leads to a kept value: fed with a handle, it gets its number."""
    return any(op.op_def in (get_tensor_op, delete_tensor_op) for op in tensor.consumers())


def _kept() -> Tensor:
    """What keeps the values of the device that is asked for: all of them lie in one place."""
    with init_scope():
        return kept_tensors_op(shared_name=f"{KEPT}{get_default_graph().scope.device}")


def _beside(handle: Any) -> AbstractContextManager[Any]:
    """Build for the device of a handle, where one was asked for."""
    where = handle.device if isinstance(handle, TensorHandle) else ""
    return device(where) if where else nullcontext()


def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """Have the value of a tensor stay in the session, on the device that computes it.

    Args:
        data: the tensor.
        name: the operation's name.

    Returns:
        An int64 scalar. Fetching it gives a TensorHandle, which stands for the value: a later run
        takes it up by `fb.get_session_tensor`, or by feeding it, without a copy.

    >>> import flowbook as fb
    >>> kept = fb.get_session_handle(fb.range(5) * 2)
    >>> handle_in, values = fb.get_session_tensor(None, fb.int32)
    >>> with fb.Session() as sess:
    ...     handle = sess.run(kept)
    ...     print(sess.run(fb.reduce_sum(values), {handle_in: handle}))
    20
    """
    value = convert_to_tensor(data)
    with value.graph.as_default():
        return get_handle_op(_kept(), value, name=name)


def get_session_tensor(
    handle: Any, dtype: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Build what takes up a value that stays in a session.

    Args:
        handle: one of the TensorHandles that will be fed, which tells the dtype and the device; or
            None.
        dtype: that of the value.
        name: the name scope.

    Returns:
        `(placeholder, tensor)`: an int64 scalar to feed with a TensorHandle, or its `handle`, and
        the value, of any shape. No gradient flows through it.

    Raises:
        InvalidTypeError: if there is no dtype.
        FailedPreconditionError: in the run, if the value was let go of.
        InvalidArgumentError: in the run, if it belongs to another session, or has another dtype.
    """
    if dtype is None and isinstance(handle, TensorHandle):
        dtype = handle.dtype
    if dtype is None:
        raise InvalidTypeError(
            "the dtype of the value is missing", hint="fb.get_session_tensor(handle, fb.float32)"
        )
    with _beside(handle), name_scope(name or "GetSessionTensor") as scope:
        given = placeholder(dtypes.int64, [], name="handle")
        return given, get_tensor_op(_kept(), given, dtype=as_dtype(dtype), name=scope)


def delete_session_tensor(handle: Any = None, name: str | None = None) -> tuple[Tensor, Operation]:
    """Build what lets go of a value that stays in a session; `handle.delete()` does it at once.

    Args:
        handle: one of the TensorHandles that will be fed, which tells the device; or None.
        name: the name scope.

    Returns:
        `(placeholder, operation)`: an int64 scalar to feed with a TensorHandle, or its `handle`,
        and the operation.

    Raises:
        FailedPreconditionError: in the run, if the value was let go of before.
        InvalidArgumentError: in the run, if it belongs to another session.
    """
    with _beside(handle), name_scope(name or "DeleteSessionTensor") as scope:
        given = placeholder(dtypes.int64, [], name="handle")
        return given, delete_tensor_op(_kept(), given, name=scope)
