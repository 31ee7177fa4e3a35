"""Parts of a graph as ONNX models: `save`.

What the fetches need, cut at the inputs, is written by the rules of `flowbook/onnx/saving/rules`.
What only constants determine is computed and stored; variables are stored with a session's values.
The file appears whole, checked, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from flowbook.exec.session.session import Session
from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.context import context_of
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import owner_of
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.storing.files import as_path, written_whole
from flowbook.graph.transfer.refusals import refusal, refuse_types
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.package import onnx
from flowbook.onnx.reading.opening import MOST_BYTES, NEWEST_OPSET
from flowbook.onnx.saving.nodes import names_used, used_nodes
from flowbook.onnx.saving.region import ROUTING, Region
from flowbook.onnx.saving.rules.choice import has_rule
from flowbook.onnx.saving.trial import Trial
from flowbook.onnx.saving.writer import Writer

OLDEST_OPSET = 18


def save(
    fetches: Any,
    inputs: Any,
    path: Any = None,
    *,
    session: Session | None = None,
    opset: int = 21,
    name: str = "flowbook",
) -> Any:
    """See `flowbook.onnx.save`."""
    if not OLDEST_OPSET <= opset <= min(NEWEST_OPSET, onnx("defs").onnx_opset_version()):
        raise InvalidArgumentError(
            f"models are written for operator sets {OLDEST_OPSET} to {NEWEST_OPSET}, not {opset}"
        )
    outputs = _named("fetches", fetches)
    given = _named("inputs", inputs)
    for label, tensor in outputs.items():
        if context_of(tensor) is not None and tensor not in given.values():
            raise InvalidArgumentError(
                f"the fetch {label!r} is inside of a branch or a loop: it has no single value",
                hint="fetch what the branch or the loop gives",
            )
    operations = _needed(list(outputs.values()), set(given.values()))
    _check_writable(operations, set(given.values()))
    model = _Model(given, outputs, operations, session, opset, name).built()
    if path is not None:
        _write(as_path(path), model.SerializeToString())
    return model


def _named(what: str, given: Any) -> dict[str, Tensor]:
    """Tensors by the names that they get in the model."""
    if isinstance(given, Arithmetic):
        given = [given]
    if not isinstance(given, Mapping):
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidTypeError(
                f"{what} are tensors, a list of them or a dict by names, not {given!r}"
            )
        pairs = []
        for item in given:
            tensor = _tensor(what, item)
            op = item.op.name if isinstance(item, Variable) else tensor.op.name
            pairs.append((f"{op}:{tensor.index}" if tensor.index else op, tensor))
    else:
        pairs = [(str(k), _tensor(what, v)) for k, v in given.items()]
    doubled = [n for n, count in Counter(n for n, _ in pairs).items() if count > 1]
    if doubled:
        raise InvalidArgumentError(f"two {what} would be named {doubled[0]!r}")
    return dict(pairs)


def _tensor(what: str, item: Any) -> Tensor:
    if isinstance(item, Variable):
        return item.value
    if not isinstance(item, Arithmetic):
        raise InvalidTypeError(f"{what} are tensors, not {item!r}")
    return convert_to_tensor(item)


def _needed(fetches: list[Tensor], cut: set[Tensor]) -> list[Operation]:
    """The operations that fetches need, in the order of their construction."""
    stack = [t.op for t in fetches if t not in cut]
    seen: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in ("ReadVariable", "VariableGather"):
            stack.extend(t.op for t in op.inputs[1:] if t not in cut)
            continue
        stack.extend(t.op for t in taken_by(op) if t not in cut)
        stack.extend(op.control_inputs)
        if op.closed_by is not None:
            stack.append(op.closed_by)
    return sorted(seen, key=lambda op: op.id)


def _check_writable(operations: list[Operation], cut: set[Tensor]) -> None:
    """Refuse what has no rule, all of it at once."""
    known = {*ROUTING, "Const", "NoOp", "PlaceholderWithDefault"}
    known |= {"ReadVariable", "VariableGather"}
    missing: Counter[str] = Counter()
    for op in operations:
        if op.type == "Placeholder":
            if op.outputs[0] not in cut:
                raise InvalidArgumentError(
                    f"the fetches need the placeholder {op.name!r}, which is not among the inputs"
                )
        elif op.type not in known and op.op_def.stands_for is None and not has_rule(op):
            missing[op.type] += 1
    refuse_types(missing, "as ONNX")


class _Model:
    """Builds one ModelProto."""

    def __init__(
        self,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        operations: list[Operation],
        session: Session | None,
        opset: int,
        name: str,
    ) -> None:
        self._inputs, self._outputs = inputs, outputs
        self._operations, self._session = operations, session
        self._name = name
        self._writer = Writer(opset, Trial(list(outputs.values()), list(inputs.values())))
        self._region = Region(self._writer, [None])

    def built(self) -> Any:
        """The model, checked."""
        w, helper = self._writer, onnx("helper")
        for label in (*self._inputs, *self._outputs):
            w.fresh(label)
        both = self._inputs.keys() & self._outputs.keys()
        if both:
            raise InvalidArgumentError(f"an input and a fetch are both named {min(both)!r}")
        region = self._region
        region.names.update((tensor, label) for label, tensor in self._inputs.items())
        self._write_variables()
        found = region.written(list(self._outputs.values()))
        # What could not be written may be what nothing needs, as an array of what a loop collects.
        if not all(found):
            raise refusal(region.problems, "as ONNX")
        given = [
            helper.make_node("Identity", [name], [label])
            for name, label in zip(found, self._outputs, strict=True)
        ]
        nodes = used_nodes([*region.nodes, *given], set(self._outputs))
        used = names_used(nodes)
        size = sum(array.nbytes for label, array in w.stored.items() if label in used)
        if size > MOST_BYTES:
            raise ResourceExhaustedError(
                f"{size} bytes of stored values are more than an ONNX file holds"
            )
        graph = helper.make_graph(
            nodes,
            self._name,
            [self._info(n, t) for n, t in self._inputs.items()],
            [self._info(n, t) for n, t in self._outputs.items()],
            w.tensors(used),
        )
        opsets = [helper.make_opsetid("", w.opset)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="flowbook")
        model.ir_version = helper.find_min_ir_version_for(opsets)
        _check(model)
        return model

    def _info(self, label: str, tensor: Tensor) -> Any:
        if tensor.dtype not in NUMBERS:
            raise UnimplementedError(f"{label!r} is of the dtype {tensor.dtype.name}")
        dims = tensor.shape.dims
        if dims is None:
            raise UnimplementedError(
                f"the rank of {label!r} is not known, and ONNX's inputs and outputs have one",
                hint="give placeholders a shape, such as [None, 3]",
            )
        # Each unknown dimension is one of its own.
        shape = [f"{label}_{i}" if d is None else d for i, d in enumerate(dims)]
        info = onnx("helper").make_tensor_value_info
        return info(label, NUMBERS[tensor.dtype], shape)

    def _write_variables(self) -> None:
        """Store the values that the session has of the variables."""
        reads = [o for o in self._operations if o.type in ("ReadVariable", "VariableGather")]
        handles = list(dict.fromkeys(owner_of(op.inputs[0]) for op in reads))
        if not handles:
            return
        if self._session is None:
            raise InvalidArgumentError(
                f"the fetches read the variable {handles[0].name!r}, "
                "and which values it has is a session's to say",
                hint="save(..., session=sess)",
            )
        variables = [Variable.of(handle) for handle in handles]
        for handle, value in zip(handles, self._session.run(variables), strict=True):
            label = self._writer.fresh(handle.name)
            self._writer.stored[label] = value
            self._region.names[handle.outputs[0]] = label


def _check(model: Any) -> None:
    try:
        onnx("checker").check_model(model, full_check=True)
    except Exception as error:
        text = " ".join(str(error).split())
        raise UnimplementedError(
            f"ONNX has no operators for what would be written: {text}"
        ) from None


def _write(path: str, data: bytes) -> None:
    try:
        with written_whole(path) as file:
            file.write(data)
    except OSError as error:
        raise InvalidArgumentError(f"{path!r} cannot be written: {error.strerror}") from None
