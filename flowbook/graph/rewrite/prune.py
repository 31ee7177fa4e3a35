"""What a run needs: the transitive closure of its fetches, cut at its feeds (white paper, 4.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flowbook.graph.definition.op_def import Effects
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def prune(
    fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor]
) -> Subgraph:
    """The subgraph that computes `fetches` and runs `targets`, given `feeds`.

    Args:
        fetches: tensors to return.
        targets: operations to run.
        feeds: tensors whose values are given. A variable's handle stands for every read of it.

    Raises:
        InvalidArgumentError: if a placeholder is needed and not fed, or what is fed was read when
            something needed was built.
    """
    fed = set(feeds)
    fed_variables = {t for t in feeds if t.dtype is resource}
    operations = closure(fetches, targets, fed, fed_variables)
    values: dict[Tensor, int] = {tensor: i for i, tensor in enumerate(feeds)}
    node_of: dict[Operation, Node] = {}
    graph = Subgraph(operations=operations, feeds=list(feeds), fetches=[], targets=[], nodes=[])
    producer, nodes, constants = graph.producer, graph.nodes, graph.constants
    count = len(feeds)
    for op in operations:
        op_def, attributes = op.op_def, op.attributes
        if op_def.type == "Placeholder":
            if op.outputs[0] in fed:
                continue  # A target that the feed stands for.
            raise _unfed(op, operations, fetches, targets)
        if op.settled_by and not fed.isdisjoint(op.settled_by):
            raise _fed_too_late(op, fed)
        outputs = []
        for tensor in op.outputs:
            # A fed output keeps a number of its own, which nothing refers to.
            if tensor not in fed or tensor in fed_variables:
                values[tensor] = count
            outputs.append(count)
            count += 1
        if op_def.type == "Const" and not op.control_inputs:
            constants[outputs[0]] = attributes["value"]
            continue
        inputs = op.inputs
        if fed_variables and op_def.reads_as is not None and inputs[0] in fed_variables:
            op_def = op_def.reads_as
            attributes = {
                name: attributes.get(name, default) for name, default in op_def.attributes.items()
            }
            numbers = (feeds.index(inputs[0]), *[values[t] for t in inputs[1:]])
        else:
            numbers = tuple([values[t] for t in inputs])
        after: tuple[Node, ...] = ()
        if op.control_inputs:
            after = tuple([node_of[c] for c in op.control_inputs if c in node_of])
        node = Node(op, op_def, attributes, numbers, tuple(outputs), after)
        node_of[op] = node
        nodes.append(node)
        for value in outputs:
            producer[value] = node
    graph.fetches = [values[t] for t in fetches]
    graph.targets = [node_of[op] for op in targets if op in node_of]
    return graph


def closure(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: set[Tensor],
    fed_variables: set[Tensor],
) -> list[Operation]:
    """All operations needed, in the order of their construction, which is topological.

    Args:
        fetches: tensors to return.
        targets: operations to run.
        fed: tensors whose values are given.
        fed_variables: those of them that are variables' handles.
    """
    stack = [t.op for t in fetches if t not in fed]
    stack.extend(targets)
    seen: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for tensor in op.inputs:
            if tensor not in fed:
                if tensor.op not in seen:
                    stack.append(tensor.op)
            elif tensor in fed_variables and op.op_def.reads_as is None:
                stack.append(tensor.op)
        for control in op.control_inputs:
            if control not in seen and not is_replaced(control, fed):
                stack.append(control)
    return sorted(seen, key=lambda op: op.id)


def is_replaced(op: Operation, fed: Collection[Tensor]) -> bool:
    """Whether feeds stand for all that the operation does, so that nothing waits for it.

    They cannot stand for a write, or for what happens outside.
    """
    if op.op_def.effects in (Effects.WRITES, Effects.IO):
        return False
    return bool(op.outputs) and all(t in fed for t in op.outputs)


def _fed_too_late(op: Operation, fed: set[Tensor]) -> InvalidArgumentError:
    tensor = next(t for t in op.settled_by if t in fed)
    return InvalidArgumentError(
        f"{tensor.name!r} is fed, but its value was read when this was built, and is fixed in it",
        op,
        hint="build it anew for each such value; attributes, as axes are, cannot be fed",
    )


def _unfed(
    op: Operation,
    operations: Sequence[Operation],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
) -> InvalidArgumentError:
    names = [t.name for t in fetches] + [o.name for o in targets]
    needed = ", ".join(repr(n) for n in names[:3]) + (", ..." if len(names) > 3 else "")
    tensor = op.outputs[0]
    article = "an" if tensor.dtype.name.startswith("i") else "a"
    return InvalidArgumentError(
        f"it must be fed with {article} {tensor.dtype.name} value of shape {tensor.shape}: "
        f"the fetch of {needed} needs it",
        op,
        hint=f"sess.run(..., {{{tensor.name!r}: value}})",
    )
