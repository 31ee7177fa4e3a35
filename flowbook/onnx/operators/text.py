"""Strings."""

from __future__ import annotations

from typing import Any

from flowbook.onnx import vocabulary as fb
from flowbook.onnx.node import Node
from flowbook.onnx.operators.sizes import shape_vector, sizes
from flowbook.onnx.operators.types import Table


def _regex_match(node: Node, x: Any) -> Any:
    return fb.strings.regex_full_match(x, node.need("pattern"))


def _concatenated(node: Node, x: Any, y: Any) -> Any:
    shape = fb.broadcast_dynamic_shape(fb.shape(x), fb.shape(y))
    return fb.strings.join([fb.broadcast_to(x, shape), fb.broadcast_to(y, shape)])


def _normalised(node: Node, x: Any) -> Any:
    """Words without stop words, in one case; one empty word where none is left."""
    changed = {"LOWER": _lower, "UPPER": _upper}.get(node.get("case_change_action", "NONE"))
    words = fb.reshape(x, [-1])
    stop = node.get("stopwords", [])
    if stop:
        exact = bool(node.get("is_case_sensitive", 0))
        compared = words if exact else _lower(words)
        table = fb.constant(stop if exact else [word.lower() for word in stop], fb.string)
        is_stop = fb.reduce_any(fb.equal(fb.expand_dims(compared, 1), table), 1)
        words = fb.boolean_mask(words, fb.logical_not(is_stop))
    if changed is not None:
        words = changed(words)
    count = fb.maximum(fb.size(words), 1)
    words = fb.concat([words, fb.constant([""], fb.string)], 0)[:count]
    return fb.reshape(words, [1, -1]) if node.rank(x) == 2 else words


def _split(node: Node, x: Any) -> Any:
    parts = fb.strings.split(fb.reshape(x, [-1]), node.get("delimiter"), node.get("maxsplit", -1))
    dims = sizes(node, x)
    places = fb.cast(parts.dense_shape, fb.int32)
    whole = fb.sparse.to_dense(parts, "")
    ones = fb.ones_like(parts.indices[:, 0], fb.int64)
    counts = fb.unsorted_segment_sum(ones, parts.indices[:, 0], places[0])
    shape = shape_vector(dims)
    return fb.reshape(whole, fb.concat([shape, places[1:]], 0)), fb.reshape(counts, shape)


def _lower(words: Any) -> Any:
    return fb.strings.lower(words, encoding="utf-8")


def _upper(words: Any) -> Any:
    return fb.strings.upper(words, encoding="utf-8")


TABLE: Table = {
    "RegexFullMatch": _regex_match,
    "StringConcat": _concatenated,
    "StringNormalizer": _normalised,
    "StringSplit": _split,
}
