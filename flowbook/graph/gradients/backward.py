"""Gradients extend the graph (white paper, section 4.1).

One backward pass over the operations between `xs` and `ys`, in reverse order of construction,
which is a reverse topological order. Each operation's gradient is built by its `OpDef.grad`, under
the forward operation's site and device request, so that an error in it names the line that wrote
the forward operation.
"""

from __future__ import annotations

import heapq
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph, mixed_graphs
from flowbook.graph.building.scopes import name_scope, within
from flowbook.graph.control_flow.array_ops import add_arrays
from flowbook.graph.definition.op_def import NO_GRADIENT as NO_GRADIENT
from flowbook.graph.gradients.backward_loops import on_behalf_of
from flowbook.graph.gradients.loop_dependence import Loop, is_differentiable
from flowbook.graph.gradients.loops import LoopGradients
from flowbook.graph.gradients.recomputing import Recomputing
from flowbook.graph.gradients.swapping import Swapping
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.context import (
    Branch,
    Context,
    Frame,
    chain,
    frame_of,
    is_everywhere,
    runs_in,
)
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import resource, variant
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    OpError,
    without_internal_frames,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import (
    Gradient,
    IndexedSlices,
    as_dense,
    with_equal_indices,
)
from flowbook.graph.ops.basis.constants import convert_to_tensor, ones_like_op
from flowbook.graph.ops.basis.filling import zeros_like
from flowbook.graph.ops.basis.joining import concat
from flowbook.graph.ops.math.arithmetic import add_n

__all__ = ["gradients"]


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    stop_gradients: Any = None,
    name: str = "gradients",
    *,
    unconnected_gradients: str = "none",
    recompute: Any = None,
    swap: Any = None,
) -> list[Gradient | None]:
    """Build the gradient of the sum of `ys` with respect to each of `xs`.

    Args:
        ys: a tensor, or a list of them, of floating-point or complex dtype. Others among them, as
            the counter that a loop returns beside its values, contribute nothing.
        xs: a tensor or variable, or a list of them.
        grad_ys: for each of `ys` the gradient to start from, of its shape; None means ones. One of
            complex dtype needs it.
        stop_gradients: tensors that count as constants: nothing flows through them. As one of `xs`
            a stopped tensor still gets its own gradient.
        name: the name scope of what is built.
        unconnected_gradients: what each of `xs` gets that `ys` does not depend on: "none" for
            None, "zero" for zeros of its shape.
        recompute: tensors that are kept, such as the outputs of some layers of a deep network. What
            lies before the last of them is then computed a second time, from the kept ones, when
            the gradients come to it, rather than kept in memory until then: less memory, more time,
            which `fb.forecast` tells. Operations that touch something, as drawing
            random numbers does, and what is in loops and branches, run once. Loops have an option
            of their own (`fb.while_loop`).
        swap: tensors, such as the outputs of large layers, whose values are copied to host memory
            when they have been made, and brought back to their device when the first gradient needs
            them: less memory of the device, more transfers, which `sess.explain` tells in bytes. On
            a device whose memory is the host's, as a CPU's, nothing is gained, nor copied. What is
            in a loop has an option of its own (`swap_memory` of `fb.while_loop`). What is kept for
            `recompute` may be swapped too.

    Returns:
        For each of `xs` a tensor of its shape; IndexedSlices where only rows were gathered from
        it; None, or zeros, where `ys` does not depend on it.

    Raises:
        InvalidArgumentError: if the lists do not go together, or what is to be swapped is no value
            or lies in a loop or branch.
        NotFoundError: if an operation on the way has no gradient. It is a LookupError.
        InvalidTypeError: if a dtype has no gradient.

    Source: white paper, section 4.1.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [], name="x")
    >>> [g] = fb.gradients(x * x, x)
    >>> with fb.Session() as sess:
    ...     print(sess.run(g, {x: 3.0}))
    6.0
    """
    try:
        options = unconnected_gradients, recompute, swap
        return _gradients(ys, xs, grad_ys, stop_gradients, name, *options)
    except OpError as error:
        error.at("gradients", sites.capture())
        raise without_internal_frames(error) from error.__cause__


def _gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any,
    stop_gradients: Any,
    name: str,
    unconnected: str,
    recompute: Any,
    swap: Any,
) -> list[Gradient | None]:
    check_choice("unconnected_gradients", unconnected, ("none", "zero"))
    y_list = [convert_to_tensor(y) for y in _as_list(ys)]
    x_list = [_differentiated(x) for x in _as_list(xs)]
    stopped = {_differentiated(t) for t in _as_list(stop_gradients)}
    starts = _as_list(grad_ys) if grad_ys is not None else [None] * len(y_list)
    if len(starts) != len(y_list):
        raise InvalidArgumentError(
            f"{counted(len(y_list), 'y')} but {counted(len(starts), 'grad_y')}"
        )
    kept, swapped = _chosen("recompute", recompute), _chosen("swap", swap)
    graph = _one_graph([*y_list, *x_list, *kept, *swapped])
    for y in y_list:
        graph.places.refuse_inside(y, graph.scope.flow)
    with (
        graph.as_default(),
        name_scope(name) as prefix,
        within(graph, lambda scope: scope._replace(extends=True)),
    ):
        place = graph.scope.flow.place if graph.scope.flow is not None else None
        loops = LoopGradients(graph)
        backward = _Backward(graph, prefix, y_list, x_list, stopped, loops, place)
        if kept or swapped:
            swapping = Swapping(graph, prefix, swapped, place)
            path = backward.path.operations
            backward.sparing = Sparing(Recomputing(graph, prefix, kept, path, swapping), swapping)
        has_gradient = any(is_differentiable(y) for y in y_list)
        for y, start in zip(y_list, starts, strict=True):
            if is_differentiable(y) or start is not None or not has_gradient:
                backward.start(y, start)
        backward.run()
        found = [backward.total(x) for x in x_list]
        if unconnected == "none":
            return found
        return [zeros_like(x) if g is None else g for x, g in zip(_as_list(xs), found, strict=True)]


class Sparing(NamedTuple):
    """How one backward pass takes less of a device's memory.

    Attributes:
        recomputing: what is computed once more.
        swapping: what waits in host memory.
    """

    recomputing: Recomputing
    swapping: Swapping

    def standing_for(self, op: Operation, arrived: Operation) -> Operation:
        """What an operation's gradient takes in its place; see `Recomputing.standing_for`."""
        stands = self.recomputing.standing_for(op, arrived)
        return self.swapping.standing_for(stands, arrived)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _differentiated(x: Any) -> Tensor:
    """The tensor whose gradient is meant: for a variable its handle, where all reads meet."""
    if isinstance(x, Tensor):
        return x
    if hasattr(x, "as_tensor"):
        return x.as_tensor(True)  # type: ignore[no-any-return]
    raise InvalidTypeError(f"a gradient is taken with respect to tensors and variables, not {x!r}")


def _chosen(option: str, values: Any) -> list[Tensor]:
    """The tensors that an option names: what would become a new constant is none of the path."""
    for value in _as_list(values):
        if not isinstance(value, Tensor) and not hasattr(value, "as_tensor"):
            raise InvalidTypeError(f"{option} takes tensors of the graph, not {value!r:.80}")
    return [convert_to_tensor(value) for value in _as_list(values)]


def _one_graph(tensors: Iterable[Tensor]) -> Graph:
    tensors = list(tensors)
    if not tensors:
        raise InvalidArgumentError("gradients needs at least one of ys")
    graph = tensors[0].graph
    for other in tensors:
        if other.graph is not graph:
            raise mixed_graphs([(tensors[0].name, graph), (other.name, other.graph)])
    return graph


class _Backward:
    """One backward pass: the partial gradients that have arrived at each tensor so far."""

    def __init__(
        self,
        graph: Graph,
        prefix: str,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        stopped: set[Tensor],
        loops: LoopGradients,
        place: Context | None,
    ) -> None:
        self.graph = graph
        self.prefix = prefix
        self.stopped = stopped
        self.path = Path(xs, ys, stopped)
        self.loops = loops
        self.place = place
        self.sparing: Sparing | None = None
        self.partials: dict[Tensor, list[Gradient]] = {}
        self.ready: list[tuple[int, Operation]] = []
        self.queued: set[Operation] = set()

    def start(self, y: Tensor, grad_y: Any) -> None:
        """Begin at one of the ys."""
        if not is_differentiable(y):
            raise InvalidTypeError(
                f"{y.name} is {y.dtype.name}, which has no gradient",
                hint="gradients are taken of floating-point tensors",
            )
        if isinstance(grad_y, IndexedSlices):
            self.add(y, grad_y)
            return
        if grad_y is None and y.dtype.is_complex:
            raise InvalidTypeError(
                f"{y.name} is {y.dtype.name}: what its gradient starts from is not said by itself",
                hint="take the gradient of a real number, such as fb.real(y) or fb.abs(y), "
                "or give grad_ys",
            )
        with self._on_behalf_of(y.op, ""):
            if grad_y is None:
                # Made from the loss, not from its shape: a training step computes its loss, which
                # summaries of such steps show.
                grad = ones_like_op(y)
            else:
                grad = convert_to_tensor(grad_y, y.dtype, name="grad_y")
        if not y.shape.is_compatible_with(grad.shape):
            raise InvalidArgumentError(
                f"the grad_ys of {y.name} {y.shape} has the shape {grad.shape}"
            )
        self.add(y, grad)

    def add(self, tensor: Tensor, gradient: Gradient) -> None:
        """Note one partial gradient of a tensor."""
        self.partials.setdefault(tensor, []).append(gradient)
        op = tensor.op
        if op in self.path.operations:
            loop = self.path.loop_left_by(op)
            if loop is not None:  # It is taken as one, after all that uses any of its results.
                op = min(loop.exits, key=lambda left_by: left_by.id)
            if op not in self.queued:
                self.queued.add(op)
                heapq.heappush(self.ready, (-op.id, op))

    def total(self, tensor: Tensor) -> Gradient | None:
        """The sum of a tensor's partial gradients, or None."""
        partials = self.partials.get(tensor)
        if not partials:
            return None
        if len(partials) > 1:
            with self._on_behalf_of(tensor.op, ""):
                partials = self.partials[tensor] = [add_gradients(partials)]
        return partials[0]

    def run(self) -> None:
        """Go through the operations between, each after all that consume its outputs."""
        while self.ready:
            _, op = heapq.heappop(self.ready)
            loop = self.path.loop_left_by(op)
            if loop is not None:
                self._run_loop(loop)
                continue
            totals = [None if t in self.stopped else self.total(t) for t in op.outputs]
            if not any(t is not None for t in totals):
                continue
            _refuse_beginning(op)
            for source, gradient in zip(op.inputs, self._gradients_of(op, totals), strict=True):
                if gradient is not None and is_differentiable(source):
                    self.add(source, self._taken_out(gradient, op.context, source))

    def _run_loop(self, loop: Loop) -> None:
        totals: dict[Operation, Tensor] = {}
        for left_by in loop.exits:
            tensor = left_by.outputs[0]
            total = None if tensor in self.stopped else self.total(tensor)
            if total is not None:
                totals[left_by] = as_dense(total)
        if not totals:
            return
        with self._on_behalf_of(min(totals, key=lambda op: op.id), ""):
            found = self.loops.of(
                loop, totals, self.path.reached.__contains__, self.place, self._differentiate
            )
        for source, gradient in found:
            self.add(source, self._taken_out(gradient, loop.frame.outer, source))

    def _differentiate(
        self, ys: Sequence[Tensor], dys: Sequence[Any], xs: Sequence[Tensor], place: Context
    ) -> list[Gradient | None]:
        """The gradients within one iteration of a loop."""
        stopped = self.stopped.union(xs)
        inner = _Backward(self.graph, self.prefix, ys, xs, stopped, self.loops, place)
        for y, dy in zip(ys, dys, strict=True):
            inner.add(y, dy)
        inner.run()
        return [inner.total(x) for x in xs]

    def _taken_out(self, gradient: Gradient, context: Context | None, source: Tensor) -> Gradient:
        """The gradient of what is there everywhere, which an operation in a branch may have used.

        It is zero where the branch is not taken.
        """
        if context is None or not is_everywhere(source.op):
            return gradient
        for branch in chain(context):
            if branch == self.place or not isinstance(branch, Branch):
                break
            gradient = self.loops.or_zeros(gradient, branch, source)
        return gradient

    def _gradients_of(self, op: Operation, totals: list[Gradient | None]) -> list[Gradient | None]:
        grad = op.op_def.grad
        if grad is None:
            raise NotFoundError(
                "no gradient is defined for it",
                op,
                hint="give its OpDef a `grad`, or put fb.stop_gradient before it",
            )
        with self._on_behalf_of(op, f"{op.name.replace('@', '_')}_grad"):
            dys = [
                _taken(op, total) if total is not None else self._zeros_for(output)
                for total, output in zip(totals, op.outputs, strict=True)
            ]
            stands = op
            if self.sparing is not None:
                arrived = next(total for total in totals if total is not None)
                stands = self.sparing.standing_for(op, _maker(arrived))
            try:
                found = _call(grad, stands, dys, [total is not None for total in totals])
            except OpError as error:
                what = f"the gradient of {op.type} {op.name!r}"
                if error.details:
                    error.details.append(f"in {what}")
                raise error.at(what, op.site) from None
            except Exception as error:
                if op.op_def.is_builtin:
                    raise
                raise InvalidArgumentError(
                    f"its gradient function raised {type(error).__name__}: {error}", op
                ) from without_internal_frames(error)
            found = list(found) if isinstance(found, list | tuple) else [found]
            if len(found) != len(op.inputs):
                raise InvalidArgumentError(
                    f"its gradient function gave {counted(len(found), 'result')} for "
                    f"{counted(len(op.inputs), 'input')}",
                    op,
                )
            return [_checked(op, s, g) for s, g in zip(op.inputs, found, strict=True)]

    def _zeros_for(self, output: Tensor) -> Tensor | None:
        """The gradient of an output that nothing uses."""
        if output.dtype is variant:
            return self.loops.zeros(output)
        return zeros_like(output) if is_differentiable(output) else None

    def _on_behalf_of(self, op: Operation, name: str) -> Any:
        """Build with the forward operation's site and device, below `gradients/name/`."""
        return on_behalf_of(self.graph, op, f"{self.prefix}{name}/" if name else self.prefix)


class Path:
    """What lies on a path from one of the xs to one of the ys, ends of it included.

    A path may begin at a stopped tensor that is one of the xs, but not pass through one.

    Attributes:
        operations: the operations. Of a loop only those that leave it, for all of it.
        reached: the tensors.
    """

    def __init__(self, xs: Sequence[Tensor], ys: Sequence[Tensor], stopped: set[Tensor]) -> None:
        self._loops: dict[Frame, Loop] = {}
        ancestors: set[Operation] = set()
        stack = [y.op for y in ys if y not in stopped]
        while stack:
            op = stack.pop()
            if op in ancestors:
                continue
            ancestors.add(op)
            taken: Sequence[Tensor] = op.inputs
            if op.op_def.retag is Retag.POP:
                frame = frame_of(runs_in(op))
                assert frame is not None
                taken = self._loops.setdefault(frame, Loop(frame)).add(op)
            stack.extend(t.op for t in taken if t not in stopped)
        self.reached: set[Tensor] = set(xs)
        self.operations: set[Operation] = set()
        for op in sorted(ancestors, key=lambda op: op.id):
            loop = self.loop_left_by(op)
            taken = op.inputs if loop is None else loop.taken
            if any(t in self.reached and is_differentiable(t) for t in taken):
                self.operations.add(op)
                self.reached.update(t for t in op.outputs if t not in stopped)

    def loop_left_by(self, operation: Operation) -> Loop | None:
        """The loop that an operation leaves, if it leaves one."""
        if operation.op_def.retag is not Retag.POP:
            return None
        frame = frame_of(runs_in(operation))
        assert frame is not None
        return self._loops.get(frame)


def _refuse_beginning(op: Operation) -> None:
    """Refuse a way from within a loop's iteration to what one of its variables is at first.

    Only the first iteration has one; a loop that is complete is gone through as a whole.
    """
    if op.op_def.retag is Retag.PUSH and not op.attributes["is_constant"]:
        assert isinstance(op.context, Frame)
        raise InvalidArgumentError(
            f"inside of the loop {op.context.name!r}, ys depend on xs by a variable of the loop, "
            f"which begins as {op.inputs[0].name!r}: an iteration does not know the ones before it",
            hint="take the gradient of what the loop returns, or let the variable count as "
            "constant: fb.stop_gradient(variable)",
        )


def _call(
    grad: Callable[..., Any], op: Operation, dys: list[Gradient | None], used: list[bool]
) -> Any:
    """What a gradient function gives; see `OpDef`."""
    if any(a.is_list for a in op.op_def.outputs) or len(op.op_def.outputs) > 1:
        asked = inspect.signature(grad).parameters.get("used")
        if asked is not None and asked.kind is asked.KEYWORD_ONLY:
            return grad(op, *dys, used=used)
    return grad(op, *dys)


def _maker(gradient: Gradient) -> Operation:
    return gradient.values.op if isinstance(gradient, IndexedSlices) else gradient.op


def _taken(op: Operation, gradient: Gradient) -> Gradient:
    """The gradient of an output as the operation's gradient function takes it."""
    return gradient if op.op_def.grad_takes_slices else as_dense(gradient)


def _checked(op: Operation, source: Tensor, gradient: Any) -> Gradient | None:
    if gradient is None or isinstance(gradient, IndexedSlices):
        return gradient
    gradient = convert_to_tensor(gradient)
    if source.dtype is not resource:
        if gradient.dtype is not source.dtype:
            raise InvalidTypeError(
                f"its gradient function gave {gradient.dtype.name} for the input {source.name}, "
                f"which is {source.dtype.name}",
                op,
            )
        if not source.shape.is_compatible_with(gradient.shape):
            raise InvalidArgumentError(
                f"its gradient function gave the shape {gradient.shape} for the input "
                f"{source.name} {source.shape}",
                op,
            )
    return gradient  # type: ignore[no-any-return]


def add_gradients(partials: list[Gradient]) -> Gradient:
    """The sum of partial gradients; sparse ones stay sparse among themselves."""
    if all(isinstance(p, IndexedSlices) for p in partials):
        sparse = with_equal_indices([p for p in partials if isinstance(p, IndexedSlices)])
        return IndexedSlices(
            concat([p.values for p in sparse], 0),
            concat([p.indices for p in sparse], 0),
            next((p.dense_shape for p in sparse if p.dense_shape is not None), None),
        )
    dense = [as_dense(p) for p in partials]
    return add_arrays(dense) if dense[0].dtype is variant else add_n(dense)
