"""What a run needs: the transitive closure of its fetches, cut at its feeds (white paper, 4.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter

from flowbook.graph.model.context import Context, frame_of, runs_in
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import called, tensor_called
from flowbook.graph.model.resource_key import touched_by
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access
from flowbook.graph.redefinition.stale_runs import stale_message
from flowbook.graph.rewrite.layered import Table
from flowbook.graph.rewrite.subgraph import Node, Subgraph

_BY_ID = attrgetter("id")


def prune(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    base: Subgraph | None = None,
) -> Subgraph:
    """The subgraph that computes `fetches` and runs `targets`, given `feeds`.

    Args:
        fetches: tensors to return.
        targets: operations to run.
        feeds: tensors whose values are given. A variable's handle stands for every read of it.
        base: what to begin with: a subgraph that `growth.grows` into this one.

    Raises:
        InvalidArgumentError: if a placeholder is needed and not fed, or what is fed was read when
            something needed was built, or nobody can say which resource a handle means.
    """
    fed = set(feeds)
    fed_variables = {t for t in feeds if t.dtype is resource}
    _check_frames(fetches, targets, feeds)
    operations = closure(fetches, targets, fed, fed_variables, base)
    if base is None:
        values: Table[Tensor, int] = {tensor: place for place, tensor in enumerate(feeds)}
        graph = Subgraph([], list(feeds), [], [], [], count=len(feeds), values=values)
    else:
        graph = base.extended()
    graph.operations += operations
    producer, nodes, constants, values = graph.producer, graph.nodes, graph.constants, graph.values
    node_of, count = graph.node_of, graph.count
    value_of = values.__getitem__ if base is None else graph.value_of
    closing: list[Node] = []
    for op in operations:
        op_def, attributes = op.op_def, op.attributes
        if op.device or op.colocation:
            graph.asking.append(op)
        if op_def.must_be_fed:
            if op.outputs[0] in fed:
                continue  # A target that the feed stands for.
            raise _unfed(op, operations, fetches, targets)
        # What a constant was told by is the shape of what is fed, which stays.
        if op.settled_by and not op_def.is_constant and not fed.isdisjoint(op.settled_by):
            raise _fed_too_late(op, fed)
        if op_def.stands_for is not None:
            for tensor, result in zip(op.outputs, op_def.stands_for(op).results, strict=True):
                if tensor not in fed and result in values:
                    values[tensor] = value_of(result)
            continue
        outputs = []
        for tensor in op.outputs:
            # A fed output keeps a number of its own, which nothing refers to.
            if tensor not in fed or tensor in fed_variables:
                values[tensor] = count
            outputs.append(count)
            count += 1
        if op_def.is_constant and not op.control_inputs:
            constants[outputs[0]] = attributes["value"]
            node_of[op] = None
            continue
        inputs = tuple(map(value_of, op.inputs))
        after: tuple[Node, ...] = ()
        if op.control_inputs:
            after = tuple([n for c in op.control_inputs for n in graph.nodes_for(c)])
        node = Node(op, op_def, attributes, inputs, tuple(outputs), after)
        if not op_def.is_pure:
            graph.stateful.append(op)
            graph.touching.append(node)
            _find_owner(graph, node, fed_variables)
        node_of[op] = node
        nodes.append(node)
        if op_def.is_router:
            graph.is_routed = True
            if op.closes is not None:
                closing.append(node)
        for value in outputs:
            producer[value] = node
    for node in closing:
        assert node.operation.closes is not None
        node.closes = node_of[node.operation.closes]
    graph.count = count
    graph.fetches = [value_of(t) for t in fetches]
    if targets:
        graph.targets = list(dict.fromkeys(n for op in targets for n in graph.nodes_for(op)))
    return graph


def _find_owner(graph: Subgraph, node: Node, fed_variables: Collection[Tensor]) -> None:
    """Find whose resource a node owns or touches, and where it gets the handle from.

    What reads a variable that is fed takes the feed instead.
    """
    op, op_def = node.operation, node.op_def
    if op_def.owns is not None:
        node.owner = op
        return
    owner = touched_by(op)
    if owner is None:
        return
    assert op_def.touches is not None
    place, handle = op_def.touches.argument, owner.outputs[0]
    assert place is not None
    passed_by = op.inputs[place].op
    if op_def.reads_as is not None and handle in fed_variables:
        node.op_def = op_def.reads_as
        node.attributes = {
            name: op.attributes.get(name, default)
            for name, default in node.op_def.attributes.items()
        }
        given = graph.feeds.index(handle)
    else:
        node.owner = owner
        given = graph.value_of(handle)
    is_handed_on = passed_by is not owner and not passed_by.op_def.is_router
    if is_handed_on:
        # Its handle comes from the owner, past what only hands it on; it waits for that.
        node.after += graph.nodes_for(passed_by)
    if is_handed_on or node.owner is None:
        node.inputs = (*node.inputs[:place], given, *node.inputs[place + 1 :])


def closure(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: set[Tensor],
    fed_variables: set[Tensor],
    base: Subgraph | None = None,
) -> list[Operation]:
    """All operations needed, in the order of their construction, which is topological.

    Args:
        fetches: tensors to return.
        targets: operations to run.
        fed: tensors whose values are given.
        fed_variables: those of them that are variables' handles.
        base: its operations are left out, but for those whose values are gone.
    """
    seen: set[Operation] = set()
    found: list[Operation] = []
    calls: set[Operation] = set()
    stack: list[Operation] = list(targets)

    def reach(tensor: Tensor) -> None:
        while tensor not in fed and tensor.op.op_def.stands_for is not None:
            calls.add(tensor.op)
            tensor = tensor.op.op_def.stands_for(tensor.op).results[tensor.index]
        if tensor not in fed:
            stack.append(tensor.op)

    for tensor in fetches:
        reach(tensor)
    while stack:
        op = stack.pop()
        if op in seen or (base is not None and op in base):
            continue
        seen.add(op)
        op_def = op.op_def
        taken: Sequence[Tensor] = op.inputs
        if op_def.stands_for is not None:
            calls.add(op)
            taken = op_def.stands_for(op).results
        else:
            found.append(op)
        for tensor in taken:
            source = tensor.op
            if tensor in fed:
                if tensor in fed_variables and op_def.reads_as is None:
                    stack.append(source)
            elif source.op_def.stands_for is not None:
                reach(tensor)
            elif source not in seen:
                stack.append(source)
        for control in op.control_inputs:
            if control not in seen and not is_replaced(control, fed):
                stack.append(control)
        if op.closed_by is not None and op.closed_by not in seen:
            stack.append(op.closed_by)
    found += calls
    found.sort(key=_BY_ID)
    return found


def _check_frames(
    fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor]
) -> None:
    """Refuse what lies inside of a loop, where there is no single value of it."""
    # Hardly anything is in a loop or a branch, and its name is made up when it is asked for.
    for tensor in fetches:
        if tensor.op.context is not None:
            _check_frame("fetched", tensor.name, tensor.op, tensor.op.context)
    for op in targets:
        if op.context is not None:
            _check_frame("run", op.name, op, runs_in(op))
    for tensor in feeds:
        if tensor.op.context is not None:
            _check_frame("fed", tensor.name, tensor.op, tensor.op.context)


def _check_frame(what: str, name: str, operation: Operation, context: Context | None) -> None:
    frame = frame_of(context)
    if frame is not None:
        raise InvalidArgumentError(
            f"{name!r} is inside of {frame.described}, where it has a value for each "
            f"{frame.repeats}, and cannot be {what}",
            operation,
            hint="use what the function's calls give, or what is in one, by the call's name"
            if frame.is_function
            else "make it one of the loop's variables, and take what the loop returns"
            if what == "fetched"
            else "a loop is fed by what enters it"
            if what == "fed"
            else "run what the loop returns",
        )


def is_replaced(op: Operation, fed: Collection[Tensor]) -> bool:
    """Whether feeds stand for all that the operation does, so that nothing waits for it.

    They cannot stand for a write, or for what happens outside.
    """
    if op.op_def.access in (Access.WRITE, Access.OUTSIDE):
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
    names = [tensor_called(t) for t in fetches] + [called(o) for o in targets]
    needed = ", ".join(repr(n) for n in names[:3]) + (", ..." if len(names) > 3 else "")
    tensor = op.outputs[0]
    article = "an" if tensor.dtype.name.startswith("i") else "a"
    rebuilding = stale_message(operations) if op.retired else None
    return InvalidArgumentError(
        f"it must be fed with {article} {tensor.dtype.name} value of shape {tensor.shape}: "
        f"the fetch of {needed} needs it",
        op,
        hint=rebuilding or f"sess.run(..., {{{tensor.name!r}: value}})",
    )
