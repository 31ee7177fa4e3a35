"""Text, against Python's own functions."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.ops.text import csv_records, string_numbers, string_patterns, strings
from tests.op_cases.case import Case, f, i


def t(*values: Any) -> np.ndarray:
    """An array of byte strings: of one for a single one, else of all."""
    given: Any = values if len(values) > 1 else values[0]
    if isinstance(given, str | bytes):
        result = np.empty((), object)
        result[()] = given if isinstance(given, bytes) else given.encode()
        return result
    parts = [t(v) for v in given]
    if not parts:
        return np.empty(0, object)
    result = np.empty((len(parts), *parts[0].shape), object)
    for k, part in enumerate(parts):
        result[k] = part[()] if not part.ndim else part
    return result


def each(function: Any, *arrays: np.ndarray, dtype: Any = object) -> np.ndarray:
    arrays = np.broadcast_arrays(*arrays)
    result = np.empty(arrays[0].shape, dtype)
    for place in np.ndindex(result.shape):
        result[place] = function(*(a[place] for a in arrays))
    return result


WORDS = t(["Hello", " two words\t"], ["", "straße ÄÉ"])
NONE = np.empty((0, 3), object)
NUMBERS = t("1.5", "-2e3", " 7 ", "inf", "0.1")
BYTES = t("any bytes", b"\xff\xfe\xfd", b"?>?>", b"1", b"")


def _unary(op: Any, type: str, reference: Any, x: np.ndarray = WORDS, **options: Any) -> Case:
    return Case(type, op, [x], lambda x: each(reference, x), empty=[NONE], **options)


def _in_unicode(method: str) -> Any:
    return lambda v: getattr(v.decode(), method)().encode()


def _split(rows: list[bytes], sep: bytes | None, most: int) -> tuple[np.ndarray, ...]:
    return _placed([row.split(sep, most) for row in rows])


def _placed(parts: list[list[bytes]]) -> tuple[np.ndarray, ...]:
    places = [(r, k) for r, row in enumerate(parts) for k in range(len(row))]
    values = np.empty(len(places), object)
    values[:] = [part for row in parts for part in row]
    shape = [len(parts), max((len(row) for row in parts), default=0)]
    return np.array(places, np.int64).reshape(-1, 2), values, np.array(shape, np.int64)


def _format(pattern: str) -> Any:
    def write(value: float) -> bytes:
        form = pattern if np.isfinite(value) else pattern.replace("%0", "%")
        return (form % value).encode()

    return lambda x: each(write, x)


def _raw(kind: str) -> Any:
    def reference(x: np.ndarray) -> np.ndarray:
        rows = [np.frombuffer(v, kind) for v in x.ravel()]
        return np.array(rows).astype(kind[1:]).reshape(*x.shape, -1)

    return reference


FAST_WORDS = t("", "a", "seven b", "twelve bytes", "x" * 20, "y" * 40, "z" * 64, "long " * 40)
STRONG_WORDS = t("", "a", "seven b", "eight by", "long " * 40)
# As TensorFlow has them.
FAST = [377723, 291400, 76114, 375578, 268677, 641401, 375874, 185046]
STRONG = [414719, 718229, 449828, 761775, 520391]

CASES = [
    Case(
        "StringJoin",
        lambda *x: strings.join(list(x), separator=", "),
        [WORDS, t("a", "b"), t("!")],
        lambda *x: each(lambda *v: b", ".join(v), *x),
        empty=[np.empty((0, 2), object), t("a", "b"), t("!")],
    ),
    *(
        Case(
            "ReduceJoin",
            lambda x, a=axis, k=keep: strings.reduce_join(x, a, k, "-"),
            [t(["a", "b", "c"], ["d", "e", "f"])],
            lambda x, v=wanted: t(v) if x.size else t("") if not isinstance(v, list) else x[:0],
            tensorflow=lambda tf, x, a=axis, k=keep: tf.strings.reduce_join(
                x, a, keepdims=k, separator="-"
            ),
            note=f"{axis}-{keep}",
        )
        for axis, keep, wanted in [
            (None, False, "a-b-c-d-e-f"),
            (0, False, ["a-d", "b-e", "c-f"]),
            (-1, True, [["a-b-c"], ["d-e-f"]]),
            ((0, 1), False, "a-d-b-e-c-f"),
            ((1, 0), False, "a-b-c-d-e-f"),
        ]
    ),
    Case(
        "StringLength",
        strings.length,
        [WORDS],
        lambda x: each(len, x, dtype=np.int64),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.strings.length(x),
    ),
    Case(
        "StringLength",
        lambda x: strings.length(x, unit="UTF8_CHAR"),
        [WORDS],
        lambda x: each(lambda v: len(v.decode()), x, dtype=np.int64),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.strings.length(x, unit="UTF8_CHAR"),
        note="utf8",
    ),
    Case(
        "Substr",
        strings.substr,
        [t("hello", "words", "longer one"), i([[1], [-2]]), i([[3], [1]])],
        lambda x, p, n: each(lambda v, a, b: v[int(a) :][: int(b)], x, p, n),
        empty=[np.empty(0, object), i([[1], [-2]]), i([[3], [1]])],
        tensorflow=lambda tf, x, p, n: tf.strings.substr(x, *np.broadcast_arrays(p + 0 * n, n)),
    ),
    Case(
        "Substr",
        lambda x, p, n: strings.substr(x, p, n, unit="UTF8_CHAR"),
        [t("straße", "ÄÉ ü"), i(-3, 1), i(2, 99)],
        lambda x, p, n: each(lambda v, a, b: v.decode()[int(a) :][: int(b)].encode(), x, p, n),
        empty=[np.empty(0, object), i([]), i([])],
        tensorflow=lambda tf, x, p, n: tf.strings.substr(x, p, n, unit="UTF8_CHAR"),
        note="utf8",
    ),
    _unary(
        strings.lower,
        "StringLower",
        bytes.lower,
        tensorflow=lambda tf, x: tf.strings.lower(x),
    ),
    _unary(
        lambda x: strings.lower(x, encoding="utf-8"),
        "StringLower",
        _in_unicode("lower"),
        tensorflow=lambda tf, x: tf.strings.lower(x, encoding="utf-8"),
        note="utf8",
    ),
    _unary(
        strings.upper,
        "StringUpper",
        bytes.upper,
        tensorflow=lambda tf, x: tf.strings.upper(x),
    ),
    _unary(
        lambda x: strings.upper(x, encoding="utf-8"),
        "StringUpper",
        _in_unicode("upper"),
        tensorflow=lambda tf, x: tf.strings.upper(x, encoding="utf-8"),
        note="utf8",
    ),
    _unary(
        strings.strip,
        "StringStrip",
        bytes.strip,
        tensorflow=lambda tf, x: tf.strings.strip(x),
    ),
    Case(
        "RegexReplace",
        string_patterns.regex_replace,
        [WORDS, t(r"([a-z])([a-z])"), t(r"\2<\0>\\")],
        lambda x, p, r: each(
            lambda v: re.sub(rb"([a-z])([a-z])", lambda m: m[2] + b"<" + m[0] + b">\\", v),
            x,
        ),
        empty=[NONE, t("a"), t("b")],
        tensorflow=lambda tf, x, p, r: tf.strings.regex_replace(x, p.item(), r.item()),
    ),
    Case(
        "RegexReplace",
        lambda x: string_patterns.regex_replace(x, "o|l", "_", replace_global=False),
        [WORDS],
        lambda x: each(lambda v: re.sub(b"o|l", b"_", v, count=1), x),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.strings.regex_replace(x, "o|l", "_", replace_global=False),
        note="first",
    ),
    Case(
        "RegexFullMatch",
        string_patterns.regex_full_match,
        [WORDS, t("[A-Z].*o|")],
        lambda x, p: each(lambda v: v in (b"Hello", b""), x, dtype=np.bool_),
        empty=[NONE, t("a")],
        tensorflow=lambda tf, x, p: tf.strings.regex_full_match(x, p.item()),
    ),
    *(
        Case(
            "StringSplit",
            lambda x, s, m=most: string_patterns.split_op(x, s, maxsplit=m),
            [t("a b  c", "", " d,,e ", "f"), t(sep)],
            lambda x, s, m=most, b=sep: _split(x.tolist(), b.encode() or None, m),
            by_value=True,
            # At white space TensorFlow adds empty parts behind the last, against its documentation.
            tensorflow=None
            if (sep, most) == ("", 1)
            else lambda tf, x, s, m=most: _tensorflow_split(tf, x, s, m),
            note=f"{sep!r}-{most}",
        )
        for sep, most in [("", -1), (",", -1), (" ", 1), ("", 1)]
    ),
    Case(
        "StringSplit",
        lambda x, s: string_patterns.split_op(x, s, skip_empty=True),
        [t("a b,c", "", ", ", "de"), t(",", " ")],
        lambda x, s: _placed([[b"a", b"b", b"c"], [], [], [b"de"]]),
        by_value=True,
        tensorflow=lambda tf, x, s: _tensorflow_string_split(tf, x, ", "),
        note="several",
    ),
    Case(
        "StringToNumber",
        string_numbers.to_number,
        [NUMBERS],
        lambda x: each(float, x, dtype=np.float64).astype(np.float32),
        empty=[NONE],
        tensorflow=lambda tf, x: tf.strings.to_number(x),
    ),
    Case(
        "StringToNumber",
        lambda x: string_numbers.to_number(x, dtypes.int64),
        [t("12", "-9223372036854775808", " +7 ")],
        lambda x: each(int, x, dtype=np.int64),
        empty=[NONE],
        note="int64",
    ),
    *(
        Case(
            "AsString",
            lambda x, o=options: string_numbers.as_string(x, **o),
            [f([1.5, -2.0, 123456.0], [0.25, 0.0, np.inf])],
            _format(pattern),
            empty=[np.zeros((0, 3))],
            only=[dtypes.float32, dtypes.float64],
            tensorflow=lambda tf, x, o=options: tf.strings.as_string(x, **o),
            note=pattern,
        )
        for pattern, options in [
            ("%f", {}),
            ("%.2f", {"precision": 2}),
            ("%e", {"scientific": True}),
            ("%g", {"shortest": True}),
            ("%12.1f", {"width": 12, "precision": 1}),
            ("%012.1e", {"width": 12, "precision": 1, "scientific": True, "fill": "0"}),
            ("%-9g", {"width": 9, "shortest": True, "fill": "-"}),
        ]
    ),
    Case(
        "AsString",
        lambda x: string_numbers.as_string(x, width=4, fill="0"),
        [i(5, 123, 99)],
        lambda x: each(lambda v: f"{int(v):04}".encode(), x),
        empty=[i([])],
        only=dtypes.INTS,
        tensorflow=lambda tf, x: tf.strings.as_string(x, width=4, fill="0"),
        note="integers",
    ),
    Case(
        "AsString",
        string_numbers.as_string,
        [np.array([True, False])],
        lambda x: t("true", "false"),
        only=[dtypes.bool],
        tensorflow=lambda tf, x: tf.strings.as_string(x),
        note="bool",
    ),
    Case(
        "AsString",
        lambda x: string_numbers.as_string(x, precision=1),
        [np.array([1 + 2j, -0.5j])],
        lambda x: t("(1.0,2.0)", "(-0.0,-0.5)"),
        only=[dtypes.complex64, dtypes.complex128],
        tensorflow=lambda tf, x: tf.strings.as_string(x, precision=1),
        note="complex",
    ),
    Case(
        "StringToHashBucketFast",
        lambda x: string_numbers.to_hash_bucket_fast(x, 1000003),
        [FAST_WORDS],
        lambda x: np.array(FAST[: x.size], np.int64),
        empty=[np.empty(0, object)],
        tensorflow=lambda tf, x: tf.strings.to_hash_bucket_fast(x, 1000003),
    ),
    Case(
        "StringToHashBucketStrong",
        lambda x: string_numbers.to_hash_bucket_strong(x, 1000003, [1, -2]),
        [STRONG_WORDS],
        lambda x: np.array(STRONG[: x.size], np.int64),
        empty=[np.empty(0, object)],
        tensorflow=lambda tf, x: tf.strings.to_hash_bucket_strong(x, 1000003, [1, -2]),
    ),
    _unary(
        string_numbers.encode_base64,
        "EncodeBase64",
        lambda v: base64.urlsafe_b64encode(v).rstrip(b"="),
        BYTES,
        tensorflow=lambda tf, x: tf.io.encode_base64(x),
    ),
    _unary(
        lambda x: string_numbers.encode_base64(x, pad=True),
        "EncodeBase64",
        base64.urlsafe_b64encode,
        BYTES,
        tensorflow=lambda tf, x: tf.io.encode_base64(x, pad=True),
        note="pad",
    ),
    _unary(
        string_numbers.decode_base64,
        "DecodeBase64",
        lambda v: base64.urlsafe_b64decode(v + b"=" * (-len(v) % 4)),
        t("YQ", "YQ==", "_-8", "", "Pz4_"),
        tensorflow=lambda tf, x: tf.io.decode_base64(x),
    ),
    Case(
        "DecodeRaw",
        lambda x: string_numbers.decode_raw(x, dtypes.int16),
        [t([b"\x01\x00\xff\xff", b"abcd"])],
        _raw("<i2"),
        by_value=True,
        tensorflow=lambda tf, x: tf.io.decode_raw(x, tf.int16),
    ),
    Case(
        "DecodeRaw",
        lambda x: string_numbers.decode_raw(x, dtypes.float64, little_endian=False),
        [t(b"\x3f\xf0\x00\x00\x00\x00\x00\x01" * 2)],
        _raw(">f8"),
        by_value=True,
        tensorflow=lambda tf, x: tf.io.decode_raw(x, tf.float64, little_endian=False),
        note="big",
    ),
    Case(
        "DecodeCSV",
        lambda x: csv_records.decode_csv(x, [[1.5], [7], ["none"]], na_value="NA"),
        [t(["0.25,3,one", "NA,,"], ['-1e3,NA,"a, ""b"""', ',12345,"x\ny"'])],
        lambda x: (
            np.float32([[0.25, 1.5], [-1000, 1.5]]),
            i([[3, 7], [7, 12345]]),
            t(["one", "none"], ['a, "b"', "x\ny"]),
        ),
        tensorflow=lambda tf, x: tf.io.decode_csv(x, [[1.5], [7], ["none"]], na_value="NA"),
    ),
    Case(
        "DecodeCSV",
        lambda x: csv_records.decode_csv(
            x, [np.zeros(0, np.int64), 2.5], ";", use_quote_delim=False, select_cols=[0, 2]
        ),
        [t('4;"a;1.5', "5;;")],
        lambda x: (np.int64([4, 5]), np.float32([1.5, 2.5])),
        tensorflow=lambda tf, x: tf.io.decode_csv(
            x,
            [tf.zeros([0], tf.int64), [2.5]],
            ";",
            use_quote_delim=False,
            select_cols=[0, 2],
        ),
        note="selected",
    ),
]


def _tensorflow_string_split(tf: Any, x: Any, delimiter: str) -> Any:
    found = tf.compat.v1.string_split(x, delimiter)
    return found.indices, found.values, found.dense_shape


def _tensorflow_split(tf: Any, x: Any, sep: Any, most: int) -> Any:
    found = tf.compat.v1.strings.split(x, sep=sep.item(), maxsplit=most)
    return found.indices, found.values, found.dense_shape
