"""Strings."""

from __future__ import annotations

from flowbook import strings
from flowbook.graph.model.dtypes import float32
from flowbook.graph.ops.text.string_numbers import decode_base64, decode_raw, encode_base64
from flowbook.tensorflow.node import Rules, named

RULES: Rules = {
    "AsString": named(
        strings.as_string,
        precision=lambda n: n.whole("precision", -1),
        scientific=lambda n: n.flag("scientific"),
        shortest=lambda n: n.flag("shortest"),
        width=lambda n: n.whole("width", -1),
        fill=lambda n: n.text("fill"),
    ),
    "DecodeBase64": named(decode_base64),
    "DecodeRaw": named(
        decode_raw,
        out_type=lambda n: n.dtype("out_type"),
        little_endian=lambda n: n.flag("little_endian", True),
    ),
    "EncodeBase64": named(encode_base64, pad=lambda n: n.flag("pad")),
    "ReduceJoin": named(
        strings.reduce_join,
        keepdims=lambda n: n.flag("keep_dims"),
        separator=lambda n: n.text("separator"),
    ),
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
    "StringStrip": named(strings.strip),
    "StringUpper": named(strings.upper, encoding=lambda n: n.text("encoding")),
    "StringLength": named(strings.length, unit=lambda n: n.text("unit", "BYTE")),
    "StringToNumber": named(strings.to_number, out_type=lambda n: n.dtype("out_type", float32)),
    "Substr": named(strings.substr, unit=lambda n: n.text("unit", "BYTE")),
}
