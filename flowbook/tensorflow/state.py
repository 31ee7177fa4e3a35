"""What goes with a graph: how its variables are initialised, read and saved; who fills queues."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from flowbook.graph.model.errors import DataLossError
from flowbook.tensorflow.elements import to_array
from flowbook.tensorflow.messages_pb2 import DataType, MetaGraphDef, QueueRunnerDef, VariableDef
from flowbook.tensorflow.nodes import ASSIGNMENTS, VARIABLES, Nodes, Source

_FLOATS = {
    DataType.DT_HALF, DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE,
    DataType.DT_COMPLEX64, DataType.DT_COMPLEX128,
}  # fmt: skip
_READS = {"VarHandleOp": "ReadVariableOp"}


@dataclass
class State:
    """A variable, as nodes tell of it.

    Attributes:
        initializer: the node that initialises it; None if there is none.
        initial_value: what it is initialised with.
        read: the node that reads it first; None if none does without waiting for something.
        trainable: whether optimizers update it by default.
        saved_as: its name in checkpoints, and of a part of a partitioned variable the place, as in
            "weights 10 4 0,5:0,4"; "" if the graph has a saver, which passes it over, and nothing
            else gives it a value: what was only looked at when a saved model was made.
    """

    initializer: str | None = None
    initial_value: Source | None = None
    read: str | None = None
    trainable: bool = True
    saved_as: str = ""
    before: list[str] = field(default_factory=list)


def states(message: MetaGraphDef, nodes: Nodes, paths: Container[str]) -> dict[str, State]:
    """What is known of each variable, by its node's name.

    Args:
        message: the graph and what goes with it.
        nodes: its nodes.
        paths: those that hold the path of a file; a variable of one is not saved.
    """
    found = {name: State() for name, node in nodes.protos.items() if node.op in VARIABLES}
    known = _collected(message)
    trainable = _collected(message, "trainable_variables")
    # Without collections every variable of numbers that gradients are of may be trained.
    has_collections = "variables" in message.collection_def or bool(known)
    for name, state in found.items():
        node = nodes.protos[name]
        is_float = node.attr["dtype"].type in _FLOATS
        state.trainable = name in trainable if has_collections else is_float
        state.saved_as = name
        definition = known.get(name)
        _initialise(state, name, nodes, definition.initializer_name if definition else "")
        reading = _READS.get(node.op, "Identity")
        reads = (c for c in nodes.consumers[name] if nodes.protos[c].op == reading)
        state.read = next((r for r in reads if not nodes.taken[r].waited), None)
        slices = definition.save_slice_info_def if definition else None
        if slices is not None and slices.full_name:
            pairs = zip(slices.var_offset, slices.var_shape, strict=False)
            place = ":".join(f"{start},{length}" for start, length in pairs)
            state.saved_as = f"{slices.full_name} {' '.join(map(str, slices.full_shape))} {place}"
    restored = dict(_restored(nodes))
    for name, state in found.items():
        is_passed_over = restored and state.initializer is None
        is_path = state.initial_value is not None and state.initial_value.node in paths
        state.saved_as = restored.get(name, "" if is_passed_over or is_path else state.saved_as)
    return found


def _initialise(state: State, name: str, nodes: Nodes, given: str) -> None:
    """Find the node that initialises a variable, and what with."""
    wanted = given.partition(":")[0] or f"{name}/Assign"
    node = nodes.protos.get(wanted)
    if node is None or node.op not in ASSIGNMENTS or len(nodes.taken[wanted].values) != 2:
        return
    target, value = nodes.taken[wanted].values
    if target.node == name:
        state.initializer, state.initial_value = wanted, value
        state.before = [value.node, *nodes.taken[wanted].waited]


def _collected(message: MetaGraphDef, *names: str) -> dict[str, VariableDef]:
    """What collections say of variables, by the names of their nodes."""
    found = {}
    for key in names or ("variables", "local_variables", "trainable_variables"):
        if key not in message.collection_def:  # To look it up would put it there.
            continue
        for data in message.collection_def[key].bytes_list.value:
            try:
                definition = VariableDef.FromString(data)
            except DecodeError:
                raise DataLossError(f"the collection {key!r} holds what is no variable") from None
            found[definition.variable_name.partition(":")[0]] = definition
    return found


def _restored(nodes: Nodes) -> list[tuple[str, str]]:
    """Which variables the graph's own saver restores, and from what."""
    found = []
    for name, node in nodes.protos.items():
        values = nodes.taken[name].values
        if node.op not in ASSIGNMENTS or len(values) != 2:
            continue
        variable, source = nodes.variable_behind(values[0]), values[1]
        for _ in range(len(nodes.protos)):
            if nodes.protos[source.node].op not in ("Identity", "Reshape"):
                break
            source = nodes.taken[source.node].values[0]
        if variable is None or nodes.protos[source.node].op != "RestoreV2":
            continue
        _, names, places = (_strings(nodes, s) for s in nodes.taken[source.node].values[:3])
        if source.port < min(len(names), len(places)):
            found.append((variable, f"{names[source.port]} {places[source.port]}".rstrip()))
    return found


def runners(message: MetaGraphDef) -> dict[str, list[str]]:
    """The nodes that fill each queue, as often as threads run them, by the queue's node.

    Raises:
        DataLossError: if what should say so does not.
    """
    found: dict[str, list[str]] = {}
    if "queue_runners" in message.collection_def:
        for data in message.collection_def["queue_runners"].bytes_list.value:
            try:
                runner = QueueRunnerDef.FromString(data)
            except DecodeError:
                raise DataLossError("a collection holds what is no queue runner") from None
            found.setdefault(runner.queue_name.partition(":")[0], []).extend(runner.enqueue_op_name)
    return found


def _strings(nodes: Nodes, source: Source) -> list[str]:
    """The strings of a constant."""
    node = nodes.protos[source.node]
    if node.op != "Const" or node.attr["dtype"].type != DataType.DT_STRING:
        return []
    return [s.decode("utf-8", "replace") for s in to_array(node.attr["value"].tensor).ravel()]
