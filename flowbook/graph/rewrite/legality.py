"""What every pass must keep: the checker that runs between passes in the tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import NoReturn

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InternalError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import Access, Order
from flowbook.graph.ops.basis.constants import constant, placeholder
from flowbook.graph.rewrite.prune import is_replaced
from flowbook.graph.rewrite.subgraph import Node, Subgraph

# A node, and one that takes a value of it or waits for it.
_Edge = tuple[Node, Node]


class Checker:
    """Holds a subgraph against what a run asks for, and against what it was at the last check.

    It must run as it stands, from its first node to its last, and for all that is asked for. A
    node must compute what its operation declares, in dtype and shape, from what it is given now.
    What came before a node stays before it, by itself or by what stands for it. What touches a
    resource is neither left out nor done twice; equal reads may become one.

    Args:
        graph: the subgraph, as `prune` made it.
        fetches: the tensors that the run returns, of whose dtypes and shapes the values must be.
        targets: the operations that it runs.
    """

    def __init__(
        self, graph: Subgraph, fetches: Sequence[Tensor], targets: Sequence[Operation]
    ) -> None:
        self._graph = graph
        self._fetches = fetches
        self._targets = targets
        self._edges = list(_asked_edges(graph))

    def check(self) -> None:
        """Check the subgraph; the next check expects what it is now.

        Raises:
            InternalError: naming the first node that breaks a rule, and its surroundings.
        """
        _check_order(self._graph)
        _check_loops(self._graph)
        _check_asked(self._graph, self._fetches, self._targets)
        _check_touching(self._graph)
        _check_edges(self._graph, self._edges)
        _check_types(self._graph, self._fetches)
        self._edges = list(_edges(self._graph))


def _check_order(graph: Subgraph) -> None:
    """Whatever a node takes or waits for comes before it, and every value is given once."""
    known = {*range(len(graph.feeds)), *graph.constants}
    earlier: set[Node] = set()
    run: set[Operation] = set()
    for node in graph.nodes:
        missing = [value for value in node.inputs if value not in known]
        if missing:
            _broken(graph, node, f"takes the values {missing}, which nothing before it gives")
        if not earlier.issuperset((*node.after, *node.behind)):
            _broken(graph, node, "waits for a node that does not come before it")
        if not known.isdisjoint(node.outputs):
            _broken(graph, node, "gives a value that is given already")
        if node.operation not in graph.operations:
            _broken(graph, node, "comes from an operation that the run does not need")
        if node.operation in run:
            _broken(graph, node, "runs what another node runs")
        arity = None if any(a.is_list for a in node.op_def.inputs) else len(node.op_def.inputs)
        if arity not in (None, len(node.inputs)):
            _broken(graph, node, f"has {len(node.inputs)} inputs instead of {arity}")
        known.update(node.outputs)
        earlier.add(node)
        run.add(node.operation)
    if not known.issuperset(graph.fetches):
        raise InternalError(f"the fetched values {graph.fetches} are not all given")
    if not earlier.issuperset(graph.targets):
        raise InternalError(f"targets are missing: {set(graph.targets) - earlier}")


def _check_loops(graph: Subgraph) -> None:
    """What closes a loop closes its own, which is there; and what is to be closed is."""
    there = set(graph.nodes)
    for node in graph.nodes:
        closes, closed_by = node.operation.closes, node.operation.closed_by
        if node.closes is not (None if closes is None else graph.node_of[closes]):
            _broken(graph, node, f"closes {node.closes} instead of {closes}")
        if node.closes is not None and node.closes not in there:
            _broken(graph, node, "closes what is not there")
        if closed_by is not None and graph.node_of[closed_by] not in there:
            _broken(graph, node, f"is not closed by {closed_by}")


def _check_asked(graph: Subgraph, fetches: Sequence[Tensor], targets: Sequence[Operation]) -> None:
    """Every fetched value and every target is run for, and so is what operations wait for."""
    if graph.fetches != [graph.value_of(tensor) for tensor in fetches]:
        raise InternalError(f"the values {graph.fetches} are not those of {fetches}")
    asked = {node for operation in targets for node in graph.nodes_for(operation)}
    if not asked.issubset(graph.targets):
        raise InternalError(f"not run: {asked.difference(graph.targets)}")
    waited = {control for operation in graph.operations for control in operation.control_inputs}
    for operation in waited.union(targets):
        is_there = operation in graph.node_of or operation.op_def.stands_for is not None
        if not is_there and not is_replaced(operation, graph.feeds):
            raise InternalError(f"nothing was made of {operation}")


def _check_touching(graph: Subgraph) -> None:
    """What owns or touches something still does, or is a read that an equal one stands for."""
    there = set(graph.nodes)
    for operation in graph.stateful:
        made = graph.node_of[operation]
        assert made is not None
        if made.owner is None and operation.op_def.reads_as is not None:
            continue  # It takes what is fed.
        standing = graph.nodes_for(operation)
        if len(standing) != 1 or standing[0] not in there:
            _broken(graph, made, "touches something, and is gone")
        [node] = standing
        if node.op_def is not operation.op_def or node.key != made.key:
            _broken(graph, node, f"does not do what {operation} does")
        is_read = made.op_def.access is Access.READ and made.order is Order.READS_FIRST
        if node is not made and not is_read:
            _broken(graph, node, f"does only once what {operation} does again")


def _check_edges(graph: Subgraph, edges: Sequence[_Edge]) -> None:
    """What came before a node does so still, by itself or by what stands for it."""
    bits = {node: 1 << place for place, node in enumerate(graph.nodes)}
    preceding = _preceding(graph, bits)
    for before, after in edges:
        earlier, later = graph.nodes_for(before.operation), graph.nodes_for(after.operation)
        if earlier and not later:
            _broken(graph, after, f"was after {before}, and nothing stands for it")
        for node in preceding.keys() & later:
            for other in earlier:
                if not preceding[node] & bits.get(other, 0):
                    _broken(graph, node, f"does not wait for {other} any more")


def _preceding(graph: Subgraph, bits: dict[Node, int]) -> dict[Node, int]:
    """Each node and those that run before it, as bits; of a Merge, before any of its inputs."""
    preceding: dict[Node, int] = {}
    surely: dict[Node, int] = {}
    given: dict[int, int] = {}
    for node in graph.nodes:
        taken = [given.get(value, 0) for value in node.inputs] or [0]
        waited = reduce(or_, [surely[n] for n in (*node.after, *node.behind)], bits[node])
        preceding[node] = waited | reduce(or_, taken)
        # A Merge runs after one of those that it takes from.
        surely[node] = waited | reduce(and_ if node.op_def.fires_on_any else or_, taken)
        given.update(dict.fromkeys(node.outputs, surely[node]))
    return preceding


def _asked_edges(graph: Subgraph) -> Iterator[_Edge]:
    """The edges that the operations of new nodes have, between the nodes that were made of them."""
    for node in graph.new:
        for tensor in node.operation.inputs:
            value = graph.value_of(tensor)
            # Of a fed variable the handle is there for writes alone: reads take the feed.
            if tensor not in graph.feeds and value in graph.producer:
                yield graph.producer[value], node
        for control in node.operation.control_inputs:
            for other in graph.nodes_for(control):
                yield other, node


def _edges(graph: Subgraph) -> Iterator[_Edge]:
    """The edges that the nodes have now."""
    for node in graph.nodes:
        for other in (*graph.producers(node), *node.after, *node.behind):
            yield other, node


def _check_types(graph: Subgraph, fetches: Sequence[Tensor]) -> None:
    """The dtypes and shapes of values are those that the operations were built with."""
    standing = Graph()
    given = _given(graph, standing)
    for node in graph.nodes:
        inputs = [given[value] for value in node.inputs]
        if node.op_def is node.operation.op_def:
            for value, found, built in zip(node.inputs, inputs, node.operation.inputs, strict=True):
                if not _fits(found, built):
                    _broken(graph, node, f"was built with {built!r}; value {value} is {found!r}")
        try:
            dtypes, shapes = node.op_def.infer_outputs(standing, inputs, node.attributes)
        except OpError as error:
            _broken(graph, node, f"cannot take {inputs}: {error.message}")
        outputs = node.operation.outputs
        declared = [tensor.dtype for tensor in outputs]
        if list(dtypes) != declared or not all(
            tensor.shape.is_compatible_with(shape)
            for tensor, shape in zip(outputs, shapes, strict=True)
        ):
            _broken(graph, node, f"gives {dtypes} {shapes} instead of {outputs}")
        given.update(zip(node.outputs, outputs, strict=True))
    for value, fetched in zip(graph.fetches, fetches, strict=True):
        if not _fits(given[value], fetched):
            raise InternalError(f"{fetched!r} is fetched, and value {value} is {given[value]!r}")


def _given(graph: Subgraph, standing: Graph) -> dict[int, Tensor]:
    """Tensors of the dtypes and shapes of what is known before the first node runs."""
    given: dict[int, Tensor] = {}
    with standing.as_default():
        for value, array in graph.constants.items():
            given[value] = constant(array)
        for value, fed in enumerate(graph.feeds):
            given[value] = fed
            if fed.dtype is resource:  # The feed is the variable's value.
                variable = fed.op.attributes
                given[value] = placeholder(variable["dtype"], variable["shape"])
    return given


def _fits(found: Tensor, declared: Tensor) -> bool:
    return found.dtype is declared.dtype and found.shape.is_compatible_with(declared.shape)


def _broken(graph: Subgraph, node: Node, problem: str) -> NoReturn:
    near = [other for other in graph.nodes if set(other.outputs) & set(node.inputs)]
    near += [other for other in graph.nodes if set(other.inputs) & set(node.outputs)]
    raise InternalError(f"{node!r} {problem}; near it: {near}")
