"""Functions in models, expanded: the model's own, and operators that ONNX defines as functions."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from flowbook.graph.model.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from flowbook.onnx.package import onnx
from flowbook.onnx.reading.opening import MOST_NODES

_MOST_ROUNDS = 16


def expanded(model: Any, translated: Container[tuple[str, str]]) -> Any:
    """The model with calls of functions replaced by their bodies.

    Args:
        model: a checked ModelProto.
        translated: the operators, as (domain, type), that need no expansion.

    Raises:
        InvalidArgumentError: if functions call each other in a circle.
        ResourceExhaustedError: if expansion would make too many nodes.
    """
    inliner = onnx("inliner")
    try:
        if model.functions:
            _check_growth(model)
            model = inliner.inline_local_functions(model)
        for _ in range(_MOST_ROUNDS):
            wanted = _functions_of_onnx(model, translated)
            if not wanted:
                break
            _state_defaults(model, wanted)
            count = len(model.graph.node)
            if _give_bodies(model, wanted):
                model = inliner.inline_local_functions(model)
                continue
            model = inliner.inline_selected_functions(model, wanted, inline_schema_functions=True)
            if len(model.graph.node) == count and wanted == _functions_of_onnx(model, translated):
                break
    except OpError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"the model's functions cannot be expanded: {error}") from None
    return model


def _functions_of_onnx(model: Any, translated: Container[tuple[str, str]]) -> list[tuple[str, str]]:
    """The operators in the model that have no translation, but a function's body in ONNX."""
    defs = onnx("defs")
    versions = {o.domain: o.version for o in model.opset_import}
    found = set()
    for node in _nodes(model.graph.node):
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) in translated or (domain, node.op_type) in found:
            continue
        if defs.has(node.op_type, domain=domain, max_inclusive_version=versions.get(domain, 1)):
            schema = defs.get_schema(node.op_type, versions.get(domain, 1), domain)
            if schema.has_function or schema.has_context_dependent_function:
                found.add((domain, node.op_type))
    return sorted(found)


def _state_defaults(model: Any, wanted: list[tuple[str, str]]) -> None:
    """Write down the attributes that nodes leave to their defaults: bodies refer to them."""
    defs = onnx("defs")
    versions = {o.domain: o.version for o in model.opset_import}
    for node in _nodes(model.graph.node):
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in wanted:
            continue
        given = {a.name for a in node.attribute}
        schema = defs.get_schema(node.op_type, versions.get(domain, 1), domain)
        for name, attribute in schema.attributes.items():
            if name not in given and attribute.default_value.name:
                node.attribute.add().CopyFrom(attribute.default_value)


def _give_bodies(model: Any, wanted: list[tuple[str, str]]) -> bool:
    """Make functions of the model of what nodes call that leave out inputs.

    The inliner cannot expand operators whose bodies depend on the types of inputs, if one of these
    is absent.

    Returns:
        Whether there were any.
    """
    defs = onnx("defs")
    versions = {o.domain: o.version for o in model.opset_import}
    types: dict[str, bytes] = {}
    count = 0
    for node in model.graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in wanted or all(node.input):
            continue
        version = versions.get(domain, 1)
        schema = defs.get_schema(node.op_type, version, domain)
        if not schema.has_context_dependent_function:
            continue
        if not types:
            graph = onnx("shape_inference").infer_shapes(model).graph
            known = (*graph.input, *graph.value_info, *graph.output)
            types = {info.name: info.type.SerializeToString() for info in known}
        body = onnx().FunctionProto()
        body.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(
                max(schema.context_dependent_function_opset_versions),
                node.SerializeToString(),
                [types.get(name, b"") for name in node.input],
            )
        )
        count += 1
        body.domain, body.name = "flowbook.expanded", f"{node.op_type}_{count}"
        for opset in body.opset_import:
            opset.version = versions.get(opset.domain, opset.version)
        model.functions.append(body)
        node.domain, node.op_type = body.domain, body.name
    if count and "flowbook.expanded" not in versions:
        model.opset_import.add(domain="flowbook.expanded", version=1)
    return count > 0


def _nodes(nodes: Iterable[Any]) -> Iterable[Any]:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        for attribute in node.attribute:
            stack.extend(attribute.g.node)
            for graph in attribute.graphs:
                stack.extend(graph.node)


def _check_growth(model: Any) -> None:
    """Count the nodes that there will be, without making them."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    sizes: dict[Any, int] = {}
    open_calls: set[Any] = set()

    def size(nodes: Iterable[Any], depth: int) -> int:
        if depth > len(functions) or depth > 200:
            raise InvalidArgumentError("the model's functions call each other without end")
        total = 0
        for node in _nodes(nodes):
            key = (node.domain, node.op_type, node.overload)
            if key not in functions:
                total += 1
                continue
            if key not in sizes:
                if key in open_calls:
                    raise InvalidArgumentError(f"the model's function {key[1]!r} calls itself")
                open_calls.add(key)
                sizes[key] = size(functions[key].node, depth + 1)
                open_calls.discard(key)
            total += sizes[key]
        return total

    total = size(model.graph.node, 0)
    if total > MOST_NODES:
        raise ResourceExhaustedError(
            f"the model's functions expand to {total} nodes, more than {MOST_NODES}"
        )
