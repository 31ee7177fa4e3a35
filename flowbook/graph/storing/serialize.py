"""Graphs as bytes and back (`Graph.to_bytes`, `Graph.from_bytes`; format in `graph.proto`).

What is written is all that the graph's meaning depends on, and nothing that Python would have to
execute: never pickle. Retired operations that others still refer to are written with them. What is
read is not trusted: inference runs anew for every operation, and what does not agree is refused
before the caller sees a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from google.protobuf.message import DecodeError, EncodeError

from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    ResourceExhaustedError,
)
from flowbook.graph.model.long_work import track
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.registry import op_named
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.touch import VARIABLE
from flowbook.graph.storing.graph_pb2 import GraphDef, OperationDef, TensorRef
from flowbook.graph.storing.stored_values import (
    StoredArray,
    ValueReader,
    ValueWriter,
    encodable,
    in_message,
    read_dtype,
    read_shape,
    write_shape,
)

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.definition.op_def import OpDef
    from flowbook.graph.model.dtypes import DType
    from flowbook.graph.model.shape import Shape
    from flowbook.graph.model.tensor import Tensor

# The format that this version writes, and the oldest one whose readers understand it.
FORMAT = 1
MIN_READER = 1


def graph_to_bytes(graph: Graph) -> bytes:
    """The graph as bytes; raises as `Graph.to_bytes`."""
    return encoded(as_message(graph, ValueWriter()))


def as_message(
    graph: Graph, values: ValueWriter, roots: Iterable[Operation] | None = None
) -> GraphDef:
    """The graph as a message, with the arrays that a writer of values has kept.

    Args:
        graph: the graph.
        values: the writer.
        roots: the operations that are wanted, with all that they refer to; by default all.
    """
    scopes = graph.members.scope_names() if roots is None else ()
    message = GraphDef(complete=True, scopes=scopes)
    message.version.writer, message.version.min_reader = FORMAT, MIN_READER
    operations = with_retired(graph, roots)
    positions = {operation: i for i, operation in enumerate(operations)}
    writer = _Writer(positions, message, values)
    values.write(graph.seed, message.seed)
    for operation in operations:
        writer.write(operation, message.operations.add())
        for tensor in operation.outputs:
            if not graph.is_feedable(tensor):
                message.unfeedable.add(operation=positions[operation], port=tensor.index)
        variable = graph.variable_of(operation)
        if variable is not None and variable.constraint is not None:
            message.constrained.append(positions[operation])
    message.arrays.extend(values.arrays.values())
    return message


def encoded(message: GraphDef) -> bytes:
    """The message's bytes; ResourceExhaustedError if it is too large."""
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ResourceExhaustedError(f"the graph does not fit one message: {error}") from None


def with_retired(graph: Graph, roots: Iterable[Operation] | None = None) -> list[Operation]:
    """The graph's operations and the retired ones that these refer to, as they were constructed.

    Args:
        graph: the graph.
        roots: those that are wanted, with all that they refer to; by default all of the graph's.
    """
    found = dict.fromkeys(graph.operations if roots is None else roots)
    stack = list(found)
    while stack:
        operation = stack.pop()
        referred = [tensor.op for tensor in (*operation.inputs, *operation.settled_by)]
        referred += (*operation.control_inputs, *operation.colocation)
        referred += [o for o in (operation.closes, operation.closed_by) if o is not None]
        variable = graph.variable_of(operation)
        if variable is not None:
            # Initialising needs them, though nothing leads from the handle to them.
            referred += (variable.initializer, variable.value.op)
        for other in referred:
            if other not in found:
                found[other] = None
                stack.append(other)
    return sorted(found, key=lambda operation: operation.id)


class _Writer:
    """Writes operations, which refer to each other and to sites by position."""

    def __init__(
        self, positions: dict[Operation, int], message: GraphDef, values: ValueWriter
    ) -> None:
        self.values = values
        self._positions = positions
        self._sites = message.sites
        self._site_of: dict[Any, int] = {}

    def write(self, operation: Operation, message: OperationDef) -> None:
        """Set the message to the operation."""
        message.name = operation.name
        message.type = operation.type
        for tensors, refs in (
            (operation.inputs, message.inputs),
            (operation.settled_by, message.settled_by),
        ):
            for tensor in tensors:
                refs.add(operation=self._positions[tensor.op], port=tensor.index)
        message.control_inputs.extend([self._positions[o] for o in operation.control_inputs])
        message.colocation.extend([self._positions[o] for o in operation.colocation])
        for name, value in operation.attributes.items():
            attribute = message.attributes.add(name=name)
            try:
                self.values.write(value, attribute.value)
            except OpError as error:
                error.message = f"attribute {name!r}: {error.message}"
                raise error.about(operation) from None
        for dtype, shape in zip(operation.dtypes, operation.shapes, strict=True):
            output = message.outputs.add(dtype=dtype.name)
            write_shape(shape, output.shape)
        if operation.closes is not None:
            message.closes = self._positions[operation.closes] + 1
        message.device = operation.device
        message.container = encodable(operation.container)
        message.site = self._site(operation.site)
        message.retired = operation.retired

    def _site(self, site: sites.Site) -> int:
        """1 + the position of the site's text, which is written once; 0 if it is unknown."""
        if site.code is None:
            return 0
        label = site.author.label if site.author is not None else None
        key = (type(site), site.code, site.offset, label, site.caller)
        found = self._site_of.get(key)
        if found is None:
            text = site.as_text()
            found = self._site_of.get(text)
            if found is None:
                self._sites.add(
                    label=_printable(text.label),
                    line=text.line,
                    source=_printable(text.source),
                    run_by=_printable(text.run_by),
                    imported_by=_printable(text.imported_by),
                    called_at=_printable(text.called_at),
                    targets=map(_printable, text.targets),
                )
                found = self._site_of[text] = len(self._sites)
            self._site_of[key] = found
        return found


def _printable(text: str) -> str:
    """Without what UTF-8 cannot hold, as may occur in the names of files."""
    return text.encode(errors="replace").decode()


def fill_from_bytes(graph: Graph, data: bytes | bytearray | memoryview) -> None:
    """Build a stored graph's operations in an empty graph; raises as `Graph.from_bytes`."""
    message = parse(data)
    fill(graph, message, map(in_message, message.arrays))


def fill(graph: Graph, message: GraphDef, arrays: Iterable[StoredArray]) -> None:
    """Build a message's operations in an empty graph, with the arrays given beside it."""
    reader = _Reader(graph, message, arrays)
    for stored in track(message.operations, "loading"):
        reader.read(stored)
    graph.members.reserve_names(message.scopes)
    reader.complete(message.constrained)
    reader.prevent_feeding(message.unfeedable)


def parse(data: bytes | bytearray | memoryview) -> GraphDef:
    """The message that bytes hold, seen to be whole and of a format that is known here."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidTypeError(
            f"a stored graph is bytes, not {data!r:.80}",
            hint="of a file: pathlib.Path(...).read_bytes()",
        )
    message = GraphDef()
    try:
        message.ParseFromString(bytes(data))
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataLossError(f"these {len(data)} bytes are not a stored graph: {error}") from None
    if not message.version.writer:
        raise DataLossError(f"these {len(data)} bytes are not a stored graph")
    if message.version.min_reader > FORMAT:
        raise InvalidArgumentError(
            f"the graph was stored in format {message.version.writer}, by a newer Flowbook; "
            f"this one reads formats up to {FORMAT}",
            hint="install a newer Flowbook",
        )
    if not message.complete:
        raise DataLossError(f"the stored graph is cut off after {len(data)} bytes")
    return message


class _Reader:
    """Builds operations in their order, so that what one refers to is there already."""

    def __init__(self, graph: Graph, message: GraphDef, arrays: Iterable[StoredArray]) -> None:
        self._graph = graph
        self._values = ValueReader(arrays)
        self._sites = [
            sites.Site(
                sites.StoredLine(
                    s.label,
                    s.line,
                    s.source,
                    s.run_by,
                    s.imported_by,
                    s.called_at,
                    tuple(s.targets),
                ),
                0,
                None,
            )
            for s in message.sites
        ]
        self._operations: list[Operation] = []
        self._retired: set[str] = set()
        graph.seed = self._seed(message)

    def read(self, stored: OperationDef) -> None:
        """Build one operation."""
        site = sites.UNKNOWN_SITE
        try:
            if stored.site:
                site = _at(self._sites, stored.site - 1, "site")
            self._operations.append(self._operation(stored, site))
        except OpError as error:
            raise error.at(f"{stored.type} {stored.name!r}", site) from None

    def _operation(self, stored: OperationDef, site: sites.Site) -> Operation:
        op_def = op_named(stored.type)
        attributes = self._attributes(op_def, stored)
        inputs = self._tensors(stored.inputs)
        found = op_def.infer_outputs(self._graph, inputs, attributes)
        _compare(stored, *found)
        operation = Operation(self._graph, op_def, inputs, attributes, *found, site)
        operation.settled_by = self._tensors(stored.settled_by)
        operation.control_inputs = self._referred(stored.control_inputs)
        operation.colocation = self._referred(stored.colocation)
        if stored.closes:
            if op_def.retag is not Retag.INCREMENT:
                raise DataLossError("it closes a loop, which its type does not")
            operation.closes = _at(self._operations, stored.closes - 1, "operation")
        DeviceSpec.parse(stored.device)
        operation.device = stored.device
        operation.container = stored.container
        if stored.retired:
            if stored.name in self._retired:
                raise DataLossError("two retired operations have this name")
            self._retired.add(stored.name)
        self._graph.members.restore(operation, stored.name, stored.retired)
        return operation

    def _attributes(self, op_def: OpDef[Any], stored: OperationDef) -> Mapping[str, Any]:
        given: dict[str, Any] = {}
        for attribute in stored.attributes:
            if attribute.name in given:
                raise DataLossError(f"attribute {attribute.name!r} is stored twice")
            try:
                given[attribute.name] = self._values.read(attribute.value)
            except OpError as error:
                error.message = f"attribute {attribute.name!r}: {error.message}"
                raise
        # A version before an attribute came to be wrote a graph without it.
        return op_def.complete(given)

    def _tensors(self, refs: Iterable[TensorRef]) -> tuple[Tensor, ...]:
        tensors = []
        for ref in refs:
            source = _at(self._operations, ref.operation, "operation")
            tensors.append(_at(source.outputs, ref.port, f"output of {source.name!r}"))
        return tuple(tensors)

    def _referred(self, positions: Sequence[int]) -> tuple[Operation, ...]:
        return tuple([_at(self._operations, i, "operation") for i in positions])

    def _seed(self, message: GraphDef) -> int | None:
        seed = self._values.read(message.seed)
        if seed is not None and type(seed) is not int:
            raise DataLossError(f"the graph's seed is {seed!r}")
        return seed

    def prevent_feeding(self, refs: Iterable[TensorRef]) -> None:
        """Refuse feeds of tensors, as in the graph that was stored."""
        for tensor in self._tensors(refs):
            self._graph.prevent_feeding(tensor)

    def complete(self, constrained: Sequence[int]) -> None:
        """Make variables known to the graph, by what reads and initialises them; close loops.

        Args:
            constrained: the positions of those that had a constraint.
        """
        had_constraint = {*self._referred(constrained)}
        self._graph.places.note_complete(self._operations)
        consumers: dict[Operation, list[Operation]] = {}
        for operation in self._operations:
            for tensor in operation.inputs:
                if tensor.op.op_def.owns == VARIABLE.name:
                    consumers.setdefault(tensor.op, []).append(operation)
        for handle, found in consumers.items():
            # An interrupted construction may have left a handle alone, which is no variable.
            with suppress(InvalidArgumentError):
                variable = handle.op_def.public.of(handle, found)  # type: ignore[attr-defined]
                if handle in had_constraint:
                    variable.constraint = _lost_constraint(handle.name)


def _lost_constraint(name: str) -> Callable[[Any], NoReturn]:
    """What stands for a constraint that was not stored: new steps of optimizers say so."""

    def lost(_: Any) -> NoReturn:
        raise FailedPreconditionError(
            f"the variable {name!r} has a constraint, which a stored graph does not hold: the "
            "steps that were stored keep to it, new ones need the function",
            hint="variable.constraint = ..., the function, or None for none",
        )

    return lost


def _at(items: Sequence[Any], position: int, what: str) -> Any:
    if position >= len(items):
        raise DataLossError(f"it refers to {what} {position}, and before it are {len(items)}")
    return items[position]


def _compare(stored: OperationDef, found: Sequence[DType], shapes: Sequence[Shape]) -> None:
    """Hold what was stored of the outputs against what inference gives.

    Another version may have known less of a shape, but not more: kernels rely on what is known.
    """
    if len(stored.outputs) != len(found):
        raise InvalidArgumentError(
            f"stored with {len(stored.outputs)} outputs, but its type gives it {len(found)}"
        )
    for port, output in enumerate(stored.outputs):
        dtype, shape = read_dtype(output.dtype), read_shape(output.shape)
        if dtype is not found[port] or not shape.admits(shapes[port]):
            raise InvalidArgumentError(
                f"output {port} was stored as {dtype.name} {shape}, "
                f"but inference gives {found[port].name} {shapes[port]}"
            )
