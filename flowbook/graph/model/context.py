"""Where in the control flow an operation runs: in which frame, in which branches (section 4.4).

The graph's structure alone says it, so that a stored graph tells as much as the one that was built:
what an Enter gives is in a frame, what a Switch gives is in one of its two branches, and whatever
takes such a value is there too, until an Exit leaves the frame, or a Merge joins the branches.

Constants, and the handles of resources, are there before a step begins, in every frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.retag import Retag

if TYPE_CHECKING:
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.tensor import Tensor


# What every Enter of a frame says of it.
FRAME_OPTIONS = ("parallel_iterations", "swap_memory", "recompute")


class Frame:
    """A loop: what runs in it runs once in each of its iterations.

    Attributes:
        name: by which Enters name it.
        is_function: whether it is the body of a function: what is in it runs once in each call.
        outer: where it is entered from; None for the outermost frame.
        parallel_iterations: how many of its iterations may be under way at once.
        swap_memory: whether what gradients need of its iterations goes to host memory.
        recompute: whether gradients compute anew what an iteration computed, rather than keep it.
    """

    __slots__ = (
        "__weakref__",
        "is_function",
        "name",
        "outer",
        "parallel_iterations",
        "recompute",
        "swap_memory",
    )

    def __init__(
        self,
        name: str,
        outer: Context | None,
        parallel_iterations: int = 1,
        swap_memory: bool = False,
        recompute: bool = False,
        is_function: bool = False,
    ) -> None:
        self.name = name
        self.is_function = is_function
        self.outer = outer
        self.parallel_iterations = parallel_iterations
        self.swap_memory = swap_memory
        self.recompute = recompute

    def entered_from(self, outer: Context | None, name: str) -> Frame:
        """A frame of the same kind, entered from elsewhere."""
        return Frame(name, outer, self.parallel_iterations, self.swap_memory, self.recompute)

    @property
    def described(self) -> str:
        """What errors call it, such as "the loop 'while'"."""
        return f"the {'function' if self.is_function else 'loop'} {self.name!r}"

    @property
    def repeats(self) -> str:
        """What there is a value for of each of its tensors."""
        return "call" if self.is_function else "iteration"

    def __repr__(self) -> str:
        return f"<Frame {self.name!r}>"


@dataclass(frozen=True)
class Branch:
    """What is alive only if a predicate is true (side 1), or only if it is false (side 0).

    Attributes:
        pred: the predicate.
        side: which of its values.
        outer: where the predicate decides; None for the outermost frame.
    """

    pred: Tensor
    side: int
    outer: Context | None


Context = Frame | Branch


def chain(context: Context | None) -> Iterator[Context]:
    """A context and those around it, from within."""
    while context is not None:
        yield context
        context = context.outer


def frame_of(context: Context | None) -> Frame | None:
    """The innermost frame; None for the outermost."""
    while isinstance(context, Branch):
        context = context.outer
    return context


def is_within(context: Context | None, outer: Context | None) -> bool:
    """Whether one context is another one, or lies in it."""
    while context is not None and context != outer:
        context = context.outer
    return context == outer


def is_everywhere(operation: Operation) -> bool:
    """Whether its outputs are there before a step begins, in every frame."""
    op_def = operation.op_def
    return (op_def.is_constant and not operation.control_inputs) or op_def.is_handle


def context_of(tensor: Tensor) -> Context | None:
    """Where a tensor's value is."""
    operation = tensor.op
    if operation.op_def.gives_dead:
        return Branch(operation.inputs[-1], tensor.index, operation.context)
    return operation.context


def runs_in(operation: Operation) -> Context | None:
    """Where an operation itself runs; one that enters or leaves a frame gives elsewhere."""
    retag = operation.op_def.retag
    if retag is Retag.PUSH:
        return operation.context.outer if operation.context is not None else None
    if retag is not Retag.NONE:
        return joined(operation)
    return operation.context


def joined(operation: Operation) -> Context | None:
    """Where an operation runs, by what it takes and waits for.

    Raises:
        InvalidArgumentError: if these are in different frames, or in opposite branches.
    """
    found: Context | None = None
    seen: Tensor | Operation | None = None
    places: list[tuple[Tensor | Operation, Context | None]] = [
        (t, context_of(t)) for t in operation.inputs if not is_everywhere(t.op)
    ]
    if operation.op_def.fires_on_any and places:
        places = [(operation.inputs[0], _common([context for _, context in places]))]
    waited = [o for o in operation.control_inputs if not is_everywhere(o)]
    if operation.op_def.sees_dead and len({frame_of(o.context) for o in waited}) == 1:
        # It runs whichever of them are dead.
        places.append((waited[0], _common([o.context for o in waited])))
    else:
        places += [(o, o.context) for o in waited]
    for what, context in places:
        if seen is None:
            found, seen = context, what
        elif context != found:
            found = _both(found, seen, context, what)
            seen = what if found == context else seen
    return found


def _common(contexts: list[Context | None]) -> Context | None:
    """The innermost context that all lie in."""
    first, *others = contexts or [None]
    return next((c for c in chain(first) if all(is_within(o, c) for o in others)), None)


def _both(
    one: Context | None,
    what: Tensor | Operation,
    other: Context | None,
    what_else: Tensor | Operation,
) -> Context | None:
    """The context of what takes something of each of two."""
    if frame_of(one) is not frame_of(other):
        raise InvalidArgumentError(
            f"{what.name!r} is {_described(frame_of(one))}, and {what_else.name!r} "
            f"{_described(frame_of(other))}: what is combined has to be in one of them",
            hint="take into a loop by fb.control_flow.enter, and out of it by fb.control_flow.exit",
        )
    if is_within(one, other):
        return one
    if is_within(other, one):
        return other
    return _added(one, _branches(other), what, what_else)


def _added(
    context: Context | None,
    branches: Iterable[Branch],
    what: Tensor | Operation,
    what_else: Tensor | Operation,
) -> Context | None:
    sides = {branch.pred: branch.side for branch in _branches(context)}
    for branch in branches:
        if branch.pred not in sides:
            context = Branch(branch.pred, branch.side, context)
        elif sides[branch.pred] != branch.side:
            raise InvalidArgumentError(
                f"{what.name!r} and {what_else.name!r} are on opposite sides of "
                f"{branch.pred.name!r}: what takes both would never run",
                hint="join them by fb.control_flow.merge, or by what fb.cond gives",
            )
    return context


def _branches(context: Context | None) -> list[Branch]:
    """The branches of a context within its frame, the outermost first."""
    found: list[Branch] = []
    while isinstance(context, Branch):
        found.insert(0, context)
        context = context.outer
    return found


def _described(frame: Frame | None) -> str:
    return f"in {frame.described}" if frame is not None else "outside of all loops"
