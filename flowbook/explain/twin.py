"""A twin of what a run needs: the same subgraph in a graph of its own, run without any trace.

The twin starts from the values that the session's variables have, and keeps what it writes to
itself. Its random operations draw the same in every twin of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.runner import Runner
from flowbook.exec.plan.pipeline import prepare
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.session.session import Session
from flowbook.exec.signature.feeds import Feed, check_mapping, check_no_duplicates, feedable
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.building.names import name_from
from flowbook.graph.model.context import context_of
from flowbook.graph.model.dtypes import DType, as_dtype, resource, variant
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE, Access
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import placeholder
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.transfer.copying import copy_operations, graph_for_copies

Changed = Callable[[Tensor, Tensor], Tensor]

EXECUTORS = ("reference", "compiled")


@dataclass(frozen=True)
class Source:
    """What twins are made of: a pruned subgraph, and the values that it starts from.

    Attributes:
        operations: all that the run needs, in the order of construction.
        targets: operations to run for their effects.
        feeds: the fed tensors and their values.
        variables: the values of variables, by their handles' operations.
    """

    operations: list[Operation]
    targets: list[Operation]
    feeds: dict[Tensor, Any]
    variables: dict[Operation, Any]

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor that a run of it has one value for; none inside of a loop or a branch."""
        given = [t for op in self.operations for t in op.outputs if context_of(t) is None]
        return [t for t in (*self.feeds, *given) if t.dtype not in (resource, variant)]

    def with_draws(self, values: Mapping[Tensor, Any]) -> Source:
        """The same with what its random operations drew in a run, instead of them."""
        random = [op for op in self.operations if op.op_def.access is Access.DRAW]
        random = [op for op in random if op.context is None]
        drawn = {tensor: values[tensor] for op in random for tensor in op.outputs}
        return Source(
            [op for op in self.operations if op not in random],
            [op for op in self.targets if op not in random],
            self.feeds | drawn,
            self.variables,
        )


def source_of(sess: Session, fetches: Any, feeds: Mapping[Any, Any] | None) -> Source:
    """What a run of the session would compute from; its variables are initialised, not changed.

    Raises:
        OpError: as `Session.run` does.
    """
    check_mapping(feeds)
    graph = sess.graph
    flat = flatten(graph, fetches)
    specs = [Feed(feedable(graph, key)) for key in feeds or ()]
    check_no_duplicates([spec.tensor for spec in specs])
    values = {s.tensor: s.value(v) for s, v in zip(specs, (feeds or {}).values(), strict=True)}
    operations = prune(flat.tensors, flat.targets, list(values)).operations
    touched = (touched_by(op) for op in operations)
    handles = {
        owner
        for owner in touched
        if owner is not None
        and owner.op_def.owns == VARIABLE.name
        and owner.outputs[0] not in values
    }
    known = [op for op in sorted(handles, key=lambda op: op.id) if _has_value(sess, op, operations)]
    found = sess.run([op.outputs[0] for op in known], values)
    return Source(operations, flat.targets, values, dict(zip(known, found, strict=True)))


def _has_value(sess: Session, handle: Operation, operations: Sequence[Operation]) -> bool:
    """Whether the run starts from the variable's value, and does not only overwrite it."""
    uses = [op for op in operations if touched_by(op) is handle]
    return any(op.op_def.needs_value for op in uses)


class Twin:
    """A subgraph's copy, ready to run.

    Args:
        source: what it is made of.
        dtype: the dtype of all its floating-point tensors; None keeps each its own.
        executor: "reference", kernel by kernel, or "compiled", as generated code.
        given: what an operation's copy takes instead of its inputs.
        made: what consumers take instead of an output.
    """

    def __init__(
        self,
        source: Source,
        dtype: DType | None = None,
        executor: str = "reference",
        given: Callable[[Operation, list[Tensor]], list[Tensor]] | None = None,
        made: Changed | None = None,
    ) -> None:
        if executor not in EXECUTORS:
            raise InvalidArgumentError(f"executor is one of {EXECUTORS}, not {executor!r}")
        self.source = source
        self.dtype = dtype
        self._executor = executor
        handles = [t.op for t in source.feeds if t.dtype is resource]
        graph = graph_for_copies([*handles, *source.operations])
        tensors: dict[Tensor, Tensor] = {}
        with graph.as_default():
            fed = [self._fed(graph, t, v, tensors) for t, v in source.feeds.items()]
            self._copies = copy_operations(
                [op for op in source.operations if op not in handles],
                graph,
                tensors,
                attributes=self._attributes,
                given=given or (lambda op, inputs: inputs),
                made=lambda original, copy: (made or _as_it_is)(original, self._widened(copy)),
            )
            fetches = [tensors[t] for t in source.tensors]
        self._feeds = [self._value(v) for v in source.feeds.values()]
        device = local_devices()[0]
        self._stores = SessionStores(entropy=0)
        targets = [self._copies[op] for op in source.targets if op in self._copies]
        signature = Signature(tuple(fetches), tuple(targets), tuple(fed))
        self._runner = Runner(prepare(signature, [device]).program, device, Engine(self._stores))

    def run(self) -> dict[Tensor, Any]:
        """Run it from the source's values; the value of every tensor, by the original tensor."""
        for handle, value in self.source.variables.items():
            copy = self._copies[handle]
            assert copy.key is not None
            definition = Definition("variable", copy.attributes)
            self._stores.of(copy.key, definition).assign(self._value(value))
        run = self._runner.run_reference
        if self._executor == "compiled":
            run = self._runner.run_regions
        return dict(zip(self.source.tensors, run(self._feeds), strict=True))

    def _fed(
        self, graph: Graph, tensor: Tensor, value: Any, tensors: dict[Tensor, Tensor]
    ) -> Tensor:
        """What is fed in the twin."""
        if tensor.dtype is resource:
            copy_operations([tensor.op], graph, tensors, attributes=self._attributes)
            return tensors[tensor]
        name = f"{name_from(tensor.name)}_fed"
        made = placeholder(self._wide(tensor.dtype), np.shape(value), name=name)
        tensors[tensor] = made
        return made

    def _wide(self, dtype: DType) -> DType:
        return self.dtype if self.dtype is not None and dtype.is_floating else dtype

    def _value(self, value: Any) -> Any:
        array = np.asarray(value)
        if self.dtype is None or not as_dtype(array.dtype).is_floating:
            return array
        return array.astype(self.dtype.numpy)

    def _attributes(self, operation: Operation) -> dict[str, Any]:
        """An operation's attributes in the twin's dtype; draws are the same in every dtype."""
        found = dict(operation.attributes)
        if operation.op_def.access is Access.DRAW:
            if "graph_seed" in found and found["graph_seed"] is None:
                found["graph_seed"] = 0
            return found
        for name, value in found.items():
            if isinstance(value, DType):
                found[name] = self._wide(value)
            elif isinstance(value, np.ndarray):
                changed = self._value(value)
                if changed is not value:
                    changed.flags.writeable = False
                found[name] = changed
            elif isinstance(value, tuple) and value and all(isinstance(v, DType) for v in value):
                found[name] = tuple([self._wide(v) for v in value])
        return found

    def _widened(self, tensor: Tensor) -> Tensor:
        """An output in the twin's dtype, where its operation has only its own."""
        wanted = self._wide(tensor.dtype)
        return tensor if tensor.dtype is wanted else cast(tensor, wanted)


def _as_it_is(original: Tensor, copy: Tensor) -> Tensor:
    return copy
