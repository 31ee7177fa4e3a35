"""What every pass must keep: the checker that runs between passes in the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import InternalError, OpError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant, placeholder
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def check_subgraph(graph: Subgraph, fetches: Sequence[Tensor]) -> None:
    """Check that a subgraph could run as it stands, from its first node to its last.

    A node must compute what its operation declares, in dtype and shape, from what it is given now.

    Args:
        graph: the subgraph.
        fetches: the tensors that the run returns, of whose dtypes and shapes the values must be.

    Raises:
        InternalError: naming the first node that breaks a rule, and its surroundings.
    """
    _check_order(graph)
    _check_types(graph, fetches)


def _check_order(graph: Subgraph) -> None:
    """Whatever a node takes or waits for comes before it, and every value is given once."""
    known = {*range(len(graph.feeds)), *graph.constants}
    earlier: set[Node] = set()
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
        arity = None if any(a.is_list for a in node.op_def.inputs) else len(node.op_def.inputs)
        if arity not in (None, len(node.inputs)):
            _broken(graph, node, f"has {len(node.inputs)} inputs instead of {arity}")
        known.update(node.outputs)
        earlier.add(node)
    if not known.issuperset(graph.fetches):
        raise InternalError(f"the fetched values {graph.fetches} are not all given")
    if not earlier.issuperset(graph.targets):
        raise InternalError(f"targets are missing: {set(graph.targets) - earlier}")


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
