"""What `load` gives: a graph of TensorFlow as part of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flowbook.exec.checkpoints.saver import Holder
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidTypeError,
    NotFoundError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.transfer.importing import import_graph_def
from flowbook.tensorflow.messages_pb2 import MetaGraphDef, SignatureDef
from flowbook.tensorflow.node import Reference
from flowbook.tensorflow.nodes import Source
from flowbook.tensorflow.reading import Built, built
from flowbook.tensorflow.restoring import restore
from flowbook.tensorflow.tables import assets


@dataclass(frozen=True)
class Signature:
    """What of a model is taken and given for one purpose, by the names that it has for that.

    Attributes:
        inputs: the tensors to feed.
        outputs: the tensors to fetch.
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


@dataclass(frozen=True)
class Model:
    """A graph of TensorFlow that is part of a graph.

    `model["dense/Relu:0"]` is a tensor by its name there, `model["train"]` an operation.

    Attributes:
        inputs: the placeholders, by their names there.
        outputs: the tensors and operations that were asked for; by default the tensors that
            nothing else takes.
        variables: by their names there.
        signatures: what a saved model, or a MetaGraph, says that it is for.
        checkpoint: the checkpoint that lies beside the file it was read from; None if none does.
        graph: the graph that it is in.
        scope: the prefix of its operations' names: "", or one that ends with "/".
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor | Operation]
    variables: dict[str, Variable]
    signatures: dict[str, Signature]
    checkpoint: str | None
    graph: Graph = field(repr=False)
    scope: str
    saved_as: dict[str, str] = field(repr=False)
    elements: dict[str, Tensor | Operation] = field(repr=False)

    def __getitem__(self, name: str) -> Tensor | Operation:
        found = self.elements.get(name)
        if found is None:
            raise NotFoundError(
                f"of the graph that was read there is no {name!r}",
                hint="an operation is named 'scope/name', a tensor 'scope/name:0'",
            )
        return found

    def restore(self, sess: Holder, path: Any = None, *, partial: bool = False) -> list[str]:
        """Give its variables the values of a V2 checkpoint: all of them, or none if one is wrong.

        Args:
            sess: the session.
            path: the checkpoint, as "run/model.ckpt-100"; by default the one that lies beside.
            partial: whether variables that the checkpoint does not have keep what they have.

        Returns:
            The names of the variables that were restored, in the graph.

        Raises:
            FailedPreconditionError: if there is no path, and no checkpoint beside the file.
            NotFoundError, InvalidArgumentError, DataLossError: as `fb.tensorflow.restore`.
        """
        path = self.checkpoint if path is None else path
        if path is None:
            raise FailedPreconditionError(
                "no checkpoint lies beside the graph that was read",
                hint="model.restore(sess, 'run/model.ckpt-100')",
            )
        named = {
            self.saved_as[name]: variable
            for name, variable in self.variables.items()
            if self.saved_as[name]
        }
        return restore(sess, path, named, partial=partial)


def load(
    message: MetaGraphDef,
    checkpoint: str | None,
    folder: Path | None,
    *,
    graph: Graph | None,
    name: str | None,
    outputs: Sequence[str] | None,
    input_map: Mapping[str, Any] | None,
    clear_devices: bool,
) -> Model:
    """Make a MetaGraph part of a graph; see `flowbook.tensorflow.load`."""
    if graph is None:
        graph = get_default_graph()
    elif not isinstance(graph, Graph):
        raise InvalidTypeError(f"graph is an fb.Graph, not {graph!r}")
    if isinstance(outputs, str):
        raise InvalidTypeError("outputs is a list of names", hint=f"outputs=[{outputs!r}]")
    wanted = None if outputs is None else [name.partition(":")[0] for name in outputs]
    paths = assets(message, folder)
    found = built(message, wanted, _standing(input_map), paths, checkpoint, clear_devices)
    with graph.as_default(), name_scope(name) if name else nullcontext():
        scope = graph.scope.prefix
        import_graph_def(found.graph, _in_graph(found, input_map), name="")
    return _Loaded(found, graph, scope).model(message, outputs, checkpoint)


def _standing(input_map: Mapping[str, Any] | None) -> dict[Source, Tensor]:
    """The tensors that stand for outputs of nodes."""
    found = {}
    for name, value in (input_map or {}).items():
        node, _, port = name.partition(":")
        if isinstance(value, Tensor) and (not port or port.isdecimal()):
            found[Source(node, int(port or 0))] = value
    return found


def _in_graph(found: Built, input_map: Mapping[str, Any] | None) -> dict[str, Any]:
    """What stands for tensors, by their names in the graph that was built."""
    mapped = {}
    for name, value in (input_map or {}).items():
        tensor = _tensor(found, name)
        if tensor is None:
            raise NotFoundError(f"the graph has no tensor {name!r}")
        mapped[tensor.name] = value
    return mapped


def _tensor(found: Built, name: str) -> Tensor | None:
    """The tensor of a name such as "dense/Relu:0", or "dense/Relu"; None if there is none."""
    node, _, port = name.partition(":")
    values = found.values.get(node, [])
    if (port and not port.isdecimal()) or int(port or 0) >= len(values):
        return None
    value = values[int(port or 0)]
    if isinstance(value, Reference):
        return value.variable.value
    return value if isinstance(value, Tensor) else None


class _Loaded:
    """Finds what was built of nodes in the graph that it was imported to."""

    def __init__(self, found: Built, graph: Graph, scope: str) -> None:
        self._found = found
        self._graph = graph
        self._scope = scope

    def model(
        self, message: MetaGraphDef, outputs: Sequence[str] | None, checkpoint: str | None
    ) -> Model:
        """The model."""
        found = self._found
        elements: dict[str, Tensor | Operation] = {
            name: self._operation(op) for name, op in found.operations.items()
        }
        variables, inputs = {}, {}
        for name, values in found.values.items():
            for port, value in enumerate(values):
                if isinstance(value, Reference | Tensor):
                    elements[f"{name}:{port}"] = self._tensor(f"{name}:{port}")
            if values and isinstance(values[0], Reference) and name in found.states:
                handle = self._operation(values[0].variable.op)
                variables[name] = Variable.of(handle)
            elif name in found.placeholders:
                inputs[name] = self._tensor(name)
        given = found.ends if outputs is None else outputs
        return Model(
            inputs,
            {name: self._output(name) for name in given},
            variables,
            {k: self._signature(s) for k, s in sorted(message.signature_def.items())},
            checkpoint,
            self._graph,
            self._scope,
            {name: found.states[name].saved_as for name in variables},
            elements,
        )

    def _operation(self, operation: Operation) -> Operation:
        return self._graph.get_operation_by_name(f"{self._scope}{operation.name}")

    def _tensor(self, name: str) -> Tensor:
        tensor = _tensor(self._found, name)
        if tensor is None:
            raise NotFoundError(f"the graph that was read has no tensor {name!r}")
        return self._operation(tensor.op).outputs[tensor.index]

    def _output(self, name: str) -> Tensor | Operation:
        """What was asked for by a name: a tensor, or an operation that gives none."""
        operation = self._found.operations.get(name)
        if operation is not None and not self._found.values[name]:
            return self._operation(operation)
        return self._tensor(name)

    def _signature(self, message: SignatureDef) -> Signature:
        """What of a signature was read: a model of some outputs alone may lack others."""
        inputs, outputs = (
            {
                key: self._tensor(info.name)
                for key, info in sorted(part.items())
                if _tensor(self._found, info.name) is not None
            }
            for part in (message.inputs, message.outputs)
        )
        return Signature(inputs, outputs)
