"""Parts of graphs as GraphDefs of TensorFlow: `save`.

What the fetches need is written by the rules of `flowbook/tensorflow/written`. A constant, or the
handle of a variable, is there in every loop here; there it enters each. The file appears whole, or
not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from google.protobuf import text_format

from flowbook.exec.session.session import Session
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import (
    InvalidTypeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import owner_of
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.storing.files import as_path, written_whole
from flowbook.graph.transfer.refusals import refusal, refuse_types
from flowbook.tensorflow.messages_pb2 import GraphDef
from flowbook.tensorflow.opening import MOST_BYTES
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written import RULES, state
from flowbook.tensorflow.written.types import Rules


def save(
    fetches: Any, path: Any, *, session: Session | None, inputs: Any, as_text: bool
) -> GraphDef:
    """See `flowbook.tensorflow.save`."""
    wanted = [_element(f) for f in _listed(fetches)]
    cut = {t for t in (_element(i) for i in _listed(inputs)) if isinstance(t, Tensor)}
    operations = _needed(wanted, cut, session is not None)
    built = [op for op in operations if not _is_cut(op, cut)]
    _check_writable(built, _rules(session is not None))
    message = _Writing(operations, cut, session).written()
    if message.ByteSize() > MOST_BYTES:
        raise ResourceExhaustedError(
            f"{message.ByteSize()} bytes are more than a GraphDef has",
            hint="without session=... the values of variables stay out of it",
        )
    if path is not None:
        with written_whole(as_path(path)) as file:
            file.write(
                text_format.MessageToBytes(message) if as_text else message.SerializeToString()
            )
    return message


def _listed(given: Any) -> list[Any]:
    if isinstance(given, Graph):
        return [op for op in given.operations if op.type in RULES]
    if isinstance(given, Arithmetic | Operation):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InvalidTypeError(f"a list of tensors and operations is written, not {given!r:.80}")
    return list(given.values()) if isinstance(given, dict) else list(given)


def _element(item: Any) -> Tensor | Operation:
    if isinstance(item, Variable):
        return item.value
    if not isinstance(item, Tensor | Operation):
        raise InvalidTypeError(f"tensors and operations are written, not {item!r:.80}")
    return item


def _needed(wanted: list[Tensor | Operation], cut: set[Tensor], is_frozen: bool) -> list[Operation]:
    """The operations that are written, in the order of their construction."""
    stack = [w.op if isinstance(w, Tensor) else w for w in wanted]
    seen: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if _is_cut(op, cut):
            continue
        taken = op.inputs[1:] if is_frozen and op.type in state.FROZEN else op.inputs
        stack.extend(t.op for t in taken)
        stack.extend(op.control_inputs)
        if op.closed_by is not None:
            stack.append(op.closed_by)
        if op.type == "Variable" and not is_frozen:
            stack.append(Variable.of(op).initializer)
    return sorted(seen, key=lambda op: op.id)


def _is_cut(op: Operation, cut: set[Tensor]) -> bool:
    """Whether all that an operation gives is fed."""
    return bool(op.outputs) and all(t in cut for t in op.outputs)


def _rules(is_frozen: bool) -> Rules:
    """The rules: where variables are constants, nothing but a read of them is left."""
    if not is_frozen:
        return RULES
    return {type: rule for type, rule in RULES.items() if type not in state.RULES} | state.FROZEN


def _check_writable(operations: list[Operation], rules: Rules) -> None:
    """Refuse what has no rule, all of it at once."""
    missing = Counter(op.type for op in operations if op.type not in rules)
    if len(missing) > 1:
        del missing["Variable"]  # What writes to it says more.
    refuse_types(missing, "for TensorFlow")


class _Writing:
    """Writes one GraphDef."""

    def __init__(
        self, operations: list[Operation], cut: set[Tensor], session: Session | None
    ) -> None:
        self._operations, self._cut, self._session = operations, cut, session
        self._writer = Writer()
        self._rules = _rules(session is not None)

    def written(self) -> GraphDef:
        """The GraphDef."""
        w = self._writer
        w.reserve(self._operations)
        if self._session is not None:
            self._freeze(self._session)
        problems: list[tuple[Operation, UnimplementedError]] = []
        for op in self._operations:
            try:
                self._write(op)
            except UnimplementedError as error:
                problems.append((op, error))
                w.names.update((t, w.nodes[op]) for t in op.outputs)
        if problems:
            raise refusal(problems, "for TensorFlow")
        initializers = [
            f"^{w.nodes[op]}"
            for op in self._operations
            if op.type == "Assign" and op.attributes["is_initializer"]
        ]
        if initializers:
            w.graph.node.add(name=w.fresh("init"), op="NoOp", input=initializers)
        return w.graph

    def _write(self, op: Operation) -> None:
        w = self._writer
        if _is_cut(op, self._cut):
            for tensor in op.outputs:
                label = w.nodes[op] if not tensor.index else w.fresh(f"{op.name}_{tensor.index}")
                w.placeholder(label, tensor)
            return
        inputs = list(op.inputs)
        if self._session is not None and op.type in state.FROZEN:
            # The value is there anyhow, wherever the handle has gone.
            inputs[0] = owner_of(inputs[0]).outputs[0]
        found = self._rules[op.type](w, op, *w.begin(op, inputs))
        listed = [found] if isinstance(found, str) else found
        w.names.update(zip(op.outputs, listed, strict=True))

    def _freeze(self, session: Session) -> None:
        """Have constants stand for variables."""
        reads = [op for op in self._operations if op.type in state.FROZEN]
        handles = list(dict.fromkeys(owner_of(op.inputs[0]) for op in reads))
        variables = [Variable.of(handle) for handle in handles]
        values = session.run(variables) if variables else []
        for handle, value in zip(handles, values, strict=True):
            self._writer.names[handle.outputs[0]] = self._writer.stored(handle.name, value)
