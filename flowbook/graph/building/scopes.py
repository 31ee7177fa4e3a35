"""Name scopes, control dependencies, devices, containers: `with` blocks around code that builds.

A `Scope` (`surroundings.py`) is immutable; such a block replaces the current one for its graph
and thread and puts it back. So building threads never see each other's scopes, and leaving is
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.building.surroundings import Scope
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic


@contextmanager
def within(graph: Graph, change: Callable[[Scope], Scope]) -> Iterator[Scope]:
    """Build in `graph`, on this thread, under a changed scope."""
    before = graph.scope
    try:  # An interrupt may come right after the assignment.
        graph.scope = change(before)
        yield graph.scope
    finally:
        graph.scope = before


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Iterable[Any] | None = None
) -> Iterator[str]:
    """Prefix the names of what is built in the block with `name/`.

    Args:
        name: the scope; made unique in its graph by a suffix. A name that ends with "/" re-enters
            that scope; None or "" leaves all scopes.
        default_name: the scope if `name` is None: for functions that are given a name or None.
        values: what such a function is given; the block builds in the graph of the tensors among
            it. By default in the default graph.

    Yields:
        The full prefix, ending with "/" (or ""), which may be given to `name_scope` again.

    Raises:
        InvalidTypeError: if a name is no string.
        InvalidArgumentError: if the tensors belong to different graphs.
    """
    if not isinstance(default_name, str | None):
        raise InvalidTypeError(f"a name is a string, not {default_name!r}")
    owned = [v for v in values or () if isinstance(getattr(v, "graph", None), Graph)]
    graphs = [v.graph for v in owned]
    graph = graphs[0] if graphs else get_default_graph()
    if any(other is not graph for other in graphs):
        raise mixed_graphs([(getattr(v, "name", repr(v)), v.graph) for v in owned])
    wanted = default_name if name is None else name
    prefix = graph.enter_name(wanted) if wanted else ""
    with (
        graph.as_default() if graphs else nullcontext(),
        within(graph, lambda scope: replace(scope, prefix=prefix)),
    ):
        yield prefix


@contextmanager
def control_dependencies(control_inputs: Iterable[Any] | None) -> Iterator[None]:
    """What is built in the block runs only after the given operations.

    Args:
        control_inputs: a list of operations, tensors or variables; None clears the dependencies in
            force.

    Raises:
        InvalidTypeError: if it is no list of them.
    """
    graph = get_default_graph()
    if control_inputs is None:
        with within(graph, lambda scope: replace(scope, control_inputs=())):
            yield
        return
    if not isinstance(control_inputs, Iterable) or isinstance(
        control_inputs, Arithmetic | str | bytes | Mapping
    ):
        raise InvalidTypeError(
            f"control_dependencies takes a list of operations or tensors, not {control_inputs!r}",
            hint="for one of them write [x]: fb.control_dependencies([x])",
        )
    waited = [graph.as_operation(item) for item in control_inputs]
    with within(
        graph,
        lambda scope: replace(
            scope, control_inputs=tuple(dict.fromkeys((*scope.control_inputs, *waited)))
        ),
    ):
        yield


@contextmanager
def init_scope() -> Iterator[None]:
    """What is built in the block runs before everything else, as initial values do.

    Control dependencies in force do not count in it; the name scope and the device do.
    """
    with control_dependencies(None):
        yield


@contextmanager
def device(name: str | None) -> Iterator[None]:
    """Request a device for what is built in the block.

    Args:
        name: a full or partial device name, such as "/device:gpu:0"; it refines the request in
            force. None clears it.
    """
    graph = get_default_graph()
    if name is not None and not isinstance(name, str):
        raise InvalidTypeError(f"a device is named by a string, not {name!r}")

    def change(scope: Scope) -> Scope:
        if name is None:
            return replace(scope, device="")
        merged = DeviceSpec.parse(scope.device).merge(DeviceSpec.parse(name))
        return replace(scope, device=str(merged))

    with within(graph, change):
        yield


@contextmanager
def colocate_with(operation: Any) -> Iterator[None]:
    """What is built in the block runs on the device of the given operation, tensor or variable.

    Args:
        operation: what to run beside. A device requested outside the block does not count in it.
    """
    graph = get_default_graph()
    other = graph.as_operation(operation)

    def change(scope: Scope) -> Scope:
        together = tuple(dict.fromkeys((*scope.colocation, other)))
        return replace(scope, device=other.device, colocation=together)

    with within(graph, change):
        yield


@contextmanager
def container(name: str) -> Iterator[None]:
    """The variables made in the block live in the named container.

    Args:
        name: the container, which sessions of this process share by name; "" is the session's own.
    """
    if not isinstance(name, str):
        raise InvalidTypeError(f"a container is named by a string, not {name!r}")
    with within(get_default_graph(), lambda scope: replace(scope, container=name)):
        yield
