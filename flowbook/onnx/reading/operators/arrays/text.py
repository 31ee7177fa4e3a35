"""Strings and words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from flowbook.onnx.reading import vocabulary as fb
from flowbook.onnx.reading.node import Node
from flowbook.onnx.reading.operators.sizes import shape_vector, sizes
from flowbook.onnx.reading.operators.types import Table


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


def _counted(node: Node, x: Any) -> Any:
    """How often n-grams of a pool occur in rows of words, elements of which may be skipped."""
    pool = node.get("pool_strings") or node.need("pool_int64s")
    starts = [*node.need("ngram_counts"), len(pool)]
    columns = node.need("ngram_indexes")
    rows = fb.expand_dims(x, 0) if node.rank(x) == 1 else x
    length = node.size(rows, 1)
    counts = []
    for n, (start, stop) in enumerate(pairwise(starts), 1):
        grams = [pool[i : i + n] for i in range(start, stop, n)]
        is_wanted = node.need("min_gram_length") <= n <= node.need("max_gram_length")
        if not grams:
            continue
        total = fb.zeros([1, len(grams)], fb.float32)
        # So many steps leave room for a gram.
        most = min(node.need("max_skip_count") + 1, (length - 1) // (n - 1)) if n > 1 else 1
        node.spend(most)
        for step in range(1, most + 1) if is_wanted and length else ():
            places = length - (n - 1) * step
            windows = [rows[:, k * step : k * step + places] for k in range(n)]
            found = fb.equal(fb.expand_dims(fb.stack(windows, -1), 2), fb.constant(grams, x.dtype))
            total = total + fb.count_nonzero(fb.reduce_all(found, -1), 1, dtype=fb.float32)
        counts.append(fb.broadcast_to(total, shape_vector([sizes(node, rows)[0], len(grams)])))
    found = fb.concat(counts, 1)
    if node.need("mode") == "IDF":
        found = fb.minimum(found, fb.constant(1.0))
    weights = np.array(node.get("weights", [1.0] * len(columns)), np.float32)
    if node.need("mode") == "TF":
        weights = np.ones_like(weights)
    # Which column an n-gram counts for.
    spread = np.zeros((len(columns), max(columns) + 1), np.float32)
    spread[np.arange(len(columns)), columns] = weights
    result = fb.matmul(found, spread)
    return result[0] if node.rank(x) == 1 else result


TABLE: Table = {
    "RegexFullMatch": _regex_match,
    "StringConcat": _concatenated,
    "StringNormalizer": _normalised,
    "StringSplit": _split,
    "TfIdfVectorizer": _counted,
}
