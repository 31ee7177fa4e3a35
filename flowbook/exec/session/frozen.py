"""A model for others: one file, with the values of its variables in it, that needs no code.

What is saved is a graph like any other (`Graph.save`), whose placeholders are what is fed, and in
which a constant stands for each variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.session.session import Session, open_sessions
from flowbook.exec.signature.feeds import feedable
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.building.names import name_from
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE, Access
from flowbook.graph.ops.basis.constants import constant, identity, placeholder
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.rewrite.prune import closure, prune
from flowbook.graph.transfer.copying import copy_operations, graph_for_copies

__all__ = ["save_graph"]


def save_graph(path: Any, fetches: Any, feeds: Any = (), sess: Session | None = None) -> None:
    """Save what computes some tensors, with the values that variables have now.

    `fb.Graph.load(path)` gives a graph without variables, in any process; a session on it runs by
    the names given here.

    Args:
        path: the file, such as "model.graph".
        fetches: the tensors to compute: a dictionary by the names that they get, or a tensor or a
            list of them, which keep theirs.
        feeds: the tensors that will be fed, likewise. What only served to compute them is left out.
        sess: who has the values; by default the only open session of the graph.

    Raises:
        InvalidArgumentError: if something needed is a placeholder that is not among the feeds,
            changes a variable, or has a name that was given to another.
        FailedPreconditionError: if it is not clear whose values are meant.
        UnimplementedError: if an operation holds Python code.
        OSError: if the file cannot be written.

    >>> import tempfile
    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, 2])
    >>> y = x @ fb.Variable([[1.0], [2.0]])
    >>> with tempfile.TemporaryDirectory() as folder, fb.Session() as sess:
    ...     fb.save_graph(f"{folder}/model.graph", {"y": y}, {"x": x}, sess)
    ...     graph = fb.Graph.load(f"{folder}/model.graph")
    >>> with fb.Session(graph) as sess:
    ...     print(sess.run("y:0", {"x": [[3.0, 4.0]]}))
    [[11.]]
    """
    wanted = _named(fetches, "fetches")
    first = next(iter(wanted.values()), None)
    if first is None:
        raise InvalidArgumentError("there is nothing to compute: fetches is empty")
    graph = first.graph
    fed = {name: feedable(graph, tensor) for name, tensor in _named(feeds, "feeds").items()}
    # Which refuses what a run would refuse, such as a placeholder without a feed.
    variables = _variables(prune([*wanted.values()], [], [*fed.values()]).operations)
    snapshot = _session(sess, graph).snapshot(variables) if variables else None
    _frozen(wanted, fed, snapshot).save(path)


def _named(given: Any, what: str) -> dict[str, Tensor]:
    """Tensors by the names that they are to have."""
    if isinstance(given, Tensor | Variable | str):
        given = [given]
    if isinstance(given, Mapping):
        pairs = [(name, _tensor(value)) for name, value in given.items()]
    elif isinstance(given, Sequence):
        pairs = [(tensor.op.name, tensor) for tensor in map(_tensor, given)]
    else:
        raise InvalidTypeError(
            f"{what} are tensors, by their names or in a list, not {given!r:.80}"
        )
    for name, _ in pairs:
        if not isinstance(name, str):
            raise InvalidTypeError(f"{what} are named by texts, not {name!r:.80}")
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidArgumentError(
            f"{what} has two tensors of one operation", hint="name them: {'a': x, 'b': y}"
        )
    return found


def _tensor(given: Any) -> Tensor:
    if isinstance(given, str):
        return get_default_graph().get_tensor_by_name(given if ":" in given else f"{given}:0")
    if isinstance(given, Variable):
        return given.value
    if not isinstance(given, Tensor):
        raise InvalidTypeError(f"a tensor is fed and fetched, not {given!r:.80}")
    return given


def _variables(operations: Sequence[Operation]) -> list[Variable]:
    """The variables that operations read; an error if one is changed."""
    found: dict[Operation, Variable] = {}
    for operation in operations:
        owner = touched_by(operation)
        if owner is None or owner.op_def.owns != VARIABLE.name or owner is operation:
            continue
        if operation.op_def.access is Access.WRITE or operation.op_def.reads_as is None:
            raise InvalidArgumentError(
                "what is saved for others has values in place of variables, and this needs one",
                operation,
                hint="fetch what changes no variable, such as a model built with training=False",
            )
        found[owner] = Variable.of(owner)
    return list(found.values())


def _session(sess: Session | None, graph: Graph) -> Session:
    if sess is not None:
        return sess
    found = open_sessions(graph)
    if len(found) != 1:
        raise FailedPreconditionError(
            f"{len(found)} sessions of this graph are open: it is not clear whose values are meant",
            hint="fb.save_graph(path, fetches, feeds, sess)",
        )
    return found[0]


def _frozen(
    wanted: Mapping[str, Tensor], fed: Mapping[str, Tensor], snapshot: Snapshot | None
) -> Graph:
    """A graph that computes tensors by their names, with values in place of variables."""
    values = {} if snapshot is None else {op.outputs[0]: v for op, v in snapshot.values.items()}
    given = {*fed.values(), *values}
    operations = closure([*wanted.values()], [], given, set(values))
    graph = graph_for_copies(operations)
    tensors: dict[Tensor, Tensor] = {}
    with graph.as_default():
        for name, tensor in fed.items():
            tensors[tensor] = placeholder(tensor.dtype, tensor.shape, name=name)
            _check_name(tensors[tensor], name)
        for handle, value in values.items():
            tensors[handle] = constant(value, name=name_from(handle.op.name))
        copy_operations(operations, graph, tensors, defined=_pure, attributes=_attributes)
        for name, tensor in wanted.items():
            there = tensors[tensor]
            if (there.op.name, there.index) != (name, 0):
                _check_name(identity(there, name=name), name)
    return graph


def _pure(operation: Operation) -> OpDef[Any]:
    """What stands for an operation: for one that reads a variable, what takes its value."""
    return operation.op_def.reads_as or operation.op_def


def _attributes(operation: Operation) -> Mapping[str, Any]:
    own = operation.attributes
    return {name: own.get(name, default) for name, default in _pure(operation).attributes.items()}


def _check_name(tensor: Tensor, name: str) -> None:
    if tensor.op.name != name:
        raise InvalidArgumentError(
            f"{name!r} is the name of another operation that is needed", hint="give another name"
        )
