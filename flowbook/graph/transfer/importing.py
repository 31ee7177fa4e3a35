"""A stored graph's operations, added to another graph.

Invariant: all operations are made, and inferred anew where what they take was replaced, before the
first one joins; so an import that fails leaves the graph as it was.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    without_internal_frames,
)
from flowbook.graph.model.long_work import track
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import resource_kind
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.storing import graph_file
from flowbook.graph.storing.graph_pb2 import GraphDef
from flowbook.graph.storing.serialize import with_retired

__all__ = ["import_graph_def"]


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = "import",
) -> list[Tensor | Operation] | None:
    """Add the operations of a stored graph to the default graph.

    They run, train, save and differentiate as in their own graph; its variables are variables here.
    Random operations draw what they would draw there, if it has a seed. Of the scopes around the
    call, the name scope and the device count.

    Args:
        graph_def: a path that `Graph.save` wrote to, bytes from there or from `Graph.to_bytes`, or
            a Graph.
        input_map: tensors or variables of the default graph, by the names of those that they stand
            for in the imported graph. "x" means "x:0"; "^x" stands for an operation that others
            wait for.
        return_elements: the names of operations and tensors ("x:0") to return, as in the imported
            graph.
        name: the name scope, made unique; "" adds to the current one.

    Returns:
        The elements asked for; None if `return_elements` is.

    Raises:
        NotFoundError: if there is no such file, operation type, or name in the imported graph.
        DataLossError: if data are damaged, or are not a graph.
        InvalidArgumentError: if an operation does not fit what replaces its inputs.
        InvalidTypeError: if a dtype in `input_map` differs.
        AlreadyExistsError: if `name` is "" and an operation of the same name is there.

    >>> import flowbook as fb
    >>> with fb.Graph().as_default() as stored:
    ...     x = fb.placeholder(fb.float32, [], name="x")
    ...     y = fb.multiply(x, 3.0, name="y")
    >>> [y] = fb.import_graph_def(stored, {"x:0": fb.constant(2.0)}, ["y:0"], name="triple")
    >>> y
    <Tensor 'triple/y:0' shape=[] dtype=float32>
    >>> with fb.Session() as sess:
    ...     print(sess.run(y))
    6.0
    """
    site = sites.capture()
    graph = get_default_graph()
    try:
        name = "import" if name is None else name
        source = _source(graph_def)
        wanted = _elements(source, return_elements)
        with source.lock:
            made = _Import(source, graph, site)
            made.map_inputs(_checked_map(input_map))
            made.copy()
        prefix = graph.adopt(name, made.named(), source.members.scope_names())
        made.register_variables(prefix)
    except OpError as error:
        raise without_internal_frames(error.at("import_graph_def", site)) from None
    if return_elements is None:
        return None
    return [made.imported(item, prefix) for item in wanted]


def _source(graph_def: Any) -> Graph:
    """The graph to import, whatever stands for it."""
    if isinstance(graph_def, Graph):
        return graph_def
    if isinstance(graph_def, GraphDef):
        graph_def = graph_def.SerializeToString()
    if isinstance(graph_def, bytes | bytearray | memoryview):
        if not graph_file.is_graph_file(graph_def):
            return Graph.from_bytes(graph_def)
        graph = Graph()
        graph_file.read_graph(graph, io.BytesIO(graph_def))
        return graph
    if isinstance(graph_def, str | os.PathLike):
        return Graph.load(graph_def)
    raise InvalidTypeError(
        f"a stored graph is a path, bytes or a Graph, not {graph_def!r:.80}",
        hint="graph.save(path) writes one; graph.to_bytes() gives bytes",
    )


def _elements(source: Graph, names: Any) -> list[Tensor | Operation]:
    if names is None:
        return []
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidTypeError(f"return_elements is a list of names, not {names!r:.80}")
    return [
        source.get_tensor_by_name(n)
        if isinstance(n, str) and ":" in n
        else source.get_operation_by_name(n)
        for n in names
    ]


def _checked_map(input_map: Any) -> Mapping[str, Any]:
    if input_map is None:
        return {}
    if not isinstance(input_map, Mapping) or not all(isinstance(k, str) for k in input_map):
        raise InvalidTypeError(
            f"input_map is a dict from names to tensors, not {input_map!r:.80}",
            hint='input_map={"x:0": tensor}: names are those in the imported graph',
        )
    return input_map


def _hint_for(tensor: Tensor, value: Tensor) -> str | None:
    if tensor.dtype is resource:
        reads = [c.outputs[0].name for c in tensor.consumers() if c.op_def.reads_as]
        return f"a value stands for reads of the variable: {', '.join(map(repr, reads))}"
    return None if value.dtype is resource else "convert it: fb.cast"


class _Import:
    """Copies of a graph's operations, made for another graph but not yet in it."""

    def __init__(self, source: Graph, graph: Graph, site: sites.Site) -> None:
        self._source = source
        self._graph = graph
        self._site = site
        self._tensors: dict[Tensor, Tensor] = {}
        self._waited: dict[Operation, Operation] = {}
        self._copies: dict[Operation, Operation] = {}
        self._sites: dict[Any, sites.Site] = {}
        self._is_changed = False

    def map_inputs(self, input_map: Mapping[str, Any]) -> None:
        """Note what stands for tensors and operations of the source."""
        for key, value in input_map.items():
            if key.startswith("^"):
                self._waited[self._source.get_operation_by_name(key[1:])] = (
                    self._graph.as_operation(value)
                )
                continue
            tensor = self._source.get_tensor_by_name(key if ":" in key else f"{key}:0")
            if tensor in self._tensors:
                raise InvalidArgumentError(f"{tensor.name!r} is in input_map twice")
            self._tensors[tensor] = self._replacement(tensor, value)
            # Inference also looks at what computes an input: all that follows is inferred anew.
            self._is_changed = True

    def _replacement(self, tensor: Tensor, value: Any) -> Tensor:
        if isinstance(value, Variable):
            value = value.handle if tensor.dtype is resource else value.value
        if not isinstance(value, Tensor):
            raise InvalidTypeError(
                f"a tensor or variable stands for {tensor.name!r}, not {value!r:.80}",
                hint="a value becomes a tensor by fb.constant(value)",
            )
        if value.graph is not self._graph:
            raise mixed_graphs([(value.name, value.graph), ("the default graph", self._graph)])
        if value.dtype is not tensor.dtype:
            raise InvalidTypeError(
                f"{value.name} is {value.dtype.name}, but {tensor.name!r}, which it stands for, is "
                f"{tensor.dtype.name}",
                hint=_hint_for(tensor, value),
            )
        if value.dtype is resource:
            _check_same_state(tensor, value)
        return self._graph.known_shapes.checked([value])[0]

    def copy(self) -> None:
        """Make a copy of each operation."""
        for operation in track(with_retired(self._source), "importing"):
            try:
                self._copy(operation)
            except OpError as error:
                what = f"{operation.type} {operation.name!r}"
                raise error.at(what, self._site_of(operation), operation.inputs) from None

    def _copy(self, operation: Operation) -> None:
        inputs = [self._tensors[t] for t in operation.inputs]
        attributes = _with_own_seed(operation)
        if self._is_changed:
            dtypes, shapes = operation.op_def.infer_outputs(self._graph, inputs, attributes)
        else:
            dtypes = operation.dtypes
            shapes = operation.shapes
        copy = Operation(
            self._graph,
            operation.op_def,
            tuple(inputs),
            attributes,
            dtypes,
            shapes,
            self._site_of(operation),
        )
        copy.settled_by = tuple([self._settling(t, operation) for t in operation.settled_by])
        waited = [self._waited.get(o) or self._copies[o] for o in operation.control_inputs]
        copy.control_inputs = tuple(dict.fromkeys(waited))
        copy.colocation = tuple([self._copies[o] for o in operation.colocation])
        copy.context = operation.context
        if operation.closes is not None:
            copy.closes = self._copies[operation.closes]
        around, own = (DeviceSpec.parse(d) for d in (self._graph.scope.device, operation.device))
        copy.device = str(around.merge(own))
        copy.container = operation.container
        copy.retired = operation.retired
        self._copies[operation] = copy
        for original, output in zip(operation.outputs, copy.outputs, strict=True):
            self._tensors.setdefault(original, output)

    def _settling(self, tensor: Tensor, operation: Operation) -> Tensor:
        copied = self._copies[tensor.op].outputs[tensor.index]
        # What stands for it has its shape, which is all that a constant was told by.
        if self._tensors[tensor] is not copied and not operation.op_def.is_constant:
            raise InvalidArgumentError(
                f"something stands for {tensor.name!r}, but its value was read when this was "
                "built, and is fixed in it"
            )
        return copied

    def _site_of(self, operation: Operation) -> sites.Site:
        site = operation.site
        key = (site.code, site.offset, site.author, site.caller)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = site.imported_by(self._site)
        return found

    def named(self) -> list[tuple[str, Operation]]:
        """The copies with their names in the source."""
        return [(original.name, copy) for original, copy in self._copies.items()]

    def imported(self, item: Any, prefix: str) -> Any:
        """What came of a tensor or operation of the source."""
        if isinstance(item, Operation):
            return self._joined(item, prefix)
        mapped = self._tensors[item]
        if mapped.op is not self._copies[item.op]:
            return mapped
        return self._joined(item.op, prefix).outputs[item.index]

    def _joined(self, operation: Operation, prefix: str) -> Operation:
        """What joined the graph for an operation: its copy, or one that was there already."""
        if operation.retired:
            return self._copies[operation]
        return self._graph.get_operation_by_name(prefix + operation.name)

    def register_variables(self, prefix: str) -> None:
        """Make the source's variables known, but those in whose place another variable stands.

        What may not be fed in the source may not be here.
        """
        for original, copy in self._copies.items():
            variable = self._source.variable_of(original)
            if variable is not None and self._tensors[variable.handle].op is copy:
                users = (variable.initializer, variable.value.op)
                joined = [self._joined(user, prefix) for user in users]
                made = Variable.of(self._joined(original, prefix), joined)
                made.constraint = variable.constraint
            for tensor in original.outputs:
                if self._tensors[tensor].op is copy and not self._source.is_feedable(tensor):
                    self._graph.prevent_feeding(self.imported(tensor, prefix))


def _check_same_state(tensor: Tensor, value: Tensor) -> None:
    """Refuse a variable in the place of one of another dtype or shape."""
    theirs, ours = tensor.op.attributes, value.op.attributes
    keys = ("dtype", "shape")
    if tensor.op.op_def is not value.op.op_def or any(theirs.get(k) != ours.get(k) for k in keys):
        described = [f"{a.get('dtype')} {a.get('shape')}" for a in (ours, theirs)]
        raise InvalidArgumentError(
            f"{value.name}, a {value.op.type} {described[0]}, cannot stand for {tensor.name!r}, "
            f"a {tensor.op.type} {described[1]}"
        )


def _with_own_seed(operation: Operation) -> Mapping[str, Any]:
    """The attributes; a seed that follows from the name is written down, as the name changes."""
    owns, attributes = operation.op_def.owns, operation.attributes
    if owns is None or not resource_kind(owns).is_seeded:
        return attributes
    if attributes["graph_seed"] is None or attributes["seed"] is not None:
        return attributes
    seed = zlib.crc32(operation.name.encode())
    return MappingProxyType({**attributes, "seed": seed})
