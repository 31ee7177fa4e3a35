"""Mistakes that run without an error: found in the graph, before any time is spent on them.

White paper, section 6: accidental broadcasting and wrong parameter counts were what a port of a
model had wrong. Each rule is one function from what is asked about to its findings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from flowbook.exec.report import Report, Table
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.definition.inference import broadcast_inputs
from flowbook.graph.definition.op_def import NO_GRADIENT
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.gradients.loop_dependence import is_differentiable
from flowbook.graph.model.ancestors import ancestors, running
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidTypeError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import called, described, tensor_called
from flowbook.graph.model.resource_key import key_touched
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.ops.basis.indexing import strided_slice_op
from flowbook.graph.ops.basis.shaping import expand_dims_op
from flowbook.graph.ops.math.elementwise import log
from flowbook.graph.ops.nn.activations import softmax_op
from flowbook.graph.ops.nn.losses import cross_entropy_op, sparse_cross_entropy_op
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.transfer.copying import copy_operations, graph_for_copies

__all__ = ["lint"]


@dataclass(frozen=True)
class Finding:
    """One likely mistake.

    Attributes:
        rule: the rule's name.
        operation: where it is.
        message: what is wrong, with the values.
        hint: what to do.
    """

    rule: str
    operation: Operation
    message: str
    hint: str


class LintReport(Report):
    """What lint found; empty, and false, if nothing."""

    def __init__(self, findings: list[Finding], size: int) -> None:
        self.findings = findings
        self._size = size

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def table(self) -> Table:
        """A row for each finding."""
        count = len(self.findings)
        found = counted(count, "finding") if count else "nothing"
        return Table(
            f"lint of {counted(self._size, 'operation')}: {found}",
            ("rule", "operation", "defined at", "what is wrong", "what to do"),
            [
                (f.rule, called(f.operation), f.operation.site.place, f.message, f.hint)
                for f in self.findings
            ],
        )


@dataclass(frozen=True)
class _Asked:
    """What lint is asked about.

    Attributes:
        graph: the graph.
        operations: those looked at, in the order of construction.
        loss: the tensor that training makes smaller, if it was named.
        ancestors: the operations that the loss depends on.
    """

    graph: Graph
    operations: list[Operation]
    loss: Tensor | None
    ancestors: set[Operation]


def lint(graph: Graph | None = None, loss: Tensor | None = None) -> LintReport:
    """Look for likely mistakes in a graph.

    The rules: `broadcast` (shapes such as [n] and [n, 1] that make [n, n] of two columns of one
    length), `unused variable`, `no gradient` (a trainable variable that the loss depends on, but
    through which no gradient flows), `softmax twice` (probabilities given where logits are wanted),
    `log of softmax` (which overflows where log_softmax does not).

    Args:
        graph: the graph; by default the loss's, or the default graph.
        loss: what training makes smaller. With it variables are unused if it does not depend on
            them, and gradients are looked at.

    Returns:
        The findings, in the order of construction, each with its operation and line.

    >>> import flowbook as fb
    >>> labels = fb.placeholder(fb.float32, [32], name="labels")
    >>> predictions = fb.placeholder(fb.float32, [32, 1], name="predictions")
    >>> loss = fb.reduce_mean(fb.square(predictions - labels))
    >>> [finding.message for finding in fb.lint(loss=loss)]
    ['[32, 1] and [32] broadcast to [32, 32]']
    """
    if loss is not None and not isinstance(loss, Tensor):
        raise InvalidTypeError(f"loss is a tensor, not {loss!r}")
    if isinstance(graph, Tensor):
        raise InvalidTypeError(f"the first argument is a graph, not {graph!r}", hint="loss=...")
    if graph is None:
        graph = loss.graph if loss is not None else get_default_graph()
    needed = ancestors(loss.op, by_control=True) if loss is not None else set()
    asked = _Asked(graph, list(running(graph.operations)), loss, needed)
    findings = [finding for rule in _RULES for finding in rule(asked)]
    return LintReport(sorted(findings, key=lambda f: f.operation.id), len(asked.operations))


def _broadcast(asked: _Asked) -> Iterable[Finding]:
    """Both operands grow, though their ranks differ: an outer product that nobody wrote as one."""
    for op in asked.operations:
        if op.op_def.infer is not broadcast_inputs:
            continue
        for x, y in itertools.combinations(op.inputs, 2):
            if _grows_both(x, y):
                yield Finding(
                    "broadcast",
                    op,
                    f"{x.shape} and {y.shape} broadcast to {op.outputs[0].shape}",
                    "reshape one: fb.squeeze(x, -1), or fb.expand_dims(y, -1) where it is meant",
                )
                break


def _grows_both(x: Tensor, y: Tensor) -> bool:
    if x.shape.dims is None or y.shape.dims is None or len(x.shape.dims) == len(y.shape.dims):
        return False
    longer, shorter = sorted((x, y), key=lambda t: len(t.shape.dims or ()), reverse=True)
    if _has_written_axis(longer):
        return False
    padded = (1,) * (len(longer.shape) - len(shorter.shape)) + tuple(shorter.shape)
    pairs = list(zip(longer.shape, padded, strict=True))
    # An unknown dimension is taken for a batch: larger than one, and maybe the same as another, but
    # for those of variables, which belong to no batch.
    is_data = not any(_is_whole_variable(t.op) for t in (x, y))
    rows = [a for a, b in pairs if a != 1 and b == 1]
    columns = [b for a, b in pairs if a == 1 and b != 1]
    return any(a == b or (is_data and None in (a, b)) for a in rows for b in columns)


def _has_written_axis(tensor: Tensor) -> bool:
    """Whether an axis was written: whoever did so meant what it is repeated along.

    What scalars and functions of one tensor make of it elementwise has the axis too.
    """
    while not _writes_axis(tensor.op):
        of_its_shape = [t for t in tensor.op.inputs if t.shape.rank != 0]
        if len(of_its_shape) != 1 or of_its_shape[0].shape.dims != tensor.shape.dims:
            return False
        [tensor] = of_its_shape
    return True


def _writes_axis(op: Operation) -> bool:
    if op.op_def is strided_slice_op:
        return "newaxis" in op.attributes["key"]
    return op.op_def is expand_dims_op


def _unused(asked: _Asked) -> Iterable[Finding]:
    read = {key_touched(op) for op in asked.ancestors if op.op_def.access is Access.READ}
    for variable in asked.graph.variables(trainable=True):
        readers = [op for op in variable.handle.consumers() if op.op_def.access is Access.READ]
        if asked.loss is not None:
            if variable.op.key not in read:
                yield _unused_variable(variable, f"{asked.loss.name} does not depend on it")
        elif not any(_is_used(reader) for reader in readers):
            yield _unused_variable(variable, "nothing reads it")


def _is_used(reader: Operation) -> bool:
    # A variable has a read from the first.
    return not _is_whole_variable(reader) or any(t.consumers() for t in reader.outputs)


def _is_whole_variable(operation: Operation) -> bool:
    """Whether an operation gives what a variable holds, as it is."""
    reads_as = operation.op_def.reads_as
    return reads_as is not None and reads_as.is_identity


def _unused_variable(variable: Variable, why: str) -> Finding:
    return Finding(
        "unused variable",
        variable.op,
        f"{why}, though it is trainable",
        "use it, remove it, or make it with trainable=False",
    )


def _no_gradient(asked: _Asked) -> Iterable[Finding]:
    """Trainable variables that the loss depends on only through what stops gradients."""
    if asked.loss is None or not is_differentiable(asked.loss):
        return
    variables = [v for v in asked.graph.variables(trainable=True) if v.op in asked.ancestors]
    lost = _without_gradient(variables, asked)
    for variable in variables:
        stop = _where_gradients_stop(variable.op, asked)
        if stop is not None:
            yield Finding(
                "no gradient",
                variable.op,
                f"{tensor_called(asked.loss)} depends on it only through {described(stop)} "
                f"({stop.site.place}), which passes no gradient on",
                "replace that operation, or make the variable with trainable=False",
            )
        elif variable in lost:
            yield Finding(
                "no gradient",
                variable.op,
                f"{asked.loss.name} depends on it only through inputs to which their operations "
                "pass no gradient on",
                "look at the operations that take it, or make the variable with trainable=False",
            )


def _without_gradient(variables: list[Variable], asked: _Asked) -> list[Variable]:
    """The variables whose gradients are None, as a copy of the graph says.

    An operation's gradient function may pass nothing on to some of its inputs, which only its
    result tells.
    """
    assert asked.loss is not None
    needed = sorted(asked.ancestors, key=lambda op: op.id)
    graph = graph_for_copies(needed)
    tensors: dict[Tensor, Tensor] = {}
    with graph.as_default():
        copy_operations(needed, graph, tensors)
        try:
            found = gradients(tensors[asked.loss], [tensors[v.handle] for v in variables])
        except OpError:  # Taking the gradients will say what is wrong.
            return []
    return [v for v, gradient in zip(variables, found, strict=True) if gradient is None]


def _where_gradients_stop(variable: Operation, asked: _Asked) -> Operation | None:
    """The first operation that cuts every path to the loss; None if one path is whole."""
    assert asked.loss is not None
    seen: set[Operation] = set()
    stops: list[Operation] = []
    stack = [variable]
    while stack:
        op = stack.pop()
        if op in seen or op not in asked.ancestors:
            continue
        seen.add(op)
        if op.inputs and op.op_def.grad in (NO_GRADIENT, None) and not op.op_def.is_router:
            stops.append(op)
            continue
        if asked.loss in op.outputs:
            return None
        flowing = [t for t in op.outputs if is_differentiable(t)]
        stack.extend(consumer for t in flowing for consumer in t.consumers())
        if op.closes is not None:
            stack.append(op.closes)
        elif not flowing:
            stops.append(op)
    return min(stops, key=lambda op: op.id) if stops else None


_SOFTMAX_LOSSES = (cross_entropy_op, sparse_cross_entropy_op)


def _softmax_twice(asked: _Asked) -> Iterable[Finding]:
    for op in asked.operations:
        if op.op_def in _SOFTMAX_LOSSES:
            names = [argument.name for argument in op.op_def.inputs]
            logits = _behind(op.inputs[names.index("logits")])
            if logits.op.op_def is softmax_op:
                yield Finding(
                    "softmax twice",
                    op,
                    f"its logits are the probabilities {logits.name}",
                    "give it what the softmax was given",
                )


def _log_of_softmax(asked: _Asked) -> Iterable[Finding]:
    for op in asked.operations:
        if op.op_def is log and _behind(op.inputs[0]).op.op_def is softmax_op:
            yield Finding(
                "log of softmax",
                op,
                "it is -inf where a probability rounds to 0",
                "use fb.nn.log_softmax, or a cross entropy with logits",
            )


def _behind(tensor: Tensor) -> Tensor:
    """What a tensor is but for its shape, the order of its elements, and its name."""
    while (shown := _shown(tensor)) is not None:
        tensor = shown
    return tensor


def _shown(tensor: Tensor) -> Tensor | None:
    """The input of which an output shows every element, and nothing else."""
    op_def = tensor.op.op_def
    place = op_def.views.get(tensor.index)
    if place is None:
        return None
    has_all = op_def.inputs[place].name in op_def.spreads_nonfinite
    return tensor.op.inputs[place] if has_all else None


_RULES: tuple[Callable[[_Asked], Iterable[Finding]], ...] = (
    _broadcast,
    _unused,
    _no_gradient,
    _softmax_twice,
    _log_of_softmax,
)
