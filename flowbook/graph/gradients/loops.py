"""Gradients of loops: a loop is differentiated as one unit (white paper, 4.1 and 4.4).

The backward loop (`backward_loops.py`) runs as often as the forward one did, and takes its
iterations in reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from flowbook.graph.building.flow import Flow
from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import name_scope, within
from flowbook.graph.control_flow.flows import BranchInside
from flowbook.graph.control_flow.routing import (
    either,
    switch_op,
)
from flowbook.graph.control_flow.stacks import (
    empty_stack,
)
from flowbook.graph.gradients.backward_loops import (
    Backward,
    Extension,
    Left,
    added,
    name_of,
    on_behalf_of,
)
from flowbook.graph.gradients.loop_dependence import Loop, Variable, is_differentiable
from flowbook.graph.model.context import (
    Branch,
    Context,
    Frame,
    chain,
    context_of,
)
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import Gradient, IndexedSlices, as_dense, no_rows
from flowbook.graph.ops.basis.constants import identity
from flowbook.graph.ops.basis.filling import zeros
from flowbook.graph.ops.basis.shaping import shape as shape_tensor
from flowbook.graph.ops.linalg.matrix_products import matmul_op
from flowbook.graph.ops.state.variables import read_variable


class Differentiate(Protocol):
    """Takes the gradient of what one iteration computes."""

    def __call__(
        self, ys: Sequence[Tensor], dys: Sequence[Any], xs: Sequence[Tensor], place: Context
    ) -> list[Gradient | None]:
        """The gradients of `ys` with respect to `xs`, all of which run in one place."""


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
                self._graph.members.loops.abandon(backward.frame)
                raise
            before = self._graph.members.loops.complete(backward.frame)
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
            with self._beside(merge.outputs[0]):
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
            with self._beside(merge.outputs[0]):
                with backward.entered():
                    parts = [as_dense(g) for _ in inside if (g := next(given)) is not None]
                    following = _sum(parts)
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
                with self._beside(outer):
                    results.append(Left(outer, [backward.accumulated(part, self.zeros(outer))]))
        return results

    def _beside(self, tensor: Tensor) -> AbstractContextManager[Any]:
        """Build the gradient of an array or stack, which no device sends to another, where it is.

        Other gradients of a loop are where its results are.
        """
        if tensor.dtype is not variant:
            return nullcontext()
        return on_behalf_of(self._graph, tensor.op, self._graph.scope.prefix)

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
            within(self._graph, lambda s: s._replace(flow=flow, control_inputs=())),
            name_scope(f"shape_of_{name_of(like)}"),
        ):
            return shape_tensor(like)

    # Where forward operations run

    def _extension(self, frame: Frame) -> Extension:
        found = self._extensions.get(frame)
        if found is None:
            outer = self.flow_in(frame.outer)
            with within(self._graph, lambda s: s._replace(flow=outer, control_inputs=())):
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
        # The body of a function is no loop: what is built in it is found above.
        if isinstance(frame, Frame) and not frame.is_function:
            extension = self._extension(frame)
            if isinstance(context, Frame) or extension.place == context:
                return extension
        assert isinstance(context, Branch)
        return self._branch(context, self.flow_in(context.outer))

    def _branch(self, branch: Branch, outer: Flow | None) -> BranchInside:
        """What builds in a branch, or in the backward one that stands for it."""
        with within(self._graph, lambda s: s._replace(flow=outer, control_inputs=())):
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
        with within(self._graph, lambda s: s._replace(flow=flow, control_inputs=())):
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
        total = added(total, part)
    return total
