"""Name scopes, control dependencies, devices, containers: `with` blocks around code that builds.

A `Scope` (`surroundings.py`) is immutable, and belongs to a block (`blocks.py`), a graph and a
thread. So building threads never see each other's scopes, and leaving is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flowbook.graph.building.blocks import Block
from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Arithmetic

__all__ = [
    "colocate_with",
    "container",
    "control_dependencies",
    "device",
    "init_scope",
    "name_scope",
]


def within(graph: Graph, change: Callable[[Scope], Scope]) -> Block[Scope]:
    """Build in `graph`, on this thread, under a changed scope."""

    def begin(block: Block[Scope]) -> Scope:
        scope = change(graph.scope)
        block.surround(graph, scope)
        return scope

    return Block(begin)


def name_scope(
    name: str | None, default_name: str | None = None, values: Iterable[Any] | None = None
) -> Block[str]:
    """Prefix the names of what is built in the block with `name/`.

    Args:
        name: the scope; made unique in its graph by a suffix. A name that ends with "/" re-enters
            that scope; None or "" leaves all scopes.
        default_name: the scope if `name` is None: for functions that are given a name or None.
        values: what such a function is given; the block builds in the graph of the tensors among
            it. By default in the default graph.

    Returns:
        A block that gives the full prefix, ending with "/" (or ""), which may be given to
        `name_scope` again.

    Raises:
        InvalidTypeError: if a name is no string.
        InvalidArgumentError: if the tensors belong to different graphs.
    """

    def begin(block: Block[str]) -> str:
        if not isinstance(default_name, str | None):
            raise InvalidTypeError(f"a name is a string, not {default_name!r}")
        owned = [v for v in values or () if isinstance(getattr(v, "graph", None), Graph)]
        graphs = [v.graph for v in owned]
        graph = graphs[0] if graphs else get_default_graph()
        if any(other is not graph for other in graphs):
            raise mixed_graphs([(getattr(v, "name", repr(v)), v.graph) for v in owned])
        wanted = default_name if name is None else name
        prefix = graph.enter_name(wanted) if wanted else ""
        if graphs:
            block.graph = graph
        block.surround(graph, graph.scope._replace(prefix=prefix))
        return prefix

    return Block(begin)


def control_dependencies(control_inputs: Iterable[Any] | None) -> Block[None]:
    """What is built in the block runs only after the given operations.

    Args:
        control_inputs: a list of operations, tensors or variables; None clears the dependencies in
            force.

    Raises:
        InvalidTypeError: if it is no list of them.
    """

    def begin(block: Block[None]) -> None:
        graph = get_default_graph()
        scope = graph.scope
        if control_inputs is None:
            block.surround(graph, scope._replace(control_inputs=()))
            return
        if not isinstance(control_inputs, Iterable) or isinstance(
            control_inputs, Arithmetic | str | bytes | Mapping
        ):
            raise InvalidTypeError(
                "control_dependencies takes a list of operations or tensors, not "
                f"{control_inputs!r}",
                hint="for one of them write [x]: fb.control_dependencies([x])",
            )
        waited = [graph.as_operation(item) for item in control_inputs]
        together = tuple(dict.fromkeys((*scope.control_inputs, *waited)))
        block.surround(graph, scope._replace(control_inputs=together))

    return Block(begin)


def init_scope() -> Block[None]:
    """What is built in the block runs before everything else, as initial values do.

    It is outside of all loops and branches, and control dependencies in force do not count in it;
    the name scope and the device do.
    """

    def begin(block: Block[None]) -> None:
        graph = get_default_graph()
        block.surround(graph, graph.scope._replace(control_inputs=(), flow=None))

    return Block(begin)


def device(name: str | Callable[[Operation], str | None] | None) -> Block[None]:
    """Request a device for what is built in the block.

    Args:
        name: a full or partial device name, such as "/device:gpu:0"; it refines the request in
            force. None clears it. A function is called with each operation that is built, which
            has a type and inputs but no name yet, and gives such a name, or None to ask for
            nothing.
    """

    def begin(block: Block[None]) -> None:
        graph = get_default_graph()
        scope = graph.scope
        if name is None:
            block.surround(graph, scope._replace(device="", choosers=()))
        elif callable(name):
            choosers = (*scope.choosers, (scope.device, name))
            block.surround(graph, scope._replace(device="", choosers=choosers))
        elif isinstance(name, str):
            requested = DeviceSpec.parse(scope.device).merge(DeviceSpec.parse(name))
            block.surround(graph, scope._replace(device=str(requested)))
        else:
            raise InvalidTypeError(f"a device is named by a string, not {name!r}")

    return Block(begin)


def colocate_with(operation: Any) -> Block[None]:
    """What is built in the block runs on the device of the given operation, tensor or variable.

    Args:
        operation: what to run beside. A device requested outside the block does not count in it.
    """

    def begin(block: Block[None]) -> None:
        graph = get_default_graph()
        scope = graph.scope
        other = graph.as_operation(operation)
        together = tuple(dict.fromkeys((*scope.colocation, other)))
        beside = scope._replace(device=other.device, choosers=(), colocation=together)
        block.surround(graph, beside)

    return Block(begin)


def container(name: str) -> Block[None]:
    """The variables made in the block live in the named container.

    Args:
        name: the container, which sessions of this process share by name; "" is the session's own.
    """

    def begin(block: Block[None]) -> None:
        if not isinstance(name, str):
            raise InvalidTypeError(f"a container is named by a string, not {name!r}")
        graph = get_default_graph()
        block.surround(graph, graph.scope._replace(container=name))

    return Block(begin)
