"""ONNX models as parts of a graph: `load`.

Each node becomes operations of Flowbook by the table of `flowbook/onnx/reading/operators`;
functions are expanded first. Whatever lies between two transpositions that undo each other is built
between them, so that models of images, which ONNX lays out channels first, are transposed at their
ends.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model.convert import to_array as array_of
from flowbook.graph.model.dtypes import as_dtype
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.model.long_work import track
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant, identity, placeholder
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.state.variables import Variable
from flowbook.onnx.elements import declared_shape, dtype_of, to_array
from flowbook.onnx.reading.budget import Budget
from flowbook.onnx.reading.expanding import expanded
from flowbook.onnx.reading.flow import Learnt, Loops, routed
from flowbook.onnx.reading.node import NOTHING, Node, TensorSequence, Value, ValueNeededError
from flowbook.onnx.reading.opening import MOST_BYTES, MOST_NODES, opened
from flowbook.onnx.reading.operators import ELEMENTWISE, OPERATORS, UNSUPPORTED
from flowbook.onnx.values import Values

_DEEPEST = 32
_WITH_GRAPHS = {("", "If"), ("", "Loop"), ("", "Scan")}


@dataclass(frozen=True)
class Model:
    """An ONNX model that is part of a graph.

    Attributes:
        inputs: the placeholders to feed, by their names in the model.
        outputs: what to fetch, by its name in the model: a tensor, or a list for a sequence.
        initializers: the constants, or variables, that hold the model's stored values.
        graph: the graph that it is in.
        scope: the prefix of its operations' names, which ends with "/".
        opset: the version of ONNX's operator set that the model uses.
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Any]
    initializers: dict[str, Tensor | Variable]
    graph: Graph = field(repr=False)
    scope: str
    opset: int


def load(
    model: Any,
    *,
    graph: Graph | None = None,
    name: str | None = None,
    trainable: bool = False,
    values: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    base_folder: Any = None,
) -> Model:
    """See `flowbook.onnx.load`."""
    message = expanded(opened(model, base_folder), OPERATORS)
    _check_supported(message.graph)
    if graph is None:
        graph = get_default_graph()
    elif not isinstance(graph, Graph):
        raise InvalidTypeError(f"graph is an fb.Graph, not {graph!r}")
    label = valid_name(name or message.graph.name) or "model"
    given = (trainable, values or {}, shapes or {})
    return _Attempts(message, graph, label, given).model()


class _Attempts:
    """Builds a model, and again with what was learnt of its loops, until it stands."""

    def __init__(self, message: Any, graph: Graph, label: str, given: tuple[Any, ...]) -> None:
        self._message = message
        self._graph = graph
        self._scope = label
        self._given = given
        self._loops = Loops()
        self._built = Count()

    def model(self) -> Model:
        """The model.

        Raises:
            OpError: if it cannot be built; then nothing of it stays behind.
        """
        while True:
            self._loops.count = 0
            try:
                return self._build()
            except Learnt:
                continue
            except UnimplementedError as error:
                if self._loops.are_unrolled or not self._loops.count:
                    raise
                first = error
            # Something can only be built if what a loop gives is known.
            self._loops = Loops(are_unrolled=True)
            try:
                return self._build()
            except (UnimplementedError, ResourceExhaustedError):
                raise first from None

    def _build(self) -> Model:
        graph = self._graph
        before = set(graph.operations)
        with graph.as_default(), name_scope(self._scope) as scope:
            self._scope = scope  # Every attempt is made in the same one.
            try:
                reader = _Reader(self._message, self._loops, self._built, *self._given)
                return reader.read(graph, scope)
            except BaseException as error:
                # Nothing of a model that cannot be built stays behind.
                for operation in reversed(graph.operations):
                    if operation not in before and operation.name.startswith(scope):
                        graph.members.retire(operation)
                if isinstance(error, Exception) and not isinstance(error, OpError | Learnt):
                    raise InvalidArgumentError(f"the model cannot be read: {error}") from error
                raise


def valid_name(name: str) -> str:
    """A name of the model as one that an operation may have, or ""."""
    found = re.sub(r"[^A-Za-z0-9_./>-]", "_", name)[:200]
    found = "/".join(part for part in found.split("/") if part)
    return found if re.match(r"[A-Za-z0-9.]", found) else found.lstrip("_>-")


def _key(domain: str, type: str) -> tuple[str, str]:
    return ("" if domain == "ai.onnx" else domain, type)


def _check_supported(graph: Any) -> None:
    """Refuse a model for all of its operators that have no translation, at once."""
    missing: set[tuple[str, str]] = set()
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            key = _key(node.domain, node.op_type)
            if key not in OPERATORS and key not in _WITH_GRAPHS:
                missing.add(key)
            graphs += [a.g for a in node.attribute if a.HasField("g")]
    if missing:
        names = [f"{d}.{t}" if d else t for d, t in sorted(missing)]
        reasons = {UNSUPPORTED[key] for key in missing if key in UNSUPPORTED}
        raise UnimplementedError(
            f"the model uses ONNX operators without a translation: {', '.join(names)}",
            hint="; ".join(sorted(reasons)) or None,
        )


class Count:
    """How many nodes were built, of which a model may have so many, loops and attempts included."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self) -> None:
        """Count one more.

        Raises:
            ResourceExhaustedError: if these are too many.
        """
        self._taken += 1
        if self._taken > MOST_NODES:
            raise ResourceExhaustedError(f"the model asks for more than {MOST_NODES} nodes")


class _Reader:
    """Builds one model."""

    def __init__(
        self,
        message: Any,
        loops: Loops,
        built: Count,
        trainable: bool,
        values: Mapping[str, Any],
        shapes: Mapping[str, Any],
    ) -> None:
        self._graph = message.graph
        self._trainable = trainable
        self._given = dict(values)
        self._shapes = dict(shapes)
        self._values = Values()
        self._budget = Budget()
        self._loops = loops
        self._built = built
        self._opsets = {_key(o.domain, "")[0]: o.version for o in message.opset_import}

    def read(self, graph: Graph, scope: str) -> Model:
        """Build it in the default graph, in a scope that was entered."""
        known: dict[str, Value | None] = {"": None}
        initializers = self._initializers(known)
        inputs = self._inputs(known)
        self._build(self._graph, known, 0)
        outputs: dict[str, Any] = {}
        for info in self._graph.output:
            found = self._looked_up(known, info.name)
            self._check_dtype(info, found)
            outputs[info.name] = _fetched(found, valid_name(info.name) or None)
        return Model(inputs, outputs, initializers, graph, scope, self._opsets.get("", 1))

    def _initializers(self, known: dict[str, Value | None]) -> dict[str, Tensor | Variable]:
        found: dict[str, Tensor | Variable] = {}
        arrays = {t.name: (t, None) for t in self._graph.initializer}
        arrays |= {s.values.name: (s.values, s) for s in self._graph.sparse_initializer}
        for name, (message, sparse) in arrays.items():
            array = to_array(message) if sparse is None else _dense(sparse)
            label = valid_name(name) or None
            kind = as_dtype(array.dtype)
            is_float = kind.is_floating or kind.is_complex
            if self._trainable and is_float and array.size:
                variable = Variable(constant(array), name=label)
                found[name] = variable
                known[name] = variable.value
                self._values.assume(variable.value, array)
            else:
                found[name] = known[name] = constant(array, name=label)
        return found

    def _inputs(self, known: dict[str, Value | None]) -> dict[str, Tensor]:
        inputs: dict[str, Tensor] = {}
        for info in self._graph.input:
            if info.name in known:
                continue  # Its initializer is its default.
            label = valid_name(info.name) or None
            if info.type.WhichOneof("value") != "tensor_type":
                known[info.name] = self._given_value(info)
                continue
            dtype, shape = dtype_of(info.type.tensor_type.elem_type), declared_shape(info)
            if info.name in self._given:
                array = array_of(self._given.pop(info.name), dtype)
                shape.merge(Shape(array.shape))
                known[info.name] = constant(array, dtype, name=label)
                continue
            if info.name in self._shapes:
                shape = shape.merge(Shape(self._shapes.pop(info.name)))
            inputs[info.name] = known[info.name] = placeholder(dtype, shape, name=label)
            self._values.add_input(info.name, inputs[info.name])
        unknown = sorted({*self._given, *self._shapes})
        if unknown:
            names = ", ".join(repr(i.name) for i in self._graph.input)
            raise InvalidArgumentError(
                f"the model has no input {unknown[0]!r}; it has {names or 'none'}"
            )
        return inputs

    def _given_value(self, info: Any) -> Value:
        """The sequence or optional value that is given for an input: none can be fed."""
        kind = str(info.type.WhichOneof("value")).removesuffix("_type")
        if info.name not in self._given:
            raise ValueNeededError(
                [info.name], f"the model's input {info.name!r} is a {kind}; only tensors can be fed"
            )
        type = info.type.optional_type.elem_type if kind == "optional" else info.type
        given = self._given.pop(info.name)
        if kind == "optional" and given is None:
            return NOTHING
        if type.HasField("tensor_type"):
            return constant(given, dtype_of(type.tensor_type.elem_type))
        if not type.HasField("sequence_type") or not isinstance(given, list | tuple):
            raise InvalidArgumentError(f"{info.name!r} is a {kind}, not {given!r:.80}")
        dtype = dtype_of(type.sequence_type.elem_type.tensor_type.elem_type)
        return TensorSequence(tuple(constant(element, dtype) for element in given))

    def _build(self, graph: Any, known: MutableMapping[str, Value | None], depth: int) -> None:
        """Build the nodes of a graph; what they compute is added to what is known."""
        if depth > _DEEPEST:
            raise ResourceExhaustedError(f"graphs lie more than {_DEEPEST} deep in each other")
        # Graphs inside of nodes are part of the work on the outermost.
        for proto in track(graph.node, "reading") if depth == 0 else graph.node:
            self._built.take()
            inputs = [self._looked_up(known, name) if name else None for name in proto.input]
            domain = _key(proto.domain, "")[0]
            node = Node(proto, inputs, self._opsets.get(domain, 1), self._values, self._budget)
            with name_scope(valid_name(proto.name) or proto.op_type):
                outputs = self._translated(node, proto, known, depth)
            for name, tensor in zip(proto.output, outputs, strict=False):
                if name and tensor is not None:
                    known[name] = tensor

    def _translated(
        self, node: Node, proto: Any, known: MutableMapping[str, Value | None], depth: int
    ) -> Sequence[Any]:
        try:
            if _key(node.domain, node.type) in _WITH_GRAPHS:
                return routed(
                    node, proto, lambda g, given: self._inner(g, known, given, depth), self._loops
                )
            found = _between_transpositions(node)
        except Learnt:
            raise
        except OpError as error:
            error.details.append(f"read from {node}")
            raise
        except Exception as error:
            raise InvalidArgumentError(f"{node} does not fit its operator: {error}") from error
        return found if isinstance(found, list | tuple) else (found,)

    def _inner(
        self,
        graph: Any,
        known: MutableMapping[str, Value | None],
        given: Mapping[str, Tensor],
        depth: int,
    ) -> list[Tensor]:
        """Build a graph that a node holds, which sees what is known around it."""
        inner: ChainMap[str, Value | None] = ChainMap(dict(given), known)
        for tensor in graph.initializer:
            inner[tensor.name] = constant(to_array(tensor))
        self._build(graph, inner, depth + 1)
        return [self._looked_up(inner, info.name) for info in graph.output]

    @staticmethod
    def _looked_up(known: Mapping[str, Value | None], name: str) -> Any:
        found = known.get(name)
        if found is None:
            raise InvalidArgumentError(f"the model uses {name!r}, which nothing in it computes")
        return found

    @staticmethod
    def _check_dtype(info: Any, found: Tensor) -> None:
        if (
            isinstance(found, Tensor)
            and info.type.HasField("tensor_type")
            and info.type.tensor_type.elem_type
        ):
            dtype = dtype_of(info.type.tensor_type.elem_type)
            if dtype is not found.dtype:
                raise InvalidArgumentError(
                    f"the model's output {info.name!r} is declared as {dtype.name}, "
                    f"but computed as {found.dtype.name}"
                )


def _fetched(value: Any, name: str | None) -> Any:
    """What stands for an output: a tensor, a list of them, or None."""
    if isinstance(value, TensorSequence):
        return [identity(tensor, name=name) for tensor in value.tensors]
    return identity(value, name=name) if isinstance(value, Tensor) else None


def _dense(sparse: Any) -> np.ndarray[Any, Any]:
    values, indices, dims = to_array(sparse.values), to_array(sparse.indices), tuple(sparse.dims)
    size = 1
    for d in dims:
        size *= d
    if not 0 <= size * values.itemsize <= MOST_BYTES:
        raise ResourceExhaustedError(f"the sparse initializer of shape {list(dims)} is too large")
    if indices.ndim == 2:
        indices = np.ravel_multi_index(tuple(indices.T), dims)
    dense = np.zeros(size, values.dtype)
    dense[indices] = values
    return dense.reshape(dims)


def _between_transpositions(node: Node) -> Any:
    """The node's translation; an elementwise one goes in between what only transposes."""
    function = OPERATORS[_key(node.domain, node.type)]
    if node.type in ELEMENTWISE and all(isinstance(t, Tensor | None) for t in node.inputs):
        tensors = [t for t in node.inputs if t is not None]
        turned = [t for t in tensors if t.op.type == "Transpose"]
        perms = {t.op.attributes["perm"] for t in turned}
        others = [t for t in tensors if t.op.type != "Transpose"]
        if len(perms) == 1 and None not in perms and all(t.shape.rank == 0 for t in others):
            [perm] = perms
            node.inputs = [
                t.op.inputs[0] if t is not None and t.op.type == "Transpose" else t
                for t in node.inputs
            ]
            return transpose(function(node, *node.inputs), perm)
    return function(node, *node.inputs)
