"""Strings, and the records that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook import strings
from flowbook.graph.model.dtypes import float32, int64
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.text.csv_records import decode_csv
from flowbook.graph.ops.text.feature_values import parse_example_op
from flowbook.graph.ops.text.string_numbers import decode_raw, encode_base64
from flowbook.tensorflow.node import Node, Rules, named


def _csv(n: Node, records: Any, *defaults: Any) -> Any:
    return decode_csv(
        records,
        list(defaults),
        n.text("field_delim", ","),
        n.flag("use_quote_delim", True),
        n.scope,
        n.text("na_value"),
        n.ints("select_cols") or None,
    )


def _examples(n: Node, serialized: Any, sparse: list[str], dense: Mapping[str, Tensor]) -> Any:
    """What examples hold: indices, values and shapes of sparse features, and then dense ones.

    Args:
        n: the node.
        serialized: an example, or several.
        sparse: the sparse features' names.
        dense: what the others are where they are missing, by their names; of one that may not be,
            nothing.
    """
    shapes = n.shapes("dense_shapes")
    for key, default, shape in zip(dense, dense.values(), shapes, strict=True):
        if not shape.is_fully_defined or not default.shape.is_fully_defined:
            raise UnimplementedError(f"{n} is read only if the shape of {key!r} is known")
    may_miss = [
        default.shape.size != 0 or shape.size == 0
        for default, shape in zip(dense.values(), shapes, strict=True)
    ]
    types = [(int64, dtype, int64) for dtype in n.dtypes("sparse_types")]
    found = parse_example_op(
        serialized,
        list(dense.values()),
        names=tuple(dense),
        shapes=tuple(shapes),
        may_miss=tuple(may_miss),
        ragged=tuple(sparse),
        placed=(),
        Tout=(*n.dtypes("Tdense"), *(dtype for each in types for dtype in each)),
        name=n.scope,
    )
    parts = found[len(dense) :]
    return [*parts[::3], *parts[1::3], *parts[2::3], *found[: len(dense)]]


def _keys(n: Node, tensors: Any) -> list[str]:
    given = [n.known(each, "the names of its features") for each in tensors]
    return [key.decode("utf-8", "replace") for each in given for key in each.ravel()]


def _several_examples(n: Node, serialized: Any, names: Any, *others: Any) -> Any:
    sparse, dense = n.whole("Nsparse"), n.whole("Ndense")
    keys = _keys(n, others[: sparse + dense])
    defaults = dict(zip(keys[sparse:], others[sparse + dense :], strict=True))
    return _examples(n, serialized, keys[:sparse], defaults)


def _later_examples(
    n: Node, serialized: Any, names: Any, sparse: Any, dense: Any, ragged: Any, *defaults: Any
) -> Any:
    if _keys(n, [ragged]):
        raise UnimplementedError(f"{n} gives ragged tensors")
    with_defaults = dict(zip(_keys(n, [dense]), defaults, strict=True))
    return _examples(n, serialized, _keys(n, [sparse]), with_defaults)


def _single_example(n: Node, serialized: Any, *defaults: Any) -> Any:
    dense = dict(zip(n.texts("dense_keys"), defaults, strict=True))
    return _examples(n, serialized, n.texts("sparse_keys"), dense)


def _full_match(n: Node, strings_: Any, *pattern: Any) -> Any:
    return strings.regex_full_match(strings_, *pattern or [n.text("pattern")], name=n.scope)


RULES: Rules = {
    "AsString": named(
        strings.as_string,
        precision=lambda n: n.whole("precision", -1),
        scientific=lambda n: n.flag("scientific"),
        shortest=lambda n: n.flag("shortest"),
        width=lambda n: n.whole("width", -1),
        fill=lambda n: n.text("fill"),
    ),
    "DecodeCSV": _csv,
    "DecodeRaw": named(
        decode_raw,
        out_type=lambda n: n.dtype("out_type"),
        little_endian=lambda n: n.flag("little_endian", True),
    ),
    "EncodeBase64": named(encode_base64, pad=lambda n: n.flag("pad")),
    "ParseExample": _several_examples,
    "ParseExampleV2": _later_examples,
    "ParseSingleExample": _single_example,
    "ReduceJoin": named(
        strings.reduce_join,
        keepdims=lambda n: n.flag("keep_dims"),
        separator=lambda n: n.text("separator"),
    ),
    **dict.fromkeys(("RegexFullMatch", "StaticRegexFullMatch"), _full_match),
    "RegexReplace": named(
        strings.regex_replace, replace_global=lambda n: n.flag("replace_global", True)
    ),
    "StaticRegexReplace": named(
        strings.regex_replace,
        pattern=lambda n: n.text("pattern"),
        rewrite=lambda n: n.text("rewrite"),
        replace_global=lambda n: n.flag("replace_global", True),
    ),
    "StringJoin": lambda n, *inputs: strings.join(
        list(inputs), separator=n.text("separator"), name=n.scope
    ),
    "StringLower": named(strings.lower, encoding=lambda n: n.text("encoding")),
    "StringUpper": named(strings.upper, encoding=lambda n: n.text("encoding")),
    "StringLength": named(strings.length, unit=lambda n: n.text("unit", "BYTE")),
    "StringToHashBucketFast": named(
        strings.to_hash_bucket_fast, num_buckets=lambda n: n.whole("num_buckets")
    ),
    "StringToHashBucketStrong": named(
        strings.to_hash_bucket_strong,
        num_buckets=lambda n: n.whole("num_buckets"),
        key=lambda n: n.ints("key"),
    ),
    "StringToNumber": named(strings.to_number, out_type=lambda n: n.dtype("out_type", float32)),
    "Substr": named(strings.substr, unit=lambda n: n.text("unit", "BYTE")),
}
