"""Parts of a graph as ONNX models: `save`.

What the fetches need, cut at the inputs, is written by the rules of `flowbook/onnx/written`. What
only constants determine is computed and stored; variables are stored with a session's values. The
file appears whole, checked, or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flowbook.exec.session.session import Session
from flowbook.graph.model.ancestors import taken_by
from flowbook.graph.model.context import frame_of
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import owner_of
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.onnx.elements import NUMBERS
from flowbook.onnx.opening import MOST_BYTES, NEWEST_OPSET
from flowbook.onnx.package import onnx
from flowbook.onnx.writer import Writer
from flowbook.onnx.written import RULES

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
    operations = _needed(list(outputs.values()), set(given.values()))
    _check_writable(operations, set(given.values()))
    model = _Model(given, outputs, operations, session, opset, name).built()
    if path is not None:
        _write_whole(Path(path), model.SerializeToString())
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
    return sorted(seen, key=lambda op: op.id)


def _check_writable(operations: list[Operation], cut: set[Tensor]) -> None:
    """Refuse what has no rule, all of it at once."""
    known = {*RULES, "Const", "NoOp", "PlaceholderWithDefault", "ReadVariable", "VariableGather"}
    missing: Counter[str] = Counter()
    for op in operations:
        if op.type == "Placeholder":
            if op.outputs[0] not in cut:
                raise InvalidArgumentError(
                    f"the fetches need the placeholder {op.name!r}, which is not among the inputs"
                )
        elif op.op_def.is_router:
            frame = frame_of(op.context)
            what = f"the loop {frame.name!r}" if frame is not None else "the branches around it"
            raise UnimplementedError(
                f"loops and branches are not written as ONNX: {what}",
                op,
                hint="cut the graph at what they give, as an input",
            )
        elif op.type not in known and op.op_def.stands_for is None:
            missing[op.type] += 1
    if missing:
        listed = ", ".join(f"{t} ({n})" if n > 1 else t for t, n in sorted(missing.items()))
        raise UnimplementedError(
            f"these operation types cannot be written as ONNX: {listed}",
            hint="cut the graph at inputs behind them, or fetch what comes before",
        )


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
        self._writer = Writer(opset)
        self._names: dict[Tensor, str] = {}

    def built(self) -> Any:
        """The model, checked."""
        w, helper = self._writer, onnx("helper")
        for label in (*self._inputs, *self._outputs):
            w.fresh(label)
        both = self._inputs.keys() & self._outputs.keys()
        if both:
            raise InvalidArgumentError(f"an input and a fetch are both named {min(both)!r}")
        self._names = {tensor: label for label, tensor in self._inputs.items()}
        self._write_variables()
        problems = []
        for op in self._operations:
            try:
                self._write(op)
            except UnimplementedError as error:
                problems.append((op, error))
                self._names.update((t, "") for t in op.outputs if t not in self._names)
        if problems:
            listed = "; ".join(f"{e.message} ({op.type} {op.name!r})" for op, e in problems)
            raise UnimplementedError(f"this cannot be written as ONNX: {listed}", problems[0][0])
        for label, tensor in self._outputs.items():
            w.nodes.append(helper.make_node("Identity", [self._names[tensor]], [label]))
        nodes = _used(w.nodes, set(self._outputs))
        used = {i for node in nodes for i in node.input}
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
            self._names[handle.outputs[0]] = label

    def _write(self, op: Operation) -> None:
        w = self._writer
        if op.op_def.stands_for is not None:
            results = zip(op.outputs, taken_by(op), strict=True)
            self._names.update((t, self._names[result]) for t, result in results)
            return
        outputs = [t for t in op.outputs if t not in self._names]
        if not outputs or op.type in ("NoOp", "Placeholder"):
            return
        w.enter(op)
        known = [w.values.of(t) for t in op.outputs]
        if all(value is not None for value in known):
            for tensor, value in zip(op.outputs, known, strict=True):
                self._keep(tensor, value)
            return
        if op.type == "ReadVariable":
            self._names[op.outputs[0]] = self._names[op.inputs[0]]
            return
        inputs = [self._names[t] for t in op.inputs]
        if "" in inputs:
            self._names.update((t, "") for t in outputs)
            return  # What it needs could not be written, which is an error already.
        rule = RULES["Gather"] if op.type == "VariableGather" else RULES.get(op.type, _passed_on)
        try:
            found = rule(w, op, *inputs)
        except UnimplementedError:
            raise
        except OpError as error:
            raise error.about(op) from None
        for tensor, label in zip(
            op.outputs, found if isinstance(found, list) else [found], strict=True
        ):
            self._names.setdefault(tensor, label)

    def _keep(self, tensor: Tensor, value: Any) -> None:
        if tensor.dtype not in NUMBERS:
            raise UnimplementedError(f"a constant of {tensor.dtype.name}")
        label = self._writer.fresh(tensor.op.name)
        self._writer.stored[label] = value
        self._names.setdefault(tensor, label)


def _passed_on(w: Writer, op: Operation, x: str) -> str:
    found: str = w.node("Identity", [x])
    return found


def _used(nodes: list[Any], wanted: set[str]) -> list[Any]:
    """The nodes that lead to what is wanted."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(i for i in node.input if i)
    return kept[::-1]


def _check(model: Any) -> None:
    try:
        onnx("checker").check_model(model, full_check=True)
    except Exception as error:
        text = " ".join(str(error).split())
        raise UnimplementedError(
            f"ONNX has no operators for what would be written: {text}"
        ) from None


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears only once it is complete."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InvalidArgumentError(f"{str(path)!r} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
