"""ONNX nodes by the names of what they take and give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def used_nodes(nodes: Sequence[Any], wanted: set[str]) -> list[Any]:
    """The nodes that lead to what is wanted, whose names are added to it."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(names_used([node]))
    return kept[::-1]


def names_used(nodes: Iterable[Any]) -> set[str]:
    """The names that nodes take, and the graphs that they hold."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        found.update(name for name in node.input if name)
        for attribute in node.attribute:
            stack += attribute.g.node
    return found
