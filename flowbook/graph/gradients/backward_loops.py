"""The loops that gradients are computed in, and what they need of the loops before them.

What the backward loop needs of each iteration the forward loop pushes on a stack
(`control_flow/stacks.py`), in the order in which the gradients of the body ask for it; what is the
same in every iteration is taken as it is. Of a loop that says `recompute` only the variables are
pushed, and what cannot be computed again: the backward loop computes the rest once more, where it
is asked for.

While the backward loop's body is built, the forward loop's tensors are captured like any others
from outside (`Backward.captured`): so gradient functions know nothing of loops, and loops and
branches within loops are no special case. For that, a forward loop, which is complete, is extended
by further variables (`Extension`): a count of its iterations, and the stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import name_scope, within
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.control_flow.array_ops import add_arrays, array_op, concat_op, write_op
from flowbook.graph.control_flow.flows import LoopInside
from flowbook.graph.control_flow.routing import (
    exit,
    held,
    is_held,
    loop_cond,
    merge_op,
    next_iteration_op,
    switch_op,
    taken_into,
)
from flowbook.graph.control_flow.stacks import (
    empty_stack,
    pop,
    pop_from_host,
    push,
    push_to_host,
)
from flowbook.graph.gradients.loop_dependence import is_entered
from flowbook.graph.model.context import (
    Branch,
    Context,
    Frame,
    chain,
    context_of,
    frame_of,
    is_everywhere,
    is_within,
)
from flowbook.graph.model.dtypes import string, variant
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import Gradient, as_dense
from flowbook.graph.ops.basis.constants import constant, identity
from flowbook.graph.ops.linalg.product_sums import is_larger_than_factors
from flowbook.graph.ops.math.arithmetic import add, subtract
from flowbook.graph.ops.math.comparison import greater


def on_behalf_of(graph: Graph, op: Operation, prefix: str) -> AbstractContextManager[Scope]:
    """Build with a forward operation's site and device, under names that begin so."""
    author = sites.capture().author
    site = sites.DerivedSite(op.site.code, op.site.offset, author)
    # A request in part admits several devices: it is the same one.
    beside = (op,) if op.device or op.colocation else ()

    def change(scope: Scope) -> Scope:
        return scope._replace(prefix=prefix, device=op.device, colocation=beside, site=site)

    return within(graph, change)


class Left(NamedTuple):
    """A gradient as it leaves a backward loop.

    Attributes:
        source: the tensor of the outside whose gradient it is.
        tensors: what leaves: the gradient, or arrays of pieces of which it is made, one for each
            iteration.
        firsts: what such arrays begin with.
        made: makes the gradient of what leaves, pieces joined.
    """

    source: Tensor
    tensors: Sequence[Tensor]
    firsts: Sequence[Tensor] = ()
    made: Callable[..., Gradient] = as_dense

    def gradient(self, before: Mapping[Operation, Operation]) -> Gradient:
        """The gradient, where other operations stand for some."""
        tensors = [before.get(t.op, t.op).outputs[0] for t in self.tensors]
        if self.firsts:
            tensors = [
                concat_op(array, dtype=first.dtype, element_shape=_rows_of(first))[0]
                for array, first in zip(tensors, self.firsts, strict=True)
            ]
        return self.made(*tensors)


def _rows_of(tensor: Tensor) -> Shape:
    """The shape of any number of rows like a tensor's."""
    return Shape.of((None,)).concatenate(tensor.shape[1:])


def name_of(tensor: Tensor) -> str:
    """A tensor's name as a part of names."""
    return name_from(tensor.name.replace("/", "_"))


def added(one: Tensor, other: Tensor) -> Tensor:
    """The sum of two partial gradients, of arrays piece by piece."""
    return add_arrays([one, other]) if one.dtype is variant else add(one, other)


class Round(NamedTuple):
    """A variable of a loop that is being built.

    Attributes:
        merge: gives its value in each iteration.
        no: what it is at last, inside.
        yes: its value in the body.
    """

    merge: Operation
    no: Tensor
    yes: Tensor


class _Extended(LoopInside):
    """A loop that variables are added to one by one, its condition being known.

    Attributes:
        body: what runs in it where there is another iteration.
    """

    body: Branch

    def variable(self, first: Any, shape: Shape | None = None) -> Round:
        """A further variable."""
        merged = self._merged(first, shape)
        with self.routing():
            return self._round(merged)

    def _round(self, merged: Tensor) -> Round:
        sides: tuple[Tensor, Tensor] = switch_op(merged, self.body.pred)
        return Round(merged.op, sides[1 - self.body.side], sides[self.body.side])

    def _merged(self, first: Any, shape: Shape | None) -> Tensor:
        if shape is not None:
            # Of zeros that are as a tensor in the run less may be known than of that.
            shape = shape.generalise(first.shape)
        with self.before():
            entered = taken_into(self.frame, first, shape=shape)
        with self.routing():
            return merge_op([entered])[0]

    def close(self, variable: Round, following: Tensor) -> None:
        """Say what a variable is in the next iteration."""
        with self.routing(), within(self._graph, lambda s: s._replace(closes=variable.merge)):
            next_iteration_op(following)

    def left(self, variable: Round) -> Tensor:
        """What a variable is at last, outside."""
        with self.routing():
            return exit(variable.no)

    @contextmanager
    def before(self) -> Iterator[None]:
        """Build outside what a variable begins as, on the device of what it is for.

        What takes a variable round shares a device, and the loop may have been built for another.
        """
        beside = self._graph.scope

        def change(scope: Scope) -> Scope:
            return scope._replace(device=beside.device, colocation=beside.colocation)

        with self.outside(), within(self._graph, change):
            yield

    @contextmanager
    def routing(self) -> Iterator[None]:
        """Build what runs inside, and is told where by what it takes."""
        with within(self._graph, lambda s: s._replace(flow=None, control_inputs=())):
            yield


class Extension(_Extended):
    """A complete loop, to which variables are added.

    Attributes:
        count: how often its body ran, outside.
    """

    def __init__(self, graph: Graph, frame: Frame, body: Branch) -> None:
        entered = taken_into(frame, constant(0))
        super().__init__(graph, frame, entered.op)
        self.body = body
        with self.routing():
            counted = self._round(merge_op([entered])[0])
            following = add(counted.yes, 1)
            pivot = identity(counted.yes)
        self.close(counted, following)
        self.begin_body(body, pivot.op)
        self.count = self.left(counted)

    def stacked(self, tensor: Tensor) -> Tensor:
        """A stack, outside, of a tensor's values in all iterations; the last is on top."""
        value = tensor
        for branch in self.branches_around(context_of(tensor)):
            value = self._merged_with_nothing(value, branch)
        with self.before():
            first = empty_stack()
        stack = self.variable(first)
        with self.routing():
            pushed = (push_to_host if self.swaps(value) else push)(stack.yes, value)
        self.close(stack, pushed)
        return self.left(stack)

    def swaps(self, tensor: Tensor) -> bool:
        """Whether the values of a tensor are kept in host memory; stacks say so themselves."""
        return self.frame.swap_memory and tensor.dtype is not variant

    def _merged_with_nothing(self, value: Tensor, branch: Branch) -> Tensor:
        """A value that is there on both sides of a predicate; on the other one it means nothing."""
        if value.dtype is variant:
            with self.entered():
                nothing = empty_stack()
        else:
            dims = value.shape.as_list() if value.shape.is_fully_defined else []
            empty: Any = b"" if value.dtype is string else 0
            nothing = constant(np.full(dims, empty, value.dtype.numpy), value.dtype)
        with self.routing():
            other = switch_op(nothing, branch.pred)[1 - branch.side]
            return merge_op([other, value] if branch.side else [value, other])[0]

    def branches_around(self, context: Context | None) -> list[Branch]:
        """The branches in the loop's body that a context is in, the innermost first."""
        found = []
        for each in chain(context):
            if each == self.frame or each == self.place:
                break
            assert isinstance(each, Branch), context
            found.append(each)
        return found


class Backward(_Extended):
    """The loop that takes a loop's iterations in reverse."""

    def __init__(self, graph: Graph, forward_frame: Frame, forward: Extension) -> None:
        self.forward = forward
        flow = graph.scope.flow
        name = graph.enter_name(f"{forward_frame.name.rpartition('/')[2]}_grad").rstrip("/")
        frame = forward_frame.entered_from(flow.place if flow is not None else None, name)
        graph.members.loops.open(frame)
        entered = taken_into(frame, forward.count)
        super().__init__(graph, frame, entered.op)
        self._recalled: dict[Tensor, Tensor] = {}
        with self.routing():
            merged = merge_op([entered])[0]
            self.body = Branch(loop_cond(greater(merged, 0)), 1, frame)
            counted = self._round(merged)
            following = subtract(counted.yes, 1)
            pivot = identity(counted.yes)
        self.close(counted, following)
        self._left_to_do = counted.yes
        self.begin_body(self.body, pivot.op)

    def accumulated(self, part: Tensor, first: Tensor) -> Tensor:
        """The sum over all iterations, outside."""
        total = self.variable(first, part.shape if part.dtype is not variant else None)
        with self.entered():
            following = added(total.yes, part)
        self.close(total, following)
        return self.left(total)

    def is_joined(self, part: Tensor) -> bool:
        """Whether the sum of products over all iterations is computed as one product, outside.

        The products of each iteration are larger than what they are made of. A loop that computes
        anew what it could keep does not keep that either.
        """
        op = part.op
        return (
            is_larger_than_factors(op)
            and not self.frame.recompute
            and not (op.device or op.colocation)
        )

    def collected(
        self,
        outer: Tensor,
        pieces: Sequence[Tensor],
        firsts: Sequence[Tensor],
        made: Callable[..., Gradient],
    ) -> Left:
        """A gradient that is made outside, of pieces of all iterations."""
        pairs = zip(pieces, firsts, strict=True)
        return Left(outer, [self._pieces(piece, first) for piece, first in pairs], firsts, made)

    def _pieces(self, piece: Tensor, first: Tensor) -> Tensor:
        """An array of what each iteration gives, in the forward loop's order, after a first one."""
        with self.before():
            empty = array_op(
                add(self.forward.count, 1), element_shape=_rows_of(first), infer_shape=False
            )
            begun = write_op(empty, 0, first)
        pieces = self.variable(begun)
        with self.entered():
            following = write_op(pieces.yes, self._left_to_do, piece)
        self.close(pieces, following)
        return self.left(pieces)

    def captured(self, tensor: Tensor) -> Tensor:
        """What stands inside for a tensor: of the forward loop its value in the iteration."""
        if not is_everywhere(tensor.op) and is_within(context_of(tensor), self.forward.frame):
            return self.recalled(tensor)
        return super().captured(tensor)

    def recalled(self, tensor: Tensor) -> Tensor:
        """The value of a forward tensor in the iteration whose gradient is being taken."""
        op = tensor.op
        if is_entered(op, self.forward.frame) and op.attributes["is_constant"]:
            return super().captured(op.inputs[0])
        if op.op_def.gives_dead and context_of(tensor) == self.forward.place:
            return self.recalled(op.inputs[0])  # The variable itself, which is the same.
        if tensor not in self._recalled:
            if self._is_computed(op):
                self._compute(op)
            else:
                self._recalled[tensor] = self._popped(tensor)
        return self._recalled[tensor]

    def _is_computed(self, op: Operation) -> bool:
        """Whether what an operation of the forward loop gave is computed once more."""
        place, op_def = self.forward.place, op.op_def
        return (
            self.frame.recompute
            and frame_of(op.context) is self.forward.frame
            and is_within(op.context, place)
            # By what comes in it is told whether a branch is taken.
            and bool(op.inputs)
            and op_def.retag is Retag.NONE
            and op_def.touches is None
            # What a call stands for may draw, or act.
            and op_def.stands_for is None
            # An array may let go of what is read from it.
            and all(t.dtype is not variant for t in op.inputs)
        )

    def _compute(self, op: Operation) -> None:
        """Compute once more what an operation gave, and what for that is not known yet."""
        wanted: set[Operation] = set()
        stack = [op]
        while stack:
            each = stack.pop()
            is_known = is_everywhere(each) or each.outputs[0] in self._recalled
            if not is_known and each not in wanted and self._is_computed(each):
                wanted.add(each)
                stack.extend(tensor.op for tensor in each.inputs)
        for each in sorted(wanted, key=lambda op: op.id):
            self._compute_one(each)

    def _compute_one(self, op: Operation) -> None:
        graph = self._graph
        inputs = [self.captured(tensor) for tensor in op.inputs]
        for branch in reversed(self.forward.branches_around(op.context)):
            pred = self.captured(branch.pred)
            # It may fail where the branch is not taken, even if it is computed from constants.
            if not any(is_held(value, pred) for value in inputs):
                with self.routing():
                    inputs[0] = held(inputs[0], pred, branch.side)
        found = op.op_def.infer_outputs(graph, inputs, op.attributes)
        with self.entered(), on_behalf_of(graph, op, graph.scope.prefix):
            assert graph.scope.site is not None
            again = Operation(
                graph, op.op_def, tuple(inputs), op.attributes, *found, graph.scope.site
            )
            graph.add(again, None)
        self._recalled.update(zip(op.outputs, again.outputs, strict=True))

    def _popped(self, tensor: Tensor) -> Tensor:
        branches = self.forward.branches_around(context_of(tensor))
        is_known = not branches or tensor.shape.is_fully_defined
        # A cell that runs again and keeps something else makes another stack: of the forward loop
        # the variables are told apart by their names, before it is known what they hold.
        with name_scope(f"kept_{name_of(tensor)}"):
            stack = self.variable(self.forward.stacked(tensor))
        with self.routing():
            value, rest = (pop_from_host if self.forward.swaps(tensor) else pop)(
                stack.yes, dtype=tensor.dtype, shape=tensor.shape if is_known else Shape()
            )
        self.close(stack, rest)
        for branch in reversed(branches):
            pred = self.captured(branch.pred)
            with self.routing():
                value = switch_op(value, pred)[branch.side]
        return value
