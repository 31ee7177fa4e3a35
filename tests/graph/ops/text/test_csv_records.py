"""Lines of comma-separated values: decoded all at once they are what they are one by one."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.ops.text import csv_records

INTEGERS = ["0", "1", "-17", "+2", " 3 ", "007", "2147483647", "-2147483648"]
FLOATS = [*INTEGERS, "1.5", "-.5", "2.", "1e3", "-1E-3", "inf", "-Infinity", "nan", "1e400"]
# What reads as a value of each dtype without a look at it.
PLAIN = {
    fb.int32: INTEGERS,
    fb.int64: [*INTEGERS, "9223372036854775807"],
    fb.float32: FLOATS,
    fb.float64: FLOATS,
    fb.string: [*FLOATS, "a", "é", "1_0"],
}
STRANGE = [
    *("NA", "N_A", " ", "x", "0x1F", "0x1.8p3", "1_000", "1__0", "_1", "1 2", "--1", "1e", "1\0"),
    *("2147483648", "-9223372036854775809", "9" * 30, "9" * 5000, "٣", "é", '"4"', '"1.5"'),
    *('"a, b"', '"a ""b"""', '""', '"', 'a"b', '"a"b', "\n", "1\n", "\r", "1,2", ";"),
]

Arguments = tuple[list[bytes], list[Any], dict[str, Any]]


# Strategies are made once: Hypothesis examines each that is new for longer than it draws from it.
def texts_of(dtype: fb.DType) -> st.SearchStrategy[st.SearchStrategy[str]]:
    """What the fields of a column are drawn from: often no strange ones."""
    plain = st.sampled_from(PLAIN[dtype])
    return st.sampled_from([plain, plain | st.just(""), plain | st.sampled_from(STRANGE)])


TEXTS = {dtype: texts_of(dtype) for dtype in PLAIN}
DTYPES = st.lists(st.sampled_from(list(PLAIN)), min_size=1, max_size=4)
DELIMITERS = st.sampled_from([",", ",", ";", " "])
WIDTHS = {count: st.just(count) | st.integers(1, count) for count in range(1, 5)}
ROWS = st.integers(0, 5)
ODD_RECORDS = st.just([]) | st.lists(st.sampled_from([b"", b",", b"1;2", b"\xff,\xe4"]), max_size=1)
SELECTED = {
    count: st.just(()) | st.sets(st.sampled_from(range(count))).map(sorted).map(tuple)
    for count in WIDTHS
}
HAVE_DEFAULTS = st.integers(0, 3)
QUOTES = st.booleans()
NA_VALUES = st.sampled_from(["", "", "NA", "N_A", "-17", "007"])


@st.composite
def arguments(draw: st.DrawFn) -> Arguments:
    """Records, defaults and attributes: often such that all is read at once."""
    dtypes = draw(DTYPES)
    texts = [draw(TEXTS[dtype]) for dtype in dtypes]
    delimiter = draw(DELIMITERS)
    used = texts[: draw(WIDTHS[len(texts)])]
    rows = [[draw(text) for text in used] for _ in range(draw(ROWS))]
    records = [delimiter.join(row).encode() for row in rows] + draw(ODD_RECORDS)
    selected = draw(SELECTED[len(dtypes)])
    every = range(len(dtypes))
    wanted = tuple([dtypes[column] for column in selected or every])
    defaults = [np.array([7] if draw(HAVE_DEFAULTS) else [], dtype.numpy) for dtype in wanted]
    attributes = {
        "Tout": wanted,
        "field_delim": delimiter,
        "use_quote_delim": draw(QUOTES),
        "na_value": draw(NA_VALUES),
        "select_cols": selected,
    }
    return records, defaults, attributes


def decoded(records: list[bytes], defaults: list[Any], attributes: dict[str, Any]) -> Any:
    """What is decoded, in terms that compare: signs of zeros and what is no number too."""
    try:
        with np.errstate(over="ignore"):
            found = csv_records._decode(np, np.array(records, object), *defaults, **attributes)
    except fb.errors.InvalidArgumentError as error:
        return error.message, error.hint
    return [
        (column.dtype, column.tolist() if column.dtype == object else column.tobytes())
        for column in found
    ]


def no_columns(*_: Any) -> None:
    """Nothing is split at once."""


def no_value(*_: Any) -> Any:
    raise ValueError


def check(*arguments: Any) -> None:
    at_once = decoded(*arguments)
    with (
        patch.object(csv_records, "_columns_at_once", no_columns),
        patch.object(csv_records, "_values_at_once", no_value),
    ):
        assert at_once == decoded(*arguments), arguments


@settings(max_examples=400)
@given(arguments())
def test_tables(given: Arguments) -> None:
    check(*given)


def attributes_of_one(dtype: fb.DType, quoted: bool = True, na_value: str = "") -> dict[str, Any]:
    return {
        "Tout": (dtype,),
        "field_delim": ",",
        "use_quote_delim": quoted,
        "na_value": na_value,
        "select_cols": (),
    }


def test_a_record_that_has_no_end() -> None:
    """It does not go on in the next one."""
    for before, after in itertools.product(([], [b"c"]), repeat=2):
        records = [*before, b'"a', b'b"', *after]
        check(records, [np.array([b""], object)], attributes_of_one(fb.string))


def test_each_field() -> None:
    every = ["", *PLAIN[fb.int64], *PLAIN[fb.string], *STRANGE]
    for dtype, text, na_value in itertools.product(PLAIN, every, ("", "NA", "N_A", "007")):
        for quoted, default in itertools.product((True, False), ([], [7])):
            attributes = attributes_of_one(dtype, quoted, na_value)
            records = ["1", text, "1"]
            check([r.encode() for r in records], [np.array(default, dtype.numpy)], attributes)


def test_what_is_usual_is_read_at_once() -> None:
    """Numbers, text, what is missing, quotes, columns that nobody wants, and no records at all."""
    x = fb.placeholder(fb.string, [None])
    fields = fb.decode_csv(x, [[1.0], [2], ["?"]], select_cols=[0, 2, 3])
    with (
        fb.Session() as sess,
        patch.object(csv_records, "_fields", None),
        patch.object(csv_records, "_values_one_by_one", None),
    ):
        found = sess.run(fields, {x: ["1.5,a,-3,b", ",,,", " 1e3 ,_,+4,é"]})
        assert found[0].tolist() == [1.5, 1.0, 1000.0]
        assert found[1].tolist() == [-3, 2, 4]
        assert found[2].tolist() == [b"b", b"?", "é".encode()]
        found = sess.run(fields, {x: ['"1.5",a,-3,"b, ""c"""', '2,"\n",,d']})
        assert [column.tolist() for column in found] == [[1.5, 2.0], [-3, 2], [b'b, "c"', b"d"]]
        assert [len(column) for column in sess.run(fields, {x: np.empty(0, object)})] == [0, 0, 0]
