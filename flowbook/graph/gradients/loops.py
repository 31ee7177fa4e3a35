"""Gradients of loops: a loop is differentiated as one unit (white paper, 4.1 and 4.4).

The backward loop runs as often as the forward one did, and takes its iterations in reverse. What it
needs of each of them the forward loop pushes on a stack (`control_flow/stacks.py`), in the order in
which the gradients of the body ask for it; what is the same in every iteration is taken as it is.
Of a loop that says `recompute` only the variables are pushed, and what cannot be computed again:
the backward loop computes the rest once more, where it is asked for.

While the backward loop's body is built, the forward loop's tensors are captured like any others
from outside (`Backward.captured`): so gradient functions know nothing of loops, and loops and
branches within loops are no special case. For that, a forward loop, which is complete, is extended
by further variables (`Extension`): a count of its iterations, and the stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from flowbook.graph.building.flow import Flow
from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import name_scope, within
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.control_flow.array_ops import add_arrays, array_op, concat_op, write_op
from flowbook.graph.control_flow.flows import BranchInside, LoopInside
from flowbook.graph.control_flow.routing import (
    either,
    exit,
    held,
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
from flowbook.graph.model import site as sites
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
from flowbook.graph.model.dtypes import resource, string, variant
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import Gradient, IndexedSlices, as_dense, no_rows
from flowbook.graph.ops.basis.constants import constant, identity
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.basis.shaping import shape as shape_tensor
from flowbook.graph.ops.linalg.matrix_products import matmul_op
from flowbook.graph.ops.linalg.product_sums import is_larger_than_factors
from flowbook.graph.ops.math.arithmetic import add, subtract
from flowbook.graph.ops.math.comparison import greater
from flowbook.graph.ops.state.variables import read_variable


def is_differentiable(tensor: Tensor) -> bool:
    """Whether gradients flow through tensors of this dtype."""
    dtype = tensor.dtype
    return dtype.is_floating or dtype.is_complex or dtype is resource or dtype is variant


def on_behalf_of(graph: Graph, op: Operation, prefix: str) -> AbstractContextManager[Scope]:
    """Build with a forward operation's site and device, under names that begin so."""
    author = sites.capture().author
    site = sites.DerivedSite(op.site.code, op.site.offset, author)
    # A request in part admits several devices: it is the same one.
    beside = (op,) if op.device or op.colocation else ()

    def change(scope: Scope) -> Scope:
        return replace(scope, prefix=prefix, device=op.device, colocation=beside, site=site)

    return within(graph, change)


def is_entered(operation: Operation, frame: Frame) -> bool:
    """Whether an operation takes its input into a frame."""
    return operation.op_def.retag is Retag.PUSH and operation.context is frame


class Variable(NamedTuple):
    """A variable of a loop.

    Attributes:
        merge: gives its value in each iteration.
        inside: the tensors that are that value in the body.
        following: what it is in the next iteration.
        first: what it is at first, outside.
    """

    merge: Operation
    inside: tuple[Tensor, ...]
    following: Tensor
    first: Tensor


@dataclass
class Loop:
    """What some of a loop's results depend on.

    Attributes:
        frame: the loop.
        exits: the operations by which these results leave it.
        operations: what runs in it, in loops within it too.
        sources: the outside's tensor for each that stands for it in every iteration.
        merges: what merges the values of its variables.
        taken: the tensors of the outside that it depends on.
    """

    frame: Frame
    exits: list[Operation] = field(default_factory=list)
    operations: set[Operation] = field(default_factory=set)
    sources: dict[Tensor, Tensor] = field(default_factory=dict)
    merges: list[Operation] = field(default_factory=list)
    taken: list[Tensor] = field(default_factory=list)

    def add(self, left_by: Operation) -> list[Tensor]:
        """Add a result; return the tensors of the outside that it depends on."""
        self.exits.append(left_by)
        found = []
        stack = [t.op for t in left_by.inputs]
        while stack:
            op = stack.pop()
            if op in self.operations:
                continue
            self.operations.add(op)
            if is_everywhere(op):
                for tensor in op.outputs:
                    self.sources[tensor] = tensor
                    found.append(tensor)
            elif is_entered(op, self.frame):
                found.append(op.inputs[0])
                if op.attributes["is_constant"]:
                    self.sources[op.outputs[0]] = op.inputs[0]
            else:
                stack.extend(t.op for t in op.inputs)
                if op.closed_by is not None:
                    stack.append(op.closed_by)
                    if frame_of(op.context) is self.frame:
                        self.merges.append(op)
        self.taken += found
        return found

    @property
    def body(self) -> Branch:
        """What runs if there is another iteration: on the other side than what leaves the loop."""
        ended = {
            branch
            for left_by in self.exits
            for branch in chain(context_of(left_by.inputs[0]))
            if isinstance(branch, Branch) and branch.outer is self.frame
        }
        if len(ended) == 1:
            [branch] = ended
            return replace(branch, side=1 - branch.side)
        raise InvalidArgumentError(
            f"the loop {self.frame.name!r} has no one condition that says when it ends: it has no "
            "gradient",
            self.exits[0],
        )

    def variables(self) -> dict[Operation, Variable]:
        """Its variables, by what merges their values."""
        body = self.body
        inside: dict[Operation, list[Tensor]] = {merge: [merge.outputs[0]] for merge in self.merges}
        for op in self.operations:
            if op.op_def.gives_dead and op.inputs[0].op in inside:
                inside[op.inputs[0].op] += [t for t in op.outputs if context_of(t) == body]
        found = {}
        for merge in sorted(self.merges, key=lambda op: op.id):
            assert merge.closed_by is not None
            following, entered = merge.closed_by.inputs[0], merge.inputs[0].op
            found[merge] = Variable(merge, tuple(inside[merge]), following, entered.inputs[0])
        return found

    def dependence(self, variables: Mapping[Operation, Variable]) -> dict[Operation, set[Any]]:
        """For each variable those, and those sources, that it follows from in one iteration."""
        told: dict[Tensor, set[Any]] = {stands: {stands} for stands in self.sources}
        for merge, variable in variables.items():
            for tensor in variable.inside:
                told[tensor] = {merge}
        given = set(told)
        ordered = sorted(self.operations, key=lambda op: op.id)
        is_changed = True
        while is_changed:  # Loops within it go round.
            is_changed = False
            for op in ordered:
                taken = [*op.inputs, *(op.closed_by.outputs if op.closed_by is not None else ())]
                known = [told[t] for t in taken if t in told and is_differentiable(t)]
                found: set[Any] = set().union(*known)
                for tensor in op.outputs:
                    if tensor in given or not is_differentiable(tensor):
                        continue
                    if found - told.setdefault(tensor, set()):
                        told[tensor] |= found
                        is_changed = True
        return {m: set(told.get(v.following, ())) for m, v in variables.items()}


class Differentiate(Protocol):
    """Takes the gradient of what one iteration computes."""

    def __call__(
        self, ys: Sequence[Tensor], dys: Sequence[Any], xs: Sequence[Tensor], place: Context
    ) -> list[Gradient | None]:
        """The gradients of `ys` with respect to `xs`, all of which run in one place."""


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


class LoopGradients:
    """Builds backward loops for one call of `gradients`.

    Args:
        graph: where.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._extensions: dict[Frame, Extension] = {}
        self._bodies: dict[Frame, Branch] = {}

    def of(
        self,
        loop: Loop,
        totals: Mapping[Operation, Tensor],
        is_wanted: Any,
        place: Context | None,
        differentiate: Differentiate,
    ) -> list[tuple[Tensor, Gradient]]:
        """The gradients of a loop's results with respect to what it takes from outside.

        Args:
            loop: the loop.
            totals: the gradients of its results.
            is_wanted: tells of a tensor outside whether its gradient is.
            place: where the forward operations run whose gradients are being taken.
            differentiate: takes the gradient of one iteration.

        Returns:
            Tensors of the outside, and their gradients.
        """
        variables = loop.variables()
        dependence = loop.dependence(variables)
        needed = {_merge_of(op) for op in totals}
        _close(needed, lambda merge: [m for m in dependence[merge] if m in variables])
        reached: set[Any] = {s for s, outer in loop.sources.items() if is_wanted(outer)}
        reached |= {m for m, v in variables.items() if is_wanted(v.first)}
        for _ in variables:
            reached |= {m for m in variables if dependence[m] & reached}
        active = [m for m in variables if m in needed & reached and is_differentiable(m.outputs[0])]
        used = {s for m in active for s in dependence[m]} & reached
        constants = [s for s in loop.sources if s in used]
        if not active:
            return []
        self._bodies[loop.frame] = loop.body
        forward = self._extension(loop.frame)
        with self._inside(loop.frame.outer, place):
            backward = Backward(self._graph, loop.frame, forward)
            try:
                results = self._built(
                    backward, loop, variables, active, constants, totals, is_wanted, differentiate
                )
            except BaseException:
                self._graph.abandon(backward.frame)
                raise
            before = self._graph.complete(backward.frame)
            return [(left.source, left.gradient(before)) for left in results]

    def _built(
        self,
        backward: Backward,
        loop: Loop,
        variables: Mapping[Operation, Variable],
        active: Sequence[Operation],
        constants: Sequence[Tensor],
        totals: Mapping[Operation, Tensor],
        is_wanted: Any,
        differentiate: Differentiate,
    ) -> list[Left]:
        """The gradients of what an active variable is at first, and of what is always the same."""
        leaving = {_merge_of(op): op for op in loop.exits}
        first = []
        for merge in active:
            left = leaving.get(merge)
            total = totals.get(left) if left is not None else None
            if total is None:
                total = self.zeros(variables[merge].first)
            first.append(backward.variable(total, merge.outputs[0].shape))
        with backward.entered():
            found = differentiate(
                [variables[merge].following for merge in active],
                [variable.yes for variable in first],
                [*[t for merge in active for t in variables[merge].inside], *constants],
                backward.forward.place,
            )
        given = iter(found)
        results = []
        for merge, variable in zip(active, first, strict=True):
            inside = variables[merge].inside
            with backward.entered():
                following = _sum([as_dense(g) for _ in inside if (g := next(given)) is not None])
                if following is None:
                    following = backward.held(backward.captured(self.zeros(inside[0])))
            backward.close(variable, following)
            if is_wanted(variables[merge].first):
                results.append(Left(variables[merge].first, [backward.left(variable)]))
        for stands in constants:
            part = next(given)
            outer = loop.sources[stands]
            if isinstance(part, IndexedSlices):
                shape = self._shape(outer)
                nothing = no_rows(part, shape)
                results.append(
                    backward.collected(
                        outer,
                        [part.values, part.indices],
                        [nothing.values, nothing.indices],
                        lambda values, indices, shape=shape: IndexedSlices(values, indices, shape),
                    )
                )
            elif part is not None and backward.is_joined(part):
                results.append(
                    backward.collected(
                        outer,
                        part.op.inputs,
                        [zeros([0, t.shape[1]], t.dtype) for t in part.op.inputs],
                        lambda a, b: matmul_op(a, b, transpose_a=True),
                    )
                )
            elif part is not None:
                results.append(Left(outer, [backward.accumulated(part, self.zeros(outer))]))
        return results

    def or_zeros(self, gradient: Gradient, branch: Branch, like: Tensor) -> Gradient:
        """A gradient that is there on one side of a predicate, and zeros on the other one."""
        flow = self._graph.scope.flow
        pred = branch.pred if flow is None else flow.captured(branch.pred)
        nothing: Gradient
        if isinstance(gradient, IndexedSlices):
            shape = self._shape(like)
            gradient = IndexedSlices(gradient.values, gradient.indices, shape)
            nothing = no_rows(gradient, shape)
        else:
            nothing = self.zeros(like)
        return either(nothing, gradient, pred) if branch.side else either(gradient, nothing, pred)

    def zeros(self, like: Tensor) -> Tensor:
        """Zeros of a tensor's shape, in the present place."""
        if like.dtype is variant:
            return empty_stack()
        dtype = like.op.attributes["dtype"] if like.dtype is resource else like.dtype
        return zeros(self._shape(like), dtype)

    def _shape(self, like: Tensor) -> Any:
        """The shape of a forward tensor, or of a variable, taken where that is."""
        attributes = like.op.attributes
        known = attributes["shape"] if like.dtype is resource else like.shape
        if known.is_fully_defined:
            return np.asarray(known.as_list(), np.int32)
        if like.dtype is resource:
            return shape_tensor(read_variable(like, dtype=attributes["dtype"], shape=known))
        flow = self.flow_in(context_of(like))
        with (
            within(self._graph, lambda s: replace(s, flow=flow, control_inputs=())),
            name_scope(f"shape_of_{_name_of(like)}"),
        ):
            return shape_tensor(like)

    # Where forward operations run

    def _extension(self, frame: Frame) -> Extension:
        found = self._extensions.get(frame)
        if found is None:
            outer = self.flow_in(frame.outer)
            with within(self._graph, lambda s: replace(s, flow=outer, control_inputs=())):
                found = Extension(self._graph, frame, self._bodies[frame])
            self._extensions[frame] = found
        return found

    def flow_in(self, context: Context | None) -> Flow | None:
        """What builds in a place where forward operations run."""
        if context is None:
            return None
        flow = self._graph.scope.flow
        while flow is not None:
            if flow.place == context:
                return flow
            flow = flow.outer
        frame = context if isinstance(context, Frame) else context.outer
        if isinstance(frame, Frame):
            extension = self._extension(frame)
            if isinstance(context, Frame) or extension.place == context:
                return extension
        assert isinstance(context, Branch)
        return self._branch(context, self.flow_in(context.outer))

    def _branch(self, branch: Branch, outer: Flow | None) -> BranchInside:
        """What builds in a branch, or in the backward one that stands for it."""
        with within(self._graph, lambda s: replace(s, flow=outer, control_inputs=())):
            taken = switch_op(branch.pred, branch.pred)[branch.side]
            context = context_of(taken)
            assert isinstance(context, Branch)
            return BranchInside(self._graph, context, identity(taken).op)

    @contextmanager
    def _inside(self, context: Context | None, place: Context | None) -> Iterator[None]:
        """Build backward what belongs to a forward place within the one of the present pass."""
        branches: list[Context] = []
        for each in chain(context):
            if each == place:
                break
            branches.insert(0, each)
        flow = self._graph.scope.flow
        for branch in branches:
            if not isinstance(branch, Branch):
                continue
            flow = self._branch(branch, flow)
        with within(self._graph, lambda s: replace(s, flow=flow, control_inputs=())):
            yield


def _merge_of(left_by: Operation) -> Operation:
    """What merges the values of the variable that leaves a loop.

    Raises:
        InvalidArgumentError: if something else leaves it, as in a loop that was written by hand.
    """
    source = left_by.inputs[0].op
    merge = source.inputs[0].op if source.op_def.gives_dead else source
    if merge is source or merge.closed_by is None:
        raise InvalidArgumentError(
            f"what leaves the loop here, {left_by.inputs[0].name!r}, is computed from its "
            "variables, and not one of them: it has no gradient",
            left_by,
            hint="take out what a Switch gives of a Merge, and compute outside",
        )
    return merge


def _name_of(tensor: Tensor) -> str:
    """A tensor's name as a part of names."""
    return tensor.name.replace("/", "_").replace("@", "_").replace(":", "_")


def _close(found: set[Operation], following: Any) -> None:
    stack = list(found)
    while stack:
        for other in following(stack.pop()):
            if other not in found:
                found.add(other)
                stack.append(other)


def _sum(parts: Sequence[Tensor]) -> Tensor | None:
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = _added(total, part)
    return total


def _added(one: Tensor, other: Tensor) -> Tensor:
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
        with self.outside():
            entered = taken_into(self.frame, first, shape=shape)
        with self.routing():
            return merge_op([entered])[0]

    def close(self, variable: Round, following: Tensor) -> None:
        """Say what a variable is in the next iteration."""
        with self.routing(), within(self._graph, lambda s: replace(s, closes=variable.merge)):
            next_iteration_op(following)

    def left(self, variable: Round) -> Tensor:
        """What a variable is at last, outside."""
        with self.routing():
            return exit(variable.no)

    @contextmanager
    def routing(self) -> Iterator[None]:
        """Build what runs inside, and is told where by what it takes."""
        with within(self._graph, lambda s: replace(s, flow=None, control_inputs=())):
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
        for branch in self.branches_of(tensor):
            value = self._merged_with_nothing(value, branch)
        with self.outside():
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

    def branches_of(self, tensor: Tensor) -> list[Branch]:
        """The branches in the loop's body that a tensor is in, the innermost first."""
        found = []
        for each in chain(context_of(tensor)):
            if each == self.frame or each == self.place:
                break
            assert isinstance(each, Branch), tensor
            found.append(each)
        return found


class Backward(_Extended):
    """The loop that takes a loop's iterations in reverse."""

    def __init__(self, graph: Graph, forward_frame: Frame, forward: Extension) -> None:
        self.forward = forward
        flow = graph.scope.flow
        name = graph.enter_name(f"{forward_frame.name.rpartition('/')[2]}_grad").rstrip("/")
        frame = forward_frame.entered_from(flow.place if flow is not None else None, name)
        graph.open_frame(frame)
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
            following = _added(total.yes, part)
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
            and context_of(part) == self.place
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
        with self.outside():
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
            and op_def.retag is Retag.NONE
            and op_def.touches is None
            # An array may let go of what is read from it.
            and all(t.dtype not in (variant, resource) for t in (*op.inputs, *op.outputs))
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
        found = op.op_def.infer_outputs(graph, inputs, op.attributes)
        with self.entered(), on_behalf_of(graph, op, graph.scope.prefix):
            assert graph.scope.site is not None
            again = Operation(
                graph, op.op_def, tuple(inputs), op.attributes, *found, graph.scope.site
            )
            graph.add(again, None)
        for tensor, value in zip(op.outputs, again.outputs, strict=True):
            for branch in reversed(self.forward.branches_of(tensor)):
                pred = self.captured(branch.pred)
                with self.routing():
                    value = held(value, pred, branch.side)
            self._recalled[tensor] = value

    def _popped(self, tensor: Tensor) -> Tensor:
        branches = self.forward.branches_of(tensor)
        is_known = not branches or tensor.shape.is_fully_defined
        # A cell that runs again and keeps something else makes another stack: of the forward loop
        # the variables are told apart by their names, before it is known what they hold.
        with name_scope(f"kept_{_name_of(tensor)}"):
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
