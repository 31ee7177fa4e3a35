"""Strings."""

from __future__ import annotations

from typing import Any

from flowbook.onnx import vocabulary as fb
from flowbook.onnx.node import Node
from flowbook.onnx.operators.types import Table


def _regex_match(node: Node, x: Any) -> Any:
    return fb.strings.regex_full_match(x, node.need("pattern"))


def _concatenated(node: Node, x: Any, y: Any) -> Any:
    shape = fb.broadcast_dynamic_shape(fb.shape(x), fb.shape(y))
    return fb.strings.join([fb.broadcast_to(x, shape), fb.broadcast_to(y, shape)])


TABLE: Table = {"RegexFullMatch": _regex_match, "StringConcat": _concatenated}
