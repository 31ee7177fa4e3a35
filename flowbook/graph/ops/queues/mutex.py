"""Mutexes: what only one step at a time does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowbook.graph.building.scopes import control_dependencies, init_scope
from flowbook.graph.definition.inference import nothing, scalar
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import ENDS_WAITS, HOLDS, MUTEX
from flowbook.graph.ops.basis.constants import convert_to_tensor, group, identity
from flowbook.graph.ops.queues.waiting_ops import owning_op, waiting_op

__all__ = ["Mutex"]

mutex_op = owning_op("Mutex", MUTEX)

acquire_op: OpDef = waiting_op(
    "MutexAcquire",
    "mutex: resource -> holding: variant",
    infer=scalar,
    kernel=lambda context, mutex: mutex.acquire(context),
    touches=HOLDS,
)

release_op: OpDef[Operation] = OpDef(
    "MutexRelease",
    "mutex: resource, holding: variant ->",
    infer=nothing,
    kernel=lambda xp, mutex, holding: mutex.release(holding),
    kinds=HOST,
    touches=ENDS_WAITS,
    only_moves=True,
)


@mutex_op.front
class Mutex:
    """What one step at a time holds; the others wait for it in the order in which they came.

    A step that ends in whatever way holds nothing any more. What one step executes with the same
    mutex goes in the order of construction; what asks for one that its own step holds then fails
    with a FailedPreconditionError.

    Args:
        shared_name: a name under which several operations share one mutex: those of one session,
            or, in a named container (`fb.container`), of all sessions of the process.
        name: the operation's name.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle.

    >>> import flowbook as fb
    >>> v, mutex = fb.Variable(0), fb.Mutex()
    >>> with mutex.scope():
    ...     doubled = fb.assign(v, v * 2 + 1)
    >>> with fb.Session() as sess:
    ...     print(sess.run(doubled), sess.run(doubled))
    1 3
    """

    def __init__(self, shared_name: str | None = None, name: str | None = None) -> None:
        with init_scope():
            self.handle: Tensor = mutex_op(shared_name=shared_name or "", name=name)
        self.op: Operation = self.handle.op

    @property
    def name(self) -> str:
        """The name of the operation that produces its handle."""
        return self.op.name

    def acquire(self, name: str | None = None) -> Tensor:
        """Hold it, as soon as nobody else does.

        Returns:
            What `release` takes. It is held until then, or until the step ends.
        """
        with self.op.graph.as_default():
            return acquire_op(self.handle, name=name)

    def release(self, holding: Tensor, name: str | None = None) -> Operation:
        """Let go of it.

        Args:
            holding: what `acquire` gave.
            name: the operation's name.

        Raises:
            FailedPreconditionError: in the run, if it has been released already.
        """
        with self.op.graph.as_default():
            return release_op(self.handle, holding, name=name)

    @contextmanager
    def scope(self) -> Iterator[Tensor]:
        """Whatever is built in the block runs while the step holds the mutex, until its end.

        Gives what `release` takes, for a step that goes on for long afterwards. A step that comes
        to a second such block of the same mutex fails there, and what it wrote in the first stays
        written; `execute` may be in a step as often as you like.
        """
        holding = self.acquire()
        with control_dependencies([holding]):
            yield holding

    def execute(self, function: Callable[[], Any]) -> Any:
        """What a function builds, run while the step holds the mutex, and no longer.

        Args:
            function: is called once, here; it returns a tensor or an operation, or a list of them.

        Returns:
            The same; with each of them the mutex is released, once all of them have run.

        Raises:
            InvalidTypeError: if it returns something else.

        >>> import flowbook as fb
        >>> v, mutex = fb.Variable(1), fb.Mutex()
        >>> doubled = mutex.execute(lambda: fb.assign(v, v * 2))
        >>> with fb.Session() as sess:
        ...     print(sess.run(doubled), sess.run(doubled))
        2 4
        """
        with self.scope() as holding:
            found = function()
            is_many = isinstance(found, list | tuple)
            parts = [
                each if isinstance(each, Operation) else convert_to_tensor(each)
                for each in (found if is_many else [found])
            ]
            with control_dependencies(parts):
                released = self.release(holding)
        with control_dependencies([released]):
            done = [
                group(each) if isinstance(each, Operation) else identity(each) for each in parts
            ]
        return done if is_many else done[0]

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle."""
        return self.handle
